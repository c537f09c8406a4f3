"""What Python calls for the target of a node: functions of the table, and of the package.

Owns the way back from the uid of an entry to the public function that is quickest to call.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import flambeau
from flambeau import _C

from .._ir.targets import resolve
from .._table import entries
from .._table.added import is_added
from .._table.fronts import Form
from . import signatures
from .calls import space as module_of


@cache
def form_of(target: str) -> tuple[str, Any, Form | None]:
    """What Python calls for an entry: its public name, the function, and its signature."""
    t = resolve(target)
    op, inplace = t.op, t.form == "inplace"
    wanted = op.inplace_uid if inplace else op.uid
    name = op.python_name + ("_" if inplace else "")
    found = [g for g in entries.public(name) if g.name == name]
    for g in found:
        if g.front is None:
            for form in g.functions:
                if form.target == wanted and not form.order:
                    for s in g.spaces:
                        f = getattr(module_of(s), name, None)
                        if f is not None:
                            shown = s.replace("_C._", "")
                            return ".".join(p for p in ("torch", shown, name) if p), f, form
    for g in found:
        for form in g.methods:
            if form.target == wanted:
                return f"torch.Tensor.{name}", getattr(flambeau.Tensor, name), form
    for a in (a for g in entries.public(name) for a in g.aliases if g.front is None):
        for g in entries.public(name):
            for form in g.functions:
                where, _, last = a.rpartition(".")
                if form.target == wanted and hasattr(module_of(where), last):
                    return f"torch.{a}", getattr(module_of(where), last), form
    shown = f"torch.ops.{wanted.replace('::', '.')}" if is_added(wanted) else f"entry.{wanted}"
    return shown, _entry_caller(wanted, inplace, op), None


def _entry_caller(uid: str, inplace: bool, op: Any) -> Any:
    many = op.returns.base == "Tuple"

    def call(*args: Any) -> Any:
        made = _C._call_entry(uid, args)
        return made if many else made[0] if made else None

    return call


@cache
def library_entry(target: str) -> tuple[str, Any, signatures.Entry]:
    """What a target `lib.NAME` calls.

    Raises:
        KeyError: there is no such function.
    """
    for text, space in ((signatures.LIBRARY, "lib."), (signatures.TENSOR, "lib.Tensor.")):
        e = signatures.table(text, space).targeted(target)
        if e is not None:
            place = f"Tensor.{e.name}" if space != "lib." else e.name
            where, _, last = place.rpartition(".")
            return f"torch.{place}", getattr(module_of(where), last), e
    raise KeyError(target)
