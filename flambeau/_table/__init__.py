"""The table of operations (`flambeau/ops`): its reader, the record of an entry, rules, formulas.

Imported by the build and at run time. Nothing here imports the core or knows C++.
"""
