"""Where results are written: `out=` of another shape or dtype, sources that overlap what is
changed, lists of results.

Each result is compared with that of the same call on copies that share nothing.
"""

import warnings

import numpy as np
import pytest

import flambeau as torch


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


FILLS = {
    "arange": lambda out: torch.arange(6, out=out),
    "arange_from": lambda out: torch.arange(2, 8, out=out),
    "linspace": lambda out: torch.linspace(0, 5, 6, out=out),
    "linspace_tensor": lambda out: torch.linspace(torch.tensor(0.0), 5, 6, out=out),
    "logspace": lambda out: torch.logspace(0, 5, 6, 2.0, out=out),
}
WANTED = {
    "arange": np.arange(6), "arange_from": np.arange(2, 8), "linspace": np.arange(6),
    "linspace_tensor": np.arange(6), "logspace": 2 ** np.arange(6),
}  # fmt: skip


@pytest.mark.parametrize("name", FILLS)
def test_sequences_keep_the_shape_of_out_of_the_right_count(name):
    whole = torch.zeros(4, 6)
    views = {
        "rows": (torch.zeros(2, 3), (2, 3)),
        "transposed": (torch.zeros(3, 2).t(), (2, 3)),
        "window": (whole[1:3, 1:4], (2, 3)),
        "steps": (torch.zeros(12)[::2], (6,)),
    }
    for out, shape in views.values():
        strides = out.stride()
        given = FILLS[name](out)
        assert given is out and out.shape == shape and out.stride() == strides
        np.testing.assert_allclose(out.numpy(), WANTED[name].reshape(shape))
    outside = whole.numpy().copy()
    outside[1:3, 1:4] = 0
    assert not outside.any()


def test_range_has_both_ends_and_tells_of_its_age():
    with pytest.warns(UserWarning, match="deprecated"):
        assert torch.range(1, 4, 0.5).tolist() == [1, 1.5, 2, 2.5, 3, 3.5, 4]
    with pytest.warns(UserWarning, match="deprecated"):
        assert torch.range(5, 0, -2, dtype=torch.int64).tolist() == [5, 3, 1]
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="bound"):
        torch.range(1, 0)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "cumsum", "cumprod", "nansum"])
def test_a_dtype_and_an_out_of_another_are_refused(name):
    f, x = getattr(torch, name), torch.ones(3)
    shape = (3,) if name.startswith("cum") else ()
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        f(x, 0, dtype=torch.float32, out=torch.zeros(shape, dtype=torch.float64))
    out = torch.zeros(shape, dtype=torch.float64)
    assert f(x, 0, out=out) is out and out.reshape(-1)[0] == 1 + 2 * (name in ("sum", "nansum"))
    f(x, 0, dtype=torch.float64, out=out)


def test_ones_and_bernoulli_into_out():
    out = torch.empty(2, 3)
    assert torch.ones(2, 3, out=out) is out and out.tolist() == [[1] * 3] * 2
    whole = torch.empty(2, dtype=torch.int64)
    assert torch.ones(2, out=whole).dtype == torch.int64 and whole.tolist() == [1, 1]
    for dtype in (torch.int64, torch.bool, torch.uint8, torch.float64):
        out = torch.empty(3, dtype=dtype)
        assert torch.bernoulli(torch.ones(3), out=out) is out and out.tolist() == [1, 1, 1]


OVERLAPS = {
    "copy": lambda to, x: to.copy_(x),
    "assign": lambda to, x: to.__setitem__(slice(None), x),
    "cumsum": lambda to, x: torch.cumsum(x, 0, out=to),
    "index_add": lambda to, x: to.index_add_(0, torch.tensor([3, 0, 2, 1]), x),
    "index_copy": lambda to, x: to.index_copy_(0, torch.tensor([3, 0, 2, 1]), x),
    "scatter": lambda to, x: to.scatter_(0, torch.tensor([3, 0, 2, 1]), x),
    "scatter_add": lambda to, x: to.scatter_add_(0, torch.tensor([3, 0, 2, 1]), x),
    "index_put": lambda to, x: to.index_put_((torch.tensor([3, 0, 2, 1]),), x),
    "put": lambda to, x: to.put_(torch.tensor([3, 0, 2, 1]), x),
    "masked_scatter": lambda to, x: to.masked_scatter_(torch.tensor([True, False, True, True]), x),
    "fill": lambda to, x: to.fill_(x[2]),
    "flip": lambda to, x: to.copy_(x.flip(0)),
    "masked_fill": lambda to, x: to.masked_fill_(x > 1, x[3]),
    "index_fill": lambda to, x: to.index_fill_(0, torch.tensor([0, 2]), x[1]),
}


#: one loop reads and writes: refused
LOOPS = {
    "add": lambda to, x: to.add_(x),
    "mul": lambda to, x: torch.mul(x, 2, out=to),
    "where": lambda to, x: torch.where(to > 2, x, -x, out=to),
    "addcmul": lambda to, x: to.addcmul_(x, x),
    "lerp": lambda to, x: to.lerp_(x, 0.5),
}


@pytest.mark.parametrize("name", LOOPS)
def test_formulas_per_element_refuse_what_overlaps(name):
    x = torch.arange(8.0)
    with pytest.raises(RuntimeError, match="single memory location"):
        LOOPS[name](x[2:6], x[1:5])
    assert x.tolist() == list(range(8))
    LOOPS[name](x[2:6], x[2:6])


@pytest.mark.parametrize("shift", [-1, 1, 2])
@pytest.mark.parametrize("name", OVERLAPS)
def test_an_overlapping_source_is_read_as_it_was(name, shift):
    x = torch.arange(8.0)
    to, source = x[2:6], x[2 - shift : 6 - shift]
    apart, held = to.clone(), source.clone()
    OVERLAPS[name](apart, held)
    OVERLAPS[name](to, source)
    assert to.tolist() == apart.tolist()


def test_roll_without_dims_in_any_form():
    x = torch.arange(6).view(2, 3)
    want = np.roll(x.numpy(), 2)
    for y in (torch.roll(x, 2), torch.roll(x, 2, dims=None), x.roll(2, None), x.roll(2, ())):
        assert y.tolist() == want.tolist()
    assert torch.roll(x.t(), 1).tolist() == np.roll(x.numpy().T, 1).tolist()
    assert torch.vmap(lambda a: a.roll(1))(x).tolist() == [[2, 0, 1], [5, 3, 4]]


def test_in_place_forms_as_functions():
    x = torch.arange(4.0)
    assert torch.clamp_min_(x, 1.0) is x and torch.clamp_max_(x, 2.0) is x
    assert x.tolist() == [1, 1, 2, 2]
    assert torch.clamp_min_(x, torch.tensor(2.0)).tolist() == [2] * 4
    assert torch.fill_(x, 7.0) is x and x.tolist() == [7] * 4


@pytest.mark.parametrize(
    "f",
    [
        lambda x, **k: torch.split_with_sizes_copy(x, [1, 2], **k),
        lambda x, **k: torch.split_copy(x, 2, **k),
        lambda x, **k: torch.unbind_copy(x, **k),
    ],
)
def test_copies_of_parts_into_a_list(f):
    x = torch.arange(3.0)
    want = f(x)
    out = [torch.empty_like(part) for part in want]
    held = list(out)
    assert f(x, out=out) is None
    for to, was, part in zip(out, held, want, strict=True):
        assert to is was and torch.equal(to, part)
    with pytest.raises(RuntimeError, match="tensors"):
        f(x, out=out[1:])
    with pytest.raises(RuntimeError, match="dtype"):
        f(x, out=[o.double() for o in out])
    empty = [torch.empty(0) for _ in want]
    f(x, out=empty)
    assert [e.tolist() for e in empty] == [part.tolist() for part in want]
    with pytest.warns(UserWarning, match="resized"):
        f(x, out=[torch.empty(7) for _ in want])
