"""Datasets and collation: combination, batched access, structures in and out, errors."""

from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest

import flambeau as fb
from flambeau.utils.data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    default_collate,
    default_convert,
)

Point = namedtuple("Point", "x y")


class Stream(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        return self.n


class Many(Dataset):
    """Counts how samples are asked for."""

    def __init__(self, answer=None):
        self.calls, self.answer = [], answer

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return 10 * i

    def __getitems__(self, indices):
        self.calls.append(list(indices))
        return self.answer if self.answer is not None else [10 * i for i in indices]


def test_base_class():
    with pytest.raises(NotImplementedError, match="should implement __getitem__"):
        Dataset()[0]
    with pytest.raises(TypeError):
        len(Dataset())
    assert Dataset[int] is not None


def test_tensor_dataset():
    x, y = fb.arange(6).reshape(3, 2), fb.arange(3)
    row = TensorDataset(x, y)[1]
    assert isinstance(row, tuple) and row[0].tolist() == [2, 3] and row[1].item() == 1
    assert len(TensorDataset(x, y)) == 3
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        TensorDataset(x, fb.arange(4))


def test_concat():
    both = Many() + ConcatDataset([[7, 8]])
    assert [both[i] for i in range(6)] == [0, 10, 20, 30, 7, 8]
    assert both[-1] == 8 and both[-6] == 0 and len(both) == 6
    with pytest.raises(ValueError, match="absolute value of index"):
        both[-7]
    with pytest.raises(IndexError):
        both[6]
    with pytest.raises(AssertionError, match="empty iterable"):
        ConcatDataset([])
    with pytest.raises(AssertionError, match="does not support IterableDataset"):
        ConcatDataset([Stream(1)])
    with pytest.warns(FutureWarning, match="renamed"):
        assert both.cummulative_sizes == [4, 6]


def test_chain():
    chain = Stream(2) + Stream(3)
    assert list(chain) == [0, 1, 0, 1, 2] and len(chain) == 5
    with pytest.raises(AssertionError, match="only supports IterableDataset"):
        list(ChainDataset([[1, 2]]))


def test_stack():
    many = Many()
    pair = StackDataset(many, "abcd")
    assert pair[2] == (20, "c") and len(pair) == 4
    assert pair.__getitems__([0, 3]) == [(0, "a"), (30, "d")] and many.calls == [[0, 3]]
    named = StackDataset(n=Many(), c="abcd")
    assert named.__getitems__([1]) == [{"n": 10, "c": "b"}]
    with pytest.raises(ValueError, match="size mismatch. Expected 2, got 1"):
        StackDataset(Many(answer=[1])).__getitems__([0, 1])
    with pytest.raises(ValueError, match="Size mismatch between datasets"):
        StackDataset([1], [1, 2])
    with pytest.raises(ValueError, match="At least one dataset"):
        StackDataset()
    with pytest.raises(ValueError, match="got both"):
        StackDataset([1], x=[1])


def test_subset():
    many = Many()
    part = Subset(many, [3, 1])
    assert part[0] == 30 and len(part) == 2
    assert part.__getitems__([1, 0]) == [10, 30] and many.calls == [[1, 3]]
    assert Subset("abcd", [2, 0]).__getitems__([0, 1]) == ["c", "a"]

    class Half(Subset):
        def __getitem__(self, i):
            return 0

    with pytest.raises(NotImplementedError, match="Half overrides __getitem__ but not"):
        Half(many, [0])


def test_collate_leaves():
    assert default_collate([1, 2]).dtype == fb.int64
    assert default_collate([1.0, 2.0]).dtype == fb.float64
    assert default_collate([True, False]).dtype == fb.bool
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([b"a"]) == [b"a"]
    assert default_collate([np.float32(1), np.float32(2)]).dtype == fb.float32
    assert default_collate([np.float64(1)]).dtype == fb.float64
    stacked = default_collate([np.zeros((2, 3), np.int16)] * 4)
    assert stacked.dtype == fb.int16 and tuple(stacked.shape) == (4, 2, 3)
    assert default_collate([fb.ones(2), fb.zeros(2)]).tolist() == [[1.0, 1.0], [0.0, 0.0]]


def test_collate_structures():
    out = default_collate([{"a": 1, "b": (2, [3])}, {"a": 4, "b": (5, [6])}])
    assert out["a"].tolist() == [1, 4]
    assert isinstance(out["b"], list) and out["b"][0].tolist() == [2, 5]
    assert out["b"][1][0].tolist() == [3, 6]
    point = default_collate([Point(1, 2.0), Point(3, 4.0)])
    assert type(point) is Point and point.x.tolist() == [1, 3] and point.y.tolist() == [2.0, 4.0]
    assert type(default_collate([OrderedDict(a=1)])) is OrderedDict
    counted = default_collate([defaultdict(list, a=1)])
    assert type(counted) is defaultdict and counted.default_factory is list
    assert [t.tolist() for t in default_collate([range(2), range(2)])] == [[0, 0], [1, 1]]


def test_collate_errors():
    with pytest.raises(RuntimeError, match="should be of equal size"):
        default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="default_collate: batch must contain"):
        default_collate([object()])
    with pytest.raises(TypeError, match="<U1"):
        default_collate([np.array(["a"])])
    with pytest.raises(RuntimeError):
        default_collate([fb.ones(2), fb.ones(3)])


def test_convert():
    array = np.arange(2)
    out = default_convert({"a": array, "b": [1, array], "c": (array, "s"), "d": Point(1, array)})
    assert out["a"].tolist() == [0, 1] and out["b"][0] == 1 and out["b"][1].tolist() == [0, 1]
    assert isinstance(out["c"], list) and out["c"][1] == "s"
    assert type(out["d"]) is Point and out["d"].y.tolist() == [0, 1]
    text = np.array(["x"])
    assert default_convert(text) is text
    assert default_convert(np.float32(2)).dtype == fb.float32
    tensor = fb.ones(1)
    assert default_convert(tensor) is tensor
