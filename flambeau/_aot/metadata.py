"""What a functional graph does not say of the function it stands for: mutation and aliasing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Alias:
    """An output that lies in the memory of an input, or in that of a result of the graph."""

    source: str  # "input" | "result"
    index: int
    whole: bool  # the tensor itself, not a view of it
    dtype: Any = None  # of the view; its offset and strides count in elements of this
    shape: tuple[Any, ...] = ()
    strides: tuple[Any, ...] = ()
    offset: Any = 0  # from where the source starts
    detached: bool = False  # without the source's history


@dataclass
class Metadata:
    """How the user's results are made of the forward graph's.

    The forward graph gives `results` tensors, then what it saves for backward. The first of the
    results are the new values of the mutated inputs.
    """

    mutated: list[int] = field(default_factory=list)  # inputs, in the order of the first results
    #: those among them whose new values were computed when they changed, and not before
    at_once: set[int] = field(default_factory=set)
    outputs: tuple[Any, ...] = ()  # nested tuples of Alias and plain values
    results: int = 0
    differentiable: list[int] = field(default_factory=list)  # results that have a cotangent
    grads: list[int] = field(default_factory=list)  # inputs, in the order of backward's outputs
    saved: int = 0
    linear: bool = True  # backward is; the user's own derivatives need not be
    sizes: list[str] = field(default_factory=list)  # symbols that backward takes after the saved
