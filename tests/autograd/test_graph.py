"""Nodes as Python objects, gradient edges, saved-tensor hooks, groups of hooks."""

import gc
import weakref

import pytest

import flambeau as torch
from flambeau.autograd import graph


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


def test_nodes_have_identity_name_and_edges():
    x = leaf(1.0)
    y = x * 2 + 1
    node = y.grad_fn
    assert node is y.grad_fn
    assert node.name() == "AddBackward0" and type(node).__name__ == "AddBackward0"
    mul, nr = node.next_functions[0]
    assert mul.name() == "MulBackward0" and nr == 0
    assert type(mul.next_functions[0][0]).__name__ == "AccumulateGrad"
    assert mul.next_functions[0][0].variable is x
    assert node.next_functions[0][0] is mul
    assert isinstance(node, graph.Node) and not isinstance(3, graph.Node)


def test_metadata_stays_with_the_node():
    y = leaf(1.0) * 2
    y.grad_fn.metadata["key"] = 7
    assert y.grad_fn.metadata == {"key": 7}


def test_node_keeps_its_graph_alive():
    x = leaf(1.0)
    node = (x * 2).grad_fn
    gc.collect()
    assert node.next_functions[0][0].variable is x


def test_edges_stand_for_tensors():
    x = leaf(3.0)
    y = x * x
    edge = graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn and edge.output_nr == 0
    z = (y * 2).sum()
    (g,) = torch.autograd.grad(z, edge, retain_graph=True)
    assert g.item() == 2.0
    (g,) = torch.autograd.grad(edge, x, grad_outputs=torch.ones(1))
    assert g.item() == 6.0
    (g,) = torch.autograd.grad((x * 5).sum(), graph.get_gradient_edge(x))
    assert g.item() == 5.0
    with pytest.raises(RuntimeError, match="does not require gradients"):
        graph.get_gradient_edge(torch.ones(1))


def test_increment_version():
    x = leaf(1.0)
    y = x.exp()
    graph.increment_version(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_saved_tensors_go_through_hooks():
    packed, unpacked = [], []

    def pack(t):
        packed.append(t.tolist())
        return t.tolist()

    def unpack(values):
        unpacked.append(values)
        return torch.tensor(values)

    x, w = leaf(2.0), leaf(3.0)
    with graph.saved_tensors_hooks(pack, unpack):
        y = x * w
        e = y.exp()
    assert sorted(packed) == sorted([[2.0], [3.0], e.tolist()])
    assert unpacked == []
    e.sum().backward()
    assert len(unpacked) == 3
    assert x.grad.item() == pytest.approx(3 * e.item())
    assert w.grad.item() == pytest.approx(2 * e.item())


def test_hooks_nest_and_end():
    calls = []
    x = leaf(2.0)
    outer = graph.saved_tensors_hooks(lambda t: calls.append("outer") or t, lambda t: t)
    inner = graph.saved_tensors_hooks(lambda t: calls.append("inner") or t, lambda t: t)
    with outer:
        with inner:
            x.exp()
        x.exp()
    x.exp()
    assert calls == ["inner", "outer"]


def test_second_derivative_through_hooks():
    x = leaf(2.0)
    with graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t * 1):
        y = x * x * x
        (g,) = torch.autograd.grad(y, x, create_graph=True)
    (h,) = torch.autograd.grad(g, x)
    assert h.item() == pytest.approx(12.0)


def test_hooks_of_contexts():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    x = leaf(3.0)
    with graph.saved_tensors_hooks(lambda t: t.tolist(), torch.tensor):
        y = Square.apply(x)
    y.backward()
    assert x.grad.item() == 6.0


def test_bad_hooks():
    x = leaf(1.0)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = x.exp()
    with pytest.raises(
        TypeError, match="Output of saved tensor unpack_hook expected to be a Tensor"
    ):
        y.backward()


def test_disabled_hooks():
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"):
            with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                pass
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        pass


def test_save_on_cpu():
    x = leaf(2.0)
    with graph.save_on_cpu():
        y = x * x
    y.backward()
    assert x.grad.item() == 4.0


def test_group_of_hooks_all():
    x, y, z = leaf(1.0), leaf(2.0), leaf(3.0)
    calls = []
    handle = graph.register_multi_grad_hook((x, y, z), calls.append)
    (x * y).sum().backward()
    assert len(calls) == 1
    assert [g if g is None else g.item() for g in calls[0]] == [2.0, 1.0, None]
    (x * y * z).sum().backward()
    assert len(calls) == 2
    handle.remove()
    (x * y).sum().backward()
    assert len(calls) == 2


def test_group_of_hooks_any():
    x, y = leaf(1.0), leaf(2.0)
    calls = []
    graph.register_multi_grad_hook((x, y), lambda g: calls.append(g.item()), mode="any")
    (x * y).sum().backward()
    assert len(calls) == 1
    (x * y).sum().backward()
    assert len(calls) == 2


def test_graph_is_freed_with_its_result():
    class Mark:
        pass

    x = leaf(1.0)
    h = x * 2
    h.mark = Mark()
    gone = weakref.ref(h.mark)
    y = (h * h).sum()
    del h
    gc.collect()
    y.backward()
    del y
    gc.collect()
    assert gone() is None
