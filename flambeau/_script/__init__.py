"""Scripts: typed programs made from Python functions, modules and classes.

`compiler` makes a `unit` (functions and classes of the IR) of what a program hands to
`jit.script`; `typer` and its parts are the language above the table's front end (`_ir.frontend`);
`emit` turns a unit into code that Python runs; `archive` writes and reads it. Nothing here runs
text of the program: sources are parsed, names looked up.
"""
