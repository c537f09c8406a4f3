"""What is no script, and what a script raises: messages, lines, classes."""

import traceback
from typing import List, Optional  # noqa: UP035

import pytest

import flambeau as torch
from flambeau import Tensor, nn


def _try(x):
    try:
        return x
    except ValueError:
        return x


def _unknown(x):
    return x + nowhere  # noqa: F821


def _mixed(x):
    if x.sum() > 0:
        y = 1
    else:
        y = "a"
    return y


def _not_assigned(x):
    if x.sum() > 0:
        y = 1
    return y


def _loop_type(x):
    y = 1
    for _ in range(3):
        y = x
    return y


def _optional(x: Optional[Tensor]):  # noqa: UP045
    return x + 1


def _wrong_argument(x):
    return torch.softmax(x, "a")


def _wrong_return(x) -> int:
    return x


def _no_return(x) -> int:
    if x.sum() > 0:
        return 1


def _default(x, n=2):
    return x


def _star(*xs):
    return xs


def _list_of_two(x):
    return [x, 1]


def _yields(x):
    yield x


def _recursive(n: int):
    return _recursive(n - 1)


def _nested(x):
    def inner(y):
        return y

    return inner(x)


def _attribute(x):
    return x.nothing


def _method(x):
    return x.nothing()


def _set_global(x):
    global _STATE
    _STATE = x
    return x


REFUSED = [
    (_try, "try is not part of scripts"), (_unknown, "undefined name 'nowhere'"),
    (_mixed, "'y' has another type on each path: int and str"),
    (_not_assigned, "'y' may have no value here"),
    (_loop_type, "'y' is int before the loop and Tensor in it"),
    (_optional, "may be None"), (_wrong_argument, "'dim' is int"),
    (_wrong_return, "return: expected int, got Tensor"), (_no_return, "a path ends without return"),
    (_default, "has a default of type int and no annotation"), (_star, r"\*xs: how many there are is known only where"),
    (_list_of_two, "list of Tensor and int"), (_yields, "Yield"),
    (_recursive, "calls itself: declare"), (_nested, "function inside of a function"),
    (_attribute, "no attribute 'nothing'"), (_method, "no method 'nothing'"),
    (_set_global, "global variables cannot be assigned"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "message"), REFUSED, ids=lambda x: getattr(x, "__name__", ""))
def test_refused(f, message):
    with pytest.raises(RuntimeError, match=message) as caught:
        torch.jit.script(f)
    first, *rest = str(caught.value).splitlines()
    line = int(first.split(".py:")[1].split(":")[0])
    start = f.__code__.co_firstlineno
    assert __file__ in first and start <= line <= start + 8
    assert any(set(text.strip()) == {"^"} for text in rest)


def test_lambdas_and_others_are_refused():
    with pytest.raises(RuntimeError, match="write a def"):
        torch.jit.script(lambda x: x)
    with pytest.raises(RuntimeError, match="expected a function, a module or a class, got int"):
        torch.jit.script(3)
    with pytest.raises(RuntimeError, match=r"mark the method @torch\.jit\.export"):
        torch.jit.script(nn.Linear(1, 1).forward)


def test_text_is_never_evaluated(tmp_path):
    """CVE-2022-45907: a type comment that runs code."""
    flag = tmp_path / "ran"

    text = f"List[__import__('pathlib').Path({str(flag)!r}).touch()]"
    source = tmp_path / "evil.py"
    source.write_text(
        "def f(x):\n"
        f"    # type: (__import__('pathlib').Path({str(flag)!r}).touch()) -> int\n"
        "    return x\n"
        f"def g(x: {text!r}):\n"
        "    return x\n"
    )
    space = {}
    exec(compile(source.read_text(), str(source), "exec"), space)
    for name in "fg":
        with pytest.raises(RuntimeError, match="unknown type"):
            torch.jit.script(space[name])
    assert not flag.exists()


def test_errors_of_a_run_keep_class_message_and_line():
    class Own(Exception):
        pass

    @torch.jit.script
    def f(xs: List[int], how: int):  # noqa: UP006
        if how == 0:
            raise ValueError(f"bad {how}")
        if how == 1:
            raise Own("own")
        assert how != 2, "two"
        return xs[how]

    for how, kind, text in (
        (0, ValueError, "bad 0"), (1, Own, "own"), (2, AssertionError, "two"),
        (7, IndexError, "out of range"),
    ):  # fmt: skip
        with pytest.raises(kind, match=text) as caught:
            f([1], how)
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert frames[-1].filename == __file__ and frames[-1].line in (
            'raise ValueError(f"bad {how}")', 'raise Own("own")',
            'assert how != 2, "two"', "return xs[how]",
        )  # fmt: skip


def test_arguments_are_checked():
    @torch.jit.script
    def f(x: Tensor, xs: List[float], n: int = 3, name: Optional[str] = None):  # noqa: UP006, UP045
        return x * n + xs[0]

    assert f(torch.ones(1), [1, 2]) == 4 and f(torch.ones(1), (0.5,), n=2, name="a") == 2.5
    for args, message in (
        ((1, [1.0]), "argument 'x' but instead found type 'int'"),
        ((torch.ones(1), ["a"]), r"argument 'xs' but instead found type 'List\[str\]'"),
        ((torch.ones(1), [1.0], 2.5), "argument 'n' but instead found type 'float'"),
        ((torch.ones(1), [1.0], 2, 3), "'name' but instead found type 'int'"),
    ):
        with pytest.raises(RuntimeError, match=message):
            f(*args)
    with pytest.raises(TypeError, match="missing 1 required"):
        f(torch.ones(1))


def test_modules_name_what_scripts_cannot_hold():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.thing = object()

        def forward(self, x):
            return self.thing

    with pytest.raises(RuntimeError, match="attribute 'thing' that scripts cannot hold: a object"):
        torch.jit.script(Net())


def test_hooks_are_not_left_out_in_silence():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    handle = net[0].register_forward_hook(lambda m, args, out: out + 1)
    with pytest.raises(
        RuntimeError, match="Linear has a lambda as a hook; hooks of scripts are functions"
    ):
        torch.jit.script(net)
    x = torch.rand(3, 2)
    assert torch.equal(torch.jit.trace(net, x)(x), net(x))
    handle.remove()
    assert torch.equal(torch.jit.script(net)(x), net(x))


def _pairs(xs: list[int], ys: list[int]):
    total = 0
    for x, y in zip(xs, ys, strict=True):
        total += x * y
    return total


def test_strict_zips_refuse_lists_of_other_lengths():
    for f in (torch.jit.script(_pairs), torch.jit.script(_pairs)._call.as_python):
        assert f([1, 2], [3, 4]) == 11
        with pytest.raises(ValueError, match="zip: strict=True, and lengths 1 and 2"):
            f([1], [1, 2])


_CALLS: list[int] = []


@torch.jit.ignore
def _counted(x: int) -> list[int]:
    _CALLS.append(x)
    return [x, 2]


def _side_by_side(n: int):
    total = 0
    for (i, x), y in zip(enumerate(_counted(n)), _counted(3), strict=True):
        total += i * x * y
    return total


def test_what_a_zip_runs_over_is_computed_once():
    _CALLS.clear()
    assert torch.jit.script(_side_by_side)(5) == 4
    assert _CALLS == [5, 3]
