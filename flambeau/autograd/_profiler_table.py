"""Tables of events as text.

Owns columns and their widths. Knows the fields of events, not where they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau.autograd._profiler_text import memory_text, time_text

_SORTS = (
    "cpu_time", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage",
    "self_cpu_memory_usage", "count", "flops", "cuda_time", "cuda_time_total",
    "self_cuda_time_total", "cuda_memory_usage", "self_cuda_memory_usage", "device_time",
    "device_time_total", "self_device_time_total", "device_memory_usage",
    "self_device_memory_usage",
)  # fmt: skip
_UNITS = {"s": 1e-6, "ms": 1e-3, "us": 1.0}


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "0.00%" if not part else "NaN"


def _cut(text: str, width: int) -> str:
    return text if width < 4 or len(text) <= width else text[: width - 3] + "..."


def table(
    events: Sequence[Any],
    sort_by: str | None,
    row_limit: int,
    source_width: int,
    name_width: int,
    shapes_width: int,
    header: str | None,
    top_level: bool,
    time_unit: str | None,
    memory: bool,
    flops: bool,
) -> str:
    """Rows of events under a head, and their total below."""
    if sort_by is not None and sort_by not in _SORTS:
        raise ValueError(
            f"table: expected sort_by to be one of {', '.join(_SORTS)}, got {sort_by!r}"
        )
    if time_unit is not None and time_unit not in _UNITS:
        raise ValueError(f"table: expected time_unit to be 's', 'ms' or 'us', got {time_unit!r}")
    if not events:
        return ""

    def time(us: float) -> str:
        return time_text(us) if time_unit is None else f"{us * _UNITS[time_unit]:.3f}{time_unit}"

    total = sum(e.self_cpu_time_total for e in events)
    columns: list[tuple[str, Callable[[Any], str]]] = [
        ("Name", lambda e: _cut(e.key, name_width)),
        ("Self CPU %", lambda e: _share(e.self_cpu_time_total, total)),
        ("Self CPU", lambda e: time(e.self_cpu_time_total)),
        ("CPU total %", lambda e: _share(e.cpu_time_total, total)),
        ("CPU total", lambda e: time(e.cpu_time_total)),
        ("CPU time avg", lambda e: time(e.cpu_time)),
    ]
    if memory:
        columns.append(("CPU Mem", lambda e: memory_text(e.cpu_memory_usage)))
        columns.append(("Self CPU Mem", lambda e: memory_text(e.self_cpu_memory_usage)))
    columns.append(("# of Calls", lambda e: str(e.count)))
    if any(e.input_shapes for e in events):
        columns.append(("Input Shapes", lambda e: _cut(str(e.input_shapes or "[]"), shapes_width)))
    if flops:
        columns.append(("Total FLOPs", lambda e: str(e.flops) if e.flops else "--"))
    stacks = any(e.stack for e in events)

    rows = list(events)
    if sort_by is not None:
        rows.sort(key=lambda e: getattr(e, sort_by), reverse=True)
    if top_level:
        rows = [e for e in rows if e.cpu_parent is None]
    if row_limit >= 0:
        rows = rows[:row_limit]
    lines = [[title for title, _ in columns], *([f(e) for _, f in columns] for e in rows)]
    sources = [["Source Location"], *(list(e.stack[:5]) or [""] for e in rows)] if stacks else None
    return _laid_out(lines, sources, source_width, header, time(total))


def _laid_out(
    lines: list[list[str]],
    sources: list[list[str]] | None,
    source_width: int,
    header: str | None,
    total: str,
) -> str:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    widths[1:] = [max(12, w) for w in widths[1:]]
    rules = ["-" * w for w in widths]
    if sources is not None:
        sources = [[_cut(text, source_width) for text in lines] for lines in sources]
        rules.append("-" * max(len(text) for lines in sources for text in lines))
    rule = "  ".join(rules)
    out = [header] if header else []
    out.append(rule)
    for i, line in enumerate(lines):
        text = "  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True))
        for k, source in enumerate(sources[i] if sources is not None else [""]):
            head = text if k == 0 else " " * len(text)
            out.append(f"{head}  {source}".rstrip())
        if i == 0:
            out.append(rule)
    out += [rule, f"Self CPU time total: {total}"]
    return "\n".join(out) + "\n"
