"""Writes cases in the format that tests/ops/reference.hpp reads."""

import zlib

import torch


def tensor_line(kind, t):
    if t is None:
        return f"{kind} -1"
    words = [kind, str(t.dim())] + [str(s) for s in t.shape]
    return " ".join(words + [repr(float(v)) for v in t.detach().reshape(-1)])


def generator(name):
    """Random numbers that depend on the name of the case alone."""
    return torch.Generator().manual_seed(zlib.crc32(name.encode()))


def uniform(name, shape, low=-2.0, high=2.0):
    return low + (high - low) * torch.rand(shape, generator=generator(name), dtype=torch.float64)


class File:
    """One fixture. Inputs of floating type get gradients unless `no_grad` holds their position."""

    def __init__(self, path):
        self.out = open(path, "w")
        self.out.write(f"# made by make_reference.py with PyTorch {torch.__version__}\n")

    def case(self, name, f, *inputs, no_grad=()):
        inputs = [x if x.dtype != torch.float32 else x.double() for x in inputs]
        leaves = [
            x.clone().requires_grad_(True) if x.is_floating_point() and i not in no_grad else x
            for i, x in enumerate(inputs)
        ]
        output = f(*leaves)
        lines = [f"case {name}"] + [tensor_line("input", x) for x in inputs]
        lines.append(tensor_line("output", output))
        if output.requires_grad:
            weights = torch.rand(output.shape, generator=generator(name + "/weights"), dtype=torch.float64) + 0.5
            wanted = [x for x in leaves if x.requires_grad]
            found = iter(torch.autograd.grad((output * weights).sum(), wanted, allow_unused=True))
            lines.append(tensor_line("weights", weights))
            lines += [tensor_line("gradient", next(found) if x.requires_grad else None) for x in leaves]
        self.out.write("\n".join(lines) + "\n")
