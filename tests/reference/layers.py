"""Matrix products, linear, convolution and max pooling, with every option."""

import torch
import torch.nn.functional as F

from write import uniform

products = {
    "1d_1d": ((4,), (4,)),
    "2d_1d": ((3, 4), (4,)),
    "1d_2d": ((4,), (4, 3)),
    "2d_2d": ((3, 4), (4, 5)),
    "3d_1d": ((2, 3, 4), (4,)),
    "1d_3d": ((4,), (2, 4, 3)),
    "3d_2d": ((2, 3, 4), (4, 2)),
    "2d_3d": ((3, 4), (2, 4, 2)),
    "3d_3d": ((2, 3, 4), (2, 4, 2)),
    "3d_one": ((2, 3, 4), (1, 4, 2)),
    "4d_3d": ((2, 1, 3, 2), (3, 2, 2)),
    "4d_4d": ((1, 2, 2, 3), (2, 1, 3, 2)),
    "ones": ((1, 1), (1, 1)),
    "row_column": ((1, 4), (4, 1)),
    "column_row": ((3, 1), (1, 4)),
    "inner_empty": ((2, 0), (0, 3)),
    "rows_empty": ((0, 3), (3, 2)),
    "columns_empty": ((2, 3), (3, 0)),
    "1d_empty": ((0,), (0,)),
    "batch_empty": ((0, 2, 3), (3, 2)),
    "batches_empty": ((0, 2, 3), (1, 3, 2)),
    "batch_inner_empty": ((2, 3, 0), (2, 0, 2)),
}

# input, weight [out, in], bias
linears = {
    "1d": ((4,), (3, 4), True),
    "2d": ((2, 4), (3, 4), True),
    "3d": ((2, 3, 4), (2, 4), True),
    "4d": ((2, 1, 3, 2), (3, 2), True),
    "no_bias": ((3, 4), (2, 4), False),
    "1d_no_bias": ((4,), (2, 4), False),
    "one": ((1, 1), (1, 1), True),
    "batch_empty": ((0, 4), (3, 4), True),
    "in_empty": ((2, 0), (3, 0), True),
    "3d_empty": ((2, 0, 4), (3, 4), True),
}

# input, weight, bias, options
convolutions = {
    "plain": ((2, 3, 5, 6), (4, 3, 3, 2), True, {}),
    "no_bias": ((2, 2, 4, 5), (3, 2, 2, 2), False, {}),
    "stride": ((1, 2, 8, 9), (3, 2, 3, 3), True, {"stride": 2}),
    "strides": ((2, 1, 7, 8), (2, 1, 2, 3), True, {"stride": (2, 3)}),
    "stride_over_kernel": ((1, 2, 7, 7), (2, 2, 2, 2), True, {"stride": 3}),
    "padding": ((2, 2, 4, 5), (2, 2, 3, 3), True, {"padding": (1, 2)}),
    "padding_over_kernel": ((1, 1, 2, 3), (2, 1, 2, 2), True, {"padding": 3}),
    "dilation": ((1, 2, 7, 7), (2, 2, 3, 2), True, {"dilation": (2, 3)}),
    "groups": ((2, 4, 4, 4), (6, 2, 3, 3), True, {"groups": 2}),
    "depthwise": ((2, 3, 6, 6), (3, 1, 3, 3), True, {"stride": 2, "padding": 1, "groups": 3}),
    "depthwise_multiplied": ((1, 2, 4, 5), (4, 1, 2, 3), True, {"groups": 2}),
    "pointwise": ((2, 3, 3, 4), (5, 3, 1, 1), True, {}),
    "pointwise_stride": ((1, 2, 5, 4), (3, 2, 1, 1), True, {"stride": 2}),
    "pointwise_groups": ((2, 4, 3, 3), (6, 2, 1, 1), True, {"groups": 2}),
    "whole_image": ((2, 2, 3, 4), (3, 2, 3, 4), True, {}),
    "same": ((1, 2, 5, 5), (2, 2, 5, 5), True, {"padding": 2}),
    "one": ((1, 1, 1, 1), (1, 1, 1, 1), True, {}),
    "one_padded": ((1, 2, 1, 1), (2, 2, 3, 3), True, {"padding": 1}),
    "row": ((2, 2, 1, 9), (3, 2, 1, 4), True, {"stride": (1, 2), "padding": (0, 1)}),
    "everything": (
        (2, 4, 7, 8),
        (4, 2, 3, 2),
        True,
        {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2), "groups": 2},
    ),
    "unbatched": ((2, 4, 5), (3, 2, 2, 2), True, {"padding": 1}),
    "batch_empty": ((0, 2, 4, 4), (3, 2, 2, 2), True, {}),
}

pools = {
    "2x2": ((2, 2, 4, 6), {"kernel_size": 2}),
    "remainder": ((1, 2, 5, 7), {"kernel_size": 2}),
    "stride": ((1, 2, 7, 8), {"kernel_size": 3, "stride": 2}),
    "stride_over_kernel": ((1, 1, 8, 8), {"kernel_size": 2, "stride": 3}),
    "rectangle": ((1, 2, 6, 5), {"kernel_size": (3, 2), "stride": (1, 2)}),
    "padding": ((2, 1, 5, 4), {"kernel_size": 3, "stride": 1, "padding": 1}),
    "paddings": ((1, 2, 5, 6), {"kernel_size": (2, 4), "stride": (2, 1), "padding": (1, 2)}),
    "dilation": ((1, 2, 7, 8), {"kernel_size": 2, "stride": 1, "dilation": (2, 3)}),
    "dilation_padding": ((1, 1, 7, 7), {"kernel_size": 3, "stride": 2, "padding": 1, "dilation": 2}),
    "ceil": ((1, 2, 6, 7), {"kernel_size": 3, "stride": 2, "ceil_mode": True}),
    "ceil_padding": ((1, 1, 6, 5), {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
    "ceil_outside": ((1, 1, 6, 7), {"kernel_size": 1, "stride": 2, "ceil_mode": True}),
    "ceil_dilation": ((1, 1, 8, 6), {"kernel_size": 2, "stride": 3, "dilation": 2, "ceil_mode": True}),
    "column": ((1, 1, 20, 1), {"kernel_size": (3, 1), "stride": 1}),
    "one": ((1, 1, 1, 1), {"kernel_size": 1}),
    "whole_image": ((2, 3, 3, 4), {"kernel_size": (3, 4)}),
    "unbatched": ((2, 4, 4), {"kernel_size": 2}),
}


def write(file):
    for name, shapes in products.items():
        name = "matmul_" + name
        file.case(name, torch.matmul, *(uniform(f"{name}/{i}", s) for i, s in enumerate(shapes)))
    for name, (x, w, bias) in linears.items():
        name = "linear_" + name
        shapes = (x, w, w[:1]) if bias else (x, w)
        file.case(name, F.linear, *(uniform(f"{name}/{i}", s) for i, s in enumerate(shapes)))
    for name, (x, w, bias, options) in convolutions.items():
        name = "conv2d_" + name
        shapes = (x, w, w[:1]) if bias else (x, w)
        inputs = (uniform(f"{name}/{i}", s) for i, s in enumerate(shapes))
        file.case(name, lambda *x: F.conv2d(*x, **options), *inputs)
    for name, (x, options) in pools.items():
        name = "max_pool2d_" + name
        file.case(name, lambda x: F.max_pool2d(x, **options), uniform(name, x))
