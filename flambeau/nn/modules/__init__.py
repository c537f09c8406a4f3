"""Every module class, one file per family.

Owns the list of families. Invariant: a public class is named in its family's `__all__` alone.
"""

from __future__ import annotations

from . import (
    activation,
    adaptive,
    batchnorm,
    channelshuffle,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    linear,
    loss,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
)
from .activation import *  # noqa: F403
from .adaptive import *  # noqa: F403
from .batchnorm import *  # noqa: F403
from .channelshuffle import *  # noqa: F403
from .container import *  # noqa: F403
from .conv import *  # noqa: F403
from .distance import *  # noqa: F403
from .dropout import *  # noqa: F403
from .flatten import *  # noqa: F403
from .fold import *  # noqa: F403
from .instancenorm import *  # noqa: F403
from .linear import *  # noqa: F403
from .loss import *  # noqa: F403
from .module import Module
from .normalization import *  # noqa: F403
from .padding import *  # noqa: F403
from .pixelshuffle import *  # noqa: F403
from .pooling import *  # noqa: F403
from .rnn import *  # noqa: F403
from .sparse import *  # noqa: F403
from .transformer import *  # noqa: F403
from .upsampling import *  # noqa: F403

_FAMILIES = (
    linear,
    conv,
    activation,
    loss,
    container,
    pooling,
    batchnorm,
    instancenorm,
    normalization,
    dropout,
    padding,
    sparse,
    rnn,
    pixelshuffle,
    channelshuffle,
    upsampling,
    distance,
    fold,
    adaptive,
    transformer,
    flatten,
)

__all__ = ["Module"]
for _family in _FAMILIES:
    __all__ += _family.__all__
