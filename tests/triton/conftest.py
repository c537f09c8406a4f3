"""Puts this folder and the compiler tests' on the path.

These tests need Triton and run by `make triton` alone: one process interprets, another compiles,
as Triton decides which it is when it is imported.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "compiler")]
other = "test_compiled.py" if os.environ.get("TRITON_INTERPRET") == "1" else "test_interpreted.py"
collect_ignore = [other]
