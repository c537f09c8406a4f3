"""The generated files: which entries go where, their heads, and writing them.

Sources are split so that compilations are even and none grows past `LIMIT` lines. A file is
rewritten only when its text changed.
"""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path

from .._ir import enumerations
from . import declare, emit_boxed, emit_calls, emit_op, emit_pointwise
from .compiler import Callees, Entry, Unit

LIMIT = 1800
_HEAD = "// Generated from flambeau/ops by flambeau._build; do not edit.\n"


def all_files(unit: Unit) -> dict[str, str]:
    """File name -> text."""
    files = {
        "enumerations.h": _HEAD + enumerations.header(),
        "ops.h": _header(unit),
        "kernels.h": _kernels(unit),
        "registry.cpp": _registry(unit),
        "table.json": _table(unit),
    }
    files.update(_sources(unit))
    files.update(emit_calls.files([e.plan for e in unit.entries if e.plan is not None]))
    return files


def _namespace(lines: list[str], name: str, includes: str, pragma: str = "#pragma once\n") -> str:
    body = "\n".join(lines)
    space = f"namespace flambeau::{name}"
    return f"{_HEAD}{pragma}\n{includes}\n{space} {{\n\n{body}\n\n}}  // {space}\n"


def _header(unit: Unit) -> str:
    lines: list[str] = []
    for op in unit.ops:
        lines.append(f"// {op.doc.splitlines()[0]}")
        lines += emit_op.declarations(op)
    return _namespace(lines, "ops", '#include "core/generator.h"\n#include "core/tensor.h"\n')


def _kernels(unit: Unit) -> str:
    lines: dict[str, None] = {}
    for e in unit.entries:
        line = emit_op.kernel_declaration(e.op)
        if line:
            lines[line] = None
    return _namespace(
        list(lines), "kernels", '#include "core/generator.h"\n#include "core/tensor.h"\n'
    )


def _registry(unit: Unit) -> str:
    rows = "\n".join(f"    &ops::desc::{e.op.uid}," for e in unit.entries)
    declared = "\n".join(f"extern const OpDesc {e.op.uid};" for e in unit.entries)
    return (
        f'{_HEAD}#include "dispatch/op.h"\n\nnamespace flambeau::ops::desc {{\n{declared}\n}}\n\n'
        "namespace flambeau {\n\n"
        f"static const OpDesc* const kOps[] = {{\n{rows}\n}};\n\n"
        "std::span<const OpDesc* const> all_ops() { return kOps; }\n\n}  // namespace flambeau\n"
    )


def _entry(e: Entry, callees: Callees) -> list[str]:
    if e.op.kind == "pointwise":
        return emit_pointwise.emit(e, callees)
    return emit_op.emit(e, callees)


def _sources(unit: Unit) -> dict[str, str]:
    known = declare.names(unit)
    families: dict[str, list[Entry]] = {}
    for e in unit.entries:
        families.setdefault(e.op.family, []).append(e)
    files: dict[str, str] = {}
    for family, entries in families.items():
        chunks: list[list[str]] = [[]]
        for e in entries:
            lines = [
                f"// {e.op.name} " + "-" * max(3, 92 - len(e.op.name)), "",
                *_entry(e, unit.callees), "",
                *emit_boxed.descriptor(e, unit.callees), "",
            ]  # fmt: skip
            if chunks[-1] and len(chunks[-1]) + len(lines) > LIMIT:
                chunks.append([])
            chunks[-1] += lines
        for i, chunk in enumerate(chunks):
            name = f"ops_{family}{'' if i == 0 else f'_{i + 1}'}.cpp"
            files[name] = _source(chunk, name, known)
    return files


_INCLUDES = """#include <array>

#include "autograd/generated.h"
#include "dispatch/boxing.h"
#include "kernels/pointwise.h"
#include "profiler/events.h"
"""


def _source(lines: list[str], name: str, known: declare.Names) -> str:
    """A source; `@restore` lines become a #line that points at the generated file again."""
    head = f"{_HEAD}{_INCLUDES}"
    opening = "namespace flambeau {\nnamespace ops {\n"
    out = [*head.splitlines(), "", *declare.prelude(lines, known)]
    if any("func::wants_gradients(" in line for line in lines):
        declared = "bool wants_gradients(const Tensor& x) noexcept;"
        out += ["namespace flambeau::func {", declared, "}"]
    out += [*opening.splitlines(), ""]
    for line in [*lines, "}  // namespace ops", "}  // namespace flambeau"]:
        out.append(f'#line {len(out) + 2} "gen/{name}"' if line == "@restore" else line)
    return "\n".join(out) + "\n"


def _table(unit: Unit) -> str:
    """Signatures for readers that are not part of the build."""
    rows = []
    for e in unit.entries:
        op = e.op
        rows.append(
            {
                "name": op.name, "uid": op.uid, "kind": op.kind, "family": op.family,
                "file": op.file, "line": op.node.lineno, "returns": str(op.returns),
                "params": [
                    {
                        "name": p.name, "type": str(p.type), "or_number": p.type.or_number,
                        "default": None if p.default is None else ast.unparse(p.default),
                        "kwonly": p.kwonly,
                    }
                    for p in op.params
                ],
                "namespaces": list(op.namespaces), "aliases": list(op.option("aliases", ())),
                "method": op.is_method, "inplace": op.has_inplace, "out": op.has_out,
                "mutates": op.mutates, "doc": op.doc,
            }
        )  # fmt: skip
    return json.dumps(rows, indent=1) + "\n"


def write(files: dict[str, str], out: Path) -> int:
    """Writes what changed, removes sources that are no longer generated; how many changed."""
    out.mkdir(parents=True, exist_ok=True)
    changed = 0
    for name, text in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.read_text() == text:
            continue
        part = path.with_suffix(path.suffix + ".part")
        part.write_text(text)
        os.replace(part, path)
        changed += 1
    for path in out.glob("*.cpp"):
        if path.name not in files:
            path.unlink()
            changed += 1
    return changed
