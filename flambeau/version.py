"""What this build is: its version, and which accelerators' toolkits it was made with (None)."""

from . import __version__

__all__ = ["__version__", "cuda", "debug", "hip", "xpu"]

cuda: str | None = None
hip: str | None = None
xpu: str | None = None
debug = False
