"""Arguments of calls: forms that are accepted, and the messages of those that are not."""

import contextlib

import numpy as np
import pytest

import flambeau as fb
from flambeau._trace.meanings import fits
from tools._fuzz_check import allocated


def message(error, f):
    with pytest.raises(error) as caught:
        f()
    return str(caught.value)


def test_sizes_one_by_one_or_as_a_sequence():
    x = fb.arange(6)
    assert x.view(2, 3).shape == x.view((2, 3)).shape == x.view([2, 3]).shape == (2, 3)
    assert x.view(fb.Size([2, 3])).shape == (2, 3)
    assert x.view(-1).shape == (6,)
    assert fb.zeros(2, 3).shape == fb.zeros((2, 3)).shape == (2, 3)
    assert fb.zeros(fb.tensor(2), np.int64(3)).shape == (2, 3)
    assert fb.ones(2, 3, 4).permute(2, 0, 1).shape == (4, 2, 3)


def test_names_of_numpy():
    x = fb.ones(2, 3)
    assert x.sum(axis=0).shape == (3,)
    assert x.sum(dim=0, keepdims=True).shape == (1, 3)
    assert fb.add(input=x, other=x)[0, 0].item() == 2
    assert fb.add(self=x, other=x)[0, 0].item() == 2


def test_types_as_dtypes():
    assert fb.zeros(1, dtype=float).dtype is fb.float64
    assert fb.zeros(1, dtype=int).dtype is fb.int64
    assert fb.zeros(1, dtype=bool).dtype is fb.bool


def test_numpy_scalars_are_numbers():
    x = fb.ones(2)
    assert (x * np.float64(2)).dtype is fb.float32
    assert (np.float32(2) * x).tolist() == [2, 2]
    assert (x + np.int64(1)).tolist() == [2, 2]


def test_arrays_beside_tensors():
    y = fb.ones(3) + np.ones(3)
    assert isinstance(y, fb.Tensor)
    assert y.dtype is fb.float64


def test_out():
    x, out = fb.ones(3), fb.empty(3)
    assert fb.add(x, x, out=out) is out
    assert out.tolist() == [2, 2, 2]
    values, indices = fb.empty(0), fb.empty(0, dtype=fb.int64)
    result = fb.sort(fb.tensor([3.0, 1.0]), out=(values, indices))
    assert result.values is values
    assert indices.tolist() == [1, 0]


@pytest.mark.parametrize("compiled", [False, True])
def test_two_numbers_make_a_tensor(compiled):
    def results(x):
        return (
            fb.add(2, 3), fb.sub(2, 3.5), fb.mul(True, 2), fb.div(7, 2), fb.div(1j, 2),
            fb.floor_divide(-7, 2), fb.div(x.shape[0], 2, rounding_mode="trunc"),
            fb.add(1, 2, alpha=3), fb.add(2, 3) + fb.ones((), dtype=fb.int8),
        )  # fmt: skip

    f = fb.compile(results) if compiled else results
    for n in (5, 9):
        found = f(fb.ones(n))
        expected = [5, -1.5, 2, 3.5, 0.5j, -4, n // 2, 7, 6]
        assert [t.item() for t in found] == expected
        kinds = [type(value) for value in expected]
        dtypes = {int: fb.int64, float: fb.float32, complex: fb.complex64}
        assert [t.dtype for t in found] == [dtypes[k] for k in kinds]
    with pytest.raises(TypeError):
        fb.maximum(2, 3)


@pytest.mark.filterwarnings("ignore:.*this order of arguments is deprecated")
def test_orders_of_arguments_that_pytorch_had_once():
    x, y, z = fb.tensor([1.0, 2.0]), fb.tensor([3.0, 5.0]), fb.tensor([2.0, 4.0])
    assert fb.add(x, 2, y).tolist() == x.add(2, y).tolist() == [7, 12]
    assert x.clone().add_(-0.5, y).tolist() == [-0.5, -0.5]
    assert fb.sub(x, 2, y).tolist() == x.sub(2, y).tolist() == [-5, -8]
    assert x.clone().sub_(2, y).tolist() == [-5, -8]
    assert fb.addcmul(x, 2, y, z).tolist() == x.addcmul(2, y, z).tolist() == [13, 42]
    assert x.clone().addcmul_(2, y, z).tolist() == [13, 42]
    assert fb.addcdiv(x, 4, y, z).tolist() == x.addcdiv(4, y, z).tolist() == [7, 7]
    assert x.clone().addcdiv_(4, y, z).tolist() == [7, 7]
    out = fb.empty(2)
    assert fb.add(x, 2, y, out=out) is out and out.tolist() == [7, 12]
    assert fb.add(x, alpha=2, other=y).tolist() == [7, 12]


@pytest.mark.filterwarnings("ignore:.*this order of arguments is deprecated")
def test_matrix_products_with_their_factors_in_front():
    a = {
        "addmm": [(2, 4), (2, 3), (3, 4)],
        "addmv": [(2,), (2, 3), (3,)],
        "addr": [(2, 4), (2,), (4,)],
        "baddbmm": [(5, 2, 4), (5, 2, 3), (5, 3, 4)],
        "addbmm": [(2, 4), (5, 2, 3), (5, 3, 4)],
    }
    rng = np.random.default_rng(0)
    for name, shapes in a.items():
        x, b, c = (fb.tensor(rng.standard_normal(shape)) for shape in shapes)
        f, method = getattr(fb, name), getattr(x, name)
        in_place = lambda *given, x=x, name=name: getattr(x.clone(), name + "_")(*given)  # noqa: E731
        both = x * 2 + (f(x * 0, b, c)) * 3
        for got in (f(2, x, 3, b, c), method(2, 3, b, c), in_place(2, 3, b, c)):
            np.testing.assert_allclose(got, both, rtol=1e-12)
        first = x * 2 + f(x * 0, b, c)
        for got in (f(2, x, b, c), method(2, b, c), in_place(2, b, c)):
            np.testing.assert_allclose(got, first, rtol=1e-12)


def test_named_results():
    r = fb.sort(fb.tensor([3.0, 1.0]))
    assert repr(r) == (
        "torch.return_types.sort(\nvalues=tensor([1., 3.]),\nindices=tensor([1, 0]))"
    )
    values, indices = r
    assert values is r.values
    assert indices is r[1]


def test_factory_keywords():
    x = fb.zeros(2, requires_grad=True, pin_memory=False, layout=fb.strided, device="cpu")
    assert x.requires_grad
    assert message(AssertionError, lambda: fb.zeros(1, device="cuda"))
    assert "floating point" in message(
        RuntimeError, lambda: fb.zeros(1, dtype=fb.int64, requires_grad=True)
    )


MESSAGES = [
    (
        lambda x: x.flip(1.5),
        "flip(): argument 'dims' (position 1) must be tuple of ints, not float",
    ),
    (
        lambda x: fb.cat(x),
        "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor",
    ),
    (lambda x: fb.cat([x, 1]), "expected Tensor as element 1 in argument 0, but got int"),
    (lambda x: x.size("a"), "size(): argument 'dim' (position 1) must be int, not str"),
    (lambda x: x.transpose(0), 'transpose() missing 1 required positional arguments: "dim1"'),
    (lambda x: x.unsqueeze(0, 1), "unsqueeze() takes 1 positional argument but 2 were given"),
    (
        lambda x: x.unsqueeze(0, dim=1),
        "unsqueeze() got multiple values for argument 'dim'",
    ),
    (lambda x: x.unsqueeze(0, foo=1), "unsqueeze() got an unexpected keyword argument 'foo'"),
    (lambda x: fb.tensor(), 'tensor() missing 1 required positional arguments: "data"'),
    (
        lambda x: fb.zeros(2, 1.5),
        "zeros(): argument 'size' failed to unpack the object at pos 2 with error "
        '"type must be tuple of ints,but got float"',
    ),
    (lambda x: fb.relu([1]), "relu(): argument 'input' (position 1) must be Tensor, not list"),
    (lambda x: x.add([1]), "add(): argument 'other' (position 1) must be Tensor, not list"),
    (lambda x: fb.add(x, [1]), "add(): argument 'other' (position 2) must be Tensor, not list"),
    (lambda x: fb.add(x, other=[1]), "add(): argument 'other' must be Tensor, not list"),
]


@pytest.mark.parametrize(("call", "expected"), MESSAGES)
def test_messages(call, expected):
    assert message(TypeError, lambda: call(fb.ones(2, 3))) == expected


def test_message_of_an_overload_set_lists_its_signatures():
    text = message(TypeError, lambda: fb.ones(2).to("cpu", "cpu"))
    start = (
        "to() received an invalid combination of arguments - got (str, str), but expected one of:"
    )
    assert text.startswith(start + "\n * (torch.dtype dtype, bool non_blocking = False, bool copy")
    assert " * (torch.device device = None, torch.dtype dtype = None" in text


def test_operators_leave_unknown_operands_to_the_other_side():
    class Other:
        def __radd__(self, other):
            return "mine"

    assert fb.ones(1) + Other() == "mine"
    assert (fb.ones(1) == None) is False  # noqa: E711
    text = message(TypeError, lambda: fb.ones(1) + [1])
    assert text == "unsupported operand type(s) for +: 'Tensor' and 'list'"


def test_conversions_to_numbers():
    assert float(fb.tensor(1.5)) == 1.5
    assert int(fb.tensor(2.7)) == 2
    assert complex(fb.tensor(3)) == 3
    assert [10, 20][fb.tensor(1)] == 20
    assert f"{fb.tensor(3.14159):.2f}" == "3.14"
    assert bool(fb.tensor([0.0])) is False
    assert "ambiguous" in message(RuntimeError, lambda: bool(fb.ones(2)))
    assert "only one element" in message(ValueError, lambda: float(fb.ones(2)))
    assert "only integer tensors" in message(TypeError, lambda: [1][fb.tensor(0.0)])
    assert message(RuntimeError, lambda: fb.ones(2).item()) == (
        "a Tensor with 2 elements cannot be converted to Scalar"
    )


def test_tensor_with_dims_is_no_number():
    one, x = fb.tensor([0.5]), fb.rand(3)
    assert fb.clamp(fb.tensor(1.0), one, one).shape == (1,)
    assert fb.clamp(fb.rand(1), fb.rand(1, 1), one).shape == (1, 1)
    assert fb.add(x, x, alpha=one[0]).shape == (3,)
    for call in (
        lambda: fb.add(x, x, alpha=one),
        lambda: fb.full((2,), one),
        lambda: fb.nn.functional.leaky_relu(x, one),
    ):
        with pytest.raises(TypeError, match="Tensor"):
            call()


def test_numbers_with_imaginary_parts_beside_real_tensors():
    x = fb.ones(2)
    for call in (
        lambda: fb.add(x, x, alpha=1j),
        lambda: x.clone().sub_(x, alpha=2 - 1j),
        lambda: fb.rsub(x, x, alpha=1j),
        lambda: fb.addcmul(x, x, x, value=1j),
        lambda: fb.addcdiv(x, x, x, value=1j),
        lambda: fb.compile(lambda x: fb.addcmul(x, x, x, value=1j))(x),
    ):
        with pytest.raises(RuntimeError, match="must not be a complex|without overflow"):
            call()
    assert fb.addcmul(x + 0j, x, x, value=1j).tolist() == [1 + 1j, 1 + 1j]
    assert fb.add(x, x + 0j, alpha=1j).tolist() == [1 + 1j, 1 + 1j]


@pytest.mark.parametrize("compiled", [False, True])
def test_complex_factors(compiled):
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(5) + 1j * rng.standard_normal(5) for _ in range(3))
    v, g = 1.5 - 0.7j, np.arange(5) - 2j
    for f, expected, slopes in (
        (lambda x, y, z: fb.add(x, y, alpha=v), a + v * b, (g, g * np.conj(v), 0)),
        (lambda x, y, z: fb.sub(x, y, alpha=v), a - v * b, (g, -g * np.conj(v), 0)),
        (lambda x, y, z: fb.rsub(x, y, alpha=v), b - v * a, (-g * np.conj(v), g, 0)),
        (
            lambda x, y, z: fb.addcmul(x, y, z, value=v),
            a + v * b * c,
            (g, g * np.conj(v * c), g * np.conj(v * b)),
        ),
        (
            lambda x, y, z: fb.addcdiv(x, y, z, value=v),
            a + v * b / c,
            (g, g * np.conj(v / c), -g * np.conj(v * b / c**2)),
        ),
    ):
        x, y, z = (fb.tensor(t, requires_grad=True) for t in (a, b, c))
        result = (fb.compile(f) if compiled else f)(x, y, z)
        np.testing.assert_allclose(result.detach().numpy(), expected, rtol=1e-12)
        result.backward(fb.tensor(g))
        for t, slope in zip((x, y, z), slopes, strict=True):
            found = 0 if t.grad is None else t.grad.numpy()
            np.testing.assert_allclose(found, slope, rtol=1e-12)


def test_numbers_with_imaginary_parts_where_real_ones_are_wanted():
    x, at = fb.ones(2), fb.tensor([0])
    for call in (
        lambda: x.scatter(0, at, 1j),
        lambda: x.clone().scatter_(0, at, 1j),
        lambda: x.index_add(0, at, fb.ones(1), alpha=1j),
        lambda: fb.arange(1j),
        lambda: fb.histc(x, 3, 1j, 2),
        lambda: fb.lerp(x, x, 1j),
        lambda: fb._foreach_lerp_([x.clone()], [x], 1j),
        lambda: fb.bucketize(1j, x),
        lambda: x.index_put((at,), fb.tensor(1j)),
        lambda: float(fb.tensor(1j)),
        lambda: fb.as_tensor(1j, dtype=fb.int64),
    ):
        with pytest.raises((RuntimeError, TypeError), match="without overflow|no order|of dtype"):
            call()
    assert fb.arange(3 + 0j).tolist() == [0, 1, 2]
    assert x.scatter(0, at, 3 + 0j).tolist() == [3, 1]
    assert (x + 0j).scatter(0, at, 1j).tolist() == [1j, 1]
    assert fb.lerp(x + 0j, x + 1 + 0j, 0.5j).tolist() == [1 + 0.5j, 1 + 0.5j]


def test_one_entry_of_another_dtype_is_written_through_masks():
    x, mask = fb.zeros(2, 3), fb.tensor([True, False, True])
    x[:, mask] = fb.tensor([3])
    x[fb.tensor([False, True]), 1] = fb.tensor(4.5, dtype=fb.float64)
    assert x.tolist() == [[3, 0, 3], [3, 4.5, 3]]
    for indices, values in (((mask,), [1, 2]), ((fb.tensor([0]),), [1])):
        with pytest.raises(RuntimeError, match="expected values of dtype float32, got int64"):
            fb.zeros(3).index_put_(indices, fb.tensor(values))


@pytest.mark.parametrize("compiled", [False, True])
def test_numbers_that_a_dtype_cannot_hold(compiled):
    at = fb.tensor([0])
    calls = (
        ("fill_", "value", lambda x, v: x.clone().fill_(v)),
        ("masked_fill", "value", lambda x, v: x.masked_fill(x == 1, v)),
        ("full", "fill_value", lambda x, v: fb.full((2,), v, dtype=x.dtype)),
        ("scatter", "value", lambda x, v: x.scatter(0, at, v)),
        ("index_fill", "value", lambda x, v: x.index_fill(0, at, v)),
        ("where", "other", lambda x, v: fb.where(x == 1, x, v)),
        ("where", "input", lambda x, v: fb.where(x == 1, v, x)),
        ("clamp", "max", lambda x, v: x.clamp(max=v)),
        ("clamp", "min", lambda x, v: x.clamp(v, v)),
        ("pow", "exponent", lambda x, v: x**v),
        ("add", "alpha", lambda x, v: fb.add(x, x, alpha=v)),
        ("rsub", "alpha", lambda x, v: fb.rsub(x, x, alpha=v)),
        ("addcmul", "value", lambda x, v: fb.addcmul(x, x, x, value=v)),
        ("index_add", "alpha", lambda x, v: x.index_add(0, at, x[:1], alpha=v)),
        ("addmm", "beta", lambda x, v: fb.addmm(*[x.expand(2, 2)] * 3, beta=v)),
        ("fill_", "value", lambda x, v: fb.full_like(x, v)),
        ("constant_pad_nd", "value", lambda x, v: fb.nn.functional.pad(x, (1, 1), value=v)),
    )
    for op, argument, call in calls:
        f = fb.compile(call) if compiled else call
        said = f"^{op}: value cannot be .* uint8 without overflow: {argument}=300"
        with pytest.raises(RuntimeError, match=said):
            f(fb.tensor([1, 2], dtype=fb.uint8), 300)
    fills = [call for *_, call in calls[:5]]
    for dtype, numbers in (
        (fb.uint8, (-1.5, 256.0, float("nan"), -256)),
        (fb.int8, (128, -129, 1e3)),
        (fb.int64, (float("inf"), 9.3e18)),
        (fb.float16, (65505, -1e9)),
        (fb.float32, (1e39,)),
        (fb.complex64, (1e39j,)),
    ):
        for v in numbers:
            for call in fills:
                f = fb.compile(call) if compiled else call
                with pytest.raises(RuntimeError, match="without overflow"):
                    f(fb.ones(2, dtype=dtype), v)
    assert fb.full((1,), -255, dtype=fb.uint8).tolist() == [1]
    assert fb.full((1,), 255.0, dtype=fb.uint8).tolist() == [255]
    assert fb.full((1,), 1.2e19, dtype=fb.uint64).tolist() == [12 * 10**18]
    assert fb.full((1,), float("inf"), dtype=fb.float16).tolist() == [float("inf")]


def test_the_compiler_and_eager_agree_on_which_numbers_fit():
    def stored(v, dtype):
        try:
            fb.full((1,), v, dtype=dtype)
        except RuntimeError:
            return False
        return True

    whole = [s * 2**n + d for s in (-1, 1) for n in (7, 8, 15, 16, 31, 32) for d in (-1, 0, 1)]
    odd = [-(2**63), 2**63 - 1, 2**63, 2**64 - 1, True, -0.5, 255.5, 65504.5, 3.5e38, 1e300]
    odd += [-(2.0**63), 2.0**63, 2.0**64, 3.4028234663852886e38, 65505.0, np.nan, np.inf, -np.inf]
    odd += [1j, 2 + 0j, 300 + 0j, complex(1, 1e39), complex(np.inf, 1), complex(1e39, 0)]
    integers = (fb.uint8, fb.uint16, fb.uint32, fb.uint64, fb.int8, fb.int16, fb.int32, fb.int64)
    others = (fb.bool, fb.float16, fb.bfloat16, fb.float32, fb.float64, fb.complex64, fb.complex128)
    for dtype in integers + others:
        for v in whole + [float(v) for v in whole] + odd:
            assert fits(v, dtype) == stored(v, dtype), (dtype, v)
    for dtype in integers:
        low, high = fb.iinfo(dtype).min, fb.iinfo(dtype).max
        for v in whole:
            # Whole numbers below zero wrap in unsigned dtypes, fractional ones do not.
            assert fits(v, dtype) == ((low or -high) <= v <= high), (dtype, v)
            assert fits(float(v), dtype) == (low <= v <= high), (dtype, v)


@pytest.mark.parametrize("compiled", [False, True])
def test_entries_of_half_formats_take_infinities_for_what_is_too_large(compiled):
    def f(x, v):
        x = x.clone()
        x[0] = v
        x[x < 0] = v
        x[fb.tensor([3])] = v
        return x

    call = fb.compile(f) if compiled else f
    x = fb.tensor([1.0, 2.0, -3.0, 4.0], dtype=fb.float16)
    for v, held in ((1e5, np.inf), (-1e9, -np.inf), (65510.0, 65504.0), (3.0, 3.0)):
        assert call(x, v).tolist() == [held, 2, held, held]


@pytest.mark.parametrize("compiled", [False, True])
def test_tensors_of_one_entry_are_numbers_among_data(compiled):
    x = fb.tensor([1.5, 2.0])
    for make, expected in (
        (lambda x: fb.tensor([x[:1], x[1:]]), [1.5, 2]),
        (lambda x: fb.tensor([x[:1].reshape(1, 1), x[1]]), [1.5, 2]),
        (lambda x: fb.tensor([x[:1], 5]), [1.5, 5]),
        (lambda x: fb.tensor([[x[:1]], [x[1:]]]), [[1.5], [2]]),
        (lambda x: fb.tensor([[3.0, 4.0], x]), [[3, 4], [1.5, 2]]),
    ):
        assert (fb.compile(make) if compiled else make)(x).tolist() == expected

    def wide(x):
        return fb.tensor([x, x])

    with pytest.raises(ValueError, match=r"only one element tensors .* got shape \[2\]"):
        (fb.compile(wide) if compiled else wide)(x)


def test_numbers_of_more_than_64_bits():
    x, wide = fb.ones(2), 2**70
    for error, call in (
        (OverflowError, lambda: x + wide),
        (OverflowError, lambda: fb.compile(lambda x: x + wide)(x)),
        (OverflowError, lambda: x.fill_(-wide)),
        (ValueError, lambda: x.sum(wide)),
        (ValueError, lambda: x[wide]),
        (TypeError, lambda: x.view(wide, 1)),
        (TypeError, lambda: fb.ones((wide,))),
        (ValueError, lambda: fb.manual_seed(wide)),
    ):
        with pytest.raises(error, match="Overflow when unpacking long long"):
            call()


def test_truths_count_as_whole_numbers_in_arange():
    assert fb.arange(True).dtype == fb.arange(0, 5, True).dtype == fb.int64
    assert fb.arange(False, 2.0).dtype == fb.float32
    with pytest.raises(TypeError, match="invalid types: .Tensor, !size=str!."):
        fb.nn.functional.interpolate(fb.ones(1, 1, 2), size="2")


def test_refused_numbers_leave_no_memory_behind():
    x, at = fb.ones(8, 3), fb.tensor([0])

    def refused(times):
        for _ in range(times):
            with contextlib.suppress(RuntimeError):
                x[at] = 1j

    refused(100)
    before = allocated()
    refused(1000)
    assert allocated() - before < 8000  # one number of each call


X = fb.arange(6.0).reshape(3, 2)
ONE = fb.tensor([1])


@pytest.mark.parametrize(
    "call",
    [
        lambda n: X.chunk(n),
        lambda n: X.transpose(n, 0),
        lambda n: X.cumsum(n),
        lambda n: X.softmax(n),
        lambda n: X.sort(n),
        lambda n: X.unsqueeze(n),
        lambda n: X.flatten(n),
        lambda n: X.index_select(n, fb.tensor([0])),
        lambda n: X.diagonal(n),
        lambda n: X.size(n),
        lambda n: X.select(n, 0),
        lambda n: X.median(n),
        lambda n: X.rot90(n),
        lambda n: fb.cat([X], n),
        lambda n: fb.linspace(0, 1, n),
        lambda n: fb.nn.functional.one_hot(fb.tensor([0]), n),
        lambda n: fb.tril_indices(n, 2),
        lambda n: fb.nn.functional.glu(X, n),
    ],
)
def test_a_tensor_with_dims_is_no_int(call):
    """Where one counts dims: a tensor without dims is a number, one with a dim is not."""
    plain, given = call(1), call(fb.tensor(1))
    for a, b in zip(*([v] if isinstance(v, (fb.Tensor, int)) else v for v in (plain, given)),
                    strict=True):  # fmt: skip
        assert a == b if isinstance(a, int) else a.equal(b)
    for wrong in (ONE, fb.tensor([[1]])):
        with pytest.raises(TypeError):
            call(wrong)


@pytest.mark.parametrize(
    "call",
    [
        lambda n: X.split(n)[0],
        lambda n: X.topk(n).values,
        lambda n: X.kthvalue(n).values,
        lambda n: X.narrow(0, 1, n),
        lambda n: X.select(0, n),
        lambda n: X.tril(n),
        lambda n: X.sum(n),
        lambda n: X.roll(n),
        lambda n: X.reshape(n, -1),
        lambda n: fb.eye(n),
        lambda n: fb.zeros(n, 2),
        lambda n: fb.bincount(fb.tensor([0]), minlength=n),
    ],
)
def test_a_tensor_of_one_element_is_a_size(call):
    for given in (fb.tensor(1), ONE, fb.tensor([[1]])):
        assert call(given).equal(call(1))


def test_a_start_is_a_tensor_without_dims():
    assert X.narrow(0, fb.tensor(1), 2).equal(X[1:])
    for wrong in (ONE, fb.tensor(1.0), fb.tensor(True)):
        with pytest.raises(RuntimeError, match="0-dim integral"):
            X.narrow(0, wrong, 1)


def test_sections_or_places():
    """A tensor with a dim holds places, one without is a number of sections."""
    assert [p.shape[1] for p in X.hsplit(ONE)] == [1, 1]
    assert [p.shape[0] for p in X.vsplit(ONE)] == [1, 2]
    assert [p.shape[1] for p in X.hsplit(fb.tensor(1))] == [2]


def test_type_takes_dtypes_legacy_types_and_their_names():
    assert X.type(fb.int32).dtype is X.type("torch.IntTensor").dtype is fb.int32
    assert X.type(fb.DoubleTensor).dtype is fb.float64
    for wrong in (int, float, bool, list, np.float32, fb.nn.Parameter, "int"):
        with pytest.raises(ValueError, match="invalid type"):
            X.type(wrong)
    for wrong in (5, ONE):
        with pytest.raises(TypeError, match=r"type\(\): expected dtype to be"):
            X.type(wrong)
