"""Autocast while a program is followed: casts become nodes, as eager makes them call by call.

The table says which entries take part (`autocast=`). A composite that does not say is recorded by
its body, where those may be that do. Graphs therefore hold all their casts and run with autocast
off, whatever the state at the time; guards cover the state that was met.
"""

from __future__ import annotations

from typing import Any

import flambeau
from flambeau import _C
from flambeau._table.entries import record
from flambeau._table.model import Op
from flambeau._trace.fake import Fake
from flambeau._trace.interp import Interpreter
from flambeau._trace.record import CapturedRecorder, fakes_of
from flambeau._trace.table import body, is_primitive


class AutocastRecorder(CapturedRecorder):
    """Records calls with the casts that autocast puts before them."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[int, tuple[Fake, int, Fake]] = {}  # casts until the outermost context ends

    def call(self, op: Op, inplace: bool, args: list[Any]) -> Any:
        if inplace or op.mutates or not _C.is_autocast_enabled("cpu"):
            return super().call(op, inplace, args)
        policy = op.option("autocast")
        if policy is not None:
            dtype = _target(str(policy), args)
            return super().call(op, False, [self.cast(a, dtype) for a in args])
        function = None if is_primitive(op.uid) else body(op.uid)
        if function is None:
            return super().call(op, False, args)
        return Interpreter(self.call).run(function, args)

    def cast(self, a: Any, dtype: Any) -> Any:
        """An argument with its tensors cast; numbers stay numbers."""
        if isinstance(a, (list, tuple)):
            return [self.cast(x, dtype) for x in a]
        if not isinstance(a, Fake) or a.wrapped or not _eligible(a) or a.dtype is dtype:
            return a
        kept = self.kept.get(id(a)) if self._keeps(a, dtype) else None
        if kept is not None and kept[1] == a.memory.version:
            if kept[2].dtype is dtype and (kept[2].requires_grad or not self.grad):
                return kept[2]
        made = super().call(record("_to_copy"), False, [a, dtype, flambeau.preserve_format, None])
        if self._keeps(a, dtype):
            self.kept[id(a)] = (a, a.memory.version, made)
        return made

    def _keeps(self, a: Fake, dtype: Any) -> bool:
        """A weight is cast once, so that its gradients are added before they are cast back."""
        wanted = a.requires_grad and a.value in self.graph.inputs and a.dtype is flambeau.float32
        lowered = dtype is flambeau.get_autocast_dtype("cpu")
        return wanted and lowered and flambeau.is_autocast_cache_enabled()


def _eligible(x: Fake) -> bool:
    floating = x.dtype.is_floating_point and x.dtype is not flambeau.float64
    return bool(floating) and x.device.type == "cpu"


def _target(policy: str, args: list[Any]) -> Any:
    """The dtype that an entry runs in."""
    if policy == "float32":
        return flambeau.float32
    if policy == "widest" and any(x.dtype is flambeau.float32 for x in fakes_of(args)):
        return flambeau.float32
    return flambeau.get_autocast_dtype("cpu")
