"""States of optimisers, schedulers and what else a training run keeps, after a few steps."""

import random

import numpy as np

from .case import Case

OPTIMIZERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True}, "Adam": {"amsgrad": True},
    "AdamW": {"lr": 0.01}, "NAdam": {}, "RAdam": {}, "Adamax": {}, "Adagrad": {}, "Adadelta": {},
    "RMSprop": {"centered": True, "momentum": 0.5}, "ASGD": {}, "Rprop": {},
    "LBFGS": {"max_iter": 2}, "SparseAdam": {}, "Muon": {}, "Adafactor": {},
}  # fmt: skip
SCHEDULERS = {
    "LambdaLR": lambda k, o: k.LambdaLR(o, lambda epoch: 0.9**epoch),
    "MultiplicativeLR": lambda k, o: k.MultiplicativeLR(o, lambda epoch: 0.9),
    "StepLR": lambda k, o: k.StepLR(o, 2),
    "MultiStepLR": lambda k, o: k.MultiStepLR(o, [1, 3, 3]),
    "ConstantLR": lambda k, o: k.ConstantLR(o),
    "LinearLR": lambda k, o: k.LinearLR(o),
    "ExponentialLR": lambda k, o: k.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda k, o: k.PolynomialLR(o, 4),
    "CosineAnnealingLR": lambda k, o: k.CosineAnnealingLR(o, 5),
    "CosineAnnealingWarmRestarts": lambda k, o: k.CosineAnnealingWarmRestarts(o, 2),
    "CyclicLR": lambda k, o: k.CyclicLR(o, 0.01, 0.1, cycle_momentum=False),
    "OneCycleLR": lambda k, o: k.OneCycleLR(o, 0.2, 10),
    "ChainedScheduler": lambda k, o: k.ChainedScheduler([k.ConstantLR(o), k.ExponentialLR(o, 0.9)]),
    "SequentialLR": lambda k, o: k.SequentialLR(o, [k.ConstantLR(o), k.StepLR(o, 2)], [2]),
    "ReduceLROnPlateau": lambda k, o: k.ReduceLROnPlateau(o, patience=0),
}


def model_of(torch):
    """A small model whose values are the same in either library."""
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 4, bias=False), torch.nn.Linear(4, 2, bias=False)
    )
    with torch.no_grad():
        for p in model.parameters():
            p.copy_((torch.arange(float(p.numel())).reshape(p.shape) - 5) / 7)
    return model


def trained(torch, name, options, steps=3):
    model = model_of(torch)
    optimizer = getattr(torch.optim, name)(model.parameters(), **options)
    x = torch.arange(12.0).reshape(4, 3) / 10

    def closure():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    for _ in range(0 if name == "SparseAdam" else steps):
        optimizer.step(closure)
    return model, optimizer


def _optimizer(name):
    def make(torch):
        model, optimizer = trained(torch, name, OPTIMIZERS[name])
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}

    return make


def _scheduler(name):
    def make(torch):
        optimizer = trained(torch, "SGD", {"lr": 0.1})[1]
        made = SCHEDULERS[name](torch.optim.lr_scheduler, optimizer)
        for _ in range(3):
            optimizer.step()
            made.step(1.0) if name == "ReduceLROnPlateau" else made.step()
        return {"scheduler": made.state_dict(), "groups": optimizer.state_dict()["param_groups"]}

    return make


def groups(torch):
    model = model_of(torch)
    first, second = model.parameters()
    optimizer = torch.optim.AdamW(
        [{"params": [first], "lr": 0.5, "name": "head"}, {"params": [second], "weight_decay": 0.0}]
    )
    return optimizer.state_dict()


def scaler(torch):
    return torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3).state_dict()


def random_state(torch):
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(4)
    torch.rand(5, generator=generator)
    numbers = random.Random(5)
    return {
        "torch": torch.get_rng_state(), "generator": generator.get_state(),
        "python": numbers.getstate(), "numpy": np.random.RandomState(6).get_state(),
    }  # fmt: skip


def averaged(torch):
    model = torch.optim.swa_utils.AveragedModel(model_of(torch))
    model.update_parameters(model_of(torch))
    return model.state_dict()


def averaging_schedule(torch):
    optimizer = trained(torch, "SGD", {"lr": 0.1})[1]
    made = torch.optim.swa_utils.SWALR(optimizer, swa_lr=0.05)
    optimizer.step()
    made.step()
    state = made.state_dict()
    return {k: v for k, v in state.items() if not callable(v)}


def layers(torch):
    nn = torch.nn
    model = nn.ModuleDict({
        "conv": nn.Conv2d(2, 3, 3), "norm": nn.BatchNorm2d(3), "lstm": nn.LSTM(2, 3, 2),
        "embed": nn.Embedding(4, 2, padding_idx=0), "attend": nn.MultiheadAttention(4, 2),
        "group": nn.GroupNorm(1, 2), "list": nn.ParameterList([torch.ones(1), torch.zeros(2)]),
        "dict": nn.ParameterDict({"b": torch.ones(1), "a": torch.ones(2)}),
        "layer": nn.TransformerEncoderLayer(4, 2, 8), "prelu": nn.PReLU(),
    })  # fmt: skip
    model.register_buffer("kept", torch.arange(2))
    model.register_buffer("left", torch.arange(2), persistent=False)
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p.fill_(i / 8)
    return model.state_dict()


def weight_norm(torch):
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
    with torch.no_grad():
        for i, p in enumerate(layer.parameters()):
            p.fill_(i + 1)
    return layer.state_dict()


CASES = {f"optimizer_{n}": Case(_optimizer(n), close=True) for n in OPTIMIZERS}
CASES |= {f"scheduler_{n}": Case(_scheduler(n), close=True) for n in SCHEDULERS}
CASES |= {
    f.__name__: Case(f, close=True)
    for f in (groups, scaler, averaged, averaging_schedule, layers, weight_norm)
}
CASES |= {"random_state": Case(random_state, safe=False)}
