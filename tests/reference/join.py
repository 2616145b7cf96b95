"""Tensors joined to one."""

import torch
from write import uniform


def write(file):
    def case(name, f, *shapes):
        file.case(name, f, *[uniform(f"{name}{i}", s) for i, s in enumerate(shapes)])

    case("cat", lambda a, b, c: torch.cat([a, b, c], 1), (2, 1, 3), (2, 2, 3), (2, 0, 3))
    case("cat_last", lambda a, b: torch.cat([a, b], -1), (2, 3), (2, 2))
    case("cat_one", lambda a: torch.cat([a]), (2, 3))
    case("cat_nothing", lambda a, b, c: torch.cat([a, b, c], 1), (0,), (2, 2), (2, 1))
    case("cat_twice", lambda a: torch.cat([a, a]), (2, 2))
    case("cat_empty", lambda a, b: torch.cat([a, b], 1), (0, 2), (0, 3))
    case("stack", lambda a, b: torch.stack([a, b], 1), (2, 3), (2, 3))
    case("stack_last", lambda a, b, c: torch.stack([a, b, c], -1), (2,), (2,), (2,))
    case("stack_scalars", lambda a, b: torch.stack([a, b]), (), ())
    case("hstack", lambda a, b: torch.hstack([a, b]), (2, 1), (2, 3))
    case("hstack_lists", lambda a, b: torch.hstack([a, b]), (), (3,))
    case("vstack", lambda a, b: torch.vstack([a, b]), (3,), (2, 3))
    case("vstack_scalars", lambda a, b: torch.vstack([a, b]), (), ())
