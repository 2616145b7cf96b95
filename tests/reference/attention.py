"""Scaled dot-product attention and multi-head attention, with masks."""

import torch
import torch.nn.functional as F
from torch.nn.utils.stateless import functional_call

from write import generator, uniform

# queries, keys, values
shapes = {
    "2d": ((3, 4), (5, 4), (5, 2)),
    "3d": ((2, 3, 4), (2, 5, 4), (2, 5, 4)),
    "4d": ((2, 2, 3, 4), (2, 2, 3, 4), (2, 2, 3, 4)),
    "broadcast": ((2, 1, 3, 4), (3, 5, 4), (1, 5, 2)),
    "one": ((1, 1, 1), (1, 1, 1), (1, 1, 1)),
}


def attention(q, k, v, mask=None, causal=False, scale=None):
    scores = q @ k.transpose(-2, -1) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).tril() == 0, float("-inf"))
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, float("-inf"))
    elif mask is not None:
        scores = scores + mask
    return scores.softmax(-1) @ v


def some(name, shape):
    """A mask that leaves each query a key."""
    mask = torch.rand(shape, generator=generator(name)) < 0.6
    mask[..., 1] = True
    return mask


class MultiheadAttention(torch.nn.MultiheadAttention):
    def forward(self, *x, **masks):
        x = x if len(x) == 3 else x * 3
        return super().forward(*x, need_weights=False, **masks)[0]


# queries (and keys, which are values too, if they are others), options of the layer, masks
layers = {
    "self": (((5, 2, 6),), {}, {}),
    "cross": (((5, 2, 6), (4, 2, 6), (4, 2, 6)), {}, {}),
    "batch_first": (((2, 5, 6),), {"batch_first": True}, {}),
    "no_batch": (((5, 6),), {}, {}),
    "no_bias": (((2, 3, 6), (2, 4, 6), (2, 4, 6)), {"batch_first": True, "bias": False}, {}),
    "padding": (((5, 2, 6),), {}, {"key_padding_mask": ~some("padding", (2, 5))}),
    "mask": (((5, 2, 6),), {}, {"attn_mask": ~some("mask", (5, 5))}),
    "causal": (((2, 5, 6),), {"batch_first": True}, {"attn_mask": torch.ones(5, 5).triu(1) == 1}),
}


def write(file):
    for name, (q, k, v) in shapes.items():
        case = f"attention_{name}"
        x = [uniform(case + "/" + n, s) for n, s in (("q", q), ("k", k), ("v", v))]
        official = F._scaled_dot_product_attention(*x)[0] if name in ("3d", "4d") else attention(*x)
        assert torch.allclose(official, attention(*x))
        file.case(case, attention, *x)
    for name in ("2d", "4d"):
        q, k, v = shapes[name]
        x = [uniform(name + "/" + n, s) for n, s in (("q", q), ("k", k), ("v", v))]
        mask = some(name, (q[-2], k[-2]))
        added = uniform(name + "/mask", (q[-2], k[-2]))
        file.case(f"attention_causal_{name}", lambda *x: attention(*x, causal=True), *x)
        file.case(f"attention_scaled_{name}", lambda *x: attention(*x, scale=0.3), *x)
        file.case(f"attention_masked_{name}", attention, *x, mask)
        file.case(f"attention_added_{name}", attention, *x, added)
        file.case(
            f"attention_blocked_{name}", attention, *x, added.masked_fill(~mask, float("-inf")), no_grad=(3,)
        )
    for name, (inputs, options, masks) in layers.items():
        case = f"multihead_{name}"
        layer = MultiheadAttention(6, 3, dtype=torch.float64, **options)
        names = [n for n, _ in layer.named_parameters()]
        parameters = [uniform(case + "/" + n, p.shape, -0.5, 0.5) for n, p in layer.named_parameters()]
        x = [uniform(f"{case}/{i}", s) for i, s in enumerate(inputs)]

        def run(*all):
            return functional_call(layer, dict(zip(names, all[len(x) :])), all[: len(x)], masks)

        file.case(case, run, *x, *parameters)
        file.out.writelines(f"# {n}: {(m * 1).tolist()}\n" for n, m in masks.items())
