"""Modules whose sizes are found at their first call.

Owns `LazyModuleMixin`, which initialises a module from its first input and then turns it into its
ordinary class. Invariant: after the first call nothing of the laziness is left.
"""

from __future__ import annotations

import itertools
import warnings
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.nn.parameter import is_lazy

from .module import Module, _forget_unused_hooks

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Base of lazy modules; stands before the ordinary module among the bases.

    A subclass defines `initialize_parameters(self, *args, **kwargs)`, which gets the arguments of
    the first call and materialises the uninitialised parameters. `cls_to_become` names the class
    that the instance changes to afterwards.
    """

    cls_to_become: type[Module] | None = None

    if TYPE_CHECKING:  # what the ordinary module has

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )
        warnings.warn(
            "Lazy modules are a new feature under heavy development so changes to the API or "
            "functionality can happen at any moment.",
            stacklevel=2,
        )

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialise the parameters from the arguments of the first call."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer still waits for its shape."""
        return any(
            is_lazy(t) for t in itertools.chain(self._parameters.values(), self._buffers.values())
        )

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        # Uninitialised tensors are kept as they are: to detach one would lose its class.
        members = itertools.chain(self._parameters.items(), self._buffers.items())
        for name, tensor in members:
            if tensor is not None and name not in self._non_persistent_buffers_set:
                whole = keep_vars or is_lazy(tensor)
                destination[prefix + name] = tensor if whole else tensor.detach()

    def _lazy_load_hook(self, state_dict: dict[str, Any], prefix: str, *unused: Any) -> None:
        """Take the shapes of uninitialised tensors from a state that has them."""
        members = itertools.chain(self._parameters.items(), self._buffers.items())
        for name, tensor in members:
            given = state_dict.get(prefix + name)
            if given is not None and is_lazy(tensor) and not is_lazy(given):
                with fb.no_grad():
                    tensor.materialize(given.shape)

    def _infer_parameters(
        self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> None:
        """The hook of the first call: initialise, then become an ordinary module."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(
                f"module {self._get_name()} has not been fully initialized: "
                "initialize_parameters left parameters without a shape"
            )
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook
        del module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become
        _forget_unused_hooks(module)

    def _replicate_for_data_parallel(self) -> Any:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. "
            "Run a dummy forward pass to correctly initialize the modules"
        )
