"""Graphs of primitives to native code: scalar bodies, loop nests, fusion, C++, the disk cache.

Reads the table through `_ir` and `_trace`; knows neither frames nor autograd.
"""
