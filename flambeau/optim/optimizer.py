"""``Optimizer``: parameter groups, per-parameter state, hooks, and their state dicts.

Invariant: a parameter belongs to one group only, and every group carries a value for every default.
``state`` maps a parameter to a dict its update rule owns; a state dict replaces parameters by their
position over all groups. Must not know any update rule nor how rules are run (``_rule`` does that).
"""

from __future__ import annotations

import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import flambeau as fb

from ._hooks import (
    register,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
    with_step_hooks,
)
from ._state_dict import load_into, pack

if TYPE_CHECKING:
    from flambeau import Tensor
    from flambeau.utils.hooks import RemovableHandle

__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
]

ParamsT = Iterable["Tensor"] | Iterable[dict[str, Any]] | Iterable[tuple[str, "Tensor"]]

_HOOK_DICTS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


class _Required:
    """Default of a hyperparameter that every group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


class Optimizer:
    """Base of all optimisers.

    Args:
        params: tensors, ``(name, tensor)`` pairs, or dicts with the key ``"params"`` and the
            hyperparameters of that group. The order matters: state dicts refer to positions.
        defaults: hyperparameters for the groups that do not set them.

    Raises:
        TypeError: ``params`` is a single tensor, or holds something that is not a tensor.
        ValueError: no parameter, a non-leaf, or a parameter in two groups.
    """

    _optimizer_step_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_step_post_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        step = cls.__dict__.get("step")
        if step is not None and not hasattr(step, "hooked"):
            cls.step = with_step_hooks(step)  # type: ignore[method-assign]

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for name in _HOOK_DICTS:
            setattr(self, name, OrderedDict())
        if isinstance(params, fb.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of "
                f"Tensors or dicts, but got {params.type()}"
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    # ---- copying, printing ------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOK_DICTS:
            if name not in self.__dict__:
                setattr(self, name, OrderedDict())
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = [type(self).__name__ + " ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] if i else []
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join(lines) + "\n)"

    # ---- stepping ---------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once.

        Args:
            closure: clears the gradients, computes the loss and its gradients, returns the loss.

        Returns:
            what ``closure`` returned, or None.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define step()")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters.

        Args:
            set_to_none: drop them; False keeps the tensors and fills them with zeros.
        """
        if set_to_none:
            for group in self.param_groups:
                for p in group["params"]:
                    p.grad = None
            return
        kept = [p.grad for g in self.param_groups for p in g["params"] if p.grad is not None]
        for grad in kept:
            if grad.grad_fn is not None:
                grad.detach_()
            else:
                grad.requires_grad_(False)
        with fb.no_grad():
            by_kind = defaultdict(list)
            for grad in kept:
                by_kind[grad.dtype, grad.device, grad.is_sparse].append(grad)
            for (_, _, sparse), grads in by_kind.items():
                if sparse:
                    for grad in grads:
                        grad.zero_()
                else:
                    fb._foreach_zero_(grads)

    # ---- groups -----------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Take one more group of parameters, e.g. layers that are unfrozen during training.

        Args:
            param_group: dict with ``"params"`` and hyperparameters that differ from the defaults.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        _split_names(param_group, _listed(param_group["params"]))
        for p in param_group["params"]:
            self._check_param(p)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization "
                    f"parameter {name}"
                )
            param_group.setdefault(name, default)
        self._check_membership(param_group)
        self.param_groups.append(param_group)

    def _check_param(self, param: Any) -> None:
        if not isinstance(param, fb.Tensor):
            raise TypeError(
                f"optimizer can only optimize Tensors, but one of the params is {_type_name(param)}"
            )
        if self.defaults.get("differentiable"):
            return
        if not (param.is_leaf or param.retains_grad):
            raise ValueError("can't optimize a non-leaf Tensor")

    def _check_membership(self, new: dict[str, Any]) -> None:
        ids = {id(p) for p in new["params"]}
        if len(ids) != len(new["params"]):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; each of them "
                "would be updated several times per step, and this will become an error",
                stacklevel=4,
            )
        for group in self.param_groups:
            if ("param_names" in group) != ("param_names" in new):
                kind = "with" if "param_names" in new else "without"
                raise ValueError(
                    "all optimizer param groups should be with/without names. "
                    f"cannot add param group {kind} names to the optimizer"
                )
            if not ids.isdisjoint(id(p) for p in group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")

    # ---- state dicts ------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The state and the groups, with parameters replaced by their positions.

        Returns:
            ``{"state": {position: dict}, "param_groups": [dict]}``. The tensors are the live ones.
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        packed = pack(self)
        for hook in self._optimizer_state_dict_post_hooks.values():
            replaced = hook(self, packed)
            if replaced is not None:
                packed = replaced
        return packed

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the state and hyperparameters that ``state_dict()`` returned.

        State tensors are cast to the dtype and device of their parameter; step counters are not.

        Raises:
            ValueError: the groups differ in number or size from those of this optimiser.
        """
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        load_into(self, state_dict)
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    # ---- hooks ------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return new ones.

        ``args`` starts with the optimiser itself.
        """
        return register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` before ``state_dict`` is made."""
        return register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` on the result; it may return a replacement."""
        return register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before loading; it may return a replacement."""
        return register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` after loading."""
        return register(self._optimizer_load_state_dict_post_hooks, hook, prepend)


def _type_name(value: Any) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _listed(params: Any) -> list[Any]:
    if isinstance(params, fb.Tensor):
        return [params]
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering "
            "of tensors in sets will change between runs. Please use a list instead."
        )
    return list(params)


def _split_names(group: dict[str, Any], params: list[Any]) -> None:
    """Store ``params`` in the group; ``(name, tensor)`` pairs become two lists."""
    named = [isinstance(p, tuple) for p in params]
    if any(named):
        if not all(named):
            raise ValueError(
                "all optimizer params should be with/without names. Some param names are missing"
            )
        group["param_names"] = [name for name, _ in params]
        params = [p for _, p in params]
    group["params"] = params


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Kinds of devices on which `capturable=True` has a meaning to PyTorch's optimisers."""
    kinds = ["cuda", "xpu", "hpu", "privateuse1"]
    return [*kinds, "xla"] if supports_xla else kinds


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Which of fused and of lists an update is to use where its caller did not say: for optimisers
    of programs. Lists for plain tensors, unless `use_fused` asks for fusing and all are floating.
    """
    plain = not differentiable and all(type(p) in (fb.Tensor, fb.nn.Parameter) for p in params)
    fused = use_fused and plain and all(p.is_floating_point() for p in params)
    return fused, plain and not fused
