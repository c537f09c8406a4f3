"""What goes wrong silently when it goes wrong: hooks, changes, identity, loops that break.

Each case runs eager and compiled from the same start; results and what was changed are equal.
"""

from __future__ import annotations

import pytest

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import nn

X = torch.linspace(-1, 1, 12).reshape(3, 4)
CASES = []


def case(f):
    """Files a case: called with a function that compiles (or not), it returns what to compare."""
    CASES.append(f)
    return f


def equal(a, b):
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and a.requires_grad == b.requires_grad
        assert torch.allclose(a, b, atol=1e-6)
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            equal(x, y)
    else:
        assert a == b


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_case(f, backend):
    found = []
    for wrap in (lambda g: g, lambda g: torch.compile(g, backend=backend)):
        torch.manual_seed(0)
        found.append(f(wrap))
    equal(*found)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return torch.tanh(self.linear(x))


def gradients(module, call, times=2):
    out = []
    for _ in range(times):
        x = X.clone().requires_grad_()
        module.zero_grad()
        y = call(x)
        y.sum().backward()
        out += [y.detach(), x.grad, *(p.grad.clone() for p in module.parameters())]
    return out


for name, register in {
    "forward_hook": lambda m: m.linear.register_forward_hook(lambda m, a, out: out * 2),
    "pre_hook": lambda m: m.linear.register_forward_pre_hook(lambda m, a: (a[0] + 1,)),
    "backward_hook": lambda m: m.linear.register_full_backward_hook(lambda m, i, o: (i[0] * 3,)),
    "root_backward_hook": lambda m: m.register_full_backward_hook(lambda m, i, o: (i[0] * 3,)),
    "backward_pre_hook": lambda m: m.linear.register_full_backward_pre_hook(
        lambda m, o: (o[0] * 5,)
    ),
}.items():

    def hooked(compile, register=register):
        module = Layer()
        handle = register(module)
        call = compile(module)
        found = gradients(module, call)
        handle.remove()
        return found + gradients(module, call)

    hooked.__name__ = name
    case(hooked)


@case
def hook_of_a_tensor(compile):
    class Hooked(Layer):
        def forward(self, x):
            h = self.linear(x)
            h.register_hook(lambda g: g * 7)
            return h.sin()

    module = Hooked()
    return gradients(module, compile(module))


@case
def backward_inside(compile):
    layer = Layer()

    def step(x):
        h = layer(x)
        h.retain_grad()
        y = h.sin().sum()
        y.backward(retain_graph=True)
        return h.grad * 1, y.detach()

    return compile(step)(X)


@case
def parametrizations_and_tied_weights(compile):
    weight = nn.utils.parametrizations.weight_norm
    module = nn.Sequential(weight(nn.Linear(4, 4)), nn.Linear(4, 4, bias=False), nn.Linear(4, 4))
    module[2].weight = module[1].weight
    return gradients(module, compile(module))


@case
def lists_and_dicts_of_parameters(compile):
    class Lists(nn.Module):
        def __init__(self):
            super().__init__()
            self.scales = nn.ParameterList(nn.Parameter(torch.ones(4) * k) for k in (1, 2))
            self.named = nn.ParameterDict({"k": nn.Parameter(torch.ones(4))})
            self.layers = nn.ModuleDict({"a": nn.Linear(4, 4)})

        def forward(self, x):
            for i, p in enumerate(self.scales):
                x = x * p + i
            for layer in self.layers.values():
                x = layer(x)
            return x * self.named["k"]

    module = Lists()
    return gradients(module, compile(module))


@case
def arguments_changed(compile):
    def f(x, state):
        state["n"] = state.get("n", 0) + 1
        state.setdefault("seen", []).append(x * 2)
        x.add_(1)
        return x.view(-1)[:2]

    g, x, state = compile(f), torch.ones(3, 4), {}
    return [g(x, state).clone(), g(x, state).clone(), x, state["n"], state["seen"]]


TOTAL = 0


@case
def globals_changed(compile):
    def f(x):
        global TOTAL
        TOTAL += 2
        return x * TOTAL

    global TOTAL
    TOTAL = 0
    g = compile(f)
    return [g(X), g(X), g(X), TOTAL]


@case
def weights_and_buffers_changed_in_forward(compile):
    class Average(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))
            self.weight = nn.Parameter(torch.ones(4))

        def forward(self, x):
            with torch.no_grad():
                self.mean.lerp_(x.mean(0), 0.1)
                self.weight.mul_(0.5)
            return (x - self.mean) * self.weight

    module = Average()
    return [*gradients(module, compile(module)), module.mean.clone()]


def leaf_changed(x, w):
    with torch.no_grad():
        w.mul_(0.5)
    return x * w


def inner_changed(x, w):
    y = x * w
    with torch.no_grad():
        y.mul_(3)
    return y.sin()


def views_changed_then_all(x, w):
    y = x * w
    with torch.no_grad():
        y[0].add_(3)
        y.t()[1].mul_(2)
    y.mul_(2)
    return y


def changed_with_and_without_history(x, w):
    y = x * 1
    y.mul_(w)
    with torch.no_grad():
        y.clamp_(-1, 1)
    return y


@case
def changes_without_gradients_keep_history(compile):
    found = []
    programs = (
        leaf_changed, inner_changed, views_changed_then_all, changed_with_and_without_history,
    )  # fmt: skip
    for f in programs:
        x, w = (t.clone().requires_grad_() for t in (X, X.flip(0) + 0.3))
        out = compile(f)(x, w)
        (out * out).sum().backward()
        found += [out.detach(), x.grad, w.grad, w.detach().clone()]
    return found


@case
def detached_results(compile):
    def f(x):
        return x.detach(), x.t().detach(), (x * 2).detach()[0]

    x = X.clone().requires_grad_()
    found = compile(f)(x)
    with torch.no_grad():
        x.add_(1)
    return found


@case
def results_that_share_memory(compile):
    def f(x):
        return x.t(), x[0], x

    x = torch.zeros(2, 3)
    turned, row, whole = compile(f)(x)
    turned.add_(1)
    row.mul_(5)
    return [x, whole is x]


@case
def detached_and_changed(compile):
    def f(x):
        y = x.detach()
        y.mul_(2)
        return x + 0

    return compile(f)(torch.ones(3))


@case
def random_numbers(compile):
    def f(x):
        return torch.rand(2), F.dropout(x, 0.5), torch.randint(5, (3,)), torch.randperm(4)

    g = compile(f)
    return [g(X), g(X)]


@case
def text_of_tensors(compile):
    def f(x):
        y = x * 2
        return f"{y}", PERCENT % y, FORMAT.format(y), str([y]), repr({"a": y}), f"{y.sum():.3f}"

    return compile(f)(X)


PERCENT, FORMAT = "%s", "{}"


@case
def identity_of_tensors(compile):
    def f(x, y):
        table = {x: 1}
        return x is y, x in [y, x], table[x], len({x, y})

    return compile(f)(X, X)


@case
def recursion_that_breaks(compile):
    def f(x, n=3):
        if n == 0:
            return x
        print(end="")
        return f(x + 1, n - 1) * 2

    return compile(f)(X)


@case
def exceptions_of_every_sort(compile):
    def f(x, k):
        try:
            y = x + 1
            if k == 1:
                raise ValueError("one")
            y = y[100]
        except ValueError as e:
            return y * 2, str(e)
        except IndexError as e:
            return y * 3, type(e).__name__
        finally:
            x.mul_(2)
        return y

    g, x = compile(f), X.clone()
    return [g(x, 1), g(x, 2), x]


@case
def loops_that_break(compile):
    def rounds(x):
        y = x.sin() + 1
        for i in range(3):
            y = y + i
            if y.sum() > 20:
                y = y * 0.5
        return y.cos()

    def nested(x):
        y, n = x * 2, 0
        with torch.no_grad():
            while n < 3:
                n += 1
                for j in range(2):
                    y = y + j
                print(end="")
        try:
            for k in (1, 2):
                y = y * k
                print(end="")
        finally:
            y = y - 1
        return y * x

    x = X.clone().requires_grad_()
    return [g(v) for g in map(compile, (rounds, nested)) for v in (x, x * 5, -x)]


@case
def generators_that_break(compile):
    def f(x):
        def parts():
            for i in range(3):
                y = x * i
                if y.sum() > 100:
                    return
                yield y

        return [t + 1 for t in parts()]

    return compile(f)(X)


def test_what_leads_to_a_loop_is_compiled_and_what_it_calls():
    def inner(x):
        return x.sin() * 2

    def f(x):
        y = x * 2 + 1
        for _ in range(3):
            y = inner(y)
            print(end="")
        return y

    compiled = torch.compile(f, backend="eager")
    assert torch.equal(compiled(X), f(X))
    parts = compiled._flambeau_config.parts
    assert [(p.name.rpartition(".")[2], p.nodes) for p in parts if p.nodes] == [
        ("f", 2),
        ("inner", 2),
    ]
    assert parts[0].reason == "a call of print"
