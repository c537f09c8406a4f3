"""DistributedDataParallel in a world of one: gradients need no averaging.

Owns the wrapper's face: names in the state dict, `no_sync`, `join`. Must not know how processes
talk; the group is `flambeau.distributed`'s.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn

import flambeau.distributed as dist
from flambeau.distributed.algorithms.join import Join, Joinable, JoinHook
from flambeau.nn.modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module, Joinable):
    """Averages gradients over the processes of a group; of one process they are as they are.

    Args:
        module: the module, with a parameter that requires a gradient.
        device_ids: the GPU of the module: none.
        output_device: the same.
        dim: dimension of the batch.
        broadcast_buffers, init_sync: whether processes start alike.
        process_group: the group; the default one where it is None.
        bucket_cap_mb, find_unused_parameters, check_reduction, gradient_as_bucket_view,
            static_graph: how gradients travel; none does.

    Raises:
        ValueError: no group has been made; the module has devices.
        RuntimeError: no parameter requires a gradient.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
    ) -> None:
        super().__init__()
        dist.get_world_size(process_group)  # there is a group
        self.process_group = process_group or dist.group.WORLD
        if mixed_precision is not None or device_mesh is not None:
            raise NotImplementedError(
                "DistributedDataParallel: mixed_precision and device_mesh are not built yet"
            )
        if device_ids or output_device is not None:
            raise ValueError(
                f"DistributedDataParallel: expected no device_ids, got {device_ids}: no GPU"
            )
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters "
                "that require a gradient."
            )
        self.module, self.dim = module, dim
        self.device_ids = self.output_device = None
        self.device = next(iter(module.parameters())).device
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self.module(*inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of backward passes inside are not averaged."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextlib.contextmanager
    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Iterator[None]:
        """Processes that run out of input wait for the others."""
        with Join([self], enable, throw_on_early_termination):
            yield

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Nothing to do."""
        return JoinHook()

    @property
    def join_device(self) -> Any:
        """Device of the module."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The group."""
        return self.process_group

    def register_comm_hook(self, state: Any, hook: Any) -> NoReturn:
        """Refuse: no gradient travels."""
        raise NotImplementedError("register_comm_hook: gradients do not travel between processes")
