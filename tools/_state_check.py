"""Runs the text of a program over state, plainly and compiled, and compares results, exceptions and
all that is left in objects: attributes, order, contents, and which object is which.

Invariant: each way gets its own module and state; nothing of one is seen by the other.
"""

from __future__ import annotations

import collections
import contextlib
import io
import itertools
import linecache
import sys
import types
import warnings
from typing import Any

import flambeau as torch

CALLS = 4
_number = itertools.count()
_MISSING = object()


class Snapshot:
    """Values as nested tuples; an object that is met again is a number."""

    def __init__(self) -> None:
        self.seen: dict[int, int] = {}
        self.keep: list[Any] = []

    def of(self, v: Any) -> Any:
        if v is None or isinstance(v, (bool, int, str, type)):
            return getattr(v, "__name__", v), type(v).__name__
        if isinstance(v, float):
            return round(v, 4) if v == v else "nan"
        if type(v) is tuple:
            return tuple(map(self.of, v))
        if id(v) in self.seen:
            return f"#{self.seen[id(v)]}"
        self.seen[id(v)] = len(self.seen)
        self.keep.append(v)
        name = type(v).__name__
        if isinstance(v, torch.Tensor):
            values = [str(round(n, 3)) for n in v.detach().flatten().tolist()]
            return name, str(v.dtype), tuple(v.shape), tuple(values), v.requires_grad
        if isinstance(v, types.FunctionType):
            cells = [c.cell_contents for c in v.__closure__ or ()]
            parts = (v.__defaults__, v.__kwdefaults__, v.__dict__, cells)
            return v.__name__, tuple(map(self.of, parts))
        if isinstance(v, types.MethodType):
            return v.__name__, self.of(v.__self__)
        if isinstance(v, types.ModuleType):
            return name
        return name, self.contents(v), self.attributes(v)

    def contents(self, v: Any) -> Any:
        if isinstance(v, collections.OrderedDict):
            pairs: Any = collections.OrderedDict.items(v)
        elif isinstance(v, dict):
            pairs = dict.items(v)
        elif isinstance(v, (set, frozenset)):
            return sorted(map(repr, v))
        elif isinstance(v, (list, tuple, collections.deque)):
            base: Any = next(b for b in type(v).__mro__ if b in (list, tuple, collections.deque))
            return tuple(map(self.of, base.__iter__(v)))
        else:
            return repr(v) if isinstance(v, BaseException) else None
        return tuple((self.of(k), self.of(w)) for k, w in pairs)

    def attributes(self, v: Any) -> Any:
        out = []
        with contextlib.suppress(AttributeError, TypeError):
            store = object.__getattribute__(v, "__dict__")
            out.append(self.of(store))
        for base in type(v).__mro__:
            for n, d in base.__dict__.items():
                if type(d) is types.MemberDescriptorType and base.__flags__ & 1 << 9:
                    with contextlib.suppress(AttributeError):
                        out.append((n, self.of(d.__get__(v))))
        return tuple(out)


class Way:
    """One module with the program, run by plain Python or compiled."""

    def __init__(self, text: str, backend: str | None) -> None:
        name = f"state_program_{next(_number)}"
        file = f"<{name}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        self.module = types.ModuleType(name)
        sys.modules[name] = self.module
        self.name, self.file = name, file
        exec(compile(text, file, "exec"), self.module.__dict__)
        self.f = self.module.f
        self.config: Any = None
        if backend is not None:
            self.f = torch.compile(self.f, backend=backend)
            self.config = self.f._flambeau_config
            self.config.strict = True

    def step(self, number: int, looked_at: bool) -> Any:
        """One call, and what happens before the next; what there is to be seen."""
        names: Any = self.module
        x = torch.arange(3, dtype=torch.float32) + 1 + number // 2
        try:
            result = names.call(self.f, x)
        except RecursionError:
            raise
        except Exception as error:
            shown = str(error) if isinstance(error, (ValueError, KeyError)) else ""
            result = (type(error).__name__, shown)
        shot = Snapshot()
        seen = None
        if looked_at:
            kept = [names.__dict__.get(n) for n in _GLOBALS]
            seen = shot.of((result, x, *names.roots(), *kept))
        else:
            seen = shot.of(result) if type(result) is tuple and type(result[0]) is str else None
        names.between(*names.roots(), number)
        return seen

    def close(self) -> None:
        sys.modules.pop(self.name, None)
        linecache.cache.pop(self.file, None)
        if self.config is not None:
            self.config.forget()


_GLOBALS = ("G", "GL", "GD", "counter", "remember", "noted", "helper", "kept", "record", "point")


def failure(text: str, backend: str = "eager", every: bool = True) -> str:
    """How the compiled program differs from the plain one; empty where it does not.

    Args:
        text: the program.
        backend: what compiles the graphs.
        every: whether the state is looked at after each call, or only after the last.
    """
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            plain, compiled = Way(text, None), Way(text, backend)
        except Exception:  # its setup raises: nothing to compare
            return ""
        try:
            for k in range(CALLS):
                looked_at = every or k == CALLS - 1
                want = plain.step(k, looked_at)
                try:
                    got = compiled.step(k, looked_at)
                except BaseException as error:
                    return f"call {k}: {type(error).__name__}: {str(error)[:300]}"
                if got != want:
                    return f"call {k}: {_difference(got, want)}"
        finally:
            plain.close()
            compiled.close()
    return ""


def _difference(got: Any, want: Any) -> str:
    if type(got) is tuple and type(want) is tuple and len(got) == len(want):
        for a, b in zip(got, want, strict=True):
            if a != b:
                return _difference(a, b)
    return f"got {str(got)[:200]}, want {str(want)[:200]}"
