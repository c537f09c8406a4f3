"""What is known of one operation: names, typed parameters, kind, body, rules.

Owner of the record of an entry (`Op`). Filled by `reader.py`, read by every emitter and stage.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from .._ir.types import Param, Type

#: what `autocast=` may be
AUTOCAST = ("lower", "float32", "widest")
#: options that name a rule of compiled loops: an element is a function of its index; operands are
#: written side by side; dims are swept
LOOPS = ("element", "join", "reduction")
#: parameters of these names number dims: they move by one when a batch comes in front
DIM_NAMES = frozenset({"dim", "dims", "dim0", "dim1", "dim2", "dimension"})


def numbered(name: str, overload: int) -> str:
    """The identifier of an overload of a name."""
    return f"{name}_{overload}" if overload else name


@dataclass
class Rule:
    """A `@op.vjp`, `@op.jvp` or `@op.vmap` function."""

    params: list[Param]
    node: ast.FunctionDef
    options: dict[str, object] = field(default_factory=dict)


@dataclass
class Op:
    """One entry of the table (one overload of one public name)."""

    name: str  # public and C++ name (C++ overloads share it)
    kind: str  # pointwise | view | structured | composite
    params: list[Param]
    returns: Type
    node: ast.FunctionDef
    file: str  # path relative to the repository, for #line
    family: str  # file stem
    doc: str
    options: dict[str, object] = field(default_factory=dict)
    rules: dict[str, Rule] = field(default_factory=dict)  # "vjp", "jvp", "vmap", "samples"
    overload: int = 0  # 0 for the first of a name
    extra: bool = False  # declared by `.overload`

    @property
    def uid(self) -> str:
        """Unique C++ identifier: node, descriptor and kernel names build on it."""
        return numbered(self.name, self.overload)

    @property
    def python_name(self) -> str:
        """The name that programs use.

        `functional_NAME` is the function NAME of nn.functional where another module has another.
        """
        return str(self.option("python_name", self.name.removeprefix("functional_")))

    @property
    def inplace_uid(self) -> str:
        """The derived in-place form, as graphs name it."""
        return numbered(f"{self.name}_", self.overload)

    @property
    def primitive(self) -> bool:
        return self.kind != "composite"

    @property
    def mutates(self) -> bool:
        """The entry itself mutates its first argument (`copy_`, `index_put_`)."""
        return (
            self.name.endswith("_")
            and not self.name.startswith("_")
            or bool(self.options.get("mutates"))
        )

    @property
    def mutated_lists(self) -> tuple[str, ...]:
        """Lists of tensors that the kernel changes in place (`mutates=("params", ...)`)."""
        named = self.options.get("mutates", ())
        return tuple(map(str, named)) if isinstance(named, tuple) else ()

    @property
    def updates(self) -> tuple[str, ...]:
        """Tensors that the kernel changes besides giving results (`updates=("running_mean", ...)`).

        `updates_when` names the flag without which it leaves them alone.
        """
        named = self.options.get("updates", ())
        return tuple(map(str, named)) if isinstance(named, tuple) else ()

    @property
    def tensor_params(self) -> list[Param]:
        return [p for p in self.params if p.type.base in ("Tensor", "Tensors", "OptTensors")]

    @property
    def outputs(self) -> tuple[Type, ...]:
        return self.returns.items if self.returns.base == "Tuple" else (self.returns,)

    def option(self, name: str, default: Any = None) -> Any:
        return self.options.get(name, default)

    @property
    def looped(self) -> tuple[str, str] | None:
        """Kind and name of the rule by which compiled loops do the work of a structured entry.

        One of the options in `LOOPS`; None where a kernel is called.
        """
        found = [(kind, str(self.options[kind])) for kind in LOOPS if kind in self.options]
        return found[0] if found else None

    @property
    def written_out(self) -> bool:
        """Compiled code has what the `decompose` rule says in the place of a structured entry.

        Not where the kernel is faster (`@op.decompose(slower=True)`): such a rule is what the
        entry means, and other stages may need that.
        """
        rule = self.rules.get("decompose")
        return rule is not None and not rule.options.get("slower")

    @property
    def batchable(self) -> tuple[str, ...]:
        """Tensor parameters that may have a batch in front, all of them together (`batch=`)."""
        named = self.options.get("batch", ())
        if named is True:
            return tuple(p.name for p in self.tensor_params)
        return tuple(map(str, named)) if isinstance(named, tuple) else ()

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Python modules that show the function, as names below the package ("" is the top)."""
        spaces = self.option("namespaces", ("torch",))
        return tuple("" if s == "torch" else str(s) for s in spaces)

    @property
    def is_method(self) -> bool:
        tensors = [p.name for p in self.params if p.type.is_tensor]
        first = bool(tensors) and tensors[0] == self.params[0].name
        default = first and self.namespaces in (("",), ())
        return bool(self.options.get("method", default)) and (first or "input" in tensors)

    @property
    def has_inplace(self) -> bool:
        """An in-place form NAME_ is derived."""
        return bool(self.options.get("inplace", self.kind == "pointwise")) and not self.mutates

    @property
    def has_out(self) -> bool:
        """An out= form is derived."""
        ok = self.kind in ("pointwise", "structured") and not self.mutates
        tensors = all(t.base == "Tensor" for t in self.outputs)
        return bool(self.options.get("out", ok and tensors))
