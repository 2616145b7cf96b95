"""Masks after pruning; a case with two steps prunes what the first left."""

import torch
from torch.nn.utils import prune
from write import uniform


def write(file):
    def case(name, shape, *steps):
        def mask(x):
            layer = torch.nn.Module()
            layer.register_parameter("weight", torch.nn.Parameter(x.clone()))
            for step in steps:
                step(layer)
            return layer.weight_mask

        file.case(name, mask, uniform(name, shape), no_grad=(0,))

    def l1(amount):
        return lambda layer: prune.l1_unstructured(layer, "weight", amount)

    def ln(amount, n, dim):
        return lambda layer: prune.ln_structured(layer, "weight", amount, n, dim)

    case("l1_fraction", (4, 5), l1(0.3))
    case("l1_count", (4, 5), l1(7))
    case("l1_half_to_even", (3, 5), l1(0.5))  # 7.5 elements
    case("l1_half_to_even_down", (1, 9), l1(0.5))  # 4.5 elements
    case("l1_all", (2, 3), l1(1.0))
    case("l1_none", (2, 3), l1(0.0))
    case("l1_twice", (4, 5), l1(0.5), l1(0.5))
    case("ln_outputs", (6, 3, 2, 2), ln(0.5, 2, 0))
    case("ln_inputs", (3, 6, 2, 2), ln(2, 1, 1))
    case("ln_infinity", (6, 5), ln(0.4, float("inf"), 0))
    case("ln_last_dim", (3, 2, 2, 4), ln(0.5, 2, -1))
    case("ln_twice", (8, 4), ln(0.5, 2, 0), ln(0.5, 2, 0))
    case("l1_then_ln", (6, 4), l1(0.5), ln(2, 2, 0))
    case("ln_then_l1", (6, 4), ln(2, 2, 0), l1(0.25))

    def both(a, b):
        layers = [torch.nn.Module(), torch.nn.Module()]
        for layer, x in zip(layers, (a, b)):
            layer.register_parameter("weight", torch.nn.Parameter(x.clone()))
        l1(3)(layers[0])
        prune.global_unstructured([(m, "weight") for m in layers], prune.L1Unstructured, amount=0.5)
        return torch.cat([m.weight_mask.reshape(-1) for m in layers])

    file.case("global", both, uniform("global0", (3, 4)), uniform("global1", (2, 5), -1.0, 1.0), no_grad=(0, 1))
