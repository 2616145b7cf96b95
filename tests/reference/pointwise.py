"""Activations, powers, extrema, divisions and selections, with the points where their definitions have cases."""

import torch
import torch.nn.functional as F

from write import uniform

nan, inf = float("nan"), float("inf")


def values(*x):
    return torch.tensor(x, dtype=torch.float64)


def write(file):
    activations = {
        "relu": F.relu,
        "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "gelu": F.gelu,
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
        "silu": F.silu,
        "elu": lambda x: F.elu(x, 1.5),
        "selu": F.selu,
        "softplus": F.softplus,
        "softplus_2_3": lambda x: F.softplus(x, 2, 3),
        "hardtanh": lambda x: F.hardtanh(x, -0.5, 1.5),
        "relu6": F.relu6,
        "hardswish": F.hardswish,
        "mish": F.mish,
    }
    for name, f in activations.items():
        file.case(name, f, uniform(name, (3, 4), -7, 7))
        file.case(name + "_far", f, values(-1000, -90, -30, 30, 90, 1000))

    base = values(0, 0, 0, 0, 2, 2, -2, -2, -2, 1.5, 0.3, inf)
    exponent = values(0, 1, 2, 0.5, 0, -1, 2, 3, 0, 1.7, -0.7, 0)
    file.case("pow", torch.pow, base, exponent)
    for e in (0, 1, 2, 3, 0.5, -1, -2.5):
        x = values(0, 0.5, 1, 2.5, -1.5) if e == int(e) and e >= 0 else values(0.5, 1, 2.5, 3)
        file.case(f"pow_scalar_{e}", lambda x: torch.pow(x, e), x)
    file.case("pow_of_2", lambda x: torch.pow(2.0, x), values(-2, 0, 0.5, 3))
    file.case("pow_of_0", lambda x: torch.pow(0.0, x), values(0, 0.5, 3))

    a, b = values(1, 2, 2, nan, 3, nan), values(2, 1, 2, 3, nan, nan)
    file.case("maximum", torch.maximum, a, b)
    file.case("minimum", torch.minimum, a, b)
    a, b = values(7, -7, 7, -7, 5.5, -0.5, 6, -6), values(3, 3, -3, -3, 2, 2, 3, 3)
    file.case("fmod", torch.fmod, a, b)
    file.case("remainder", torch.remainder, a, b)
    file.case("floor_divide", torch.floor_divide, a, b, no_grad=(0, 1))
    file.case("atan2", torch.atan2, values(0, 1, 1, -1, -1, 0), values(1, 0, -1, -1, 0, -1))

    condition = torch.tensor([[True, False, True], [False, False, True]])
    file.case("where", lambda c, a, b: torch.where(c, a, b), condition, uniform("where", (2, 3)), values(1, 2, 3))
    file.case("masked_fill", lambda x, m: x.masked_fill(m, 7), uniform("fill", (2, 3)), condition)
    file.case("masked_select", lambda x, m: x.masked_select(m), uniform("select", (2, 3)), condition)
    file.case("masked_select_broadcast", lambda x, m: x.masked_select(m), values(1, 2, 3), condition)
    x = values(-2, -1, 0, 1, 2, 3)
    file.case("clamp", lambda x: x.clamp(-1, 2), x)
    file.case("clamp_min", lambda x: x.clamp(min=0), x)
    file.case("clamp_max", lambda x: x.clamp(max=1), x)
    file.case("clamp_crossed", lambda x: x.clamp(2, -1), x)
    file.case("clamp_tensors", torch.clamp, x, values(-1, -1, -1, 1, 3, 2), values(1, 1, 1, 1, 2, 2.5))
    file.case("nan_to_num", lambda x: torch.nan_to_num(x, 0.5, 9, -9), values(nan, inf, -inf, 1, -2))
