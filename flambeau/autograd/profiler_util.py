"""What a profile measured: events, lists of them, and averages of those that are alike.

Owns the fields that programs read and the sums over children. Tables are `_profiler_table`'s, files
for viewers `_profiler_trace`'s. Times are in microseconds, memory in bytes.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

from flambeau.autograd._profiler_text import time_text

__all__ = ["DeviceType", "EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]


class DeviceType(enum.Enum):
    """Where an event ran."""

    CPU = 0
    CUDA = 1


class Interval:
    """From one moment to another, in microseconds since the profile began."""

    __slots__ = ("end", "start")

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """Its length."""
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Interval(start={self.start:.3f}, end={self.end:.3f})"


def _attr_formatter(name: str) -> property:
    return property(lambda self: time_text(getattr(self, name)))


class _Times:
    """What events and averages have in common: averages, texts, and the names of devices.

    Nothing ran on a device: its times and memory are zero. Programs read them under the names of
    several releases.
    """

    count: int
    cpu_time_total: float
    self_cpu_time_total: float

    device_time_total = self_device_time_total = device_time = 0.0
    cuda_time_total = self_cuda_time_total = cuda_time = 0.0
    device_memory_usage = self_device_memory_usage = cuda_memory_usage = 0
    self_cuda_memory_usage = 0
    is_remote = is_legacy = is_async = False
    device_type = DeviceType.CPU
    use_device: str | None = None
    node_id = -1

    @property
    def cpu_time(self) -> float:
        """The total over the number of calls."""
        return self.cpu_time_total / self.count if self.count else 0.0

    cpu_time_str = _attr_formatter("cpu_time")
    cpu_time_total_str = _attr_formatter("cpu_time_total")
    self_cpu_time_total_str = _attr_formatter("self_cpu_time_total")
    device_time_str = cuda_time_str = _attr_formatter("device_time")
    device_time_total_str = cuda_time_total_str = _attr_formatter("device_time_total")
    self_device_time_total_str = _attr_formatter("self_device_time_total")


class FunctionEvent(_Times):
    """One call: of an operation, of a backward node, or a range with a name.

    Attributes:
        name, key: what ran; operations are called `aten::NAME`.
        time_range: when, in microseconds since the profile began.
        thread: number of the thread, from 1 in the order of first events.
        cpu_parent, cpu_children: the event around it, and those right inside of it.
        input_shapes, input_strides, input_dtypes, concrete_inputs: of the arguments, by
            `record_shapes`; a list has a list, what is no tensor an empty one.
        stack: lines of the program, innermost first, by `with_stack`.
        cpu_memory_usage, self_cpu_memory_usage: bytes taken less bytes given back, by
            `profile_memory`; with and without the children.
        flops: of multiplications and convolutions, by `with_flops`.
        sequence_nr: number of the node that a call records, or that is applied; -1: none.
        fwd_thread: for a node, the thread of the call that recorded it; 0: unknown.
        scope: 0 for operations, 1 for nodes, 7 for ranges with names.
    """

    count = 1

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        *,
        overload_name: str = "",
        fwd_thread: int = 0,
        input_shapes: list[Any] | None = None,
        input_strides: list[Any] | None = None,
        input_dtypes: list[str] | None = None,
        concrete_inputs: list[Any] | None = None,
        stack: list[str] | None = None,
        scope: int = 0,
        self_cpu_memory_usage: int = 0,
        sequence_nr: int = -1,
        flops: int = 0,
        thread_id: int = 0,
        args: str | None = None,
    ) -> None:
        self.id = id
        self.name = self.trace_name = name
        self.overload_name = overload_name
        self.time_range = Interval(start_us, end_us)
        self.thread = thread
        self.fwd_thread = fwd_thread
        self.input_shapes = input_shapes or []
        self.input_strides = input_strides or []
        self.input_dtypes = input_dtypes or []
        self.concrete_inputs = concrete_inputs or []
        self.stack = stack or []
        self.scope = scope
        self.self_cpu_memory_usage = self_cpu_memory_usage
        self.sequence_nr = sequence_nr
        self.flops = flops
        self.args = args
        self.device_index = self.device_resource_id = thread_id
        self.is_user_annotation = scope == 7
        self.kernels: list[Any] = []
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_memory_usage = self_cpu_memory_usage
        self._inside = 0.0  # time of the children

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Make `child` one of the events right inside."""
        self.cpu_children.append(child)
        child.cpu_parent = self
        start = max(child.time_range.start, self.time_range.start)
        self._inside += max(0.0, min(child.time_range.end, self.time_range.end) - start)

    @property
    def key(self) -> str:
        """Its name."""
        return self.name

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """From its beginning to its end."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """Without the children."""
        return max(0.0, self.cpu_time_total - self._inside)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start:.3f} end_us={self.time_range.end:.3f} "
            f"cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"seq_nr={self.sequence_nr}>"
        )


class FunctionEventAvg(_Times):
    """The sum of events that are alike: of one name, and shapes or stacks where asked for."""

    def __init__(self) -> None:
        self.key: str = ""
        self.count = 0
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.flops = 0
        self.input_shapes: Any = ""
        self.overload_name = ""
        self.stack: list[str] = []
        self.scope = 0
        self.is_user_annotation = False
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []

    @property
    def name(self) -> str:
        """The key."""
        return self.key

    def add(self, other: Any) -> FunctionEventAvg:
        """Add an event, or another sum, of the same key."""
        if not self.key:
            self.key = other.key
            self.scope = other.scope
            self.is_user_annotation = other.is_user_annotation
            self.overload_name = other.overload_name
            self.stack = list(other.stack)
            self.cpu_parent = other.cpu_parent
            self.cpu_children = list(other.cpu_children)
        elif other.key != self.key:
            raise ValueError(f"add: expected an event of {self.key!r}, got one of {other.key!r}")
        for name in (
            "count", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage",
            "self_cpu_memory_usage", "flops",
        ):  # fmt: skip
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} count={self.count} "
            f"self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>"
        )


class EventList(list[Any]):
    """Events, or averages of them, as a list that can be grouped, shown and written."""

    def __init__(
        self,
        events: Iterable[Any] = (),
        *,
        profile_memory: bool = False,
        with_flops: bool = False,
        record: Any = None,
    ) -> None:
        super().__init__(events)
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._record = record  # the profile as it was read, for the trace

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of the times of all events without their children: of the program's time in
        events, each moment of a thread counted once."""
        total: float = sum(event.self_cpu_time_total for event in self)
        return total

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Sum up events of one name.

        Args:
            group_by_input_shapes: apart for each shapes of arguments (`record_shapes=True`).
            group_by_stack_n: apart for each of the innermost lines of the program
                (`with_stack=True`).
            group_by_overload_name: apart for calls with `out=`.
        """
        sums: dict[Any, FunctionEventAvg] = {}
        for event in self:
            shapes = str(event.input_shapes) if group_by_input_shapes else ""
            stack = tuple(event.stack[:group_by_stack_n])
            overload = event.overload_name if group_by_overload_name else ""
            key = (event.key, shapes, stack, overload, event.is_user_annotation)
            found = sums.get(key)
            if found is None:
                found = sums[key] = FunctionEventAvg()
            found.add(event)
            found.stack = list(stack)
            found.input_shapes = shapes
            found.overload_name = overload
        return self._like(sums.values())

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events, under the name Total."""
        total = FunctionEventAvg()
        for event in self:
            total.key = event.key
            total.add(event)
        total.key = "Total"
        return total

    def _like(self, events: Iterable[Any]) -> EventList:
        return EventList(
            events,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
            record=self._record,
        )

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The list as a table of text.

        Args:
            sort_by: the field that rows are sorted by, largest first: `cpu_time`,
                `cpu_time_total`, `self_cpu_time_total`, `cpu_memory_usage`,
                `self_cpu_memory_usage`, `count`, `flops`. Default: the order of the list.
            row_limit: the most rows; -1 for all.
            max_src_column_width, max_name_column_width, max_shapes_column_width: in characters.
            header: a line above.
            top_level_events_only: leave out what is inside of other events.
            time_unit: "s", "ms" or "us" for all times; by default each has a fitting one.
        """
        from flambeau.autograd._profiler_table import table

        return table(
            self,
            sort_by,
            row_limit,
            max_src_column_width,
            max_name_column_width,
            max_shapes_column_width,
            header,
            top_level_events_only,
            time_unit,
            self._profile_memory,
            self._with_flops,
        )

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: str) -> None:
        """Write what the profile recorded for a viewer: chrome://tracing, Perfetto."""
        if self._record is None:
            raise RuntimeError("export_chrome_trace: expected the events of a profile")
        from flambeau.autograd._profiler_trace import write

        write(self._record, path)

    def supported_export_stacks_metrics(self) -> list[str]:
        """Fields that `export_stacks` takes."""
        return ["self_cpu_time_total", "self_device_time_total"]

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write a line for each stack, outermost first, with the metric in microseconds.

        Tools that draw flame graphs read it.
        """
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(
                f"export_stacks: expected metric to be one of "
                f"{self.supported_export_stacks_metrics()}, got {metric!r}"
            )
        blank = str.maketrans(" ;\t\n", "____")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                value = int(getattr(event, metric))
                if event.stack and value > 0:
                    parts = [line.translate(blank) for line in reversed(event.stack)]
                    parts.append(event.key.translate(blank))
                    file.write(f"{';'.join(parts)} {value}\n")
