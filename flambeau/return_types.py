"""Types of results that have names: `type(torch.max(x, 0))` is `torch.return_types.max`.

The core makes a type with the first result of it (csrc/python/thunks.h); here it is found before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau import linalg

#: a function of a symmetric matrix that gives a result of the type
_RESULTS: dict[str, Callable[[Any], Any]] = {
    "aminmax": fb.aminmax,
    "cummax": lambda x: fb.cummax(x, 0),
    "cummin": lambda x: fb.cummin(x, 0),
    "frexp": fb.frexp,
    "geqrf": fb.geqrf,
    "histogram": lambda x: fb.histogram(x, 2),
    "kthvalue": lambda x: fb.kthvalue(x, 1),
    "linalg_cholesky_ex": linalg.cholesky_ex,
    "linalg_eig": linalg.eig,
    "linalg_eigh": linalg.eigh,
    "linalg_inv_ex": linalg.inv_ex,
    "linalg_ldl_factor": linalg.ldl_factor,
    "linalg_ldl_factor_ex": linalg.ldl_factor_ex,
    "linalg_lstsq": lambda x: linalg.lstsq(x, x),
    "linalg_lu": linalg.lu,
    "linalg_lu_factor": linalg.lu_factor,
    "linalg_lu_factor_ex": linalg.lu_factor_ex,
    "linalg_qr": linalg.qr,
    "linalg_slogdet": linalg.slogdet,
    "linalg_solve_ex": lambda x: linalg.solve_ex(x, x),
    "linalg_svd": linalg.svd,
    "lu_unpack": lambda x: fb.lu_unpack(*linalg.lu_factor(x)),
    "max": lambda x: fb.max(x, 0),
    "median": lambda x: fb.median(x, 0),
    "min": lambda x: fb.min(x, 0),
    "mode": lambda x: fb.mode(x, 0),
    "nanmedian": lambda x: fb.nanmedian(x, 0),
    "qr": fb.qr,
    "slogdet": fb.slogdet,
    "sort": fb.sort,
    "svd": fb.svd,
    "topk": lambda x: fb.topk(x, 1),
    "triangular_solve": lambda x: fb.triangular_solve(x, x),
}


def __getattr__(name: str) -> Any:
    made = _RESULTS.get(name)
    if made is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with fb.no_grad(), fb.device("cpu"):
        value = globals()[name] = type(made(fb.eye(2)))
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_RESULTS})
