"""Arguments made to do harm: an exception, and nothing half done."""

import numpy as np
import pytest

import flambeau as fb


class Shrinks:
    """An index whose reading empties the list that it stands in."""

    def __init__(self, home: list) -> None:
        self.home = home

    def __index__(self) -> int:
        self.home.clear()
        return 1


def test_a_list_that_changes_while_it_is_read():
    sizes = [2, 3]
    sizes[0] = Shrinks(sizes)
    assert fb.zeros(sizes).shape == (1,)
    key = [fb.tensor(0)]
    key.append(Shrinks(key))
    assert fb.arange(6).reshape(2, 3)[key].item() == 1


@pytest.mark.parametrize("mask", [[[True] * 3] * 2, np.ones((2, 3), bool)])
@pytest.mark.parametrize("rest", [0, slice(1, 2), None, slice(None)])
def test_masks_that_cover_more_dims_than_there_are(mask, rest):
    x = fb.zeros(2, 3)
    if rest is None:
        assert x[mask, rest].shape == (6, 1)
    else:
        with pytest.raises(IndexError, match="too many indices"):
            x[mask, rest]


def test_slices_with_huge_steps():
    x = fb.arange(9.0).reshape(1, 9)[:, 2:5]
    assert x[0 : 1 : 2**62].tolist() == [[2.0, 3.0, 4.0]]
    assert x[0, 1 :: 2**63 - 1].tolist() == [3.0]
    assert x.slice(1, 0, None, 2**31).tolist() == [[2.0]]


@pytest.mark.parametrize("step", [2**31 - 1, 2**63 - 1])
def test_huge_steps_leave_one_position_in_every_layout(step):
    values = np.arange(24.0).reshape(2, 3, 4)
    dense = fb.tensor(values)
    first_last = dense.permute(1, 2, 0).contiguous().permute(2, 0, 1)
    layouts = (dense, dense.mT.contiguous().mT, first_last)
    assert len({x.stride() for x in layouts}) == 3
    for form, kept in (
        (lambda x: x[:, 1::step], np.s_[:, 1:2]),
        (lambda x: x.slice(0, 0, None, step), np.s_[:1]),
        (lambda x: x.unfold(1, 3, step)[:, 0].mT, np.s_[:]),
        (lambda x: x[::step, 2], np.s_[:1, 2]),
    ):
        for x in layouts:
            reached = np.zeros_like(values)
            reached[kept] = 1
            np.testing.assert_array_equal(form(x), x.numpy()[kept])
            for way in (form, fb.compile(form, dynamic=True)):
                leaf = x.clone().requires_grad_()
                y = way(leaf)
                np.testing.assert_array_equal(y.detach(), x.numpy()[kept])
                y.sum().backward()
                np.testing.assert_array_equal(leaf.grad, reached)
    np.testing.assert_array_equal(fb.vmap(lambda x: x[::step])(dense), values[:, :1])


@pytest.mark.parametrize("form", ["scatter_", "scatter_add_", "index_add_", "index_copy_"])
def test_a_refused_change_leaves_the_tensor_as_it_was(form):
    x = fb.zeros(5)
    with pytest.raises((RuntimeError, IndexError), match="out of"):
        getattr(x, form)(0, fb.tensor([0, 1, 7]), fb.ones(3))
    assert x.tolist() == [0.0] * 5
    out = fb.zeros(3)
    with pytest.raises(RuntimeError, match="out of bounds"):
        fb.gather(fb.ones(5), 0, fb.tensor([0, 1, 7]), out=out)
    assert out.tolist() == [0.0] * 3


def test_indices_that_are_written_to():
    x = fb.tensor([1, 0, 3, 2])
    x.scatter_(0, x, fb.tensor([10, 20, 30, 40]))
    assert x.tolist() == [20, 10, 40, 30]


def test_extremes_that_wrap_around():
    with pytest.raises(RuntimeError, match="too many bins"):
        fb.bincount(fb.tensor([2**63 - 1]))
    edges = fb.tensor([-1.7e308, 0.0, 1.7e308], dtype=fb.float64)
    assert fb.histc(edges, bins=4).tolist() == [1.0, 0.0, 1.0, 1.0]
    with pytest.raises(RuntimeError, match="too large"):
        fb.zeros(4)[2:].resize_(2**59)


def test_memory_that_is_not_aligned():
    x = fb.from_numpy(np.zeros(17, np.uint8)[1:])
    with pytest.raises(RuntimeError, match="not aligned"):
        x.view(fb.float64)
    with pytest.raises(RuntimeError, match="Could not infer dtype"):
        fb.tensor(np.longdouble(1))


def test_a_source_without_dims_fits_a_vector_alone():
    one = fb.tensor([0])
    assert fb.index_copy(fb.zeros(2), 0, one, fb.tensor(3.0)).tolist() == [3, 0]
    with pytest.raises(RuntimeError, match="must have same slice shapes"):
        fb.index_copy(fb.zeros(3, 4), 0, one, fb.tensor(3.0))
    # As in PyTorch, index_add takes none.
    with pytest.raises(RuntimeError, match="source tensor shape must match self tensor shape"):
        fb.index_add(fb.zeros(2), 0, one, fb.tensor(3.0))


def test_whole_numbers_are_not_rounded_to_decimals():
    with pytest.raises(NotImplementedError, match="with decimals not implemented for 'Long'"):
        fb.round(fb.tensor([5, 15]), decimals=-1)


@pytest.mark.parametrize(
    "hold",
    [lambda x: x.numpy(), lambda x: x.__dlpack__(), lambda x: memoryview(x.untyped_storage())],
)
def test_memory_that_others_look_at_stays_where_it_is(hold):
    x = fb.arange(4.0)
    held = hold(x)
    with pytest.raises(RuntimeError, match="still in use"):
        x.resize_(1 << 20)
    assert x.tolist() == [0, 1, 2, 3]
    del held
    assert x.resize_(1 << 12)[:4].tolist() == [0, 1, 2, 3]


def test_a_storage_that_shrinks_leaves_its_tensors_readable():
    x = fb.ones(1 << 20)
    x.untyped_storage().resize_(16)
    assert x[:4].tolist() == [1] * 4 and x.sum() < 1 << 20  # the pages beyond were given back
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 16"):
        x.untyped_storage().resize_(16), x.as_strided((5,), (1,))


@pytest.mark.parametrize(
    "call",
    [
        lambda: fb.zeros(3).tensor_split(2**62),
        lambda: fb.zeros(0).chunk(2**62),
        lambda: fb.zeros(1).expand(2**40).unbind(),
        lambda: fb.zeros(1).expand(2**40).split(1),
    ],
)
def test_more_views_than_memory_holds(call):
    with pytest.raises(RuntimeError, match="expected at most 16777216 views"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: fb.nn.functional.pad(fb.zeros(3), (2**62, 2**62)),
        lambda: fb.arange(10).unfold(0, 2**63 - 1, 1),
        lambda: fb.zeros(3).as_strided((2,), (1,), 2**62),
        lambda: fb.zeros(3).as_strided((2,), (0,), 2**63 - 1),
        lambda: fb.zeros(2**40, 2**40),
        lambda: fb.zeros(3).repeat(2**62, 4),
    ],
)
def test_sizes_that_overflow(call):
    with pytest.raises(RuntimeError, match=r"overflows|fit in 64 bits|out of bounds|maximum size"):
        call()


def test_triangles_of_absurd_matrices():
    most = 2**63 - 1
    assert fb.triu_indices(most, 5, 1)[1].tolist() == [1, 2, 3, 4, 2, 3, 4, 3, 4, 4]
    expected = [[most - 2, most - 1, most - 1], [0, 0, 1]]
    assert fb.tril_indices(most, 2, 2 - most).tolist() == expected
    for row, col, k in ((4, 3, 0), (4, 3, -2), (3, 5, 1), (2, 2, 3), (3, 0, 0), (0, 3, 0)):
        want = np.stack(np.triu_indices(row, k, col))
        np.testing.assert_array_equal(fb.triu_indices(row, col, k).numpy(), want)
        want = np.stack(np.tril_indices(row, k, col))
        np.testing.assert_array_equal(fb.tril_indices(row, col, k).numpy(), want)
    with pytest.raises(NotImplementedError, match="ComplexFloat"):
        fb.zeros(2, dtype=fb.complex64).random_()


def test_shapes_that_broadcasting_makes_too_large():
    wide, tall = fb.ones(1).expand(1 << 58), fb.ones(5, 2, 5, 1)
    for f in (fb.heaviside, fb.add, fb.maximum, lambda a, b: fb.where(a > 0, a, b)):
        with pytest.raises(RuntimeError, match="overflows|not enough memory|too large"):
            f(wide, tall)
    empty = fb.ones(1, 0).expand(1 << 58, 0)
    assert (empty + fb.ones(1, 1)).shape == (1 << 58, 0)
