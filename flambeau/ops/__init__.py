"""The table of operations: every operation is written here once, as a typed Python function.

The build compiles these files to C++ without importing them; at run time only the compiler stack
and the tests import them.
"""
