"""Reading whole modules by Python's pickle: ``load(weights_only=False)``.

Owns the translation of PyTorch's names to ours in such files. It can run any code: that is what the
user asked for, and was warned of. Nothing else in the package may import it but `serialization`.
"""

from __future__ import annotations

import importlib
import io
import pickle
from typing import Any

import flambeau as fb

from . import torch_names


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream: Any, pool: Any, encoding: str) -> None:
        super().__init__(stream, encoding=encoding)
        self._pool = pool
        self._tensors = torch_names.TensorNames(pool.flat_of, lambda cls: True)

    def persistent_load(self, pid: Any) -> Any:
        return self._pool.persistent_load(pid)

    def find_class(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        if full in self._tensors.names:
            return self._tensors.names[full]
        refused = self._tensors.refused(full)
        if refused is not None:
            raise pickle.UnpicklingError(refused)
        if module.partition(".")[0] != "torch":
            return super().find_class(module, name)
        ours = "flambeau" + module.removeprefix("torch")
        try:
            importlib.import_module(ours)
            return super().find_class(ours, name)
        except (ImportError, AttributeError) as error:
            functions = fb.nn.functional
            for place, package in (
                ("torch._C._nn", functions),
                ("torch.nn", fb.nn),
                ("torch.optim", fb.optim),
                ("torch", fb),
            ):
                if module.startswith(place) and hasattr(package, name):
                    return getattr(package, name)
            raise pickle.UnpicklingError(
                f"load: the file names {full}, which flambeau does not have"
            ) from error


def reader(encoding: str) -> Any:
    """Reads pickles by Python's own machine."""

    def unpickle(data: Any, start: int, pool: Any) -> Any:
        stream = io.BytesIO(data[start:]) if start or not isinstance(data, bytes) else None
        return _Unpickler(stream or io.BytesIO(data), pool, encoding).load()

    return unpickle
