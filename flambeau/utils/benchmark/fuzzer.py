"""Inputs drawn at random: sizes by parameters, tensors of these sizes in many layouts.

Owns `Fuzzer` and its parts. The same seed draws the same inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import flambeau as fb

__all__ = ["FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias", "dtype_size"]

_TRIES = 1000  # draws of one input before it is given up
_CONTINUOUS = ("uniform", "loguniform")


def dtype_size(dtype: Any) -> int:
    """Bytes of an element.

    >>> dtype_size(fb.float64)
    8
    """
    return int(dtype.itemsize)


class ParameterAlias:
    """Stands for another parameter in a distribution: its value is the other one's.

    Args:
        alias_to: name of the other parameter.
    """

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A number that is drawn.

    Args:
        name: by which sizes, strides and constraints know it.
        minval, maxval: bounds, both included, of a uniform or loguniform distribution; whole
            numbers where both are.
        distribution: "uniform", "loguniform", or values with their probabilities.
        strict: a `ParameterAlias` may not be among the values.

    >>> FuzzedParameter("n", 1, 8, "uniform").sample(np.random.RandomState(0)) in range(1, 9)
    True
    """

    def __init__(
        self, name: str, minval: float | None = None, maxval: float | None = None,
        distribution: str | Mapping[Any, float] | None = None, strict: bool = False,
    ) -> None:  # fmt: skip
        self._name, self._minval, self._maxval = name, minval, maxval
        self.strict = strict
        if distribution is None:
            raise ValueError(f"FuzzedParameter {name}: expected a distribution")
        if isinstance(distribution, str):
            if distribution not in _CONTINUOUS:
                raise ValueError(
                    f"FuzzedParameter {name}: expected one of {_CONTINUOUS}, got {distribution!r}"
                )
            if minval is None or maxval is None or minval > maxval:
                raise ValueError(
                    f"FuzzedParameter {name}: expected minval <= maxval, got {minval} and {maxval}"
                )
            if distribution == "loguniform" and minval <= 0:
                raise ValueError(f"FuzzedParameter {name}: loguniform needs minval > 0")
        elif minval is not None or maxval is not None:
            raise ValueError(f"FuzzedParameter {name}: values have no minval and maxval")
        elif not distribution or min(distribution.values()) < 0 or not sum(distribution.values()):
            raise ValueError(f"FuzzedParameter {name}: expected probabilities that add up to 1")
        elif strict and any(isinstance(v, ParameterAlias) for v in distribution):
            raise ValueError(f"FuzzedParameter {name}: strict, but an alias is among its values")
        self._distribution = distribution

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def sample(self, state: np.random.RandomState) -> Any:
        """One value."""
        d = self._distribution
        if not isinstance(d, str):
            values, weights = list(d), np.array(list(d.values()), dtype=float)
            return values[int(state.choice(len(values), p=weights / weights.sum()))]
        assert self._minval is not None and self._maxval is not None
        low, high = self._minval, self._maxval
        drawn = (
            float(state.uniform(low, high)) if d == "uniform"
            else math.exp(state.uniform(math.log(low), math.log(high)))
        )  # fmt: skip
        if not (isinstance(low, int) and isinstance(high, int)):
            return drawn
        if d == "uniform":
            return int(state.randint(low, high + 1))
        return min(max(round(drawn), low), high)


class FuzzedTensor:
    """A tensor that is drawn.

    Args:
        name: key of the tensor among what is drawn.
        size: names of parameters, or numbers.
        steps: of each dim, the name of the parameter, or the number, of elements between two.
        probability_contiguous: that dims lie in memory in their order.
        min_elements, max_elements: draws beyond these are thrown away.
        max_allocation_bytes: as these, for the memory with its gaps.
        dim_parameter: name of the parameter that says how many of the dims there are.
        roll_parameter: not supported; must be None.
        dtype: of the elements.
        cuda: must be False.
        tensor_constructor: called with `size=`, `dtype=` and the parameters by name; None: uniform
            numbers from 0 to 1, or whole ones from 0 to 127.
    """

    def __init__(
        self, name: str, size: Sequence[str | int], steps: Sequence[str | int] | None = None,
        probability_contiguous: float = 0.5, min_elements: int | None = None,
        max_elements: int | None = None, max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None, roll_parameter: str | None = None,
        dtype: Any = fb.float32, cuda: bool = False,
        tensor_constructor: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        if roll_parameter is not None:
            raise NotImplementedError("FuzzedTensor: roll_parameter is not there")
        if cuda:
            raise RuntimeError("FuzzedTensor: cuda=True, and there is no such device")
        if steps is not None and len(steps) != len(size):
            raise ValueError(f"FuzzedTensor {name}: {len(steps)} steps for {len(size)} sizes")
        self._name, self._size, self._steps = name, tuple(size), steps
        self._contiguous, self._dtype = probability_contiguous, dtype
        self._min, self._max, self._bytes = min_elements, max_elements, max_allocation_bytes
        self._dims, self._constructor = dim_parameter, tensor_constructor

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def _shape(self, params: Mapping[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Sizes and steps; None where they are out of bounds."""
        dims = len(self._size) if self._dims is None else int(params[self._dims])

        def value(x: str | int) -> int:
            return int(params[x] if isinstance(x, str) else x)

        size = tuple(map(value, self._size[:dims]))
        steps = tuple(map(value, (self._steps or (1,) * dims)[:dims]))
        elements = math.prod(size)
        taken = math.prod(n * s for n, s in zip(size, steps, strict=True))
        low, high = self._min or 0, math.inf if self._max is None else self._max
        room = math.inf if self._bytes is None else self._bytes
        fits = low <= elements <= high and taken * dtype_size(self._dtype) <= room
        return (size, steps) if fits else None

    def sample(
        self, params: Mapping[str, Any], state: np.random.RandomState
    ) -> tuple[Any, dict[str, Any]]:
        """The tensor for these parameters, and what there is to know of it."""
        found = self._shape(params)
        if found is None:
            raise ValueError(f"FuzzedTensor {self._name}: out of bounds for {dict(params)}")
        size, steps = found
        order = np.arange(len(size))
        if state.rand() >= self._contiguous:
            order = state.permutation(len(size))
        taken = [size[d] * steps[d] for d in order]
        if self._constructor is not None:
            made = self._constructor(size=taken, dtype=self._dtype, **params)
        else:
            generator = fb.Generator().manual_seed(int(state.randint(2**31)))
            if self._dtype.is_floating_point:
                made = fb.rand(taken, generator=generator, dtype=self._dtype)
            else:
                high = 2 if self._dtype is fb.bool else 128
                made = fb.randint(high, taken, generator=generator).to(self._dtype)
        made = made.permute([int(k) for k in np.argsort(order)])
        made = made[tuple(slice(0, n * s, s) for n, s in zip(size, steps, strict=True))]
        facts = {
            "numel": made.numel(), "order": order, "steps": steps,
            "is_contiguous": made.is_contiguous(), "dtype": str(self._dtype),
        }  # fmt: skip
        return made, facts


class Fuzzer:
    """Draws inputs for programs that are measured.

    Args:
        parameters: `FuzzedParameter`s, or lists of them.
        tensors: `FuzzedTensor`s, or lists of them.
        constraints: functions of the parameters by name; a draw for which one is false is thrown
            away.
        seed: of the draws; None: another each time.

    >>> fuzzer = Fuzzer(
    ...     [FuzzedParameter("n", 2, 8, "uniform")], [FuzzedTensor("x", ("n", "n"))], seed=0)
    >>> for tensors, facts, parameters in fuzzer.take(1):
    ...     tensors["x"].shape == (parameters["n"], parameters["n"])
    True
    """

    def __init__(
        self, parameters: Sequence[Any], tensors: Sequence[Any],
        constraints: Sequence[Callable[..., Any]] | None = None, seed: int | None = None,
    ) -> None:  # fmt: skip
        self._seed = int(np.random.default_rng().integers(2**31)) if seed is None else seed
        self._parameters: list[FuzzedParameter] = _flat(parameters, FuzzedParameter)
        self._tensors: list[FuzzedTensor] = _flat(tensors, FuzzedTensor)
        self._constraints = tuple(constraints or ())
        names = [x.name for x in (*self._parameters, *self._tensors)]
        twice = {n for n in names if names.count(n) > 1}
        if twice:
            raise ValueError(f"Fuzzer: parameters and tensors share names: {sorted(twice)}")
        self._drawn = self._thrown = 0

    @property
    def rejection_rate(self) -> float:
        """The share of draws that were thrown away."""
        if not self._drawn:
            return 0.0
        return self._thrown / self._drawn

    def take(self, n: int) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
        """n draws: tensors by name, facts of each, parameters by name."""
        state = np.random.RandomState(self._seed)
        for _ in range(n):
            params = self._draw(state)
            tensors, facts = {}, {}
            for t in self._tensors:
                tensors[t.name], facts[t.name] = t.sample(params, state)
            yield tensors, facts, params

    def _draw(self, state: np.random.RandomState) -> dict[str, Any]:
        for _ in range(_TRIES):
            self._drawn += 1
            drawn = {p.name: p.sample(state) for p in self._parameters}
            params = {name: _followed(drawn, value) for name, value in drawn.items()}
            if all(c(**params) for c in self._constraints) and all(
                t._shape(params) is not None for t in self._tensors
            ):
                return params
            self._thrown += 1
        raise ValueError(f"Fuzzer: {_TRIES} draws in a row were out of bounds or constraints")


def _followed(drawn: Mapping[str, Any], value: Any) -> Any:
    for _ in range(len(drawn) + 1):
        if not isinstance(value, ParameterAlias):
            return value
        if value.alias_to not in drawn:
            raise ValueError(f"Fuzzer: an alias of {value.alias_to!r}, which is no parameter")
        value = drawn[value.alias_to]
    raise ValueError("Fuzzer: aliases of parameters go round in a circle")


def _flat(given: Sequence[Any], kind: type) -> list[Any]:
    out = []
    for x in given:
        out.extend(x if isinstance(x, (list, tuple)) else [x])
    for x in out:
        if not isinstance(x, kind):
            raise TypeError(f"Fuzzer: expected {kind.__name__}, got {type(x).__name__}")
    return out
