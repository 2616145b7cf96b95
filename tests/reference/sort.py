"""Elements in order."""

import torch
from write import uniform


def write(file):
    def case(name, f, *shape):
        file.case(name, f, uniform(name, shape))

    case("sort", lambda x: x.sort()[0], 3, 5)
    case("sort_first", lambda x: x.sort(0, descending=True)[0], 5, 3)
    case("sort_middle", lambda x: x.sort(1)[0], 2, 4, 3)
    case("sort_scalar", lambda x: x.sort()[0])
    case("sort_empty", lambda x: x.sort(0)[0], 0, 3)
    case("topk", lambda x: x.topk(3)[0], 2, 6)
    case("topk_least", lambda x: x.topk(2, 0, largest=False)[0], 5, 2)
    case("topk_all", lambda x: x.topk(4, 1)[0], 2, 4, 2)
    case("topk_none", lambda x: x.topk(0)[0], 2, 4)
    case("kthvalue", lambda x: x.kthvalue(2)[0], 2, 4)
    case("kthvalue_keepdim", lambda x: x.kthvalue(3, 0, keepdim=True)[0], 4, 2)
