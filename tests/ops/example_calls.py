"""The calls in the examples of the table's entries: function and arguments, as made there."""

from __future__ import annotations

import ast
import re

import flambeau as torch


def calls(op):
    """(function, arguments) of the calls in the example that mention the entry's name."""
    names = {"torch": torch, "F": torch.nn.functional}
    found = []
    sources = re.findall(r"^ *>>> (.*(?:\n *\.\.\. .*)*)", op.doc, re.M)
    for source in sources:
        source = re.sub(r"\n *\.\.\. ", "\n", source)
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                call = bound(node, op, names)
                if call is not None:
                    found.append(call)
        try:
            exec(source, names)
        except Exception:
            pass
    return found


def bound(node, op, names):
    target = node.func
    name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", None)
    public = {op.name, *(str(a).split(".")[-1] for a in op.option("aliases", ()))}
    if name not in public and not any(name == p.split("_", 1)[-1] for p in public):
        return None
    value = lambda n: eval(compile(ast.Expression(n), "example", "eval"), names)  # noqa: E731
    try:
        args = []
        for a in node.args:
            args += value(a.value) if isinstance(a, ast.Starred) else [value(a)]
        kwargs = {k.arg: value(k.value) for k in node.keywords}
        owner = value(target.value) if isinstance(target, ast.Attribute) else None
    except Exception:
        return None
    if isinstance(owner, torch.Tensor):
        return (lambda x, *a, **k: getattr(x, name)(*a, **k)), (owner, *args), kwargs
    return value(target), tuple(args), kwargs


def compares(op):
    """Whether an entry's values follow from its arguments: not so for unset memory and for draws.

    Their shapes and what `randomness` means are in test_vmap.py.
    """
    draws = any(str(p.type).startswith("Generator") for p in op.params)
    return not draws and "empty" not in op.name
