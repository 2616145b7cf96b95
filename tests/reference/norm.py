"""Batch and layer normalization, and the running statistics of batches."""

import torch
import torch.nn.functional as F

from write import uniform

batches = {"2d": (5, 3), "3d": (3, 2, 4), "4d": (2, 3, 2, 3), "long": (2, 2, 35), "pair": (2, 1)}

# input, the dimensions that are normalized over
rows = {"last": ((4, 5), 1), "two": ((2, 3, 2, 3), 2), "all": ((2, 3), 2), "long": ((2, 37), 1), "two_values": ((3, 2), 1)}


def running(x, momentum, layer):
    """The running statistics after the batches x[0], x[1], ..., and the answer to the first one in evaluation."""
    bn = layer(x.shape[2], momentum=momentum).double()
    with torch.no_grad():
        for batch in x:
            bn(batch)
        bn.eval()
        return torch.cat([bn.running_mean, bn.running_var, bn(x[0]).reshape(-1)])


def write(file):
    for name, shape in batches.items():
        name = "batch_norm_" + name
        x, w, b = (uniform(f"{name}/{i}", s) for i, s in enumerate((shape, shape[1:2], shape[1:2])))
        file.case(name, lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), x, w, b)
    x, w, b, mean = (uniform(f"batch_norm/{i}", s) for i, s in enumerate(((4, 3, 5), (3,), (3,), (3,))))
    var = uniform("batch_norm/4", (3,), 0.5, 2.0)
    file.case("batch_norm_plain", lambda x: F.batch_norm(x, None, None, training=True, eps=0.1), x)
    file.case("batch_norm_eval", lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b), x, mean, var, w, b, no_grad=(1, 2))
    file.case("batch_norm_eval_plain", lambda x, m, v: F.batch_norm(x, m, v), x, mean, var, no_grad=(1, 2))
    file.case("running_1d", lambda x: running(x, 0.1, torch.nn.BatchNorm1d), uniform("running_1d", (3, 4, 3)))
    file.case("running_2d", lambda x: running(x, 0.3, torch.nn.BatchNorm2d), uniform("running_2d", (3, 2, 3, 2, 2)))
    file.case("running_average", lambda x: running(x, None, torch.nn.BatchNorm1d), uniform("average", (3, 2, 3, 4)))
    for name, (shape, dims) in rows.items():
        name = "layer_norm_" + name
        over = shape[len(shape) - dims :]
        x, w, b = (uniform(f"{name}/{i}", s) for i, s in enumerate((shape, over, over)))
        file.case(name, lambda x, w, b: F.layer_norm(x, over, w, b), x, w, b)
    x = uniform("layer_norm", (3, 4))
    file.case("layer_norm_plain", lambda x: F.layer_norm(x, (4,), eps=0.1), x)
    file.case("layer_norm_weight", lambda x, w: F.layer_norm(x, (4,), w), x, uniform("layer_norm/1", (4,)))
