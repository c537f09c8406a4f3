"""Modules that run on several devices or processes, for one of each."""

from __future__ import annotations

from .data_parallel import DataParallel, data_parallel
from .distributed import DistributedDataParallel
from .parallel_apply import parallel_apply

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "parallel_apply"]
