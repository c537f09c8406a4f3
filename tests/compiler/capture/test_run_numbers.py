"""Numbers that only the run tells, and those that follow from what the program wrote down: with
`fullgraph=True` and `capture_scalar_outputs`, values, types, errors and gradients are plain
Python's."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

GATE = torch.tensor([0.5, 2.0])


@pytest.fixture(autouse=True)
def _fresh():
    torch.compiler.reset()


def flat(v):
    """A result as plain data, with types."""
    if isinstance(v, torch.Tensor):
        return str(v.dtype), v.detach().tolist()
    if isinstance(v, (list, tuple)):
        return type(v), [flat(x) for x in v]
    return type(v), v


def outcome(f, *args):
    try:
        return flat(f(*args))
    except Exception as e:
        return type(e), str(e)


def arithmetic(x):
    n, k = x.sum().item(), int(x.sum())
    return x * n, n * 2.5 - 1, k + 3, -k, k // 4, k % 4, k / 4, n**2, abs(k - 40), k**3


def mixed(x):
    n, k, b = float(x.mean()), x.long().sum().item(), bool(x[0, 0])
    return n + k, k * b, b + b, n < k, b & (k > 2), ~k if k is None else k, n - True, 2 - k, 1.5 * b


def with_tensors(x):
    n, k = x.sum().item(), x.long().max().item()
    i, half = torch.arange(3), x.half()
    return (
        x + n, n - x, x / n, x > n, i + k, i + n, i * k, half * n, k - i, x.add(n), torch.mul(n, x),
        x[0, 0] + n, i[1] * n, torch.where(x > k, x, n), x.clamp(max=n), x.masked_fill(x > 1, n),
        x[k % 2] * 1, F.relu(x) * n, x == k, -n * x, x**n,
    )  # fmt: skip


def in_place(x):
    y, n = x.clone(), x.sum().item()
    y += n
    y[0] = n
    y[1, 2] *= n
    y.add_(n).mul_(2)
    return y


def of_tensors(x):
    n, k = x.sum().item(), int(x.max())
    return torch.tensor(n), torch.tensor(k, dtype=torch.float16), torch.as_tensor(n > 3), [n, k]


def lists(x):
    a, b, c = x[0].tolist()
    return a + b + c, sum(x.sum(0).tolist()), x.tolist(), max(a, c), min(b, 0.5), max(1.0, b, a)


def loops(x):
    total = 0.0
    for row in x:
        total += row.norm().item() + len(row)
    return x * total, total


def conversions(x):
    n = (x * 1.7).sum().item()
    return int(n), int(-n), float(int(n)), bool(n), isinstance(n, float), type(int(n)) is int


def wrote_down(x):
    """Known when it is captured: decisions may depend on it."""
    v = torch.arange(4).reshape(2, 2) + 1
    out = [x * v[1, 0].item(), v.tolist(), [x * y.item() for y in torch.linspace(0, 1, 3)]]
    for i in torch.arange(3):
        out.append([1, 2, 3][i] * x[:, i : i + 1])
    if torch.eye(2).sum() == 2 and not (v > 9).any():
        out.append(x[: int(torch.tensor(x.shape).prod() / 3)])
    return out, v.max().item(), float(v.double().mean()), f"{torch.tensor(2.0).sqrt().item():.2f}"


def global_numbers(x):
    return x * GATE.sum().item() + GATE.tolist()[0]


BODIES = [
    arithmetic, mixed, with_tensors, in_place, of_tensors, lists, loops, conversions, wrote_down,
    global_numbers,
]  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("body", BODIES)
def test_one_graph(body, backend):
    graphs = []
    torch._dynamo.utils.counters.clear()
    ours = torch._dynamo.lookup_backend(backend)

    def counted(gm, inputs):
        graphs.append(gm)
        return ours(gm, inputs)

    compiled = torch.compile(body, backend=counted, fullgraph=True)
    for x in (torch.arange(6.0).reshape(2, 3), torch.full((2, 3), 1.25), torch.eye(2, 3) * 3):
        assert outcome(compiled, x) == outcome(body, x)
    assert len(graphs) == 1 and not torch._dynamo.utils.counters["graph_break"]


def test_without_fullgraph_by_the_switch():
    counted = torch._dynamo.utils.counters
    counted.clear()
    compiled = torch.compile(arithmetic, backend="eager")
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        for x in (torch.ones(2, 2), torch.zeros(2, 2)):
            assert outcome(compiled, x) == outcome(arithmetic, x)
    assert not counted["graph_break"]


SIZES = [
    lambda x: torch.zeros(int(x.sum())) + 1,
    lambda x: x[:, : x[0, 1].long().item()] * 2,
    lambda x: torch.arange(x.max().item()) * x.mean().item(),
    lambda x: x.split(x.long()[:, 1].tolist(), dim=1),
    lambda x: (x * 2).repeat(int(x[0, 1]), 1),
    lambda x: torch.full((2,), x.sum().item()),
    lambda x: F.dropout(x, p=min(x.mean().item(), 0.0)),
]


@pytest.mark.parametrize("body", SIZES)
def test_a_size_begins_a_second_graph(body):
    xs = [torch.tensor([[0.0, 1, 2], [1, 2, 3]]), torch.tensor([[1.0, 2, 0], [3, 1, 2]])]
    compiled = torch.compile(body, backend="eager", fullgraph=True)
    for x in xs:
        assert outcome(compiled, x) == outcome(body, x)


def branch(x):
    if x.sum().item() > 3:
        return x + 1
    return x - 1


def position(x):
    return [x, -x][int(x[0, 0])]


def text(x):
    return f"{x.sum().item():.1f}"


@pytest.mark.parametrize("body", [branch, position, text])
def test_what_decides_is_refused_by_fullgraph_alone(body):
    x = torch.ones(2, 2)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="that only the run tells decides"):
        torch.compile(body, backend="eager", fullgraph=True)(x)
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        compiled = torch.compile(body, backend="eager")
        for x in (torch.ones(2, 2), torch.zeros(2, 2)):
            assert outcome(compiled, x) == outcome(body, x)


def test_several_elements_are_no_number():
    f = torch.compile(lambda x: x.item(), backend="eager", fullgraph=True)
    with pytest.raises(Exception, match="3 elements cannot be converted to Scalar"):
        f(torch.ones(3))
    assert f(torch.ones(1, 1)) == 1.0


class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.last = nn.Linear(3, 3), 0.0
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, x):
        self.steps += 1
        y = self.lin(x) / self.steps.item()
        self.last = y.detach().abs().max().item()
        return y * self.last


def test_a_module_that_keeps_numbers():
    torch.manual_seed(0)
    plain, other = Running(), Running()
    other.load_state_dict(plain.state_dict())
    compiled = torch.compile(other, fullgraph=True)
    for k in range(4):
        x = torch.arange(6.0).reshape(2, 3) + k
        a, b = plain(x), compiled(x)
        assert torch.allclose(a, b) and type(other.last) is float
        assert abs(plain.last - other.last) < 1e-5 and other.steps.item() == k + 1
        a.sum().backward()
        b.sum().backward()
        assert torch.allclose(plain.lin.weight.grad, other.lin.weight.grad)


def test_a_number_is_that_of_its_time():
    def body(x):
        y = x.double().clone()
        n, m = y.sum().item(), y[0].item()
        y.fill_(7)
        return n, m, y.sum().item(), torch.zeros(2).fill_(n).tolist()

    x = torch.tensor([1.0, 2.0])
    assert torch.compile(body, backend="eager", fullgraph=True)(x) == body(x)


def test_what_was_written_is_not_known():
    def body(x):
        t, u, w = torch.zeros(3), torch.arange(3), torch.ones(2)
        t[1:].add_(x)
        u[0].fill_(5)
        w.view(2)[0] = 3
        return t.sum().item() * 1, u.tolist(), [w[0].item(), w.max().item()]

    compiled = torch.compile(body, backend="eager", fullgraph=True)
    for x in (torch.tensor(1.0), torch.tensor(4.0)):
        assert compiled(x) == body(x)


def test_numbers_that_varying_sizes_give_are_not_constants():
    def body(x):
        return x * torch.ones(x.shape[0]).sum().item() + torch.arange(x.shape[0]).max().item()

    compiled = torch.compile(body, backend="eager", dynamic=True, fullgraph=True)
    for n in (3, 4, 6):
        assert torch.equal(compiled(torch.ones(n)), body(torch.ones(n)))


def test_autocast_leaves_numbers_alone():
    def body(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
            return (y.float().sum().item() * 1.0001 + 1) * x, torch.arange(3.0).norm().item()

    x = torch.eye(3) * 1.1
    assert outcome(torch.compile(body, backend="eager", fullgraph=True), x) == outcome(body, x)


PLACE = torch.tensor(1)


def test_a_position_that_a_tensor_from_outside_tells():
    def body(x, i):
        return [x, x + 1, x + 2][i] * (x, -x)[PLACE], (1, 2, 3)[i]

    compiled = torch.compile(body, backend="eager", fullgraph=True)
    x = torch.tensor([2.0])
    for i in (1, 2, 1, -1):
        assert outcome(compiled, x, torch.tensor(i)) == outcome(body, x, torch.tensor(i))
    PLACE.fill_(0)
    assert outcome(compiled, x, torch.tensor(2)) == outcome(body, x, torch.tensor(2))
    PLACE.fill_(1)


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("on", torch.tensor(True))
        self.register_buffer("count", torch.tensor(2))

    def forward(self, x):
        x = x * 2 if self.on else x - 1
        for _ in range(int(self.count)):
            x = x + self.count.item()
        return x if self.count.item() > 2 else -x


def test_decisions_by_buffers_are_guarded():
    m = Gated()
    compiled = torch.compile(m, backend="eager", fullgraph=True)
    for on in (True, False):
        for count in (2, 3):
            m.on.fill_(on)
            m.count.fill_(count)
            assert torch.equal(compiled(torch.ones(2)), m(torch.ones(2)))


def test_a_decision_by_what_was_written_is_refused():
    def body(x, flag):
        flag.add_(1)
        return x if flag else -x

    with pytest.raises(torch._dynamo.exc.Unsupported, match="a branch depends on the values"):
        torch.compile(body, backend="eager", fullgraph=True)(torch.ones(1), torch.tensor(0))


KEYED = {GATE: "a", PLACE: "bb"}


def test_a_dict_with_tensors_as_keys():
    def body(x):
        KEYED[GATE] = KEYED[GATE] + "c"
        return x * len(KEYED[PLACE]), [k.dim() for k in KEYED], GATE in KEYED, x in KEYED

    compiled = torch.compile(body, backend="eager", fullgraph=True)
    x = torch.ones(2)
    assert outcome(compiled, x) == outcome(body, x)
    assert KEYED[GATE] == "acc" and list(KEYED) == [GATE, PLACE]
    KEYED[x] = "ddd"
    assert outcome(compiled, x) == outcome(body, x)
    del KEYED[x], KEYED[PLACE]
    KEYED[torch.zeros(3)] = ""
    with pytest.raises(torch._dynamo.exc.Unsupported, match="KeyError"):
        compiled(x)
    KEYED.clear()
    KEYED.update({PLACE: "bb", GATE: "a"})
    assert outcome(compiled, x) == outcome(body, x)


def test_sizes_given_as_tensors():
    two = torch.tensor(2)

    def body(x, n):
        y = torch.zeros(torch.tensor(3)) + torch.ones([two, 3])
        return x.reshape(torch.tensor(3), two), y, x.view(n, -1).sum(0), torch.tensor(2).reshape(1)

    compiled = torch.compile(body, backend="eager", fullgraph=True)
    x = torch.arange(6.0)
    for n in (2, 3):
        assert outcome(compiled, x, torch.tensor(n)) == outcome(body, x, torch.tensor(n))
    with pytest.raises(Exception, match="must be tuple of ints"):
        torch.compile(lambda x: x.reshape(x[0]), backend="eager")(x)


def scaled(x, a, b=0.25):
    y = x * a + b / 3 - a**2
    if isinstance(a, float) and x.dtype is torch.float16:
        y = a - y
    return torch.where(x > a, y, b), y.add_(a).clamp(max=a), a * 2 + 1, (a, b)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int64])
def test_floats_that_vary(dtype, backend):
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(scaled, backend=backend, fullgraph=True)
    x = torch.tensor([0.3, 1.7, -2.6, 11.1]).to(dtype)
    for k in range(12):
        a = 0.1 + 0.37 * k
        if dtype is torch.int64:
            body = torch.compile(lambda x, a: (x * a, a - x, x > a, x / a), backend=backend)
            assert outcome(body, x, a) == outcome(lambda x, a: (x * a, a - x, x > a, x / a), x, a)
        else:
            got, expected = compiled(x, a, a / 7), scaled(x, a, a / 7)
            assert flat(got[2:]) == flat(expected[2:])
            for one, other in zip(got[:2], expected[:2], strict=True):
                assert one.dtype is other.dtype and torch.allclose(one, other, rtol=1e-6)
    assert sum(torch._dynamo.utils.counters["recompiles"].values()) <= 2


def test_floats_that_decide_or_are_given_to_functions_are_constants():
    def body(x, a):
        y = F.leaky_relu(x, a) + torch.full((2,), a) + torch.add(x, x, alpha=a)
        return (y, a > 0.5) if a > 0.3 else (-y, int(a * 10), f"{a:.2f}")

    compiled = torch.compile(body, backend="eager", fullgraph=True)
    x = torch.tensor([-1.0, 2.0])
    for a in (0.1, 0.2, 0.4, 0.6, 0.1):
        assert outcome(compiled, x, a) == outcome(body, x, a)


def test_a_float_attribute_that_varies_across_a_break():
    class Scheduled(nn.Module):
        rate = 0.1

        def forward(self, x):
            y = x * self.rate
            self.rate = self.rate * 0.5
            torch._dynamo.graph_break()
            return y + self.rate, self.rate

    one, two = Scheduled(), Scheduled()
    compiled = torch.compile(two, backend="eager")
    for _ in range(12):
        assert outcome(compiled, torch.ones(2)) == outcome(one, torch.ones(2))
    assert one.rate == two.rate


def test_floats_and_integers_as_constants_by_switches():
    compiled = torch.compile(lambda x, a: x * a, backend="eager")
    with torch._dynamo.config.patch(specialize_float=True, specialize_int=True):
        torch._dynamo.utils.counters.clear()
        for a in (0.5, 1.5, 2.5, 3, 4, 5):
            assert compiled(torch.ones(1), a).item() == a
    assert sum(torch._dynamo.utils.counters["recompiles"].values()) == 5


def test_gradients_through_floats_that_vary():
    def body(x, a):
        return (x * a).sin().sum() / a

    compiled = torch.compile(body, fullgraph=True)
    for a in (0.5, 0.7, 0.9, -1.1):
        x, y = (torch.tensor([0.3, 0.4], requires_grad=True) for _ in range(2))
        body(x, a).backward()
        compiled(y, a).backward()
        assert torch.allclose(x.grad, y.grad)


def test_numbers_of_a_run_and_sizes_that_vary():
    def body(x, a):
        n = x.sum().item()
        return x * (n / x.shape[0]), a * x.shape[0] + n, x.shape[0] - n, a // 0.25, a % 1, -a + a**3

    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(body, backend="eager", fullgraph=True)
    for k, a in ((2, 0.5), (3, 0.7), (4, 0.9), (5, 1.3)):
        assert outcome(compiled, torch.ones(k), a) == outcome(body, torch.ones(k), a)
    assert not torch._dynamo.utils.counters["graph_break"]
