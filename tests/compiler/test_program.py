"""Native programs: what they compute, what they refuse, when they hold memory."""

from __future__ import annotations

import gc
import threading

import pytest

import flambeau as torch
from flambeau._aot import aot, callable_of
from flambeau._compiler.decompose import decompose
from flambeau._compiler.execute import back_end
from flambeau._compiler.fuse import fuse
from flambeau._compiler.lower import Lowering
from flambeau._compiler.plan import Free, Take, plan
from flambeau._compiler.scratch import localise
from flambeau._ir.graph_parse import parse
from flambeau._trace import trace

F = torch.nn.functional


pytestmark = pytest.mark.usefixtures("cache")


def program(text):
    return back_end(parse(text))


def planned(text):
    lowering = Lowering(decompose(parse(text)))
    return plan(localise(fuse(lowering.run(), lowering.body), lowering.body))


def compiled(f, inputs, dynamic=False):
    graph = trace(f, inputs, "captured", dynamic)
    wanted = [bool(getattr(x, "requires_grad", False)) for x in (*inputs, *graph.attached)]
    return callable_of(aot(graph, wanted), back_end)


def live():
    gc.collect()
    return torch.memory_stats()["live_bytes"]


def peak(f):
    """Bytes above what is live before, at the worst moment of a call."""
    f()
    gc.collect()
    torch.empty_cache()  # what is cached counts as the peak of what was
    before = torch.memory_stats()["live_bytes"]
    torch.reset_peak_memory_stats()
    f()
    return torch.memory_stats()["peak_bytes"] - before


ADD = """graph(%0: f32[4, 3], %1: f32[4, 3]):
  %2: f32[4, 3] = add(%0, %1, 1)
  return %2
"""


# Results ----------------------------------------------------------------------------------------


def test_outputs_are_tensors_of_their_own():
    p = program(
        """graph(%0: f32[4, 3]):
  %1: f32[4, 3] = sin(%0)
  %2: f32[4, 3] = cos(%0)
  return %1, %2
"""
    )
    x = torch.randn(4, 3)
    a, b = p(x)
    again, _ = p(x)
    places = {t.untyped_storage().data_ptr() for t in (a, b, again, x)}
    assert len(places) == 4
    assert torch.equal(a, again) and torch.allclose(b, x.cos())


def test_a_view_as_output_shares_memory_with_its_base():
    x = torch.randn(3, 4)
    whole, part = compiled(lambda x: (y := x * 2, y[1:, 2]), [x])(x)
    assert part.shape == (2,) and part.stride() == (4,)
    whole[1, 2] = 7
    assert part[0] == 7


def test_a_view_of_an_input_is_one():
    x = torch.randn(3, 4)
    (y,) = compiled(lambda x: (x.t(),), [x])(x)
    assert y.data_ptr() == x.data_ptr() and y.stride() == (1, 4)


def test_an_input_changed_in_place_is_changed():
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    wanted = x + y
    out = compiled(lambda x, y: x.add_(y), [x, y])(x, y)
    assert out[0] is x and torch.allclose(x, wanted)


def test_sizes_that_vary_reach_nests_calls_and_views():
    def f(x, w):
        y = (x @ w).relu()
        return y, y[:, : y.shape[1] // 2], y.reshape(-1), x.shape[0] * 2

    g = compiled(f, [torch.randn(4, 6), torch.randn(6, 8)], dynamic=True)
    for n, m, k in ((4, 6, 8), (5, 3, 10), (40, 7, 2)):
        x, w = torch.randn(n, m), torch.randn(m, k)
        for a, b in zip(g(x, w), f(x, w), strict=True):
            assert a == b if isinstance(b, int) else torch.equal(a, b) and a.stride() == b.stride()


def test_numbers_in_floating_point_from_sizes():
    f = lambda x: (x @ x.t()) * (x.shape[1] / (x.shape[0] + 1))  # noqa: E731
    g = compiled(f, [torch.randn(4, 6)], dynamic=True)
    for n in (3, 9):
        x = torch.randn(n, 5)
        assert torch.allclose(g(x)[0], f(x))


def test_entries_that_change_an_argument_are_given_copies():
    p = program(
        """graph(%0: f32[4], %1: i64[2], %2: f32[2]):
  %3: f32[4] = index_add(%0, 0, %1, %2, 1)
  %4: f32[4] = add(%3, %0, 1)
  return %3, %4
"""
    )
    x, at, y = torch.ones(4), torch.tensor([1, 1]), torch.tensor([2.0, 3.0])
    a, b = p(x, at, y)
    assert a.tolist() == [1, 6, 1, 1] and b.tolist() == [2, 7, 2, 2] and x.tolist() == [1] * 4


def test_a_random_entry_fills_a_copy():
    x = torch.zeros(1000)
    (y,) = compiled(lambda x: (x.uniform_(1, 2),), [x])(x)
    assert y is x and 1 <= x.min() < x.max() < 2


def test_one_function_on_several_threads():
    f = lambda x, w: torch.tanh(x @ w).softmax(1) + x  # noqa: E731
    g = compiled(f, [torch.randn(64, 64), torch.randn(64, 64)])
    inputs = [(torch.randn(64, 64), torch.randn(64, 64)) for _ in range(4)]
    wrong = []

    def work(x, w):
        wanted = f(x, w)
        wrong.extend(k for k in range(50) if not torch.allclose(g(x, w)[0], wanted, atol=1e-5))

    threads = [threading.Thread(target=work, args=xs) for xs in inputs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_any_callable_may_stand_for_a_graph():
    x = torch.randn(4, 5).requires_grad_()
    f = lambda x: (torch.tanh(x) * 2, x > 0)  # noqa: E731
    g = callable_of(aot(trace(f, [x], "captured", False), [True]))
    (grad,) = torch.autograd.grad(g(x)[0].sum(), x)
    (eager,) = torch.autograd.grad(f(x)[0].sum(), x)
    assert torch.allclose(grad, eager) and torch.equal(g(x)[1], x > 0)


def test_the_whole_way_for_every_form_of_a_call():
    def f(x, y=2.0, *, scale=1.0):
        return x.sin() * y * scale

    def g(x, y):
        return x.sin() * y

    h, k, x = torch.compile(f), torch.compile(g), torch.randn(5)
    for _ in range(2):
        assert torch.allclose(h(x), f(x)) and torch.allclose(h(x, y=3.0), f(x, 3.0))
        assert torch.allclose(h(x, 4.0, scale=2.0), f(x, 4.0, scale=2.0))
        assert torch.allclose(k(x, y=3.0), g(x, 3.0)) and torch.allclose(k(x, 4.0), g(x, 4.0))
        for shape in ((5,), (2, 3), (7,)):
            y = torch.randn(*shape)
            assert torch.allclose(k(y, y), g(y, y))
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        k(x)


# Refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "kind", "message"),
    [
        (lambda: [torch.zeros(4, 3)], TypeError, "expected 2 inputs, got 1"),
        (lambda: [torch.zeros(4, 3)] * 3, TypeError, "expected 2 inputs, got 3"),
        (lambda: [torch.zeros(4, 3), 1], TypeError, "expected a tensor as input 1, got a number"),
        (lambda: [torch.zeros(4, 3), "x"], TypeError, "expected a Tensor or an int as input 1"),
        (lambda: [torch.zeros(4, 3), torch.zeros(3)], RuntimeError, r"input 1 of shape \[4, 3\]"),
        (lambda: [torch.zeros(2, 3), torch.zeros(4, 3)], RuntimeError, r"got shape \[2, 3\]"),
        (lambda: [torch.zeros(3, 4).t()] * 2, RuntimeError, r"strides \[3, 1\].*got .* \[1, 4\]"),
        (lambda: [torch.zeros(4, 3).double()] * 2, RuntimeError, "dtype float32, got.*float64"),
        (lambda: [torch.empty(4, 3, device="meta")] * 2, RuntimeError, "on the cpu, got.*meta"),
    ],
)
def test_inputs_of_another_kind_are_refused(args, kind, message):
    with pytest.raises(kind, match=message):
        program(ADD)(*args())


def test_sizes_that_a_program_was_not_made_for_are_refused():
    f = lambda x, y: x + y  # noqa: E731
    g = compiled(f, [torch.randn(4, 6), torch.randn(4, 6)], dynamic=True)
    assert g(torch.zeros(5, 7), torch.ones(5, 7))[0].shape == (5, 7)
    with pytest.raises(RuntimeError, match="compiled function"):
        g(torch.zeros(5, 7), torch.ones(5, 8))
    with pytest.raises(RuntimeError, match="compiled function"):
        g(torch.zeros(5), torch.ones(5))


def test_inputs_that_share_memory_where_one_changes():
    def f(x, y):
        return x.add_(y), y * 2

    g = compiled(f, [torch.randn(3, 4), torch.randn(3, 4)])
    x, y = torch.ones(3, 4), torch.ones(3, 4)
    for got, want in zip((*g(x, x), x), (*f(y, y), y), strict=True):
        assert torch.equal(got, want)


# Training ---------------------------------------------------------------------------------------


def pair(f, *shapes):
    inputs = [torch.randn(*s).requires_grad_() for s in shapes]
    return compiled(f, inputs), inputs


def test_gradients_agree_and_the_graph_is_kept_when_asked():
    f = lambda x, w: (torch.tanh(x @ w), (x * 3).sum())  # noqa: E731
    g, (x, w) = pair(f, (4, 5), (5, 6))
    a, b = g(x, w)
    loss = a.square().sum() + b
    first = torch.autograd.grad(loss, [x, w], retain_graph=True)
    second = torch.autograd.grad(loss, [x, w])
    p, q = f(x, w)
    eager = torch.autograd.grad(p.square().sum() + q, [x, w])
    for one, two, three in zip(first, second, eager, strict=True):
        assert torch.equal(one, two) and torch.allclose(one, three, atol=1e-5)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        torch.autograd.grad(loss, [x, w])


def test_results_without_a_cotangent_count_as_zeros():
    g, (x,) = pair(lambda x: (x.sin(), x.exp()), (3,))
    a, b = g(x)
    (grad,) = torch.autograd.grad(b.sum(), x)
    assert torch.allclose(grad, x.detach().exp())
    a, _ = g(x)
    (grad,) = torch.autograd.grad(a.sum(), x)
    assert torch.allclose(grad, x.detach().cos())


def test_results_that_have_no_derivative():
    g, (x,) = pair(lambda x: (x * 2, x > 0, x.argmax(), x.detach() * 3), (5,))
    a, positive, at, cut = g(x)
    assert a.requires_grad and not (positive.requires_grad or at.requires_grad)
    assert not cut.requires_grad and a.grad_fn.name() == "CompiledFunctionBackward"


def test_a_second_derivative_is_refused():
    g, (x,) = pair(lambda x: x.sin() * x, (3,))
    (grad,) = torch.autograd.grad(g(x)[0].sum(), x, create_graph=True)
    assert grad.requires_grad
    assert torch.allclose(grad, x.cos() * x + x.sin())
    with pytest.raises(RuntimeError, match="this compiled function cannot be differentiated twice"):
        torch.autograd.grad(grad.sum(), x)


def test_a_saved_input_that_was_changed_is_noticed():
    g, (x,) = pair(lambda x: x.sin(), (3,))
    y = x * 1
    out = g(y)[0]
    with torch.no_grad():
        y.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_hooks_see_the_gradients():
    g, (x,) = pair(lambda x: x * 2, (3,))
    seen = []
    out = g(x)[0]
    out.register_hook(lambda grad: seen.append(grad.tolist()) or grad * 10)
    out.grad_fn.register_hook(lambda inputs, outputs: seen.append(len(inputs)))
    out.sum().backward()
    assert seen == [[1, 1, 1], 1] and x.grad.tolist() == [20, 20, 20]


def test_cotangents_of_any_layout():
    g, (x,) = pair(lambda x: x.exp(), (3, 4))
    out = g(x)[0]
    weights = torch.randn(4, 3).t()
    (grad,) = torch.autograd.grad(out, x, weights)
    assert torch.allclose(grad, weights * x.detach().exp())
    (grad,) = torch.autograd.grad(g(x)[0].sum(), x)  # an expanded scalar
    assert torch.allclose(grad, x.detach().exp())


def test_saved_tensor_hooks_are_asked():
    g, (x, w) = pair(lambda x, w: torch.tanh(x @ w), (4, 5), (5, 6))
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: packed.append(t.shape) or t.detach().clone(), lambda t: t
    ):
        out = g(x, w)[0]
    assert packed
    grads = torch.autograd.grad(out.sum(), [x, w])
    eager = torch.autograd.grad(torch.tanh(x @ w).sum(), [x, w])
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(grads, eager, strict=True))


def test_autocast_does_not_reach_into_a_graph():
    g, (x, w) = pair(lambda x, w: x @ w, (4, 5), (5, 6))
    with torch.autocast("cpu"):
        out = g(x, w)[0]
        assert out.dtype is torch.float32
        grads = torch.autograd.grad(out.sum(), [x, w])
    assert all(t.dtype is torch.float32 for t in grads)


# Memory -----------------------------------------------------------------------------------------


def chain(x, weights):
    for w in weights:
        x = x @ w
    return x


def test_a_chain_of_calls_holds_no_more_than_eager_does():
    x = torch.randn(256, 256)
    weights = [torch.randn(256, 256) / 16 for _ in range(12)]
    f = lambda x, *ws: chain(x, ws)  # noqa: E731
    g = compiled(f, [x, *weights])
    assert torch.allclose(g(x, *weights)[0], f(x, *weights), atol=1e-4)
    assert 0 < peak(lambda: g(x, *weights)) <= peak(lambda: f(x, *weights))


def test_a_chain_with_loops_between_calls_holds_no_more_than_eager_does():
    x = torch.randn(256, 256)
    weights = [torch.randn(256, 256) / 16 for _ in range(6)]

    def f(x, *weights):
        for w in weights:
            x = torch.tanh(x @ w) + 1
        return x

    g = compiled(f, [x, *weights])
    assert peak(lambda: g(x, *weights)) <= peak(lambda: f(x, *weights))


def test_backward_holds_no_more_than_eager_does():
    x = torch.randn(256, 256).requires_grad_()
    weights = [(torch.randn(256, 256) / 16).requires_grad_() for _ in range(6)]
    f = lambda x, *ws: chain(x, ws)  # noqa: E731
    g = compiled(f, [x, *weights])
    step = lambda h: torch.autograd.grad(h.sum(), [x, *weights])  # noqa: E731
    assert peak(lambda: step(g(x, *weights)[0])) <= peak(lambda: step(f(x, *weights)))


def test_what_an_entry_changes_is_copied_only_where_it_is_needed():
    x = torch.randn(512, 512)
    f = lambda x: F.dropout(x, 0.5)  # noqa: E731
    g = compiled(f, [x])
    torch.manual_seed(3)
    wanted = f(x)
    torch.manual_seed(3)
    assert torch.equal(g(x)[0], wanted)
    assert peak(lambda: g(x)) <= peak(lambda: f(x))


def test_memory_goes_from_buffer_to_buffer():
    steps = planned(
        """graph(%0: f32[64, 32]):
  %1: f32[64, 32] = softmax(%0, 0, None)
  %2: f32[64, 32] = softmax(%1, 1, None)
  %3: f32[64, 32] = softmax(%2, 0, None)
  return %3
"""
    )
    assert any(isinstance(s, Take) for s in steps)
    taken = [s.other for s in steps if isinstance(s, Take)]
    freed = [s.buffer for s in steps if isinstance(s, Free)]
    assert len(set(taken + freed)) == len(taken + freed)


def test_nothing_is_left_when_a_step_fails():
    p = program(
        """graph(%0: f32[256, 256], %1: i64[200]):
  %2: f32[256, 256] = matmul(%0, %0)
  %3: f32[200, 256] = index_select(%2, 0, %1)
  %4: f32[200, 256] = sin(%3)
  return %4
"""
    )
    x, good, bad = torch.randn(256, 256), torch.arange(200), torch.arange(200) + 60
    assert torch.allclose(p(x, good)[0], (x @ x)[:200].sin(), atol=1e-3)
    before = live()
    for _ in range(3):
        with pytest.raises(IndexError):
            p(x, bad)
    assert live() == before
    p(x, good)
    assert live() == before


def test_saved_tensors_go_with_the_graph():
    g, (x, w) = pair(lambda x, w: torch.tanh(x @ w), (256, 256), (256, 256))
    g(x, w)
    before = live()
    out = g(x, w)[0]
    assert live() == before + out.nbytes  # tanh's result is all that backward needs
    out.sum().backward(retain_graph=True)
    out.sum().backward()
    x.grad = w.grad = None
    kept = out.detach()
    del out
    assert live() == before + kept.nbytes
    del kept
    assert live() == before
