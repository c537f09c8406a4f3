"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from collections import OrderedDict

import pytest

import flambeau as fb
from flambeau import nn


def test_sequential_runs_in_order_and_slices():
    net = nn.Sequential(OrderedDict(a=nn.Linear(2, 3), b=nn.ReLU(), c=nn.Linear(3, 1)))
    x = fb.ones(4, 2)
    assert fb.equal(net(x), net.c(net.b(net.a(x))))
    assert list(net[1:]._modules) == ["b", "c"]
    assert net[-1] is net.c
    net[1] = nn.Tanh()
    assert isinstance(net.b, nn.Tanh)


def test_sequential_as_a_list():
    a, b, c = nn.ReLU(), nn.Tanh(), nn.Sigmoid()
    net = nn.Sequential(a, b)
    net.append(c)
    net.insert(0, c)
    assert list(net) == [c, a, b, c]
    assert net.pop(0) is c and list(net._modules) == ["0", "1", "2"]
    del net[0]
    assert list(net) == [b, c] and list(net._modules) == ["0", "1"]
    assert list(net + nn.Sequential(a)) == [b, c, a]
    assert len(net * 3) == 6 and len(2 * net) == 4
    net *= 2
    assert list(net) == [b, c, b, c]
    net.extend([a])
    assert net[4] is a
    with pytest.raises(IndexError, match="index 9 is out of range"):
        net[9]
    with pytest.raises(ValueError, match="Non-positive multiplication factor"):
        net * 0
    with pytest.raises(ValueError, match="add operator supports only"):
        net + [a]


def test_module_list():
    layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    assert len(list(layers.parameters())) == 6
    layers += [nn.ReLU()]
    layers.insert(0, nn.Tanh())
    assert isinstance(layers[0], nn.Tanh) and isinstance(layers[-1], nn.ReLU)
    assert type(layers[1:3]) is nn.ModuleList and len(layers[1:3]) == 2
    assert repr(layers) == (
        "ModuleList(\n"
        "  (0): Tanh()\n"
        "  (1-3): 3 x Linear(in_features=2, out_features=2, bias=True)\n"
        "  (4): ReLU()\n"
        ")"
    )
    assert repr(nn.ModuleList()) == "ModuleList()"
    with pytest.raises(TypeError, match="should be called with an iterable"):
        layers.extend(3)
    with pytest.raises(NotImplementedError):
        layers(1)


def test_module_dict():
    choices = nn.ModuleDict({"a": nn.ReLU()})
    choices["b"] = nn.Tanh()
    choices.update([("c", nn.Sigmoid())])
    assert list(choices) == ["a", "b", "c"] and "b" in choices and len(choices) == 3
    assert isinstance(choices.pop("a"), nn.ReLU)
    assert [name for name, _ in choices.items()] == list(choices.keys()) == ["b", "c"]
    choices.clear()
    assert len(choices) == 0
    with pytest.raises(ValueError, match="has length 1; 2 is required"):
        choices.update([("x",)])


def test_parameter_list():
    params = nn.ParameterList([fb.ones(2, 3), 5])
    assert isinstance(params[0], nn.Parameter) and params[1] == 5
    params.append(fb.zeros(1))
    params += [fb.zeros(2)]
    assert len(params) == 4 and len(list(params.parameters())) == 3
    assert len(params[1:]) == 3
    assert repr(nn.ParameterList([fb.ones(2, 3), 5])) == (
        "ParameterList(\n"
        "    (0): Parameter containing: [torch.float32 of size 2x3]\n"
        "    (1): Object of type: int\n"
        ")"
    )
    with pytest.raises(RuntimeError, match="ParameterList should not be called."):
        params()


def test_parameter_dict():
    params = nn.ParameterDict({"b": fb.ones(2), "a": 3})
    assert list(params) == ["a", "b"]  # a plain mapping is sorted
    params["c"] = fb.zeros(1)
    assert isinstance(params["c"], nn.Parameter)
    assert params.get("zz", 7) == 7 and params.setdefault("d", 1) == 1
    assert params.popitem() == ("d", 1)
    assert list(reversed(params)) == ["c", "b", "a"]
    assert list(params | nn.ParameterDict({"z": 1})) == ["a", "b", "c", "z"]
    assert params.pop("a") == 3
    clone = params.copy()
    assert clone["b"] is params["b"]
    assert list(params.state_dict()) == ["b", "c"]
    assert list(params.fromkeys(["q"], 1).items()) == [("q", 1)]
    with pytest.raises(KeyError):
        del params["none"]
