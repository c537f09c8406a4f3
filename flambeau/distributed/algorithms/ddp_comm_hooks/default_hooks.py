"""Hooks that average a bucket as it is, or in a half format.

Owns what travels; buckets are the reducer's. A state is the process group; None means the default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau import Tensor, bfloat16, float16
from flambeau.futures import Future

from ... import _collectives
from ..._group import ReduceOp
from ..._reducer import GradBucket

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]

_Hook = Callable[[Any, GradBucket], "Future[Tensor]"]


def _average(group: Any, values: Tensor) -> Future[Any]:
    work = _collectives.all_reduce(values, ReduceOp.AVG, group, async_op=True)
    assert work is not None
    return work.get_future()


def _first(future: Future[Any]) -> Tensor:
    value = future.value()
    first: Tensor = value[0] if isinstance(value, (list, tuple)) else value
    return first


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The mean, as without a hook."""
    return _average(process_group, bucket.buffer()).then(_first)


def _compressed(process_group: Any, bucket: GradBucket, dtype: Any) -> Future[Tensor]:
    return _average(process_group, bucket.buffer().to(dtype)).then(_first)


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The mean of gradients that travel as float16: sums are made in float32, then rounded."""
    return _compressed(process_group, bucket, float16)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The mean of gradients that travel as bfloat16."""
    return _compressed(process_group, bucket, bfloat16)


def _wrapper(hook: _Hook, dtype: Any) -> _Hook:
    def run(state: Any, bucket: GradBucket) -> Future[Tensor]:
        bucket.set_buffer(bucket.buffer().to(dtype))
        return hook(state, bucket)

    return run


def fp16_compress_wrapper(hook: _Hook) -> _Hook:
    """The hook, on gradients in float16."""
    return _wrapper(hook, float16)


def bf16_compress_wrapper(hook: _Hook) -> _Hook:
    """The hook, on gradients in bfloat16."""
    return _wrapper(hook, bfloat16)
