"""The gradient scaler on the CPU: values, adaptation, misuse."""

import copy
import pickle

import pytest

import flambeau as fb
from flambeau import optim
from flambeau.amp import GradScaler


def setup(grad=(8.0, 8.0), **kw):
    p = fb.ones(2).requires_grad_()
    p.grad = fb.tensor(list(grad))
    scaler = GradScaler("cpu", init_scale=8.0, **kw)
    scaler.scale(fb.ones(1))
    return p, optim.SGD([p], lr=0.1), scaler


def test_scale_keeps_structure():
    scaler = GradScaler("cpu", init_scale=4.0)
    one = fb.ones(2)
    assert scaler.scale(one).tolist() == [4, 4]
    a, (b,) = scaler.scale([one, (one,)])
    assert a.tolist() == b.tolist() == [4, 4]
    with pytest.raises(ValueError, match="Tensor or an iterable of Tensors"):
        scaler.scale(3)


def test_step_unscales_once():
    p, opt, scaler = setup()
    scaler.step(opt)
    assert p.grad.tolist() == [1, 1] and p.tolist() == pytest.approx([0.9, 0.9])
    scaler.update()
    assert scaler.get_scale() == 8.0 and scaler.state_dict()["_growth_tracker"] == 1


def test_explicit_unscale_before_clipping():
    p, opt, scaler = setup()
    scaler.unscale_(opt)
    assert p.grad.tolist() == [1, 1]
    p.grad.mul_(0.5)
    scaler.step(opt)
    assert p.tolist() == pytest.approx([0.95, 0.95])


@pytest.mark.parametrize("bad", [float("inf"), float("-inf"), float("nan")])
def test_bad_gradients_skip_the_step_and_lower_the_scale(bad):
    p, opt, scaler = setup((bad, 1.0))
    assert scaler.step(opt) is None
    scaler.update()
    assert p.tolist() == [1, 1] and scaler.get_scale() == 4.0


def test_scale_grows_after_the_interval():
    p, opt, scaler = setup(growth_interval=2, growth_factor=3.0)
    for _ in range(2):
        scaler.step(opt)
        scaler.update()
    assert scaler.get_scale() == 24.0 and scaler.state_dict()["_growth_tracker"] == 0
    scaler.update(5.0)
    assert scaler.get_scale() == 5.0


def test_mixed_dtypes():
    p, q = fb.ones(1).requires_grad_(), fb.ones(1, dtype=fb.float64).requires_grad_()
    p.grad, q.grad = fb.full((1,), 8.0), fb.full((1,), 8.0, dtype=fb.float64)
    scaler = GradScaler("cpu", init_scale=8.0)
    scaler.scale(fb.ones(1))
    scaler.unscale_(optim.SGD([p, q]))
    assert p.grad.tolist() == q.grad.tolist() == [1.0]


def test_misuse():
    p, opt, scaler = setup()
    with pytest.raises(RuntimeError, match="Closure use"):
        scaler.step(opt, closure=lambda: 1)
    scaler.unscale_(opt)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(opt)
    with pytest.raises(AssertionError, match="may only be pickled"):
        pickle.dumps(scaler)
    scaler.step(opt)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
        scaler.step(opt)
    with pytest.raises(RuntimeError, match="after step"):
        scaler.unscale_(opt)
    with pytest.raises(AssertionError, match="_scale is None"):
        GradScaler("cpu").unscale_(opt)
    p.grad = p.grad.half() if p.dtype == fb.float16 else None
    scaler.update()
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.step(opt)
    h = fb.ones(1, dtype=fb.float16).requires_grad_()
    h.grad = fb.ones(1, dtype=fb.float16)
    with pytest.raises(ValueError, match="unscale FP16 gradients"):
        scaler.unscale_(optim.SGD([h]))
    with pytest.raises(AssertionError, match="growth factor"):
        GradScaler("cpu", growth_factor=1.0)


def test_state_round_trips():
    _, opt, scaler = setup(growth_interval=7)
    scaler.step(opt)
    scaler.update()
    other = GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    twin = pickle.loads(pickle.dumps(scaler))
    assert other.state_dict() == scaler.state_dict() == twin.state_dict()
    assert copy.deepcopy(scaler).get_growth_interval() == 7
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        other.load_state_dict({})


def test_disabled():
    p, opt, _ = setup()
    scaler = GradScaler("cpu", enabled=False)
    assert scaler.scale(3) == 3 and scaler.get_scale() == 1.0 and scaler.state_dict() == {}
    scaler.step(opt)
    scaler.update()
    assert p.tolist() == pytest.approx([0.2, 0.2]) and not scaler.is_enabled()
    if not fb.cuda.is_available():
        with pytest.warns(UserWarning, match="CUDA is not available"):
            assert not GradScaler().is_enabled()
