"""Groups, state dicts, hooks and errors of the optimiser base class."""

import copy
import pickle

import pytest

import flambeau as fb
from flambeau import optim
from flambeau.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)


def leaf(*values, dtype=None):
    return fb.tensor(list(values), dtype=dtype).requires_grad_()


def stepped(cls=optim.Adam, **kw):
    p = leaf(1.0, 2.0)
    opt = cls([p], **kw)
    p.grad = fb.ones(2)
    opt.step()
    return p, opt


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: optim.SGD(leaf(1.0)), TypeError, "iterable of Tensors or dicts"),
        (lambda: optim.SGD([]), ValueError, "optimizer got an empty parameter list"),
        (lambda: optim.SGD([leaf(1.0) * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: optim.SGD([3]), TypeError, "one of the params is int"),
        (lambda: optim.SGD([{"params": {leaf(1.0)}}]), TypeError, "ordered collections"),
        (lambda: optim.SGD([leaf(1.0)], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: optim.SGD([leaf(1.0)], nesterov=True), ValueError, "Nesterov momentum requires"),
        (lambda: optim.Adam([leaf(1.0)], betas=(1, 0)), ValueError, "beta parameter at index 0: 1"),
        (lambda: optim.Adam([leaf(1.0)], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda: optim.Adam([leaf(1.0)], lr=fb.ones(2)), ValueError, "Tensor lr must be 1-element"),
        (lambda: optim.Adam([leaf(1.0)], lr=fb.tensor(1.0), foreach=True), ValueError, "lr as a T"),
        (lambda: optim.Adam([leaf(1.0)], fused=True, foreach=True), RuntimeError, "cannot be"),
        (lambda: optim.Adam([leaf(1.0)], fused=True, differentiable=True), RuntimeError, "fused"),
        (lambda: stepped(capturable=True), AssertionError, "must be on supported devices"),
        (lambda: optim.Muon([leaf(1.0)]), ValueError, "Muon only supports 2D parameters"),
        (lambda: optim.Rprop([leaf(1.0)], etas=(1.0, 0.5)), ValueError, "Invalid eta values"),
        (lambda: optim.Optimizer([leaf(1.0)], {}).step(), NotImplementedError, "step"),
    ],
)
def test_wrong_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_groups_inherit_defaults_and_keep_their_own():
    p, q = leaf(1.0), leaf(2.0)
    opt = optim.SGD([{"params": [p], "lr": 0.5}, {"params": q}], lr=0.1, momentum=0.9)
    assert [g["lr"] for g in opt.param_groups] == [0.5, 0.1]
    assert opt.param_groups[1]["params"][0] is q
    opt.add_param_group({"params": leaf(3.0), "momentum": 0.0})
    assert [g["momentum"] for g in opt.param_groups] == [0.9, 0.9, 0.0]
    with pytest.raises(ValueError, match="more than one parameter group"):
        opt.add_param_group({"params": [p]})
    with pytest.raises(TypeError, match="param_group must be a dict"):
        opt.add_param_group([p])


def test_duplicates_in_a_group_warn():
    p = leaf(1.0)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([p, p])


def test_named_parameters():
    opt = optim.SGD([("w", leaf(1.0)), ("b", leaf(2.0))], lr=0.1)
    assert opt.param_groups[0]["param_names"] == ["w", "b"]
    assert opt.state_dict()["param_groups"][0]["param_names"] == ["w", "b"]
    with pytest.raises(ValueError, match="Some param names are missing"):
        optim.SGD([("w", leaf(1.0)), leaf(2.0)])
    with pytest.raises(ValueError, match="cannot add param group without names"):
        opt.add_param_group({"params": [leaf(1.0)]})


def test_repr_lists_sorted_hyperparameters():
    text = repr(optim.Adagrad([leaf(1.0)], lr=0.5))
    assert text == (
        "Adagrad (\nParameter Group 0\n    differentiable: False\n    eps: 1e-10\n"
        "    foreach: None\n    fused: None\n    initial_accumulator_value: 0\n    lr: 0.5\n"
        "    lr_decay: 0\n    maximize: False\n    weight_decay: 0\n)"
    )


def test_zero_grad():
    p, opt = stepped()
    grad = p.grad
    opt.zero_grad(set_to_none=False)
    assert p.grad is grad and p.grad.tolist() == [0, 0]
    opt.zero_grad()
    assert p.grad is None


def test_step_runs_the_closure_with_gradients():
    p = leaf(1.0)
    opt = optim.SGD([p], lr=0.5)

    def closure():
        opt.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with fb.no_grad():
        assert opt.step(closure).item() == 1.0
    assert p.tolist() == [0.0]


def test_state_dict_round_trip_continues_exactly():
    p, opt = stepped(amsgrad=True)
    saved = copy.deepcopy(opt.state_dict())
    q = p.detach().clone().requires_grad_()
    other = optim.Adam([q], lr=9.0)
    other.load_state_dict(saved)
    assert other.param_groups[0]["lr"] == 1e-3 and other.param_groups[0]["params"][0] is q
    for _ in range(3):
        p.grad, q.grad = fb.ones(2) * 2, fb.ones(2) * 2
        opt.step()
        other.step()
    assert p.tolist() == q.tolist()


def test_loaded_state_takes_the_dtype_of_its_parameter_but_counters_do_not():
    _, opt = stepped()
    half = leaf(1.0, 2.0, dtype=fb.bfloat16)
    other = optim.Adam([half])
    other.load_state_dict(opt.state_dict())
    assert other.state[half]["exp_avg"].dtype == fb.bfloat16
    assert other.state[half]["step"].dtype == fb.float32


def test_state_dicts_of_other_shape_are_refused():
    _, opt = stepped()
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        opt.load_state_dict(optim.Adam([leaf(1.0), leaf(2.0)]).state_dict())
    with pytest.raises(ValueError, match="different number of parameter groups"):
        groups = [{"params": [leaf(1.0)]}, {"params": [leaf(2.0)]}]
        opt.load_state_dict(optim.Adam(groups).state_dict())


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_copies_are_independent(clone):
    p, opt = stepped()
    twin = clone(opt)
    q = twin.param_groups[0]["params"][0]
    assert q is not p and twin.state[q]["step"].item() == 1
    q.grad = fb.ones(2)
    twin.step()
    assert opt.state[p]["step"].item() == 1 and q.tolist() != p.tolist()


def test_step_hooks_run_in_order_and_may_change_arguments():
    p = leaf(1.0)
    opt, log = optim.SGD([p], lr=0.1), []
    handles = [
        register_optimizer_step_pre_hook(lambda o, a, k: log.append("global pre")),
        register_optimizer_step_post_hook(lambda o, a, k: log.append("global post")),
        opt.register_step_pre_hook(lambda o, a, k: log.append(("pre", len(a), k))),
        opt.register_step_post_hook(lambda o, a, k: log.append("post")),
        opt.register_step_pre_hook(lambda o, a, k: ((o,), {"closure": lambda: 42})),
    ]
    assert opt.step() == 42
    assert log == ["global pre", ("pre", 1, {}), "post", "global post"]
    for handle in handles:
        handle.remove()
    log.clear()
    assert opt.step() is None and log == []
    opt.register_step_pre_hook(lambda o, a, k: 3)
    with pytest.raises(RuntimeError, match="expected a step pre-hook to return None or a tuple"):
        opt.step()


def test_hooks_run_once_through_overridden_steps():
    class Mine(optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    opt, log = Mine([leaf(1.0)]), []
    opt.register_step_post_hook(lambda *_: log.append(1))
    opt.step()
    assert log == [1]


def test_state_dict_hooks():
    _, opt = stepped()
    log = []
    opt.register_state_dict_pre_hook(lambda o: log.append("a"))
    opt.register_state_dict_pre_hook(lambda o: log.append("b"), prepend=True)
    opt.register_state_dict_post_hook(lambda o, sd: {**sd, "extra": 1})
    saved = opt.state_dict()
    assert log == ["b", "a"] and saved["extra"] == 1
    opt.register_load_state_dict_pre_hook(lambda o, sd: {k: sd[k] for k in sd if k != "extra"})
    opt.register_load_state_dict_post_hook(lambda o: log.append("loaded"))
    opt.load_state_dict(saved)
    assert log[-1] == "loaded"


@pytest.mark.filterwarnings("ignore:Sparse")
def test_sparse_gradients_are_refused_with_advice():
    if not hasattr(fb, "sparse_coo_tensor"):
        pytest.skip("the build has no sparse tensors")
    p = leaf(1.0, 2.0)
    p.grad = fb.sparse_coo_tensor([[0]], [1.0], (2,))
    with pytest.raises(RuntimeError, match="please consider SparseAdam instead"):
        optim.AdamW([p]).step()
    p.grad = fb.ones(2)
    with pytest.raises(RuntimeError, match="please consider Adam instead"):
        optim.SparseAdam([p]).step()


def test_fused_core_call_receives_the_whole_group(monkeypatch):
    calls = []
    monkeypatch.setattr(fb, "_fused_adam_", lambda *a, **k: calls.append((a, k)), raising=False)
    monkeypatch.setattr(fb, "_fused_sgd_", lambda *a, **k: calls.append((a, k)), raising=False)
    ps = [leaf(1.0), leaf(2.0)]
    for p in ps:
        p.grad = fb.ones(1)
    optim.AdamW(ps, lr=0.5).step()
    (args, kw) = calls.pop()
    assert [len(a) for a in args] == [2, 2, 2, 2, 0, 2] and kw["decoupled"] and kw["lr"] == 0.5
    opt = optim.SGD(ps, momentum=0.9)
    opt.step()
    opt.step()
    assert [k["first_step"] for _, k in calls] == [True, False]
    calls.clear()
    optim.Adam(ps, foreach=True).step()
    optim.Adam(ps, fused=False).step()
    assert calls == []


def test_swapped_in_tensors_are_updated_and_the_own_ones_come_back():
    p, opt = stepped()
    own, state, before = opt.param_groups, opt.state, p.tolist()
    other = fb.tensor([5.0, 6.0])
    other.grad = fb.ones(2)
    packed = copy.deepcopy(opt.state_dict())
    with optim.swap_in_optimizer_params_and_state(opt, {"w": other}, packed):
        opt.step()
        assert opt.state[other]["step"].item() == 2
    assert opt.param_groups is own and opt.state is state and p.tolist() == before
    assert other.tolist() != [5.0, 6.0] and packed["state"][0]["step"].item() == 2
    with pytest.raises(ValueError, match="expected 1 parameters, got 0"):
        optim.swap_in_optimizer_params_and_state(opt, {}, packed).__enter__()
