"""Build-time generators: the table of operations (`flambeau/ops`) to C++, bindings, stubs, pages.

Runs inside the build, before the extension exists: nothing here imports the core.
"""
