"""Pickling and deep copies of tensors, for ``Tensor.__reduce_ex__`` and ``Tensor.__deepcopy__``.

Owns what a pickled tensor consists of: bytes of its memory and the numbers to view them by. A
pickle names only functions of this module, so that files stay readable when the core changes. It
uses public names of tensors alone.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import flambeau as fb

from ._serialization import storages


def reduce_tensor(tensor: Any, protocol: int = 2) -> tuple[Any, ...]:
    """What ``__reduce_ex__`` returns for a tensor.

    Only the part of the storage that the tensor spans goes into the pickle. From protocol 5 on, the
    bytes are a ``PickleBuffer``, which a transport may send without copying.

    Args:
        tensor: a strided tensor on any device, or a parameter, or an instance of a subclass.
        protocol: the pickle protocol.

    Raises:
        RuntimeError: the layout or dtype is not plain strided memory.
    """
    if tensor.layout != fb.strided:
        raise RuntimeError(f"pickle: expected a strided tensor, got layout {tensor.layout}")
    device = str(tensor.device)
    requires_grad = bool(tensor.requires_grad)
    cls = type(tensor)
    state = dict(getattr(tensor, "__dict__", None) or {})
    plain = storages.plain(tensor)
    data, size, stride = None, tuple(plain.shape), tuple(plain.stride())
    if plain.device.type != "meta":
        data, stride = _span_bytes(plain, size, stride)
        data = pickle.PickleBuffer(data) if protocol >= 5 else data.tobytes()
    args = (data, storages.dtype_name(plain.dtype), size, stride, device, requires_grad)
    if cls is fb.Tensor:
        return (rebuild_tensor, args, state) if state else (rebuild_tensor, args)
    return (rebuild_subclass, (cls, *args), state) if state else (rebuild_subclass, (cls, *args))


def _span_bytes(
    tensor: Any, size: tuple[Any, ...], stride: tuple[Any, ...]
) -> tuple[Any, tuple[Any, ...]]:
    """The bytes from the first to the last element, and the strides that view them."""
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
        stride = tuple(tensor.stride())
    count = 0
    if tensor.numel():
        count = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if count > 2 * tensor.numel():  # a thin view of a large storage: copying is cheaper
        tensor = tensor.contiguous()
        count, stride = tensor.numel(), tuple(tensor.stride())
    whole = memoryview(tensor.untyped_storage()).cast("B")
    first = tensor.storage_offset() * tensor.element_size()
    return whole[first : first + count * tensor.element_size()], stride


def rebuild_tensor(
    data: Any,
    dtype: str,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    device: str = "cpu",
    requires_grad: bool = False,
) -> Any:
    """The tensor that ``reduce_tensor`` described.

    Args:
        data: bytes, or None for a tensor without data.
        dtype: bare name of the dtype.
        size: sizes.
        stride: strides, in elements.
        device: name of the device.
        requires_grad: whether the new leaf records gradients.

    Raises:
        ValueError: size and stride reach outside the data.
    """
    flat = None
    if data is not None:
        source = memoryview(data).cast("B") if len(data) else memoryview(b"")

        def fill(target: memoryview) -> None:
            target[:] = source

        flat = storages.allocate(source.nbytes, fill)
    record = {"dtype": dtype, "size": list(size), "stride": list(stride), "offset": 0}
    tensor = storages.view_of(flat, record)
    if flat is not None and device != "cpu":
        tensor = tensor.to(device)
    return tensor.requires_grad_() if requires_grad else tensor


def rebuild_subclass(cls: type, *args: Any) -> Any:
    """An instance of a tensor subclass, such as ``Parameter``, from ``rebuild_tensor``'s values."""
    *fields, requires_grad = args
    make = cls._make_subclass  # type: ignore[attr-defined]
    return make(cls, rebuild_tensor(*fields), requires_grad)


def deepcopy_tensor(tensor: Any, memo: dict[int, Any]) -> Any:
    """What ``__deepcopy__`` returns for a tensor.

    Tensors that share a storage share one afterwards, within one call of ``copy.deepcopy``;
    strides, offset, gradient and attributes are kept.

    Args:
        tensor: a leaf of the graph.
        memo: the dict that ``copy.deepcopy`` passes on.

    Raises:
        RuntimeError: the tensor is the result of recorded operations.
    """
    if id(tensor) in memo:
        return memo[id(tensor)]
    if not tensor.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment.  Use detach() or clone() first"
        )
    with fb.no_grad():
        result = _copied_memory(tensor, memo)
    if type(tensor) is not fb.Tensor:
        result = type(tensor)._make_subclass(type(tensor), result, bool(tensor.requires_grad))
    elif tensor.requires_grad:
        result.requires_grad_()
    memo[id(tensor)] = result
    # The memo's own convention: what it knows by id or address must not be freed meanwhile.
    memo.setdefault(id(memo), []).append(tensor)
    if tensor.grad is not None:
        result.grad = copy.deepcopy(tensor.grad, memo)
    state = getattr(tensor, "__dict__", None)
    if state:
        result.__dict__.update(copy.deepcopy(state, memo))
    return result


def _copied_memory(tensor: Any, memo: dict[int, Any]) -> Any:
    size, stride, offset = tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset()
    if tensor.layout != fb.strided or tensor.device.type == "meta":
        return tensor.detach().clone()
    if storages.plain(tensor).data_ptr() != tensor.data_ptr():
        return tensor.detach().clone()
    storage = deepcopy_storage(tensor.untyped_storage(), memo)
    return fb.empty(0, dtype=tensor.dtype).set_(storage, offset, size, stride)


def deepcopy_storage(storage: Any, memo: dict[int, Any]) -> Any:
    """What ``__deepcopy__`` returns for a storage: one copy for all that share it."""
    # A key beside the ids that copy.deepcopy puts into the memo itself.
    key: Any = ("storage", storage._cdata)
    if key not in memo:
        memo[key] = storage.clone()
        memo.setdefault(id(memo), []).append(storage)
    return memo[key]


def reduce_storage(storage: Any, protocol: int = 2) -> tuple[Any, ...]:
    """What ``__reduce_ex__`` returns for a storage: its bytes; on the meta device their number."""
    if storage.device.type == "meta":
        return rebuild_meta_storage, (storage.nbytes(),)
    data = pickle.PickleBuffer(storage) if protocol >= 5 else bytes(storage)
    return rebuild_storage, (data,)


def rebuild_storage(data: Any) -> Any:
    """The storage that ``reduce_storage`` described."""
    return fb.UntypedStorage(bytes(data))


def rebuild_meta_storage(nbytes: int) -> Any:
    """A storage on the meta device, which has a length and no bytes."""
    return fb.UntypedStorage(nbytes, device="meta")


def copy_tensor(tensor: Any) -> Any:
    """What ``__copy__`` returns: another leaf over the same memory, with the same attributes.

    Changes of either are seen in both; each counts its own, and neither is a view of the other.
    """
    result = tensor.data
    cls = type(tensor)
    if cls is not fb.Tensor:
        result = cls._make_subclass(cls, result, bool(tensor.requires_grad))
    elif tensor.requires_grad:
        result.requires_grad = True
    state = getattr(tensor, "__dict__", None)
    if state:
        result.__dict__.update(state)
    return result
