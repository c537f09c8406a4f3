"""DataParallel: a module whose batch is divided among GPUs; this build has none.

As PyTorch does without a GPU, it then calls the module itself.
"""

from __future__ import annotations

from typing import Any

from flambeau.nn.modules.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Divides a batch among GPUs; without any, calls the module.

    Args:
        module: the module.
        device_ids: GPUs; None for all there are.
        output_device: GPU of the result.
        dim: dimension of the batch.

    Raises:
        RuntimeError: `device_ids` names a GPU.

    >>> torch.nn.DataParallel(torch.nn.Identity())(torch.ones(2))
    tensor([1., 1.])
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        if device_ids:
            raise RuntimeError(f"DataParallel: expected no device_ids, got {device_ids}: no GPU")
        self.module, self.dim = module, dim
        self.device_ids: list[Any] = []
        self.output_device = output_device

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call a module as `DataParallel` does."""
    wrapped = DataParallel(module, device_ids, output_device, dim)
    return wrapped(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))
