"""Parametrisations: a tensor of a module computed from others at each access.

Owns the class and property injected into the module. Invariant: the trained tensors live at
`module.parametrizations.<name>.original` (or `original0`, `original1`, ...) and `module.<name>` is
computed from them. Knows no particular parametrisation.
"""

from __future__ import annotations

import copy
import copyreg
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.modules.container import ModuleDict, ModuleList
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import Parameter

__all__ = [
    "cached",
    "ParametrizationList",
    "register_parametrization",
    "is_parametrized",
    "remove_parametrizations",
    "type_before_parametrizations",
    "transfer_parametrizations_and_params",
]

_cache_enabled = 0
_cache: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Inside, each parametrised tensor is computed once, at its first access."""
    global _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache.clear()


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _set_data(tensor: Tensor, new: Tensor) -> None:
    """Give `tensor` the data of `new`; the object stays, so optimisers keep referring to it."""
    tensor.data = new.detach()


def _require_tensor(value: Any, what: str) -> None:
    if not isinstance(value, Tensor):
        raise ValueError(f"{what}. Got {type(value).__name__}.")


def _require_same(
    value: Tensor, expected: Tensor, what: str, labels: tuple[str, str], attributes: tuple[Any, ...]
) -> None:
    for attribute in attributes:
        have, want = getattr(value, attribute), getattr(expected, attribute)
        if have != want:
            raise ValueError(
                f"{what} the {attribute} of the tensor, unless the `unsafe` flag is enabled.\n"
                f"{labels[0]}.{attribute}: {want}\n{labels[1]}.{attribute}: {have}"
            )


class ParametrizationList(ModuleList):
    """The parametrisations of one tensor, in order, and the tensor(s) that they start from.

    Args:
        modules: the parametrisations.
        original: the tensor before.
        unsafe: allow a result of another dtype or shape.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        before = original.detach()  # keeps shape and dtype when the data are replaced
        new = self._inverse(original)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            for attribute in ("dtype", "device"):
                have, want = getattr(new, attribute), getattr(original, attribute)
                if have != want:
                    raise ValueError(
                        f"When `right_inverse` outputs one tensor, it may not change the "
                        f"{attribute}.\noriginal.{attribute}: {want}\n"
                        f"right_inverse(original).{attribute}: {have}"
                    )
            _set_data(original, cast(Tensor, new))
            _register(self, "original", original)
        else:
            for i, part in enumerate(new):
                self._register_part(i, part, original)
        if not self.unsafe:
            result = self()
            _require_tensor(result, "A parametrization must return a tensor")
            _require_same(
                result,
                before,
                "Registering a parametrization may not change",
                ("unparametrized", "parametrized"),
                ("dtype", "shape"),
            )

    def _inverse(self, value: Any) -> Any:
        with fb.no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        value = module.right_inverse(value)
                    except NotImplementedError:
                        pass
        return value

    def _register_part(self, i: int, part: Any, original: Tensor) -> None:
        _require_tensor(
            part,
            "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...); "
            f"element {i} is none",
        )
        if isinstance(original, Parameter):
            part = Parameter(part, original.requires_grad)
        part.requires_grad_(original.requires_grad)
        _register(self, f"original{i}", part)

    def right_inverse(self, value: Tensor) -> None:
        """Change the original tensor(s) so that the result becomes `value`."""
        with fb.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            if self.is_tensor:
                _require_tensor(value, "`right_inverse` should return a tensor")
                self._assign("original", value)
                return
            if not isinstance(value, Sequence):
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors. "
                    f"Got {type(value).__name__}."
                )
            if len(value) != self.ntensors:
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got a sequence of length {len(value)}."
                )
            for i, part in enumerate(value):
                _require_tensor(part, "'right_inverse' must return a sequence of tensors")
                self._assign(f"original{i}", part)

    def _assign(self, name: str, value: Tensor) -> None:
        target = getattr(self, name)
        if target.dtype != value.dtype:
            raise ValueError(
                f"The tensor returned by `right_inverse` has dtype {value.dtype} while `{name}` "
                f"has dtype {target.dtype}"
            )
        _set_data(target, value)

    def forward(self) -> Tensor:
        """Compute the tensor."""
        first, *rest = self
        if self.is_tensor:
            value = first(self.original)
        else:
            value = first(*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in rest:
            value = module(value)
        return value


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    """Copy a parametrised module, which pickling (and so the default copy) refuses."""
    if id(self) in memo:
        return memo[id(self)]
    replica = self.__new__(type(self))
    memo[id(self)] = replica
    replica.__dict__ = copy.deepcopy(self.__dict__, memo)
    for slot in vars(copyreg)["_slotnames"](type(self)):
        if hasattr(self, slot):
            setattr(replica, slot, copy.deepcopy(getattr(self, slot), memo))
    return replica


def _getstate(self: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict()."
    )


def _inject_new_class(module: Module) -> None:
    """Give the module a class of its own, to which properties can be added."""
    cls = type(module)
    namespace: dict[str, Any] = {"__getstate__": _getstate}
    if not hasattr(cls, "__deepcopy__"):
        namespace["__deepcopy__"] = _deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), namespace)


def _inject_property(module: Module, tensor_name: str) -> None:
    def compute(self: Any) -> Tensor:
        parametrization = self.parametrizations[tensor_name]
        if not _cache_enabled:
            return parametrization()
        key = (id(self), tensor_name)
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def assign(self: Any, value: Tensor) -> None:
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(compute, assign))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a tensor of `module` by `parametrization` from now on.

    Args:
        module: changed in place.
        tensor_name: a parameter or buffer of it, parametrised already or not.
        parametrization: maps the original tensor(s) to the tensor; its `right_inverse`, if any,
            maps a value to the originals that give it.
        unsafe: allow another dtype or shape, and skip the check of it.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_addition(getattr(module, tensor_name), parametrization, tensor_name)
        parametrizations = module.parametrizations[tensor_name]
        parametrizations.append(parametrization)
        parametrizations.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    return module


def _check_addition(current: Tensor, parametrization: Module, name: str) -> None:
    """Raise if a further parametrisation would change dtype or shape, forward or backward."""
    result = parametrization(current)
    _require_tensor(result, "A parametrization must return a tensor")
    labels = (f"module.{name}", f"parametrization(module.{name})")
    what = "Registering a parametrization may not change"
    _require_same(result, current, what, labels, ("dtype", "shape"))
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        inverse = parametrization.right_inverse(result)
    except NotImplementedError:
        return
    _require_tensor(inverse, "parametrization.right_inverse must return a tensor")
    what = "The tensor returned by parametrization.right_inverse may not change"
    _require_same(inverse, current, what, (labels[0], "returned"), ("dtype", "shape"))


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a tensor (or, if None, any tensor) of `module` is parametrised."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make a parametrised tensor an ordinary one again.

    Args:
        module: changed in place.
        tensor_name: the tensor.
        leave_parametrized: keep the value it has now; otherwise that of the original tensor.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with fb.no_grad():
                _set_data(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that the module had before it was parametrised."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Put the parametrisations of one module, with copies of its tensors, on another.

    Args:
        from_module: taken from.
        to_module: changed in place.
        tensor_name: which tensor; default: all.
    """
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for parametrization in from_module.parametrizations[name]:
            register_parametrization(to_module, name, parametrization, unsafe=True)
        source = from_module.parametrizations[name]
        target = to_module.parametrizations[name]
        for key, tensor in (*source._parameters.items(), *source._buffers.items()):
            if tensor is not None:
                _set_data(getattr(target, key), tensor.detach().clone())
    return to_module
