"""Choice of the implementation of scaled dot-product attention, under the public names.

Owns no state: `flambeau.backends` has the choice, the operation itself follows it.
"""

from __future__ import annotations

from flambeau.backends._attention import USUAL, SDPBackend, allowed, sdpa_kernel

__all__ = ["SDPBackend", "sdpa_kernel", "WARN_FOR_UNFUSED_KERNELS"]

# Nobody reads it: a call that no allowed implementation can do is an error, which says why.
WARN_FOR_UNFUSED_KERNELS = False


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """What may be used now: preferred first, or else in the usual order."""
    return allowed() if with_priority else sorted(allowed(), key=USUAL.index)
