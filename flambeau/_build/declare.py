"""The declarations that a generated source opens with: of what it refers to, and of nothing else.

A source that included the declarations of the whole table would be compiled again after any change
of any entry. `gen/ops.h` and `gen/kernels.h` hold the same lines for sources written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from . import emit_op
from .compiler import Unit

#: namespace within flambeau -> name -> its declarations (several for overloads)
Names = Mapping[str, Mapping[str, list[str]]]
_NAME = re.compile(r"\b(\w+)\(")
_REFERENCE = re.compile(r"\b(ops|kernels|desc)::(\w+)")


def names(unit: Unit) -> Names:
    """Every declaration of the table, by namespace and name."""
    ops: dict[str, list[str]] = {}
    kernels: dict[str, list[str]] = {}
    for e in unit.entries:
        for line in emit_op.declarations(e.op):
            _add(ops, line)
        kernel = emit_op.kernel_declaration(e.op)
        if kernel:
            _add(kernels, kernel)
        for k in e.plan.kernels if e.plan is not None else ():
            kernels[f"kernel_{k.name}"] = [f"extern const PointwiseKernel kernel_{k.name};"]
    descs = {op.uid: [f"extern const OpDesc {op.uid};"] for op in unit.ops}
    return {"ops": ops, "kernels": kernels, "desc": descs}


def _add(found: dict[str, list[str]], line: str) -> None:
    match = _NAME.search(line)
    assert match, line
    lines = found.setdefault(match[1], [])
    if line not in lines:
        lines.append(line)


def prelude(text: Iterable[str], known: Names) -> list[str]:
    """Declarations of the operations, kernels and descriptors that lines of C++ refer to."""
    used: dict[str, set[str]] = {space: set() for space in known}
    for line in text:
        for space, name in _REFERENCE.findall(line):
            used[space].add(name)
    out: list[str] = []
    for space, declared in known.items():
        lines = [d for name in sorted(used[space]) for d in declared.get(name, ())]
        if lines:
            inner = "ops::desc" if space == "desc" else space
            out += [f"namespace flambeau::{inner} {{", *lines, "}", ""]
    return out
