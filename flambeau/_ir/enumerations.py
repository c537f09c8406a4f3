"""Kinds that Python numbers and native code reads: the one list of them.

The build writes them as gen/enumerations.h; a member's number is its place. Pure: the build imports
this.
"""

from __future__ import annotations


class Enumeration:
    """Names numbered from 0: `Access.Item` is a number, and that of `Access::Item` in C++."""

    def __init__(self, meaning: str, names: str) -> None:
        self.meaning = meaning
        self.names = tuple(names.split())
        self.__dict__.update((name, i) for i, name in enumerate(self.names))

    def __getattr__(self, name: str) -> int:  # of a name that is none
        raise AttributeError(f"there is no kind {name!r} among {', '.join(self.names)}")

    def __getitem__(self, word: str) -> int:
        """The number of a name in lower case."""
        return int(getattr(self, word.capitalize()))


Access = Enumeration(
    "How guards come from a value to one that it holds",
    "Local Closure Contents Globals Constant Dict Instance Item Attribute",
)
CheckKind = Enumeration(
    "What guards ask of a value; Names: of a dictionary that hardly ever changes",
    "Type Identity Constant Length Keys Absent Equal Tensor Truth Names",
)
SymbolKind = Enumeration("Where the value of a symbol is found", "Size Stride Offset Value Unknown")
Relation = Enumeration("What holds of an integer expression", "Zero NotZero NotNegative")
FormulaOp = Enumeration("Steps of an integer expression", "Push Load Add Mul Div Mod Min Max")
FloatOp = Enumeration(
    "Steps of an expression in floating point",
    "Push Load Add Sub Mul Div Pow Float Sqrt Exp Log Cos Sin",
)
StepKind = Enumeration("Steps of a compiled program", "Allocate Take Free Nest Entry Change")
ArgumentKind = Enumeration(
    "Arguments of an entry that a compiled program calls",
    "Constant OneView Views Integer Integers Float",
)
KeyKind = Enumeration(
    "Parts of a key of x[key]; Place: a tensor of one whole number", "Plain Array Mask Place"
)
OutputKind = Enumeration(
    "What a compiled program gives back", "TensorOf Constant Integer Float Tuple"
)


def header() -> str:
    """Text of gen/enumerations.h."""
    found = {name: e for name, e in globals().items() if isinstance(e, Enumeration)}
    lines = ["#pragma once", "", "#include <cstdint>", "", "namespace flambeau {", ""]
    for name, e in found.items():
        lines += [f"// {e.meaning}.", f"enum class {name} : uint8_t {{"]
        lines += [f"  {member}," for member in e.names]
        lines += ["};", f"constexpr int64_t k{name}s = {len(e.names)};", ""]
    return "\n".join([*lines, "}  // namespace flambeau", ""])
