"""`mark_dynamic` on a size that the program fixes is an error that says where."""

import pytest

import flambeau as torch


def marked(n):
    x = torch.ones(n)
    torch.compiler.mark_dynamic(x, 0)
    return x


def added(x):
    return x + torch.ones(4)


def branched(x):
    if x.shape[0] == 4:
        return x + 1
    return x


def product(x):
    return x @ torch.ones(4, 2)


FIXED = [added, branched, product, lambda x: x.reshape(2, 2)]


@pytest.mark.parametrize("f", FIXED, ids=lambda f: f.__name__)
@pytest.mark.parametrize("fullgraph", [False, True])
def test_fixed_sizes_are_refused(f, fullgraph):
    compiled = torch.compile(f, backend="eager", fullgraph=fullgraph)
    with pytest.raises(
        RuntimeError,
        match=r"^mark_dynamic: dim 0 of x is marked as one that varies, but the program works for "
        r"size 4 alone; remove the mark, or what fixes the size\n  at .*test_marks.py:\d+",
    ):
        compiled(marked(4))
    assert torch.equal(compiled(torch.ones(4)), f(torch.ones(4)))  # without the mark it is fine


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * 2,
        lambda x: x + 1 if x.shape[0] > 2 else x,
        lambda x: x + 1 if x.shape[0] == 7 else x,
        lambda x: x + 1 if x.shape[0] % 2 == 0 else x,
        lambda x: x[1:] - x[:-1],
    ],
)
def test_sizes_that_vary_are_not(f):
    compiled = torch.compile(f, backend="eager")
    for n in (4, 6, 1):  # 0 and 1 are always their own case
        x = marked(n)
        assert torch.equal(compiled(x), f(x))
