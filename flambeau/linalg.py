"""Linear algebra: the operations that the table puts in this namespace, and their error."""

from __future__ import annotations

from . import _C

LinAlgError = _C._LinAlgError

_functions = vars(_C._namespaces["linalg"])
globals().update({name: value for name, value in _functions.items() if name[0] != "_"})
