"""Floating-point operations of a block, by module.

Owns the names of modules while the block runs and the sums; what is counted, and from what, is the
profiler's (`autograd._profiler_flops`). Backward counts for the modules whose calls it is of.
"""

from __future__ import annotations

import threading
import warnings
from collections import defaultdict
from typing import Any, Self

from flambeau.autograd.profiler import profile, record_function
from flambeau.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

__all__ = ["FlopCounterMode"]

_MODULE = "module: "
#: sums and products by elements are the profiler's, not counted here
_BY_ELEMENTS = {"aten::add", "aten::mul", "aten::add_", "aten::mul_"}


class FlopCounterMode:
    """Count the multiplications and additions of products of matrices, convolutions, attention and
    recurrent layers that run inside.

    Args:
        mods: of older releases; modules are found as they run.
        depth: how many levels of modules the table shows.
        display: print the table when the block is left.
        custom_mapping: formulas of one's own; refused.

    A multiplication and an addition are two operations. The block is a profile, of which one is
    open at a time.

    >>> from flambeau.utils.flop_counter import FlopCounterMode
    >>> layer = torch.nn.Linear(3, 4)
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = layer(torch.ones(2, 3))
    >>> counter.get_total_flops(), counter.get_flop_counts()["Linear"]
    (48, {'aten._linear': 48})
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        if mods is not None:
            warnings.warn(
                "mods argument is not needed anymore, you can stop passing it", stacklevel=2
            )
        if custom_mapping:
            raise NotImplementedError(
                "FlopCounterMode: custom_mapping is not supported; add what your operators do to "
                "get_total_flops()"
            )
        self.depth = depth
        self.display = display
        self.flop_counts: dict[str, dict[str, int]] = {"Global": {}}
        self._local = threading.local()
        self._profile: profile | None = None
        self._handles: list[Any] = []

    # -- names of modules -------------------------------------------------------------------------

    def _enter_module(self, module: Any, args: Any) -> None:
        stack = self._local.__dict__.setdefault("stack", [])
        if not stack:  # a root, whose name is its class's
            root = type(module).__name__
            self._local.names = {
                id(m): f"{root}.{path}" if path else root for path, m in module.named_modules()
            }
        name = self._local.names.get(id(module), type(module).__name__)
        stack.append(record_function(_MODULE + name))
        stack[-1].__enter__()

    def _leave_module(self, module: Any, args: Any, output: Any) -> None:
        stack = self._local.__dict__.get("stack")
        if stack:  # not for a module whose call began before the block
            stack.pop().__exit__(None, None, None)

    # -- the block --------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        opened = profile(with_flops=True)
        opened.__enter__()
        self._profile = opened
        self.flop_counts = {"Global": {}}
        self._handles = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
        ]
        return self

    def __exit__(self, *error: Any) -> None:
        assert self._profile is not None
        for handle in self._handles:
            handle.remove()
        self._profile.__exit__(*error)
        self._count(self._profile.events())
        self._profile = None
        if self.display and error[0] is None:
            print(self.get_table())

    def _count(self, events: Any) -> None:
        # The call that recorded a node is the last of those that saw its number.
        calls = {e.sequence_nr: e for e in events if e.scope == 0 and e.sequence_nr >= 0}
        counts: defaultdict[str, defaultdict[str, int]]
        counts = defaultdict(lambda: defaultdict(int))
        for event in events:
            if event.flops and event.name not in _BY_ELEMENTS:
                key = event.name.replace("::", ".")
                for name in {"Global", *_modules_of(event, calls)}:
                    counts[name][key] += event.flops
        self.flop_counts = {"Global": {}, **{name: dict(ops) for name, ops in counts.items()}}

    # -- what was counted -------------------------------------------------------------------------

    def get_total_flops(self) -> int:
        """Of all that ran in the block."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """By module, then by operation; `Global` is all. Modules are called by the class of the
        outermost and the names of attributes."""
        return {name: dict(ops) for name, ops in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text, modules below those that hold them."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        rows = [("Module", "FLOP", "% Total")]
        rest = sorted(name for name in self.flop_counts if name != "Global")
        for name in ["Global", *rest]:
            level = 0 if name == "Global" else name.count(".") + 1
            if level > depth:
                continue
            ops = self.flop_counts[name]
            for label, value in [
                (name, sum(ops.values())),
                *((f" - {k}", n) for k, n in ops.items()),
            ]:
                share = f"{100 * value / total:.2f}%" if total else "0.00%"
                rows.append((" " * level + label, _shortened(value), share))
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = [
            f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}".rstrip() for a, b, c in rows
        ]
        return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])


def _modules_of(event: Any, calls: dict[int, Any]) -> set[str]:
    """Names of the modules that an event is inside of, or that its node was recorded in."""
    found: set[str] = set()
    while event is not None:
        if event.name.startswith(_MODULE):
            found.add(event.name.removeprefix(_MODULE))
        is_node = event.scope == 1 and event.sequence_nr in calls
        event = calls[event.sequence_nr] if is_node else event.cpu_parent
    return found


def _shortened(n: int) -> str:
    """A number with a suffix: 1.500K."""
    for power, suffix in ((12, "T"), (9, "B"), (6, "M"), (3, "K")):
        if n >= 10**power:
            return f"{n / 10**power:.3f}{suffix}"
    return str(n)
