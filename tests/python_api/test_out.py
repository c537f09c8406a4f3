"""out=: what is refused, what is resized and said so; and the other warnings of operations."""

import warnings

import numpy as np
import pytest

import flambeau as torch

ELSEWHERE = (
    "Attempting to copy from device cpu to device meta, but cross-device copies are not allowed!"
)


def out(*shape, dtype=torch.float32, device=None):
    return torch.zeros(shape, dtype=dtype, device=device)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: torch.add(torch.ones(2), 1, out=out(2, dtype=torch.int64)),
         "result type Float can't be cast to the desired output type Long"),
        (lambda: torch.mm(torch.ones(2, 2), torch.ones(2, 2), out=out(2, 2, dtype=torch.float64)),
         "Expected out tensor to have dtype float, but got double instead"),
        (lambda: torch.topk(torch.ones(2), 1, out=(out(1), out(1))),
         "Expected out tensor to have dtype long int, but got float instead"),
        (lambda: torch.aminmax(torch.ones(2), dim=0, out=(out(), out(dtype=torch.float64))),
         "Expected out tensor to have dtype float, but got double instead"),
        (lambda: torch.max(torch.ones(2, 2), 1, out=(out(2), out(2, dtype=torch.int32))),
         "Expected out tensor to have dtype long int, but got int instead"),
        (lambda: torch.narrow_copy(torch.ones(2), 0, 0, 1, out=out(1, dtype=torch.float64)),
         "Expected out tensor to have dtype float, but got double instead"),
        (lambda: torch.masked_select(out(2), out(2) > 0, out=out(0, dtype=torch.int64)),
         "Expected out tensor to have dtype float, but got long int instead"),
        (lambda: torch.mm(torch.ones(2, 2) * 1j, torch.ones(2, 2) * 1j, out=out(2, 2)),
         "but got float instead"),
        (lambda: torch.stack([torch.ones(2) * 1j], out=out(1, 2)),
         "result type ComplexFloat can't be cast to the desired output type Float"),
        (lambda: torch.add(torch.ones(2), 1, out=out(2, device="meta")),
         ELSEWHERE),
        (lambda: torch.mm(torch.ones(2, 2), torch.ones(2, 2), out=out(2, 2, device="meta")),
         ELSEWHERE),
    ],
)  # fmt: skip
def test_refused(call, message):
    with pytest.raises(RuntimeError) as e:
        call()
    assert str(e.value).endswith(message)


@pytest.mark.parametrize("f", [lambda o: torch.add(torch.ones(3), 1, out=o),
                               lambda o: torch.cumsum(torch.ones(3), 0, out=o),
                               lambda o: torch.cat([torch.ones(3)], out=o)])  # fmt: skip
def test_resized(f):
    with pytest.warns(UserWarning, match=r"resized since it had shape \[2\], which does not match"):
        f(out(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(out(0))


def test_types_that_are_cast():
    assert torch.sum(torch.ones(3), 0, out=out(dtype=torch.float64)).item() == 3
    assert torch.sum(torch.tensor([0.7, 0.7]), 0, out=out(dtype=torch.int64)).item() == 0
    assert torch.cumsum(torch.tensor([1.7, 1.7]), 0, out=out(2, dtype=torch.int64)).tolist() == [
        1,
        2,
    ]
    assert torch.prod(torch.tensor([2j, 3j]), 0, out=out()).item() == 0
    assert torch.zeros(2, out=out(2, dtype=torch.int64)).dtype == torch.int64
    assert torch.arange(2, out=out(2)).tolist() == [0.0, 1.0]
    assert torch.zeros(2, out=out(2, device="meta")).is_meta


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda: torch.std(torch.ones(1)), r"std\(\): degrees of freedom is <= 0"),
        (lambda: torch.var(torch.ones(1, 2), 0), r"var\(\): degrees of freedom is <= 0"),
        (lambda: torch.var_mean(torch.ones(1)), r"var_mean\(\): degrees of freedom is <= 0"),
        (lambda: torch.cov(torch.ones(1)), r"cov\(\): degrees of freedom is <= 0"),
        (lambda: torch.tensor([1j]).float(), "Casting complex values to real discards"),
        (lambda: torch.zeros(1).copy_(torch.tensor([1j])), "Casting complex values to real"),
        (lambda: torch.ones(3)[torch.tensor([1, 0, 1]).byte()], "torch.uint8 is now deprecated"),
        (lambda: torch.ones(2, 3, 4).T, "x.T` on tensors of dimension other than 2"),
        (lambda: torch.meshgrid(torch.ones(2), torch.ones(2)), "pass the indexing argument"),
        (lambda: torch.nn.functional.mse_loss(torch.ones(2), torch.ones(2, 2)), "target size"),
    ],
)  # fmt: skip
def test_warnings(f, message):
    with pytest.warns(UserWarning, match=message):
        f()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match=message):
            f()


def test_fill_of_shared_elements():
    x = torch.ones(3).expand(2, 3)
    assert x.fill_(4).sum() == 24 and x.zero_().sum() == 0
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x.copy_(torch.ones(3))


def test_fill_with_a_tensor_has_a_gradient():
    v = torch.tensor(3.0, requires_grad=True)
    x = torch.zeros(2, 2).fill_(v)
    (x * torch.tensor([1.0, 2.0])).sum().backward()
    assert v.grad.item() == 6


def test_promotion_keeps_the_precision_of_tensors_with_dimensions():
    z = torch.tensor(1j, dtype=torch.complex128)
    assert torch.result_type(torch.ones(2), z) == torch.complex64
    assert (torch.ones(2) * z).dtype == torch.complex64
    assert (torch.ones(2, dtype=torch.float64) * 1j).dtype == torch.complex128
    assert (torch.ones(2, dtype=torch.int64) * z).dtype == torch.complex128


def test_parts_of_complex_numbers():
    with pytest.raises(
        RuntimeError, match="Expected object of scalar type Float but got scalar type Double"
    ):
        torch.complex(torch.ones(2), torch.ones(2).double())
    with pytest.raises(RuntimeError, match="Half, Float or Double tensors but got Long and Long"):
        torch.complex(torch.ones(2).long(), torch.ones(2).long())


def test_functions_of_python_for_each_entry():
    x = torch.arange(4.0).view(2, 2).t()
    assert x.apply_(lambda v: v + 1) is x and x.tolist() == [[1, 3], [2, 4]]
    x.map_(torch.tensor([10.0, 20.0]), lambda a, b: a * b)
    assert x.tolist() == [[10, 60], [20, 80]]
    x.map2_(torch.ones(2), torch.ones(2, 2), lambda a, b, c: a + b + c)
    assert x.tolist() == [[12, 62], [22, 82]]
    with pytest.raises(RuntimeError, match=r"Can't call apply_\(\) on Variable that requires grad"):
        torch.ones(1, requires_grad=True).apply_(abs)
    with pytest.raises(TypeError, match="map_"):
        x.map_(torch.ones(2).double(), max)


def test_none_of_several_results_is_written_unless_all_can_be():
    values, places = out(2), out(2)
    with pytest.raises(RuntimeError, match="dtype"):
        torch.cummin(torch.ones(2), 0, out=(values, places))
    assert values.tolist() == [0, 0]
    u, s, v = out(2, 2), out(2), torch.from_numpy(np.zeros(3, np.float32))
    with pytest.raises(RuntimeError, match="not resizable"):
        torch.linalg.svd(torch.eye(2), out=(u, s, v))
    assert u.tolist() == [[0, 0], [0, 0]] and s.tolist() == [0, 0]


def test_results_that_lie_over_an_input_read_elsewhere():
    x, index = torch.arange(3.0), torch.tensor([2, 1, 0])
    for call in (
        lambda: torch.gather(x, 0, index, out=x),
        lambda: torch.gather(index.clone(), 0, index[1:], out=index[:1]),
        lambda: torch.cat([x, x.clone()], out=x),
    ):
        with pytest.raises(RuntimeError, match="single memory location"):
            call()
    assert x.tolist() == [0, 1, 2] and index.tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    "f",
    [
        lambda x, i: torch.take(x, i, out=x),
        lambda x, i: torch.take(i, i, out=i),
        lambda x, i: torch.take(x, i[:2], out=x[3:5]),
        lambda x, i: torch.index_select(x, 0, i, out=x),
        lambda x, i: torch.take_along_dim(x, i, 0, out=x),
        lambda x, i: torch.masked_select(x, x >= 0, out=x),
        lambda x, i: torch.masked_select(x, x > 7, out=x[:2]),
        lambda x, i: torch.stack([x[:3], x[3:]], out=x.view(2, 3)),
    ],
)
def test_results_apart_from_inputs(f):
    with pytest.raises(RuntimeError, match="written-to tensor refer to a single memory location"):
        f(torch.arange(6.0), torch.arange(6))


def test_results_that_are_put_together_in_place():
    x, m = torch.arange(6.0), torch.arange(6.0).view(2, 3)
    assert torch.equal(torch.stack([x, x], out=out(2, 6)), torch.stack([x, x]))
    assert torch.equal(torch.vstack([x, x], out=out(2, 6)), torch.vstack([x, x]))
    assert torch.equal(torch.hstack([x, x], out=out(12)), torch.hstack([x, x]))
    assert torch.equal(torch.column_stack([x, x], out=out(6, 2)), torch.column_stack([x, x]))
    assert torch.equal(torch.dstack([m, m], out=out(2, 3, 2)), torch.dstack([m, m]))
    assert torch.equal(torch.diag(x, out=out(6, 6)), torch.diag(x))
    assert torch.equal(torch.kron(m, m, out=out(4, 9)), torch.kron(m, m))
    assert torch.equal(torch.inner(m, m, out=out(2, 2)), torch.inner(m, m))
    assert torch.equal(torch.vdot(x, x, out=out()), torch.vdot(x, x))
    assert torch.equal(torch.msort(-x, out=out(6)), torch.msort(-x))


EYE = torch.eye(2)
CAST = {
    "cat": lambda o: torch.cat([EYE], out=o),
    "stack": lambda o: torch.stack([EYE[0], EYE[1]], out=o),
    "hstack": lambda o: torch.hstack([EYE], out=o),
    "diff": lambda o: torch.diff(EYE, out=o),
    "kron": lambda o: torch.kron(EYE, EYE[:1, :1], out=o),
    "var": lambda o: torch.var(EYE, 0, out=o),
    "max of two": lambda o: torch.max(EYE, EYE, out=o),
    "pinv": lambda o: torch.linalg.pinv(EYE, out=o),
    "householder_product": lambda o: torch.linalg.householder_product(EYE, EYE[0], out=o),
}
EXACT = {
    "matmul": lambda o: torch.matmul(EYE, EYE, out=o),
    "tensordot": lambda o: torch.tensordot(EYE, EYE, 1, out=o),
    "multi_dot": lambda o: torch.linalg.multi_dot([EYE, EYE], out=o),
    "inner": lambda o: torch.inner(EYE, EYE, out=o),
    "cross": lambda o: torch.cross(torch.eye(3), torch.eye(3), dim=1, out=o),
    "inv": lambda o: torch.linalg.inv(EYE, out=o),
    "det": lambda o: torch.linalg.det(EYE, out=o),
    "cholesky": lambda o: torch.linalg.cholesky(EYE, out=o),
    "norm": lambda o: torch.linalg.norm(EYE, out=o),
    "solve": lambda o: torch.linalg.solve(EYE, EYE, out=o),
    "matrix_power": lambda o: torch.linalg.matrix_power(EYE, 2, out=o),
    "quantile": lambda o: torch.quantile(EYE, 0.5, 0, out=o),
    "renorm": lambda o: torch.renorm(EYE, 2, 0, 1.0, out=o),
    "clamp": lambda o: torch.clamp(EYE, 0, 1, out=o),
    "t_copy": lambda o: torch.t_copy(EYE, out=o),
    "sort": lambda o: torch.sort(EYE, out=(o, out(0, dtype=torch.int64)))[0],
    "median": lambda o: torch.median(EYE, 0, out=(o, out(0, dtype=torch.int64)))[0],
    "slogdet": lambda o: torch.slogdet(EYE, out=(o, out(0)))[0],
    "complex": lambda o: torch.view_as_real(torch.complex(EYE, EYE, out=o)),
}


@pytest.mark.parametrize("name", CAST)
def test_results_that_are_cast(name):
    want = CAST[name](out(0))
    assert CAST[name](out(0, dtype=torch.float64)).equal(want.double())
    assert CAST[name](out(0, dtype=torch.complex64)).equal(want + 0j)
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
        CAST[name](out(0, dtype=torch.int64))


@pytest.mark.parametrize("name", EXACT)
def test_results_that_are_not_cast(name):
    own = torch.complex64 if name == "complex" else torch.float32
    EXACT[name](out(0, dtype=own))
    for other in (torch.float64, torch.complex128, torch.float16, torch.int64):
        with pytest.raises(RuntimeError, match="[Ee]xpected out"):
            EXACT[name](out(0, dtype=other))


@pytest.mark.parametrize("f", [torch.all, torch.any])
def test_truths_may_be_bytes(f):
    x = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    assert f(x, 0, out=out(0, dtype=torch.uint8)).tolist() == f(x, 0).long().tolist()
    assert f(x, out=out(dtype=torch.uint8)).item() == int(f(x))
    for other in (torch.int8, torch.float32):
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype bool"):
            f(x, out=out(0, dtype=other))


@pytest.mark.parametrize(
    "f",
    [
        lambda o: torch.linspace(0, 1, 3, out=o),
        lambda o: torch.ones(3, out=o),
        lambda o: torch.zeros(3, out=o),
        lambda o: torch.full((3,), 1.0, out=o),
        lambda o: torch.eye(2, out=o),
        lambda o: torch.randn(3, out=o),
        lambda o: torch.rand(3, out=o),
        lambda o: torch.bernoulli(torch.ones(3), out=o),
    ],
)
def test_factories_resize_without_a_word(f):
    o = out(2)
    assert f(o) is o and o.numel() > 2


@pytest.mark.parametrize(
    "f",
    [
        lambda o: torch.arange(3, out=o),
        lambda o: torch.nonzero(torch.ones(3), out=o),
        lambda o: torch.tensordot(torch.ones(3).long(), torch.ones(3).long(), 1, out=o),
    ],
)
def test_others_say_that_they_resize(f):
    with pytest.warns(UserWarning, match="was resized"):
        f(out(2, dtype=torch.int64))


def test_complex_numbers_of_halves_are_refused():
    half = torch.ones(2).half()
    for f in (torch.complex, torch.polar):
        with pytest.raises(NotImplementedError, match="no complex numbers of two halves"):
            f(half, half)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda: torch.qr(EYE), "torch.qr is deprecated"),
        (lambda: torch.cholesky(EYE), "torch.cholesky is deprecated"),
        (lambda: torch.lu(EYE), "torch.lu is deprecated"),
        (lambda: torch.lu_solve(EYE, *torch.linalg.lu_factor(EYE)), "torch.lu_solve is deprecated"),
        (lambda: torch.triangular_solve(EYE, EYE), "torch.triangular_solve is deprecated"),
        (lambda: torch.chain_matmul(EYE, EYE), "torch.chain_matmul is deprecated"),
        (lambda: torch.cross(torch.eye(3), torch.eye(3)), "torch.cross without dim"),
        (lambda: torch.where(torch.ones(2).byte(), 1.0, 2.0), "a condition of uint8"),
        (lambda: float(torch.ones(1, requires_grad=True)), "has no gradient"),
        (lambda: complex(torch.ones(1, requires_grad=True)), "has no gradient"),
        (lambda: torch.tensor([np.ones(2), np.ones(2)]), "list of NumPy arrays"),
        (lambda: torch.as_tensor(([np.ones(2)],)), "list of NumPy arrays"),
        (lambda: torch.ones(2).new_tensor(torch.ones(2)), "To copy a tensor"),
        (lambda: torch.set_default_tensor_type(torch.FloatTensor), "is deprecated"),
        (lambda: torch.add(EYE, 2, EYE), "add: this order of arguments is deprecated"),
        (lambda: torch.stft(torch.ones(8), 4, return_complex=True), "without a window"),
        (lambda: torch.istft(torch.ones(3, 9) + 0j, 4), "expected the window"),
        (lambda: torch.stft(torch.ones(8), 4, window=torch.ones(4), return_complex=False),
         "return_complex=False is deprecated"),
        (lambda: torch.nn.functional.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2),
                                            padding="same"), "even reach"),
        (lambda: torch.autograd.Variable(torch.ones(1), volatile=True), "volatile has no effect"),
    ],
)  # fmt: skip
def test_warnings_of_calls_that_are_better_written_otherwise(f, message):
    with pytest.warns(UserWarning, match=message):
        f()


def test_what_is_well_written_is_not_warned_of():
    x = torch.ones(1, requires_grad=True)
    with torch.no_grad():
        assert float(x) == 1.0
    assert float(x.detach()) == x.item() == int(x) == 1
    assert torch.tensor([np.float32(1), 2.0]).tolist() == [1.0, 2.0]
    assert torch.nn.functional.conv1d(
        torch.ones(1, 1, 4), torch.ones(1, 1, 2), padding="same", dilation=2
    ).shape == (1, 1, 4)


def test_masks_of_two_kinds():
    m = torch.nn.MultiheadAttention(4, 2)
    x = torch.ones(3, 1, 4)
    hidden, added = torch.zeros(1, 3).bool(), torch.zeros(3, 3)
    with pytest.warns(UserWarning, match="of different dtypes"):
        m(x, x, x, key_padding_mask=hidden, attn_mask=added)
    with pytest.warns(UserWarning, match="of different dtypes"):
        torch.nn.TransformerEncoderLayer(4, 2, 8)(x, src_mask=added, src_key_padding_mask=hidden)
    m(x, x, x, key_padding_mask=hidden, attn_mask=added.bool())


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("to", ["int64", "float64", "float32", "complex64", "float16"])
@pytest.mark.parametrize("kind", ["uint8", "int8", "int16", "int32", "float16", "bfloat16"])
@pytest.mark.parametrize("op", ["add", "sub", "mul", "neg", "square", "addcmul", "add by 3"])
def test_out_does_not_change_what_is_computed(op, kind, to, compiled):
    kind, to = getattr(torch, kind), getattr(torch, to)
    if kind.is_floating_point and not (to.is_floating_point or to.is_complex):
        return
    if compiled and (op not in ("add", "neg") or to == torch.complex64):
        return
    top = torch.finfo(kind).max if kind.is_floating_point else torch.iinfo(kind).max
    x = torch.tensor([top, 3, 7, top // 2], dtype=torch.float64).to(kind)
    y = torch.tensor([top, 7, 3, 9], dtype=torch.float64).to(kind)
    f = {
        "add by 3": lambda x, y, **kw: torch.add(x, 3, **kw),
        "addcmul": lambda x, y, **kw: torch.addcmul(x, y, y, **kw),
    }.get(op, getattr(torch, op, None))
    if op in ("neg", "square"):
        f = {"neg": lambda x, y, **kw: torch.neg(x, **kw),
             "square": lambda x, y, **kw: torch.square(x, **kw)}[op]  # fmt: skip

    def call(x, y, out):
        return f(x, y, out=out)

    call = torch.compile(call) if compiled else call
    got = call(x, y, torch.empty(4, dtype=to))
    assert torch.equal(got, f(x, y).to(to)), (got, f(x, y))
