"""Switches of the compiler, one per process; a program sets them as attributes of this module."""

from __future__ import annotations

#: True: a frame whose graph a back end cannot compile runs in plain Python, which is logged
#: (FLAMBEAU_LOGS=graph_breaks) and nothing else. False: `exc.BackendCompilerFailed` is raised.
suppress_errors = False

#: How often one function may be compiled under one `compile`, for inputs of another kind; calls
#: beyond it run in plain Python, with a warning (an error where `fullgraph=True`).
recompile_limit = 8
