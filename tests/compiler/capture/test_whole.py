"""`fullgraph=True`: what is captured without a break, and what is refused with the reason. Plain
Python is the reference."""

from __future__ import annotations

import collections

import pytest

import flambeau as torch
from flambeau import nn

Pair = collections.namedtuple("Pair", "a b")


@pytest.fixture(autouse=True)
def _fresh():
    torch.compiler.reset()


class Scaled(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k, self.act = k, nn.ReLU()

    def forward(self, x):
        return self.act(x) * self.k


def module(x):
    return nn.ReLU()(x) + Scaled(3)(x)


def modules(x):
    return nn.Sequential(nn.Flatten(), nn.Softmax(-1))(x) + nn.ModuleList([nn.Tanh()])[0](x)


def losses(x):
    return nn.CrossEntropyLoss()(x, torch.tensor([0, 1])) + nn.MSELoss(reduction="sum")(x, x * 2)


def dropped(x):
    m = nn.Dropout(0.5)
    m.eval()
    return m(x)


def made_in_it(x):
    Own = collections.namedtuple("Own", ["a", "b"], defaults=[2])
    made = Own(x + 1)
    return made.a * made.b + made._replace(b=x)[1]


def replaced(x):
    return Pair(x, b=x + 1)._replace(a=x * 2)


def keys(x):
    y = x + 1
    d = {x: y, y: x}
    return d[y] - d[x], y in d, len(d), [k is x for k in d]


def indexed(x):
    i = torch.tensor(1)
    return [x, x * 2][i] + [1, 2, 3][torch.tensor(-1)], range(5)[i], (x, 1)[i]


def written(x):
    t = torch.tensor([1.0, 2.0])
    t[0] = 7
    t += 1
    return t + x


CASES = (module, modules, losses, dropped, made_in_it, replaced, keys, indexed, written)


def flat(value):
    if isinstance(value, torch.Tensor):
        return value.tolist()
    return [flat(v) for v in value] if isinstance(value, (list, tuple)) else value


def close(a, b):
    if isinstance(b, torch.Tensor):
        assert torch.allclose(a, b, rtol=1e-6)
    elif isinstance(b, (list, tuple)):
        assert len(a) == len(b) and type(a) is type(b)
        for x, y in zip(a, b, strict=True):
            close(x, y)
    else:
        assert a == b


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("body", CASES)
def test_one_graph(body, backend):
    compiled = torch.compile(body, backend=backend, fullgraph=True)
    for x in (torch.tensor([[1.0, -2.0], [3.0, 0.5]]), torch.tensor([[0.0, 2.0], [-3.0, 1.0]])):
        close(compiled(x), body(x))


def test_values_that_the_program_wrote_down():
    def body(x):
        v, u = torch.tensor([[1, 2], [3, 4]]), torch.tensor(2)
        return v.tolist(), u.item() + int(u) + float(u), bool(u), v[0, 1] * x if u else x

    x = torch.ones(2)
    assert flat(torch.compile(body, backend="eager", fullgraph=True)(x)) == flat(body(x))


def test_values_that_changed_are_not_known():
    @torch.compile(backend="eager")
    def body(x):
        t = torch.tensor(1)
        t += x
        return t.item()

    assert [body(torch.tensor(k)) for k in (2, 3)] == [3, 4]


def test_a_tensor_of_a_tensor():
    body = torch.compile(
        lambda x: (torch.tensor(x), torch.tensor(x, dtype=torch.float64)), fullgraph=True
    )
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="To copy a tensor"):
        a, b = body(x)
    assert not a.requires_grad and b.dtype is torch.float64
    a.fill_(5)
    assert x.tolist() == [1, 1] and b.tolist() == [1, 1]


@pytest.mark.parametrize(
    "body, reason",
    [
        (lambda x: x.numpy().argsort(), "NumPy: the attribute argsort of an array"),
        (lambda x: [x, x * 2][x.sum().long()], "the value of a traced tensor"),
        (lambda x: nn.Linear(2, 2)(x), "a parameter is made"),
    ],
)
def test_what_is_refused(body, reason):
    with pytest.raises(torch._dynamo.exc.Unsupported, match=reason):
        torch.compile(body, backend="eager", fullgraph=True)(torch.zeros(2, 2))


def test_a_module_that_is_returned_is_new_in_each_call():
    body = torch.compile(lambda x: (Scaled(2), x + 1), backend="eager", fullgraph=True)
    (a, _), (b, _) = body(torch.ones(1)), body(torch.ones(1))
    assert a is not b and a(torch.ones(1)).item() == 2
