"""Functions typed for each call: `*args` and declarations of `jit._overload`."""

import io
from typing import List, Tuple

import pytest

import flambeau as torch
from flambeau import Tensor, nn

# ruff: noqa: UP006, F811, E704


def total(first: int, *rest: int, scale: int = 1) -> int:
    for r in rest:
        first += r
    return first * scale + len(rest)


def stacked(*xs):
    return torch.stack(list(xs)).sum(0) + len(xs) + xs[0]


def placed(a, /, b: int):
    return a * b


def stars(x: Tensor, pair: Tuple[int, int]):
    return (
        total(*pair), total(1), total(1, 2, 3, scale=2), stacked(x, x), stacked(x), placed(x, 2),
        placed(x, *pair[:1]), torch.add(*(x, x)), x.view(*pair[:1], 2), max(*pair),
    )  # fmt: skip


class Joined(nn.Module):
    def forward(self, *xs):
        return torch.cat(list(xs))

    def first(self, n: int, *xs: Tensor):
        return xs[0] * n


class Stars(nn.Module):
    def __init__(self):
        super().__init__()
        self.joined = Joined()

    def forward(self, x):
        pair = (x, x)
        return (
            self.joined(*pair),
            self.joined(x),
            self.joined.first(2, x, x),
            self.joined(*[x, x, x]),
        )


@torch.jit._overload
def twice(x: int) -> int: ...
@torch.jit._overload
def twice(x: Tensor, by: int = 2) -> Tensor: ...
@torch.jit._overload
def twice(x: List[int]) -> List[int]: ...
def twice(x, by=2):
    if isinstance(x, int):
        return x * 2
    elif isinstance(x, Tensor):
        return x * by
    else:
        return x + x


def overloaded(x: Tensor, n: int):
    return twice(x), twice(n), twice([n]), twice(x, 5), twice(x, by=n)


class Adds(nn.Module):
    @torch.jit._overload_method
    def forward(self, x: int) -> int: ...
    @torch.jit._overload_method
    def forward(self, x: Tensor) -> Tensor: ...
    def forward(self, x):
        return x + self.ten(x)

    @torch.jit._overload_method
    def ten(self, x: int) -> int: ...
    @torch.jit._overload_method
    def ten(self, x: Tensor) -> Tensor: ...
    def ten(self, x):
        return x * 10


class Overloaded(nn.Module):
    def __init__(self):
        super().__init__()
        self.adds = Adds()

    def forward(self, x):
        return self.adds(x), self.adds(3), self.adds.ten(4)


def same(a, b):
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return torch.equal(a, b) if isinstance(a, Tensor) else (type(a), a) == (type(b), b)


@pytest.mark.parametrize(
    ("f", "given"),
    [(stars, (torch.ones(4), (2, 3))), (overloaded, (torch.ones(2), 3)),
     (Stars(), (torch.ones(2),)), (Overloaded(), (torch.ones(2),))],
    ids=["stars", "overloads", "methods with stars", "overloads of methods"],
)  # fmt: skip
def test_calls_choose(f, given):
    script = torch.jit.script(f)
    want = f(*given)
    assert same(want, script(*given))
    assert same(want, torch.jit.load(io.BytesIO(script.save_to_buffer()))(*given))


def test_a_function_made_again_replaces_its_declarations():
    def make():
        @torch.jit._overload
        def half(x: int) -> int: ...
        @torch.jit._overload
        def half(x: float) -> float: ...
        def half(x):
            return x / 2 if isinstance(x, float) else x // 2

        def f(n: int, x: float):
            return half(n), half(x)

        return torch.jit.script(f)

    assert make()(5, 5.0) == make()(5, 5.0) == (2, 2.5)


def named(**options: int):
    return 1


def calls_wrong(x: str):
    return twice(x)


@torch.jit._overload
def only(x: int) -> int: ...


def calls_only(x: int):
    return only(x)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (total, r"\*rest: how many there are is known only where a script calls the function"),
        (Joined(), r"\*xs: how many there are is known only where a script calls the function"),
        (named, r"\*\*options cannot be scripted; name the parameters"),
        (twice, "twice has overloads, of which a call chooses one; script what calls it"),
        (calls_wrong, r"no twice\(str\):\n    twice\(x: int\) -> int: 'x' is int, got str"),
        (calls_only, "only has overloads and no function after them"),
    ],
)
def test_refused(f, message):
    with pytest.raises(RuntimeError, match=message):
        torch.jit.script(f)
