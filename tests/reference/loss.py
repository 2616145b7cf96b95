"""Softmax and losses, with every option. Targets of -100 are ignored."""

import torch
import torch.nn.functional as F

from write import uniform

reductions = ("none", "mean", "sum")


def values(*x):
    return torch.tensor(x, dtype=torch.float64)


def classes(*x):
    return torch.tensor(x, dtype=torch.int64)


def write(file):
    for dim in (0, 1, 2):
        for f in (torch.softmax, torch.log_softmax, torch.logsumexp):
            name = f"{f.__name__.lstrip('_')}_{dim}"
            file.case(name, lambda x: f(x, dim), uniform(name, (2, 3, 4), -5, 5))
    file.case("logsumexp_0_2_kept", lambda x: torch.logsumexp(x, (0, 2), True), uniform("lse", (2, 3, 4), -5, 5))

    weight = values(0.2, 1.5, 0.7)
    targets = {
        "": ((5, 3), classes(0, 2, 1, -100, 2)),
        "_2d": ((2, 3, 2, 2), classes(0, 1, 2, 2, -100, 0, 1, -100).reshape(2, 2, 2)),
        "_one": ((3,), classes(1).reshape(())),
    }
    for suffix, (shape, target) in targets.items():
        x = uniform("cross_entropy" + suffix, shape)
        p = torch.softmax(uniform("probabilities" + suffix, shape), 0 if len(shape) == 1 else 1)
        for reduction in reductions:
            for smoothing in (0, 0.3):
                file.case(
                    f"cross_entropy{suffix}_{smoothing}_{reduction}",
                    lambda x, t: F.cross_entropy(x, t, label_smoothing=smoothing, reduction=reduction),
                    x,
                    target,
                )
                file.case(
                    f"cross_entropy{suffix}_weight_{smoothing}_{reduction}",
                    lambda x, t, w: F.cross_entropy(x, t, w, label_smoothing=smoothing, reduction=reduction),
                    x,
                    target,
                    weight,
                    no_grad=(2,),
                )
                file.case(
                    f"cross_entropy{suffix}_probabilities_{smoothing}_{reduction}",
                    lambda x, p, w: F.cross_entropy(x, p, w, label_smoothing=smoothing, reduction=reduction),
                    x,
                    p,
                    weight,
                    no_grad=(2,),
                )
            if len(shape) > 1:
                file.case(
                    f"nll_loss{suffix}_{reduction}", lambda x, t: F.nll_loss(x, t, reduction=reduction), x, target
                )
                file.case(
                    f"nll_loss{suffix}_weight_{reduction}",
                    lambda x, t, w: F.nll_loss(x, t, w, reduction=reduction),
                    x,
                    target,
                    weight,
                    no_grad=(2,),
                )

    x, y = uniform("difference x", (2, 5), -3, 3), uniform("difference y", (2, 5), -3, 3)
    p, t = uniform("p", (2, 5), 0.05, 0.95), uniform("t", (2, 5), 0, 1)
    weights, positive = uniform("weights", (2, 5), 0.5, 2), uniform("positive", (5,), 0.5, 2)
    for reduction in reductions:
        file.case(f"mse_loss_{reduction}", lambda x, y: F.mse_loss(x, y, reduction=reduction), x, y)
        file.case(f"l1_loss_{reduction}", lambda x, y: F.l1_loss(x, y, reduction=reduction), x, y)
        for beta in (1, 0.5, 0):
            file.case(
                f"smooth_l1_loss_{beta}_{reduction}",
                lambda x, y: F.smooth_l1_loss(x, y, beta=beta, reduction=reduction),
                x,
                y,
            )
        file.case(
            f"binary_cross_entropy_{reduction}",
            lambda p, t: F.binary_cross_entropy(p, t, reduction=reduction),
            p,
            t,
        )
        file.case(
            f"binary_cross_entropy_weight_{reduction}",
            lambda p, t, w: F.binary_cross_entropy(p, t, w, reduction=reduction),
            p,
            t,
            weights,
            no_grad=(2,),
        )
        file.case(
            f"binary_cross_entropy_with_logits_{reduction}",
            lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction=reduction),
            x,
            t,
        )
        file.case(
            f"binary_cross_entropy_with_logits_weight_{reduction}",
            lambda x, t, w, p: F.binary_cross_entropy_with_logits(x, t, w, pos_weight=p, reduction=reduction),
            x,
            t,
            weights,
            positive,
            no_grad=(2, 3),
        )

    x = torch.log_softmax(uniform("kl_div_x", (4, 3)), 1)
    p = torch.softmax(uniform("kl_div_p", (4, 3)), 1)
    for reduction in reductions:
        file.case(f"kl_div_{reduction}", lambda x, p: F.kl_div(x, p, reduction=reduction), x, p)
        file.case(
            f"kl_div_log_{reduction}",
            lambda x, p: F.kl_div(x, p, reduction=reduction, log_target=True),
            x,
            torch.log(p),
        )
    zero = p.clone()
    zero[1, 2] = 0
    file.case("kl_div_zero", lambda x, p: F.kl_div(x, p, reduction="sum"), x, zero, no_grad=(1,))

    def distillation(student, teacher, labels):
        soft = F.kl_div(F.log_softmax(student / 3, 1), F.softmax(teacher / 3, 1), reduction="batchmean")
        return 0.7 * 9 * soft + 0.3 * F.cross_entropy(student, labels)

    student, teacher = uniform("student", (4, 3)), uniform("teacher", (4, 3))
    file.case("distillation", distillation, student, teacher, classes(0, 2, 1, 1), no_grad=(1,))
