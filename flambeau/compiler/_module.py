"""`OptimizedModule`: a module whose call is compiled. It shares all its state with the original."""

from __future__ import annotations

from typing import Any

from flambeau import _C
from flambeau.nn import Module

from ._stance import _Force


class OptimizedModule(Module):
    """A compiled module; attributes, parameters and mode are the original's.

    Its `state_dict` has the original under `_orig_mod`, as PyTorch's.
    """

    _orig_mod: Module

    def __init__(self, module: Module, config: Any) -> None:
        super().__init__()
        self.__dict__["_flambeau_config"] = config
        self._modules["_orig_mod"] = module
        self.__dict__["training"] = module.training

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _Force.call(self._flambeau_config, self._modules["_orig_mod"], args, kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_orig_mod", "_modules"):
            super().__setattr__(name, value)
        else:
            setattr(self._modules["_orig_mod"], name, value)

    def train(self, mode: bool = True) -> OptimizedModule:
        """Sets the mode of the original."""
        self.__dict__["training"] = mode
        self._modules["_orig_mod"].train(mode)
        return self

    def __repr__(self) -> str:
        return f"OptimizedModule(\n  (_orig_mod): {self._modules['_orig_mod']!r}\n)"


_C._skip_code(OptimizedModule.__call__.__code__)
