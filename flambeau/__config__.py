"""What this build was made with, and what it found on this machine, as text.

Owns no fact: the core tells what it holds (``_build_info``) and which library LAPACK comes from
(``_lapack_library``), which is looked for when `show` is called.
"""

from __future__ import annotations

from . import _C, __version__

__all__ = ["parallel_info", "show"]


def show() -> str:
    """A readable account of the build, a line for each part.

    Returns:
        Lines of text: version, instruction set, OpenMP, oneDNN, and where LAPACK comes from.

    >>> import flambeau
    >>> print(flambeau.__config__.show().splitlines()[0])
    Flambeau 0.1.0
    """
    info = _C._build_info()
    lapack = _C._lapack_library()
    lines = [
        f"Flambeau {__version__}",
        f"  - instruction set: {info['isa']}",
        f"  - OpenMP: {'yes' if info['openmp'] else 'no'}",
        f"  - oneDNN: {'yes' if info['onednn'] else 'no'}",
        f"  - LAPACK: {lapack or 'plain routines, for no OpenBLAS was found'}",
    ]
    return "\n".join(lines) + "\n"


def parallel_info() -> str:
    """A readable account of the threads.

    Returns:
        Lines of text: threads of one operation, threads for independent operations.

    >>> import flambeau
    >>> "threads of one operation" in flambeau.__config__.parallel_info()
    True
    """
    return (
        f"threads of one operation: {_C.get_num_threads()}\n"
        f"threads for independent operations: {_C.get_num_interop_threads()}\n"
        f"OpenMP: {'yes' if _C._build_info()['openmp'] else 'no'}\n"
    )
