"""Objects of scripted classes and futures between Python and the machine: one object on both sides."""

import gc
import threading
import weakref
from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import pytest

import flambeau as torch
from flambeau import Tensor, nn
from flambeau.futures import Future

# ruff: noqa: UP006, UP007, UP035, UP045


def on_machine(script):
    call = script._call if hasattr(script, "_call") else script._script_forward
    return type(call) is torch._C._ScriptCall


def scripted(f):
    script = torch.jit.script(f)
    assert on_machine(script), script._program.machine.reason(script._function_name)
    return script


@torch.jit.script
class Counter:
    def __init__(self, start: int):
        self.count = start
        self.seen: List[int] = []

    def step(self, by: int) -> int:
        self.count += by
        self.seen.append(by)
        return self.count


def count_up(c: Counter, n: int) -> Counter:
    for i in range(n):
        c.step(i)
    return c


def test_an_object_of_python_is_the_scripts():
    c = Counter(3)
    seen = c.seen
    assert scripted(count_up)(c, 4) is c
    assert (c.count, c.seen) == (9, [0, 1, 2, 3])
    assert c.seen is seen


def made(n: int) -> Tuple[Counter, Counter, List[Counter]]:
    c = Counter(n)
    c.step(2)
    return c, c, [c, Counter(0)]


def test_an_object_of_a_script_is_one_object_in_python():
    a, b, (c, d) = scripted(made)(5)
    assert type(a) is Counter and a is b and a is c and a is not d
    assert (a.count, a.seen, d.count) == (7, [2], 0)
    assert a.step(1) == 8


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.counter = Counter(0)

    def forward(self, n: int) -> Tuple[int, bool]:
        c = Counter(n)
        old = self.counter
        self.counter = c
        c.step(1)  # after it has gone out
        self.counter.step(2)
        return c.count, self.counter is c and old is not c


def test_what_a_script_changes_after_it_has_gone_out_is_changed_there():
    m = torch.jit.script(Holder())
    assert on_machine(m)
    assert m(10) == (13, True)
    assert type(m.counter) is Counter and (m.counter.count, m.counter.seen) == (13, [1, 2])


@torch.jit.script
class Node:
    def __init__(self, value: Tensor, left: "Optional[Node]", right: "Optional[Node]"):
        self.value = value
        self.left = left
        self.right = right


def total(n: Optional[Node]) -> Tensor:
    if n is None:
        return torch.zeros(1)
    n.value = n.value * 2
    return n.value + total(n.left) + total(n.right)


def chain(n: int, x: Tensor) -> Node:
    out = Node(x, None, None)
    for i in range(n):
        out = Node(x * i, out, None)
    return out


def ring(x: Tensor) -> Node:
    a = Node(x, None, None)
    a.left = Node(x + 1, a, None)
    return a


def test_trees_come_in_and_go_out():
    leaf = Node(torch.ones(1), None, None)
    tree = Node(torch.ones(1) * 2, leaf, leaf)
    assert scripted(total)(tree).item() == 4 + 2 + 4
    assert (tree.value.item(), leaf.value.item()) == (4, 4) and tree.left is leaf
    deep = scripted(chain)(20000, torch.ones(1))  # deeper than Python's stack
    count = 0
    while deep is not None:
        deep.left, deep, count = None, deep.left, count + 1
    assert count == 20001
    a = scripted(ring)(torch.zeros(1))
    assert a.left.left is a and a.left.value.item() == 1


def reversed_values(xs: List[Node], first: Dict[str, Node]) -> List[Tensor]:
    xs.reverse()
    first["last"] = xs[0]
    if "gone" in first:
        first.pop("gone")
    return [x.value for x in xs]


def test_containers_of_objects():
    a, b = Node(torch.zeros(1), None, None), Node(torch.ones(1), None, None)
    xs, table = [a, b], {"gone": a}
    assert [x.item() for x in scripted(reversed_values)(xs, table)] == [1, 0]
    assert xs == [b, a] and table == {"last": b}


class Pair(NamedTuple):
    node: Node
    n: int


def pair_of(p: Pair, other: Union[Node, int]) -> Pair:
    if isinstance(other, int):
        return Pair(p.node, other)
    return Pair(other, p.n)


def test_objects_in_tuples_and_unions():
    a, b = Node(torch.zeros(1), None, None), Node(torch.ones(1), None, None)
    f = scripted(pair_of)
    assert f(Pair(a, 1), 5) == Pair(a, 5)
    assert f(Pair(a, 1), b).node is b


@torch.jit.script
@dataclass
class Box:
    low: float
    high: float = 1.0
    label: Optional[str] = None

    def __post_init__(self):
        if self.low > self.high:
            self.low, self.high = self.high, self.low

    def width(self) -> float:
        return self.high - self.low


def widened(b: Box, by: float) -> Box:
    return Box(b.low - by, b.high + by, b.label)


def test_dataclasses():
    out = scripted(widened)(Box(3.0, 2.0, "x"), 0.5)
    assert type(out) is Box and out == Box(1.5, 3.5, "x") and out.width() == 2


def test_gradients_pass_through_attributes():
    w = torch.ones(3, requires_grad=True)
    node = Node(w, Node(w * 2, None, None), None)
    scripted(total)(node).sum().backward()
    assert w.grad.tolist() == [6, 6, 6]


class Slotted:
    __slots__ = ("at", "name")

    def __init__(self, at: int, name: str):
        self.at = at
        self.name = name


Slotted = torch.jit.script(Slotted)


def moved(s: Slotted, by: int) -> Slotted:
    s.at += by
    return Slotted(s.at, s.name + "'")


def test_slots():
    s = Slotted(1, "a")
    out = scripted(moved)(s, 2)
    assert (s.at, out.at, out.name) == (3, 3, "a'")


def test_what_is_no_such_object_is_refused():
    f = scripted(count_up)
    with pytest.raises(TypeError, match="Expected a value of type '.*Counter' for argument 'c'"):
        f(3, 1)
    c = Counter(0)
    c.count = "many"
    with pytest.raises(TypeError, match="attribute count: a script expected a value of type int"):
        f(c, 2)
    del c.count
    with pytest.raises(AttributeError, match="count"):
        f(c, 2)
    n = Node(torch.ones(1), None, None)
    n.left = c
    with pytest.raises(TypeError, match="a Counter has no attribute 'value' for scripts"):
        scripted(total)(n)


def test_objects_do_not_leak():
    f = scripted(made)
    out = weakref.ref(f(1)[0])
    gc.collect()
    assert out() is None
    c = Counter(1)
    seen = weakref.ref(c)
    scripted(count_up)(c, 2)
    del c
    gc.collect()
    assert seen() is None


def test_objects_in_a_file(tmp_path):
    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.counter = Counter(1)

        def forward(self, n: int) -> Counter:
            c = self.counter
            self.counter = Counter(n)
            return count_up(c, n)

        @torch.jit.export
        def read(self, c: Counter) -> int:
            return c.step(100)

    path = str(tmp_path / "m.pt")
    torch.jit.script(Keeps()).save(path)
    m = torch.jit.load(path)
    assert on_machine(m)
    c = m(3)
    assert (c.count, c.seen) == (4, [0, 1, 2]) and m(1) is not c
    assert m.read(c) == 104 and c.seen == [0, 1, 2, 100]
    with pytest.raises(TypeError, match="for argument 'c'"):
        m.read(Counter(1))  # of the program, not of the file


# -- futures --------------------------------------------------------------------------------------


def double(x: Tensor) -> Tensor:
    return x * 2


def start(x: Tensor) -> torch.jit.Future[Tensor]:
    return torch.jit.fork(double, x)


def finish(f: torch.jit.Future[Tensor], y: Tensor) -> Tensor:
    return torch.jit.wait(f) + y


def same(f: torch.jit.Future[Tensor]) -> torch.jit.Future[Tensor]:
    return f


def test_a_task_goes_out_and_comes_back():
    go, end = scripted(start), scripted(finish)
    f = go(torch.ones(2))
    assert isinstance(f, Future)
    assert end(f, torch.ones(2)).tolist() == [3, 3]
    assert f.wait().tolist() == [2, 2] and f.done() and torch.jit.wait(f) is f.wait()
    assert scripted(same)(f) is f
    assert f.then(lambda g: g.value().sum().item()).wait() == 4


def test_a_future_of_python_is_waited_for():
    end = scripted(finish)
    f = torch.jit.fork(double, torch.ones(2))
    assert end(f, torch.ones(2)).tolist() == [3, 3]
    assert scripted(same)(f) is f
    late = Future()
    timer = threading.Timer(0.05, lambda: late.set_result(torch.ones(2)))
    timer.start()
    assert end(late, torch.ones(2)).tolist() == [2, 2]
    timer.join()
    late = Future()
    late.set_exception(ValueError("of the task"))
    with pytest.raises(ValueError, match="of the task"):
        end(late, torch.ones(2))
    late = Future()
    late.set_result(3)
    with pytest.raises(
        TypeError, match="wait: a script expected a future of type Tensor, got one of a int"
    ):
        end(late, torch.ones(2))
    with pytest.raises(TypeError, match="for argument 'f'"):
        end(3, torch.ones(2))


def all_of(fs: List[torch.jit.Future[Tensor]]) -> Tensor:
    out = torch.zeros(2)
    for f in fs:
        out = out + torch.jit.wait(f)
    return out


def start_all(x: Tensor, n: int) -> List[torch.jit.Future[Tensor]]:
    out: List[torch.jit.Future[Tensor]] = []
    for i in range(n):
        out.append(torch.jit.fork(double, x + i))
    return out


def test_lists_of_futures():
    fs = scripted(start_all)(torch.zeros(2), 100)
    assert scripted(all_of)(fs[:50] + fs[50:]).tolist() == [9900, 9900]
    assert len(torch.futures.wait_all(fs)) == 100


def fails(x: Tensor) -> Tensor:
    if x.sum() > 0:
        raise ValueError("no such thing")
    return x


def start_failing(x: Tensor) -> torch.jit.Future[Tensor]:
    return torch.jit.fork(fails, x)


def test_an_error_of_a_task_goes_out():
    f = scripted(start_failing)(torch.ones(1))
    for _ in range(2):
        with pytest.raises(ValueError, match="no such thing"):
            f.wait()
    with pytest.raises(ValueError, match="no such thing"):
        scripted(finish)(f, torch.ones(1))


def counted(n: int) -> Counter:
    return Counter(n)


def test_callbacks_run_when_a_task_is_done():
    f = scripted(start)(torch.ones(3))
    seen = []
    done = threading.Event()
    f.add_done_callback(lambda g: (seen.append(g.value().tolist()), done.set()))
    assert done.wait(10)  # a thread of the pool has come to it
    assert seen == [[2, 2, 2]]
    gc.collect()


def test_gradients_pass_through_futures():
    w = torch.ones(2, requires_grad=True)
    f = scripted(start)(w)
    scripted(finish)(f, w).sum().backward()
    assert w.grad.tolist() == [3, 3]


def test_many_tasks_go_out_without_growth():
    go = scripted(start)
    for _ in range(2000):
        f = go(torch.ones(2))
    ref = weakref.ref(f)
    f.wait()
    del f
    gc.collect()
    assert ref() is None


def slow_append(xs: List[int]) -> int:
    xs.append(1)
    return len(xs)


def start_append(xs: List[int]) -> torch.jit.Future[int]:
    return torch.jit.fork(slow_append, xs)


def test_a_task_that_could_change_the_callers_list_runs_as_python():
    script = torch.jit.script(start_append)
    assert "a list of the caller" in script._program.machine.reason(script._function_name)
    xs = [5]
    assert script(xs).wait() == 2 and xs == [5, 1]


def any_of(x: Any) -> Any:
    return x


def test_any_takes_no_objects_on_the_machine():
    c = Counter(1)
    assert torch.jit.script(any_of)(c) is c
