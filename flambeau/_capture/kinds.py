"""What sort of object a value is, as far as following code is concerned. Facts only, no state."""

from __future__ import annotations

import collections
import functools
import os
import re
import sys
import sysconfig
import types
from pathlib import Path
from typing import Any

import numpy as np

import flambeau
from flambeau import _C
from flambeau._ir.own import own_module, own_packages
from flambeau._ir.symscalar import SymFloat, SymInt
from flambeau._ir.where import PACKAGE
from flambeau._trace.run_numbers import RunNumber
from flambeau._trace.tensor import SymSize

#: a missing value: a local that is not set, NULL on CPython's stack
UNSET: Any = type("Unset", (), {"__repr__": lambda self: "<unset>", "__slots__": ()})()
NULL: Any = type("Null", (), {"__repr__": lambda self: "<null>", "__slots__": ()})()
#: an entry of an overlay that stands for a deleted attribute
DELETED: Any = type("Deleted", (), {"__repr__": lambda self: "<deleted>", "__slots__": ()})()

_OWN_CONSTANTS = tuple(
    type(v) for v in (flambeau.float32, flambeau.device("cpu"), flambeau.strided)
) + (type(flambeau.contiguous_format),)

#: immutable, compared by value, safe to keep in code
CONSTANT_TYPES = frozenset(
    (
        int,
        float,
        complex,
        bool,
        str,
        bytes,
        type(None),
        type(...),
        type(NotImplemented),
        range,
        types.CodeType,
        types.UnionType,
        types.GenericAlias,
        re.Pattern,
        *_OWN_CONSTANTS,
    )
)
_HEAP, _IMMUTABLE = 1 << 9, 1 << 8  # Py_TPFLAGS_HEAPTYPE and Py_TPFLAGS_IMMUTABLETYPE
#: what `functools.lru_cache` makes
CACHED = type(functools.lru_cache(lambda: None))
#: containers that are rebuilt with wrapped elements
SEQUENCES = (list, tuple, set, frozenset, collections.deque)
MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict)
#: of a text of ASCII characters, and of any other
STRING_ITERATORS = (type(iter("")), type(iter("\N{HORIZONTAL ELLIPSIS}")))
#: of a dict's keys, values and items, from the end
_DICT: dict[str, int] = {}
REVERSED_DICTS = tuple(type(reversed(d)) for d in (_DICT, _DICT.values(), _DICT.items()))
#: types whose C methods may run on values as they are
PLAIN_TYPES = CONSTANT_TYPES | frozenset(
    (
        *SEQUENCES,
        *MAPPINGS,
        slice,
        bytearray,
        type({}.keys()),
        type({}.values()),
        type({}.items()),
        flambeau.Size,
        flambeau.Generator,
        enumerate,
        zip,
        reversed,
        map,
        filter,
        type(iter([])),
        type(iter(())),
        type(iter({})),
        type(iter({}.values())),
        type(iter({}.items())),
        type(iter(set())),
        *STRING_ITERATORS,
        type(iter(range(0))),
        type(iter(range(2**70))),
        type(reversed([])),
        *REVERSED_DICTS,
        re.Match,
        type(iter(collections.deque())),
        collections.Counter,
        type(collections.OrderedDict().keys()),
        type(collections.OrderedDict().values()),
        type(collections.OrderedDict().items()),
        type(iter(collections.OrderedDict())),
        types.MappingProxyType,
        SymInt,
        SymFloat,
        RunNumber,
        SymSize,
    )
)
BUILTIN = types.BuiltinFunctionType
METHOD_WRAPPERS = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)


def _folders(*names: str) -> tuple[str, ...]:
    """Folders of the installation as code may name them: as given and with links followed."""
    paths = [Path(sysconfig.get_path(n)) for n in names]
    return tuple({str(p) + os.sep for q in paths for p in (q, q.resolve())})


_STDLIB = _folders("stdlib", "platstdlib")
_SITE = _folders("purelib", "platlib")
#: the file of code that runs in place of frames
ENTRY_FILE = "<captured>"
#: state that lasts beyond a call, or may be consumed: never read from outside
STATEFUL = PLAIN_TYPES - CONSTANT_TYPES - {
    *SEQUENCES, *MAPPINGS, slice, flambeau.Size, RunNumber, SymSize,
}  # fmt: skip
_MODULES = PACKAGE + "nn/modules"


@functools.lru_cache(maxsize=4096)
def in_library(file: str) -> bool:
    """Whether a file belongs to Flambeau, NumPy or Python's own library, assumed unchanging."""
    if file.startswith(("<frozen", PACKAGE)):
        return True
    if file.startswith(tuple(s + "numpy" + os.sep for s in _SITE)):
        return True
    return file.startswith(_STDLIB) and not file.startswith(_SITE)


@functools.lru_cache(maxsize=4096)
def library_module(name: str | None) -> bool:
    """The same for a module, by name."""
    if not name:
        return False
    top = name.partition(".")[0]
    if top in own_packages or top in ("numpy", "builtins"):
        return True
    return top in sys.stdlib_module_names


def never_captured(code: types.CodeType) -> bool:
    """Frames of the library run as they are, and what they call is captured: `Module.__call__` is
    code of all modules, whose `forward` is what counts. Code made in place of frames never is.
    Comprehensions are frames until Python 3.12, and loops like others: the function around one runs
    in plain Python, as it has been told."""
    file = code.co_filename
    if file == ENTRY_FILE or code.co_name in ("<listcomp>", "<dictcomp>", "<setcomp>"):
        return True
    return in_library(file) and not (file.startswith(_MODULES) and code.co_name == "forward")


def runs_directly(function: types.FunctionType) -> bool:
    """Functions of Flambeau that compute from their arguments alone: called, not followed."""
    if not function.__code__.co_filename.startswith(PACKAGE):
        return False  # a wrapper of a program, which `functools.wraps` gives the name of our module
    module = own_module(function.__module__) or ""
    return module.startswith(("nn.functional", "nn._functional", "functional")) or module in (
        "_contractions",
        "nn._reduction",
        "_limits",
    )


def trusted(code: types.CodeType) -> bool | None:
    """Whether a frame may run while C code is called directly; None: yes, this time."""
    if in_library(code.co_filename):
        return True
    if importing():
        return None
    # Methods that `dataclass` and `namedtuple` write: as the one who calls them.
    caller = sys._getframe(1).f_code
    written = code.co_filename == "<string>"
    return written and in_library(caller.co_filename) and caller.co_name != "traced"


def importing() -> bool:
    """Whether an import statement is what led here."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def library_class(cls: type) -> bool:
    return library_module(cls.__module__)


def written(found: Any, owner: type, name: str) -> Any:
    """What a class of ours holds: some write `__init__` when they are first asked for it."""
    if name == "__init__" and type(found) is not types.FunctionType and library_class(owner):
        getattr(owner, name)
        return owner.__dict__[name]
    return found


def is_tensor(value: Any) -> bool:
    return isinstance(value, _C.Tensor)


def is_plain(value: Any) -> bool:
    """Whether C code may work on the value as it is."""
    return (
        type(value) in PLAIN_TYPES or is_tensor(value) or isinstance(value, (np.generic, np.dtype))
    )


def mro_lookup(cls: type, name: str) -> tuple[Any, type | None]:
    """A name in the dictionaries of a class and its bases, and the class that has it."""
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name], base
    return UNSET, None


def describe(value: Any) -> str:
    """A callable or value, as messages name it."""
    name = name_of(value)
    if name is None:
        return f"an object of type {type(value).__qualname__}"
    module = getattr(value, "__module__", None)
    return f"{module}.{name}" if module and module != "builtins" else name


def by_statement(cls: type) -> bool:
    """Whether a class comes from a class statement; C makes types on the heap as well."""
    return cls.__flags__ & (_HEAP | _IMMUTABLE) == _HEAP


def name_of(value: Any) -> str | None:
    """The name of a function, class or module; None for objects, whose code must not run."""
    cls = type(value)
    if by_statement(cls) and not issubclass(cls, type):
        return None
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    return name if isinstance(name, str) else None


def instance_dict(value: Any) -> Any:
    """`value.__dict__`, without running what a class makes of it; None where there is none."""
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None


def is_data_descriptor(found: Any) -> bool:
    """Whether what a class holds comes before what an instance holds."""
    kind = type(found)
    return kind is not types.FunctionType and (
        mro_lookup(kind, "__set__")[0] is not UNSET
        or mro_lookup(kind, "__delete__")[0] is not UNSET
    )


def is_slot(descriptor: Any) -> bool:
    """Whether a descriptor is of a slot of a class of Python."""
    return type(descriptor) is types.MemberDescriptorType and by_statement(descriptor.__objclass__)
