"""What Flambeau lacks of PyTorch's names: an error that says so, as late as honesty allows.

Owns the reading of `missing.toml`. A name listed there can be imported, subclassed, used in
annotations and in `isinstance` (where it is false); calling it raises. Any other name raises
AttributeError at once. Nothing here computes, and nothing pretends to.
"""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import os
import types
from collections.abc import Callable
from typing import Any, NoReturn, cast

from . import _core_names

PAGE = "docs/missing.md"


@functools.cache
def _areas() -> dict[str, Any]:
    import tomllib

    with open(os.path.join(os.path.dirname(__file__), "missing.toml"), "rb") as f:
        return tomllib.load(f)


@functools.cache
def _exceptions() -> dict[str, list[str]]:
    """Module -> names of exceptions, which can be caught and are never raised."""
    areas = [area for area in _areas().values() if area.get("exceptions")]
    return {m: names.split() for area in areas for m, names in area["names"].items()}


@functools.cache
def table() -> dict[str, tuple[str, frozenset[str]]]:
    """Module -> (why its names are missing, the names)."""
    out: dict[str, tuple[str, frozenset[str]]] = {}
    for area in _areas().values():
        for module, names in area["names"].items():
            why, known = out.get(module, (area["reason"], frozenset()))
            out[module] = (why, known | frozenset(names.split()))
    return out


@functools.cache
def modules() -> dict[str, str]:
    """Every module the table mentions, and those that hold them: name -> reason."""
    out: dict[str, str] = {}
    for name, (reason, _) in table().items():
        while "." in name:
            out.setdefault(name, reason)
            name = name.rpartition(".")[0]
    return out


class _Refusing(type):
    """Type of the names that are missing."""

    _reason: str

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(_words(cls))

    def __instancecheck__(cls, instance: object) -> bool:
        return False

    def __getitem__(cls, item: Any) -> Any:
        return types.GenericAlias(cls, item)

    def __getattr__(cls, name: str) -> Any:
        raise AttributeError(f"{_name_of(cls)}.{name}: {_words(cls)}")


def _name_of(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _words(cls: type) -> str:
    missing = next(c for c in cls.__mro__ if "_missing" in c.__dict__)
    reason = missing.__dict__["_reason"]
    return f"{_name_of(missing)}: Flambeau does not have it yet: {reason}; see {PAGE}"


def _small_float(name: str) -> Callable[[], Any]:
    def find() -> Any:
        from flambeau._limits import absent_dtype

        return absent_dtype(name)

    return find


def _core(name: str) -> Callable[[], Any]:
    def find() -> Any:
        return _core_names.find(name)

    return find


def _dispatch(name: str) -> Callable[[], Any]:
    def find() -> Any:
        from . import _dispatch_keys

        return getattr(_dispatch_keys, name)

    return find


def _nn() -> types.ModuleType:
    """`torch._C._nn`."""
    made = types.ModuleType("torch._C._nn", "Names of the core for modules.")
    convert = importlib.import_module("flambeau.nn.modules._convert")
    vars(made)["_parse_to"] = convert._parse_to
    attach(made, made.__name__)
    return made


_FLOATS = ("4_e2m1fn_x2", "8_e4m3fn", "8_e4m3fnuz", "8_e5m2", "8_e5m2fnuz", "8_e8m0fnu")
#: names that only programs written for PyTorch ask for, and that are facts
_LENT: dict[tuple[str, str], Callable[[], Any]] = {
    **{("torch", f"float{f}"): _small_float(f"float{f}") for f in _FLOATS},
    **{("torch._C", n): _dispatch(n) for n in ("DispatchKey", "DispatchKeySet")},
    **{("torch._C", n): _core(n) for n in _core_names.NAMES},
    ("torch._C", "_nn"): _nn,
}


def lookup(module: str, name: str) -> Any:
    """The missing `name` of `module`: what refuses to be used, or AttributeError."""
    if not name.startswith("__"):
        lent = _LENT.get((module, name))
        if lent is not None:
            return lent()
        full = f"{module}.{name}"
        if full in modules():
            return importlib.import_module(full)
        reason, names = table().get(module, ("", frozenset()))
        if name in _exceptions().get(module, ()):
            return type(
                name, (Exception,), {"__module__": module, "__doc__": f"Not raised: {reason}"}
            )
        if name in names:
            body = {"__module__": module, "_reason": reason, "_missing": True}
            return _Refusing(name, (), body)
    raise AttributeError(
        f"module {module!r} has no attribute {name!r} (Flambeau has it not, or not yet: {PAGE})"
    )


def attach(module: types.ModuleType, name: str) -> None:
    """Let a module of ours answer, under PyTorch's name, for what it lacks."""
    if hasattr(type(module), "__getattr__"):
        return  # it answers itself
    shown = name
    own = vars(module).get("__getattr__")

    def read(name: str) -> Any:
        if own is not None:
            try:
                return own(name)
            except AttributeError:
                pass
        value = vars(module)[name] = lookup(shown, name)
        return value

    vars(module)["__getattr__"] = read


def find_spec(fullname: str) -> importlib.machinery.ModuleSpec | None:
    """The spec of a module of which we have nothing but names."""
    if fullname not in modules():
        return None
    return importlib.machinery.ModuleSpec(fullname, cast(Any, _Loader()), is_package=True)


class _Loader:
    """Makes a module whose names are all missing."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        module.__doc__ = f"Not there yet: {modules()[module.__name__]}; see {PAGE}."
        attach(module, module.__name__)
