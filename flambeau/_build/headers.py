"""The headers that programs in C++ include, as they are installed: flambeau/include.

Owns which headers those are (what csrc/api/flambeau and csrc/api/torch reach), and their names:
`"core/x.h"` of the sources is `"flambeau/core/x.h"` there, so that a program's own `core` is never
taken for ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_INCLUDE = re.compile(r'^(\s*#\s*include\s+)"([^"]+)"', re.MULTILINE)
#: folders of csrc/api whose headers programs name themselves
_PUBLIC = ("flambeau", "torch", "ATen", "c10")
#: names that programs include for what is in one header here, by folder
_FORWARDED = {
    "ATen": "ATen AccumulateType CPUGeneratorImpl Context Device DeviceGuard Dispatch "
    "ExpandUtils Functions Generator "
    "InitialTensorOptions NativeFunctions NumericUtils OpMathType Operators Parallel Scalar "
    "ScalarOps Tensor "
    "TensorAccessor TensorIndexing TensorOperators TensorOptions TensorUtils Utils "
    "WrapDimUtils autocast_mode",
    "ATen/core": "Dict Generator List Reduction Scalar Tensor TensorAccessor TensorBase "
    "TensorBody grad_mode ivalue",
    "ATen/core/dispatch": "Dispatcher",
    "ATen/core/op_registration": "op_registration",
    "c10/core": "CPUAllocator Device DeviceGuard DeviceType DispatchKey GradMode "
    "InferenceMode Layout MemoryFormat "
    "Scalar ScalarType Storage TensorImpl TensorOptions",
    "c10/macros": "Export Macros",
    "c10/util": "ArrayRef BFloat16 Exception Half Logging MaybeOwned Optional "
    "OptionalArrayRef SmallVector StringUtil "
    "accumulate complex intrusive_ptr string_view",
    "torch": "autograd cuda custom_class custom_class_detail data enum library linalg nn optim ordered_dict serialize types utils",
    "torch/csrc/api/include/torch": "all torch types",
    "torch/csrc/autograd": "custom_function function grad_mode variable",
    "torch/nn": "functional init module modules utils",
}
_FORWARDER = """// A name that programs include; everything is in one header here.
#pragma once

#include "torch/all.h"
"""


def _installed(name: str) -> str:
    """Where a header of the sources goes below the folder of includes."""
    return name if name.split("/")[0] in _PUBLIC else f"flambeau/{name}"


def _source(root: Path, name: str, generated: Mapping[str, str]) -> str | None:
    """Text of a header by the name under which sources include it."""
    if name.startswith("gen/"):
        return generated.get(name.removeprefix("gen/"))
    for folder in ("csrc/api", "csrc"):
        path = root / folder / name
        if path.is_file():
            return path.read_text()
    return None


def collect(root: Path, generated: Mapping[str, str]) -> dict[str, str]:
    """Installed name -> text of every public header; `generated`: the build's files by name."""
    api = root / "csrc" / "api"
    pending = [str(p.relative_to(api)) for f in _PUBLIC for p in sorted((api / f).rglob("*.h"))]
    found = {
        f"{folder}/{name}.h": _FORWARDER
        for folder, names in _FORWARDED.items()
        for name in names.split()
    }
    while pending:
        name = pending.pop()
        if _installed(name) in found:
            continue
        text = _source(root, name, generated)
        if text is None:
            raise FileNotFoundError(f"a public header includes {name!r}, which is no header")
        pending += [m[2] for m in _INCLUDE.finditer(text)]
        found[_installed(name)] = _INCLUDE.sub(lambda m: f'{m[1]}"{_installed(m[2])}"', text)
    return found
