"""A node that copies into page-locked memory."""

from __future__ import annotations

import warnings
from typing import Any

import flambeau as fb

from .._utils.pin_memory import pin_memory
from ._ahead import Flow
from .base_node import BaseNode, T
from .map import _check_frequency, _Parallel

__all__ = ["PinMemory"]


class PinMemory(_Parallel):
    """The same batches in pinned memory, put there by a thread that reads ahead.

    Without an accelerator there is no such memory: a warning says so, and batches stay as they are.

    Args:
        source: batches.
        pin_memory_device: the accelerator at hand alone, which is the default.
        snapshot_frequency: as of `Prefetcher`.

    Raises:
        ValueError: another device; `snapshot_frequency` is not positive.

    Example:
        >>> import warnings
        >>> from flambeau.utils.data.nodes import IterableWrapper, PinMemory
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     node = PinMemory(IterableWrapper([torch.ones(2)]))
        >>> [batch.tolist() for batch in node]
        [[1.0, 1.0]]
    """

    def __init__(
        self, source: BaseNode[T], pin_memory_device: str = "", snapshot_frequency: int = 1
    ) -> None:
        _check_frequency("PinMemory", snapshot_frequency)
        if pin_memory_device not in ("", "cuda"):
            raise ValueError(
                f"PinMemory: expected pin_memory_device '' or 'cuda', got {pin_memory_device!r}"
            )
        pins = fb.cuda.is_available()
        if not pins:
            warnings.warn(
                "PinMemory: no accelerator is found, so batches are not pinned.", stacklevel=2
            )

        def work(flow: Flow) -> Any:
            def submit(number: int, batch: Any) -> None:
                try:
                    flow.put(number, pin_memory(batch) if pins else batch)
                except Exception as error:
                    flow.fail(number, error)

            return submit, [], lambda: None

        super().__init__(source, (1, True, snapshot_frequency), work)
        self.source, self.snapshot_frequency = source, snapshot_frequency
