"""Pruning: which elements go, how methods add up, what is left of it."""

import copy
import pickle

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn.utils import prune


def layer(weight):
    made = nn.Linear(len(weight[0]), len(weight), bias=False)
    made.weight = nn.Parameter(torch.tensor(weight))
    return made


def conv():
    torch.manual_seed(0)
    return nn.Conv2d(3, 8, 3)


def test_the_form_of_a_pruned_parameter():
    m = conv()
    weight = m.weight.detach().clone()
    assert prune.l1_unstructured(m, "weight", amount=0.25) is m and prune.is_pruned(m)
    assert [n for n, _ in m.named_parameters()] == ["bias", "weight_orig"]
    assert [n for n, _ in m.named_buffers()] == ["weight_mask"]
    gone = np.argsort(abs(weight.numpy()).ravel(), kind="stable")[:54]
    mask = np.ones(216, dtype=np.float32)
    mask[gone] = 0
    np.testing.assert_array_equal(m.weight_mask.flatten(), mask)
    np.testing.assert_array_equal(m.weight.detach(), weight.numpy() * mask.reshape(8, 3, 3, 3))
    out = m(torch.ones(1, 3, 4, 4))
    out.sum().backward()
    assert m.weight_orig.grad is not None
    np.testing.assert_array_equal(m.weight_orig.grad.flatten()[gone], np.zeros(54))
    with torch.no_grad():
        m.weight_orig.fill_(2)
    m(torch.ones(1, 3, 4, 4))
    np.testing.assert_array_equal(m.weight.detach().flatten(), 2 * mask)


def test_removal_is_final_and_keeps_the_parameter():
    m = conv()
    prune.random_unstructured(m, "weight", amount=10)
    orig, pruned = m.weight_orig, m.weight.detach().clone()
    prune.remove(m, "weight")
    assert m.weight is orig and torch.equal(m.weight, pruned) and not prune.is_pruned(m)
    assert list(m.state_dict()) == ["bias", "weight"] or set(m.state_dict()) == {"weight", "bias"}
    assert not list(m.named_buffers()) and not m._forward_pre_hooks
    with pytest.raises(ValueError, match="Parameter 'weight' of module .* has to be pruned"):
        prune.remove(m, "weight")


@pytest.mark.parametrize("order", [1, 2, float("inf"), -float("inf")])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_slices_by_norm(order, dim):
    m = conv()
    weight = m.weight.detach().numpy()
    prune.ln_structured(m, "weight", amount=1, n=order, dim=dim)
    rows = np.moveaxis(weight, dim, 0).reshape(weight.shape[dim], -1)
    least = np.linalg.norm(rows, order, axis=1).argmin()
    mask = np.moveaxis(m.weight_mask.numpy(), dim, 0)
    assert (mask[least] == 0).all() and mask.sum() == mask.size - mask[0].size


def test_random_slices_and_elements():
    torch.manual_seed(0)
    counts = np.zeros(5)
    for _ in range(200):
        m = prune.random_structured(nn.Linear(5, 3), "weight", amount=2, dim=1)
        columns = m.weight_mask.sum(0)
        assert sorted(columns.tolist()) == [0, 0, 3, 3, 3]
        counts += columns.numpy() == 0
    assert abs(counts - 80).max() < 30  # 4 standard deviations are 28
    m = prune.random_unstructured(nn.Linear(5, 4), "bias", amount=0.5)
    assert m.bias_mask.sum() == 2


def test_methods_after_one_another_choose_among_what_is_left():
    m = layer([[1.0, -2.0, 3.0, -4.0], [5.0, 6.0, 7.0, 8.0]])
    prune.l1_unstructured(m, "weight", amount=2)
    prune.l1_unstructured(m, "weight", amount=0.5)
    assert m.weight.tolist() == [[0, 0, 0, 0], [0, 6, 7, 8]]
    (hook,) = m._forward_pre_hooks.values()
    assert isinstance(hook, prune.PruningContainer) and len(hook) == 2
    assert [type(h).__name__ for h in hook] == ["L1Unstructured"] * 2
    prune.ln_structured(m, "weight", amount=1, n=1, dim=1)  # of columns 1, 2 and 3
    assert m.weight.tolist() == [[0, 0, 0, 0], [0, 0, 7, 8]] and len(hook) == 3
    prune.custom_from_mask(m, "weight", torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]]))
    assert m.weight.tolist() == [[0, 0, 0, 0], [0, 0, 7, 0]]
    m(torch.ones(4))
    prune.remove(m, "weight")
    assert m.weight.tolist() == [[0, 0, 0, 0], [0, 0, 7, 0]]


def test_over_several_modules():
    a, b = layer([[1.0, 5.0]]), layer([[2.0, 3.0, 9.0]])
    pairs = [(a, "weight"), (b, "weight")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=0.6)
    assert (a.weight.tolist(), b.weight.tolist()) == ([[0, 5]], [[0, 0, 9]])
    prune.global_unstructured(
        pairs, prune.L1Unstructured, amount=1,
        importance_scores={(b, "weight"): torch.tensor([[1.0, 1.0, 0.5]])},
    )  # fmt: skip
    assert (a.weight.tolist(), b.weight.tolist()) == ([[0, 5]], [[0, 0, 0]])
    with pytest.raises(TypeError, match="Only .unstructured"):
        prune.global_unstructured(pairs, prune.LnStructured, amount=1, n=1, dim=0)


def test_importance_of_the_programs_own():
    m = layer([[1.0, 2.0, 3.0]])
    prune.l1_unstructured(m, "weight", 1, importance_scores=torch.tensor([[5.0, -6.0, 0.1]]))
    assert m.weight.tolist() == [[1, 2, 0]]
    method = prune.L1Unstructured(amount=2)
    assert method.prune(torch.tensor([3.0, -1.0, 2.0])).tolist() == [3, 0, 0]
    kept = torch.tensor([0.0, 1.0, 1.0])
    assert method.prune(torch.tensor([3.0, -1.0, 2.0]), default_mask=kept).tolist() == [0, 0, 0]


def test_files_and_copies():
    m = prune.l1_unstructured(conv(), "weight", amount=0.5)
    other = prune.identity(conv(), "weight")
    other.load_state_dict(m.state_dict())
    x = torch.rand(1, 3, 5, 5)
    assert torch.equal(other(x), m(x))
    for made in (pickle.loads(pickle.dumps(m)), copy.deepcopy(prune.remove(m, "weight"))):
        assert torch.equal(made(x), other(x))


def test_training_under_compile():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    prune.l1_unstructured(net[0], "weight", amount=0.5)
    other = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    prune.identity(other[0], "weight")
    other.load_state_dict(net.state_dict())
    x = torch.rand(16, 4)
    losses = []
    for model, call in ((net, net), (other, torch.compile(other))):
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = (call(x) - 1).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    np.testing.assert_allclose(losses[:3], losses[3:], rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: prune.l1_unstructured(m, "weight", amount=1.5), ValueError, "amount=1.5"),
        (lambda m: prune.l1_unstructured(m, "weight", amount=-1), ValueError, "amount=-1"),
        (lambda m: prune.l1_unstructured(m, "weight", amount="x"), TypeError, "Invalid type"),
        (lambda m: prune.l1_unstructured(m, "weight", amount=217), ValueError, "smaller than"),
        (lambda m: prune.ln_structured(m, "bias", 1, 2, 0), ValueError, "multidimensional"),
        (lambda m: prune.ln_structured(m, "weight", 1, 2, 4), IndexError, "Invalid index 4"),
        (lambda m: prune.custom_from_mask(m, "bias", torch.ones(3)), AssertionError, "shape"),
        (lambda m: prune.l1_unstructured(m, "nothing", 1), AttributeError, "nothing"),
    ],
)
def test_a_refusal_changes_nothing(call, error, message):
    m = conv()
    before = {n: p.clone() for n, p in m.state_dict().items()}
    with pytest.raises(error, match=message):
        call(m)
    assert list(m.state_dict()) == list(before) and not prune.is_pruned(m)
    assert all(torch.equal(before[n], p) for n, p in m.state_dict().items())


def test_a_refused_method_is_not_in_the_container():
    m = prune.l1_unstructured(conv(), "weight", amount=1)
    for _ in range(2):
        with pytest.raises(ValueError, match="smaller than"):
            prune.l1_unstructured(m, "weight", amount=10_000)
    prune.l1_unstructured(m, "weight", amount=1)
    with pytest.raises(ValueError, match="smaller than"):
        prune.l1_unstructured(m, "weight", amount=10_000)
    (hook,) = m._forward_pre_hooks.values()
    assert len(hook) == 2 and m.weight_mask.sum() == 214
