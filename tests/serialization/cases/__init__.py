"""What real checkpoints hold, as functions that build it with either library.

Owns the table of cases: PyTorch writes each to a file by it (`tools/pytorch_corpus.py`), and the
tests build what should come back. A case knows the library only as its argument.
"""

from . import checkpoints, containers, modules, tensors, training

CASES = {
    **tensors.CASES,
    **containers.CASES,
    **training.CASES,
    **checkpoints.CASES,
    **modules.CASES,
}
