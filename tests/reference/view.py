"""Views: whole tensors in another shape or order, and parts of them."""

from write import uniform


def write(file):
    def case(name, f, *shape):
        file.case(name, f, uniform(name, shape))

    case("reshape", lambda x: x.reshape(4, -1), 2, 3, 4)
    case("reshape_to_scalar", lambda x: x.reshape(()), 1, 1)
    case("reshape_empty", lambda x: x.reshape(-1, 3, 2), 2, 0, 3)
    case("flatten", lambda x: x.flatten(), 2, 3, 4)
    case("flatten_middle", lambda x: x.flatten(1, -2), 2, 3, 2, 2)
    case("flatten_scalar", lambda x: x.flatten())
    case("flatten_empty", lambda x: x.flatten(1), 0, 3, 2)
    case("unflatten", lambda x: x.unflatten(1, (2, -1)), 2, 6, 2)
    case("squeeze", lambda x: x.squeeze(), 1, 2, 1, 3)
    case("squeeze_dim", lambda x: x.squeeze(-2), 2, 1, 3)
    case("squeeze_dim_not_one", lambda x: x.squeeze(0), 2, 1, 3)
    case("unsqueeze", lambda x: x.unsqueeze(1), 2, 3)
    case("unsqueeze_last", lambda x: x.unsqueeze(-1), 2, 3)
    case("permute", lambda x: x.permute(2, 0, -2), 2, 3, 4)
    case("transpose", lambda x: x.transpose(0, -1), 2, 3, 4)
    case("t", lambda x: x.t(), 2, 3)
    case("movedim", lambda x: x.movedim(0, 2), 2, 3, 2, 2)
    case("movedim_back", lambda x: x.movedim(-1, 1), 2, 3, 2, 2)
    case("expand", lambda x: x.expand(2, -1, 3), 2, 1)
    case("expand_empty", lambda x: x.expand(0, 3), 1, 3)
    case("select", lambda x: x.select(1, 2), 2, 3, 2)
    case("select_negative", lambda x: x.select(-1, -2), 2, 3)
    case("narrow", lambda x: x.narrow(1, 1, 2), 2, 4, 2)
    case("narrow_negative", lambda x: x.narrow(-1, -3, 2), 2, 4)
    case("narrow_empty", lambda x: x.narrow(0, 3, 0), 3, 2)
    case("slice", lambda x: x[:, 1:7:2], 2, 8)
    case("slice_clamped", lambda x: x[-100:100:3], 8)
    case("slice_negative", lambda x: x[-5:-1], 8, 2)
    case("slice_backwards_is_empty", lambda x: x[5:2], 8, 2)
    case("slice_beyond", lambda x: x[8:], 8, 2)
    case("diagonal", lambda x: x.diagonal(), 3, 4)
    case("diagonal_above", lambda x: x.diagonal(1, 0, 2), 3, 2, 4)
    case("diagonal_below", lambda x: x.diagonal(-1, -1, 0), 3, 2, 4)
    case("diagonal_outside", lambda x: x.diagonal(4), 3, 4)
    case("chain", lambda x: x.permute(2, 0, 1)[1:].select(1, -1).reshape(-1).view(3, 3).diagonal(), 2, 3, 4)
