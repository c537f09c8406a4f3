"""Profiles: what ran, when, on which thread; by schedule, as tables and as traces for viewers.

Gathers the names; the profiler itself is flambeau.profiler.profiler's and
flambeau.autograd.profiler's.
"""

from __future__ import annotations

from flambeau.autograd.profiler import kineto_available, record_function
from flambeau.autograd.profiler_util import DeviceType
from flambeau.profiler.profiler import (
    ExecutionTraceObserver,
    ProfilerAction,
    ProfilerActivity,
    _KinetoProfile,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "DeviceType", "ExecutionTraceObserver", "ProfilerAction", "ProfilerActivity", "profile",
    "kineto_available", "record_function", "schedule", "supported_activities",
    "tensorboard_trace_handler",
]  # fmt: skip
_ = _KinetoProfile
