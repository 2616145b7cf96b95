"""Quantization: parameters, integers, fake quantization, observers, and the dynamic int8 Linear by its definition."""

import torch
from torch.ao.quantization import observer

from write import uniform

values = {
    "spread": lambda n: uniform(n, (5, 7)),
    "positive": lambda n: uniform(n, (24,), 1, 3),
    "negative": lambda n: uniform(n, (24,), -3, -2),
    "lopsided": lambda n: uniform(n, (4, 2, 3), -0.1, 9),
    "zeros": lambda n: torch.zeros(4, dtype=torch.float64),
    "half": lambda n: torch.full((3,), 0.5, dtype=torch.float64),
    "minus_two": lambda n: torch.full((3,), -2.0, dtype=torch.float64),
    "tiny": lambda n: torch.full((3,), 1e-40, dtype=torch.float64),
    "huge": lambda n: torch.tensor([-1e38, 2e38], dtype=torch.float64),
}
affine, symmetric = torch.per_tensor_affine, torch.per_tensor_symmetric
types = {"u8": torch.quint8, "s8": torch.qint8}


def as_double(scale, zero_point):
    return torch.stack([scale.double().reshape(-1), zero_point.double().reshape(-1)])


def qparams(make, *inputs):
    o = make()
    for x in inputs:
        o(x.float())
    return as_double(*o.calculate_qparams())


def bounds(make, *inputs):
    o = make()
    for x in inputs:
        o(x.float())
    return torch.stack([o.min_val, o.max_val]).double()


def histogram(bins, *inputs):
    o = observer.HistogramObserver(bins=bins)
    for x in inputs:
        o(x.float())
    return torch.stack(o._non_linear_param_search()).double()


def dynamic_linear(x, w, b, per_channel):
    make = observer.default_per_channel_weight_observer if per_channel else observer.default_weight_observer
    o = make()
    o(w.float())
    scale, zero = o.calculate_qparams()
    if per_channel:
        qw = torch.quantize_per_channel(w.float(), scale, zero, 0, torch.qint8)
    else:
        qw = torch.quantize_per_tensor(w.float(), float(scale), int(zero), torch.qint8)
    a = observer.MinMaxObserver(dtype=torch.quint8)
    a(x.float())
    x_scale, x_zero = a.calculate_qparams()
    qx = torch.quantize_per_tensor(x.float(), float(x_scale), int(x_zero), torch.quint8)
    sums = (qx.int_repr().long() - x_zero.long()) @ qw.int_repr().long().t()
    return sums.double() * (x_scale.double() * scale.double()) + b


def write(file):
    no_grad = range(8)
    for name, make in values.items():
        x = make("quant_" + name)
        for kind, dtype in types.items():
            for way in (affine, symmetric):
                label = f"{kind}_{'affine' if way is affine else 'symmetric'}_{name}"
                o = lambda: observer.MinMaxObserver(dtype=dtype, qscheme=way)
                file.case("qparams_" + label, lambda x: qparams(o, x), x, no_grad=no_grad)
                if name == "huge":
                    continue
                scale, zero = qparams(o, x)
                q = lambda x, s, z: torch.quantize_per_tensor(x.float(), float(s), int(z), dtype).int_repr().double()
                file.case("quantize_" + label, q, x, scale[0], zero[0], no_grad=no_grad)
    # Halves between levels, and values beyond the ends.
    ties = torch.arange(-12, 12, dtype=torch.float64) / 8
    q = lambda x: torch.quantize_per_tensor(x.float(), 0.25, 3, torch.qint8).int_repr().double()
    file.case("quantize_ties", q, ties, no_grad=no_grad)
    for low, high, zero in ((0, 255, 128), (-128, 127, 0), (0, 15, 3), (-8, 7, 0)):
        x = uniform(f"fake_quantize_{high}", (6, 8), -4, 4)
        f = lambda x: torch.fake_quantize_per_tensor_affine(x.float(), 0.03125, zero, low, high)
        file.case(f"fake_quantize_{high}", f, x)
    for axis in (0, 1):
        x = uniform(f"fake_quantize_channel_{axis}", (4, 4, 3), -4, 4)
        scale, zero = torch.tensor([0.01, 0.02, 0.03, 0.0625]), torch.tensor([0, -3, 7, 0], dtype=torch.int32)
        f = lambda x, s, z: torch.fake_quantize_per_channel_affine(x.float(), s.float(), z.int(), axis, -128, 127)
        file.case(f"fake_quantize_channel_{axis}", f, x, scale, zero, no_grad=(1, 2))
        o = lambda: observer.PerChannelMinMaxObserver(
            ch_axis=axis, dtype=torch.qint8, qscheme=torch.per_channel_symmetric
        )
        file.case(f"qparams_channel_{axis}", lambda x: qparams(o, x), x, no_grad=no_grad)
        s, z = qparams(o, x)
        q = lambda x: torch.quantize_per_channel(x.float(), s, z.long(), axis, torch.qint8).int_repr().double()
        file.case(f"quantize_channel_{axis}", q, x, no_grad=no_grad)

    batches = [uniform(f"observer/{i}", (10, 20), -1 - 0.5 * i, 2 + i) ** 3 for i in range(3)]
    file.case("min_max", lambda *x: bounds(observer.MinMaxObserver, *x), *batches, no_grad=no_grad)
    average = lambda *x: bounds(lambda: observer.MovingAverageMinMaxObserver(averaging_constant=0.1), *x)
    file.case("moving_average", average, *batches, no_grad=no_grad)
    # This version cuts the bounds of its histogram to integers: these are.
    outer = torch.cat([batches[0].reshape(-1).clamp(-1, 8), torch.tensor([-1, 8.0])])
    file.case("histogram_one", lambda x: histogram(256, x), outer, no_grad=no_grad)
    file.case("histogram_two", lambda *x: histogram(256, *x), outer, outer[:100] / 2, no_grad=no_grad)

    for per_channel in (False, True):
        name = f"dynamic_linear_{'channel' if per_channel else 'tensor'}"
        inputs = (uniform(name + f"/{i}", s) for i, s in enumerate(((6, 37), (11, 37), (11,))))
        file.case(name, lambda x, w, b: dynamic_linear(x, w, b, per_channel), *inputs, no_grad=no_grad)
