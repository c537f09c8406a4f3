"""Typed IR of the Python subset: what the build compiles to C++ and `jit.script` compiles to run.

`frontend.compile_function` turns an `ast.FunctionDef` into a `Function` of typed expressions and
nested blocks; `printer.dump` shows one. Knows nothing of C++, tensors at run time, or the table.
"""
