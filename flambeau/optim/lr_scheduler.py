"""The public names of the learning-rate schedules; the code is in ``_schedulers``."""

from __future__ import annotations

from ._schedulers.base import EPOCH_DEPRECATION_WARNING, LRScheduler, _LRScheduler
from ._schedulers.compose import ChainedScheduler, SequentialLR
from ._schedulers.cyclic import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from ._schedulers.decay import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from ._schedulers.plateau import ReduceLROnPlateau

__all__ = [
    "EPOCH_DEPRECATION_WARNING",
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
    "_LRScheduler",
]
