"""Small programs over public packages, under PyTorch and under Flambeau by the same code.

Owns the registry of cases (`cases`), what is measured of one (`measure`), the processes that run
them (`pool`) and the judgement of the numbers against PyTorch's (`compare`). The cases say `import
torch`; which library answers is decided by how the process was started. Knows no case by name.
"""
