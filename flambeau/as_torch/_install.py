"""Installs the alias: the finder of `torch.*`, and the names by which our modules go.

A module of ours is one object, in `sys.modules` under both names, so that what is patched in one
is patched in the other; it calls itself by PyTorch's name, and so do its functions and classes.
Invariant: whatever of ours is imported, by either name, is adopted at once; a function is never
replaced by the module of the same name.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any, cast

import flambeau
from flambeau._ir.own import own_packages
from flambeau._library import operators

from . import _missing, _paths, _torchdata
from ._face import Face
from ._version import TorchVersion

_OURS, _THEIRS = "flambeau", "torch"
_NAMED = type | types.FunctionType | types.BuiltinFunctionType
#: parts of ours that are not PyTorch's module of that name
_NOT_SHOWN = ("as_torch", "ops", "version")
#: where PyTorch keeps types that it shows in `torch`
_HOMES = {"Generator": "torch._C", "UntypedStorage": "torch.storage"}
#: the module `torch`, once it is installed
_tops: list[Face] = []


def is_installed() -> bool:
    return bool(_tops)


def install() -> None:
    """See `flambeau.as_torch.install`."""
    if is_installed():
        return
    present = sys.modules.get(_THEIRS)
    if present is not None:
        file = getattr(present, "__file__", None)
        raise ImportError(
            f"flambeau.as_torch: expected that torch is not imported yet, got {file}; install the "
            "alias first: the two cannot be mixed in one process",
            name=_THEIRS,
        )
    _install()


def take_over(module: types.ModuleType) -> None:
    """Install in the place of the file that `import torch` has found, which is ours."""
    if sys.modules.get(_THEIRS) is module:
        del sys.modules[_THEIRS]
    install()


def _unknown_operator(name: str) -> Any:
    """What refuses a function of `torch.ops.aten` that is missing; None for an unknown name."""
    try:
        return _missing.lookup("torch.ops.aten", name)
    except AttributeError:
        return None


def _install() -> None:
    own_packages.add(_THEIRS)
    kinds = sys.modules.get("flambeau._capture.kinds")
    if kinds is not None:
        kinds.library_module.cache_clear()
    if _paths.FOLDER not in sys.path:
        sys.path.insert(min(1, len(sys.path)), _paths.FOLDER)
    operators.explain = _unknown_operator
    version = TorchVersion(_paths.VERSION)
    top = _face(_OURS, _THEIRS, {"__version__": version, "ops": operators.registry()})
    vars(top)["torch"] = top
    vars(top)["__getattr__"] = _reader(top)
    vars(top)["__dir__"] = lambda: sorted({*vars(top), *dir(flambeau)})
    sys.modules[_THEIRS] = top
    _tops[:] = [top]
    sys.modules["torch.ops"] = top.ops
    numbers = _face("flambeau.version", "torch.version", {"__version__": version})
    vars(numbers)["git_version"] = "flambeau-" + flambeau.__version__
    vars(top)["version"] = sys.modules["torch.version"] = numbers
    vars(top)["_differs"] |= {"version", "torch"}
    sys.meta_path.insert(0, Finder())
    for name, module in list(sys.modules.items()):
        adopt(name, module)
    for value in list(vars(flambeau).values()):
        _rename(value, _OURS, _THEIRS)


def _face(behind: str, name: str, own: dict[str, Any]) -> Face:
    module = importlib.import_module(behind)
    face = Face(name, module, own)
    spec = _spec_as(module, name)
    face.__spec__, face.__loader__, face.__package__ = spec, spec.loader, spec.parent
    for dunder in ("__file__", "__path__"):
        if hasattr(module, dunder):
            setattr(face, dunder, getattr(module, dunder))
    return face


def _reader(top: Face) -> Any:
    """`torch.NAME` that is not in its dictionary yet: a lazy name, a module, or missing."""

    def read(name: str) -> Any:
        if name not in top._differs:
            try:
                value = getattr(flambeau, name)
            except AttributeError:
                pass
            else:
                _rename(value, _OURS, _THEIRS)
                vars(top)[name] = value
                return value
        value = vars(top)[name] = _missing.lookup(_THEIRS, name)
        return value

    return read


def _spec_as(module: types.ModuleType, name: str) -> importlib.machinery.ModuleSpec:
    """The module's spec under another name."""
    old = module.__spec__
    assert old is not None
    loader: Any = old.loader
    if isinstance(
        loader,
        importlib.machinery.SourceFileLoader | importlib.machinery.ExtensionFileLoader,
    ):
        loader = type(loader)(name, loader.path)
    spec = importlib.machinery.ModuleSpec(name, loader, origin=old.origin)
    spec.submodule_search_locations = old.submodule_search_locations
    spec.has_location = old.has_location
    spec.cached = old.cached
    return spec


def _rename(value: Any, old: str, new: str) -> None:
    """A function or class of the module `old` says that it is of `new`."""
    if isinstance(value, _NAMED) and value.__module__ == old:
        try:
            value.__module__ = new
        except TypeError:  # a type of the core, which Python does not change
            assert isinstance(value, type)
            flambeau._C._set_module_of_type(value, _HOMES.get(value.__name__, new))


def adopt(old: str, module: types.ModuleType) -> None:
    """What was loaded as `old`: if it is a module of ours, it is known and named as PyTorch's."""
    if not old.startswith(f"{_OURS}.") or old.split(".")[1] in _NOT_SHOWN:
        return
    new = _THEIRS + old[len(_OURS) :]
    sys.modules[new] = module
    if old.split(".")[1].startswith("_"):  # our own inside: by either name, and keeps its own
        if old.count(".") == 1:
            _missing.attach(module, new)
        return
    module.__name__ = new
    if module.__spec__ is not None:  # else one made by hand
        spec = module.__spec__ = _spec_as(module, new)
        module.__loader__, module.__package__ = spec.loader, spec.parent
    for value in list(vars(module).values()):
        _rename(value, old, new)
    _missing.attach(module, new)


class Finder:
    """Finds `torch.x` as our x, and sees to it that our modules are adopted when loaded; and
    packages of `torchdata`, and `functorch`.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        top, _, rest = fullname.partition(".")
        if top == _THEIRS:
            return self._theirs(fullname, rest)
        if top == _OURS and rest:
            spec = self._others(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Adopting(spec.loader)  # type: ignore[assignment]
            return spec
        if top == _torchdata.NAME:
            real = None if rest else self._others(fullname, path, target)
            return _torchdata.find_spec(fullname, real)
        if fullname == "functorch":  # which comes with PyTorch alone
            ours = cast(Any, _torchdata.Ours(f"{_OURS}.functorch"))
            return importlib.machinery.ModuleSpec(fullname, ours)
        return None

    def find_distributions(self, context: Any) -> Iterator[Any]:
        """The record of `torch`, where it is not on the path; importlib.metadata asks."""
        return _paths.distributions(context)

    def _others(
        self, fullname: str, path: Sequence[str] | None, target: Any
    ) -> importlib.machinery.ModuleSpec | None:
        """What is found without us."""
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: importlib.machinery.ModuleSpec | None = find(fullname, path, target)
            if spec is not None:
                return spec
        return None

    def _theirs(self, fullname: str, rest: str) -> importlib.machinery.ModuleSpec | None:
        if not rest:
            return importlib.machinery.ModuleSpec(
                fullname, cast(Any, _Present(fullname)), is_package=True
            )
        if rest.partition(".")[0] == "ops":
            return None  # there, and without modules
        ours = f"{_OURS}.{rest}"
        try:
            found = importlib.util.find_spec(ours)
        except (ModuleNotFoundError, ValueError):
            found = None
        if found is not None:
            spec = importlib.machinery.ModuleSpec(
                fullname, cast(Any, _Present(ours, found.loader)), origin=found.origin
            )
            spec.submodule_search_locations = found.submodule_search_locations
            return spec
        return _missing.find_spec(fullname)


class _Adopting:
    """Stands for a loader while it runs: what it has loaded is adopted."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        created: types.ModuleType | None = self.loader.create_module(spec)
        return created

    def exec_module(self, module: types.ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self.loader
        name = module.__name__
        self.loader.exec_module(module)
        for made in [n for n in sys.modules if n.startswith(name + ".")]:
            adopt(made, sys.modules[made])  # by the module's own hand, without a loader
        adopt(name, module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)


class _Present:
    """Loads `torch.x` by importing our x, which is the same object."""

    def __init__(self, ours: str, loader: Any = None) -> None:
        self.ours, self.loader = ours, loader

    def get_code(self, fullname: str) -> types.CodeType | None:
        """The module's code, for `python -m`."""
        code: types.CodeType | None = self.loader.get_code(self.ours)
        return code

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        if spec.name == _THEIRS:
            return self.top()
        module = importlib.import_module(self.ours)
        self.spec = module.__spec__
        return module

    def top(self) -> types.ModuleType:
        """`torch` again, after it was taken out of `sys.modules`."""
        present = _tops[0] if _tops else None
        assert present is not None
        self.spec = present.__spec__
        return present

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = getattr(self, "spec", module.__spec__)
