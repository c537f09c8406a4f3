"""Every collective, operator and dtype against NumPy, over both engines, in worlds of 1 to 4."""

import itertools

import numpy as np
import pytest

import flambeau as torch
from tests.distributed import worlds

dist = torch.distributed
Op = dist.ReduceOp

WHOLE = "uint8 int8 int16 int32 int64 uint16 uint32 uint64".split()
FLOATS = "float16 bfloat16 float32 float64".split()
COMPLEX = "complex64 complex128".split()
DTYPES = ["bool", *WHOLE, *FLOATS, *COMPLEX]
OPS = {
    Op.SUM: np.add,
    Op.PRODUCT: np.multiply,
    Op.MIN: np.minimum,
    Op.MAX: np.maximum,
    Op.BAND: np.bitwise_and,
    Op.BOR: np.bitwise_or,
    Op.BXOR: np.bitwise_xor,
    Op.AVG: np.add,
}
BITS = (Op.BAND, Op.BOR, Op.BXOR)


def has(op, dtype):
    """Whether values of the dtype can be joined so."""
    if op in BITS:
        return dtype == "bool" or dtype in WHOLE
    if op is Op.AVG:
        return dtype in FLOATS + COMPLEX
    return dtype not in COMPLEX or op in (Op.SUM, Op.PRODUCT)


def values(dtype, shape, rank, seed=0):
    """What a rank has: small numbers, so that sums of halves are exact before they are rounded."""
    draw = np.random.default_rng((seed, rank))
    if dtype == "bool":
        return torch.from_numpy(np.asarray(draw.random(shape) < 0.5))
    if dtype in WHOLE:
        low = 0 if dtype.startswith("u") else -5
        return torch.from_numpy(np.asarray(draw.integers(low, 6, shape))).to(getattr(torch, dtype))
    numbers = draw.integers(-8, 9, shape) / 4
    if dtype in COMPLEX:
        numbers = numbers + 1j * draw.integers(-8, 9, shape) / 4
    return torch.from_numpy(np.asarray(numbers)).to(getattr(torch, dtype))


def array(x):
    """As NumPy has it; halves as float32."""
    return (x.float() if x.dtype in (torch.float16, torch.bfloat16) else x).numpy()


def joined(op, dtype, parts):
    """The expected result."""
    total = array(parts[0])
    with np.errstate(over="ignore"):
        for part in parts[1:]:
            total = OPS[op](total, array(part))
    if op is Op.AVG:
        real, imag = (part / len(parts) for part in (total.real, total.imag))
        total = real + 1j * imag if dtype in COMPLEX else real
    return array(torch.from_numpy(np.asarray(total)).to(getattr(torch, dtype)))


def strided(x):
    """The same values, with gaps between them."""
    wide = torch.zeros(*x.shape, 2, dtype=x.dtype)
    wide[..., 0] = x
    return wide[..., 0]


def same(x, expected):
    np.testing.assert_array_equal(array(x), expected)


def done(work):
    """Wait for a collective that was called with async_op=True or not."""
    assert work is None or work.wait()


def every_join(rank, size):
    kinds = itertools.product(DTYPES, OPS, [(3, 5), (0,), (), (2, 1)])
    for i, (dtype, op, shape) in enumerate(kinds):
        if not has(op, dtype):
            with pytest.raises(RuntimeError, match="Cannot use ReduceOp|does not support ReduceOp"):
                dist.all_reduce(values(dtype, shape, rank), op)
            continue
        form = strided if i % 3 == 0 else torch.clone
        parts = [values(dtype, shape, r, i) for r in range(size)]
        expected = joined(op, dtype, parts)
        x = form(parts[rank])
        done(dist.all_reduce(x, op, async_op=i % 2 == 0))
        same(x, expected)
        root = i % size
        x = form(parts[rank])
        done(dist.reduce(x, root, op, async_op=i % 2 == 0))
        same(x, expected if rank == root else array(parts[rank]))
        lists = [[values(dtype, shape, (r, q), i) for q in range(size)] for r in range(size)]
        out = form(torch.zeros_like(parts[rank]))
        done(dist.reduce_scatter(out, [form(x) for x in lists[rank]], op, async_op=i % 2 == 0))
        expected = joined(op, dtype, [lists[r][rank] for r in range(size)])
        same(out, expected)
        out = form(torch.zeros_like(parts[rank]))
        stacked = form(torch.stack(lists[rank]))
        done(dist.reduce_scatter_tensor(out, stacked, op, async_op=i % 2 == 0))
        same(out, expected)


def every_move(rank, size):
    for i, (dtype, shape) in enumerate(itertools.product(DTYPES, [(3, 5), (0,), (), (7,)])):
        form, wait = (strided if i % 3 == 0 else torch.clone), {"async_op": i % 2 == 0}
        parts = [values(dtype, shape, r, i) for r in range(size)]
        arrays = [array(p) for p in parts]
        mine, root = form(parts[rank]), i % size
        zero = torch.zeros_like(parts[0])

        x = mine.clone()
        done(dist.broadcast(x, root, **wait))
        same(x, arrays[root])

        out = [form(zero) for _ in range(size)]
        done(dist.all_gather(out, mine, **wait))
        for x, expected in zip(out, arrays, strict=True):
            same(x, expected)
        for whole in (torch.stack([zero] * size), torch.cat([zero.reshape(-1)] * size)):
            whole = form(whole)
            done(dist.all_gather_into_tensor(whole, mine, **wait))
            same(whole, np.stack(arrays).reshape(whole.shape))

        out = [form(zero) for _ in range(size)] if rank == root else None
        done(dist.gather(mine, out, root, **wait))
        for x, expected in zip(out or [], arrays, strict=False):
            same(x, expected)

        x = form(zero)
        given = [form(p) for p in parts] if rank == root else None
        done(dist.scatter(x, given, root, **wait))
        same(x, arrays[rank])

        lists = [[values(dtype, shape, (r, q), i) for q in range(size)] for r in range(size)]
        out = [form(zero) for _ in range(size)]
        done(dist.all_to_all(out, [form(x) for x in lists[rank]], **wait))
        for r in range(size):
            same(out[r], array(lists[r][rank]))


def uneven(rank, size):
    out = [torch.zeros(r + 1, 2) for r in range(size)]
    dist.all_gather(out, torch.full((rank + 1, 2), float(rank)))
    assert [x.flatten().tolist() for x in out] == [[r] * 2 * (r + 1) for r in range(size)]
    given = torch.arange(6.0).reshape(3, 2) + 10 * rank
    if size == 2:
        sizes = [[1, 2], [3, 0]]
        out = torch.zeros(sizes[0][rank] + sizes[1][rank], 2)
        split = [sizes[0][rank], sizes[1][rank]]
        dist.all_to_all_single(out, given, split, sizes[rank])
        expected = {0: [[0, 1], [10, 11], [12, 13], [14, 15]], 1: [[2, 3], [4, 5]]}
        assert out.tolist() == expected[rank]
    x = torch.arange(2.0 * size) + 100 * rank
    out = torch.zeros(2 * size)
    dist.all_to_all_single(out, x)
    assert out.tolist() == [100 * r + 2 * rank + j for r in range(size) for j in range(2)]
    lists = [torch.full((q + 1,), float(rank)) for q in range(size)]
    out = torch.zeros(rank + 1)
    dist.reduce_scatter(out, lists)
    assert out.tolist() == [sum(range(size))] * (rank + 1)


def edges(rank, size):
    """Sums that are cut into parts by rank: as long as a block, a little shorter and longer."""
    block = 256 * 1024 // (size + 1) // 64 * 64 * size  # bytes
    for dtype in ("bool", "uint8", "float16", "float32", "complex128"):
        item = torch.empty((), dtype=getattr(torch, dtype)).itemsize
        for times, more in ((3, -1), (3, 0), (3, 1), (4, block // size // item + 2)):
            n = times * block // item + more
            parts = [values(dtype, (n,), r, n) for r in range(size)]
            x = parts[rank].clone()
            dist.all_reduce(x)
            same(x, joined(Op.SUM, dtype, parts))


def large(rank, size):
    """More than the slots that ranks share hold, several times over, with a rest."""
    n = 700_001
    draw = [torch.from_numpy(np.random.default_rng(r).integers(-9, 9, n)) for r in range(size)]
    total = sum(d.numpy() for d in draw)
    x = draw[rank].clone()
    dist.all_reduce(x)
    np.testing.assert_array_equal(x.numpy(), total)
    x = draw[rank].clone()
    dist.broadcast(x, size - 1)
    np.testing.assert_array_equal(x.numpy(), draw[-1].numpy())
    x = draw[rank].clone()
    dist.reduce(x, size - 1)
    np.testing.assert_array_equal(x.numpy(), total if rank == size - 1 else draw[rank].numpy())
    got = [torch.zeros_like(x) for _ in range(size)] if rank == 0 else None
    dist.gather(draw[rank], got)
    for r, part in enumerate(got or []):
        np.testing.assert_array_equal(part.numpy(), draw[r].numpy())
    out = [torch.zeros_like(x) for _ in range(size)]
    dist.all_gather(out, draw[rank])
    dist.all_to_all(got := [torch.zeros_like(x) for _ in range(size)], [draw[rank]] * size)
    for r in range(size):
        np.testing.assert_array_equal(out[r].numpy(), draw[r].numpy())
        np.testing.assert_array_equal(got[r].numpy(), draw[r].numpy())
    x = torch.zeros(n, dtype=torch.int64)
    dist.reduce_scatter(x, [draw[rank] + q for q in range(size)])
    np.testing.assert_array_equal(x.numpy(), total + size * rank)
    dist.scatter(x, [d + 1 for d in draw] if rank == 0 else None)
    np.testing.assert_array_equal(x.numpy(), draw[rank].numpy() + 1)


def numbers(rank, size):
    """What IEEE numbers and whole numbers do at their ends."""
    x = torch.tensor([float("nan") if rank == size - 1 else 1.0, float("inf")])
    for op in (Op.MIN, Op.MAX, Op.SUM):
        y = x.clone()
        dist.all_reduce(y, op)
        assert y[0].isnan() and y[1] == float("inf")
    for dtype in (torch.int8, torch.uint8, torch.int64):
        x = torch.full((3,), torch.iinfo(dtype).max, dtype=dtype)
        dist.all_reduce(x)
        with np.errstate(over="ignore"):
            expected = sum([np.full(3, torch.iinfo(dtype).max, x.numpy().dtype)] * size)
        same(x, expected.astype(x.numpy().dtype))
    # Summed in float32 and rounded once: each addition of 1 to 2048 would be lost in float16.
    x = torch.full((2,), 2048.0 if rank == 0 else 1.0, dtype=torch.float16)
    dist.all_reduce(x)
    assert x.tolist() == [float(np.float16(2048 + size - 1))] * 2
    truth = torch.tensor([2, 0], dtype=torch.uint8).view(torch.bool)
    dist.all_reduce(truth)
    assert truth.tolist() == [True, False]


def objects(rank, size):
    out = [None] * size
    dist.all_gather_object(out, {"rank": rank, "text": "x" * rank})
    assert out == [{"rank": r, "text": "x" * r} for r in range(size)]
    got = [None] * size if rank == size - 1 else None
    dist.gather_object(("r", rank), got, size - 1)
    assert got is None or got == [("r", r) for r in range(size)]
    got = [None, None] if rank else [[1, 2], "text"]
    dist.broadcast_object_list(got)
    assert got == [[1, 2], "text"]
    out = [None]
    dist.scatter_object_list(out, [f"for {r}" * r for r in range(size)] if rank == 0 else None)
    assert out == [f"for {rank}" * rank]


def works(rank, size):
    """Several under way at once end in their order, and tell when."""
    xs = [torch.full((1000,), float(i)) for i in range(20)]
    begun = [dist.all_reduce(x, async_op=True) for x in xs]
    assert begun[-1].wait() and all(w.is_completed() and w.is_success() for w in begun)
    assert [x[0].item() for x in xs] == [i * size for i in range(20)]
    seen = []
    work = dist.all_reduce(strided(torch.ones(3)), async_op=True)
    future = work.get_future().then(lambda f: seen.append(f.value()[0].tolist()))
    future.wait()
    assert seen == [[size] * 3] and work.result()[0].tolist() == [size] * 3
    assert work.exception() is None
    for inner in ([torch.ones(2), torch.ones(1)],):
        dist.all_reduce_coalesced(inner)
        assert [x.tolist() for x in inner] == [[size] * 2, [size]]
        lists = [[torch.zeros(2) for _ in range(size)], [torch.zeros(1) for _ in range(size)]]
        dist.all_gather_coalesced(lists, inner)
        assert lists[0][-1].tolist() == [size] * 2
    version = xs[0]._version
    dist.all_reduce(xs[0])
    assert xs[0]._version > version
    dist.barrier()
    dist.barrier(async_op=True).wait()
    dist.monitored_barrier()


def groups(rank, size):
    world = dist.group.WORLD
    assert dist.get_process_group_ranks(world) == list(range(size))
    odd, even = dist.new_group(range(1, size, 2)), dist.new_group(range(0, size, 2))
    mine = odd if rank % 2 else even
    members = list(range(rank % 2, size, 2))
    other = even if rank % 2 else odd
    assert other == dist.GroupMember.NON_GROUP_MEMBER or size == 1
    assert dist.get_rank(other) == -1 == dist.get_world_size(other) or size == 1
    assert dist.get_process_group_ranks(mine) == members
    assert dist.get_global_rank(mine, 0) == members[0]
    assert dist.get_group_rank(mine, rank) == members.index(rank) == mine.rank()
    x = torch.tensor([rank])
    dist.all_reduce(x, group=mine)
    assert x.item() == sum(members)
    x = torch.tensor([rank])
    dist.broadcast(x, members[-1], group=mine)
    assert x.item() == members[-1]
    dist.broadcast(x, group=mine, group_src=0)
    with pytest.raises(ValueError, match="expected src to be a rank of the group"):
        dist.broadcast(x, size, group=mine)
    if size > 1:
        with pytest.warns(UserWarning, match="does not belong to the given group"):
            dist.all_reduce(x, group=other)
    if rank == 0:
        alone = dist.new_group([0], use_local_synchronization=True)
        dist.all_reduce(x, group=alone)
        dist.destroy_process_group(alone)
        with pytest.raises(RuntimeError, match="the group was destroyed"):
            dist.all_reduce(x, group=alone)
    half, all_halves = dist.new_subgroups(max(size // 2, 1))
    x = torch.ones(1)
    dist.all_reduce(x, group=half)
    assert x.item() == max(size // 2, 1) and len(all_halves) == size // half.size()
    part = dist.split_group(split_ranks=[[r] for r in range(size)][::-1])
    assert dist.get_process_group_ranks(part) == [rank]
    with pytest.raises(ValueError, match="each once"):
        dist.split_group(split_ranks=[[0], [0]])
    for refused in ([0, 0], [size]):
        with pytest.raises(ValueError):
            dist.new_group(refused)


def derivatives(rank, size):
    import flambeau.distributed.nn as nn

    def grad(f):
        x = torch.full((2,), rank + 1.0, dtype=torch.float64, requires_grad=True)
        f(x).backward()
        return x.grad.tolist()

    weight = rank + 1.0
    total = sum(range(1, size + 1))
    # The derivative of the sum over all ranks of what each of them computes.
    assert grad(lambda x: (nn.all_reduce(x) * weight).sum()) == [total] * 2
    expected = [total] * 2 if rank == size - 1 else [0, 0]
    assert grad(lambda x: (nn.broadcast(x, size - 1) * weight).sum()) == expected
    assert grad(lambda x: (nn.reduce(x, 0) * weight).sum()) == [1, 1]

    # Every rank multiplies part r by r + 1.
    def gathered(x):
        return sum(((r + 1) * y).sum() for r, y in enumerate(nn.all_gather(x)))

    assert grad(gathered) == [size * (rank + 1.0)] * 2
    assert grad(lambda x: sum(y.sum() for y in nn.gather(x, 0))) == [1, 1]
    split = [size * weight if rank == 0 else 0] * 2
    spread = grad(lambda x: nn.scatter([x * 1 for _ in range(size)], 0).sum())
    assert spread == ([size] * 2 if rank == 0 else [0, 0]), (spread, split)
    got = grad(lambda x: nn.reduce_scatter(x, [x * 1 for _ in range(size)]).sum())
    assert got == [size] * 2
    out = [torch.zeros(2, dtype=torch.float64) for _ in range(size)]
    got = grad(lambda x: sum((weight * y).sum() for y in nn.all_to_all(out, [x * 1] * size)))
    assert got == [total] * 2
    # One row more for each later rank goes to it, and it multiplies what it gets by its weight.
    sizes, rows = list(range(1, size + 1)), size * (size + 1) // 2
    x = torch.full((rows, 2), weight, dtype=torch.float64, requires_grad=True)
    out = torch.zeros(size * sizes[rank], 2, dtype=torch.float64)
    y = nn.all_to_all_single(out, x, [sizes[rank]] * size, sizes)
    assert y[:, 0].tolist() == [r + 1.0 for r in range(size) for _ in range(sizes[rank])]
    (y * weight).sum().backward()
    assert x.grad[:, 1].tolist() == [r + 1.0 for r in range(size) for _ in range(sizes[r])]
    assert grad(lambda x: (nn._all_gather_base(x.new_zeros(2 * size), x) * weight).sum()) == (
        [total] * 2
    )


def everything(rank, size):
    for part in (every_join, every_move, uneven, edges, large, numbers, objects, works, groups):
        part(rank, size)
    derivatives(rank, size)


@worlds.engines("size", [1, 3], tcp=[2], more=[4])
def test_values(engine, size):
    worlds.run("test_collectives", "everything", size, timeout=100, **{worlds.ENGINE: engine})
