"""`Module`: the base of every layer and model.

Owns attribute storage (parameters, buffers, children live in their own dictionaries), the call, and
the printed form. Invariant: a name lives in exactly one of `__dict__`, `_parameters`, `_buffers`,
`_modules`. Hooks, state, traversal and conversion are the mixins beside this file.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from flambeau import Tensor
from flambeau.nn.parameter import Buffer, Parameter

from ._convert import ConvertMixin
from ._hooks import (
    CALL_HOOKS,
    REGISTRIES,
    STATE_HOOKS,
    HooksMixin,
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_buffer_registration_hooks,
    _global_forward_hooks,
    _global_forward_hooks_always_called,
    _global_forward_hooks_with_kwargs,
    _global_forward_pre_hooks,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
    _has_any_global_hook,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ._state_dict import _EXTRA_STATE_KEY_SUFFIX, StateMixin, _IncompatibleKeys
from ._traverse import TraverseMixin

__all__ = [
    "register_module_forward_pre_hook",
    "register_module_forward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_backward_hook",
    "register_module_full_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
    "Module",
]

# Names that packages built on this interface reach for in this module.
_REEXPORTED = (
    _EXTRA_STATE_KEY_SUFFIX,
    _IncompatibleKeys,
    _global_forward_hooks_always_called,
    _global_forward_hooks_with_kwargs,
    _has_any_global_hook,
)


# Note [Modules in files]
# -----------------------
# PyTorch keeps registries of hooks and some tables in every module's `__dict__`, and its methods
# fail without them. Ours are made when they are asked for, or computed: `save` writes what
# PyTorch's class has (`_file_state`), and `__setstate__` leaves out again what is empty or computed
# here.


def _addindent(text: str, spaces: int) -> str:
    """Indent every line but the first."""
    return text.replace("\n", "\n" + " " * spaces)


def _type_name(value: Any) -> str:
    """Qualified name of a value's type, as error messages show it."""
    if isinstance(value, Tensor):
        return value.type()
    cls = type(value)
    module = "" if cls.__module__ in ("builtins", None) else cls.__module__ + "."
    return module + cls.__qualname__


class Module(HooksMixin, StateMixin, TraverseMixin, ConvertMixin):
    """A part of a model: parameters, buffers, child modules, and a `forward`.

    Assigning a `Parameter`, a `Buffer` or another module to an attribute registers it.

    Example:
        >>> import flambeau as fb
        >>> class Scale(fb.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.factor = fb.nn.Parameter(fb.ones(1))
        ...     def forward(self, x):
        ...         return x * self.factor
        >>> [name for name, _ in Scale().named_parameters()]
        ['factor']
    """

    dump_patches: bool = False
    # Written into state dictionaries; a class raises it when the meaning of its entries changes.
    _version: int = 1
    training: bool
    # Whether __init__ passes its arguments on, for classes with a second base.
    call_super_init: bool = False
    # Properties that PyTorch's class keeps in `__dict__`, see Note [Modules in files].
    _computed: tuple[str, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            name = type(self).__name__
            if kwargs:
                raise TypeError(
                    f"{name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            raise TypeError(
                f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given"
            )
        store = self.__dict__
        store["training"] = True
        store["_parameters"] = {}
        store["_buffers"] = {}
        store["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # ---- the call --------------------------------------------------------------------------------

    def forward(self, *input: Any) -> Any:
        """The computation; every subclass defines it."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # Note [Lazy hook registries]
        if (
            self._hooked
            or _global_forward_pre_hooks
            or _global_forward_hooks
            or _global_backward_hooks
            or _global_backward_pre_hooks
        ):
            return self._wrapped_call_impl(*args, **kwargs)
        return self.forward(*args, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile this module's call in place; arguments as `flambeau.compile`."""
        import flambeau as fb

        whole: Any = fb
        self._compiled_call_impl = whole.compile(self._call_impl, *args, **kwargs)
        self.__dict__["_hooked"] = True

    # ---- registration ----------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None keeps the name without a value.

        Raises:
            KeyError: the name is empty, holds a dot, or is taken.
            TypeError: the name is not a string, or the value not a parameter.
            ValueError: the parameter was computed (it must be a leaf).
        """
        store = self.__dict__
        if "_parameters" not in store:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, store["_parameters"])
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{_type_name(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must "
                    f"be created explicitly. To express '{name}' as a function of another Tensor, "
                    "compute the value in the forward() method."
                )
            for hook in _global_parameter_registration_hooks.values():
                result = hook(self, name, param)
                param = param if result is None else result
        store["_parameters"][name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is not trained but belongs to the module.

        Args:
            name: its attribute name.
            tensor: the value; None keeps the name without a value.
            persistent: whether it belongs to `state_dict`.
        """
        store = self.__dict__
        if "_buffers" not in store:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, store["_buffers"])
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_type_name(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        for hook in _global_buffer_registration_hooks.values():
            result = hook(self, name, tensor)
            tensor = tensor if result is None else result
        store["_buffers"][name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child module; None keeps the name without a value."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_type_name(module)} is not a Module subclass")
        store = self.__dict__
        if "_modules" not in store:
            raise AttributeError("cannot assign module before Module.__init__() call")
        self._check_name("module", name, store["_modules"])
        self._store_module(name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Same as `add_module`."""
        self.add_module(name, module)

    def _check_name(self, kind: str, name: str, registry: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_type_name(name)}")
        if name not in registry and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')

    def _store_module(self, name: str, module: Module | None) -> None:
        for hook in _global_module_registration_hooks.values():
            result = hook(self, name, module)
            module = module if result is None else result
        self._modules[name] = module

    # ---- attributes ------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        store = self.__dict__
        if "_parameters" in store:
            if name in (found := store["_parameters"]):
                return found[name]
            if name in (found := store["_buffers"]):
                return found[name]
            if name in (found := store["_modules"]):
                return found[name]
            if name in CALL_HOOKS:
                store["_hooked"] = True
                return store.setdefault(name, OrderedDict())
            if name in STATE_HOOKS:
                return store.setdefault(name, OrderedDict())
            if name == "_non_persistent_buffers_set":
                return store.setdefault(name, set())
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        store = self.__dict__
        params = store.get("_parameters")
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif params is None:
            if isinstance(value, Module):
                raise AttributeError("cannot assign module before Module.__init__() call")
            if isinstance(value, Buffer):
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            object.__setattr__(self, name, value)
        elif name in params:
            if value is not None:
                self._refuse(name, value, "parameter", "torch.nn.Parameter or None")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._forget(name, "_modules")
            self._store_module(name, value)
        elif name in store["_modules"]:
            if value is not None:
                self._refuse(name, value, "child module", "torch.nn.Module or None")
            self._store_module(name, value)
        elif name in store["_buffers"]:
            self._set_buffer(name, value)
        elif isinstance(value, Tensor) and isinstance(value, Buffer):
            self._forget(name, "_buffers")
            self.register_buffer(name, value, value.persistent)
        else:
            object.__setattr__(self, name, value)
            if name in CALL_HOOKS:  # a registry replaced as a whole
                store["_hooked"] = True

    def _set_buffer(self, name: str, value: Any) -> None:
        if value is not None and not isinstance(value, Tensor):
            self._refuse(name, value, "buffer", "torch.nn.Buffer, torch.Tensor or None")
        if isinstance(value, Buffer):
            self.register_buffer(name, value, value.persistent)
            return
        for hook in _global_buffer_registration_hooks.values():
            result = hook(self, name, value)
            value = value if result is None else result
        self._buffers[name] = value

    def _refuse(self, name: str, value: Any, kind: str, expected: str) -> None:
        raise TypeError(
            f"cannot assign '{_type_name(value)}' as {kind} '{name}' ({expected} expected)"
        )

    def _forget(self, name: str, keep: str) -> None:
        """Take `name` out of every place but the registry `keep`."""
        store = self.__dict__
        store.pop(name, None)
        for registry in ("_parameters", "_buffers", "_modules"):
            if registry != keep:
                store[registry].pop(name, None)
        if keep != "_buffers" and "_non_persistent_buffers_set" in store:
            store["_non_persistent_buffers_set"].discard(name)

    def __delattr__(self, name: str) -> None:
        store = self.__dict__
        for registry in ("_parameters", "_buffers", "_modules"):
            if name in store.get(registry, ()):
                del store[registry][name]
                if registry == "_buffers":
                    self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        own = [*self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted(name for name in {*dir(type(self)), *own} if not name[0].isdigit())

    # ---- copies ----------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Note [Modules in files]: what is empty or computed here is left out again.
        left_out = {"_hooked", *self._computed}
        # False says that backward hooks are of the old kind.
        left_out.update(n for n in REGISTRIES if not state.get(n) and state.get(n) is not False)
        self.__dict__.update((k, v) for k, v in state.items() if k not in left_out)
        if any(state.get(name) for name in CALL_HOOKS):
            self.__dict__["_hooked"] = True

    def _file_state(self, state: Any) -> Any:
        """A pickled state with what PyTorch's classes need of it, see Note [Modules in files]."""
        if type(state) is not dict or "_parameters" not in state:
            return state  # one of a class that describes itself otherwise
        state = {k: v for k, v in state.items() if k != "_hooked"}
        for name in sorted(CALL_HOOKS | STATE_HOOKS):
            state.setdefault(name, OrderedDict())
        state.setdefault("_non_persistent_buffers_set", set())
        state.setdefault("_is_full_backward_hook", None)
        state.update((name, getattr(self, name)) for name in self._computed)
        return state

    def _replicate_for_data_parallel(self) -> Module:
        """A shallow copy that shares the tensors and has its own dictionaries."""
        copy = self.__new__(type(self))
        copy.__dict__ = self.__dict__.copy()
        copy._parameters = {}
        copy._buffers = copy._buffers.copy()
        copy._modules = copy._modules.copy()
        copy._is_replica = True
        return copy

    # ---- printing --------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands between the parentheses of the printed form; subclasses override it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [
            f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()
        ]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        body = "\n  ".join(lines + children)
        return f"{self._get_name()}(\n  {body}\n)"


def _forget_unused_hooks(module: Module) -> None:
    """Put a module back on the short call path once its hooks are gone."""
    store = module.__dict__
    if module._compiled_call_impl is None and not any(store.get(name) for name in CALL_HOOKS):
        for name in ("_hooked", *CALL_HOOKS):
            store.pop(name, None)
