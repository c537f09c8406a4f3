"""Each kind of guard: what it is about changes, the frame is captured again, the reason is told."""

from __future__ import annotations

import collections
import gc
import threading
import types
import warnings
import weakref

import pytest

import flambeau as torch
from flambeau import nn

from .test_interpreter import captured

SCALE = 2
TABLE = {"k": 3}


def helper(x):
    return x + 1


def count(compiled):
    return len(compiled._flambeau_config.parts)


def last_reason(compiled):
    return compiled._flambeau_config.parts[-1].because


def check(compiled, f, *args, new, reason=""):
    """The call is right, and was captured anew (or not) for this reason."""
    before = count(compiled)
    assert torch.equal(compiled(*args), f(*args))
    assert (count(compiled) > before) == new
    if new and reason:
        assert reason in last_reason(compiled)


def test_tensor_properties():
    def f(x):
        return x * 2

    compiled = captured(f, dynamic=False)
    compiled(torch.ones(2, 3))
    check(compiled, f, torch.zeros(2, 3), new=False)
    check(compiled, f, torch.ones(2, 3, dtype=torch.float64), new=True, reason="float32")
    check(compiled, f, torch.ones(3, 3), new=True, reason="x is a")
    check(compiled, f, torch.ones(3, 2).T, new=True)
    check(compiled, f, torch.ones(2, 3, requires_grad=True), new=True)
    check(compiled, f, nn.Parameter(torch.ones(2, 3)), new=True)
    check(compiled, f, torch.ones(2, 3), new=False)


def test_constants_and_types():
    def f(x, a):
        return x * (a if isinstance(a, (int, float)) else len(a))

    compiled = captured(f, dynamic=False)
    x = torch.ones(2)
    compiled(x, 3)
    check(compiled, f, x, 3, new=False)
    check(compiled, f, x, 4, new=True, reason="a == 3")
    check(compiled, f, x, 3.0, new=True)
    check(compiled, f, x, "abc", new=True)
    check(compiled, f, x, True, new=True)
    check(compiled, f, x, 0.0, new=True)
    check(compiled, f, x, -0.0, new=True)


def test_containers():
    def f(x, items):
        total = x
        for v in items.values() if isinstance(items, dict) else items:
            total = total + v
        return total

    compiled = captured(f, dynamic=False)
    x = torch.ones(2)
    compiled(x, [1, 2])
    check(compiled, f, x, [1, 2], new=False)
    check(compiled, f, x, [1, 2, 3], new=True, reason="len(items)")
    check(compiled, f, x, (1, 2), new=True)
    check(compiled, f, x, [1, x], new=True)
    check(compiled, f, x, {"a": 1}, new=True)
    check(compiled, f, x, {"a": 1, "b": 2}, new=True)
    check(compiled, f, x, {"a": 1}, new=False)


def test_globals_and_functions(monkeypatch):
    def f(x):
        return helper(x) * SCALE + TABLE["k"]

    compiled = captured(f, dynamic=False)
    x = torch.ones(2)
    compiled(x)
    check(compiled, f, x, new=False)
    monkeypatch.setitem(globals(), "SCALE", 5)
    check(compiled, f, x, new=True, reason="SCALE == 2")
    monkeypatch.setitem(TABLE, "k", 7)
    check(compiled, f, x, new=True, reason="TABLE")
    monkeypatch.setitem(globals(), "helper", lambda x: x - 1)
    check(compiled, f, x, new=True, reason="helper")


def test_a_builtin_is_hidden(monkeypatch):
    def f(x):
        return x * max([1, 2])

    compiled = captured(f)
    compiled(torch.ones(2))
    monkeypatch.setitem(globals(), "max", lambda x: 5)
    check(compiled, f, torch.ones(2), new=True, reason="'max'")


def test_closures_and_defaults():
    def make(k):
        def f(x, by=[1]):  # noqa: B006
            return x * k + by[0]

        def change(v):
            nonlocal k
            k = v

        return f, change

    f, change = make(2)
    compiled = captured(f, dynamic=False)
    x = torch.ones(2)
    compiled(x)
    check(compiled, f, x, new=False)
    change(3)
    check(compiled, f, x, new=True, reason="k == 2")
    f.__defaults__[0][0] = 5
    check(compiled, f, x, new=True)


class Thing:
    factor = 2

    def __init__(self, v):
        self.v = v

    def method(self, x):
        return x * self.v * self.factor


def test_objects_and_classes(monkeypatch):
    def f(x, o):
        return o.method(x)

    compiled = captured(f, dynamic=False)
    x, o = torch.ones(2), Thing(3)
    compiled(x, o)
    check(compiled, f, x, Thing(3), new=False)
    check(compiled, f, x, Thing(4), new=True, reason="o.v == 3")
    monkeypatch.setattr(Thing, "factor", 7)
    check(compiled, f, x, o, new=True, reason="factor")
    o.factor = 9
    check(compiled, f, x, o, new=True)
    monkeypatch.setattr(Thing, "method", lambda self, x: x - self.v)
    check(compiled, f, x, o, new=True)
    o.method = lambda x: x + 100
    check(compiled, f, x, o, new=True)


def test_modules():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    compiled = captured(model)
    x = torch.ones(3, 2)
    model.eval()
    compiled(x)
    check(compiled, model, x, new=False)
    model.train()
    compiled(x)
    assert "training" in last_reason(compiled)
    model.eval()
    check(compiled, model, x, new=False)
    model[0].weight = nn.Parameter(torch.zeros(2, 2))
    check(compiled, model, x, new=False)
    model[0].weight.data = torch.ones(2, 2)
    check(compiled, model, x, new=False)
    model[0].weight.requires_grad_(False)
    check(compiled, model, x, new=True, reason="weight")
    model.append(nn.Identity())
    check(compiled, model, x, new=True)
    model[0].forward = lambda x: x * 5
    check(compiled, model, x, new=True)


def test_modes():
    def f(x):
        return x * 2

    compiled = captured(f)
    x = torch.ones(2, requires_grad=True)
    compiled(x)
    with torch.no_grad():
        check(compiled, f, x, new=True, reason="mode")
        assert not compiled(x).requires_grad
    assert compiled(x).requires_grad


def test_two_arguments_that_become_one():
    def f(x, y):
        x.add_(1)
        return x + y

    compiled = captured(f)
    compiled(torch.ones(2), torch.ones(2))
    x = torch.ones(2)
    result = compiled(x, x)
    assert result.tolist() == [4.0, 4.0]
    assert "two places" in last_reason(compiled)

    def g(xs, ys):
        xs.append(1)
        return len(ys)

    compiled = captured(g)
    assert compiled([1], [1]) == 1
    xs = [1]
    assert compiled(xs, xs) == 2
    assert compiled([1], [1]) == 1


def test_same_object_twice_is_one_input():
    def f(x, y):
        return x + y, x is y

    compiled = captured(f)
    x = torch.ones(2)
    assert compiled(x, x)[1] is True
    assert compiled(torch.ones(2), torch.ones(2))[1] is False


# Sizes --------------------------------------------------------------------------------------------


def test_second_size_becomes_a_symbol():
    def f(x):
        return x.sum() * x.shape[0] + x.view(-1)[0]

    compiled = captured(f)
    for n in (3, 4, 5, 6, 7, 8):
        x = torch.randn(n, 2)
        assert torch.equal(compiled(x), f(x))
    assert count(compiled) == 2
    assert compiled._flambeau_config.parts[1].symbols[0].startswith("s0 = x.size(0)")


def test_dynamic_true_false_and_marked():
    def f(x):
        return x * 2, x.shape[0]

    always, never, marked = captured(f, dynamic=True), captured(f, dynamic=False), captured(f)
    for n in (3, 4, 5):
        for compiled in (always, never):
            assert compiled(torch.ones(n))[1] == n
        x = torch.ones(n)
        torch.compiler.mark_dynamic(x, 0)
        assert marked(x)[1] == n
    assert (count(always), count(never), count(marked)) == (1, 3, 1)


def test_guards_on_symbols():
    def f(x):
        return x * 2 if x.shape[0] > 5 else x * 3

    compiled = captured(f, dynamic=True)
    for n in (8, 9, 3, 4, 10, 7):
        x = torch.ones(n)
        assert torch.equal(compiled(x), f(x))
    assert count(compiled) == 2


def test_zero_and_one_are_not_symbols():
    def f(x):
        return x.sum() + x.shape[0]

    compiled = captured(f, dynamic=True)
    for n in (4, 1, 0, 2, 1):
        x = torch.ones(n)
        assert torch.equal(compiled(x), f(x))
    assert count(compiled) == 3


def test_integer_argument_varies():
    def f(x, n):
        return x * n, n + 1

    compiled = captured(f)
    x = torch.ones(2)
    for n in (3, 4, 5, 6, 7):
        a, b = compiled(x, n)
        assert a.tolist() == [n, n] and b == n + 1 and type(b) is int
    assert count(compiled) == 2


# Limits, reset, threads, memory -------------------------------------------------------------------


def test_recompile_limit_is_reported():
    def f(x, word):
        return x * len(word)

    compiled = captured(f, limit=3)
    x = torch.ones(2)
    for n in range(3):
        compiled(x, f"word{n}")
    with pytest.warns(UserWarning, match="compiled 3 times.*word == 'word"):
        compiled(x, "another")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(x, "five5").tolist() == [5.0, 5.0]
        compiled(x, "word1")
    assert count(compiled) == 3


def test_reset():
    def f(x):
        return x + 1

    compiled = captured(f)
    compiled(torch.ones(2))
    torch.compiler.reset()
    assert count(compiled) == 0
    compiled(torch.ones(2))
    assert count(compiled) == 1


def test_threads():
    def f(x, n):
        for _ in range(n):
            x = x + 1
        return x

    compiled = captured(f, dynamic=False, limit=100)
    failures = []

    def work(seed):
        try:
            for i in range(20):
                n = (seed + i) % 5
                assert compiled(torch.zeros(2), n).tolist() == [n, n]
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_arguments_are_not_kept():
    class Holder:
        pass

    def f(x, h):
        h.seen = x * 2
        return x + 1

    compiled = captured(f)
    h, x = Holder(), torch.ones(3)
    compiled(x, h)
    refs = [weakref.ref(h), weakref.ref(x)]
    del h, x
    gc.collect()
    assert [r() for r in refs] == [None, None]


def test_wrapper_and_its_code_are_released():
    def make():
        big = torch.ones(10)

        def f(x):
            return x + big

        return captured(f), weakref.ref(big)

    compiled, ref = make()
    compiled(torch.ones(10))
    del compiled
    gc.collect()
    assert ref() is None


class Key:
    pass


def test_keys_that_are_objects():
    first, second = Key(), Key()
    table, chosen = {first: 2.0, ("a", 1): 3.0}, {first}

    def f(x):
        y = x * sum(table.values())
        return y + 1 if first in chosen else y

    compiled, x = captured(f), torch.ones(2)
    check(compiled, f, x, new=True)
    check(compiled, f, x, new=False)
    table[first] = 4.0
    check(compiled, f, x, new=True)
    del table[first]
    table[second] = 4.0
    check(compiled, f, x, new=True, reason="keys of table")
    del table["a", 1]
    table["a", True] = 3.0  # equal, and another key
    check(compiled, f, x, new=True, reason="keys of table")
    chosen.clear()
    chosen.add(second)
    check(compiled, f, x, new=True, reason="chosen")
    check(compiled, f, x, new=False)


def test_a_large_dict_is_guarded_by_the_keys_asked_for():
    large = {n: float(n) for n in range(5000)}

    def f(x):
        return x * large[2] + large.get("a", 1.0) + (3 in large)

    compiled, x = captured(f), torch.ones(2)
    check(compiled, f, x, new=True)
    large[4000] = 1.0
    large["b"] = 1.0
    check(compiled, f, x, new=False)
    large["a"] = 5.0
    check(compiled, f, x, new=True, reason="a")
    large[2] = 7.0
    check(compiled, f, x, new=True)
    del large[3]
    check(compiled, f, x, new=True)


def test_a_slot_that_is_set_later():
    class Slotted:
        __slots__ = ("a",)

    value = Slotted()

    def f(x):
        return x + 1 if hasattr(value, "a") else x

    compiled, x = captured(f), torch.ones(2)
    check(compiled, f, x, new=True)
    check(compiled, f, x, new=False)
    value.a = 1
    check(compiled, f, x, new=True, reason="a is not set")


def test_two_slots_that_are_set_later():
    class Slotted:
        __slots__ = ("a", "b")

    value = Slotted()

    def f(x):
        return x + hasattr(value, "a") + 10 * hasattr(value, "b")

    compiled, x = captured(f), torch.ones(2)
    check(compiled, f, x, new=True)
    value.b = 1
    check(compiled, f, x, new=True, reason="b is not set")
    value.a = 1
    check(compiled, f, x, new=True, reason="a is not set")


def test_keys_of_an_ordered_dict():
    table = collections.OrderedDict({("a", 1): 2.0, ("b", 1): 3.0})

    def f(x):
        return x * sum(v * (k[1] is True) + v for k, v in table.items())

    compiled, x = captured(f), torch.ones(2)
    check(compiled, f, x, new=True)
    check(compiled, f, x, new=False)
    table["a", True] = table.pop(("a", 1))  # equal, another key, and another order
    check(compiled, f, x, new=True, reason="keys of table")
    table.move_to_end(("b", 1))
    check(compiled, f, x, new=True, reason="keys of table")


def test_a_module_whose_function_loads():
    module = types.ModuleType("module")
    lines = "def __getattr__(name):\n    exec('import json.tool')\n    globals()[name] = 2.0\n    return 2.0"
    exec(lines, module.__dict__)

    def f(x):
        return x * module.weight

    compiled = torch.compile(f, backend="eager", fullgraph=True)
    assert compiled(torch.ones(1)) == 2 and compiled(torch.ones(1)) == 2
    assert vars(module)["weight"] == 2.0 and count(compiled) == 1


def test_keys_that_are_sizes():
    table = {2: 1.0, 3: 2.0}

    def f(x):
        return x * table.get(x.shape[0], 5.0) + (x.shape[0] in table)

    compiled = captured(f, dynamic=True)
    for n in (2, 3, 4, 5, 2):
        assert torch.equal(compiled(torch.ones(n)), f(torch.ones(n)))


def test_threads_with_values_of_their_own():
    local = threading.local()
    local.scale = 2.0

    def f(x):
        local.calls = getattr(local, "calls", 0) + 1
        return x * local.scale, threading.get_ident()

    compiled, found = torch.compile(f, backend="eager", fullgraph=True), []
    for _ in range(2):
        assert compiled(torch.ones(1))[0] == 2 and compiled(torch.ones(1))[1] == f(torch.ones(1))[1]

    def elsewhere():
        local.scale = 5.0
        found.extend((*compiled(torch.ones(1)), threading.get_ident(), local.calls))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found[0] == 5 and found[1] == found[2] and found[3] == 1
    assert local.calls == 6 and compiled(torch.ones(1))[0] == 2


def test_a_new_subclass():
    class Base:
        pass

    class One(Base):
        weight = 2.0

    def f(x):
        for kind in Base.__subclasses__():
            x = x * kind.weight
        return x

    compiled = captured(f)
    check(compiled, f, torch.ones(1), new=True)
    check(compiled, f, torch.ones(1), new=False)

    class Two(Base):
        weight = 3.0

    check(compiled, f, torch.ones(1), new=True, reason="subclasses of")
    assert Two in Base.__subclasses__() and One in Base.__subclasses__()


def test_a_module_that_loads_is_guarded_by_what_it_holds():
    class Loading(types.ModuleType):
        def __getattr__(self, name):
            exec("import json.tool")  # which is not followed
            setattr(self, name, 2.0)
            return 2.0

    module = Loading("module")

    def f(x):
        return x * module.weight

    compiled = torch.compile(f, backend="eager", fullgraph=True)
    assert compiled(torch.ones(1)) == 2 and compiled(torch.ones(1)) == 2
    assert vars(module)["weight"] == 2.0 and count(compiled) == 1
    module.weight = 3.0
    assert compiled(torch.ones(1)) == 3 and count(compiled) == 2


def test_whether_a_transform_runs():
    def f(x):
        return x * 2 if torch._C._func_inside() else x

    compiled, x = torch.compile(f, backend="eager"), torch.ones(2)
    for _ in range(2):
        assert torch.equal(compiled(x), x)
        assert torch.equal(torch.vmap(compiled)(x), x * 2)
    whole = torch.compile(lambda x: torch.vmap(f)(x) + f(x), fullgraph=True)
    assert torch.equal(whole(x), x * 3)
