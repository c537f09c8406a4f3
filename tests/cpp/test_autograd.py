"""Derivatives in C++: values by hand and by Python, functions of the program's, guards, hooks."""

from __future__ import annotations

import flambeau as torch
from tests.cpp.conftest import program


def test_gradients_graphs_and_guards(run_program):
    out = run_program(program("gradients"))
    u, n = torch.tensor([2.0, 4.0], dtype=torch.float64), 2.0
    while u.norm() < 100:
        u, n = u * 2, n * 2
    g = torch.tensor([n * 0.1, n], dtype=torch.float64)
    assert out.splitlines() == [
        "AddBackward0 110", "MulBackward0 MeanBackward0", "tensor([[4.5000, 4.5000],",
        "        [4.5000, 4.5000]])", "0", "SumBackward0", repr(g), "00", "1", "01",
        "grad can be implicitly created only for scalar outputs",
        "element 0 of tensors does not require grad and does not have a grad_fn",
        "Trying to backward through the graph a second time (or directly access saved tensors "
        "after they have already been freed). Saved intermediate values of the graph are freed "
        "when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
        "backward through the graph a second time or if you need to access saved tensors after "
        "calling backward.",
        "One of the differentiated Tensors appears to not have been used in the graph. Set "
        "allow_unused=True if this is the desired behavior.",
        "0",
    ]  # fmt: skip


def test_a_gradient_penalty_is_that_of_python(run_program):
    out = run_program(program("penalty"))
    torch.manual_seed(3)
    w = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    x = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    y = torch.tanh(x.matmul(w.t()))
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (y.pow(2).mean() + torch.pow(g.norm(2, 1) - 1, 2).mean()).backward()
    assert [float(line) for line in out.split()] == w.grad.view(-1).tolist()


def test_functions_of_the_program(run_program):
    out = run_program(program("functions"))
    x = torch.arange(6.0, dtype=torch.float64).view(2, 3)
    w = torch.arange(12.0, dtype=torch.float64).view(4, 3)
    dx = torch.ones(2, 4, dtype=torch.float64).mm(w).view(-1)
    dw = torch.ones(4, 2, dtype=torch.float64).mm(x).sum()
    assert out.splitlines() == [
        "torch::autograd::CppNode<Linear>",
        f"{dx}{dw!r}tensor([2., 2., 2., 2.], dtype=torch.float64)", "10",
        "hello20", "tensor([3., 3.])",
        "tensor([6., 6.])",
        "a leaf Variable that requires grad has been used in an in-place operation.",
        "function torch::autograd::CppNode<Wrong> returned an incorrect number of gradients "
        "(expected 2, got 1)",
        "5tensor([1.])tensor([3.])0", "1", "0",
    ]  # fmt: skip


def test_hooks_anomaly_forward_mode_and_threads(run_program):
    out = run_program(program("hooks"))
    lines = out.splitlines()
    assert lines[:3] == ["seen tensor([2., 2.])", "tensor([6., 6.])tensor([2., 2.])1",
                         "seen tensor([1., 1.])"]  # fmt: skip
    assert lines[3] == "tensor([3., 3.])" and "nan" in lines[4].lower()
    assert lines[5:] == ["tensor([4.])tensor([4.])", "1", "8"]
