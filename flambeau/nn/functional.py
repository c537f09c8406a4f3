"""`nn.functional`: the stateless layer below the modules.

Names are operations that the table puts in this namespace (flambeau/ops); functions that take
Python functions or lists with None are in `_functional_*.py` beside this file. Never imports
modules. What few use loads late.
"""

from __future__ import annotations

import importlib
from typing import Any

from flambeau._C import Tensor as Tensor
from flambeau._C import native_channel_shuffle as native_channel_shuffle
from flambeau._C import tanh as tanh
from flambeau._C.nn_functional import *  # noqa: F403

from ._functional_losses import *  # noqa: F403
from ._functional_pool import *  # noqa: F403

#: names of files that load when first asked for
_LATE = {
    "grouped_mm": "_functional_grouped",
    "multi_head_attention_forward": "_functional_attention",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"flambeau.nn.{_LATE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
