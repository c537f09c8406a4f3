"""Hooks around a module's call: their registries, and the call path that honours them.

Owns the process-wide registries and the mixin that gives `Module` its `register_*_hook` methods.
See Note [Lazy hook registries]. Knows nothing of parameters, buffers or state dicts.
"""

# Note [Lazy hook registries]
# A module is born without any hook dictionary. `Module.__getattr__` makes one when its name is
# first asked for, by a `register_*` method or by user code that reads or writes `_forward_hooks`
# directly, and then sets the instance's `_hooked`. `Module.__call__` tests `_hooked` and the global
# registries only: while a module has had no hook, a call costs two attribute look-ups.

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from flambeau import Tensor

# Dictionaries that change how a call runs (making one marks the module as hooked) ...
CALL_HOOKS = frozenset(
    (
        "_forward_pre_hooks",
        "_forward_pre_hooks_with_kwargs",
        "_forward_hooks",
        "_forward_hooks_with_kwargs",
        "_forward_hooks_always_called",
        "_backward_hooks",
        "_backward_pre_hooks",
    )
)
# ... and those that only `state_dict` and `load_state_dict` look at.
STATE_HOOKS = frozenset(
    (
        "_state_dict_hooks",
        "_state_dict_pre_hooks",
        "_load_state_dict_pre_hooks",
        "_load_state_dict_post_hooks",
    )
)

# What PyTorch's modules have from the start, see Note [Modules in files].
REGISTRIES = CALL_HOOKS | STATE_HOOKS | {"_non_persistent_buffers_set", "_is_full_backward_hook"}

_global_forward_pre_hooks: dict[int, Callable[..., Any]] = OrderedDict()
_global_forward_hooks: dict[int, Callable[..., Any]] = OrderedDict()
_global_forward_hooks_with_kwargs: dict[int, bool] = OrderedDict()
_global_forward_hooks_always_called: dict[int, bool] = OrderedDict()
_global_backward_pre_hooks: dict[int, Callable[..., Any]] = OrderedDict()
_global_backward_hooks: dict[int, Callable[..., Any]] = OrderedDict()
_global_parameter_registration_hooks: dict[int, Callable[..., Any]] = OrderedDict()
_global_module_registration_hooks: dict[int, Callable[..., Any]] = OrderedDict()
_global_buffer_registration_hooks: dict[int, Callable[..., Any]] = OrderedDict()
# None until the first global backward hook says whether it is of the full kind.
_global_is_full_backward_hook: bool | None = None


def _add(
    registry: Any, hook: Any, flags: tuple[dict[int, bool], ...] = (), prepend: bool = False
) -> Any:
    """Put `hook` into `registry` and its id into each of `flags`; the handle undoes all of it."""
    from flambeau.utils.hooks import RemovableHandle

    handle = RemovableHandle(registry, extra_dict=list(flags))
    registry[handle.id] = hook
    for flag in flags:
        flag[handle.id] = True
    if prepend:
        registry.move_to_end(handle.id, last=False)
    return handle


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> Any:
    """Call `hook(module, name, param)` whenever any module registers a parameter."""
    return _add(_global_parameter_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> Any:
    """Call `hook(module, name, submodule)` whenever any module registers a child."""
    return _add(_global_module_registration_hooks, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> Any:
    """Call `hook(module, name, buffer)` whenever any module registers a buffer."""
    return _add(_global_buffer_registration_hooks, hook)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> Any:
    """Call `hook(module, args)` before the forward of every module; it may return new args."""
    return _add(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> Any:
    """Call `hook(module, args, output)` after the forward of every module.

    Args:
        hook: may return a new output.
        with_kwargs: pass the keyword arguments too: `hook(module, args, kwargs, output)`.
        always_call: run it also when the forward raises.
    """
    flags = []
    if with_kwargs:
        flags.append(_global_forward_hooks_with_kwargs)
    if always_call:
        flags.append(_global_forward_hooks_always_called)
    return _add(_global_forward_hooks, hook, tuple(flags))


_MIXED = (
    "Cannot use both regular backward hooks and full backward hooks {where}. "
    "Please use only one of them."
)


def _set_global_backward_kind(full: bool) -> None:
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(_MIXED.format(where="as a global Module hook"))
    _global_is_full_backward_hook = full


def register_module_backward_hook(hook: Callable[..., Any]) -> Any:
    """Register a backward hook of the old kind for every module; prefer the full kind."""
    _set_global_backward_kind(False)
    return _add(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> Any:
    """Call `hook(module, grad_output)` before the backward of every module."""
    return _add(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> Any:
    """Call `hook(module, grad_input, grad_output)` in the backward of every module."""
    _set_global_backward_kind(True)
    return _add(_global_backward_hooks, hook)


def _has_any_global_hook() -> bool:
    return bool(
        _global_backward_pre_hooks
        or _global_backward_hooks
        or _global_forward_hooks
        or _global_forward_pre_hooks
        or _global_forward_hooks_always_called
        or _global_forward_hooks_with_kwargs
    )


class HooksMixin:
    """The hook methods of `Module`."""

    if TYPE_CHECKING:  # `Module` finds the registries

        def __getattr__(self, name: str) -> Any: ...

    # Class-level defaults; Note [Lazy hook registries].
    _hooked = False
    _is_full_backward_hook: bool | None = None
    _compiled_call_impl: Callable[..., Any] | None = None

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Any:
        """Call `hook(module, args)` before each forward.

        Args:
            hook: may return new positional arguments (a tuple, or one value).
            prepend: run it before the hooks registered so far.
            with_kwargs: call `hook(module, args, kwargs)`; it then returns (args, kwargs) or None.

        Returns:
            A handle whose `remove()` takes the hook away.
        """
        flags = (self._forward_pre_hooks_with_kwargs,) if with_kwargs else ()
        return _add(self._forward_pre_hooks, hook, flags, prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> Any:
        """Call `hook(module, args, output)` after each forward; its result replaces the output.

        Args:
            hook: the function.
            prepend: run it before the hooks registered so far.
            with_kwargs: call `hook(module, args, kwargs, output)`.
            always_call: run it also when the forward raises.

        Returns:
            A handle whose `remove()` takes the hook away.
        """
        flags = []
        if with_kwargs:
            flags.append(self._forward_hooks_with_kwargs)
        if always_call:
            flags.append(self._forward_hooks_always_called)
        return _add(self._forward_hooks, hook, tuple(flags), prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> Any:
        """Call `hook(module, grad_output)` before the gradients of the module are computed."""
        return _add(self._backward_pre_hooks, hook, (), prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """Call `hook(module, grad_input, grad_output)` once the input gradients are known.

        The hook may return a tuple that replaces `grad_input`. Gradients of keyword arguments and
        of values inside containers are not seen.
        """
        self._set_backward_kind(True)
        return _add(self._backward_hooks, hook, (), prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> Any:
        """Register a backward hook of the old kind: it sees the last operation's gradients only."""
        self._set_backward_kind(False)
        return _add(self._backward_hooks, hook)

    def _set_backward_kind(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(_MIXED.format(where="on a single Module"))
        self._is_full_backward_hook = full

    def _get_backward_hooks(self) -> tuple[list[Callable[..., Any]], list[Callable[..., Any]]]:
        """Global and own backward hooks: (full ones, old ones)."""
        full: list[Callable[..., Any]] = []
        old: list[Callable[..., Any]] = []
        (full if _global_is_full_backward_hook else old).extend(_global_backward_hooks.values())
        own = self.__dict__.get("_backward_hooks")
        if own:
            (full if self._is_full_backward_hook else old).extend(own.values())
        return full, old

    def _get_backward_pre_hooks(self) -> list[Callable[..., Any]]:
        own = self.__dict__.get("_backward_pre_hooks", {})
        return [*_global_backward_pre_hooks.values(), *own.values()]

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` between the hooks."""
        finished: set[int] = set()  # ids of always-called hooks that have run
        try:
            return _call_with_hooks(self, args, kwargs, finished)
        except Exception:
            _run_always_called(self, args, kwargs, finished)
            raise

    def _wrapped_call_impl(self, *args: Any, **kwargs: Any) -> Any:
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        return self._call_impl(*args, **kwargs)


def _forward_hooks_of(module: Any, which: str) -> list[tuple[int, Callable[..., Any]]]:
    own = module.__dict__.get(which)
    everywhere = _global_forward_hooks if which == "_forward_hooks" else _global_forward_pre_hooks
    return [*everywhere.items(), *(own.items() if own else ())]


def _call_with_hooks(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], finished: set[int]
) -> Any:
    args, kwargs = _run_pre_hooks(module, args, kwargs)
    full, old = module._get_backward_hooks()
    pre = module._get_backward_pre_hooks()
    gate = None
    if full or pre:
        from ._backward_hook import BackwardHook

        gate = BackwardHook(module, full, pre)
        args = gate.setup_input_hook(args)

    output = module.forward(*args, **kwargs)
    output = _run_forward_hooks(module, args, kwargs, output, finished)

    if gate is not None:
        if not isinstance(output, (Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(output)}",
                stacklevel=4,
            )
        output = gate.setup_output_hook(output)
    if old:
        _attach_old_backward_hooks(module, old, output)
    return output


def _run_pre_hooks(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    with_kwargs = module.__dict__.get("_forward_pre_hooks_with_kwargs", ())
    for key, hook in _forward_hooks_of(module, "_forward_pre_hooks"):
        if key in with_kwargs:
            result = hook(module, args, kwargs)
            if result is None:
                continue
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(
                    "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                    f"but got {result}."
                )
            args, kwargs = result
        else:
            result = hook(module, args)
            if result is not None:
                args = result if isinstance(result, tuple) else (result,)
    return args, kwargs


def _wants_kwargs(module: Any, key: int) -> bool:
    own = module.__dict__.get("_forward_hooks_with_kwargs", ())
    return key in own or key in _global_forward_hooks_with_kwargs


def _always_called(module: Any, key: int) -> bool:
    own = module.__dict__.get("_forward_hooks_always_called", ())
    return key in own or key in _global_forward_hooks_always_called


def _run_forward_hooks(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any, finished: set[int]
) -> Any:
    for key, hook in _forward_hooks_of(module, "_forward_hooks"):
        if _always_called(module, key):
            finished.add(key)
        if _wants_kwargs(module, key):
            result = hook(module, args, kwargs, output)
        else:
            result = hook(module, args, output)
        if result is not None:
            output = result
    return output


def _run_always_called(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], finished: set[int]
) -> None:
    """After a failure: run what asked to be run always. Further errors become warnings."""
    output = None
    for key, hook in _forward_hooks_of(module, "_forward_hooks"):
        if key in finished or not _always_called(module, key):
            continue
        try:
            if _wants_kwargs(module, key):
                result = hook(module, args, kwargs, output)
            else:
                result = hook(module, args, output)
        except Exception as error:
            warnings.warn(
                "a forward hook with ``always_call=True`` raised an exception that was silenced, "
                f"because another error was raised in forward: {error}",
                stacklevel=4,
            )
        else:
            output = output if result is None else result


def _attach_old_backward_hooks(module: Any, hooks: list[Callable[..., Any]], output: Any) -> None:
    first = output
    while not isinstance(first, Tensor):
        first = next(iter(first.values())) if isinstance(first, dict) else first[0]
    node = first.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(partial(hook, module))
    warnings.warn(
        "Using a non-full backward hook on a Module shows the gradients of its last operation "
        "only, which may not be those of the module's inputs. Please use "
        "register_full_backward_hook to get the documented behavior.",
        FutureWarning,
        stacklevel=5,
    )
