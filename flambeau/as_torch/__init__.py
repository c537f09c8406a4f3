"""`import torch` gets Flambeau: unmodified programs and packages run on it.

    python -m flambeau.as_torch script.py        (also -m, -c, or nothing for a prompt)
    %load_ext flambeau.as_torch                  (in IPython and Jupyter)
    flambeau.as_torch.install()                  (at the top of a program)
    python -m flambeau.as_torch enable           (for a whole environment; disable, status)

Owns these ways in. Importing it changes nothing; real PyTorch in the same process is refused.
"""

from __future__ import annotations

from typing import Any

__all__ = ["install", "installed"]


def install() -> None:
    """Make `import torch` mean Flambeau in this process and in those it spawns.

    May be called again, without effect. Classes and modules then call themselves by PyTorch's
    names (`torch.nn.Linear`); `flambeau` goes on to hold the same objects.

    Raises:
        ImportError: PyTorch itself has been imported already.

    >>> import flambeau.as_torch
    >>> flambeau.as_torch.install()  # doctest: +SKIP
    """
    from . import _install

    _install.install()


def installed() -> bool:
    """Whether `import torch` means Flambeau in this process.

    >>> import flambeau.as_torch
    >>> flambeau.as_torch.installed() in (True, False)
    True
    """
    import sys

    module = sys.modules.get(f"{__name__}._install")
    return module is not None and bool(module.is_installed())


def load_ipython_extension(ipython: Any) -> None:
    """What `%load_ext flambeau.as_torch` calls."""
    install()
