"""vmap by hand: what goes in and comes out, nesting, randomness, changes in place, refusals."""

import functools
import subprocess
import sys
import warnings

import pytest

import flambeau as fb
import flambeau.nn.functional as F
from flambeau.func import vmap


@pytest.fixture(autouse=True)
def no_loops():
    """An operation that falls back to the loop warns, and the warning fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def r(*shape):
    return fb.arange(1.0, 1.0 + fb.empty(shape).numel()).reshape(shape).sin()


def loop(f, *batched):
    return fb.stack([f(*sample) for sample in zip(*batched, strict=True)])


def close(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and fb.allclose(a, b, atol=1e-6)


TEN = {
    "add": (lambda x, y: fb.add(x, y, alpha=2), (2, 3), (3,)),
    "tanh": (lambda x, y: fb.tanh(x) * y, (2, 3), ()),
    "gelu": (lambda x, y: F.gelu(x, approximate="tanh") + y, (2, 3), (2, 1)),
    "sum": (lambda x, y: x.sum() + y.sum(0) + x.sum((0, 1), True).mean(), (2, 3), (3,)),
    "amax": (lambda x, y: x.amax(-1) * y.amax(), (2, 3), (2,)),
    "transpose": (lambda x, y: x.transpose(0, -1) * y, (2, 3), (2,)),
    "matmul": (lambda x, y: x @ y, (2, 3), (3, 4)),
    "matmul_vectors": (lambda x, y: x @ y, (3,), (3,)),
    "matmul_matrix_vector": (lambda x, y: x @ y, (2, 3), (3,)),
    "matmul_batch": (lambda x, y: x @ y, (5, 2, 3), (3, 4)),
    "softmax": (lambda x, y: x.softmax(-1) + y.log_softmax(0), (2, 3), (3,)),
    "layer_norm": (lambda x, y: F.layer_norm(x, (3,), y, y), (2, 3), (3,)),
    "mse_loss": (F.mse_loss, (2, 3), (2, 3)),
    "index_select": (lambda x, y: x.index_select(1, y.argsort()), (2, 3), (3,)),
    "cross_entropy": (lambda x, y: F.cross_entropy(x, y.argmax(1)), (4, 3), (4, 3)),
    "conv2d": (lambda x, w: F.conv2d(x, w, padding=1, groups=2), (2, 4, 5, 5), (6, 2, 3, 3)),
    "linear": (lambda x, w: F.linear(x, w, w[:, 0]), (2, 5), (4, 5)),
    "indexing": (lambda x, y: x[:, y.argsort()] + x[0, 1] + x[..., None, 0], (3, 3), (3,)),
    "where": (lambda x, y: fb.where(x > y, x, y), (2, 3), ()),
    "cat": (lambda x, y: fb.cat([x, y], -1), (2, 3), (2, 1)),
    "cumsum": (lambda x, y: x.cumsum(1) * y.cumsum(0), (2, 3), (3,)),
    "einsum": (lambda x, y: fb.einsum("ij,jk->ki", x, y), (2, 3), (3, 4)),
    "group_norm": (lambda x, w: F.group_norm(x, 2, w, w), (2, 4, 3), (4,)),
    "pool": (lambda x, y: F.max_pool2d(x, 2) + F.avg_pool2d(x, 2) * y, (1, 2, 4, 4), ()),
    "attention": (F.scaled_dot_product_attention, (1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4)),
    "addmm": (lambda b, x, y: fb.addmm(b, x, y, beta=0.5, alpha=2), (4,), (2, 3), (3, 4)),
}


@pytest.mark.parametrize("name", TEN)
def test_equals_the_loop(name):
    f, *shapes = TEN[name]
    xs = [r(3, *s) + k for k, s in enumerate(shapes)]
    want = loop(f, *xs)
    assert close(vmap(f)(*xs), want)
    back = [x.movedim(0, -1) for x in xs]
    assert close(vmap(f, in_dims=-1)(*back), want)
    assert close(vmap(f, out_dims=-1)(*xs), want.movedim(0, -1))
    assert close(vmap(f, chunk_size=2)(*xs), want)
    for k in range(len(xs)):
        dims = tuple(0 if i == k else None for i in range(len(xs)))
        given = [x if i == k else x[0] for i, x in enumerate(xs)]
        many = [x if i == k else fb.stack([x[0]] * 3) for i, x in enumerate(xs)]
        assert close(vmap(f, in_dims=dims)(*given), loop(f, *many)), dims


@pytest.mark.parametrize("name", TEN)
def test_gradients_equal_those_of_the_loop(name):
    f, *shapes = TEN[name]
    xs = [(r(3, *s) + k).requires_grad_() for k, s in enumerate(shapes)]
    want = fb.autograd.grad((loop(f, *xs) ** 2).sum(), xs, allow_unused=True)
    got = fb.autograd.grad((vmap(f)(*xs) ** 2).sum(), xs, allow_unused=True)
    inside = vmap(fb.func.grad(lambda *a: (f(*a) ** 2).sum(), tuple(range(len(xs)))))(
        *[x.detach() for x in xs]
    )
    for a, b, c in zip(want, got, inside, strict=True):
        if a is None:
            assert b is None and c.count_nonzero() == 0
        else:
            assert fb.allclose(a, b, atol=1e-5) and fb.allclose(a, c, atol=1e-5)


def test_nested():
    x, y = r(2, 3), r(4, 3)
    products = vmap(vmap(fb.dot, (None, 0)), (0, None))(x, y)
    assert close(products, x @ y.t())
    assert close(vmap(vmap(lambda a: a * 2, 1, 1))(r(2, 3, 4)), r(2, 3, 4) * 2)


def test_trees_keywords_and_results_of_any_form():
    def f(d, k, *, add):
        assert d["a"].shape == (3,)
        return {"sum": d["a"].sum() + k + add, "both": (d["a"], d["b"][0])}

    out = vmap(f, in_dims=({"a": 0, "b": [1]}, None))({"a": r(2, 3), "b": [r(4, 2)]}, 5, add=1)
    assert close(out["sum"], r(2, 3).sum(1) + 6) and close(out["both"][1], r(4, 2).t())
    a, b = vmap(lambda x: (x, x.sum()), out_dims=(1, 0))(r(2, 3))
    assert a.shape == (3, 2) and b.shape == (2,)
    constant = vmap(lambda x: fb.ones(2))(r(3))
    assert constant.tolist() == [[1, 1]] * 3
    x, n = vmap(lambda x: (x, 7), out_dims=(0, None))(r(3))
    assert n == 7


def test_shapes_and_questions_inside_are_those_of_a_sample():
    def f(x):
        assert (x.shape, x.dim(), x.numel(), len(x)) == ((3, 4), 2, 12, 3)
        assert x.stride() == (4, 1) and x.is_contiguous() and x.dtype == fb.float32
        return x.reshape(-1).view(4, 3)[1:].flip(0)

    assert vmap(f)(r(2, 3, 4)).shape == (2, 3, 3)


def test_promotion_is_that_of_a_sample():
    assert vmap(fb.add)(r(3, 2), r(3).double()).dtype == fb.float32
    assert vmap(fb.add, (0, None))(r(3), fb.tensor(1.0, dtype=fb.float64)).dtype == fb.float64
    assert vmap(fb.mul)(fb.ones(3, 2).int(), r(3)).dtype == fb.float32


def test_composites_and_constructors():
    x = r(3, 2, 2)
    assert close(vmap(lambda a: fb.zeros_like(a) + a.new_ones(2))(x), fb.ones(3, 2, 2))
    assert close(
        vmap(lambda a: fb.diag_embed(a[0]) + a.tril())(x), fb.diag_embed(x[:, 0]) + x.tril()
    )
    assert close(vmap(lambda a: fb.stack([a, a], 1))(x), fb.stack([x, x], 2))
    assert close(vmap(lambda a: a.var() + a.norm() + a.logsumexp(0).sum())(x),
                 x.var((1, 2)) + x.norm(dim=(1, 2)) + x.logsumexp(1).sum(1))  # fmt: skip


def test_changes_in_place():
    def f(x):
        y = x.clone()
        y.add_(1).mul_(2)
        y[0] = 5
        y[1:].zero_()
        out = fb.zeros_like(x)
        out.copy_(y)
        return out

    assert vmap(f)(r(2, 3)).tolist() == [[5, 0, 0]] * 2
    x = r(2, 3)
    vmap(lambda a: a.mul_(0))(x)
    assert x.count_nonzero() == 0
    with pytest.raises(RuntimeError, match=r"vmap: copy_: an in-place operation on a tensor that"):
        vmap(lambda a: fb.zeros(3).add_(a))(r(2, 3))


def test_in_place_gradients_inside():
    def f(x):
        y = x * 1
        y[0] = y[1] * 3
        y.mul_(x)
        return y.sum()

    x = r(2, 3)
    want = fb.stack([fb.autograd.functional.jacobian(f, s) for s in x])
    assert close(vmap(fb.func.grad(f))(x), want)


def test_values_cannot_be_looked_at():
    x = r(3)
    with pytest.raises(RuntimeError, match=r"vmap: \.item\(\) was called on a batched tensor"):
        vmap(lambda a: a.item())(x)
    for look in (lambda a: a if a > 0 else -a, lambda a: fb.zeros(int(a)), lambda a: a.tolist(),
                 lambda a: a.numpy(), lambda a: float(a)):  # fmt: skip
        with pytest.raises(RuntimeError):
            vmap(look)(x)
    assert "BatchedTensor" in vmap(lambda a: (a, repr(a)), out_dims=(0, None))(x)[1]


def test_randomness():
    x = r(4, 3)
    with pytest.raises(RuntimeError, match="random operation"):
        vmap(lambda a: a + fb.rand(3))(x)
    with pytest.raises(RuntimeError, match="random operation"):
        vmap(lambda a: F.dropout(a))(x)
    same = vmap(lambda a: fb.randn(3), randomness="same")(x)
    assert fb.equal(same[0], same[1])
    each = vmap(lambda a: fb.randn(3), randomness="different")(x)
    assert each.shape == (4, 3) and not fb.equal(each[0], each[1])
    ones = fb.ones(4, 50)
    same = vmap(lambda a: F.dropout(a, 0.5), randomness="same")(ones)
    assert fb.equal(same[0], same[1]) and 0 < same.count_nonzero() < 200
    each = vmap(lambda a: F.dropout(a, 0.5), randomness="different")(ones)
    assert not fb.equal(each[0], each[1])
    each = vmap(lambda a: fb.randn_like(a), randomness="different")(ones)
    assert not fb.equal(each[0], each[1])
    with pytest.raises(RuntimeError, match="cannot draw different numbers"):
        vmap(lambda a: fb.zeros(3).normal_() + a, randomness="different")(x)
    assert vmap(lambda a: fb.randperm(5), randomness="different")(x).sort().values[3, 4] == 4


def test_refusals():
    x = r(3, 2)
    with pytest.raises(ValueError, match="in_dims is not compatible with the structure"):
        vmap(fb.add, (0,))(x, x)
    with pytest.raises(ValueError, match="expected `in_dims` to be int or a"):
        vmap(fb.sin, "0")(x)
    with pytest.raises(ValueError, match="Got in_dim=2 for some input"):
        vmap(fb.sin, 2)(x)
    with pytest.raises(ValueError, match="but the input is of type"):
        vmap(fb.add)(x, 1)
    with pytest.raises(ValueError, match="got no inputs"):
        vmap(lambda: 1)()
    with pytest.raises(ValueError, match="Expected at least one Tensor"):
        vmap(fb.sin, (None,))(x)
    with pytest.raises(ValueError, match=r"same size in the mapped dimension, got sizes \[3, 2\]"):
        vmap(fb.add)(x, x.t())
    with pytest.raises(ValueError, match="must only return Tensors"):
        vmap(lambda a: 3)(x)
    with pytest.raises(ValueError, match="can not return a batched tensor when out_dim is None"):
        vmap(fb.sin, out_dims=None)(x)
    with pytest.raises(ValueError, match="not compatible with the structure of `outputs`"):
        vmap(fb.sin, out_dims=(0, 0))(x)
    with pytest.raises(ValueError, match="chunk_size should be None or greater than 0"):
        vmap(fb.sin, chunk_size=0)
    with pytest.raises(RuntimeError, match="Only allowed values for randomness"):
        vmap(fb.sin, randomness="none")
    with pytest.raises(IndexError):
        vmap(lambda a: a.sum(1))(x)
    assert vmap(fb.sin)(x).shape == (3, 2)  # levels are left after errors


LOOP = """
import warnings
import flambeau as fb
x = fb.arange(12.0).view(3, 4).sin()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    f = lambda a: fb.histc(a, 3)
    assert fb.equal(fb.vmap(f)(x), fb.stack([f(a) for a in x]))
    fb.vmap(f)(x)
print(*[w.message for w in caught], sep="|")
"""


def test_the_loop_says_so_once():
    told = subprocess.run([sys.executable, "-c", LOOP], capture_output=True, text=True, check=True)
    assert told.stdout == (
        "vmap: there is no batching rule for histc here: it runs once for each sample, which is "
        "slow\n"
    )


def test_shapes_that_depend_on_the_data_are_refused():
    with warnings.catch_warnings(), pytest.raises(RuntimeError, match="depends on the data"):
        warnings.simplefilter("ignore")
        vmap(fb.nonzero)(fb.tensor([[1, 0], [1, 1]]))


def test_ensembles():
    fb.manual_seed(0)
    models = [
        fb.nn.Sequential(fb.nn.Linear(3, 4), fb.nn.Tanh(), fb.nn.Linear(4, 2)) for _ in range(5)
    ]
    params, buffers = fb.func.stack_module_state(models)
    assert buffers == {} and all(p.requires_grad for p in params.values())
    base = models[0]

    def call(p, x):
        return fb.func.functional_call(base, p, (x,))

    x = r(7, 3)
    assert close(vmap(call, (0, None))(params, x), fb.stack([m(x) for m in models]))
    assert close(
        vmap(call)(params, r(5, 7, 3)),
        fb.stack([m(a) for m, a in zip(models, r(5, 7, 3), strict=True)]),
    )


def test_per_sample_gradients():
    fb.manual_seed(0)
    net = fb.nn.Sequential(
        fb.nn.Conv2d(1, 3, 3),
        fb.nn.GroupNorm(1, 3),
        fb.nn.ReLU(),
        fb.nn.Flatten(),
        fb.nn.Linear(12, 2),
    )
    params = {k: p.detach() for k, p in net.named_parameters()}
    x, y = r(6, 1, 4, 4), fb.tensor([0, 1, 1, 0, 1, 0])

    def loss(p, a, b):
        return F.cross_entropy(fb.func.functional_call(net, p, (a[None],)), b[None])

    each = vmap(fb.func.grad(loss), (None, 0, 0))(params, x, y)
    for i in range(6):
        want = fb.autograd.grad(F.cross_entropy(net(x[i : i + 1]), y[i : i + 1]), net.parameters())
        for (name, got), w in zip(each.items(), want, strict=True):
            assert fb.allclose(got[i], w, atol=1e-5), name


def test_batched_gradients_of_autograd():
    x = r(3).requires_grad_()
    y = x**2
    rows = fb.autograd.grad(y, x, fb.eye(3), is_grads_batched=True)[0]
    assert fb.allclose(rows, fb.diag(2 * x.detach()))
    got = fb.autograd.functional.jacobian(lambda a: a.cumsum(0) * a, r(3), vectorize=True)
    assert fb.allclose(got, fb.autograd.functional.jacobian(lambda a: a.cumsum(0) * a, r(3)))
    fwd = fb.autograd.functional.jacobian(
        lambda a: a.cumsum(0) * a, r(3), vectorize=True, strategy="forward-mode"
    )
    assert fb.allclose(got, fwd)


def test_one_call_of_an_operation_for_the_batch():
    """The time of a batched product does not grow as a loop's would: it is one product."""
    x, w = r(64, 3, 3), r(3, 3)
    y = vmap(fb.mm, (0, None))(x.requires_grad_(), w)
    names, todo = set(), [y.grad_fn]
    while todo:
        node = todo.pop()
        names.add(node.name())
        todo += [n for n, _ in node.next_functions if n is not None]
    assert "MmBackward0" in names and not any("Stack" in n or "Cat" in n for n in names)


class Square(fb.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


class Ruled(fb.autograd.Function):
    seen = []

    @staticmethod
    def forward(x, w):
        return x * w

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, (g * x).sum() if w.dim() == 0 else g * x

    @staticmethod
    def vmap(info, in_dims, x, w):
        Ruled.seen.append((info.batch_size, in_dims))
        return Ruled.apply(x, w), 0


def test_custom_functions():
    x = r(3, 2)
    assert close(vmap(Square.apply)(x), x * x)
    assert close(vmap(fb.func.grad(lambda a: Square.apply(a).sum()))(x), 2 * x)
    with pytest.raises(RuntimeError, match="does not have vmap support"):
        vmap(Square.apply)(x.clone().requires_grad_())
    w = fb.tensor(2.0, requires_grad=True)
    y = vmap(Ruled.apply, (0, None))(x, w)
    assert close(y, 2 * x) and Ruled.seen == [(3, (0, None))]
    y.sum().backward()
    assert w.grad.item() == pytest.approx(x.sum().item(), abs=1e-5)
    assert close(vmap(fb.func.grad(lambda a: Ruled.apply(a, a).sum()))(x), 2 * x)


def test_what_all_samples_share_is_detached():
    shared = fb.ones(3, requires_grad=True)
    x = r(2, 3)
    for f in (lambda a: a + shared.detach(), lambda a: a * shared[0].detach(),
              lambda a: fb.stack([a, shared.detach()])):  # fmt: skip
        assert not vmap(f)(x).requires_grad
    g = vmap(fb.func.grad(lambda a: (a * a.detach() * shared.detach()).sum()))(x)
    assert close(g, x) and not g.requires_grad


def test_results_with_named_parts():
    x = fb.tensor([[3.0, 1.0, 2.0], [5.0, 4.0, 6.0]])
    for f, dim in ((fb.sort, -1), (fb.max, 1), (fb.median, 1), (fb.cummax, 1), (fb.mode, 1)):
        got = vmap(lambda a, f=f: f(a, 0))(x)
        want = f(x, dim)
        assert type(got) is type(want)
        assert got.values.equal(want.values) and got.indices.equal(want.indices)
    swapped = vmap(fb.sort, out_dims=1)(x)
    assert swapped.values.equal(x.sort().values.t())
    primal, tangent = fb.func.jvp(lambda a: fb.max(a, 0), (x,), (x * 2,))
    assert primal.values.tolist() == [5, 4, 6] and tangent.values.tolist() == [10, 8, 12]
    _, largest = fb.func.grad(lambda a: (a.sum(), fb.max(a, 0)), has_aux=True)(x)
    assert not largest.values.requires_grad


def test_functions_are_named_only_in_errors():
    """The text of a function that holds parameters may be long; a parameter prints anywhere."""
    w = fb.nn.Parameter(fb.tensor([1.0, 2.0]))
    x = fb.arange(6.0).reshape(3, 2)
    f = functools.partial(fb.mul, w)
    assert vmap(f)(x).tolist() == [[0, 2], [2, 6], [4, 10]]
    assert vmap(vmap(lambda y: f(y)[0]))(x[None]).tolist() == [[0, 2, 4]]
    shown = []
    vmap(lambda y: (shown.append(repr(w)), y)[1])(x)
    assert shown == ["Parameter containing:\ntensor([1., 2.], requires_grad=True)"]

    class Unshown:
        def __call__(self, y):
            return y * 2

        def __repr__(self):
            raise AssertionError("shown")

    assert vmap(Unshown())(x).tolist() == (x * 2).tolist()
