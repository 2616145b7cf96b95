"""Copies in another arrangement."""

import torch
import torch.nn.functional as F
from write import uniform


def write(file):
    def case(name, f, *shape):
        file.case(name, f, uniform(name, shape))

    case("flip", lambda x: x.flip(0, -1), 2, 3, 4)
    case("flip_one", lambda x: x.flip(1), 2, 3)
    case("flip_none", lambda x: x.flip([]), 2, 3)
    case("flip_empty", lambda x: x.flip(0), 0, 3)
    case("roll", lambda x: x.roll(1, 0), 3, 2)
    case("roll_back", lambda x: x.roll((-1, 5), (0, 1)), 3, 4)
    case("roll_flat", lambda x: x.roll(-2), 2, 3)
    case("roll_empty", lambda x: x.roll(1, 1), 2, 0)
    case("pad", lambda x: F.pad(x, (1, 2)), 2, 3)
    case("pad_planes", lambda x: F.pad(x, (1, 0, 0, 2), value=0.5), 2, 2, 3)
    case("pad_cuts", lambda x: F.pad(x, (-1, 1, 2, -1), value=-1.5), 3, 3)
    case("pad_empty", lambda x: F.pad(x, (1, 1), value=2.5), 2, 0)
    case("pad_reflect", lambda x: F.pad(x, (2, 1, 1, 0), "reflect"), 1, 2, 3, 3)
    case("pad_replicate", lambda x: F.pad(x, (4, 1, 0, 2), "replicate"), 1, 2, 3, 2)
    case("pad_circular", lambda x: F.pad(x, (3, 1, 1, 2), "circular"), 1, 2, 2, 3)
    for k in (0, 1, -1, 3, -4, 100):
        case(f"tril_{k}", lambda x: x.tril(k), 2, 3, 4)
        case(f"triu_{k}", lambda x: x.triu(k), 2, 4, 3)
    case("repeat", lambda x: x.repeat(2, 1, 3), 2, 3)
    case("repeat_inner", lambda x: x.repeat(2, 3), 2, 2)
    case("repeat_none", lambda x: x.repeat(1, 1), 2, 2)
    case("repeat_zero", lambda x: x.repeat(2, 0), 2, 2)
    case("tile", lambda x: x.tile((2,)), 2, 3)
    case("repeat_interleave", lambda x: x.repeat_interleave(2, 1), 2, 3, 2)
    case("repeat_interleave_last", lambda x: x.repeat_interleave(3, -1), 2, 2)
    case("repeat_interleave_zero", lambda x: x.repeat_interleave(0, 0), 2, 2)
