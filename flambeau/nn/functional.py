"""`nn.functional`: the stateless layer below the modules.

Most names are operations that the table puts in this namespace (flambeau/ops); functions that take
`inplace`, arguments of early versions or Python functions are in `_functional_*.py` beside this
file. Never imports modules. What few use loads late.
"""

from __future__ import annotations

import importlib
from typing import Any

from flambeau import _C

from . import _functional_pool, _functional_resize
from ._functional_activation import *  # noqa: F403
from ._functional_embedding import *  # noqa: F403
from ._functional_losses import *  # noqa: F403

Tensor = _C.Tensor
_ops = _C._namespaces["nn.functional"]

for _module in (_functional_pool, _functional_resize):
    for _name, _function in vars(_module).items():
        home = str(getattr(_function, "__module__", None))
        if _name[0] != "_" and home.startswith("flambeau.nn"):
            globals()[_name] = _function
for _name, _function in vars(_ops).items():
    if _name[0] != "_":
        globals().setdefault(_name, _function)
del _module, _name, _function, home

# Operations of the top level that stand here too.
native_channel_shuffle = _C.native_channel_shuffle
tanh = _C.tanh

#: names of files that load when first asked for
_LATE = {"multi_head_attention_forward": "_functional_attention"}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"flambeau.nn.{_LATE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})


def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Divides by the p-norm along `dim`, or by `eps` where the norm is smaller."""
    if out is None:
        return _ops.normalize(input, p, dim, eps)
    length = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return _C.div(input, length, out=out)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolution over time of (T, N, C) by weights (K, C, D).

    Returns:
        A tensor of shape (T + 2 pad - K + 1, N, D).
    """
    y = _ops.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad)
    return y.permute(2, 0, 1)
