"""Parameters through the steps of optimizers: input [n] and gradients [steps, n] give a path [steps, n]."""

import torch

from write import uniform

optimizers = {
    "sgd": (torch.optim.SGD, {"lr": 0.1}),
    "sgd_decay": (torch.optim.SGD, {"lr": 0.1, "weight_decay": 0.3}),
    "sgd_momentum": (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9}),
    "sgd_dampening": (torch.optim.SGD, {"lr": 0.05, "momentum": 0.8, "dampening": 0.4, "weight_decay": 0.1}),
    "sgd_nesterov": (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    "sgd_maximize": (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9, "maximize": True}),
    "adam": (torch.optim.Adam, {"lr": 0.1}),
    "adam_options": (torch.optim.Adam, {"lr": 0.02, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.2}),
    "adam_amsgrad": (torch.optim.Adam, {"lr": 0.1, "betas": (0.9, 0.5), "amsgrad": True}),
    "adam_maximize": (torch.optim.Adam, {"lr": 0.1, "maximize": True}),
    "adamw": (torch.optim.AdamW, {"lr": 0.1}),
    "adamw_options": (torch.optim.AdamW, {"lr": 0.02, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.2}),
    "adamw_amsgrad": (torch.optim.AdamW, {"lr": 0.1, "betas": (0.9, 0.5), "amsgrad": True, "weight_decay": 0.1}),
}

schedulers = {
    "step": (torch.optim.lr_scheduler.StepLR, {"step_size": 3, "gamma": 0.5}),
    "multi_step": (torch.optim.lr_scheduler.MultiStepLR, {"milestones": [2, 5, 6], "gamma": 0.3}),
    "exponential": (torch.optim.lr_scheduler.ExponentialLR, {"gamma": 0.9}),
    "cosine": (torch.optim.lr_scheduler.CosineAnnealingLR, {"T_max": 7, "eta_min": 0.01}),
    "restarts": (torch.optim.lr_scheduler.CosineAnnealingWarmRestarts, {"T_0": 2, "T_mult": 2, "eta_min": 0.01}),
    "restarts_equal": (torch.optim.lr_scheduler.CosineAnnealingWarmRestarts, {"T_0": 3}),
    "one_cycle": (torch.optim.lr_scheduler.OneCycleLR, {"max_lr": 0.3, "total_steps": 12, "cycle_momentum": False}),
    "one_cycle_options": (
        torch.optim.lr_scheduler.OneCycleLR,
        {
            "max_lr": 0.3,
            "total_steps": 12,
            "pct_start": 0.6,
            "div_factor": 10,
            "final_div_factor": 100,
            "cycle_momentum": False,
        },
    ),
}


def steps(make, options, start, gradients):
    p = torch.nn.Parameter(start.clone())
    optimizer = make([p], **options)
    path = []
    for g in gradients:
        p.grad = g.clone()
        optimizer.step()
        path.append(p.detach().clone())
    return torch.stack(path)


def rates(make, options):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    scheduler = make(optimizer, **options)
    seen = []
    for _ in range(12):
        seen.append(scheduler.get_last_lr()[0])
        optimizer.step()
        if len(seen) < 12:
            scheduler.step()
    return torch.tensor(seen, dtype=torch.float64)


def write(file):
    for name, (make, options) in optimizers.items():
        start, gradients = uniform(name, (5,)), uniform(name + "/g", (8, 5))
        gradients[4] = 0
        file.case(name, lambda p, g: steps(make, options, p.detach(), g), start, gradients, no_grad=(0, 1))
    for name, (make, options) in schedulers.items():
        file.case(name, lambda: rates(make, options))
