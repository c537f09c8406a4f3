"""What the stages share: the one IR and the front end of the table's language.

`frontend.compile_function` turns an `ast.FunctionDef` into a `Function` of typed values in nested
blocks, which the build compiles to C++ and `_trace` interprets; `graph*` are the IR, its text,
checks and runs, for functions and for the graphs of `compile` alike; `reading` shows blocks as
statements and expressions; `sym*` are the sizes that vary; `targets` says what a node calls;
`logs` is FLAMBEAU_LOGS. What the build imports knows no tensors.
"""
