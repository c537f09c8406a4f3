"""`explain`: what capture makes of a function: graphs, why they end, guards, symbols."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class Explanation:
    """What was captured in a call.

    Attributes:
        parts: one item per compiled part: `graph`, `guards`, `symbols`, `reason` and `where` (why
            the graph ended there; None at the end of the function), `because` (the guard that
            failed, for a recompile).
        out_guards: all guards in words.
    """

    parts: list[Any]
    result: Any

    @property
    def graphs(self) -> list[Any]:
        """Graphs that hold an operation."""
        return [p.graph for p in self.parts if p.nodes]

    @property
    def graph_count(self) -> int:
        return len(self.graphs)

    @property
    def op_count(self) -> int:
        return sum(p.nodes for p in self.parts)

    @property
    def break_reasons(self) -> list[str]:
        """Each end of a graph before the end of its function: the reason and the user's line."""
        return [f"{p.reason}\n  at {p.where}" for p in self.parts if p.reason is not None]

    @property
    def graph_break_count(self) -> int:
        return len(self.break_reasons)

    @property
    def out_guards(self) -> list[str]:
        return [g for p in self.parts for g in p.guards]

    @property
    def symbols(self) -> list[str]:
        return [s for p in self.parts for s in p.symbols]

    def __str__(self) -> str:
        lines = [
            f"graphs: {self.graph_count}, operations: {self.op_count}, "
            f"breaks: {self.graph_break_count}"
        ]
        for n, part in enumerate(self.parts, 1):
            lines.append(f"part {n}: {part.name}, {part.nodes} operations")
            if part.because is not None:
                lines.append(f"  compiled again, not so any more: {part.because}")
            lines += [f"    {line}" for line in str(part.graph or "").splitlines()]
            if part.reason is not None:
                lines.append(f"  ends because of: {part.reason}\n    at {part.where}")
            if part.symbols:
                lines.append("  symbols: " + "; ".join(part.symbols))
            lines += [f"  guard: {g}" for g in part.guards]
        return "\n".join(lines)


def explain(f: Callable[..., Any], **options: Any) -> Callable[..., Explanation]:
    """`explain(f)(*args)` calls `f` captured, without compiling, and tells what was captured.

    Args:
        f: a function or module.
        options: `dynamic`, as for `compile`.

    >>> def f(x):
    ...     y = x.sin()
    ...     print("here")
    ...     return y.cos()
    >>> e = torch.compiler.explain(f)(torch.zeros(2))
    here
    >>> e.graph_count, e.graph_break_count
    (2, 1)
    """

    def explained(*args: Any, **kwargs: Any) -> Explanation:
        from flambeau._capture.back_ends import run_eagerly

        from ._compile import compiled_form

        compiled = compiled_form(f, run_eagerly, **options)
        result = compiled(*args, **kwargs)
        config = compiled._flambeau_config
        found = Explanation(list(config.parts), result)
        config.forget()
        return found

    return explained
