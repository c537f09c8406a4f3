"""Samplers and random_split: which indices, in which order, from which random calls.

The literal orders are those PyTorch gives for the same seeds: a shuffle must not depend on the
library.
"""

import doctest
import importlib

import pytest

import flambeau
import flambeau as fb
from flambeau.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    random_split,
)


def seeded(make):
    fb.manual_seed(0)
    return list(make())


def test_shuffled_loader_follows_pytorch_order_over_two_epochs():
    fb.manual_seed(0)
    loader = DataLoader(range(10), shuffle=True, batch_size=4)
    assert [b.tolist() for b in loader] == [[6, 7, 1, 4], [2, 0, 9, 8], [3, 5]]
    assert [b.tolist() for b in loader] == [[2, 4, 7, 0], [8, 9, 5, 3], [6, 1]]
    assert fb.rand(1).item() == pytest.approx(0.455627977848053, abs=1e-7)


def test_loader_with_its_own_generator():
    generator = fb.Generator()
    generator.manual_seed(1)
    loader = DataLoader(range(6), shuffle=True, batch_size=6, generator=generator)
    assert [b.tolist() for b in loader] == [[0, 4, 5, 1, 2, 3]]
    assert [b.tolist() for b in loader] == [[1, 0, 4, 3, 2, 5]]


def test_random_sampler():
    assert seeded(lambda: RandomSampler(range(5), num_samples=12)) == [
        1, 3, 4, 2, 0, 4, 0, 2, 3, 1, 4, 0,
    ]  # fmt: skip
    drawn = seeded(lambda: RandomSampler(range(5), replacement=True, num_samples=35))
    assert drawn[:12] == [1, 0, 4, 3, 4, 0, 2, 3, 4, 1, 3, 0]
    assert drawn[32:] == [4, 1, 3] and len(drawn) == 35


def test_subset_and_weighted():
    assert seeded(lambda: SubsetRandomSampler([3, 1, 4, 15, 9])) == [9, 3, 1, 15, 4]
    weights = [0.1, 0.9, 0.4, 0.7, 3.0, 0.6]
    once = seeded(lambda: WeightedRandomSampler(weights, 5, replacement=False))
    assert once == [4, 1, 2, 5, 3]
    assert seeded(lambda: WeightedRandomSampler(weights, 8)) == [5, 4, 4, 5, 4, 4, 2, 3]


def test_random_split_order_fractions_and_errors():
    parts = seeded(lambda: random_split(range(10), [0.3, 0.3, 0.4]))
    assert [p.indices for p in parts] == [[4, 1, 7], [5, 3, 9], [0, 8, 6, 2]]
    assert [len(p) for p in random_split(range(11), [0.5, 0.5])] == [6, 5]
    assert [len(p) for p in random_split(range(3), [1, 2])] == [1, 2]
    with pytest.raises(ValueError, match="does not equal the length"):
        random_split(range(3), [1, 1])
    with pytest.raises(ValueError, match="Fraction at index 0 is not between 0 and 1"):
        random_split(range(3), [1.5, -0.5])
    with pytest.warns(UserWarning, match="split at index 1 is 0"):
        random_split(range(1), [0.5, 0.5])


def test_batch_sampler():
    assert list(BatchSampler(SequentialSampler(range(5)), 2, True)) == [[0, 1], [2, 3]]
    assert list(BatchSampler(iter(range(3)), 2, False)) == [[0, 1], [2]]
    assert len(BatchSampler(range(5), 2, True)) == 2
    assert len(BatchSampler(range(5), 2, False)) == 3


def test_distributed_sampler():
    sampler = DistributedSampler(range(7), 3, 1, seed=2)
    sampler.set_epoch(4)
    assert list(sampler) == [4, 0, 2]
    shares = [list(DistributedSampler(range(7), 3, r, shuffle=False)) for r in range(3)]
    assert shares == [[0, 3, 6], [1, 4, 0], [2, 5, 1]]
    cut = [list(DistributedSampler(range(7), 3, r, False, drop_last=True)) for r in range(3)]
    assert cut == [[0, 3], [1, 4], [2, 5]]
    few = [list(DistributedSampler(range(2), 5, r, shuffle=False)) for r in range(5)]
    assert few == [[0], [1], [0], [1], [0]]
    with pytest.raises(ValueError, match=r"Invalid rank 3, .*\[0, 2\]"):
        DistributedSampler(range(7), 3, 3)


@pytest.mark.parametrize("count", [0, -1, True, 1.5])
def test_counts_are_checked(count):
    with pytest.raises(ValueError, match="num_samples should be a positive integer"):
        WeightedRandomSampler([1.0], count)
    with pytest.raises(ValueError, match="batch_size should be a positive integer"):
        BatchSampler(range(3), count, False)


def test_other_arguments_are_checked():
    with pytest.raises(TypeError, match="replacement should be a boolean"):
        RandomSampler(range(3), replacement=1)
    with pytest.raises(ValueError, match="num_samples=0"):
        RandomSampler([])
    with pytest.raises(ValueError, match=r"weights have shape \(1, 2\)"):
        WeightedRandomSampler([[1.0, 2.0]], 1)
    with pytest.raises(ValueError, match="drop_last should be a boolean"):
        BatchSampler(range(3), 1, 0)
    with pytest.raises(NotImplementedError):
        iter(Sampler())


MODULES = [
    "dataset",
    "sampler",
    "distributed",
    "dataloader",
    "stateful_dataloader",
    "stateful_dataloader.stateful",
    "_utils.collate",
    "_utils.worker",
    *(
        f"nodes.{name}"
        for name in ("adapters", "base_node", "batch", "csv_reader", "loader", "map")
    ),
    *(f"nodes.{name}" for name in ("pin_memory", "prefetch", "selecting")),
    "nodes.samplers.multi_node_weighted_sampler",
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    module = importlib.import_module(f"flambeau.utils.data.{name}")
    outcome = doctest.testmod(module, extraglobs={"torch": flambeau})
    assert outcome.failed == 0 and outcome.attempted > 0
