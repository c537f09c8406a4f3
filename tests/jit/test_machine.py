"""Scripts on the machine: what it runs, and that it means what the same script means in Python."""

import copy
import gc
import io
import signal
import subprocess
import sys
import textwrap
import threading
import traceback
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import pytest

import flambeau as torch
from flambeau import nn

from . import language, programs
from .test_scripts import _program, _same

# ruff: noqa: UP006, UP032, UP035, UP045, B905, B007, SIM118, E741


def machine(script):
    """Whether calls of a script run on the machine."""
    return type(script._call) is torch._C._ScriptCall


def reasons(script):
    program = getattr(script, "_program", None) or script._script_program
    return {
        name: why for name in program.unit.functions
        if (why := program.machine.reason(name)) is not None
    }  # fmt: skip


#: programs that run as Python, and what for
AS_PYTHON: Dict[str, str] = {}


def cases():
    return [*programs.CASES, *(f for f, _ in language.PROGRAMS)]


@pytest.mark.parametrize("case", cases(), ids=lambda c: c.__name__)
def test_what_runs_where(case):
    _, script = _program(case)
    name = getattr(script, "_function_name", None) or script._script_record.methods["forward"]
    program = getattr(script, "_program", None) or script._script_program
    assert program.machine.reason(name) == AS_PYTHON.get(case.__name__)


def tensors(x):
    if isinstance(x, torch.Tensor):
        return [x]
    if isinstance(x, dict):
        x = list(x.values())
    return [t for y in x for t in tensors(y)] if isinstance(x, (list, tuple)) else []


@pytest.mark.parametrize(
    ("case", "given"),
    [(c, programs.ARGUMENTS[c.__name__]) for c in programs.CASES]
    + [(f, lambda a=args: a) for f, args in language.PROGRAMS],
    ids=lambda x: getattr(x, "__name__", ""),
)  # fmt: skip
def test_gradients_and_arguments_are_those_of_python(case, given):
    _, script = _program(case)
    torch.manual_seed(0)
    args = given()
    results = []
    is_function = hasattr(script, "_call")
    call = script._call if is_function else script._script_forward
    if type(call) is not torch._C._ScriptCall:
        pytest.skip("runs as Python")
    for f in (call, call.as_python):
        inputs = copy.deepcopy(args)
        if not is_function:
            inputs = (copy.deepcopy(script), *inputs)
        leaves = [t for t in tensors(inputs[0 if is_function else 1 :]) if t.is_floating_point()]
        for t in leaves:
            t.requires_grad_()
        torch.manual_seed(1)
        try:
            out = f(*inputs)
            made = [t for t in tensors(out) if t.requires_grad]
            if made:
                sum(t.abs().sum() for t in made).backward()
            results.append((out, [t.grad for t in leaves], inputs if is_function else None))
        except RuntimeError as error:  # such as a change in place of a leaf
            results.append(str(error))
    a, b = results
    if isinstance(a, tuple) and "core.fork" in str(script.graph):
        # Gradients of tasks are summed in the order in which their threads came to them.
        grads = zip(a[1], b[1], strict=True)
        assert all(x is y or torch.allclose(x, y, atol=1e-6) for x, y in grads)
        a, b = (a[0], a[2]), (b[0], b[2])
    assert _same(a, b)


# -- errors ---------------------------------------------------------------------------------------


class Mistake(Exception):
    pass


def zero(n: int) -> int:
    return 1 // (n - n)


def zero_mod(n: int) -> int:
    return 1 % (n - n)


def zero_div(x: float) -> float:
    return 1 / (x - x)


def out_of_list(xs: List[int], n: int) -> int:
    return xs[n]


def no_key(d: Dict[str, int]) -> int:
    return d["nowhere"]


def pop_empty(xs: List[int]) -> int:
    xs.clear()
    return xs.pop()


def not_there(xs: List[int]) -> int:
    xs.remove(77)
    return 1


def unpacks(xs: List[int]) -> int:
    a, b = xs
    return a + b


def asserts(n: int) -> int:
    assert n > 100, f"small: {n}"
    return n


def raises(n: int) -> int:
    if n > 0:
        raise Mistake("of ours")
    return n


def raises_bare(n: int) -> int:
    if n > 0:
        raise ValueError
    return n


def shapes(x: torch.Tensor) -> torch.Tensor:
    y = x.view(2, 2)
    return y @ torch.ones(3, 3)


def index_tensor(x: torch.Tensor, n: int) -> torch.Tensor:
    return x[n]


def too_many(x: torch.Tensor) -> torch.Tensor:
    return x[0, 0, 0]


def ambiguous(x: torch.Tensor) -> int:
    if x > 0:
        return 1
    return 0


def to_whole(x: float) -> int:
    return int(x * 1e308 * 10)


def no_range(n: int) -> int:
    total = 0
    for i in range(0, 10, n - n):
        total += i
    return total


def deep(n: int) -> int:
    return deep(n + 1)


FAILING = [
    (zero, (3,)), (zero_mod, (3,)), (zero_div, (2.0,)), (out_of_list, ([1, 2], 5)),
    (out_of_list, ([1, 2], -3)), (no_key, ({"a": 1},)), (pop_empty, ([1],)), (not_there, ([1],)),
    (unpacks, ([1],)), (unpacks, ([1, 2, 3],)), (asserts, (3,)), (raises, (1,)),
    (raises_bare, (1,)), (shapes, (torch.ones(4),)), (index_tensor, (torch.ones(2), 5)),
    (too_many, (torch.ones(2),)), (ambiguous, (torch.ones(2),)), (to_whole, (2.0,)),
    (no_range, (1,)),
]  # fmt: skip


@pytest.mark.parametrize(("f", "given"), FAILING, ids=lambda x: getattr(x, "__name__", ""))
def test_errors_are_those_of_python(f, given):
    script = torch.jit.script(f)
    assert machine(script)
    found = []
    for call in (script._call, script._call.as_python):
        try:
            call(*copy.deepcopy(given))
            e = None
        except Exception as error:
            e = error
        assert e is not None
        lines = [x.lineno for x in traceback.extract_tb(e.__traceback__) if x.name == f.__name__]
        found.append((type(e), str(e), e.args, lines[-1:]))
    assert found[0] == found[1]


def test_errors_show_every_line():
    def inner(x: torch.Tensor, n: int) -> torch.Tensor:
        return x[n]

    def outer(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        for i in range(10):
            y = y + inner(x, i)
        return y

    with pytest.raises(IndexError, match="index 2 is out of bounds") as error:
        torch.jit.script(outer)(torch.ones(2))
    shown = [(x.name, x.line) for x in traceback.extract_tb(error.value.__traceback__)][1:]
    assert shown == [("outer", "y = y + inner(x, i)"), ("inner", "return x[n]")]


def test_recursion_ends():
    with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
        torch.jit.script(deep)(0)
    assert torch.jit.script(language.recursion)(20) == language.recursion(20)


def test_whole_numbers_beyond_64_bits_are_errors():
    def power(n: int) -> int:
        return 3**n

    def product(n: int) -> int:
        total = 1
        for i in range(1, n):
            total *= i
        return total

    for f in (power, product):
        script = torch.jit.script(f)
        assert script(20) == f(20)
        with pytest.raises(RuntimeError, match="does not fit in 64 bits"):
            script(60)


# -- values ---------------------------------------------------------------------------------------


def test_lists_are_references_for_both_sides():
    def f(xs: List[int], d: Dict[str, List[int]], n: int) -> Tuple[List[int], Dict[str, List[int]]]:
        xs.append(n)
        d["new"] = xs
        ys = d["old"]
        ys += [n]
        return xs, d

    script = torch.jit.script(f)
    assert machine(script)
    xs, ys = [1], [2]
    d = {"old": ys}
    a, b = script(xs, d, 5)
    assert a is xs and b is d and d["new"] is xs and d["old"] is ys
    assert (xs, ys) == ([1, 5], [2, 5])

    def fails(xs: List[int]) -> int:
        xs.append(3)
        return xs[99]

    xs = [1]
    with pytest.raises(IndexError):
        torch.jit.script(fails)(xs)
    assert xs == [1, 3]

    def aliases(xs: List[int], ys: List[int]) -> bool:
        xs.append(1)
        return len(xs) == len(ys) and xs is ys

    xs = [1]
    assert torch.jit.script(aliases)(xs, xs) and not torch.jit.script(aliases)(xs, [1])


class Lists(nn.Module):
    """Holds lists and dicts, which its script reads, changes and sets."""

    def __init__(self):
        super().__init__()
        self.sizes: List[int] = [1, 2]
        self.rows: List[torch.Tensor] = [torch.ones(2), torch.zeros(2)]
        self.named: Dict[str, torch.Tensor] = {"a": torch.ones(2)}
        self.nested: Dict[str, List[int]] = {"k": [1]}
        self.pair = ([1, 2], "x")
        self.linear = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor, n: int) -> Tuple[torch.Tensor, List[int], List[int], str]:
        for i in range(n):
            x = self.linear(x) + self.rows[i % 2] * self.sizes[i % len(self.sizes)]
            self.sizes.append(i)
            self.rows[i % len(self.rows)] = x
            self.named[str(i)] = x
            self.nested["k"].append(len(self.nested))
        self.nested["new"] = self.sizes
        before = self.sizes
        self.sizes = [n, n + 1]
        self.sizes.append(7)
        before.append(100)
        text = f"{self.sizes} {before} {self.pair[0]}"
        self.pair[0].append(n)
        return x, self.sizes, before, text


def test_modules_that_hold_lists():
    torch.manual_seed(0)
    plain = Lists()
    script = torch.jit.script(copy.deepcopy(plain))
    assert not reasons(script) and machine_runs(script)
    file = io.BytesIO()
    torch.jit.save(script, file)
    file.seek(0)
    loaded = torch.jit.load(file)
    x = torch.ones(2)
    for m in (script, loaded):
        held = copy.deepcopy(plain)
        for n in (3, 2):
            a, b = m(x, n), held(x, n)
            assert _same(a, b)
            names = ("sizes", "rows", "named", "nested", "pair")
            assert all(_same(getattr(m, k), getattr(held, k)) for k in names)
            assert m.sizes is a[1] and m.nested["new"] is a[2]
        a[1].append(5)
        assert m.sizes[-1] == 5
    held, rows = copy.deepcopy(plain), plain.rows
    (held(x, 3)[0].sum()).backward()
    again = torch.jit.script(copy.deepcopy(plain))
    again(x, 3)[0].sum().backward()
    assert torch.equal(held.linear.weight.grad, again.linear.weight.grad) and rows is plain.rows


def machine_runs(script):
    return type(script._script_forward) is torch._C._ScriptCall


def test_python_sees_lists_as_they_are_now(capsys):
    def f(xs: List[int], d: Dict[str, List[int]]) -> str:
        xs.append(1)
        print(xs, d)
        d["k"].append(2)
        return f"{xs} {d!s}"

    script = torch.jit.script(f)
    assert machine(script)
    assert script([5], {"k": [0]}) == f([5], {"k": [0]})
    a, b = capsys.readouterr().out.splitlines()
    assert a == b == "[5, 1] {'k': [0]}"


class Pair(NamedTuple):
    a: int
    b: Optional[torch.Tensor] = None


def test_values_keep_their_classes():
    def f(p: Pair, x: Any, s: str) -> Tuple[Pair, Any, str, Optional[int]]:
        return Pair(p.a + 1, p.b), x, s + "\u20ac", None

    script = torch.jit.script(f)
    assert machine(script)
    for x in (1, 2.5, "a", None, [1, "b"], {"k": (1, 2)}, 1j, torch.float32):
        p, y, s, n = script(Pair(1), x, "\U0001f600")
        assert type(p) is Pair and p == (2, None) and y == x and type(y) is type(x)
        assert s == "\U0001f600\u20ac" and n is None

    class Own:
        pass

    own = Own()
    assert script(Pair(1), own, "")[1] is own  # of no type of scripts: runs as Python
    assert script(Pair(1), 10**30, "")[1] == 10**30


def test_tensors_are_the_same_objects():
    def f(x: torch.Tensor, xs: List[torch.Tensor]) -> Tuple[torch.Tensor, torch.Tensor]:
        return x, xs[0]

    x, y = torch.ones(2), nn.Parameter(torch.ones(2))
    a, b = torch.jit.script(f)(x, [y])
    assert a is x and b is y


def test_defaults_and_names():
    def f(x: torch.Tensor, n: int = 2, xs: Optional[List[int]] = None, *, k: float = 1.0) -> float:
        return float(x.sum()) * n + k + (0 if xs is None else len(xs))

    def g(x: torch.Tensor, n: int = 2, s: str = "ab") -> int:
        return n + len(s) + x.dim()

    for h, calls in ((f, [((), {}), ((3,), {}), ((), {"xs": [1]}), ((1, [1]), {"k": 2.0})]),
                     (g, [((), {}), ((3,), {}), ((3, "x"), {}), ((), {"s": "y"})])):  # fmt: skip
        script = torch.jit.script(h)
        assert machine(script)
        for args, kwargs in calls:
            assert script(torch.ones(2), *args, **kwargs) == h(torch.ones(2), *args, **kwargs)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        torch.jit.script(g)()
    with pytest.raises(RuntimeError, match="Expected a value of type 'int' for argument 'n'"):
        torch.jit.script(g)(torch.ones(2), "a")


def items(x: torch.Tensor, i: torch.Tensor, m: torch.Tensor, n: int, b: bool):
    x = x.clone()
    x[m] = 0.5
    x[i] += 1
    x[n] *= 2
    x[1:3, ::2] -= 3
    x[..., n] = x[..., 0]
    x[i, n] /= 2
    x[None, n] = torch.ones(1, 1, 5)
    y, z, w = x[b], x[i, :, None], x[:, i]
    x[x > 2] **= 2
    return x, y, z, w, x[m], x[torch.tensor(2)], x[n][i], x[-1, -2:]


def test_items_of_tensors():
    script = torch.jit.script(items)
    assert machine(script)
    x = torch.arange(25.0).view(5, 5)
    rest = (torch.tensor([0, 3, 2]), x > 7, 3, True)
    grads = []
    for f in (script, items):
        leaf = x.clone().requires_grad_()
        made = f(leaf, *rest)
        sum(t.sum() for t in made).backward()
        grads.append((made, leaf.grad))
    assert _same(*grads)


def test_formats_and_types_need_no_python():
    def f(n: int, x: float, s: str, y: Any) -> Tuple[str, str, List[bool]]:
        a = f"{n} {x} {s}"
        b = "{}{{{}}}".format(s, n > 1)
        return a, b, [
            isinstance(y, int), torch.jit.isinstance(y, List[int]), isinstance(y, str),
            torch.jit.isinstance(y, Dict[str, List[float]]), isinstance(y, (float, bool)),
            torch.jit.isinstance(y, Tuple[int, str]),
        ]  # fmt: skip

    script = torch.jit.script(f)
    plain = script._call.as_python
    for y in (1, True, 2.5, "a", [1, 2], [1.0], [], ["a"], {}, {"k": [1.5]}, {"k": [1]}, (1, "b"),
              (1, 2), None, torch.ones(1)):  # fmt: skip
        for args in ((3, 1e-7, "\u20ac'", y), (-1, float("inf"), "", y)):
            assert script(*args) == plain(*args)


# -- what sees calls ------------------------------------------------------------------------------


def model(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x
    for i in range(3):
        y = torch.tanh(y @ w)
        if i == 1:
            y = y * 0.5 + x
    return y


def test_transforms_and_modes():
    script = torch.jit.script(model)
    x, w = torch.randn(5, 4), torch.randn(4, 4)
    assert machine(script)
    assert torch.equal(torch.vmap(script, (0, None))(x[:, None], w),
                       torch.vmap(model, (0, None))(x[:, None], w))  # fmt: skip
    assert torch.equal(torch.func.grad(lambda w: script(x, w).sum())(w),
                       torch.func.grad(lambda w: model(x, w).sum())(w))  # fmt: skip
    for f in (script, model):
        out = torch.func.jvp(lambda w, f=f: f(x, w), (w,), (torch.ones(4, 4),))
        assert torch.equal(out[1], torch.func.jvp(lambda w: model(x, w), (w,), (w * 0 + 1,))[1])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        a, b = script(x, w), model(x, w)
    assert a.dtype == b.dtype and torch.equal(a, b)
    w.requires_grad_()
    with torch.no_grad():
        assert not script(x, w).requires_grad
    assert torch.autograd.gradcheck(script, (x.double(), w.detach().double().requires_grad_()))


def test_modes_are_put_back_after_an_error():
    def f(x: torch.Tensor, n: int) -> torch.Tensor:
        with torch.no_grad():
            with torch.enable_grad():
                y = x * 2
            for i in range(3):
                with torch.autocast("cpu"):
                    if i == n:
                        return y
                    if i > n:
                        raise ValueError("late")
        return x

    script = torch.jit.script(f)
    assert machine(script)
    x = torch.ones(2, requires_grad=True)
    assert script(x, 1).requires_grad and torch.is_grad_enabled()
    with pytest.raises(ValueError, match="late"):
        script(x, -1)
    assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")


def test_classes_of_the_program_see_calls():
    seen = []

    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(cls, f, types, args=(), kwargs=None):
            seen.append(f.__name__)
            return super().__torch_function__(f, types, args, kwargs or {})

    x = torch.ones(4, 4).as_subclass(Watched)
    out = torch.jit.script(model)(x, torch.ones(4, 4))
    assert isinstance(out, Watched) and any("matmul" in name for name in seen)


def test_compiled_functions_follow_scripts():
    script = torch.jit.script(model)
    compiled = torch.compile(lambda x, w: script(x, w) + 1, fullgraph=True)
    x, w = torch.randn(3, 4), torch.randn(4, 4)
    assert torch.allclose(compiled(x, w), model(x, w) + 1)


# -- threads and memory ---------------------------------------------------------------------------


def test_sixteen_threads_run_one_function():
    script = torch.jit.script(language.suppressed)
    given = next(a for f, a in language.PROGRAMS if f is language.suppressed)
    counts = torch.jit.script(programs.dict_ops)
    want, errors = script(*given), []

    def work():
        try:
            for _ in range(50):
                assert torch.equal(script(*given), want)
                assert counts(["a", "b", "a"]) == {"a": 2, "b": 1}
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def spin(n: int) -> int:
    total = 0
    for i in range(n):
        total = (total + i) % 1000003
    return total


def test_other_threads_go_on_and_a_run_can_be_interrupted():
    script = torch.jit.script(spin)
    turns, done = [0], threading.Event()

    def count():
        while not done.is_set():
            turns[0] += 1

    other = threading.Thread(target=count)
    other.start()
    before = turns[0]

    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    old = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(Stop):
            script(1 << 60)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
        done.set()
        other.join()
    assert turns[0] > before + 1000


def test_memory_is_freed_at_the_last_use():
    def f(x: torch.Tensor, n: int) -> torch.Tensor:
        for _ in range(n):
            y = x * 2
            x = y - x
        return x

    script = torch.jit.script(f)
    x = torch.ones(1 << 20)
    script(x, 2)
    gc.collect()
    resident = _peak(script, x)
    assert resident < 40 << 20, resident


def _peak(script, x):
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    script(x, 50)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10


# -- texts of any kind ----------------------------------------------------------------------------

FUZZ = """
    import random, resource, signal, sys, copy
    import flambeau as torch
    from flambeau import _C
    from tests.jit import language, programs
    from tests.jit.test_machine_text import mutated
    from flambeau._script import text
    from flambeau._script.runtime import error_class

    class Late(Exception):
        pass

    def late(*_):
        raise Late

    class Maker:
        def node(self, name, place):
            return None
        context = node
        def attribute(self, cls, name):
            return 0

    signal.signal(signal.SIGALRM, late)
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    functions = [(f, programs.ARGUMENTS[f.__name__]) for f in programs.CASES
                 if not isinstance(f, type)]
    functions += [(f, lambda a=a: a) for f, a in language.PROGRAMS]
    written = []
    for f, given in functions:
        s = torch.jit.script(f)
        written.append((text.write(s._program.unit), s._function_name, given, s._program))
    rng, ran, made = random.Random(int(sys.argv[1])), 0, 0
    for _ in range(int(sys.argv[2])):
        t, name, given, program = rng.choice(written)
        try:
            unit = _C._Script(mutated(t, rng), Maker(), dict(program.python),
                              lambda n: error_class(n, {}), False)
            if unit.reason(name) is not None:
                continue
            made += 1
            args = copy.deepcopy(given())
            call = _C._ScriptCall(unit, name, lambda b: (lambda *a: a if b else None), [], (), True)
            signal.setitimer(signal.ITIMER_REAL, 2)
            call(*args)
            ran += 1
        except Exception:
            pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    print(made, ran)
"""


def test_mutated_texts_run_or_end_in_errors():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FUZZ), "3", "2500"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    made, ran = map(int, done.stdout.split()[-2:])
    assert made > 100 and ran > 50
