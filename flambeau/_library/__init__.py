"""Operators that programs add: what `flambeau.library` and `torch.ops` are made of.

The operators themselves are descriptors of the core (`csrc/dispatch/registry.h`).
"""
