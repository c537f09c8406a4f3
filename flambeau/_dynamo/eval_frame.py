"""Where programs import the class of compiled modules from."""

from __future__ import annotations

from flambeau.compiler._module import OptimizedModule

__all__ = ["OptimizedModule"]
