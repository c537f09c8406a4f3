"""Which modules are ours, by name: those of `flambeau`, and of `torch` under the alias.

Owns the set of top-level names. Imports nothing, so that the alias is installed at no cost.
"""

from __future__ import annotations

#: top-level names that our modules go by; `flambeau.as_torch` adds one
own_packages = {"flambeau"}


def own_module(name: str | None) -> str | None:
    """Name within the package of a module of ours, "" for the top; None for others."""
    top, _, rest = (name or "").partition(".")
    return rest if top in own_packages else None
