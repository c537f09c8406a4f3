"""`mode=`, `options=` and `_inductor.config`: each option has its effect or is refused."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import _inductor
from flambeau._compiler import tuned
from flambeau._ir.settings import Settings, current


@pytest.fixture(autouse=True)
def _fresh(cache):
    torch.compiler.reset()


def body(x):
    y = (x * 2).sum(0)
    return (y + 1).sin() * x


def kernels(capsys, **options):
    """How many loop nests the generated code has."""
    torch.compiler.reset()
    f = torch.compile(body, options={"trace.enabled": True, **options})
    x = torch.arange(12.0).reshape(3, 4)
    assert torch.allclose(f(x), body(x))
    printed = capsys.readouterr().err
    assert "[graph_code]" in printed and "[output_code]" in printed
    return printed.count("for (")


def test_fusion_and_printing(capsys):
    assert kernels(capsys, epilogue_fusion=False) > kernels(capsys, epilogue_fusion=True)
    torch.compile(lambda x: x + 1)(torch.ones(1))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "options, reason",
    [
        ({"unknown": 1}, "Unexpected optimization option unknown, known options are"),
        ({"epilogue_fusion": "yes"}, "expected option epilogue_fusion to be a bool"),
        ({"triton.cudagraphs": True}, "no CUDA graphs on the CPU"),
        ({"trace.graph_diagram": True}, "nothing draws graphs"),
    ],
)
def test_refused(options, reason):
    with pytest.raises(RuntimeError, match=reason):
        torch.compile(body, options=options)


def test_back_ends_without_options():
    with pytest.raises(ValueError, match="has no options"):
        torch.compile(body, backend="eager", options={"epilogue_fusion": True})
    seen = []

    def takes(graph, example_inputs, **told):
        seen.append(told)
        return torch._dynamo.backends.common.prepare(graph)

    torch.compile(body, backend=takes, options={"a": 1})(torch.ones(2, 2))
    torch.compile(body, backend=takes, mode="max-autotune")(torch.ones(2, 2))
    torch.compile(body, backend=takes)(torch.ones(2, 2))
    assert seen == [{"options": {"a": 1}}, {"mode": "max-autotune"}, {}]


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune-no-cudagraphs"])
def test_modes_train(mode):
    x = torch.arange(12.0).reshape(3, 4).requires_grad_()
    torch.compile(body, mode=mode)(x).sum().backward()
    got, x.grad = x.grad, None
    body(x).sum().backward()
    assert torch.allclose(got, x.grad, rtol=1e-4)


def test_trials_choose_the_fastest_and_leave_no_trace(monkeypatch):
    tried = []

    def times(function, examples):
        tried.append(current())
        return 1.0 if len(tried) == 3 else 2.0

    monkeypatch.setattr(tuned, "_time", lambda f, examples: times(f, examples))
    used = []
    from flambeau._compiler import kept

    fetch = kept.fetch
    monkeypatch.setattr(kept, "fetch", lambda *a: used.append(current()) or fetch(*a))
    f = torch.compile(lambda x: (x + 3).cos(), mode="max-autotune")
    f(torch.ones(3))
    assert used[:-1] == list(tuned.CANDIDATES)
    assert used[-1] == Settings(fusion=False)
    torch.compiler.reset()
    used.clear()
    f(torch.ones(3))
    assert used == [Settings(fusion=False)], "the choice is on disk"


@pytest.mark.parametrize("faster", [False, True])
@pytest.mark.parametrize("shape", [(35, 29, 45), (64, 32, 64), (3, 35, 29, 45)])
def test_padded_products_are_taken_where_they_are_faster(shape, faster, monkeypatch):
    used, taken = [], []
    from flambeau._aot import padding
    from flambeau._compiler import kept

    replace, fetch = padding._replace, kept.fetch
    monkeypatch.setattr(padding, "_replace", lambda *a: used.append(a) or replace(*a))
    monkeypatch.setattr(kept, "fetch", lambda *a: taken.append(current()) or fetch(*a))
    times = iter((2.0, 1.0) if faster else (1.0, 2.0))
    monkeypatch.setattr(tuned, "_time", lambda f, examples: next(times))
    *batch, rows, inner, columns = shape
    r = np.random.default_rng(0)
    a, b = r.normal(size=(*batch, rows, inner)), r.normal(size=(*batch, inner, columns))
    x, y = (torch.from_numpy(v).requires_grad_() for v in (a, b))
    scale = 2.0 if faster else 1.0  # each choice is kept on disk under the name of its graph
    f = torch.compile(lambda a, b: (a @ b * scale).sin(), options={"matmul-padding": True})
    out = f(x, y)
    want = np.sin(scale * (a @ b))
    np.testing.assert_allclose(out.detach().numpy(), want, rtol=1e-12, atol=1e-12)
    assert out.is_contiguous()
    out.sum().backward()
    slope = scale * np.cos(scale * (a @ b))
    np.testing.assert_allclose(x.grad.numpy(), slope @ b.swapaxes(-1, -2), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(y.grad.numpy(), a.swapaxes(-1, -2) @ slope, rtol=1e-11, atol=1e-12)
    assert bool(used) == any(n % 8 for n in shape[-3:])
    assert taken[-1].padding == faster
    assert [n for n in torch._inductor.list_options() if "padding" in n] == ["shape_padding"]


def test_trials_do_not_touch_inputs_or_generators():
    def changes(x):
        x.add_(1)
        return x + torch.rand(3)

    torch.manual_seed(0)
    x = torch.zeros(3)
    got = torch.compile(changes, mode="max-autotune")(x)
    torch.manual_seed(0)
    assert torch.equal(got, 1 + torch.rand(3)) and x.tolist() == [1, 1, 1]


def test_lists_and_defaults():
    assert set(_inductor.list_mode_options()) >= {"default", "reduce-overhead", "max-autotune"}
    with pytest.raises(RuntimeError, match="Unrecognized mode=fast"):
        _inductor.list_mode_options("fast")
    assert "trace.enabled" in _inductor.list_options()
    config = _inductor.config
    with pytest.raises(AttributeError, match="there is no option 'max_fusion'"):
        config.max_fusion = True
    with pytest.raises(RuntimeError, match="CUDA graphs"):
        config.triton.cudagraphs = True
    with config.patch(max_autotune=True):
        assert config.max_autotune
    assert not config.max_autotune
