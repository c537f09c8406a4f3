"""Linear algebra: the operations that the table puts in this namespace."""

from __future__ import annotations

from ._C import _namespaces

globals().update(
    {name: value for name, value in vars(_namespaces["linalg"]).items() if name[0] != "_"}
)
