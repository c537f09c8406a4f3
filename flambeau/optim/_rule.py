"""How an update rule is run: gather parameters and gradients, group them, pick list operations.

Invariant: a rule sees lists whose tensors share dtype and device, all dense or all sparse,
complex ones viewed as real; it never sees a parameter without gradient. Nothing is kept between
steps, so changed parameters, gradients or states are always seen. Must not know the mathematics
of any optimiser.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import flambeau as fb

from ._lists import DIFFERENTIABLE, MULTI_TENSOR, ONE_BY_ONE, ListOps
from .optimizer import Optimizer

if TYPE_CHECKING:
    from flambeau import Tensor

CAPTURABLE_DEVICES = ("cuda", "xpu", "hpu", "privateuseone", "xla")

Group = dict[str, Any]
State = dict[str, Any]


class Part:
    """The parameters of a group that one call of the rule updates together."""

    __slots__ = ("complex", "grads", "params", "sparse", "states")

    def __init__(self, sparse: bool, is_complex: bool) -> None:
        self.params: list[Tensor] = []
        self.grads: list[Tensor] = []
        self.states: list[State] = []
        self.sparse = sparse
        self.complex = is_complex

    def state(self, key: str) -> list[Tensor]:
        """The state tensors named ``key``, one per parameter, as the rule wants to see them."""
        values = [s[key] for s in self.states]
        return [as_real(v) for v in values] if self.complex else values

    def steps(self) -> list[Tensor]:
        return [s["step"] for s in self.states]

    def subset(self, indices: list[int]) -> Part:
        """The part restricted to some of its parameters (already viewed as real)."""
        part = Part(self.sparse, self.complex)
        part.params = [self.params[i] for i in indices]
        part.grads = [self.grads[i] for i in indices]
        part.states = [self.states[i] for i in indices]
        return part


def as_real(tensor: Tensor) -> Tensor:
    """A complex tensor as pairs of reals; a real one as it is."""
    return fb.view_as_real(tensor) if tensor.is_complex() else tensor


class RuleOptimizer(Optimizer):
    """An optimiser whose step is one rule applied to lists of tensors."""

    _sparse_grads = False
    _sparse_hint = ""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        Args:
            closure: re-evaluates the model, computes gradients and returns the loss.

        Returns:
            the loss of ``closure``, or None.
        """
        loss = None
        if closure is not None:
            with fb.enable_grad():
                loss = closure()
        with fb.set_grad_enabled(bool(self.defaults.get("differentiable"))):
            for group in self.param_groups:
                for part in self._parts(group):
                    self._update(part, group)
        return loss

    def _init_state(self, param: Tensor, group: Group) -> State:
        """The state of a parameter before its first step."""
        raise NotImplementedError

    def _update(self, part: Part, group: Group) -> None:
        """Read hyperparameters and state, then call the rule."""
        raise NotImplementedError

    def _has_state(self, group: Group) -> bool:
        return True

    def _parts(self, group: Group) -> list[Part]:
        """Split the group's parameters by device, dtype and layout of their gradients."""
        parts: dict[Any, Part] = {}
        current: Part | None = None
        key: Any = None
        stateful, states = self._has_state(group), self.state
        for p in group["params"]:
            grad = p.grad
            if grad is None:
                continue
            kind = (grad.dtype, grad.device, grad.is_sparse)
            if kind != key:
                key = kind
                current = parts.get(kind)
                if current is None:
                    current = parts[kind] = self._new_part(grad)
            current.params.append(p)  # type: ignore[union-attr]
            current.grads.append(grad)  # type: ignore[union-attr]
            if stateful:
                state = states[p]
                if not state:
                    state.update(self._init_state(p, group))
                current.states.append(state)  # type: ignore[union-attr]
        for part in parts.values():
            if part.complex:
                part.params = [fb.view_as_real(p) for p in part.params]
                part.grads = [fb.view_as_real(g) for g in part.grads]
        return list(parts.values())

    def _new_part(self, grad: Tensor) -> Part:
        sparse = grad.is_sparse
        if sparse and not self._sparse_grads:
            raise RuntimeError(
                f"{self._rule_name()} does not support sparse gradients{self._sparse_hint}"
            )
        return Part(sparse, grad.is_complex())

    def _rule_name(self) -> str:
        return type(self).__name__


def list_ops(part: Part, group: Group, capturable_state: str = "params and state_steps") -> ListOps:
    """The list operations a group asks for by ``foreach``, ``differentiable``, ``capturable``."""
    if group.get("capturable"):
        check_capturable(part, capturable_state)
    if group.get("differentiable"):
        if group.get("foreach"):
            raise AssertionError("_foreach ops don't support autograd")
        return DIFFERENTIABLE
    if part.sparse or group.get("foreach") is False:
        return ONE_BY_ONE
    return MULTI_TENSOR


def use_fused(part: Part, group: Group) -> bool:
    """Whether the core's single-call form of the rule applies to ``part``."""
    if group["fused"] and part.complex:
        raise RuntimeError("`fused=True` requires all the params to be floating point Tensors")
    if part.sparse or group["differentiable"]:
        return False
    wanted = group["fused"]
    return bool(wanted) if wanted is not None else group["foreach"] is None


def number(value: Any, ops: ListOps) -> Any:
    """A hyperparameter as a number; it stays a tensor only where its gradient is wanted."""
    if isinstance(value, fb.Tensor) and not ops.differentiable:
        return value.item()
    return value


def new_step(param: Tensor, group: Group) -> Tensor:
    """A step counter at zero; on the parameter's device where the update reads it there."""
    if group.get("capturable") or group.get("fused"):
        return fb.zeros((), dtype=fb.float32, device=param.device)
    return fb.tensor(0.0, dtype=scalar_dtype())


def scalar_dtype() -> Any:
    return fb.float64 if fb.get_default_dtype() == fb.float64 else fb.float32


def zeros_like(param: Tensor) -> Tensor:
    return fb.zeros_like(param, memory_format=fb.preserve_format)


# ---- checks of arguments that several optimisers share -------------------------------------


def check_capturable(part: Part, what: str) -> None:
    if any(p.device.type not in CAPTURABLE_DEVICES for p in part.params):
        raise AssertionError(
            f"If capturable=True, {what} must be on supported devices: {list(CAPTURABLE_DEVICES)}."
        )


def check_lr(lr: Any, foreach: bool | None = None, capturable: bool = True) -> None:
    if isinstance(lr, fb.Tensor):
        if foreach and not capturable:
            raise ValueError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
    check_least("learning rate", lr)


def check_least(what: str, value: Any, least: float = 0.0) -> None:
    """Refuse negative numbers and NaN."""
    if not least <= value:
        raise ValueError(f"Invalid {what}: {value}")


def check_betas(betas: tuple[Any, Any]) -> None:
    for i, beta in enumerate(betas[:2]):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


def check_fused(optimizer: Optimizer, fused: bool | None, foreach: bool | None) -> None:
    """Refuse argument combinations that ``fused=True`` excludes."""
    if not fused:
        return
    if optimizer.defaults["differentiable"]:
        raise RuntimeError("`fused` does not support `differentiable`")
    if foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


# ---- state dicts and pickles of earlier versions -------------------------------------------


def fill_groups(optimizer: Optimizer, defaults: Group) -> None:
    """Give groups from an older pickle or state dict the hyperparameters they lack."""
    for group in optimizer.param_groups:
        for name, value in defaults.items():
            group.setdefault(name, value)


def steps_as_tensors(optimizer: Optimizer, names: tuple[str, ...] = ("step",)) -> None:
    """Turn counters that an older state dict holds as Python numbers into tensors."""
    for group in optimizer.param_groups:
        for p in group["params"]:
            state = optimizer.state.get(p) or {}
            for name in names:
                if name in state and not isinstance(state[name], fb.Tensor):
                    on_device = group.get("capturable") or group.get("fused")
                    state[name] = fb.tensor(
                        float(state[name]),
                        dtype=fb.float32 if on_device else scalar_dtype(),
                        device=p.device if on_device else "cpu",
                    )
