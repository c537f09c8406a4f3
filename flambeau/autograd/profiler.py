"""Profiles of what runs, and ranges with names in them.

Owns opening and closing of a profile and the context managers. What runs is recorded below Python
(csrc/profiler); what was recorded is read once, when the profile closes, and becomes events when
somebody asks for them (`profiler_util`). Schedules of steps are flambeau.profiler's.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any, NoReturn, Self

from flambeau import _C
from flambeau.autograd.profiler_util import (
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
)

__all__ = [
    "EventList", "FunctionEvent", "FunctionEventAvg", "Interval", "emit_itt", "emit_nvtx",
    "kineto_available", "profile", "record_function",
]  # fmt: skip

#: Is a profile open? What is written in Python asks before it names a range.
_is_profiler_enabled = False
#: Profiles that are open, or will be at a later step.
_watchers = 0
_open: profile | None = None

# What a profile records, as csrc/profiler/events.h numbers it.
_INPUTS, _MEMORY, _STACKS = 2, 4, 8


def kineto_available() -> bool:
    """Whether `torch.profiler.profile` works, which programs ask so; here without Kineto: yes."""
    return True


def _tell(now: profile | None) -> None:
    global _is_profiler_enabled, _open
    _open = now
    _is_profiler_enabled = now is not None
    _watch(-1 if now is None else 1)


def _watch(change: int) -> None:
    """Count profiles, for what looks once whether to name ranges, as a pass over data does."""
    global _watchers
    _watchers += change


class record_function(contextlib.ContextDecorator):
    """Name what runs inside, in profiles. Context manager and decorator.

    While no profile is open it costs next to nothing. A range may be closed by another thread than
    the one that opened it.

    Args:
        name: what to show.
        args: more text to show with it.

    >>> with torch.autograd.profiler.profile() as prof:
    ...     with torch.autograd.profiler.record_function("square"):
    ...         y = torch.tensor(3.0) ** 2
    >>> [event.name for event in prof.events()]
    ['square', 'aten::pow']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"record_function: expected a name, got {type(name).__name__}")
        if args is not None and not isinstance(args, str):
            raise TypeError(f"record_function: expected args to be text, got {type(args).__name__}")
        self.name, self.args = name, args
        self.run_callbacks_on_exit = True
        self._place: Any = None

    def _recreate_cm(self) -> record_function:
        # Each call of a decorated function has a range of its own, also within itself.
        return record_function(self.name, self.args)

    def __enter__(self) -> Self:
        self._place = _C._record_enter(self.name, self.args)
        return self

    def __exit__(self, *error: Any) -> None:
        place, self._place = self._place, None
        if place is not None and self.run_callbacks_on_exit:
            _C._record_exit(place)

    def _call_end_callbacks_on_future(self, fut: Any) -> Any:
        """End the range when a future is done, not when the block is left."""
        if not self.run_callbacks_on_exit:
            raise RuntimeError("_call_end_callbacks_on_future can only be called once.")
        self.run_callbacks_on_exit = False
        place = self._place

        def ended(done: Any) -> Any:
            if place is not None:
                _C._record_exit(place)
            return done.value()

        return fut.then(ended)


class profile:
    """Record what runs inside: which operation, when, on which thread, inside of what.

    All threads of the process are recorded, and backward with them. One profile is open at a time.

    Args:
        enabled: False makes it a block like any other.
        use_cuda: deprecated; there is no device to record.
        use_device: a device to record besides; None.
        record_shapes: record the shapes, strides, dtypes and numbers of arguments.
        with_flops: count the floating-point operations of products of matrices, convolutions, sums
            and products by elements, from the shapes.
        profile_memory: record what memory is taken and given back.
        with_stack: record the line of the program that each operation is called from, and the
            lines that led there.
        with_modules: PyTorch's names of modules of scripts; refused, use `with_stack`.
        use_kineto, use_cpu: of one value here.
        experimental_config, custom_trace_id_callback: refused by name.
        acc_events: for profiles by schedule, which keep the events of all cycles.

    Raises:
        NotImplementedError: for what would record nothing here.
        RuntimeError: when a profile is open already.

    >>> with torch.autograd.profiler.profile(record_shapes=True) as prof:
    ...     y = torch.ones(2, 3) @ torch.ones(3, 4)
    >>> [(e.key, e.input_shapes) for e in prof.events() if e.name == "aten::mm"]
    [('aten::mm', [[2, 3], [3, 4]])]
    >>> prof.key_averages()[0].count
    2
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        if use_cuda or use_device == "cuda":
            warnings.warn("CUDA is not available, disabling CUDA profiling", stacklevel=2)
        elif use_device is not None:
            warnings.warn(
                f"{use_device} is not a device that can be profiled here; the CPU is", stacklevel=2
            )
        for name, given, instead in (
            ("with_modules", with_modules, "with_stack=True shows the lines of each call"),
            ("experimental_config", experimental_config is not None, "leave it out"),
            ("custom_trace_id_callback", custom_trace_id_callback is not None,
             "add_metadata writes what you like into the trace"),
        ):  # fmt: skip
            if given:
                raise NotImplementedError(f"profile: {name} is not supported; {instead}")
        if not use_cpu:
            raise NotImplementedError("profile: use_cpu=False would record nothing: there is no "
                                      "other device")  # fmt: skip
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError(f"profile: expected a time from 0, got {post_processing_timeout_s}")
        self.enabled = enabled
        self.record_shapes = record_shapes or with_flops
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.acc_events = acc_events
        self.entered = False
        self._metadata: dict[str, str] = {}
        self._raw: tuple[Any, ...] | None = None
        self._record: Any = None
        self._events: EventList | None = None

    def _asked(self) -> dict[str, bool]:
        return {
            "record_shapes": self.record_shapes, "profile_memory": self.profile_memory,
            "with_stack": self.with_stack, "with_flops": self.with_flops,
        }  # fmt: skip

    def __enter__(self) -> Self:
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        _C._profiler_start(
            _INPUTS * self.record_shapes + _MEMORY * self.profile_memory + _STACKS * self.with_stack
        )
        self.entered = True
        _tell(self)
        return self

    def __exit__(self, *error: Any) -> None:
        if not self.enabled or not self.entered:
            return
        self.entered = False
        _tell(None)
        self._raw = _C._profiler_stop()
        self._record = self._events = None

    # -- what was recorded ------------------------------------------------------------------------

    def _read(self) -> Any:
        """The record, made of what the extension read when it is first needed."""
        raw = self._raw
        if raw is None:
            raise RuntimeError(
                "profile: expected a profile that was opened and closed; there is nothing recorded"
            )
        if self._record is None:
            from flambeau.autograd._profiler_record import read

            self._record = read(raw, self._asked(), self._metadata)
        return self._record

    @property
    def function_events(self) -> EventList:
        """All events."""
        if self._events is None:
            from flambeau.autograd._profiler_events import events_of

            self._events = events_of(self._read())
        return self._events

    def events(self) -> EventList:
        """All events, in the order of their beginnings."""
        return self.function_events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Sum up events of one name; see `EventList.key_averages`."""
        return self.function_events.key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Time in events, in microseconds."""
        return self.function_events.self_cpu_time_total

    def table(self, *args: Any, **kwargs: Any) -> str:
        """All events as a table; see `EventList.table`."""
        return self.function_events.table(*args, **kwargs)

    def export_chrome_trace(self, path: str) -> None:
        """Write the trace for chrome://tracing or Perfetto; compressed if `path` ends in .gz."""
        from flambeau.autograd._profiler_trace import write

        write(self._read(), path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks for a flame graph; see `EventList.export_stacks`."""
        if not self.with_stack:
            raise RuntimeError("export_stacks: expected a profile with with_stack=True")
        self.function_events.export_stacks(path, metric)

    def toggle_collection_dynamic(self, enabled: bool, activities: Any = None) -> None:
        """Leave out what begins from now on, or record again."""
        _C._profiler_pause(not enabled)

    def __str__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self.entered else str(self.function_events)

    def __repr__(self) -> str:
        if self.entered or self._raw is None:
            return "<unfinished torch.autograd.profile>"
        return repr(self.function_events)


def _disable_profiler() -> None:
    """Close the profile that is open, whoever opened it."""
    if _open is None:
        raise RuntimeError("_disable_profiler: expected an open profile, found none")
    _open.__exit__(None, None, None)


def load_nvprof(path: str) -> NoReturn:
    """Refused."""
    _refused("load_nvprof", "profiles of CUDA devices are not read here")


def _refused(name: str, instead: str) -> NoReturn:
    raise NotImplementedError(f"{name} is not supported: {instead}")


class emit_nvtx:
    """Ranges for NVIDIA's tools: refused, for nothing runs on their devices."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        _refused("emit_nvtx", "use autograd.profiler.profile and export_chrome_trace")


class emit_itt:
    """Ranges for Intel's VTune: refused."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        _refused("emit_itt", "use autograd.profiler.profile and export_chrome_trace")
