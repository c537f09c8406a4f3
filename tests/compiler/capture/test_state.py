"""State of Python objects that a compiled function reads and writes by more than one way, against
plain Python on equal objects; also what is left in the objects afterwards."""

from __future__ import annotations

import collections

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.func import functional_call


def captured(f, **options):
    compiled = torch.compile(f, backend="eager", **options)
    compiled._flambeau_config.strict = True
    return compiled


class Thing:
    def __init__(self, **values):
        self.__dict__.update(values)


def left(*things):
    """Attributes in order."""
    return [list(vars(t).items()) for t in things]


def agree(f, make, calls=2):
    """Runs f plainly and compiled over equal objects; gives what the plain one gave last."""
    want, got = make(), make()
    compiled = captured(f)
    for _ in range(calls):
        a, b = f(*want), compiled(*got)
        assert a == b
        assert left(*want) == left(*got)
    return a


# One object, many ways ----------------------------------------------------------------------------


def through_dict(o):
    before = o.n
    o.__dict__["n"] = 5
    return before, o.n, vars(o)["n"], o.n


def through_kept(o):
    kept = o.__dict__
    o.n = 6
    kept["m"] = 7
    del o.n
    o.n = 8
    return list(kept), o.m, kept["n"]


def written_before_read(o):
    o.first = 1
    object.__setattr__(o, "n", 3)
    del o.n
    o.n = 4
    return list(o.__dict__.items()), "n" in vars(o)


def updated(o):
    vars(o).update(n=2, k=3)
    o.__dict__.pop("k")
    o.__dict__ |= {"z": 1}
    return o.n, hasattr(o, "k"), o.z


@pytest.mark.parametrize("f", [through_dict, through_kept, written_before_read, updated])
def test_ways_to_an_attribute(f):
    agree(f, lambda: (Thing(n=1),))


def test_two_objects_with_one_dict():
    def make():
        a, b = Thing(n=1), Thing()
        b.__dict__ = a.__dict__
        return a, b

    def f(a, b):
        a.n = a.n + 1
        b.m = 2
        return b.n, a.m

    agree(f, make)


def test_a_dict_is_replaced_and_shared():
    def f(a, b):
        b.__dict__ = a.__dict__
        b.n = 9
        return a.n, a.__dict__ is b.__dict__

    agree(f, lambda: (Thing(n=1), Thing(n=2)))


def test_objects_that_become_one_are_compiled_again():
    def f(a, b):
        a.n = a.n + 1
        return b.n

    a, b = Thing(n=1), Thing(n=1)
    compiled = captured(f)
    assert compiled(a, b) == 1 and compiled(a, a) == 3


def test_identity_is_guarded():
    a, b = Thing(), Thing()
    compiled = captured(lambda a, b: 1 if a is b else 0)
    assert [compiled(a, b), compiled(a, a), compiled(b, b), compiled(b, a)] == [0, 1, 1, 0]


def test_changes_between_calls_are_noticed():
    def f(o, x):
        return x * o.n

    o, x = Thing(n=2), torch.ones(2)
    compiled = captured(f)
    seen = [compiled(o, x)[0].item()]
    for change in (
        lambda: o.__dict__.update(n=3),
        lambda: setattr(o, "n", 4),
        lambda: setattr(o, "__dict__", {"n": 5}),
    ):
        change()
        seen.append(compiled(o, x)[0].item())
    assert seen == [2, 3, 4, 5]


class Descriptor:
    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, o, cls=None):
        return o.__dict__.get("_" + self.name, 0)

    def __set__(self, o, value):
        o.__dict__["_" + self.name] = value

    def __delete__(self, o):
        del o.__dict__["_" + self.name]


class Described(Thing):
    d = Descriptor()

    @property
    def p(self):
        return self.__dict__.get("_p", 1)

    @p.setter
    def p(self, value):
        self._p = value

    @p.deleter
    def p(self):
        del self._p


def test_descriptors_store_in_the_same_dict():
    def f(o):
        o.d = o.p + 1
        o.p = 5
        o.__dict__["p"] = 17  # hidden by the property
        seen = o.d, o.p, list(vars(o))
        del o.d
        del o.p
        return seen, o.d, o.p

    agree(f, lambda: (Described(),))


class Slotted:
    __slots__ = ("s", "__dict__")

    def __getattr__(self, name):
        self.__dict__["asked"] = self.__dict__.get("asked", 0) + 1
        return 0


def test_slots_and_getattr():
    def f(o, x):
        o.s = o.s + 1
        o.k = o.s
        return x * o.s

    for _ in range(2):
        o, x = Slotted(), torch.ones(2)
        o.s = 1
        compiled = captured(f)
        assert compiled(o, x)[0] == 2 and compiled(o, x)[0] == 3
        assert vars(o) == {"k": 3}
        del o.s
        assert compiled(o, x)[0] == 1 and vars(o) == {"k": 1, "asked": 1}


def test_an_object_made_here_keeps_its_dict():
    def f(x):
        o = Thing(n=1)
        kept = o.__dict__
        torch._dynamo.graph_break()
        kept["m"] = x * 2
        return o, kept

    o, kept = captured(f)(torch.ones(2))
    assert o.__dict__ is kept and list(kept) == ["n", "m"]


def test_cells_and_default_arguments():
    def make():
        n = 0

        def count(*, memo={"calls": 0}, seen=[]):  # noqa: B006
            nonlocal n
            n += 1
            memo["calls"] += 1
            seen.append(n)
            return n, len(seen), memo["calls"]

        return count

    def f(count):
        first = count()
        return first, count.__closure__[0].cell_contents, count.__kwdefaults__["memo"]["calls"]

    plain, compiled = make(), make()
    run = captured(f)
    assert [f(plain) for _ in range(3)] == [run(compiled) for _ in range(3)]
    assert plain.__kwdefaults__ == compiled.__kwdefaults__


def test_what_was_written_before_an_exception_stays():
    def f(o, x):
        o.n = 2
        vars(o)["m"] = 3
        raise KeyError("stop")

    o = Thing(n=1)
    with pytest.raises(KeyError):
        captured(f)(o, torch.ones(2))
    assert left(o) == [[("n", 2), ("m", 3)]]


def test_leaving_a_context_by_an_exception_after_a_break():
    class Context(Thing):
        def __enter__(self):
            return self

        def __exit__(self, kind, error, trace):
            torch._dynamo.graph_break()
            self.seen = kind
            return True

    def f(x, o):
        torch._dynamo.graph_break()
        with o:
            x = x + 1
            raise KeyError("stop")
        return x

    o = Context()
    assert captured(f)(torch.ones(2), o)[0] == 2 and o.seen is KeyError


# Modules ------------------------------------------------------------------------------------------


def test_functional_call_uses_what_it_is_given():
    lin = nn.Linear(2, 2)
    x = torch.ones(1, 2)
    before = {k: v.detach().clone() for k, v in lin.named_parameters()}
    p = {k: torch.full_like(v, 3.0) for k, v in lin.named_parameters()}
    compiled = captured(lambda p, x: functional_call(lin, p, (x,)), fullgraph=True)
    assert compiled(p, x).tolist() == [[9.0, 9.0]]
    assert all((before[k] == v).all() for k, v in lin.named_parameters())
    p["bias"] = p["bias"] + 1
    assert compiled(p, x).tolist() == [[10.0, 10.0]]


class Buffered(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.zeros(2))
        self.w = nn.Parameter(torch.ones(2))
        self.k = 1


def registered(m, x):
    y = m.b + x
    m.register_buffer("b", x * 3)
    return y + m.b


def through_registries(m, x):
    m._buffers["b"] = x
    m._parameters["w"] = x * 2
    return m.b + m.w + m.k


def through_setattr(m, x):
    m.b = m.b + x
    m.b = m.b * 2
    vars(m)["k"] = m.k + 1
    m.k += 1
    return m.b + m._buffers["b"] * m.k


def deleted(m, x):
    m.extra = x
    del m.b
    return x if hasattr(m, "b") else m.extra * 2


@pytest.mark.parametrize("f", [registered, through_registries, through_setattr, deleted])
def test_registries_of_modules(f):
    plain, compiled = Buffered(), Buffered()
    x = torch.arange(2.0) + 1
    assert captured(f)(compiled, x).tolist() == f(plain, x).tolist()
    for name in ("_buffers", "_parameters"):
        a, b = getattr(plain, name), getattr(compiled, name)
        assert list(a) == list(b) and all((a[k] == b[k]).all() for k in a)
    assert plain.__dict__.keys() == compiled.__dict__.keys() and plain.k == compiled.k


# Containers ---------------------------------------------------------------------------------------


class Ordered(collections.OrderedDict):
    pass


class Watched(collections.OrderedDict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        self.last = key


class Late(collections.OrderedDict):
    def __init__(self, pairs):
        super().__init__()
        for k, v in pairs:
            torch._dynamo.graph_break()
            super().__setitem__(k, v)


class Record(collections.OrderedDict):
    """As libraries of models define their outputs."""

    def __init__(self, x):
        super().__init__()
        self.x = x
        for n in ("x",):
            torch._dynamo.graph_break()
            if getattr(self, n) is not None:
                self[n] = getattr(self, n)

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)


def changed(d):
    d["a"] = 5
    d.update(c=1)
    d.pop("b")
    d["b"] = 2
    d.move_to_end("a")
    return list(d), list(d.items()), d.copy(), list(reversed(d))


def across_a_break(d):
    d["a"] = 5
    torch._dynamo.graph_break()
    d["c"] = d["a"] + 1
    return list(d.items())


@pytest.mark.parametrize("f", [changed, across_a_break])
@pytest.mark.parametrize("cls", [collections.OrderedDict, Ordered, Watched])
def test_ordered_dicts_keep_their_keys(f, cls):
    plain, compiled = cls(b=1, z=2), cls(b=1, z=2)
    run = captured(f)
    for _ in range(2):
        assert run(compiled) == f(plain)
        assert list(compiled.items()) == list(plain.items()) and vars(compiled) == vars(plain)


def test_keys_set_in_a_constructor_with_breaks():
    x = torch.ones(2)
    made = captured(lambda x: Late([("a", x * 2), ("b", x * 3)]))(x)
    assert {k: v[0].item() for k, v in made.items()} == {"a": 2, "b": 3}
    record = captured(lambda x: Record(x * 2))(x)
    assert record.x is record["x"] and list(record) == ["x"] and record.x[0] == 2


def test_an_iterator_outside_does_not_notice_values_that_are_set():
    class Calls(collections.OrderedDict):
        def __setitem__(self, key, value):
            super().__setitem__(key, value)

    def f(d):
        for k, v in d.items():
            torch._dynamo.graph_break()
            d[k] = v + 1
        return list(d.values())

    assert captured(f)(Calls(a=1, b=2)) == [2, 3]


class Items(list):
    def __init__(self, *values):
        super().__init__(values)
        self.count = 0

    def append(self, value):
        self.count += 1
        super().append(value)

    def __len__(self):
        return 100


def test_a_list_with_attributes():
    def f(items):
        items.append(1)
        items.note = len(items)
        return [*items], items.count, list(vars(items).items())

    plain, compiled = Items(3), Items(3)
    run = captured(f)
    for _ in range(3):
        assert run(compiled) == f(plain)
        assert list(compiled) == list(plain) and vars(compiled) == vars(plain)


def test_objects_that_iterate_are_kept_as_they_are():
    class Pair:
        def __iter__(self):
            return iter((1, 2))

    pair = Pair()

    def f(x):
        out = []
        out.append(pair)
        out.extend(pair)
        return out

    assert captured(f)(torch.ones(2)) == [pair, 1, 2]


def test_a_named_tuple_with_attributes():
    class Point(collections.namedtuple("Point", "x y")):
        pass

    def f(x):
        point = Point(1, 2)
        point.note = 3
        return point

    made = captured(f)(torch.ones(2))
    assert made == (1, 2) and made.note == 3


def test_names_of_a_module_by_two_ways():
    names = {"torch": torch, "n": 1, "__name__": "made_here"}
    exec("def f(x):\n    global n\n    n += 1\n    return x * f.__globals__['n']", names)
    f = names["f"]
    assert captured(f)(torch.ones(2))[0] == 2 and names["n"] == 2


# NumPy numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.int64, np.uint8])
def test_numpy_numbers_in_graphs(backend, kind, cache):
    c = kind(3)

    def f(y):
        y *= c
        return (y * torch.full((2,), c) + c).sum()

    x = torch.ones(2, requires_grad=True)
    out = torch.compile(f, backend=backend)(x * 1)
    out.backward()
    assert out.item() == 24 and x.grad.tolist() == [9, 9]


CONSUMERS = {
    "loop": lambda it: [v for v in it],  # noqa: C416
    "list": list,
    "star": lambda it: [*it],
    "next": lambda it: [next(iter(it))],
    "unpack": lambda it: (lambda a, b, c: [b])(*it),
    "zip": lambda it: [a for a, _ in zip(it, it)],  # noqa: B905
    "map": lambda it: list(map(lambda v: v, it)),  # noqa: C417
    "mapping": lambda it: [it.mapping["q"]],
    "truth": lambda it: [2 if it else 3],
    "length": lambda it: [len(it)],
    "sorted": lambda it: sorted(it, key=str),
}


@pytest.mark.parametrize("name", CONSUMERS)
def test_views_that_live_across_a_break_are_of_the_call(name):
    """A view or an iterator that a graph finds holds objects that its guards do not know."""
    consume = CONSUMERS[name]

    def run(compiled):
        d = {"p": 1, "q": torch.ones(3), "kept": collections.Counter("aab")}  # never copied

        def f(x):
            d["q"] = x
            values = d.values()
            torch._dynamo.graph_break()
            return [
                v.sum() if isinstance(v, torch.Tensor) else len(str(v)) for v in consume(values)
            ]

        call = torch.compile(f, backend="eager") if compiled else f
        return [[float(v) for v in call(torch.full((3,), float(k)))] for k in (1, 2, 3)]

    assert run(True) == run(False)


class _Slot:
    __slots__ = ("q",)


def _deleted_at_once(a):
    a.q = 1
    del a.q


def _deleted_twice(a):
    a.q = 1
    del a.q
    try:
        del a.q
    except AttributeError:
        return "gone"


def _deleted_and_set(a):
    a.q = 1
    del a.q
    a.q = 2
    del a.q
    a.q = 3


@pytest.mark.parametrize("change", [_deleted_at_once, _deleted_twice, _deleted_and_set])
@pytest.mark.parametrize("is_set", [False, True])
def test_slots_that_a_graph_sets_and_deletes(change, is_set):
    def run(compiled):
        a = _Slot()

        def f(x):
            return change(a), x + 1

        call = captured(f) if compiled else f
        seen = []
        for k in range(3):
            if is_set:
                a.q = k
            seen.append((call(torch.zeros(()))[0], getattr(a, "q", "unset")))
        return seen

    assert run(True) == run(False)


def _write_dict(d, x):
    d.__dict__["k"] = x
    return len(d.__dict__)


def _update_vars(d, x):
    vars(d).update(k=x)
    return [*vars(d)]


ATTRIBUTES = {
    "has": lambda d, x: hasattr(d, "seen"),
    "get": lambda d, x: getattr(d, "seen", 0),
    "dict": _write_dict,
    "vars": _update_vars,
    "method": lambda d, x: (d.update(q=2), d.pop("q"), sum(d.values())),
}


@pytest.mark.parametrize("name", ATTRIBUTES)
@pytest.mark.parametrize("cls", [collections.OrderedDict, collections.Counter])
def test_attributes_of_mappings_of_the_standard_library(name, cls):
    """An OrderedDict has an instance dictionary beside its entries, which may change too."""
    look = ATTRIBUTES[name]

    def run(compiled):
        d = cls(p=1)

        def f(x):
            return look(d, x), x + 1

        call = captured(f) if compiled else f
        seen = []
        for k in range(3):
            seen.append((call(torch.full((), float(k)))[0], dict(d), float(vars(d).get("k", -1))))
            d.seen = k
        return seen

    assert run(True) == run(False)


def _copied_by_c(d, x):
    e = d.copy()
    e.n = x
    return e


def _merged_by_c(d, x):
    e = d | {"r": 1}
    e.__dict__["n"] = x
    return e


def _made_and_held(d, x):
    e = collections.OrderedDict(a=1)
    e.n = x
    torch._dynamo.graph_break()
    e.n = e.n + 1
    return e


@pytest.mark.parametrize("make", [_copied_by_c, _merged_by_c, _made_and_held])
def test_attributes_of_mappings_that_c_code_made_in_a_graph(make):
    def run(compiled):
        d = collections.OrderedDict(p=1)
        call = torch.compile(make, backend="eager") if compiled else make
        made = [call(d, torch.full((), float(k))) for k in range(3)]
        return [(dict(e), {n: float(v) for n, v in vars(e).items()}) for e in made]

    assert run(True) == run(False)


def _read_at_once(x):
    def inner():
        return later

    inner()
    later = x


def _read_in_another(x):
    def inner():
        def inmost():
            return later

        return inmost()

    torch._dynamo.graph_break()
    inner()
    later = x


def _read_by_its_owner(x):
    def inner():
        return later

    torch._dynamo.graph_break()
    later = later + x  # noqa: F821
    return inner


@pytest.mark.parametrize("f", [_read_at_once, _read_in_another, _read_by_its_owner])
def test_variables_that_are_read_before_they_are_set(f):
    def raised(call):
        with pytest.raises(NameError) as caught:
            call(torch.ones(()))
        return type(caught.value), str(caught.value), caught.value.name

    compiled = torch.compile(f, backend="eager")
    assert raised(compiled) == raised(f) == raised(compiled)


def test_what_methods_of_dict_put_behind_an_ordered_dict_is_seen():
    held = collections.OrderedDict(p=1, q=2)

    def f(x):
        return x + len(held)

    g = torch.compile(f, backend="eager")
    x = torch.zeros(1)
    assert g(x).item() == f(x).item() == 2.0
    dict.__setitem__(held, "r", 3)
    assert g(x).item() == f(x).item() == 3.0
