"""Weight averaging over training: stochastic weight averaging and exponential moving averages.

Owns ``AveragedModel``, the averaging functions, ``update_bn`` and the schedule ``SWALR``.
Invariant: after n updates an averaged model holds the average of the n parameter sets it has
seen. Must not know any architecture; batch norm is recognised by its running statistics.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, Literal

import flambeau as fb
from flambeau.nn import Module

from ._schedulers.base import LRScheduler, copy_value, per_group, to_number
from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

AvgFn = Callable[[Any, Any, Any], Any]
MultiAvgFn = Callable[[Any, Any, Any], None]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAvgFn:
    """In-place exponential moving average over lists: ``e = decay e + (1 - decay) p``."""
    _check_decay(decay)

    @fb.no_grad()
    def ema_update(ema: list[Any], current: list[Any], _: Any) -> None:
        if _continuous(ema):
            fb._foreach_lerp_(ema, current, 1 - decay)
            return
        for e, p in zip(ema, current, strict=False):
            e.copy_(e * decay + p * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> MultiAvgFn:
    """In-place equal average over lists; the third argument counts the sets averaged before."""

    @fb.no_grad()
    def swa_update(averaged: list[Any], current: list[Any], num_averaged: Any) -> None:
        count = float(to_number(num_averaged))
        if _continuous(averaged):
            fb._foreach_lerp_(averaged, current, 1 / (count + 1))
            return
        for a, p in zip(averaged, current, strict=False):
            a.copy_(a + (p - a) / (count + 1))

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> AvgFn:
    """Exponential moving average of one parameter."""
    _check_decay(decay)

    @fb.no_grad()
    def ema_update(ema: Any, current: Any, num_averaged: Any) -> Any:
        return decay * ema + (1 - decay) * current

    return ema_update


def get_swa_avg_fn() -> AvgFn:
    """Equal average of one parameter."""

    @fb.no_grad()
    def swa_update(averaged: Any, current: Any, num_averaged: Any) -> Any:
        return averaged + (current - averaged) / (num_averaged + 1)

    return swa_update


def _continuous(tensors: list[Any]) -> bool:
    return tensors[0].is_floating_point() or tensors[0].is_complex()


class AveragedModel(Module):
    """A copy of ``model`` whose parameters are averages of those it is updated with.

    Args:
        model: the model that is trained.
        device: where the averages live; None leaves them where the model is.
        avg_fn: ``(averaged, current, number of updates so far) -> averaged`` for one parameter.
        multi_avg_fn: the same in place over lists. Neither means an equal average.
        use_buffers: average buffers too; otherwise they are copied at each update.

    Source: Izmailov et al., "Averaging weights leads to wider optima", 2018 (arXiv 1803.05407).
    """

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: AvgFn | None = None,
        multi_avg_fn: MultiAvgFn | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", fb.tensor(0, dtype=fb.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The averaged model's output."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the present parameters of ``model`` into the average."""
        averaged, current = [], []
        for a, p in zip(self._averaged_of(self.module), self._averaged_of(model), strict=False):
            source = p.detach().to(a.device)
            averaged.append(a.detach())
            current.append(source)
            if self.n_averaged == 0:
                averaged[-1].copy_(source)
        if self.n_averaged > 0:
            self._average(averaged, current)
        if not self.use_buffers:
            for mine, other in zip(self.module.buffers(), model.buffers(), strict=False):
                mine.detach().copy_(other.detach().to(mine.device))
        self.n_averaged += 1

    def _averaged_of(self, model: Module) -> Iterable[Any]:
        if self.use_buffers:
            return itertools.chain(model.parameters(), model.buffers())
        return model.parameters()

    def _average(self, averaged: list[Any], current: list[Any]) -> None:
        count = self.n_averaged
        if self.avg_fn is not None:
            for a, p in zip(averaged, current, strict=False):
                a.copy_(self.avg_fn(a, p, count.to(a.device)))
            return
        update = self.multi_avg_fn or get_swa_multi_avg_fn()
        kinds: dict[Any, tuple[list[Any], list[Any]]] = {}
        for a, p in zip(averaged, current, strict=False):
            mine, other = kinds.setdefault((a.device, a.dtype), ([], []))
            mine.append(a)
            other.append(p)
        for (device, _), (mine, other) in kinds.items():
            update(mine, other, count.to(device))


@fb.no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the running statistics of batch norms in one pass over the data.

    Args:
        loader: gives batches; of a list or tuple, the first element is the input.
        model: in training mode during the pass, afterwards as before.
        device: where inputs are moved first.
    """
    norms = {m: m.momentum for m in model.modules() if _is_batch_norm(m)}
    if not norms:
        return
    for m in norms:
        m.reset_running_stats()
        m.momentum = None  # an equal average over all batches
    was_training = model.training
    model.train()
    try:
        for batch in loader:
            inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(inputs if device is None else inputs.to(device))
    finally:
        for m, momentum in norms.items():
            m.momentum = momentum
        model.train(was_training)


def _is_batch_norm(module: Module) -> bool:
    return any(base.__name__ == "_BatchNorm" for base in type(module).__mro__)


class SWALR(LRScheduler):
    """Go from the present rate to ``swa_lr`` in ``anneal_epochs`` steps and stay there.

    Args:
        optimizer: the optimiser.
        swa_lr: the final rate, or one per group.
        anneal_epochs: steps of the transition; zero jumps.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        last_epoch: steps already taken.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:
        for lr, group in zip(
            per_group("swa_lr", swa_lr, optimizer), optimizer.param_groups, strict=False
        ):
            group["swa_lr"] = copy_value(lr)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _weight(self, progress: float) -> float:
        if self._anneal_strategy == "cos":
            return (1 - math.cos(math.pi * progress)) / 2
        return progress

    def get_lr(self) -> list[Any]:
        """Mix start and end; the start is solved for, as others may have moved the rate."""
        self._warn_outside_step()
        step = self._step_count - 1
        span = max(1, self.anneal_epochs)
        before = self._weight(max(0.0, min(1.0, (step - 1) / span)))
        now = self._weight(max(0.0, min(1.0, step / span)))
        if self.anneal_epochs == 0:
            now = 1.0
        rates = []
        for group in self.optimizer.param_groups:
            end, lr = group["swa_lr"], group["lr"]
            start = end if before == 1 else (lr - before * end) / (1 - before)
            rates.append(end * now + start * (1 - now))
        return rates
