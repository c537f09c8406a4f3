"""Averages the gradients of parameters over a group while backward goes on.

Owns buckets: parameters of one dtype whose gradients lie side by side and travel together, those
that are ready first foremost. Invariant: all ranks send their buckets in the same order, each as
soon as it and all before it are complete; so collectives of different ranks always match. Must not
know of modules and forward passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flambeau import Tensor, int64, no_grad, tensor, zeros
from flambeau.autograd import Variable
from flambeau.futures import Future

from ._collectives import all_reduce, broadcast
from ._group import ProcessGroup, ReduceOp
from ._work import Work

_FIRST_BYTES = 1024 * 1024  # a small first bucket is on its way early


class Bucket:
    """Gradients that travel together, in one tensor."""

    def __init__(self, indices: list[int], params: Sequence[Tensor]) -> None:
        self.indices = indices
        first = params[indices[0]]
        count = sum(params[i].numel() for i in indices)
        self.buffer = zeros(count, dtype=first.dtype, device=first.device)
        self.views, at = {}, 0
        for i in indices:
            n = params[i].numel()
            self.views[i] = self.buffer[at : at + n].view(params[i].shape)
            at += n
        self.pending = len(indices)
        self.work: Work | Future[Any] | None = None


class GradBucket:
    """What a communication hook is given: gradients that travel together, and their parameters."""

    def __init__(self, bucket: Bucket, index: int, last: bool, params: Sequence[Tensor]) -> None:
        self._bucket, self._index, self._last = bucket, index, last
        self._buffer = bucket.buffer
        self._params = [params[i] for i in bucket.indices]

    def index(self) -> int:
        """Its number in the step; the gradients of the last layers are in the first."""
        return self._index

    def buffer(self) -> Tensor:
        """The gradients, side by side in one dimension."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Let another tensor travel, with as many elements; it may be of another dtype."""
        if buffer.shape != self._buffer.shape:
            raise ValueError(
                f"set_buffer: expected {list(self._buffer.shape)}, got {list(buffer.shape)}"
            )
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """Each parameter's, as a part of the buffer."""
        return [self._bucket.views[i] for i in self._bucket.indices]

    def parameters(self) -> list[Tensor]:
        """The parameters, in the order of their gradients."""
        return list(self._params)

    def is_last(self) -> bool:
        """Whether it is the last of the step."""
        return self._last


def buckets_of(order: Iterable[int], params: Sequence[Tensor], most: int) -> list[list[int]]:
    """Parameters in their order, cut in groups of one dtype and at most so many bytes.

    The first group is smaller. A parameter larger than a group has one of its own.
    """
    done: list[list[int]] = []
    open_: dict[Any, tuple[list[int], int]] = {}
    limit = min(_FIRST_BYTES, most)
    for i in order:
        param = params[i]
        indices, size = open_.pop(param.dtype, ([], 0))
        indices.append(i)
        size += param.numel() * param.element_size()
        if size >= limit:
            done.append(indices)
            limit = most
        else:
            open_[param.dtype] = indices, size
    return done + [indices for indices, _ in open_.values()]


class Reducer:
    """The parameters of one module and their buckets.

    Args:
        params, names: what is trained.
        group: whose gradients are averaged.
        most: bytes of a bucket.
        as_view: gradients lie in the buckets, instead of being copied there and back.
        find_unused: a forward pass may leave parameters out.
        static: which parameters take part, and how often, is the same in every step.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        names: Sequence[str],
        group: ProcessGroup,
        most: int,
        as_view: bool,
        find_unused: bool,
        static: bool,
    ) -> None:
        self.params, self.names, self.group, self.most = list(params), list(names), group, most
        self.as_view, self.find_unused, self.static = as_view, find_unused and not static, static
        self.buckets: list[Bucket] = []
        self._make(reversed(range(len(self.params))))
        self._armed = False  # a forward pass has announced a backward pass that is not ended
        self._order: list[int] = []  # as gradients became ready in this step
        self._ready: set[int] = set()
        self._used: set[int] = set()  # since gradients were averaged, also inside of `no_sync`
        self._unused: set[int] = set()
        self._sent = 0
        self._rebuilt = self.find_unused
        self._counts: list[int] | None = None  # static: how often each is ready in a step
        self._left: dict[int, int] = {}
        self._queued = False
        self.hook: Callable[[GradBucket], Future[Any]] | None = None
        self.divisor: int | None = None  # of sums of gradients; None: the number of processes
        self._nowhere: set[int] = set()  # static: unused on all ranks
        self._first: dict[int, int] = {}
        for i, param in enumerate(self.params):
            hook: Callable[[Tensor], None] = lambda p, i=i: self._accumulated(i)  # type: ignore[misc]  # noqa: E731
            param.register_post_accumulate_grad_hook(hook)

    def _make(self, order: Iterable[int]) -> None:
        self.buckets = [Bucket(b, self.params) for b in buckets_of(order, self.params, self.most)]
        self._home = {i: b for b in self.buckets for i in b.indices}

    # A step ------------------------------------------------------------------------------------

    def unfinished(self) -> list[str]:
        """Names of the parameters without a gradient since the last forward pass."""
        if not self._armed or not self._order:
            return []
        return [self.names[i] for i in range(len(self.params)) if i not in self._ready]

    def arm(self, outputs: Sequence[Tensor]) -> None:
        """Expect a backward pass from these."""
        for bucket in self.buckets:  # of a pass that was broken off
            if bucket.work is not None:
                bucket.work.wait()
        if not self._rebuilt and len(self._first) == len(self.params):
            self._rebuild()
        if self.find_unused:
            self._unused = self._unreached(outputs)
        self._armed = True
        self._reset()
        if self.static and self._counts is None:
            # An output's hook runs in the outermost backward pass, where a parameter's may run in
            # one inside of it.
            for out in outputs:
                out.register_hook(lambda _: self._queue_learning())

    def _reset(self) -> None:
        """Begin a step; also a second backward pass after one forward pass is one."""
        self._order, self._ready, self._sent, self._queued = [], set(), 0, False
        for bucket in self.buckets:
            bucket.pending, bucket.work = len(bucket.indices), None
        self._left = dict(enumerate(self._counts or ()))

    def disarm(self) -> None:
        """Expect no backward pass whose gradients are to be averaged."""
        self._armed = False

    def _rebuild(self) -> None:
        """Cut buckets once more, in the order in which rank 0's gradients became ready."""
        order = tensor([i for i, _ in sorted(self._first.items(), key=lambda e: e[1])], dtype=int64)
        broadcast(order, group=self.group, group_src=0)
        self._rebuilt = True
        before = self._home
        self._make(order.tolist())
        if self.as_view:
            with no_grad():
                for i, param in enumerate(self.params):
                    if param.grad is not None and _same(param.grad, before[i].views[i]):
                        self._home[i].views[i].copy_(param.grad)
                        param.grad = self._home[i].views[i]

    def _queue_learning(self) -> None:
        """Send nothing before the first static pass ends: it tells how often each is ready."""
        if not self._queued and self._armed and self._counts is None:
            self._queued = True
            Variable._execution_engine.queue_callback(self._learn)

    def _learn(self) -> None:
        """The end of the first static pass: what took part is what always will."""
        counts = [0] * len(self.params)
        for i in self._order:
            counts[i] += 1
        self._counts = counts
        self._unused = {i for i, count in enumerate(counts) if count == 0}
        for i in dict.fromkeys(self._order):
            self._mark(i)
        self._send()

    def _unreached(self, outputs: Sequence[Tensor]) -> set[int]:
        """Parameters that no output depends on."""
        number = {id(p): i for i, p in enumerate(self.params)}
        reached: set[int] = set()
        seen: set[Any] = set()
        stack = [out.grad_fn for out in outputs]
        reached.update(number[id(out)] for out in outputs if id(out) in number)
        while stack:
            node = stack.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            param = getattr(node, "variable", None)
            if param is not None and id(param) in number:
                reached.add(number[id(param)])
            stack.extend(following for following, _ in node.next_functions)
        return set(range(len(self.params))) - reached

    # In backward -------------------------------------------------------------------------------

    def _accumulated(self, i: int) -> None:
        """A parameter's gradient is there."""
        self._used.add(i)
        if not self._armed:
            return
        self._order.append(i)
        if self.static:
            if self._counts is None:
                self._queue_learning()
                return
            self._left[i] -= 1
            if self._left[i] < 0:
                raise RuntimeError(
                    f"Your training graph has changed in this iteration: parameter {self.names[i]} "
                    "has taken part more often than in the first. This is not compatible with "
                    "static_graph set to True."
                )
            if self._left[i] > 0:
                return
        elif i in self._unused:
            raise RuntimeError(
                f"Expected to mark a variable ready only once: parameter {self.names[i]} was found "
                "to be unused by the outputs of forward, yet has a gradient. Return everything "
                "from forward that the loss is computed from."
            )
        elif i in self._ready:
            raise RuntimeError(
                f"Expected to mark a variable ready only once: parameter {self.names[i]} has two "
                "gradients in one step. A parameter shared by several reentrant checkpoints does "
                "that, or a second backward pass after one forward pass. Where every step does the "
                "same, use static_graph=True; otherwise checkpoint with use_reentrant=False, or "
                "put all but the last backward pass in no_sync()."
            )
        self._mark(i)
        self._send()

    def _mark(self, i: int) -> None:
        """Put the gradient in its bucket."""
        param, bucket = self.params[i], self._home[i]
        view, grad = bucket.views[i], param.grad
        with no_grad():
            if grad is None:
                view.zero_()
            elif not _same(grad, view):
                view.copy_(grad)
                if self.as_view:
                    param.grad = view
        self._ready.add(i)
        bucket.pending -= 1

    def _send(self) -> None:
        """Send what is complete, in order; after the last, put the averages in place."""
        for i in sorted(self._unused - self._ready):
            self._mark(i)
        while self._sent < len(self.buckets) and self.buckets[self._sent].pending == 0:
            bucket = self.buckets[self._sent]
            self._sent += 1
            bucket.work = self._start(bucket, self._sent - 1)
            if self._sent == len(self.buckets):
                self._finish()

    def _start(self, bucket: Bucket, index: int) -> Work | Future[Any] | None:
        last = index + 1 == len(self.buckets)
        if self.hook is not None:
            return self.hook(GradBucket(bucket, index, last, self.params))
        # The last one has nothing left to overlap with.
        how = ReduceOp.AVG if self.divisor is None else ReduceOp.SUM
        return all_reduce(bucket.buffer, how, self.group, async_op=not last)

    def shadow(self) -> None:
        """Take part in a step of the others with zeros; no gradient here changes."""
        if not self._rebuilt and len(self._first) == len(self.params):
            self._rebuild()
        self._reset()
        self._used.clear()
        works = []
        for index, bucket in enumerate(self.buckets):
            works.append(self._start(Bucket(bucket.indices, self.params), index))
        self._used_nowhere()
        for work in works:
            if work is not None:
                work.wait()
        if not self._first:  # as in `_finish`: all cut buckets once more before the next step
            self._first = {i: n for n, i in enumerate(reversed(range(len(self.params))))}

    def _finish(self) -> None:
        nowhere = self._used_nowhere()
        for bucket in self.buckets:
            value: Any = None if bucket.work is None else bucket.work.wait()
            bucket.work = None
            with no_grad():
                if self.hook is not None:
                    bucket.buffer.copy_(value[0] if isinstance(value, (list, tuple)) else value)
                elif self.divisor is not None:
                    bucket.buffer.div_(self.divisor)
                for i in bucket.indices:
                    self._put(i, bucket.views[i], i in nowhere)
        if not self._first:
            every = dict.fromkeys([*self._order, *sorted(self._unused)])
            self._first = {i: n for n, i in enumerate(every)}
        self._used.clear()
        self._reset()

    def _put(self, i: int, view: Tensor, nowhere: bool) -> None:
        param = self.params[i]
        if nowhere:
            return
        if self.as_view:
            if param.grad is None or not _same(param.grad, view):
                param.grad = view
        elif param.grad is None:
            param.grad = view.clone()
        else:
            param.grad.copy_(view)

    def _used_nowhere(self) -> set[int]:
        """Parameters that no rank has used: their gradients stay as they are."""
        if self.static and self._rebuilt:
            return self._nowhere
        if not self.find_unused and not self.static:
            return set()
        used = tensor([int(i in self._used) for i in range(len(self.params))])
        all_reduce(used, ReduceOp.MAX, self.group)
        self._nowhere = {i for i, n in enumerate(used.tolist()) if n == 0}
        return self._nowhere


def _same(x: Tensor, y: Tensor) -> bool:
    """Is it the same memory, seen the same way?"""
    return x is y or (x.data_ptr() == y.data_ptr() and x.stride() == y.stride())
