"""Tensors and storages as PyTorch's pickles name them.

Owns which rebuild function and storage class of PyTorch a tensor is written by. Invariant: a key
has one storage class throughout a file; a tensor of another dtype names its own beside it. It
writes no bytes.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from typing import Any

import flambeau as fb
import flambeau.storage

from . import storages, torch_names
from .pickle_writer import Direct, Global, Persistent, Reduced

_CLASSES = {dtype: f"{name}Storage" for name, dtype in torch_names.STORAGE_DTYPES.items()}


class TensorsOut:
    """Describes tensors for one file and collects their storages."""

    def __init__(self, legacy: bool) -> None:
        self.table = storages.StorageTable()
        self.kinds: dict[int, str | None] = {}  # dtype of a storage's class; None: bytes
        self._legacy = legacy

    def special(self, obj: Any) -> Any:
        """How an object is written; None: as any other."""
        if isinstance(obj, fb.Tensor):
            return self._tensor(obj)
        if isinstance(obj, fb.nn.Module):
            return _module(obj)
        if isinstance(obj, fb.storage.TypedStorage):
            if storages.dtype_name(obj.dtype) not in _CLASSES:
                raise TypeError(
                    f"files have no name for a storage of dtype {obj.dtype}; save a tensor of it, "
                    "or its untyped()"
                )
            return self._storage(obj._tensor(), storages.dtype_name(obj.dtype))[0]
        if isinstance(obj, fb.UntypedStorage):
            flat = fb.empty(0, dtype=fb.uint8, device=obj.device)
            return self._storage(flat.set_(obj, 0, (obj.nbytes(),), (1,)), "uint8")[0]
        if isinstance(obj, fb.dtype):
            return Global("torch", storages.dtype_name(obj))
        if isinstance(obj, fb.Size):
            return Reduced(fb.Size, (tuple(int(n) for n in obj),))
        if isinstance(obj, fb.device):
            index = () if obj.index is None else (obj.index,)
            return Reduced(fb.device, (obj.type, *index))
        if isinstance(obj, (fb.layout, fb.memory_format)):
            return Global("torch", str(obj).rpartition(".")[2])
        return None

    def _tensor(self, tensor: Any) -> Direct | Reduced:
        kind, state = type(tensor), dict(getattr(tensor, "__dict__", None) or {})
        if kind is fb.nn.Parameter:
            hooks: OrderedDict[str, Any] = OrderedDict()
            parts = (tensor.detach(), bool(tensor.requires_grad), hooks)
            if state:
                return Reduced(_function("_rebuild_parameter_with_state"), (*parts, state))
            return Reduced(_function("_rebuild_parameter"), parts)
        call = self._plain(tensor)
        if kind is fb.Tensor and not state:
            return self._direct(call) or call
        made = Global("torch._tensor", "_rebuild_from_type_v2")
        return Reduced(made, (call.function, kind, call.args, state))

    def _plain(self, tensor: Any) -> Reduced:
        if tensor.layout != fb.strided:
            raise TypeError(
                f"expected a strided tensor, got layout {tensor.layout}; convert it with "
                "to_dense() first"
            )
        grad = bool(tensor.requires_grad)
        tensor = storages.plain(tensor)
        size, stride = tuple(map(int, tensor.shape)), tuple(map(int, tensor.stride()))
        if tensor.device.type == "meta":
            args: tuple[Any, ...] = (tensor.dtype, size, stride, grad)
            return Reduced(_function("_rebuild_meta_tensor_no_storage"), args)
        storage, same = self._storage(tensor, storages.dtype_name(tensor.dtype))
        hooks: OrderedDict[str, Any] = OrderedDict()
        args = (storage, int(tensor.storage_offset()), size, stride, grad, hooks)
        if same:
            return Reduced(_function("_rebuild_tensor_v2"), args)
        return Reduced(_function("_rebuild_tensor_v3"), (*args, tensor.dtype))

    def _direct(self, call: Reduced) -> Direct | None:
        """The same call, written at once; None: it has no storage."""
        if not isinstance(call.args[0], Persistent):
            return None
        function, (storage, offset, size, stride, grad, _, *dtype) = call.function, call.args

        def write(writer: Any) -> None:
            writer.name(function.module, function.name)
            writer.add(pickle.MARK + pickle.MARK)
            for part in storage.pid:
                if isinstance(part, Global):
                    writer.name(part.module, part.name)
                else:
                    writer.atom(part)
            writer.add(pickle.TUPLE + pickle.BINPERSID)
            writer.atom(offset)
            writer.integers(size)
            writer.integers(stride)
            writer.atom(grad)
            writer.name("collections", "OrderedDict")
            writer.add(pickle.EMPTY_TUPLE + pickle.REDUCE)
            for d in dtype:
                writer.name("torch", storages.dtype_name(d))
            writer.add(pickle.TUPLE + pickle.REDUCE)

        return Direct(write)

    def _storage(self, tensor: Any, dtype: str) -> tuple[Persistent, bool]:
        """The persistent id of a tensor's storage, and whether its class has the tensor's dtype."""
        number = self.table.number(tensor)
        nbytes, itemsize = tensor.untyped_storage().nbytes(), int(tensor.element_size())
        own = dtype if dtype in _CLASSES and nbytes % itemsize == 0 else None
        kind = self.kinds.setdefault(number, own)
        if self._legacy and kind != dtype:
            raise TypeError(
                f"the older format has no storage for dtype {dtype}, or one memory is viewed by "
                "two dtypes; leave out _use_new_zipfile_serialization=False"
            )
        name = "UntypedStorage" if kind is None else _CLASSES[kind]
        count = nbytes if kind is None else nbytes // int(getattr(fb, kind).itemsize)
        module = "torch.storage" if kind is None else "torch"
        pid = ("storage", Global(module, name), str(number), str(tensor.device), count)
        return Persistent((*pid, None) if self._legacy else pid), kind == dtype

    def itemsize(self, number: int) -> int:
        """Bytes of one element of a storage, as its class has them."""
        kind = self.kinds[number]
        return 1 if kind is None else int(getattr(fb, kind).itemsize)

    def payloads(self) -> list[Any]:
        """The bytes of every storage, in the order of the keys."""
        found = []
        for tensor in self.table.owners:
            flat = fb.empty(0, dtype=fb.uint8, device=tensor.device)
            storage = tensor.untyped_storage()
            found.append(flat.set_(storage, 0, (storage.nbytes(),), (1,)).cpu().numpy())
        return found


def _module(module: Any) -> Reduced | None:
    """A module whose state PyTorch's class can use; None: it does not describe itself so."""
    value = module.__reduce_ex__(2)
    if type(value) is not tuple or len(value) < 3 or any(v is not None for v in value[3:]):
        return None
    return Reduced(value[0], value[1], module._file_state(value[2]))


def _function(name: str) -> Global:
    return Global("torch._utils", name)
