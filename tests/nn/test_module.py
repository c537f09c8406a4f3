"""Module: attributes, registration, traversal, conversion, copies, printing."""

import copy
import pickle

import pytest

import flambeau as fb
from flambeau import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 2)
        self.scale = nn.Parameter(fb.ones(2))
        self.register_buffer("count", fb.zeros(1))
        self.register_buffer("cache", fb.zeros(1), persistent=False)
        self.size = 3

    def forward(self, x):
        return self.first(x) * self.scale


def test_attributes_live_in_one_place_each():
    net = Net()
    assert list(net._parameters) == ["scale"]
    assert list(net._buffers) == ["count", "cache"]
    assert list(net._modules) == ["first"]
    assert net.size == 3
    net.scale = None
    assert net.scale is None and "scale" in net._parameters
    del net.first
    assert not hasattr(net, "first")
    net.count = nn.Parameter(fb.ones(1))
    assert "count" not in net._buffers and "count" in net._parameters


def test_buffer_assigned_as_such():
    module = nn.Module()
    module.kept = nn.Buffer(fb.ones(2))
    module.dropped = nn.Buffer(fb.ones(2), persistent=False)
    assert list(module.state_dict()) == ["kept"]
    module.kept = fb.zeros(2)
    assert module._buffers["kept"].tolist() == [0, 0]
    assert isinstance(nn.Buffer(fb.ones(1)), nn.Buffer)
    assert not isinstance(fb.ones(1), nn.Buffer)


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        (
            lambda m: setattr(m, "scale", 3),
            TypeError,
            r"cannot assign 'int' as parameter 'scale' \(torch.nn.Parameter or None expected\)",
        ),
        (
            lambda m: setattr(m, "first", 3),
            TypeError,
            r"cannot assign 'int' as child module 'first' \(torch.nn.Module or None expected\)",
        ),
        (lambda m: setattr(m, "count", 3), TypeError, "cannot assign 'int' as buffer 'count'"),
        (lambda m: m.register_parameter("a.b", None), KeyError, 'contain ".", got: a.b'),
        (lambda m: m.register_buffer("", None), KeyError, "be empty string"),
        (lambda m: m.register_parameter("size", None), KeyError, "attribute 'size' already exists"),
        (lambda m: m.add_module(3, None), TypeError, "module name should be a string. Got int"),
        (lambda m: m.add_module("x", 3), TypeError, "int is not a Module subclass"),
        (
            lambda m: m.register_parameter("x", m.scale * 2),
            TypeError,
            "object to parameter 'x'",
        ),
        (lambda m: m.missing, AttributeError, "'Net' object has no attribute 'missing'"),
        (lambda m: delattr(m, "missing"), AttributeError, "missing"),
        (lambda m: nn.Module()(1), NotImplementedError, 'missing the required "forward" function'),
        (lambda m: m.train(1), ValueError, "training mode is expected to be boolean"),
        (lambda m: nn.Module(1), TypeError, "takes 1 positional argument but 2 were given"),
        (lambda m: nn.Module(a=1), TypeError, "unexpected keyword argument 'a'"),
        (lambda m: m.to(fb.int32), TypeError, "only accepts floating point or complex dtypes"),
        (lambda m: m.get_submodule("first.x"), AttributeError, "Linear has no attribute `x`"),
        (lambda m: m.get_parameter("size"), AttributeError, "`size` is not an nn.Parameter"),
        (lambda m: m.get_buffer("scale"), AttributeError, "`scale` is not a buffer"),
    ],
)
def test_errors(action, error, message):
    with pytest.raises(error, match=message):
        action(Net())


def test_assignment_before_init_is_refused():
    class Early(nn.Module):
        def __init__(self, value):
            self.x = value

    for value, what in (
        (nn.Parameter(fb.ones(1)), "parameters"),
        (nn.Identity(), "module"),
        (nn.Buffer(fb.ones(1)), "buffer"),
    ):
        with pytest.raises(AttributeError, match=f"cannot assign {what} before Module.__init__"):
            Early(value)


def test_call_super_init():
    class Other:
        def __init__(self, value):
            self.value = value

    class Both(nn.Module, Other):
        call_super_init = True

    assert Both(7).value == 7


def test_traversal_gives_shared_members_once():
    shared = nn.Linear(2, 2)
    net = nn.Sequential(shared, shared, nn.ModuleDict({"a": nn.PReLU()}))
    names = ["0.weight", "0.bias", "2.a.weight"]
    assert [name for name, _ in net.named_parameters()] == names
    everything = [name for name, _ in net.named_parameters(remove_duplicate=False)]
    assert everything == ["0.weight", "0.bias", "1.weight", "1.bias", "2.a.weight"]
    assert [name for name, _ in net.named_modules()] == ["", "0", "2", "2.a"]
    assert [name for name, _ in net.named_modules(prefix="p")] == ["p", "p.0", "p.2", "p.2.a"]
    assert [name for name, _ in net.named_children()] == ["0", "2"]
    assert list(net.parameters(recurse=False)) == []
    assert [name for name, _ in Net().named_buffers(prefix="n")] == ["n.count", "n.cache"]
    seen = []
    net.apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "PReLU", "ModuleDict", "Sequential"]


def test_lookup_and_replacement_by_path():
    net = nn.Sequential(nn.ModuleDict({"a": nn.Identity()}))
    assert net.get_submodule("") is net
    net.set_submodule("0.a", nn.Tanh())
    assert isinstance(net.get_submodule("0.a"), nn.Tanh)
    with pytest.raises(AttributeError):
        net.set_submodule("0.b", nn.Tanh(), strict=True)
    with pytest.raises(ValueError, match="target is empty"):
        net.set_submodule("", nn.Tanh())


def test_train_eval_and_requires_grad():
    net = nn.Sequential(Net())
    assert net.eval() is net and not net[0].first.training
    assert net.train()[0].first.training
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())


def test_zero_grad():
    net = Net()
    net(fb.ones(1, 3)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert all(p.grad.abs().sum().item() == 0 for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())


def test_conversion_keeps_parameter_objects_and_integer_buffers():
    net = Net()
    net.register_buffer("steps", fb.zeros(1, dtype=fb.int64))
    weight = net.first.weight
    net(fb.ones(1, 3)).sum().backward()
    for convert, dtype in (
        (lambda: net.double(), fb.float64),
        (lambda: net.half(), fb.float16),
        (lambda: net.bfloat16(), fb.bfloat16),
        (lambda: net.float(), fb.float32),
        (lambda: net.to(fb.float64), fb.float64),
        (lambda: net.to(fb.ones(1)), fb.float32),
        (lambda: net.to("cpu", fb.float64), fb.float64),
    ):
        assert convert() is net
        assert net.first.weight is weight
        assert weight.dtype == weight.grad.dtype == net.count.dtype == dtype
        assert net.steps.dtype == fb.int64


def test_copies_are_independent():
    net = Net()
    net.register_forward_hook(lambda module, args, output: output + 1)
    x = fb.ones(2, 3)
    clone = copy.deepcopy(net)
    assert fb.equal(clone(x), net(x))
    with fb.no_grad():
        clone.scale.zero_()
    assert net.scale.sum().item() == 2
    assert clone(x).sum().item() == 4  # the hook was copied too


def test_pickle():
    net = Net()
    again = pickle.loads(pickle.dumps(net))
    assert fb.equal(again(fb.ones(1, 3)), net(fb.ones(1, 3)))
    assert isinstance(again.scale, nn.Parameter) and again.scale.requires_grad
    assert "cache" in again._non_persistent_buffers_set


def test_printed_form():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(2, 3), nn.ReLU())

        def extra_repr(self):
            return "a=1\nb=2"

    assert repr(Outer()) == (
        "Outer(\n"
        "  a=1\n"
        "  b=2\n"
        "  (inner): Sequential(\n"
        "    (0): Linear(in_features=2, out_features=3, bias=True)\n"
        "    (1): ReLU()\n"
        "  )\n"
        ")"
    )
    assert repr(nn.Module()) == "Module()"


def test_dir_lists_members_but_no_numbers():
    net = nn.Sequential(Net())
    assert "0" not in dir(net) and "forward" in dir(net)
    assert {"scale", "first", "count", "size"} <= set(dir(Net()))


def test_parameter():
    data = fb.arange(3.0)
    p = nn.Parameter(data)
    assert p.requires_grad and p.is_leaf and isinstance(p, fb.Tensor)
    data[0] = 5
    assert p[0].item() == 5  # shared, not copied
    assert type(p + 1) is fb.Tensor
    assert repr(nn.Parameter(fb.ones(1), requires_grad=False)) == (
        "Parameter containing:\ntensor([1.])"
    )
    q = copy.deepcopy(p)
    assert type(q) is nn.Parameter and q.tolist() == p.tolist() and q is not p


def test_factory_kwargs():
    assert nn.factory_kwargs(None) == {}
    given = {"device": "cpu", "factory_kwargs": {"dtype": fb.float64}}
    assert nn.factory_kwargs(given) == {"device": "cpu", "dtype": fb.float64}
    with pytest.raises(TypeError):
        nn.factory_kwargs({"other": 1})
    with pytest.raises(TypeError):
        nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"device": "cpu"}})
