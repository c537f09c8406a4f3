"""Checkpointing by saved-tensor hooks: a frame per call, which recomputes what backward asks for.

Owns the frame, its hooks and the comparison of both runs. Invariant: a value is handed out once,
then forgotten. Must not know random states or autocast; ``checkpoint`` passes their restoration
in.
"""

# Note [Checkpoint frames]
# In the first run nothing that autograd saves is kept; the hook leaves a ticket (frame, number) in
# its place and notes shape, dtype and device. When backward presents a ticket whose value is
# missing, the frame runs the function again under hooks that collect the values in the same order,
# stops after the last one, and hands out each value once. The inputs are saved by a node of their
# own, under the hooks of an enclosing checkpoint if there is one: so frames nest without holding
# activations.

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import flambeau as fb

if TYPE_CHECKING:
    from flambeau import Tensor

_HINT = "\n\nPass `debug=True` to checkpoint(...) for the list of all saved tensors."


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function did not save what the first one had."""


class _Stop(Exception):  # noqa: N818  (it is no error: it ends the second run early)
    def __init__(self, frame: _Frame) -> None:
        super().__init__("recomputation has all it needs")
        self.frame = frame


class _Ticket:
    """What the graph keeps instead of a tensor."""

    __slots__ = ("frame", "index")

    def __init__(self, frame: _Frame, index: int) -> None:
        self.frame = frame
        self.index = index


def _describe(x: Tensor) -> dict[str, Any]:
    return {"shape": x.shape, "dtype": x.dtype, "device": x.device}


class _Frame:
    def __init__(
        self,
        rerun: Callable[[], Any],
        check: bool,
        debug: bool,
        early_stop: bool,
    ) -> None:
        self.rerun = rerun
        self.check = check
        self.debug = debug
        self.early_stop = early_stop
        self.saved: list[dict[str, Any]] = []
        self.values: dict[int, Tensor] = {}

    # ---- hooks of the first run ----

    def pack(self, x: Tensor) -> _Ticket:
        self.saved.append(_describe(x))
        return _Ticket(self, len(self.saved) - 1)

    @staticmethod
    def unpack(ticket: _Ticket) -> Tensor:
        frame, index = ticket.frame, ticket.index
        if index not in frame.values:
            frame._recompute()
        return frame.values.pop(index)

    # ---- the second run ----

    def _recompute(self) -> None:
        values: dict[int, Tensor] = {}

        def collect(x: Tensor) -> Tensor:
            value = x.detach()
            if len(values) == len(self.saved):
                raise CheckpointError(
                    "checkpoint: trying to save more tensors during recomputation than during "
                    f"the original forward pass ({len(self.saved)})." + _HINT
                )
            values[len(values)] = value
            if self.early_stop and len(values) == len(self.saved):
                raise _Stop(self)
            return value

        hooks = fb.autograd.graph.saved_tensors_hooks(collect, lambda x: x)
        try:
            with hooks, fb.enable_grad():
                self.rerun()
        except _Stop as stop:
            if stop.frame is not self:
                raise
        self._compare(values)
        self.values = values

    def _compare(self, values: dict[int, Tensor]) -> None:
        if len(values) != len(self.saved):
            raise CheckpointError(
                "checkpoint: A different number of tensors was saved during the original forward "
                f"and recomputation.\nNumber of tensors saved during forward: {len(self.saved)}\n"
                f"Number of tensors saved during recomputation: {len(values)}."
                + self._detail(values)
            )
        if not self.check:
            return
        lines = []
        for i, first in enumerate(self.saved):
            second = _describe(values[i])
            if first != second:
                lines.append(
                    f"tensor at position {i}:\nsaved metadata: {first}\n"
                    f"recomputed metadata: {second}"
                )
        if lines:
            raise CheckpointError(
                "checkpoint: Recomputed values for the following tensors have different metadata "
                "than during the forward pass.\n" + "\n".join(lines) + self._detail(values)
            )

    def _detail(self, values: dict[int, Tensor]) -> str:
        if not self.debug:
            return _HINT
        first = "\n".join(f"  {i}: {what}" for i, what in enumerate(self.saved))
        second = "\n".join(f"  {i}: {_describe(x)}" for i, x in values.items())
        return f"\n\nSaved during forward:\n{first}\nSaved during recomputation:\n{second}"


def _input_saver() -> Any:
    """The node that saves a frame's tensor arguments; made on first use (see ``checkpoint``)."""
    global _saver
    if _saver is None:

        class SaveInputs(fb.autograd.Function):
            @staticmethod
            def forward(ctx: Any, keep: list[Any], *tensors: Tensor) -> Tensor:
                ctx.save_for_backward(*tensors)
                keep.append(ctx)
                return fb.empty((0,))

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                raise AssertionError("checkpoint: the node that saves inputs has no gradient")

        _saver = SaveInputs
    return _saver


_saver: Any = None


def checkpointed_run(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    contexts: tuple[AbstractContextManager[Any], AbstractContextManager[Any]],
    surroundings: Callable[[], AbstractContextManager[Any]],
    check: bool,
    debug: bool,
    early_stop: bool,
) -> Any:
    """Run ``function`` so that backward will run it again. See Note [Checkpoint frames].

    Args:
        function: with ``args`` and ``kwargs``.
        contexts: of the first and the second run.
        surroundings: gives the context that restores random state and autocast.
        check: compare what both runs save.
        debug: list it all in errors.
        early_stop: stop the second run when it has everything.
    """
    forward_context, second_context = contexts
    flat = [*args, *kwargs.values()]
    places = [i for i, x in enumerate(flat) if isinstance(x, fb.Tensor)]
    others = [None if isinstance(x, fb.Tensor) else x for x in flat]
    keep: list[Any] = []
    # The first, empty argument makes autograd record the node whatever the others require.
    anchor = fb.empty((0,), requires_grad=True)
    node = _input_saver().apply(keep, anchor, *(flat[i] for i in places))
    count, names = len(args), list(kwargs)

    def rerun() -> Any:
        _ = node  # the node lives as long as the frame
        values = list(others)
        for i, tensor in zip(places, keep[0].saved_tensors[1:], strict=True):
            values[i] = tensor
        given = dict(zip(names, values[count:], strict=True))
        with surroundings(), second_context:
            return function(*values[:count], **given)

    frame = _Frame(rerun, check, debug, early_stop)
    hooks = fb.autograd.graph.saved_tensors_hooks(frame.pack, frame.unpack)
    with hooks, forward_context:
        return function(*args, **kwargs)
