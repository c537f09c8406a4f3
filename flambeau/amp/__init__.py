"""Mixed precision: ``autocast`` chooses dtypes, ``GradScaler`` keeps small gradients alive.

Owns the public names of ``flambeau.amp``. Which operations run in which dtype is the core's
business.
"""

from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
