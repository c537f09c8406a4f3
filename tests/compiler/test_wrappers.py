"""A wrapper of a compiled function is itself: not what it wraps, whatever attributes it copied."""

import functools

import pytest

import flambeau as torch
from flambeau.func import grad, vmap


def summed(x):
    return x.sum() * x


def added(x):
    return x + 1


def wrapping(inner):
    @functools.wraps(inner)
    def outer(x):
        return inner(x) * 10

    return outer


def calling(f):
    return lambda x: f(x) + 1


class Scale:
    by = 3

    def go(self, x):
        return x * self.by


MAKERS = {
    "wraps": lambda c: wrapping(c(added)),
    "calls it": lambda c: calling(wrapping(c(added))),
    "wraps twice": lambda c: wrapping(wrapping(c(added))),
    "vmap": lambda c: vmap(c(summed)),
    "grad": lambda c: grad(c(lambda x: (x * x).sum())),
    "no_grad": lambda c: torch.no_grad()(c(summed)),
    "autocast": lambda c: torch.autocast("cpu", torch.bfloat16)(c(lambda x: x @ x)),
    "partial": lambda c: functools.partial(wrapping(c(added))),
    "method": lambda c: c(Scale().go),
}


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("name", MAKERS)
def test_a_wrapper_counts(name, again):
    compile = functools.partial(torch.compile, backend="eager")
    x = torch.ones(2, 2, requires_grad=True)
    want = MAKERS[name](lambda f: f)(x)
    f = MAKERS[name](compile)
    got = (compile(f) if again else f)(x)
    assert torch.equal(got, want) and got.dtype == want.dtype
    assert got.requires_grad == want.requires_grad


def test_disabled_is_not_copied_either():
    @functools.wraps(torch.compiler.disable(added))
    def outer(x):
        return x * 10

    assert torch.compile(outer, fullgraph=True, backend="eager")(torch.ones(2)).tolist() == [10, 10]


def test_update_of_one_compiled_function_by_another():
    one = torch.compile(lambda x: x * 7, backend="eager")
    functools.update_wrapper(one, torch.compile(added, backend="eager"))
    assert torch.compile(one, backend="eager")(torch.ones(2)).tolist() == [7, 7]


def test_compiled_methods_keep_their_object():
    class Own:
        by = 3
        go = torch.compile(Scale.go, backend="eager")

    made = Own()
    assert torch.compile(made.go, backend="eager")(torch.ones(2)).tolist() == [3, 3]
    made.by = 4
    assert torch.compile(lambda x: made.go(x), backend="eager")(torch.ones(2)).tolist() == [4, 4]
