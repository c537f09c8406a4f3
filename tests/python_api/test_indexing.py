"""Indexing, read and write, against NumPy on random keys, and the errors of bad keys."""

import numpy as np
import pytest

import flambeau as fb


def random_part(rng, size, advanced):
    kind = rng.integers(0, 6 if advanced else 3)
    if kind == 0:
        return int(rng.integers(-size, size)) if size else slice(None)
    if kind in (1, 2):
        first, last = (
            None if rng.random() < 0.3 else int(rng.integers(-size - 2, size + 3)) for _ in range(2)
        )
        step = None if rng.random() < 0.5 else int(rng.integers(1, 4))
        return slice(first, last, step)
    if size == 0:
        return slice(None)
    if kind == 3:
        return rng.integers(-size, size, 3)
    if kind == 4:
        return [int(i) for i in rng.integers(-size, size, 3)]
    return rng.integers(-size, size, (2, 3))


def random_key(rng, shape, advanced):
    parts = [random_part(rng, n, advanced) for n in shape[: rng.integers(0, len(shape) + 1)]]
    if rng.random() < 0.3:
        parts.insert(rng.integers(0, len(parts) + 1), None)
    if rng.random() < 0.3:
        # The parts behind an ellipsis count from the last dimension: keep those that fit there.
        at = int(rng.integers(0, len(parts) + 1))
        if all(p is None or isinstance(p, slice) for p in parts[at:]):
            parts.insert(at, Ellipsis)
    return tuple(parts)


def shapes_broadcast(key):
    arrays = [np.asarray(p) for p in key if isinstance(p, (list, np.ndarray))]
    try:
        np.broadcast_shapes(*(a.shape for a in arrays))
    except ValueError:
        return False
    return True


def as_tensors(key):
    return tuple(fb.from_numpy(p) if isinstance(p, np.ndarray) else p for p in key)


def mixes_numbers_with_arrays(key):
    """NumPy counts a number beside arrays among the advanced parts, which moves dimensions."""
    return any(isinstance(p, int) for p in key) and any(
        isinstance(p, (list, np.ndarray)) for p in key
    )


@pytest.mark.parametrize("advanced", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_random_keys_read_and_write_as_in_numpy(seed, advanced):
    rng = np.random.default_rng(seed)
    done = 0
    while done < 400:
        shape = tuple(int(n) for n in rng.integers(0, 5, rng.integers(1, 5)))
        a = rng.standard_normal(shape).astype(np.float32)
        key = random_key(rng, shape, advanced)
        if not shapes_broadcast(key) or mixes_numbers_with_arrays(key):
            continue
        expected = a[key]
        x = fb.tensor(a)
        y = x[as_tensors(key)]
        assert tuple(y.shape) == expected.shape, key
        np.testing.assert_array_equal(y.numpy(), expected)
        # Repeated positions would leave the order of writes to the library: one value for all.
        a[key] = 7.0
        x[as_tensors(key)] = 7.0
        np.testing.assert_array_equal(x.numpy(), a)
        done += 1


def test_write_of_tensors_broadcasts():
    x = fb.zeros(3, 4)
    x[1:, ::2] = fb.tensor([1.0, 2.0])
    x[0] = fb.ones(1, 1, 4)
    assert x.tolist() == [[1, 1, 1, 1], [1, 0, 2, 0], [1, 0, 2, 0]]


def test_basic_keys_are_views():
    x = fb.arange(12).view(3, 4)
    for key in (0, slice(1, 3), (slice(None), 1), None, Ellipsis, (0, slice(None, None, 2))):
        y = x[key]
        assert y.untyped_storage() == x.untyped_storage()
    assert x[:] is not x


def test_boolean_keys():
    a = np.arange(6).reshape(2, 3)
    x = fb.tensor(a)
    mask = a % 2 == 0
    np.testing.assert_array_equal(x[fb.tensor(mask)].numpy(), a[mask])
    np.testing.assert_array_equal(x[:, [True, False, True]].numpy(), a[:, [True, False, True]])
    np.testing.assert_array_equal(x[True].numpy(), a[True])
    np.testing.assert_array_equal(x[False].numpy(), a[False])
    x[x > 2] = 0
    a[a > 2] = 0
    np.testing.assert_array_equal(x.numpy(), a)


def test_numbers_of_other_libraries_and_0d_tensors():
    x = fb.arange(5)
    assert x[np.int64(2)].item() == 2
    assert x[fb.tensor(3)].item() == 3
    assert x[fb.tensor(1) : fb.tensor(3)].tolist() == [1, 2]
    assert x[range(2)].tolist() == [0, 1]
    assert x[[]].shape == (0,)


def test_gradients_flow_through_views_of_one_key():
    x = fb.ones(4, 4, requires_grad=True)
    x[1:3, ::2].sum().backward()
    expected = np.zeros((4, 4))
    expected[1:3, ::2] = 1
    np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_write_of_recorded_values_into_a_view():
    x = fb.zeros(3, 2)
    v = fb.ones(2, requires_grad=True)
    x[1] = v * 3
    x.sum().backward()
    assert v.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        (5, IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
        ((0, 0), IndexError, "too many indices for tensor of dimension 1"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (
            0.5,
            IndexError,
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
            "valid indices (got float)",
        ),
    ],
)
def test_errors(key, error, message):
    with pytest.raises(error) as caught:
        fb.ones(3)[key]
    assert str(caught.value) == message


def test_0d_tensors_cannot_be_indexed():
    x = fb.tensor(1.0)
    with pytest.raises(IndexError, match=r"invalid index of a 0-dim tensor. Use `tensor.item\(\)`"):
        x[0]
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(x)
    with pytest.raises(TypeError, match=r"len\(\) of a 0-d tensor"):
        len(x)


def test_iteration_and_membership():
    x = fb.arange(3)
    assert [v.item() for v in x] == [0, 1, 2]
    assert 1 in x
    assert 5 not in x
    assert len(x) == 3
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar"):
        "a" in x  # noqa: B015


def test_assignment_of_other_objects():
    with pytest.raises(TypeError, match="can't assign a list to a torch.FloatTensor"):
        fb.zeros(3)[0] = [1]
    with pytest.raises(TypeError, match="does not support deleting"):
        del fb.zeros(3)[0]


@pytest.mark.parametrize("made", [np.asarray, lambda m: m.tolist(), fb.tensor],
                         ids=["array", "list", "tensor"])  # fmt: skip
def test_masks_of_several_dims_beside_other_parts(made):
    a = np.arange(24.0).reshape(2, 3, 4)
    x = fb.tensor(a)
    mask = np.array([[True, False, True], [False, False, True]])
    m = made(mask)
    for got, want in [
        (x[m, ..., 0], a[mask, ..., 0]),
        (x[m, 0], a[mask, 0]),
        (x[m, ...], a[mask, ...]),
        (x[m, ..., 1:3], a[mask, ..., 1:3]),
        (x[None, m, ..., 0], a[mask, ..., 0][None]),
        (x[..., made(np.array([True, False, True, True]))], a[..., [True, False, True, True]]),
        (x.permute(2, 0, 1)[..., m], np.transpose(a, (2, 0, 1))[..., mask]),
    ]:
        np.testing.assert_array_equal(got.numpy(), want)
    x[m, ..., 0] = -1
    a[mask, ..., 0] = -1
    np.testing.assert_array_equal(x.numpy(), a)
    with pytest.raises(IndexError, match="too many indices"):
        x[m, 0, 0]
