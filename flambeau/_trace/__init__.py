"""Tracing: the table run over tensors without data, and what it calls put down as a graph."""

from __future__ import annotations

from .record import trace

__all__ = ["trace"]
