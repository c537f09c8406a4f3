"""Small programs with tensors, one feature of Python or of the library each, and how many graphs
capture makes of them: what users write, not what is easy.

A program takes a tensor that may require grad and gives anything; it may change what it closes over
only in ways that a second run repeats.
"""

from __future__ import annotations

PROGRAMS = []


def program(graphs=1):
    """Files a program with the number of its graphs that hold an operation; 1 is without a break,
    None: the frame is broken or left as CPython's objects demand, and only results count."""

    def file(f):
        PROGRAMS.append((f, graphs))
        return f

    return file
