"""Which sizes and integers become symbols: `dynamic=True`, `False`, or what was seen to vary."""

from __future__ import annotations

from typing import Any

from flambeau._dynamo import config as switches
from flambeau._ir.enumerations import Access

from .sources import Source

_VARIES: Any = object()


class DynamicShapes:
    """What one code object was called with so far, under one compilation."""

    def __init__(self, dynamic: bool | None) -> None:
        if dynamic is None and not switches.assume_static_by_default:
            dynamic = True
        self.dynamic = dynamic
        self.sizes: dict[str, list[Any]] = {}
        self.steps: dict[str, list[Any]] = {}  # strides
        self.integers: dict[str, Any] = {}
        self.floats: dict[str, Any] = {}

    def dims(self, tensor: Any, source: Source) -> Any:
        """Dims that are symbols; True: all."""
        dims = self._dims(tensor, source)
        fixed = getattr(tensor, "_flambeau_static_dims", None)
        if not fixed:
            return dims
        return (set(range(tensor.dim())) if dims is True else dims) - fixed

    def _dims(self, tensor: Any, source: Source) -> Any:
        marked = set(getattr(tensor, "_flambeau_dynamic_dims", ()))
        marked |= getattr(tensor, "_flambeau_maybe_dynamic_dims", set())
        if self.dynamic is False or (
            self.dynamic is None and not switches.automatic_dynamic_shapes
        ):
            return marked
        if self.dynamic:
            return True
        if isinstance(tensor, _parameter()):
            return marked
        now = list(tensor.shape)
        known = self.sizes.get(source.name)
        if known is None or len(known) != len(now):
            self.sizes[source.name] = now
            return marked
        for d, (a, b) in enumerate(zip(known, now, strict=True)):
            if a is not _VARIES and a != b:
                known[d] = _VARIES
        return marked | {d for d, n in enumerate(known) if n is _VARIES}

    def strides(self, tensor: Any, source: Source) -> set[int]:
        """Dims whose strides were seen to vary where sizes did not tell them."""
        if self.dynamic is False or not switches.automatic_dynamic_shapes:
            return set()
        if isinstance(tensor, _parameter()):
            return set()
        now = list(tensor.stride())
        known = self.steps.get(source.name)
        if known is None or len(known) != len(now):
            self.steps[source.name] = now
            return set()
        for d, (a, b) in enumerate(zip(known, now, strict=True)):
            if a is not _VARIES and a != b:
                known[d] = _VARIES
        return {d for d, n in enumerate(known) if n is _VARIES}

    def integer(self, value: int, source: Source) -> bool:
        """Whether an integer from outside is a symbol."""
        if self.dynamic is False or switches.specialize_int:
            return False
        if value in (0, 1) or not -(2**63) <= value < 2**63:
            return False
        if self.dynamic:
            return source.access == Access.Local
        if not switches.automatic_dynamic_shapes:
            return False
        known = self.integers.setdefault(source.name, value)
        if known is not _VARIES and known != value:
            self.integers[source.name] = _VARIES
        return self.integers[source.name] is _VARIES

    def floating(self, value: Any, source: Source) -> bool:
        """Whether a float or a number of NumPy from outside is an input of the graph; one of NumPy
        that is an argument is from the first call on, as in PyTorch."""
        if self.dynamic is False or switches.specialize_float:
            return False
        if not switches.automatic_dynamic_shapes:
            return False
        if type(value) is not float and source.access == Access.Local:
            return True
        known = self.floats.setdefault(source.name, value)
        if known is not _VARIES and repr(known) != repr(value):
            self.floats[source.name] = _VARIES
        return self.floats[source.name] is _VARIES


def _parameter() -> type:
    from flambeau.nn import Parameter

    return Parameter
