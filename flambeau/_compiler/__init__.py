"""Graphs of primitives to native code: decomposition, loop nests, fusion, C++ or Triton text, the
native program, the disk cache. `execute` is the way through it, `schedule` the order of the passes.

Reads the table through `_ir` and `_trace`; knows neither frames nor autograd.
"""
