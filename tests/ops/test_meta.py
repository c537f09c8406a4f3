"""Every entry on meta tensors gives what it gives on the CPU, but for the values: shapes, dtypes,
strides, also of the gradients. The calls are those of the docstring examples and of `@op.samples`.
"""

import ast
import doctest
import importlib

import numpy as np
import pytest
from table_cases import (
    TABLE,
    allowed,
    array,
    pointwise_tensor_ops,
    public,
    required_tensors,
    resolve,
)

import flambeau as torch
from flambeau.ops import _lang

#: what older names of functions say
pytestmark = pytest.mark.filterwarnings("ignore:`nn.functional.upsample:UserWarning")

#: entries whose result, or whose size, is what values say: meta tensors are refused
VALUES_DECIDE = {
    "allclose", "argwhere", "bincount", "combinations", "ctc_loss_1", "equal", "histogram",
    "histogram_1", "histogram_2", "histogramdd", "histogramdd_1", "histogramdd_2", "is_nonzero",
    "linspace_1", "logspace_1", "masked_select", "narrow_1", "nonzero", "nonzero_static",
    "one_hot", "repeat_indices", "repeat_interleave", "repeat_interleave_2", "tensor_split_2",
    "unique", "unique_consecutive", "where_1", "_foreach_addcdiv_2", "_foreach_addcdiv__2",
    "_foreach_addcmul_2", "_foreach_addcmul__2",
}  # fmt: skip


def meta(value):
    """The same with every tensor on the meta device, laid out as it was."""
    if isinstance(value, torch.Tensor):
        with torch.no_grad():
            out = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
        return out.requires_grad_() if value.requires_grad else out
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(meta(v) for v in value)
    return value


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors(v)]
    return []


#: whose gradients are of a size, or by a way, that values say
VALUES_DECIDE_GRADIENTS = {"masked_scatter", "index_fill", "index_fill_1"}


def described(value):
    """What must agree; the stride of a dim of size 1 means nothing."""
    return [
        (
            t.shape,
            t.dtype,
            [s for s, n in zip(t.stride(), t.shape, strict=True) if n != 1],
            t.requires_grad,
        )
        for t in tensors(value)
    ]


def example_calls(op):
    """(owner, name, args, kwargs) of the calls of `op` in its example."""
    env = {"torch": torch, "F": torch.nn.functional}
    names = {op.name, op.python_name}
    for example in doctest.DocTestParser().get_examples(op.doc):
        tree = ast.parse(example.source)
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if node.func.attr not in names:
                continue
            call = ast.Expression(ast.Tuple([
                node.func.value,
                ast.Call(ast.Name("list", ast.Load()), [ast.List(node.args, ast.Load())], []),
                ast.Call(ast.Name("dict", ast.Load()), [], node.keywords),
            ], ast.Load()))  # fmt: skip
            try:
                owner, args, kwargs = eval(
                    compile(ast.fix_missing_locations(call), "<example>", "eval"), env
                )
            except NameError:
                continue  # inside a comprehension
            yield owner, node.func.attr, args, kwargs
            break
        exec(compile(tree, "<example>", "exec"), env)


def sample_calls(op):
    """The same of the calls that `@op.samples` names."""
    if "samples" not in op.rules:
        return
    importlib.import_module(f"flambeau.ops.{op.family}")
    entry = _lang.TABLE[op.name][op.overload]
    space, _, name = (public(op) or "").rpartition(".")
    for _, *args in entry.rules["samples"](torch.rand):
        yield (resolve(space) if space else torch), name, args, {}


def calls(op):
    yield from example_calls(op)
    yield from sample_calls(op)


def with_gradients(values):
    """Floating-point tensors as leaves that want gradients."""
    out = []
    for v in values:
        if isinstance(v, torch.Tensor) and (v.is_floating_point() or v.is_complex()):
            v = v.detach().requires_grad_()
        out.append(v)
    return out


EXAMPLES = {}
for _op in TABLE:
    if ">>>" in _op.doc:
        EXAMPLES[_op.uid] = _op


@pytest.mark.parametrize("uid", [u for u in EXAMPLES if u not in VALUES_DECIDE])
def test_example_on_meta(uid):
    for owner, name, args, kwargs in calls(EXAMPLES[uid]):
        if not tensors([owner, args, list(kwargs.values())]):
            continue
        on_meta = meta([owner]), meta(args), {k: meta(v) for k, v in kwargs.items()}
        want = getattr(owner, name)(*args, **kwargs)
        got = getattr(on_meta[0][0], name)(*on_meta[1], **on_meta[2])
        assert described(got) == described(want)
        assert all(t.is_meta for t in tensors(got))


@pytest.mark.parametrize("uid", [u for u in EXAMPLES if u in VALUES_DECIDE])
def test_values_are_refused(uid):
    for owner, name, args, kwargs in calls(EXAMPLES[uid]):
        with pytest.raises((NotImplementedError, RuntimeError), match="meta"):
            getattr(meta(owner), name)(*meta(args), **{k: meta(v) for k, v in kwargs.items()})


@pytest.mark.parametrize(
    "uid", [u for u in EXAMPLES if u not in VALUES_DECIDE | VALUES_DECIDE_GRADIENTS]
)
def test_gradients_on_meta(uid):
    for owner, name, args, kwargs in calls(EXAMPLES[uid]):
        if name.endswith("_") or "out" in kwargs:
            continue
        leaves = with_gradients([owner, *args])
        if not any(isinstance(v, torch.Tensor) and v.requires_grad for v in leaves):
            continue
        given = meta(leaves)
        shapes = []
        for values in (leaves, given):
            out = getattr(values[0], name)(*values[1:], **{
                k: meta(v) if values is given else v for k, v in kwargs.items()
            })  # fmt: skip
            roots = [t for t in tensors(out) if t.requires_grad]
            wanted = [v for v in values if isinstance(v, torch.Tensor) and v.requires_grad]
            if not roots:
                shapes.append(None)
                continue
            try:
                grads = torch.autograd.grad(
                    roots, wanted, [torch.ones_like(t) for t in roots], allow_unused=True
                )
            except (RuntimeError, NotImplementedError) as e:
                assert "derivative" in str(e)
                shapes.append(str(e))
                continue
            shapes.append([g if g is None else (g.shape, g.dtype) for g in grads])
            if values is given:
                assert all(g is None or g.is_meta for g in grads)
        assert shapes[0] == shapes[1]


POINTWISE = {op.uid: op for op in pointwise_tensor_ops()}


def layouts(x):
    yield x
    if x.dim() == 4:
        yield x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    yield x.transpose(0, -1).contiguous().transpose(0, -1)
    yield torch.stack([x, x], -1)[..., 1]
    yield x[:1].expand(x.shape)


@pytest.mark.parametrize("uid", POINTWISE)
def test_pointwise_layouts(uid):
    op = POINTWISE[uid]
    f = resolve(public(op))
    dtype = "float32" if "f" in allowed(op) else "int64"
    xs = [torch.from_numpy(array(op, (2, 3, 4, 5), dtype, i)) for i in range(required_tensors(op))]
    for first in layouts(xs[0]):
        assert described(f(meta(first), *meta(xs[1:]))) == described(f(first, *xs[1:]))
    small = [x[0, 0, 0] for x in xs[1:]]
    assert described(f(meta(xs[0]), *meta(small))) == described(f(xs[0], *small))


@pytest.mark.parametrize("uid", POINTWISE)
def test_pointwise_forms(uid):
    op = POINTWISE[uid]
    dtype = "float32" if "f" in allowed(op) else "int64"
    xs = [torch.from_numpy(array(op, (4, 5), dtype, i)) for i in range(required_tensors(op))]
    given = meta(xs)
    want = tensors(resolve(public(op))(*xs))
    if op.has_out and len(want) == 1:
        out = torch.empty(0, dtype=want[0].dtype, device="meta")
        assert resolve(public(op))(*given, out=out) is out
        assert out.shape == want[0].shape and out.is_meta
        if dtype == "float32":
            with pytest.raises(RuntimeError, match="cross-device copies are not allowed"):
                resolve(public(op))(*given, out=torch.empty_like(want[0]))
    if op.has_inplace and op.is_method and want[0].dtype == xs[0].dtype:
        version = given[0]._version
        assert getattr(given[0], op.name + "_")(*given[1:]) is given[0]
        assert given[0]._version > version
        if len(xs) > 1:
            with pytest.raises(RuntimeError, match="is not on the expected device cpu"):
                getattr(xs[0].clone(), op.name + "_")(*given[1:])


def test_numbers_of_the_cpu_go_with_meta_tensors():
    x = torch.empty(2, 3, device="meta")
    assert (x + torch.tensor(1.0)).is_meta and (torch.tensor(1.0) * x).is_meta
    assert torch.where(x > 0, x, torch.tensor(0.0)).is_meta
    with pytest.raises(
        RuntimeError, match="Tensor on device meta is not on the expected device cpu!"
    ):
        torch.ones(2, 3) + x
    with pytest.raises(RuntimeError, match="expected device"):
        torch.mm(torch.ones(2, 2), x)
    with pytest.raises(RuntimeError, match="expected device"):
        torch.ones(()).add_(torch.empty((), device="meta"))


def test_indices_may_stay_on_the_cpu():
    x = torch.empty(4, 3, device="meta")
    assert x[torch.tensor([0, 2])].shape == (2, 3)
    assert x[torch.tensor([True, False, True, True])].shape == (3, 3)
    x[torch.tensor([0])] = 1.0
    with pytest.raises(RuntimeError, match="expected device"):
        torch.ones(4)[torch.zeros(2, dtype=torch.int64, device="meta")]


def test_sizes_without_end():
    x = torch.empty(10**8, 10**7, device="meta")
    y = (x.t() @ x[:, :5]).softmax(0).sum()
    assert y.shape == () and x.untyped_storage().nbytes() == 4 * 10**15
    assert np.prod(x.expand(3, *x.shape).reshape(-1).shape) == 3 * 10**15
