"""Activation checkpointing: keep a function's inputs; run it again when backward needs the rest.

Owns the public functions, the two ways of doing it (``use_reentrant``) and what both restore:
random state and autocast. The recomputation without reentrance is in ``_checkpoint_frame``.
Invariant: gradients equal those without checkpointing, where the function is deterministic given
its random state. Must not know modules.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import flambeau as fb

from ._checkpoint_frame import CheckpointError, checkpointed_run
from ._pytree import tree_leaves

if TYPE_CHECKING:
    from flambeau import Tensor

__all__ = [
    "CheckpointError",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

ContextFn = Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]]


class _Settings:
    """What the two context managers below change, for calls made inside them."""

    early_stop = True
    debug: bool | None = None


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """In this block, ``checkpoint`` stops (or not) recomputing once it has what backward needs."""
    before = _Settings.early_stop
    _Settings.early_stop = enable
    try:
        yield
    finally:
        _Settings.early_stop = before


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """In this block, ``checkpoint`` details mismatches (or not); None leaves it to the calls."""
    before = _Settings.debug
    _Settings.debug = enabled
    try:
        yield
    finally:
        _Settings.debug = before


def noop_context_fn() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """Two contexts that do nothing."""
    return nullcontext(), nullcontext()


# ---- what a second run needs ---------------------------------------------------------------


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The GPUs that hold tensors of ``args``, and their generators' states."""
    devices = sorted(
        {
            x.get_device()
            for x in tree_leaves(args)
            if isinstance(x, fb.Tensor) and x.device.type == "cuda"
        }
    )
    return devices, [fb.cuda.get_rng_state(d) for d in devices]


def set_device_states(
    devices: Iterable[int], states: Iterable[Tensor], *, device_type: str | None = None
) -> None:
    """Put the GPUs' generators into the given states."""
    for device, state in zip(devices, states, strict=True):
        fb.cuda.set_rng_state(state, device)


class _Surroundings:
    """Random state and autocast as they were at the first run."""

    def __init__(self, args: Any, preserve_rng_state: bool) -> None:
        self.preserve = preserve_rng_state
        if preserve_rng_state:
            self.rng = fb.get_rng_state()
            self.devices, self.device_states = get_device_states(args)
        kinds = ("cpu", "cuda") if fb.cuda.is_available() else ("cpu",)
        self.autocast: list[dict[str, Any]] = [
            {
                "device_type": kind,
                "enabled": fb.is_autocast_enabled(kind),
                "dtype": fb.get_autocast_dtype(kind),
                "cache_enabled": fb.is_autocast_cache_enabled(),
            }
            for kind in kinds
        ]

    @contextmanager
    def restored(self) -> Iterator[None]:
        """A block in which they are so again."""
        from flambeau.amp import autocast
        from flambeau.random import fork_rng

        with ExitStack() as stack:
            if self.preserve:
                stack.enter_context(fork_rng(self.devices))
                fb.set_rng_state(self.rng)
                set_device_states(self.devices, self.device_states)
            for settings in self.autocast:
                stack.enter_context(autocast(**settings))
            yield


# ---- the reentrant way ---------------------------------------------------------------------


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs with tensors cut from their graph, requiring gradients as before.

    Raises:
        RuntimeError: ``inputs`` is not a tuple.
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )

    def cut(x: Any) -> Any:
        if not isinstance(x, fb.Tensor):
            return x
        y = x.detach()
        y.requires_grad_(x.requires_grad)
        return y

    return tuple(cut(x) for x in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn where no input requires a gradient: the reentrant way then gives none."""
    if not any(isinstance(x, fb.Tensor) and x.requires_grad for x in inputs):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )


def _make_checkpoint_function() -> Any:
    class CheckpointFunction(fb.autograd.Function):
        """Forward without graph; backward runs the function again and differentiates that."""

        @staticmethod
        def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
            check_backward_validity(args)
            ctx.run_function = run_function
            ctx.surroundings = _Surroundings(args, preserve_rng_state)
            ctx.places = [i for i, x in enumerate(args) if isinstance(x, fb.Tensor)]
            ctx.others = [None if isinstance(x, fb.Tensor) else x for x in args]
            ctx.save_for_backward(*(args[i] for i in ctx.places))
            with fb.no_grad():
                return run_function(*args)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            is_valid = getattr(fb.autograd, "_is_checkpoint_valid", None)
            if is_valid is not None and not is_valid():
                raise RuntimeError(
                    "When use_reentrant=True, checkpoint is incompatible with .grad() or passing "
                    "an `inputs` parameter to .backward(). To resolve this error, you can either "
                    "set use_reentrant=False, or call .backward() without passing the `inputs` "
                    "argument."
                )
            args = list(ctx.others)
            for i, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
                args[i] = tensor
            with ctx.surroundings.restored():
                inputs = detach_variable(tuple(args))
                with fb.enable_grad():
                    outputs = ctx.run_function(*inputs)
            outputs = (outputs,) if isinstance(outputs, fb.Tensor) else outputs
            pairs = [
                (out, grad)
                for out, grad in zip(outputs, grads, strict=True)
                if isinstance(out, fb.Tensor) and out.requires_grad
            ]
            if not pairs:
                raise RuntimeError(
                    "none of output has requires_grad=True, this checkpoint() is not necessary"
                )
            fb.autograd.backward([out for out, _ in pairs], [grad for _, grad in pairs])
            found = [x.grad if isinstance(x, fb.Tensor) else None for x in inputs]
            return (None, None, *found)

    return CheckpointFunction


_checkpoint_function: Any = None


def __getattr__(name: str) -> Any:
    # A class over the engine's, made on first use: importing this file must not need the engine.
    global _checkpoint_function
    if name == "CheckpointFunction":
        if _checkpoint_function is None:
            _checkpoint_function = _make_checkpoint_function()
        return _checkpoint_function
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# ---- the public functions ------------------------------------------------------------------


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: ContextFn = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call ``function(*args, **kwargs)``, keeping only its inputs for backward.

    Args:
        function: what backward will run again.
        args: its arguments.
        use_reentrant: False recomputes inside saved-tensor hooks (recommended); True in a backward
            within the backward, which needs an input that requires a gradient and a plain
            ``.backward()``.
        context_fn: gives the contexts of the first and of the second run (not reentrant).
        determinism_check: ``"default"`` compares shape, dtype and device of what both runs save,
            ``"none"`` does not.
        debug: list all saved tensors where they differ.
        early_stop: stop the second run once backward has what it needs (not reentrant).
        kwargs: keyword arguments of ``function``; ``preserve_rng_state=False`` does not restore the
            random state.

    Raises:
        CheckpointError: (in backward) the second run saved something else.
        ValueError: an option that the chosen way does not have.

    Source: Chen et al., "Training deep nets with sublinear memory cost", 2016 (arXiv 1604.06174).
    """
    if use_reentrant is None:
        warnings.warn(
            "checkpoint: the use_reentrant parameter should be passed explicitly. "
            "use_reentrant=False is recommended; the default is still use_reentrant=True.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        return __getattr__("CheckpointFunction").apply(function, preserve, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"determinism_check should be one of ['default', 'none'], but got {determinism_check}"
        )
    if not fb.is_grad_enabled():
        forward_context, _ = context_fn()
        with forward_context:
            return function(*args, **kwargs)
    return checkpointed_run(
        functools.partial(_uncompiled, function),
        args,
        kwargs,
        contexts=context_fn(),
        surroundings=_Surroundings((args, kwargs), preserve).restored,
        check=determinism_check == "default",
        debug=debug if _Settings.debug is None else _Settings.debug,
        early_stop=early_stop and _Settings.early_stop,
    )


def _uncompiled(function: Any, *args: Any, **kwargs: Any) -> Any:
    """The result of a function that the compilation in force does not see: it would save other
    tensors than the second run, which takes place in backward."""
    return fb._C._call_captured(None, function, args, kwargs)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run a sequence of functions in segments, each but the last checkpointed.

    Args:
        functions: a ``Sequential`` or a list of functions of one argument.
        segments: number of segments.
        input: the first function's argument.
        use_reentrant: see ``checkpoint``.
        kwargs: only ``preserve_rng_state``.
    """
    if use_reentrant is None:
        warnings.warn(
            "checkpoint_sequential: the use_reentrant parameter should be passed explicitly. "
            "use_reentrant=False is recommended; the default is still use_reentrant=True.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    children = getattr(functions, "children", None)
    steps = list(children()) if children is not None else list(functions)

    def run(part: list[Any]) -> Callable[[Any], Any]:
        def forward(value: Any) -> Any:
            for step in part:
                value = step(value)
            return value

        return forward

    size = len(steps) // segments
    last = size * (segments - 1)
    for begin in range(0, last, size):
        input = checkpoint(
            run(steps[begin : begin + size]),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
    return run(steps[last:])(input)
