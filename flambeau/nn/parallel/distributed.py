"""DistributedDataParallel: a module of which each process has a copy, trained as one.

Owns the wrapper's face and what it does before and after a forward pass: names in the state dict,
`no_sync`, parameters and buffers that start alike. Gradients are `_reducer`'s. Must not know how
processes talk.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import flambeau.distributed as dist
from flambeau import Tensor, cat, int64, is_grad_enabled, no_grad, tensor
from flambeau.distributed._reducer import GradBucket, Reducer
from flambeau.distributed.algorithms.join import Join, Joinable, JoinHook
from flambeau.futures import Future
from flambeau.nn.modules.module import Module

__all__ = ["DistributedDataParallel"]

_MB = 1024 * 1024
_DEFAULT_CAP_MB = 25


class DistributedDataParallel(Module, Joinable):
    """Averages gradients over the processes of a group, while backward goes on.

    Every process makes it of a module with the same parameters, and takes the same steps with its
    own part of the batch: the parameters stay the same everywhere. Those of rank 0 are sent to all
    when it is made. Gradients travel in buckets, each as soon as the gradients in it are ready.

    Args:
        module: the module, with a parameter that requires a gradient.
        device_ids, output_device: the GPU of the module: none.
        dim: dimension of the batch, kept for programs that read it.
        broadcast_buffers: rank 0's buffers are sent to all before each forward pass.
        init_sync: parameters are compared, and rank 0's are sent to all, when it is made.
        process_group: the group; the default one where it is None.
        bucket_cap_mb: size of a bucket in MiB, 25 by default. The first is of 1 MiB.
        find_unused_parameters: parameters that the outputs do not depend on take part with zeros;
            the graph is searched for them in each forward pass.
        check_reduction: ignored, as PyTorch does.
        gradient_as_bucket_view: gradients lie in the buckets, which saves their copies.
        static_graph: the same parameters take part in every step, equally often. Then unused ones,
            and one parameter in several reentrant checkpoints, need no search.
        device_mesh: a mesh of one dimension, whose group is meant.
        delay_all_reduce_named_params, param_to_hook_all_reduce, mixed_precision,
            skip_all_reduce_unused_params: not built; refused.

    Raises:
        ValueError: no group has been made; the module has devices.
        RuntimeError: no parameter requires a gradient, or those of two ranks differ. In forward:
            a parameter had no gradient in the step before. In backward: one had two.
        DistBackendError: another process died, is late or does something else.
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
        Joinable.__init__(self)
        if device_mesh is not None:
            if process_group is not None:
                raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
            if device_mesh.ndim != 1:
                raise RuntimeError(f"Only 1D device mesh is supported, but got {device_mesh.ndim}")
            process_group = device_mesh.get_group()
        dist.get_world_size(process_group)  # there is a group
        refused = {
            "delay_all_reduce_named_params": delay_all_reduce_named_params,
            "param_to_hook_all_reduce": param_to_hook_all_reduce,
            "mixed_precision": mixed_precision,
            "skip_all_reduce_unused_params": skip_all_reduce_unused_params or None,
        }
        if given := [name for name, value in refused.items() if value is not None]:
            raise NotImplementedError(f"DistributedDataParallel: {', '.join(given)}: not built yet")
        if device_ids or output_device is not None:
            raise ValueError(
                f"DistributedDataParallel: expected no device_ids, got {device_ids}: no GPU"
            )
        cap = _DEFAULT_CAP_MB if bucket_cap_mb is None else bucket_cap_mb
        if cap <= 0:
            raise ValueError(
                f"DistributedDataParallel: expected bucket_cap_mb above 0, got {bucket_cap_mb}"
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
        self.static_graph, self.bucket_bytes_cap = static_graph, int(cap * _MB)
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self._divide_by_initial_world_size = True
        found = dist.group.WORLD if process_group is None else process_group
        if not isinstance(found, dist.ProcessGroup):
            raise ValueError("DistributedDataParallel: expected a group that this process is in")
        self.process_group = found
        ignored = getattr(module, "_ddp_params_and_buffers_to_ignore", ())
        self.parameters_to_ignore = set(ignored)
        if init_sync:
            self._compare_parameters()
            _send_all(self._states(), self.process_group)
        trained = [(n, p) for n, p in self._named_parameters() if p.requires_grad]
        self.reducer = Reducer(
            [p for _, p in trained],
            [n for n, _ in trained],
            self.process_group,
            self.bucket_bytes_cap,
            gradient_as_bucket_view,
            find_unused_parameters,
            static_graph,
        )

    def _named_parameters(self) -> list[tuple[str, Any]]:
        named = self.module.named_parameters()
        return [(n, p) for n, p in named if n not in self.parameters_to_ignore]

    def _states(self) -> list[Any]:
        every = (*self.module.named_parameters(), *self.module.named_buffers())
        return [t for name, t in every if name not in self.parameters_to_ignore]

    def _compare_parameters(self) -> None:
        """All ranks' parameters have the same shapes, or all raise the same error."""
        mine = [
            (n, tuple(p.shape), str(p.dtype), p.requires_grad) for n, p in self._named_parameters()
        ]
        every: list[Any] = [None] * self.process_group.size()
        dist.all_gather_object(every, mine, self.process_group)
        for rank, theirs in enumerate(every):
            if len(theirs) != len(every[0]):
                raise RuntimeError(
                    f"DistributedDataParallel expects same model across all ranks, but Rank 0 has "
                    f"{len(every[0])} params, while rank {rank} has {len(theirs)}"
                )
            for first, other in zip(every[0], theirs, strict=True):
                if first != other:
                    raise RuntimeError(
                        "DistributedDataParallel expects same model across all ranks: parameter "
                        f"{_told(first)} of rank 0 is {_told(other)} on rank {rank}"
                    )

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        reduces = is_grad_enabled() and self.require_backward_grad_sync
        if reduces and (names := self.reducer.unfinished()):
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new "
                "one. This error indicates that your module has parameters that were not used in "
                f"producing loss: {', '.join(names)} (rank {self.process_group.rank()}). Make sure "
                "that all outputs of forward take part in the loss, or pass "
                "find_unused_parameters=True, or static_graph=True where every step leaves the "
                "same ones out."
            )
        joins = self._join_config.enable
        Join.notify_join_context(self)
        self._send_buffers(takes_step=True)
        if joins:
            count = self._tell(1, int(self.require_backward_grad_sync), int(reduces))[0]
            self.reducer.divisor = None if self._divide_by_initial_world_size else count
        else:
            self.reducer.divisor = None
        output = self.module(*inputs, **kwargs)
        self.require_forward_param_sync = self.require_backward_grad_sync
        if reduces:
            self.reducer.arm([t for t in _tensors(output) if t.requires_grad])
        else:
            self.reducer.disarm()
        return output

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of forward passes inside are added up and not averaged yet.

        The next pass outside averages all of them.
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def _tell(self, steps: int, syncs: int, reduces: int) -> list[int]:
        """In a `join`: how many take this step, send buffers before the next, and gradients."""
        counts = tensor([steps, syncs, reduces], dtype=int64)
        dist.all_reduce(counts, group=self.process_group)
        return [int(n) for n in counts.tolist()]

    def _one_of(self, candidate: bool) -> int:
        """The last rank that is a candidate."""
        rank = tensor([self.process_group.rank() if candidate else -1], dtype=int64)
        dist.all_reduce(rank, dist.ReduceOp.MAX, self.process_group)
        return int(rank.item())

    def _send_buffers(self, takes_step: bool) -> None:
        """Give all processes the buffers of rank 0; in a `join` of one that takes a step."""
        if not self.require_forward_param_sync or not self.broadcast_buffers:
            return
        named = self.module.named_buffers()
        buffers = [b for n, b in named if n not in self.parameters_to_ignore]
        if not buffers:
            return
        source = 0
        if self._join_config.enable:
            source = self._one_of(takes_step)
        _send_all(buffers, self.process_group, source)

    @contextlib.contextmanager
    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Iterator[None]:
        """A block for inputs of which some processes have more than others.

        A process that has no input left gives zeros to the steps of the others; when all have
        ended, all get the parameters and buffers of one that took the most steps. Steps are of one
        forward pass and one backward pass each.

        Args:
            divide_by_initial_world_size: gradients are divided by the number of all processes;
                otherwise by that of those that take the step. A communication hook divides itself.
            enable: without it nothing is done: inputs are known to be even.
            throw_on_early_termination: all raise as soon as one has no input left.

        Raises:
            RuntimeError: a process has no input left, with `throw_on_early_termination`.
            DistBackendError: the module calls collectives itself, as `SyncBatchNorm` does, which a
                process without input does not.
        """
        with Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        ):
            yield

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook with which it takes part in a `Join`.

        Args:
            divide_by_initial_world_size: as in `join`; True by default.
        """
        return _UnevenHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        """Device of the module."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The group."""
        return self.process_group

    def register_comm_hook(self, state: Any, hook: Callable[..., Any]) -> None:
        """Let a function average the gradients of a bucket.

        Args:
            state: given to the hook.
            hook: hook(state, bucket) returns a Future whose value is the averaged tensor, with as
                many elements as `bucket.buffer()`.

        Raises:
            TypeError: the hook cannot be called.
            RuntimeError: there is one already.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.reducer.hook is not None:
            raise RuntimeError(
                "register_comm_hook or register_builtin_comm_hook can only be called once."
            )

        def run(bucket: GradBucket) -> Future[Any]:
            future = hook(state, bucket)
            if not isinstance(future, Future):
                raise RuntimeError(
                    "register_comm_hook: expected the hook to return a Future, got "
                    f"{type(future).__name__}"
                )
            return future

        self.reducer.hook = run

    def _get_ddp_logging_data(self) -> NoReturn:
        """Refused: nothing is logged beside the flight recorder."""
        raise NotImplementedError(
            "DistributedDataParallel._get_ddp_logging_data: no such log is kept; options are "
            "attributes of the module, the calls of a group are in the flight recorder "
            "(FLAMBEAU_DIST_TRACE_FILE)"
        )


class _UnevenHook(JoinHook):
    """The collectives of a forward and a backward pass, of a process without input."""

    def __init__(self, net: DistributedDataParallel, divide_by_all: bool) -> None:
        self._net = net
        net._divide_by_initial_world_size = divide_by_all

    def main_hook(self) -> None:
        net = self._net
        net._send_buffers(takes_step=False)
        count, syncs, reduces = net._tell(0, 0, 0)
        net.require_forward_param_sync = syncs > 0
        if reduces:
            net.reducer.divisor = None if net._divide_by_initial_world_size else count
            net.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        net = self._net
        source = net._one_of(is_last_joiner)
        _send_all(net._states(), net.process_group, source)


def _told(entry: tuple[str, Any, str, bool]) -> str:
    name, shape, dtype, trained = entry
    return f"{name} {list(shape)} {dtype}" + ("" if trained else " without gradient")


def _tensors(found: Any) -> list[Tensor]:
    """The tensors in what a module gives."""
    if isinstance(found, Tensor):
        return [found]
    if isinstance(found, dict):
        return [t for value in found.values() for t in _tensors(value)]
    if isinstance(found, (list, tuple)):
        return [t for value in found for t in _tensors(value)]
    if dataclasses.is_dataclass(found) and not isinstance(found, type):
        fields = dataclasses.fields(found)
        return [t for field in fields for t in _tensors(getattr(found, field.name))]
    return []


def _send_all(tensors: Sequence[Tensor], group: Any, source: int = 0) -> None:
    """Give all ranks what one has, in one message for each dtype."""
    kinds: dict[Any, list[Tensor]] = {}
    for each in tensors:
        kinds.setdefault(each.dtype, []).append(each)
    with no_grad():
        for same in kinds.values():
            flat = cat([each.detach().reshape(-1) for each in same])
            dist.broadcast(flat, group=group, group_src=source)
            if group.rank() == source:
                continue
            parts = flat.split([each.numel() for each in same])
            for each, part in zip(same, parts, strict=True):
                each.copy_(part.view(each.shape))
