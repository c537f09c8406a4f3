"""Full backward hooks of a module.

Owns the two gates through which a module's inputs and outputs pass so that the gradients
crossing them can be seen and replaced. Invariant: a gate is the identity, forward and backward,
unless a hook returns something. Knows nothing of how hooks are registered. Loaded when first used.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.autograd import Function


class _Gate(Function):
    """Identity on its tensors; hands their gradients to a callback on the way back."""

    #: what backward does is known when it runs: gates tell each other then
    _backward_is_known = False

    @staticmethod
    def forward(ctx: Any, on_backward: Callable[..., Any], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.on_backward = on_backward
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(t for t in tensors if not t.requires_grad))
        # Views, so that an in-place operation on the output is seen by autograd.
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return (None, *ctx.on_backward(grads))


def _through_gate(
    values: tuple[Any, ...], on_backward: Callable[..., Any]
) -> tuple[tuple[Any, ...], list[int] | None]:
    """Pass the tensors among `values` through a gate.

    Returns:
        The new values and the positions of the tensors, or None for these if no gradient flows.
    """
    where = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
    tensors = [values[i] for i in where]
    if not fb.is_grad_enabled() or not any(t.requires_grad for t in tensors):
        return values, None
    passed = list(values)
    for i, tensor in zip(where, _Gate.apply(on_backward, *tensors), strict=True):
        passed[i] = tensor
    if isinstance(values, tuple) and hasattr(values, "_fields"):
        return type(values)(*passed), where
    return tuple(passed), where


class BackwardHook:
    """One call of a module: joins the gradients of its outputs with those of its inputs.

    Args:
        module: passed to the hooks.
        hooks: called with (module, grad_input, grad_output); may replace grad_input.
        pre_hooks: called with (module, grad_output); may replace grad_output.
    """

    def __init__(
        self, module: Any, hooks: list[Callable[..., Any]], pre_hooks: list[Callable[..., Any]]
    ) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs: tuple[Any, ...] | None = None
        self.input_positions: list[int] | None = None  # None: no input needs a gradient
        self.output_positions: list[int] = []
        self.n_inputs = -1
        self.n_outputs = -1

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Gate the module's arguments."""
        self.n_inputs = len(args)
        args, self.input_positions = _through_gate(args, self._inputs_backward)
        return args

    def setup_output_hook(self, output: Any) -> Any:
        """Gate the module's result."""
        values = output if isinstance(output, tuple) else (output,)
        self.n_outputs = len(values)
        gated, positions = _through_gate(values, self._outputs_backward)
        if positions is None:
            return output
        self.output_positions = positions
        return gated if isinstance(output, tuple) else gated[0]

    def _outputs_backward(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        grad_output = _spread(grads, self.output_positions, self.n_outputs)
        for hook in self.pre_hooks:
            grad_output = _replaced(
                hook(self.module, grad_output), grad_output, "Backward pre hook", "grad_output"
            )
        self.grad_outputs = grad_output
        if self.input_positions is None:
            self._hooks_without_inputs(grad_output)
        return tuple(grad_output[i] for i in self.output_positions)

    def _inputs_backward(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.grad_outputs is None:
            return grads
        grad_input = _spread(grads, self.input_positions, self.n_inputs)
        for hook in self.hooks:
            grad_input = _replaced(
                hook(self.module, grad_input, self.grad_outputs),
                grad_input,
                "Backward hook",
                "grad_input",
            )
        self.grad_outputs = None
        return tuple(grad_input[i] for i in self.input_positions or ())

    def _hooks_without_inputs(self, grad_output: tuple[Any, ...]) -> None:
        """No argument needs a gradient: the hooks run when the outputs' gradients arrive."""
        if self.hooks:
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module "
                "outputs since no inputs require gradients.",
                stacklevel=2,
            )
        nothing = (None,) * self.n_inputs
        for hook in self.hooks:
            result = hook(self.module, nothing, grad_output)
            if result is not None and not (
                isinstance(result, tuple) and all(g is None for g in result)
            ):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always "
                    "return None or None for all gradients."
                )
        self.grad_outputs = None


def _spread(grads: tuple[Any, ...], positions: list[int] | None, total: int) -> tuple[Any, ...]:
    spread: list[Any] = [None] * total
    for i, grad in zip(positions or (), grads, strict=True):
        spread[i] = grad
    return tuple(spread)


def _replaced(result: Any, current: tuple[Any, ...], kind: str, what: str) -> tuple[Any, ...]:
    if result is None:
        return current
    result = result if isinstance(result, tuple) else (result,)
    if len(result) != len(current):
        raise RuntimeError(
            f"{kind} returned an invalid number of {what}, "
            f"got {len(result)}, but expected {len(current)}"
        )
    for given, had in zip(result, current, strict=True):
        _check_kind(given, had, f"{kind}: expected {what}")
    return result


def _check_kind(given: Any, had: Any, text: str) -> None:
    """A hook hands back other values, not another kind of gradient."""
    if given is None or had is None:
        return
    if not isinstance(given, type(had)) and not hasattr(given, "dtype"):
        raise TypeError(f"{text} of tensors, got {type(given).__name__}")
    if given.dtype != had.dtype or given.device.type != had.device.type:
        raise RuntimeError(
            f"{text} of {had.dtype} on {had.device}, got {given.dtype} on {given.device}"
        )
    if given.shape != had.shape:
        raise RuntimeError(f"{text} of shape {tuple(had.shape)}, got {tuple(given.shape)}")
