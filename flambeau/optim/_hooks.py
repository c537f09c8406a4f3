"""Hooks around ``Optimizer.step``: the process-wide registries and the wrapper that runs hooks.

Invariant: for one call of ``step`` on an object, hooks run exactly once, however many classes of
its hierarchy define ``step`` and call each other. Must not know update rules or state dicts.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from itertools import chain
from typing import Any

from flambeau import _C
from flambeau.autograd import profiler
from flambeau.utils.hooks import RemovableHandle

_global_optimizer_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_optimizer_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()


def register(
    hooks: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any], prepend: bool = False
) -> RemovableHandle:
    """Put ``hook`` at the end (or the front) of ``hooks``; the handle takes it out again."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Run ``hook(optimizer, args, kwargs)`` before every step of every optimiser."""
    return register(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Run ``hook(optimizer, args, kwargs)`` after every step of every optimiser."""
    return register(_global_optimizer_post_hooks, hook)


def with_step_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a class's ``step`` so that its instances' hooks run around it."""

    @functools.wraps(step)
    def hooked_step(*args: Any, **kwargs: Any) -> Any:
        self = args[0]
        # A subclass's step that calls this one has run the hooks itself; an object that never ran
        # Optimizer.__init__ (a delegating wrapper) has none.
        self._opt_called = True  # what the schedules' warning about call order reads
        if type(self).step is not hooked_step or "_optimizer_step_pre_hooks" not in self.__dict__:
            return step(*args, **kwargs)
        for hook in chain(
            _global_optimizer_pre_hooks.values(), self._optimizer_step_pre_hooks.values()
        ):
            changed = hook(self, args, kwargs)
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(
                    f"{type(self).__name__}.step: expected a step pre-hook to return None or a "
                    f"tuple (new_args, new_kwargs), got {changed!r}"
                )
            args, kwargs = changed
        if _C._profiler_enabled():
            with profiler.record_function(f"Optimizer.step#{type(self).__name__}.step"):
                result = step(*args, **kwargs)
        else:
            result = step(*args, **kwargs)
        for hook in chain(
            self._optimizer_step_post_hooks.values(), _global_optimizer_post_hooks.values()
        ):
            hook(self, args, kwargs)
        return result

    hooked_step.hooked = True  # type: ignore[attr-defined]
    return hooked_step
