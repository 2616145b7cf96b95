"""Elements named by an index. The index is the first input."""

import torch
import torch.nn.functional as F
from write import uniform


def write(file):
    def case(name, f, index, *shapes):
        file.case(name, f, torch.tensor(index, dtype=torch.int64), *[uniform(f"{name}{i}", s) for i, s in enumerate(shapes)])

    case("gather", lambda i, x: x.gather(1, i), [[0, 2, 2], [3, 0, 1]], (2, 4))
    case("gather_first", lambda i, x: x.gather(0, i), [[0, 1, 0], [1, 1, 1], [0, 0, 1]], (2, 4))
    case("gather_middle", lambda i, x: x.gather(-2, i), [[[0, 2], [1, 1]], [[2, 2], [0, 1]]], (2, 3, 3))
    case("take_along_dim", lambda i, x: torch.take_along_dim(x, i, 1), [[[0], [2]]], (2, 3, 2))
    case("index_select", lambda i, x: x.index_select(0, i), [2, 0, 2, 1], (3, 2, 2))
    case("index_select_middle", lambda i, x: x.index_select(1, i), [1, 1, 0], (2, 3, 2))
    case("index_select_last", lambda i, x: x.index_select(-1, i), [1, 2], (2, 3))
    case("scatter", lambda i, x, s: x.scatter(1, i, s), [[0, 2], [3, 1]], (2, 4), (2, 2))
    case("scatter_first", lambda i, x, s: x.scatter(0, i, s), [[2, 0], [1, 1], [0, 2]], (3, 3), (3, 2))
    case("scatter_value", lambda i, x: x.scatter(1, i, 2.5), [[0, 0], [3, 1]], (2, 4))
    case("scatter_add", lambda i, x, s: x.scatter_add(1, i, s), [[0, 0, 2], [3, 0, 3]], (2, 4), (2, 3))
    case("scatter_add_first", lambda i, x, s: x.scatter_add(0, i, s), [[0, 1], [0, 1], [1, 1]], (2, 3), (3, 2))
    case("index_add", lambda i, x, s: x.index_add(0, i, s), [1, 1, 0], (3, 2, 2), (3, 2, 2))
    case("index_add_middle", lambda i, x, s: x.index_add(1, i, s), [2, 0, 2, 2], (2, 3, 2), (2, 4, 2))
    case("index_copy", lambda i, x, s: x.index_copy(1, i, s), [2, 0], (2, 3), (2, 2))
    case("index_fill", lambda i, x: x.index_fill(0, i, -1.5), [1, 1], (3, 2))
    case("embedding", lambda i, w: F.embedding(i, w), [[0, 3], [3, 1]], (4, 3))
    case("embedding_padding", lambda i, w: F.embedding(i, w, padding_idx=3), [[0, 3], [3, 1]], (4, 3))
    case("embedding_padding_last", lambda i, w: F.embedding(i, w, padding_idx=-1), [3, 3], (4, 3))
    case("masked_select", lambda m, x: x.masked_select(m != 0), [[1, 0, 1]], (2, 3))
