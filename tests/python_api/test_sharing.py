"""Memory that processes share: in place, through forks, fresh interpreters, queues."""

import os
import sys

import pytest

import flambeau as torch
import flambeau.multiprocessing as mp
from flambeau import nn
from tools.loader_faults import left_by_nobody

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="shared memory by descriptor")
METHODS = ["fork", "spawn"]


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def shared_files():
    return set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()


def test_sharing_is_in_place():
    x = torch.arange(4.0)
    view, storage = x[1:], x.untyped_storage()
    assert not x.is_shared()
    assert x.share_memory_() is x
    for o in (x, view, storage, x.storage()):
        assert o.is_shared()
    assert x.tolist() == [0, 1, 2, 3] and x.data_ptr() == storage.data_ptr()
    view[0] = 10
    assert x[1] == 10
    address = x.data_ptr()
    assert x.share_memory_().data_ptr() == address
    assert not x.clone().is_shared()
    assert torch.empty(0).share_memory_().is_shared()
    assert torch.UntypedStorage._new_shared(16).is_shared()


def test_memory_of_an_array_moves_away_from_it():
    import numpy as np

    array = np.zeros(3, np.float32)
    x = torch.from_numpy(array).share_memory_()
    x += 1
    assert x.tolist() == [1, 1, 1] and array.tolist() == [0, 0, 0]


def test_refused():
    x = torch.ones(3)
    array = x.numpy()
    with pytest.raises(RuntimeError, match="an array or a capsule made of it is still in use"):
        x.share_memory_()
    del array
    x.share_memory_()
    with pytest.raises(RuntimeError, match="expected memory on the CPU"):
        torch.ones(2, device="meta").share_memory_()
    with pytest.raises(RuntimeError, match="not resizable"):
        x.resize_(10)
    with pytest.raises(ValueError, match="set_sharing_strategy"):
        mp.set_sharing_strategy("telegraph")


def test_modules_and_gradients():
    m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    weight = m[0].weight
    assert m.share_memory() is m and m[0].weight is weight
    assert all(t.is_shared() for t in m.state_dict().values())
    m(torch.ones(3, 2)).sum().backward()
    assert weight.grad is not None


def _add(x, n):
    x += n


@pytest.mark.parametrize("method", METHODS)
def test_a_child_writes_what_the_parent_reads(method):
    x = torch.zeros(3).share_memory_()
    child = mp.get_context(method).Process(target=_add, args=(x, 5), daemon=True)
    child.start()
    child.join()
    assert child.exitcode == 0 and x.tolist() == [5, 5, 5]


def _train(model, rank):
    torch.manual_seed(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(150):
        x = torch.randn(16, 3)
        loss = (model(x).squeeze(1) - x @ torch.tensor([1.0, -2.0, 0.5]) - 3).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@pytest.mark.parametrize("method", METHODS)
def test_processes_train_one_model(method):
    model = nn.Linear(3, 1)
    model.share_memory()
    context = mp.get_context(method)
    children = [
        context.Process(target=_train, args=(model, rank), daemon=True) for rank in range(2)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0
    weights = torch.cat([model.weight.detach().flatten(), model.bias.detach()])
    assert weights.allclose(torch.tensor([1.0, -2.0, 0.5, 3.0]), atol=0.05)


def _answer(questions, answers):
    x, view, p, storage = questions.get()
    x += 1
    p.data.mul_(2)
    storage[0] = 9
    answers.put((x[:2], type(p).__name__, p.requires_grad, view.tolist()))
    answers.put(torch.full((1000,), 3.0))
    questions.get()  # until the parent has read


@pytest.mark.parametrize("method", METHODS)
def test_queues_carry_handles(method):
    context = mp.get_context(method)
    questions, answers = context.Queue(), context.Queue()
    before = shared_files()
    child = context.Process(target=_answer, args=(questions, answers), daemon=True)
    child.start()
    x = torch.zeros(4)
    p = nn.Parameter(torch.ones(2))
    storage = torch.UntypedStorage(4)
    questions.put((x, x[1:], p, storage))
    part, cls, wants, view = answers.get(timeout=60)
    big = answers.get(timeout=60)
    assert (cls, wants, view) == ("Parameter", True, [1, 1, 1])  # x and its view are one memory
    assert x.tolist() == [1, 1, 1, 1] and p.tolist() == [2, 2] and storage[0] == 9
    part += 1
    assert x.tolist() == [2, 2, 1, 1]
    assert big.sum() == 3000 and big.is_shared()
    questions.put(None)
    child.join()
    assert child.exitcode == 0
    assert not left_by_nobody(shared_files() - before)


def test_descriptors_are_given_back():
    queue = mp.get_context("fork").SimpleQueue()
    queue.put(torch.zeros(10))
    queue.get()
    before = descriptors()
    for _ in range(20):
        queue.put(torch.zeros(10))
        queue.get()
    assert descriptors() <= before + 1


def test_a_tensor_with_history_stays():
    with pytest.raises(RuntimeError, match="expected a leaf tensor"):
        mp.reductions.reduce_tensor(torch.ones(2, requires_grad=True) * 2)


def test_the_other_strategy_sends_bytes():
    assert mp.get_sharing_strategy() == "file_descriptor"
    assert mp.get_all_sharing_strategies() == {"file_descriptor", "file_system"}
    queue = mp.get_context("fork").SimpleQueue()
    mp.set_sharing_strategy("file_system")
    try:
        x, shared = torch.zeros(3), torch.zeros(3).share_memory_()
        queue.put((x, shared))
        a, b = queue.get()
        a += 1
        b += 1
        assert x.tolist() == [0, 0, 0] and shared.tolist() == [1, 1, 1] and not x.is_shared()
    finally:
        mp.set_sharing_strategy("file_descriptor")
