"""Custom Functions: contexts, saved tensors, views and changes in place, double backward, jvp."""

import gc
import weakref

import numpy as np
import pytest

import flambeau as torch
from flambeau.autograd import Function
from flambeau.autograd.function import once_differentiable


def leaf(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def same(tensor, want):
    np.testing.assert_allclose(np.array(tensor.tolist()), want, rtol=1e-12)


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


class Exp(Function):
    @staticmethod
    def forward(x, scale=1.0):
        return (x * scale).exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.scale = inputs
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y * ctx.scale, None

    @staticmethod
    def jvp(ctx, t, _):
        return t


def test_forward_and_backward():
    x = leaf(2.0, 3.0)
    y = Square.apply(x)
    assert type(y.grad_fn).__name__ == "SquareBackward" and y.grad_fn.name() == "SquareBackward"
    assert y.grad_fn.next_functions[0][0].variable is x
    y.sum().backward()
    same(x.grad, [4.0, 6.0])


def test_double_backward():
    x = leaf(2.0, 3.0)
    (g,) = torch.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    same(h, [2.0, 2.0])
    (g,) = torch.autograd.grad(Exp.apply(x, 2.0).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    same(h, 4 * np.exp([4.0, 6.0]))


def test_setup_context_and_defaults():
    x = leaf(1.0)
    Exp.apply(x).sum().backward()
    same(x.grad, [np.e])


def test_nothing_is_recorded_without_need():
    y = Square.apply(torch.ones(1))
    assert not y.requires_grad and y.grad_fn is None
    with torch.no_grad():
        assert not Square.apply(leaf(1.0)).requires_grad


def test_saved_tensors_are_freed_and_checked():
    x = leaf(1.0)
    y = Square.apply(x)
    y.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()
    z = x * 1
    y = Square.apply(z)
    z.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_identity_of_saved_tensors():
    x = leaf(1.0)
    y = Square.apply(x)
    assert y.grad_fn.saved_tensors[0] is x


def test_save_for_backward_takes_tensors_only():
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(3)
            return x * 1

    with pytest.raises(
        TypeError, match="save_for_backward can only save variables, but argument 0"
    ):
        Bad.apply(leaf(1.0))


def test_several_inputs_outputs_and_none():
    class Two(Function):
        @staticmethod
        def forward(ctx, x, factor, y, word=None):
            ctx.factor = factor
            assert ctx.needs_input_grad == (True, False, False, False)
            return x * factor, y * factor, word

        @staticmethod
        def backward(ctx, gx, gy, gw):
            assert gw is None
            assert gy.tolist() == [0.0]
            return gx * ctx.factor, None, None, None

    x, y = leaf(2.0), torch.ones(1, dtype=torch.float64)
    a, b, word = Two.apply(x, 3, y, "word")
    assert word == "word" and b.requires_grad
    a.sum().backward()
    same(x.grad, [3.0])


def test_gradients_that_are_not_materialised():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            seen.append(b)
            return a

    x = leaf(1.0)
    Two.apply(x)[0].sum().backward()
    assert seen == [None]


def test_not_differentiable_outputs():
    class Sort(Function):
        @staticmethod
        def forward(ctx, x):
            twice = x * 2
            flag = x > 0
            half = x / 2
            ctx.mark_non_differentiable(flag, half)
            return twice, flag, half

        @staticmethod
        def backward(ctx, g, g_flag, g_half):
            return g * 2

    x = leaf(1.0)
    twice, flag, half = Sort.apply(x)
    assert twice.requires_grad and not flag.requires_grad and not half.requires_grad
    twice.sum().backward()
    same(x.grad, [2.0])


def test_changed_inputs():
    class AddOne(Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 10

    x = leaf(1.0, 2.0)
    y = x * 1
    z = AddOne.apply(y)
    assert z is y and type(y.grad_fn).__name__ == "AddOneBackward"
    z.sum().backward()
    same(x.grad, [10.0, 10.0])
    y = x * 1
    AddOne.apply(y[:1])
    x.grad = None
    y.sum().backward()
    same(x.grad, [10.0, 1.0])
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        AddOne.apply(leaf(1.0))


def test_dirty_inputs_must_be_returned():
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x * 1

    with pytest.raises(RuntimeError, match="were not returned as output"):
        Bad.apply(leaf(1.0) * 1)


def test_inputs_and_views_returned():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 3

    class View(Same):
        @staticmethod
        def forward(ctx, x):
            return x.view(-1)

    for f in (Same, View):
        x = leaf(1.0, 2.0)
        y = f.apply(x)
        assert y is not x and y.data_ptr() == x.data_ptr() and y._is_view()
        y.sum().backward()
        same(x.grad, [3.0, 3.0])
        with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
            f.apply(x.clone()).mul_(2)


@pytest.mark.parametrize(
    "result, error",
    [
        (lambda g: (g, g), "returned an incorrect number of gradients .expected 1, got 2"),
        (lambda g: 3, "expected Variable or None .got int"),
        (lambda g: torch.ones(7), "invalid gradient at index 0 - got .7. but expected shape comp"),
    ],
)
def test_wrong_gradients(result, error):
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return result(g)

    with pytest.raises(RuntimeError, match=error):
        Bad.apply(leaf(1.0, 2.0)).sum().backward()


def test_trailing_none_and_broadcast_gradients():
    class Ok(Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

        @staticmethod
        def backward(ctx, g):
            return torch.ones(4, 2, dtype=torch.float64), None, None

    x = leaf(1.0, 2.0)
    Ok.apply(x).backward()
    same(x.grad, [4.0, 4.0])


def test_once_differentiable():
    class Once(Square):
        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            assert not torch.is_grad_enabled()
            return 2 * x * g

    x = leaf(3.0)
    (g,) = torch.autograd.grad(Once.apply(x).sum(), x, torch.ones((), dtype=torch.float64))
    same(g, [6.0])
    cotangent = torch.ones((), dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(Once.apply(x).sum(), x, cotangent, create_graph=True)
    with pytest.raises(RuntimeError, match="twice a function that was marked with @once_diff"):
        g.sum().backward()


def test_missing_methods():
    class Nothing(Function):
        pass

    with pytest.raises(NotImplementedError, match="You must implement the forward function"):
        Nothing.apply(leaf(1.0))

    class NoBackward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    with pytest.raises(NotImplementedError, match="must implement either the backward or vjp"):
        NoBackward.apply(leaf(1.0)).backward()

    class Both(NoBackward):
        @staticmethod
        def backward(ctx, g):
            return g

        @staticmethod
        def vjp(ctx, g):
            return g

    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp'"):
        Both.apply(leaf(1.0)).backward()


def test_errors_of_user_code_arrive_unchanged():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Fails.apply(leaf(1.0)).backward()


def test_instances_are_refused():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        square = Square()
    with pytest.raises(RuntimeError, match="Legacy autograd function"):
        square(leaf(1.0))


def test_contexts_are_collected():
    class Keep(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 1
            ctx.mark = Mark()
            marks.append(weakref.ref(ctx.mark))
            ctx.cycle = [ctx]
            return y

        @staticmethod
        def backward(ctx, g):
            return g

    class Mark:
        pass

    marks = []
    y = Keep.apply(leaf(1.0))
    assert y.grad_fn.mark is marks[0]()
    del y
    gc.collect()
    assert marks[0]() is None


def test_many_functions_in_a_chain():
    x = leaf(1.0)
    y = x
    for _ in range(20_000):
        y = Plus.apply(y)
    y.backward()
    same(x.grad, [1.0])
    y = x
    for _ in range(20_000):
        y = Plus.apply(y)
    del y


class Plus(Function):
    @staticmethod
    def forward(ctx, x):
        return x + 1

    @staticmethod
    def backward(ctx, g):
        return g


def test_gradcheck_of_a_function():
    assert torch.autograd.gradcheck(Square.apply, leaf(1.0, -2.0))
    assert torch.autograd.gradgradcheck(Square.apply, leaf(1.0, -2.0))


def test_jvp():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            ctx.x = x
            return x**3

        @staticmethod
        def jvp(ctx, t):
            return 3 * ctx.x**2 * t

    import flambeau.autograd.forward_ad as fw

    with fw.dual_level():
        x = fw.make_dual(torch.tensor([2.0]), torch.tensor([10.0]))
        assert fw.unpack_dual(Cube.apply(x)).tangent.tolist() == [120.0]
        assert fw.unpack_dual(Cube.apply(torch.ones(1))).tangent is None


def test_a_returned_input_keeps_its_class():
    class Sub(torch.Tensor):
        pass

    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    x = torch.ones(2).as_subclass(Sub)
    y = Same.apply(x)
    assert type(y) is Sub and y is not x
    x.requires_grad_()
    y = Same.apply(x)
    assert type(y) is Sub and y.grad_fn is not None and y.data_ptr() == x.data_ptr()
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]
    assert type(Same.apply(torch.nn.Parameter(torch.ones(2)))) is torch.Tensor
