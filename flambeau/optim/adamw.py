"""The name ``flambeau.optim.adamw``, where programs look for ``AdamW``; it lives with Adam."""

from .adam import AdamW

__all__ = ["AdamW"]
