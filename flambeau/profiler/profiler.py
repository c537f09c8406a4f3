"""Profiles by schedule: which steps of a loop are recorded, and what is done with them.

Owns `profile`, schedules and handlers of traces. One cycle's recording is an
`autograd.profiler.profile`.
"""

from __future__ import annotations

import enum
import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, Self

from flambeau.autograd import profiler as prof
from flambeau.autograd.profiler import kineto_available, record_function
from flambeau.autograd.profiler_util import EventList

__all__ = [
    "ExecutionTraceObserver", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile",
    "record_function", "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip


class ProfilerActivity(enum.Enum):
    """What a profiler observes."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What a profiler does at a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """What can be observed here: the CPU.

    >>> torch.profiler.supported_activities()
    {<ProfilerActivity.CPU: 0>}
    """
    return {ProfilerActivity.CPU}


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Make a function from the number of a step to what is done at it.

    Args:
        wait, warmup, active: lengths of a cycle's parts, in steps.
        repeat: number of cycles; 0 for no end.
        skip_first: steps before the first cycle.
        skip_first_wait: other than 0: the first cycle has no waiting part.

    >>> at = torch.profiler.schedule(wait=1, warmup=1, active=1)
    >>> [at(step).name for step in range(4)]
    ['NONE', 'WARMUP', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, active, repeat, skip_first) < 0 or active == 0:
        raise AssertionError("schedule: expected numbers from 0, and active from 1")
    if warmup == 0:
        warnings.warn(
            "Profiler won't be using warmup, this can skew profiler results", stacklevel=2
        )
    cycle = wait + warmup + active

    def at(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"schedule: expected a step from 0, got {step}")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait != 0:
            step += wait
        if 0 < repeat <= step // cycle:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        last = place == cycle - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return at


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[Any], None]:
    """Make an `on_trace_ready` that writes each cycle's trace into a folder.

    Args:
        dir_name: the folder; it is made.
        worker_name: the first part of the files' names; by default host and process.
        use_gzip: compress them.

    Returns:
        A function of the profiler. Files are called `WORKER.NANOSECONDS.pt.trace.json`, as
        TensorBoard's plug-in and others look for them.
    """

    def handler(profiler: Any) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {dir_name}") from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        profiler.export_chrome_trace(os.path.join(dir_name, name))

    return handler


def _default_schedule_fn(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


class ExecutionTraceObserver:
    """Recorder of graphs of executions: refused."""

    def __init__(self) -> None:
        _refused("ExecutionTraceObserver", "export_chrome_trace writes what ran, with shapes")


def _refused(name: str, instead: str) -> NoReturn:
    raise NotImplementedError(f"profiler: {name} is not supported; {instead}")


class _KinetoProfile:
    """A profile that is started and stopped by hand; the arguments are those of `profile`."""

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        if activities is None:
            activities = supported_activities()
        self.activities = set(activities)
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        for activity in self.activities:
            if not isinstance(activity, ProfilerActivity):
                raise TypeError(
                    f"profile: expected activities of ProfilerActivity, got {activity!r}"
                )
        for activity in sorted(self.activities - supported_activities(), key=lambda a: a.value):
            warnings.warn(
                f"{activity.name} is not available, disabling {activity.name} profiling",
                stacklevel=3,
            )
        if ProfilerActivity.CPU not in self.activities:
            _refused(
                "a profile without ProfilerActivity.CPU",
                "everything runs on the CPU; add it to activities",
            )
        if execution_trace_observer is not None:
            _refused("execution_trace_observer", "export_chrome_trace writes what ran")
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.acc_events = acc_events
        self._arguments = {
            "record_shapes": record_shapes, "profile_memory": profile_memory,
            "with_stack": with_stack, "with_flops": with_flops, "with_modules": with_modules,
            "experimental_config": experimental_config,
            "custom_trace_id_callback": custom_trace_id_callback,
            "post_processing_timeout_s": post_processing_timeout_s,
        }  # fmt: skip
        prof.profile(**self._arguments)  # says what is refused at once
        self.profiler: prof.profile | None = None
        self._finished: prof.profile | None = None  # the last that was not a warm-up
        self.preset_metadata: dict[str, str] = {}
        self._kept: list[Any] = []  # events of the cycles before, where asked for

    def start(self) -> None:
        """Begin to record."""
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        """Record no more."""
        self.stop_trace()

    def prepare_trace(self) -> None:
        """Record what will not be looked at: the first calls take longer than later ones."""
        if self.profiler is None or not self.profiler.entered:
            self.profiler = prof.profile(**self._arguments)
            self.profiler.__enter__()

    def start_trace(self) -> None:
        """Begin with nothing recorded."""
        if self.profiler is not None and self.profiler.entered:
            self.profiler.__exit__(None, None, None)
        metadata = {} if self.profiler is None else self.profiler._metadata
        self.profiler = prof.profile(**self._arguments)
        self.profiler._metadata.update(metadata)
        self.profiler._metadata.update(self.preset_metadata)
        self.profiler.__enter__()

    def stop_trace(self) -> None:
        """End what is recorded."""
        if self.profiler is None or not self.profiler.entered:
            raise RuntimeError("stop: expected a profile that was started, this one was not")
        self.profiler.__exit__(None, None, None)
        self._finished = self.profiler
        if self.acc_events:
            self._kept += self.profiler.events()

    def _recorded(self) -> prof.profile:
        if self._finished is None:
            raise RuntimeError(
                "profile: expected one that recorded something and was stopped; nothing is recorded"
            )
        return self._finished

    def _running(self) -> prof.profile:
        if self.profiler is None:
            raise RuntimeError("profile: expected a profile that was started")
        return self.profiler

    def events(self) -> EventList:
        """All events of the last cycle, or of all cycles (`acc_events`), as they began."""
        found = self._recorded().events()
        return found._like(self._kept) if self.acc_events else found

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Sum up events of one name; see `EventList.key_averages`."""
        return self.events().key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def export_chrome_trace(self, path: str) -> None:
        """Write the trace for chrome://tracing or Perfetto; compressed if `path` ends in .gz."""
        self._recorded().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks for a flame graph; see `EventList.export_stacks`."""
        self._recorded().export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Refused: what memory is for (gradients, activations) is not recorded."""
        _refused("export_memory_timeline", "the trace of profile_memory=True shows the total")

    def toggle_collection_dynamic(
        self, enable: bool, activities: Iterable[ProfilerActivity] = ()
    ) -> None:
        """Leave out what begins from now on, or record again."""
        self._running().toggle_collection_dynamic(enable)

    def add_metadata(self, key: str, value: str) -> None:
        """Write text into the trace."""
        self.add_metadata_json(key, json.dumps(value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """Write a value, given as JSON, into the trace."""
        try:
            json.loads(value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"add_metadata_json: expected JSON, got {value!r}") from error
        self._running()._metadata[key] = value

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Write a value, given as JSON, into the traces of all cycles that begin from now on."""
        json.loads(value)
        self.preset_metadata[key] = value


class profile(_KinetoProfile):
    """Record steps of a program: by a schedule, or all from beginning to end.

    Args:
        activities: what to observe; the CPU, others are left out with a warning.
        schedule: from the number of a step to a `ProfilerAction`; see `schedule`. By default all is
            recorded.
        on_trace_ready: called with the profiler when a cycle is over.
        record_shapes: record the shapes, strides, dtypes and numbers of arguments.
        profile_memory: record what memory is taken and given back.
        with_stack: record the lines of the program that lead to each operation.
        with_flops: count floating-point operations.
        acc_events: `events` are those of all cycles, not of the last.
        with_modules, experimental_config, execution_trace_observer, custom_trace_id_callback:
            refused by name.
        use_cuda: deprecated.

    >>> with torch.profiler.profile() as p:
    ...     for n in range(2):
    ...         y = torch.ones(n).exp()
    ...         p.step()
    >>> [(e.key, e.count) for e in p.key_averages() if "exp" in e.key]
    [('aten::exp', 2)]
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        if use_cuda is not None:
            warnings.warn(
                "`use_cuda` is deprecated, use `activities` argument instead",
                FutureWarning,
                stacklevel=2,
            )
        super().__init__(
            activities=activities,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer,
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
        )
        self.schedule = schedule or _default_schedule_fn
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.step_rec_fn: record_function | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Begin at the first step."""
        prof._watch(1)
        self._become(ProfilerAction.NONE, self.current_action)
        self._open_step()

    def stop(self) -> None:
        """End; a cycle that is not over is ended, and its trace is ready."""
        prof._watch(-1)
        self._close_step()
        before, self.current_action = self.current_action, ProfilerAction.NONE
        self._become(before, ProfilerAction.NONE)

    def step(self) -> None:
        """Say that the next step begins."""
        self._close_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._become(before, self.current_action)
        self._open_step()

    def set_custom_trace_id_callback(self, callback: Any) -> None:
        """Refused."""
        _refused("set_custom_trace_id_callback", "add_metadata writes what you like")

    def _open_step(self) -> None:
        if self.record_steps:
            self.step_rec_fn = record_function(f"ProfilerStep#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _close_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _become(self, before: ProfilerAction, now: ProfilerAction) -> None:
        """Open, begin, close as the actions of two steps ask; a saved cycle is over."""
        recording = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        over = before is ProfilerAction.RECORD_AND_SAVE or (
            before is ProfilerAction.RECORD and now not in recording
        )
        if before is ProfilerAction.RECORD and now is ProfilerAction.WARMUP:
            warnings.warn("Incorrect schedule: RECORD followed by WARMUP", stacklevel=3)
        if over:
            self.stop_trace()
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        elif before is ProfilerAction.WARMUP and now is ProfilerAction.NONE:
            self._running().__exit__(None, None, None)
        if now is ProfilerAction.WARMUP and (over or before is not ProfilerAction.WARMUP):
            self.prepare_trace()
        elif now in recording and (over or before not in recording):
            self.start_trace()
