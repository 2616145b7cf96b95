"""Sums of products. The name of a case is its equation."""

import torch
from write import uniform


def write(file):
    def case(equation, *shapes):
        inputs = [uniform(f"{equation}{i}", s) for i, s in enumerate(shapes)]
        file.case(equation, lambda *x: torch.einsum(equation, *x), *inputs)

    case("ij,jk->ik", (2, 3), (3, 4))
    case("ij,jk", (2, 3), (3, 2))
    case("ba,cb", (2, 3), (4, 2))
    case("bij,bjk->bik", (2, 2, 3), (2, 3, 2))
    case("...ij,...jk->...ik", (2, 1, 2, 3), (3, 3, 2))
    case("...ij,jk", (2, 2, 3), (3, 2))
    case("i,i->", (4,), (4,))
    case("i,i->i", (4,), (4,))
    case("i,j->ji", (2,), (3,))
    case("ij->ji", (2, 3))
    case("ij->", (2, 3))
    case("ij->j", (2, 3))
    case("ii", (3, 3))
    case("ii->i", (3, 3))
    case("...ii->...i", (2, 3, 3))
    case("iji->j", (2, 3, 2))
    case("iii->i", (2, 2, 2))
    case("...->", (2, 3))
    case("...i->...", (2, 3))
    case("i...->i", (2, 3, 2))
    case("ij,ik,il->jkl", (3, 2), (3, 2), (3, 2))
    case("ij,jk,kl->il", (2, 3), (3, 2), (2, 3))
    case("bn,anm,bm->ba", (2, 3), (4, 3, 2), (2, 2))
    case("ii,ij->j", (2, 2), (2, 3))
    case("ij,kl->", (2, 3), (2, 2))
    case("ij,k->i", (2, 3), (2,))
    case(",ij->ij", (), (2, 2))
    case("ij,ij->ij", (1, 3), (2, 1))
    case("bhqd,bhkd->bhqk", (1, 2, 2, 3), (1, 2, 3, 3))
    case("ij,jk->ki", (2, 0), (0, 3))
    case("ij,jk->j", (0, 2), (2, 3))
