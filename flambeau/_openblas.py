"""Where the installed OpenBLAS is: the library in the package scipy-openblas32.

The core asks once, when a factorisation first needs LAPACK (Note [Where LAPACK is found] in
csrc/kernels/providers/lapack_library.h). The package is found, not imported. Knows nothing of how
the library is opened, nor of the environment variable that overrides it.
"""

from __future__ import annotations

import importlib.util
import os

__all__ = ["path"]

_PACKAGE, _STEM = "scipy_openblas32", "libscipy_openblas"


def path() -> str:
    """The library's path; empty where the package is not installed."""
    spec = importlib.util.find_spec(_PACKAGE)
    for folder in (spec and spec.submodule_search_locations) or ():
        place = os.path.join(folder, "lib")
        names = sorted(os.listdir(place)) if os.path.isdir(place) else []
        for name in names:
            if name.startswith(_STEM) and ".so" in name:
                return os.path.join(place, name)
    return ""
