"""Samplers: the order in which a loader visits a dataset.

Owns the sampler classes. A sampler yields keys (or lists of keys) and never touches samples. Each
one draws from its generator exactly as documented in Note [Random calls of a data loader], so that
a shuffle depends on the seed alone.
"""

# Note [Random calls of a data loader]
# ------------------------------------
# Runs with one seed must visit samples in one order, the same as PyTorch's. So the calls that
# consume random numbers are fixed, in this order:
#   1. the loader's iterator: one 64-bit `random_()` (the workers' base seed), from the loader's
#      generator or the global one, when the iterator is created;
#   2. RandomSampler without a generator: one 64-bit `random_()` from the global generator, on the
#      first index asked for, which seeds a private generator; with a generator it uses that one;
#   3. RandomSampler: without replacement one `randperm(n)` per full pass and one more for the rest,
#      even where the rest is empty (a shared generator feels it); with replacement `randint` in
#      blocks of 32, then the remainder, even where it is zero;
#   4. SubsetRandomSampler: one `randperm`; WeightedRandomSampler: one `multinomial` in float64.
#   5. a pipe: one 64-bit `random_()` before the base seed, which seeds a private generator for the
#      shufflers of the graph; with workers a second one behind it, unused in the first pass; kept
#      workers: one per later pass.

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import flambeau as fb

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

_T_co = TypeVar("_T_co", covariant=True)
_BLOCK = 32  # draws with replacement come in blocks of this size


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


class Sampler(Generic[_T_co]):
    """Base of all samplers: a subclass writes ``__iter__``, and ``__len__`` where it is known.

    Example:
        >>> class Backwards(Sampler):
        ...     def __init__(self, n): self.n = n
        ...     def __iter__(self): return iter(range(self.n - 1, -1, -1))
        >>> list(Backwards(3))
        [2, 1, 0]
    """

    def __iter__(self) -> Iterator[_T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ... up to the length of ``data_source``."""

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices of ``data_source`` in random order.

    Args:
        data_source: anything with a length.
        replacement: draw each index independently instead of permuting.
        num_samples: how many to yield, by default the length; beyond it, permutations follow one
            another.
        generator: source of random numbers; by default one seeded from the global generator at the
            start of each pass.
    """

    data_source: Sized
    replacement: bool

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(
                "num_samples should be a positive integer value, but got "
                f"num_samples={self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        # The dataset may grow between passes, so its length is asked for each time.
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, wanted = len(self.data_source), self.num_samples
        generator = self.generator
        if generator is None:
            seed = int(fb.empty((), dtype=fb.int64).random_().item())
            generator = fb.Generator()
            generator.manual_seed(seed)
        if self.replacement:
            for size in [_BLOCK] * (wanted // _BLOCK) + [wanted % _BLOCK]:
                draws = fb.randint(high=n, size=(size,), dtype=fb.int64, generator=generator)
                yield from draws.tolist()
        else:
            for _ in range(wanted // n):
                yield from fb.randperm(n, generator=generator).tolist()
            yield from fb.randperm(n, generator=generator).tolist()[: wanted % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given ``indices`` in random order, each once.

    Args:
        indices: what to choose from.
        generator: source of random numbers; the global one by default.
    """

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in fb.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices ``0 .. len(weights) - 1`` drawn in proportion to ``weights``.

    Args:
        weights: non-negative numbers, one per index; they need not add up to one.
        num_samples: how many to draw.
        replacement: whether an index may be drawn again.
        generator: source of random numbers; the global one by default.
    """

    weights: fb.Tensor
    num_samples: int
    replacement: bool

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Any = None,
    ) -> None:
        if not _is_count(num_samples):
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        self.weights = fb.as_tensor(weights, dtype=fb.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                "weights should be a 1d sequence but given weights have shape "
                f"{tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = fb.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Groups what another sampler yields into lists of ``batch_size``.

    Args:
        sampler: any iterable of indices.
        batch_size: indices per list.
        drop_last: leave out a last list that is not full.

    Example:
        >>> list(BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool
    ) -> None:
        if not _is_count(batch_size):
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        full, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return full + (1 if rest and not self.drop_last else 0)
