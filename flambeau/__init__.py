"""Flambeau: deep learning with PyTorch's programming model and names.

Owns the top-level names. Those of the compiled core and of the functions over it are here at
once; sub-packages and the names that live in them are loaded when first asked for. Importing
does no I/O beyond that, starts no thread and loads no other library.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from typing import Any

from . import _C

if not hasattr(_C, "Tensor"):  # not the extension: the folder of its stubs, taken for a package
    raise ImportError(
        f"flambeau: expected the compiled extension _C in {__path__[0]}, found none for this "
        "Python; build it with `make build`, or install the package with `pip install .`"
    )
from . import _untyped_storage as _untyped_storage
from . import functional as _functional

# Names of the core, among them bool, int, float and other builtins: below this line a builtin
# that is also a dtype or an operation means Flambeau's.
from ._C import *  # noqa: F403
from .functional import *  # noqa: F403

__version__ = "0.1.0"

for _name in _functional.METHODS:
    setattr(_C.Tensor, _name, getattr(_functional, _name))
del _name

e, inf, nan, pi, newaxis = math.e, math.inf, math.nan, math.pi, None

#: where names live that are loaded on first use
_HOMES = {
    "_checks": (
        "_assert",
        "_assert_async",
        "_assert_scalar",
        "_check",
        "_check_index",
        "_check_is_size",
        "_check_not_implemented",
        "_check_tensor_all",
        "_check_tensor_all_with",
        "_check_type",
        "_check_value",
        "_check_with",
    ),
    "_config": (
        "are_deterministic_algorithms_enabled",
        "compiled_with_cxx11_abi",
        "get_deterministic_debug_mode",
        "get_float32_matmul_precision",
        "is_deterministic_algorithms_warn_only_enabled",
        "is_storage",
        "is_warn_always_enabled",
        "set_default_tensor_type",
        "set_deterministic_debug_mode",
        "set_float32_matmul_precision",
        "set_flush_denormal",
        "set_warn_always",
        "typename",
        "use_deterministic_algorithms",
    ),
    "_device_modules": (
        "AcceleratorError",
        "OutOfMemoryError",
        "get_autocast_gpu_dtype",
        "get_device_module",
        "set_autocast_gpu_dtype",
    ),
    "_higher_order_ops.cond": ("cond",),
    "_higher_order_ops.while_loop": ("while_loop",),
    "_contractions": ("chain_matmul", "einsum", "tensordot"),
    "_factors": ("pca_lowrank", "svd_lowrank"),
    "_legacy": (
        "BFloat16Tensor",
        "BoolTensor",
        "ByteTensor",
        "CharTensor",
        "DoubleTensor",
        "FloatTensor",
        "HalfTensor",
        "IntTensor",
        "LongTensor",
        "ShortTensor",
        "legacy_contiguous_format",
    ),
    "_library.tags": ("Tag",),
    "_limits": ("finfo", "iinfo"),
    "_tensor_str": ("get_printoptions", "printoptions", "set_printoptions"),
    "_ir.symnumbers": (
        "sym_float",
        "sym_int",
        "sym_ite",
        "sym_max",
        "sym_min",
        "sym_not",
        "sym_sum",
    ),
    "_ir.symscalar": ("SymBool", "SymFloat", "SymInt"),
    "_utils": ("_shape_as_tensor",),
    "compiler": ("_disable_dynamo", "compile"),
    "amp": ("GradScaler", "autocast", "is_autocast_available"),
    "func": ("vmap",),
    "futures": ("Future",),
    "jit": ("ScriptModule",),
    "random": ("fork_rng",),
    "nn._functional_grouped": ("_grouped_mm",),
    "serialization": ("load", "save"),
    "storage": (
        "BFloat16Storage",
        "BoolStorage",
        "ByteStorage",
        "CharStorage",
        "ComplexDoubleStorage",
        "ComplexFloatStorage",
        "DoubleStorage",
        "FloatStorage",
        "HalfStorage",
        "IntStorage",
        "LongStorage",
        "ShortStorage",
        "TypedStorage",
        "from_file",
    ),
}
_MODULES = ("__config__", "__future__")
_home_of = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _home_of.get(name)
    if home is not None:
        value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    elif name[:1] == "_" and name[:2] != "__" and hasattr(_C, name):
        value = getattr(_C, name)  # operations such as _foreach_add
    elif (name[:2] != "__" or name in _MODULES) and importlib.util.find_spec(
        f"{__name__}.{name}"
    ) is not None:
        value = importlib.import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_home_of})
