"""Communication hooks for DistributedDataParallel: other ways to average a bucket of gradients."""

from . import default_hooks

__all__ = ["default_hooks"]
