"""How tensors travel between processes: by a descriptor of shared memory, not as copies.

Owns what the picklers of ``multiprocessing`` make of tensors, parameters and storages. Invariant:
shared memory has no name, so that nothing stays behind whichever process ends first. Must not know
of queues or processes.
"""

from __future__ import annotations

from multiprocessing import context, reduction
from multiprocessing.reduction import ForkingPickler
from typing import Any

import flambeau as fb
from flambeau import _C, _tensor_pickle
from flambeau.nn.parameter import Parameter

__all__ = ["init_reductions", "reduce_storage", "reduce_tensor"]

_STRATEGIES = ("file_descriptor", "file_system")
_strategy = _STRATEGIES[0]


def sharing_strategy() -> str:
    """The strategy in force."""
    return _strategy


def choose_strategy(name: str) -> None:
    """Sets the strategy for what this process sends from now on."""
    global _strategy
    if name not in _STRATEGIES:
        raise ValueError(f"set_sharing_strategy: expected one of {_STRATEGIES}, got {name!r}")
    _strategy = name


def reduce_storage(storage: Any) -> tuple[Any, ...]:
    """What is sent of a storage: a descriptor of its memory, which is made shared.

    Memory that cannot move, because an array made of it is in use, is sent as a shared copy. With
    the strategy "file_system" memory that is not shared yet is sent as bytes.
    """
    if storage.device.type == "meta":
        return _tensor_pickle.rebuild_meta_storage, (storage.nbytes(),)
    if not storage.is_shared():
        if _strategy == "file_system":
            return _tensor_pickle.reduce_storage(storage)
        try:
            storage.share_memory_()
        except RuntimeError:
            storage = storage.clone().share_memory_()
    popen: Any = context.get_spawning_popen()
    if popen is not None:  # the child gets the descriptor when it starts: keep it open until then
        popen.__dict__.setdefault("_kept_storages", []).append(storage)
    return _map_storage, (reduction.DupFd(storage._descriptor()), storage.nbytes())


def _map_storage(handle: Any, nbytes: int) -> Any:
    return _C.UntypedStorage._from_descriptor(handle.detach(), nbytes)


def reduce_tensor(tensor: Any) -> tuple[Any, ...]:
    """What is sent of a tensor: its storage, and how it views it.

    Raises:
        RuntimeError: a tensor with history; the graph stays in its process.
    """
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "multiprocessing: expected a leaf tensor or one that does not require grad, for the "
            "graph cannot be sent to another process; call detach() before sending it"
        )
    if tensor.device.type != "cpu":
        return _tensor_pickle.reduce_tensor(tensor)
    view = (tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()))
    state = dict(tensor.__dict__)
    args = (type(tensor), tensor.untyped_storage(), tensor.dtype, view, tensor.requires_grad)
    return (_rebuild_tensor, args, state) if state else (_rebuild_tensor, args)


def _rebuild_tensor(
    cls: Any, storage: Any, dtype: Any, view: tuple[Any, ...], requires_grad: bool
) -> Any:
    offset, size, stride = view
    tensor = fb.empty(0, dtype=dtype).set_(storage, offset, size, stride)
    if cls is not _C.Tensor:
        return cls._make_subclass(cls, tensor, requires_grad)
    tensor.requires_grad = requires_grad
    return tensor


def init_reductions() -> None:
    """Teaches the picklers of queues, pipes and process arguments; importing does it."""
    ForkingPickler.register(_C.UntypedStorage, reduce_storage)
    for cls in (_C.Tensor, Parameter):
        ForkingPickler.register(cls, reduce_tensor)
