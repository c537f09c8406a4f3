"""`ZeroRedundancyOptimizer`: as the optimiser in one process, with a share of its state."""

import copy

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.optim import ZeroRedundancyOptimizer
from tests.distributed import worlds

dist = torch.distributed


def model():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 9), nn.Tanh(), nn.Linear(9, 7), nn.Tanh(), nn.Linear(7, 1))
    return net.to(torch.float64)


def step(net, optimizer, scheduler, number):
    draw = np.random.default_rng(number)
    x = torch.from_numpy(draw.normal(size=(6, 5)))
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()
    if scheduler:
        scheduler.step()


CASES = {
    "sgd": (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9}, False),
    "adam": (torch.optim.AdamW, {"lr": 0.01, "amsgrad": True}, False),
    "views": (torch.optim.Adam, {"lr": 0.01}, True),
}


def compare(rank, size):
    for name, (kind, options, views) in CASES.items():
        nets = [model(), model()]
        made = []
        for net, wrap in zip(nets, (False, True), strict=True):
            first, *rest = net.parameters()
            groups = [{"params": [first], "lr": 0.02}, {"params": rest[:3]}]
            if wrap:
                given = {"optimizer_class": kind, "parameters_as_bucket_view": views, **options}
                optimizer = ZeroRedundancyOptimizer(groups, **given)
            else:
                optimizer = kind(groups, **options)
            schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
            for i in range(3):
                step(net, optimizer, schedule, i)
            optimizer.add_param_group({"params": rest[3:]})
            step(net, optimizer, None, 3)
            made.append(optimizer)
        plain, zero = made
        for p, q in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
            assert torch.equal(p, q), name
        held = sum(p.numel() for p in zero.state)
        assert 0 < held < sum(p.numel() for p in nets[0].parameters())
        with pytest.raises(RuntimeError, match="has not been consolidated on this rank"):
            zero.state_dict()
        zero.consolidate_state_dict(to=1)
        if rank == 1:
            same(zero.state_dict(), plain.state_dict())
        else:
            with pytest.raises(RuntimeError, match="has not been consolidated on this rank"):
                zero.state_dict()
        goes_on(nets, plain, kind, options)


def same(a, b):
    assert a["param_groups"] == b["param_groups"] and a["state"].keys() == b["state"].keys()
    for i, state in b["state"].items():
        for name, value in state.items():
            found = a["state"][i][name]
            assert torch.equal(found, value) if torch.is_tensor(value) else found == value


def goes_on(nets, plain, kind, options):
    """With the state of an ordinary optimiser, loaded."""
    sizes = [len(g["params"]) for g in plain.param_groups]
    params = list(nets[1].parameters())
    groups = []
    for n in sizes:
        groups.append({"params": params[:n]})
        params = params[n:]
    zero = ZeroRedundancyOptimizer(groups, kind, **options)
    with pytest.raises(ValueError, match="load_state_dict: expected groups of"):
        zero.load_state_dict({"state": {}, "param_groups": []})
    zero.load_state_dict(copy.deepcopy(plain.state_dict()))
    for i in range(4, 6):
        for net, optimizer in zip(nets, (plain, zero), strict=True):
            step(net, optimizer, None, i)
    for p, q in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        assert torch.equal(p, q)


def fewer_parameters(rank, size):
    """Some processes have no share."""
    net = nn.Linear(2, 1, bias=False)
    nn.init.ones_(net.weight)
    zero = ZeroRedundancyOptimizer(net.parameters(), torch.optim.SGD, lr=1.0)

    def closure():
        zero.zero_grad()
        loss = net(torch.ones(1, 2)).sum()
        loss.backward()
        return loss

    assert zero.step(closure).item() == 2.0 and net.weight.tolist() == [[0.0, 0.0]]
    assert len(zero.optim.param_groups[0]["params"]) == (rank == 0)
    with pytest.raises(NotImplementedError, match="it cannot take part in a Join"):
        dist.algorithms.join.Join([zero])
    with pytest.raises(ValueError, match="overlap_with_ddp=False"):
        ZeroRedundancyOptimizer(net.parameters(), torch.optim.SGD, overlap_with_ddp=True, lr=1.0)
    with pytest.raises(TypeError, match="optimizer_class to be a class of optimisers, got 7"):
        ZeroRedundancyOptimizer(net.parameters(), 7, lr=1.0)
    with pytest.raises(ValueError, match="consolidate_state_dict: expected `to` .* 0 to 2, got 3"):
        zero.consolidate_state_dict(to=3)
    with pytest.raises(NotImplementedError, match="_apply_optimizer_in_backward: steps inside of"):
        dist.optim._apply_optimizer_in_backward(torch.optim.SGD, net.parameters(), {"lr": 1.0})


def both(rank, size):
    compare(rank, size)
    fewer_parameters(rank, size)


def test_shares():
    worlds.run("test_zero", "both", 3)
