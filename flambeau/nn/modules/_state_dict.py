"""A module's state: writing it to a flat dictionary and reading it back.

Owns `state_dict`, `load_state_dict` and their hooks. Invariant: keys are dotted paths in the order
of registration; a failed load reports every mismatch at once. Knows nothing of files.
"""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.parameter import Parameter, is_lazy

from ._hooks import _add

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What `load_state_dict` found: keys the module lacks a value for, keys it does not know."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _WithModule:
    """A load hook that is given its module first. Held weakly: the module holds the hook."""

    with_module = True

    def __init__(self, hook: Callable[..., Any], module: Any) -> None:
        self.__setstate__((hook, module))

    def __call__(self, *args: Any) -> Any:
        return self.hook(self.module(), *args)

    def __getstate__(self) -> tuple[Any, ...]:
        return self.hook, self.module()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.hook, module = state
        self.module = weakref.ref(module)


class StateMixin:
    """The state methods of `Module`."""

    if TYPE_CHECKING:  # `Module` finds the registries

        def __getattr__(self, name: str) -> Any: ...

    # ---- hooks -----------------------------------------------------------------------------------

    def register_state_dict_pre_hook(self, hook: Callable[..., None]) -> Any:
        """Call `hook(module, prefix, keep_vars)` before the state is collected."""
        return _add(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., None]) -> Any:
        """Call `hook(module, state_dict, prefix, local_metadata)` after the state is collected.

        The hook changes the dictionary in place and returns None.
        """
        hook._from_public_api = True  # type: ignore[attr-defined]
        return _add(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> Any:
        """As `register_state_dict_post_hook`, but what the hook returns replaces the dictionary."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously registered via register_state_dict_post_hook"
            )
        return _add(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> Any:
        """Call `hook(module, state_dict, prefix, ...)` before this module's entries are read."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., None], with_module: bool = False
    ) -> Any:
        return _add(
            self._load_state_dict_pre_hooks, _WithModule(hook, self) if with_module else hook
        )

    def register_load_state_dict_post_hook(self, hook: Callable[..., None]) -> Any:
        """Call `hook(module, incompatible_keys)` after the module has been loaded."""
        return _add(self._load_state_dict_post_hooks, hook)

    # ---- writing ---------------------------------------------------------------------------------

    def get_extra_state(self) -> Any:
        """What besides tensors belongs to the state. Override together with `set_extra_state`."""
        raise RuntimeError(
            f"{type(self).__name__}.get_extra_state: not overridden, but extra state was asked for"
        )

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` gave."""
        raise RuntimeError(
            f"{type(self).__name__}.set_extra_state: not overridden, though the state dictionary "
            "holds extra state for the module"
        )

    def _overrides(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(StateMixin, method)

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        """Write this module's own entries, not those of its children."""
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        transient = self._non_persistent_buffers_set
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in transient:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if self._overrides("get_extra_state"):
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(
        self,
        *args: Any,
        destination: dict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """Parameters and persistent buffers, by dotted path.

        Args:
            destination: dictionary to add to; a new one by default.
            prefix: put before every key.
            keep_vars: give the tensors themselves; by default they are detached (still shared).

        Returns:
            An ordered dictionary; its `_metadata` holds each module's `_version`.
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to the "
                "documentation of `Module.state_dict` for details.",
                FutureWarning,
                stacklevel=2,
            )
            destination = args[0] if destination is None else destination
            if len(args) > 1 and prefix == "":
                prefix = args[1]
            if len(args) > 2 and keep_vars is False:
                keep_vars = args[2]
        if destination is None:
            fresh: Any = OrderedDict()
            fresh._metadata = OrderedDict()
            destination = cast(dict[str, Any], fresh)
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata

        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, metadata)
            if result is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = result
        return destination

    # ---- reading ---------------------------------------------------------------------------------

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Read this module's own entries; problems are added to the three lists."""
        lists = (missing_keys, unexpected_keys, error_msgs)
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, *lists)

        assign = local_metadata.get("assign_to_params_buffers", False)
        transient = self._non_persistent_buffers_set
        own = {
            name: tensor
            for name, tensor in itertools.chain(self._parameters.items(), self._buffers.items())
            if tensor is not None and name not in transient
        }
        for name, tensor in own.items():
            key = prefix + name
            if key in state_dict:
                self._load_one(name, tensor, key, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)

        extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if self._overrides("set_extra_state"):
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)

        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra_key:
                    head, dot, _ = key[len(prefix) :].partition(".")
                    if head not in (self._modules if dot else own):
                        unexpected_keys.append(key)

    def _load_one(
        self, name: str, tensor: Any, key: str, given: Any, assign: bool, error_msgs: list[str]
    ) -> None:
        if not isinstance(given, Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
                f"object from checkpoint but received {type(given)}"
            )
            return
        if not is_lazy(tensor):
            # Checkpoints older than 0-d tensors hold scalars with one element.
            if tensor.dim() == 0 and given.dim() == 1 and len(given) == 1:
                given = given[0]
            if not is_lazy(given) and given.shape != tensor.shape:
                error_msgs.append(
                    f"size mismatch for {key}: copying a param with shape {given.shape} from "
                    f"checkpoint, the shape in current model is {tensor.shape}."
                )
                return
            if tensor.is_meta and not given.is_meta and not assign:
                warnings.warn(
                    f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                    "parameter in the current model, which is a no-op. (Did you mean to pass "
                    "`assign=True` to assign items in the state dictionary to their corresponding "
                    "key in the module instead of copying them in place?)",
                    stacklevel=2,
                )
        try:
            with fb.no_grad():
                if assign:
                    self._assign_one(name, tensor, given)
                else:
                    tensor.copy_(given)
        except Exception as error:
            error_msgs.append(
                f'While copying the parameter named "{key}", whose dimensions in the model are '
                f"{tensor.size()} and whose dimensions in the checkpoint are {given.size()}, "
                f"an exception occurred : {error.args}."
            )

    def _assign_one(self, name: str, tensor: Any, given: Any) -> None:
        if isinstance(tensor, Parameter):
            if isinstance(given, Parameter):
                given.requires_grad_(tensor.requires_grad)
            else:
                given = Parameter(given, requires_grad=tensor.requires_grad)
        setattr(self, name, given)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy a state into the module and its children.

        Args:
            state_dict: what `state_dict()` gave.
            strict: missing or unexpected keys are errors.
            assign: put the given tensors themselves in place, with their dtype and device.

        Returns:
            A named tuple (missing_keys, unexpected_keys).

        Raises:
            RuntimeError: with every mismatch found, one a line.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state: Any = OrderedDict(state_dict)
        if metadata is not None:
            state._metadata = metadata

        def load(module: Any, own_state: dict[str, Any], prefix: str) -> None:
            local = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local["assign_to_params_buffers"] = assign
            module._load_from_state_dict(
                own_state, prefix, local, True, missing, unexpected, errors
            )
            for name, child in module._modules.items():
                if child is not None:
                    head = f"{prefix}{name}."
                    # A child sees its own entries only: no quadratic search in a deep model.
                    load(child, {k: v for k, v in own_state.items() if k.startswith(head)}, head)
            keys = _IncompatibleKeys(missing, unexpected)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, keys) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not "
                        "expected to return new values, if incompatible_keys need to be modified, "
                        "it should be done inplace."
                    )

        load(self, state, "")
        if strict:
            quoted = [", ".join(f'"{k}"' for k in keys) for keys in (missing, unexpected)]
            if unexpected:
                errors.insert(0, f"Unexpected key(s) in state_dict: {quoted[1]}. ")
            if missing:
                errors.insert(0, f"Missing key(s) in state_dict: {quoted[0]}. ")
        if errors:
            joined = "\n\t".join(errors)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{joined}"
            )
        return _IncompatibleKeys(missing, unexpected)
