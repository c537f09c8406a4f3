"""What the stages share: the typed IR of the table's language, and the graphs of `compile`.

`frontend.compile_function` turns an `ast.FunctionDef` into a `Function` of typed expressions and
nested blocks, which the build compiles to C++ and `_trace` interprets; `printer.dump` shows one.
`graph*` are the graphs, their text, checks and runs; `sym*` the sizes that vary; `targets` says
what a node calls; `logs` is FLAMBEAU_LOGS. What the build imports knows no tensors.
"""
