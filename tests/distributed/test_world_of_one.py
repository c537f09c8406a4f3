"""Process groups of one: each collective gives what its definition says for one process."""

import pytest

import flambeau as torch

dist = torch.distributed


@pytest.fixture
def world(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    dist.init_process_group("gloo")
    yield dist.group.WORLD
    if dist.is_initialized():
        dist.destroy_process_group()


def test_before_a_group_there_is_none(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert dist.is_available() and not dist.is_initialized() and dist.group.WORLD is None
    for ask in (dist.get_rank, dist.get_world_size, dist.barrier, dist.get_backend, dist.new_group):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            ask()
    with pytest.raises(ValueError, match="RANK expected, but not set"):
        dist.init_process_group("gloo")


def test_a_rank_that_is_none():
    with pytest.raises(ValueError, match="expected a rank of 0 to 0, got 1"):
        dist.init_process_group("gloo", init_method="tcp://localhost:1", rank=1, world_size=1)
    with pytest.raises(ValueError, match="expected device_id=None"):
        dist.init_process_group("gloo", device_id="cuda:0")
    assert not dist.is_initialized()


def test_the_group(world):
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
    assert dist.get_process_group_ranks(world) == [0] == dist.get_process_group_ranks()
    assert world.rank() == 0 and world.size() == 1
    other = dist.new_group([0])
    assert other is not world and dist.get_world_size(other) == 1
    assert dist.get_rank(dist.new_group([])) == -1
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group("gloo")
    dist.destroy_process_group()
    assert not dist.is_initialized()


@pytest.mark.parametrize("op", ["SUM", "AVG", "PRODUCT", "MIN", "MAX"])
def test_reductions_of_one_are_the_value(world, op):
    x = torch.tensor([1.0, -2.0])
    for reduce in (dist.all_reduce, lambda t, o: dist.reduce(t, 0, o)):
        assert reduce(x, getattr(dist.ReduceOp, op)) is None
        assert x.tolist() == [1, -2]
    out = torch.zeros(2)
    dist.reduce_scatter(out, [x], getattr(dist.ReduceOp, op))
    assert out.tolist() == [1, -2]
    with pytest.raises(TypeError, match="expected a ReduceOp, got str"):
        dist.all_reduce(x, op)
    with pytest.raises(RuntimeError, match="Cannot use ReduceOp.PREMUL_SUM with Gloo: reduce has"):
        dist.reduce(x, 0, dist._make_nccl_premul_sum(2.0))
    with pytest.raises(TypeError, match="expected factor to be float or Tensor, got int"):
        dist._make_nccl_premul_sum(2)


def test_gathering_and_scattering_copy(world):
    x = torch.tensor([[1.0, 2.0]])

    def filled(run):
        out = torch.zeros(1, 2)
        run(out)
        assert out.tolist() == x.tolist()

    filled(lambda o: dist.all_gather([o], x))
    filled(lambda o: dist.all_gather_into_tensor(o, x))
    filled(lambda o: dist.gather(x, [o], 0))
    filled(lambda o: dist.scatter(o, [x], 0))
    filled(lambda o: dist.reduce_scatter_tensor(o, x))
    filled(lambda o: dist.all_to_all([o], [x]))
    filled(lambda o: dist.all_to_all_single(o, x, [1], [1]))
    with pytest.raises(
        ValueError, match="expected tensor_list to have an entry for each of 1 ranks, got 2"
    ):
        dist.all_gather([x, x], x)
    with pytest.raises(ValueError, match="of 2 elements as tensor has, got 3"):
        dist.all_gather([torch.zeros(3)], x)
    with pytest.raises(ValueError, match="split sizes"):
        dist.all_to_all_single(torch.zeros(1, 2), x, [2], [1])
    work = dist.all_reduce(x, async_op=True)
    assert work.wait() and work.is_completed()


def test_objects_arrive_as_copies(world):
    given = {"a": [1]}
    out = [None]
    dist.all_gather_object(out, given)
    assert out == [given] and out[0] is not given
    dist.broadcast_object_list([given], src=0)
    dist.scatter_object_list(out, [given], src=0)
    assert out == [given] and out[0]["a"] is not given["a"]
    dist.gather_object(given, out, 0)
    with pytest.raises(ValueError, match=r"expected src to be a rank of the group, \[0\], got 1"):
        dist.broadcast(torch.ones(1), 1)
    for refused in (dist.send, dist.recv, dist.isend, dist.irecv):
        with pytest.raises(ValueError, match="expected the rank of another process"):
            refused(torch.ones(1), 0)


def test_gradients_flow(world):
    import flambeau.distributed.nn as nn

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = nn.all_reduce(x) * 2 + nn.all_gather(x)[0] + nn.broadcast(x, 0)
    y.sum().backward()
    assert x.grad.tolist() == [4, 4]


def test_parallel_modules_train_as_the_module(world):
    net = torch.nn.Linear(2, 1)
    x = torch.ones(3, 2)
    wrapped = torch.nn.parallel.DistributedDataParallel(net)
    assert list(wrapped.state_dict()) == ["module.weight", "module.bias"]
    with wrapped.no_sync():
        assert not wrapped.require_backward_grad_sync
    with wrapped.join():
        wrapped(x).sum().backward()
    assert wrapped.require_backward_grad_sync
    assert net.weight.grad.tolist() == [[3, 3]]
    for run in (torch.nn.DataParallel(net), lambda x: torch.nn.parallel.data_parallel(net, x)):
        assert torch.equal(run(x), net(x))
    with pytest.raises(RuntimeError, match="not needed when a module"):
        torch.nn.parallel.DistributedDataParallel(torch.nn.ReLU())
    with pytest.raises(TypeError, match="must be callable"):
        wrapped.register_comm_hook(None, None)


def test_wrapping_needs_a_group():
    with pytest.raises(ValueError, match="has not been initialized"):
        torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))


def test_batch_norm_and_samplers_know_of_it(world):
    norm = torch.nn.SyncBatchNorm(2)
    plain = torch.nn.BatchNorm1d(2)
    x = torch.randn(4, 2)
    assert torch.equal(norm(x), plain(x))
    sampler = torch.utils.data.DistributedSampler(range(4), shuffle=False)
    assert list(sampler) == [0, 1, 2, 3]


def test_join_tells_its_hooks(world):
    from flambeau.distributed.algorithms.join import Join, Joinable, JoinHook

    seen = []

    class Hook(JoinHook):
        def post_hook(self, is_last_joiner):
            seen.append(is_last_joiner)

    class Part(Joinable):
        join_device = torch.device("cpu")
        join_process_group = world

        def __init__(self):
            super().__init__()

        def join_hook(self, **kwargs):
            seen.append(kwargs)
            return Hook()

    class Late(Part):
        def __init__(self):
            pass

    parts = [Part(), Part()]
    assert Join.notify_join_context(parts[0]) is None
    with Join(parts, factor=2):
        work = Join.notify_join_context(parts[0])
        assert work.wait() and work.result()[0].item() == 1
        assert Join.notify_join_context(parts[1]) is None
    assert seen == [{"factor": 2}] * 2 + [True] * 2
    assert Join.notify_join_context(parts[0]) is None  # outside again
    with Join(parts, enable=False):
        assert Join.notify_join_context(parts[0]) is None
    with pytest.raises(KeyError), Join(parts):
        raise KeyError  # its own error, and no waiting
    assert Join.notify_join_context(parts[0]) is None
    assert seen[4:] == [{}] * 4
    with pytest.raises(AssertionError, match="constructor calls the ``Joinable`` constructor"):
        Join.notify_join_context(Late())
    with pytest.raises(ValueError, match="at least one joinable"):
        Join([])
    parts[1].join_process_group = dist.new_group([0])
    with pytest.raises(ValueError, match="multiple process groups"):
        Join(parts)


def test_placements_are_compared_by_value():
    from flambeau.distributed.tensor import Partial, Replicate, Shard

    assert Shard(1) == Shard(1) != Shard(0) and Replicate() == Replicate()
    assert Shard(1).is_shard(1) and not Shard(1).is_shard(0) and not Partial().is_replicate()
