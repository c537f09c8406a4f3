"""Makes the reference of operations: a page per file of the table, and an index of all names.

    python tools/opdocs.py docs/ops

A section has the signatures, the derived forms, the docstring with its example, and the derivative
as it is compiled. Everything is read off the table; the extension is not needed. The pages are not
committed: `make docs` makes them and runs their examples.
"""

from __future__ import annotations

import argparse
import ast
import pathlib
import sys
from collections.abc import Iterator, Sequence

ROOT = pathlib.Path(__file__).resolve().parents[1]
if __package__ is None:  # run as a file; tests import it
    sys.path.append(str(ROOT))

from flambeau._build import compiler  # noqa: E402
from flambeau._ir.reading import Reading  # noqa: E402
from flambeau._ir.targets import resolve  # noqa: E402
from flambeau._table import entries as _entries  # noqa: E402, F401  who finds targets
from flambeau._table.fronts import Form, Group, groups  # noqa: E402
from flambeau._table.model import Op  # noqa: E402

_PREAMBLE = "```python\nimport flambeau as torch\nfrom flambeau.nn import functional as F\n```\n"


def _dotted(space: str, name: str) -> str:
    return ".".join(part for part in ("torch", space, name) if part)


def names(group: Group) -> list[str]:
    """Dotted names of the functions and methods of a group, the first one foremost."""
    found = [_dotted(space, group.name) for space in group.spaces] if group.functions else []
    found += [f"torch.{alias}" for alias in group.aliases]
    if group.methods:
        found += [f"Tensor.{name}" for name in (group.name, *group.alias_methods)]
    return list(dict.fromkeys(found))


def _public_names(group: Group) -> list[str]:
    return [n for n in names(group) if not any(p.startswith("_") for p in n.split("."))]


def _signature(form: Form, name: str) -> str:
    """The call as the entry declares it, with `out=` where there is one."""
    arguments = ast.unparse(form.op.node.args)
    if form.has_out:
        out = "Tensor" if len(form.op.outputs) == 1 else "Tensors"
        star = "" if form.op.node.args.kwonlyargs else "*, "
        arguments += f", {star}out: {out} | None=None"
    returns = form.op.node.returns
    assert returns is not None
    return f"{name}({arguments}) -> {ast.unparse(returns)}"


def split_doc(doc: str) -> tuple[str, str]:
    """A docstring as its text and its example; a placeholder is no example."""
    text: list[str] = []
    example: list[str] = []
    for paragraph in doc.split("\n\n"):
        (example if paragraph.startswith(">>>") else text).append(paragraph)
    shown = [e for e in example if not e.startswith(">>> True\n")]
    return "\n\n".join(text), "\n\n".join(shown)


def _called(entry: compiler.Entry) -> list[str]:
    """Names of the operations that a body calls, in order."""
    if entry.body is None:
        return []
    read = Reading(entry.body)
    nodes = (n for s in read.all_statements(entry.body) for n in read.tree(s))
    found = (resolve(n.target) for n in nodes if n.is_call)
    return list(dict.fromkeys(t.op.name + "_" * (t.form == "inplace") for t in found))


def derivative(entry: compiler.Entry) -> tuple[str, str]:
    """What the derivative is: a sentence, and the rule as code ("" where there is none to show)."""
    op = entry.op
    if op.option("differentiable", True) is False:
        return "No derivative.", ""
    if not entry.is_primitive:
        called = _called(entry)
        shown = ", ".join(f"`{name}`" for name in called)
        return f"Derivative: that of {shown or 'its parts'}.", ""
    if "vjp" in op.rules:
        node = op.rules["vjp"].node
        rule = ast.FunctionDef("backward", node.args, node.body, [], node.returns)
        return "Derivative:", ast.unparse(ast.fix_missing_locations(rule))
    plan = entry.plan
    if plan is not None and plan.composite_vjp is not None:
        node = plan.composite_vjp
        rule = ast.FunctionDef("backward", node.args, node.body, [], None)
        return "Derivative, found symbolically:", ast.unparse(ast.fix_missing_locations(rule))
    return "No derivative.", ""


def primitive(entry: compiler.Entry) -> tuple[str, str]:
    """What the compiler makes of an entry: a sentence, and what it is written out as, or ""."""
    if not entry.is_primitive:
        shown = ", ".join(f"`{name}`" for name in _called(entry)) or "no other operation"
        return f"To the compiler it is composed of {shown}.", ""
    sentence = f"A primitive of the compiler, of the kind {entry.op.kind}"
    rule = entry.op.rules.get("decompose")
    if rule is None:
        return f"{sentence}.", ""
    node = rule.node
    written = ast.FunctionDef("decomposition", node.args, node.body, [], node.returns)
    text = ast.unparse(ast.fix_missing_locations(written))
    return f"{sentence}; where it is fused with others it is written out:", text


def _forms(group: Group, inplace: Group | None) -> str:
    """One line on what exists beside the first signature."""
    rest = _public_names(group)[1:] + (_public_names(inplace) if inplace else [])
    return f"Also: {', '.join(f'`{n}`' for n in rest)}.\n" if rest else ""


def section(group: Group, inplace: Group | None, entries: dict[str, compiler.Entry]) -> list[str]:
    """The lines of a group's section."""
    title = _public_names(group)[0]
    forms = group.functions or group.methods
    lines = [f"## {title}", "", "```python no-run"]
    lines += dict.fromkeys(_signature(f, title) for f in forms)
    lines += ["```", "", _forms(group, inplace)]
    for form in forms:
        text, example = split_doc(form.op.doc)
        lines += [text, ""]
        if example:
            lines += ["```python", example.rstrip(), "```", ""]
    first: Op = forms[0].op
    sentence, rule = derivative(entries[first.uid])
    lines += [sentence, ""]
    if rule:
        lines += ["```python no-run", rule, "```", ""]
    sentence, rule = primitive(entries[first.uid])
    lines += [sentence, ""]
    if rule:
        lines += ["```python no-run", rule, "```", ""]
    return [*lines, f"Written in `{first.file}`, line {first.node.lineno}.", ""]


def _title(path: pathlib.Path) -> str:
    """The first sentence of a table file's docstring."""
    doc = ast.get_docstring(ast.parse(path.read_text())) or path.stem
    return " ".join(doc.split("\n\n")[0].split()).split(". ")[0].rstrip(".")


def pages(unit: compiler.Unit) -> dict[str, str]:
    """File name -> text: a page per family that has public names, and the index."""
    entries = {e.op.uid: e for e in unit.entries}
    found = {g.name: g for g in groups([e.op for e in unit.entries])}
    families: dict[str, list[Group]] = {}
    for g in found.values():
        first = (g.functions or g.methods)[0]
        if _public_names(g) and not first.inplace:
            families.setdefault(first.op.family, []).append(g)
    out: dict[str, str] = {}
    index: list[tuple[str, str, str]] = []
    for family, members in sorted(families.items()):
        title = _title(ROOT / "flambeau" / "ops" / f"{family}.py")
        lines = [f"# {title}", "", _PREAMBLE]
        for g in sorted(members, key=lambda g: g.name):
            lines += section(g, found.get(g.name + "_"), entries)
            summary = (g.functions or g.methods)[0].op.doc.splitlines()[0]
            index += [(name, family, summary) for name in _public_names(g)]
        out[f"{family}.md"] = "\n".join(lines)
    out["primitives.md"] = "\n".join(_primitives(unit, set(families)))
    out["index.md"] = "\n".join(_index(index))
    return out


def _primitives(unit: compiler.Unit, pages: set[str]) -> Iterator[str]:
    """What a back end may meet, a table per kind."""
    yield "# Primitives"
    yield ""
    yield "What is left of a program for a back end. A target is a node's in a graph of primitives;"
    yield "one that changes its first argument appears as `TARGET.new`, which returns it changed."
    for kind in ("pointwise", "view", "structured"):
        found = [e for e in unit.entries if e.is_primitive and e.op.kind == kind]
        if kind == "structured":
            found = [
                e for e in unit.entries if e.is_primitive and e.op.kind not in ("pointwise", "view")
            ]
        yield from [
            "",
            f"## {kind.capitalize()}: {len(found)}",
            "",
            "| target | parameters | written out | page |",
        ]
        yield "|---|---|---|---|"
        for e in sorted(found, key=lambda e: e.op.uid):
            named = ", ".join(p.name for p in e.op.params)
            written = "yes" if "decompose" in e.op.rules else ""
            family = e.op.family
            page = f"[{family}]({family}.md)" if family in pages else family
            yield f"| `{e.op.uid}` | {named} | {written} | {page} |"
    yield ""


def _index(rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    yield from ["# All operations", "", "| name | page | |", "|---|---|---|"]
    for name, family, summary in sorted(rows):
        yield f"| `{name}` | [{family}]({family}.md) | {summary.replace('|', '&#124;')} |"
    yield ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the pages into a folder, removing those that no family has any more."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    made = pages(compiler.load(ROOT))
    for old in folder.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
    print(f"{len(made)} pages in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
