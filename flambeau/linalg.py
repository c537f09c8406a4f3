"""Linear algebra: the operations that the table puts in this namespace, and their error."""

from __future__ import annotations

from ._C import _LinAlgError as LinAlgError  # noqa: F401
from ._C.linalg import *  # noqa: F403
from ._contractions import multi_dot as multi_dot
