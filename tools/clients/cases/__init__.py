"""The cases, a file per family; `registry.load` imports every file of this folder.

A case imports its package inside of the builder, so that a package that is absent fails its own
cases alone. Nothing here knows which library `import torch` is.
"""
