"""x[key] and x[key] = value under a trace, as views and calls of `index` and `index_put_`.

The order of parts and the dims they stand for are those of csrc/python/indexing.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import flambeau

from .._ir.symscalar import SymInt, only_run
from .fake import Fake, repeats
from .geometry import Dim
from .meanings import DataDependent, fits
from .stand_ins import stand_in

if TYPE_CHECKING:
    from .session import Session

_HALVES = (flambeau.float16, flambeau.bfloat16)


def _is_tuple_like(key: Any) -> bool:
    if isinstance(key, tuple):
        return True
    if not isinstance(key, list) or len(key) >= 32:
        return False
    kinds = (flambeau.Tensor, list, tuple, slice, type(Ellipsis), type(None))
    return any(isinstance(x, kinds) for x in key)


def _covers(session: Session, part: Any) -> int:
    """How many dims of the tensor a part stands for."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    if isinstance(part, flambeau.Tensor):
        fake = session.fake(part)
        return fake.ndim if _is_mask(fake) else 1
    return 1


def _is_mask(x: Fake) -> bool:
    return x.dtype in (flambeau.bool, flambeau.uint8)


def _is_place(x: Fake) -> bool:
    """One whole number, which selects as a plain one does."""
    inexact = x.dtype.is_floating_point or x.dtype.is_complex
    return x.ndim == 0 and not _is_mask(x) and not inexact


class Indexer:
    """One key applied to one tensor: views at once, index tensors collected.

    Traced tensors of one whole number each are collected where a key has no index tensors beside
    them; otherwise they select at once, as the order of dims depends on it.
    """

    def __init__(self, session: Session, x: Fake) -> None:
        self.session = session
        self.view = x
        self.indices: list[Fake | None] = []
        self.mixed = False
        self.dim = self.extra = self.left_over = 0

    def run(self, key: Any) -> None:
        parts = list(key) if _is_tuple_like(key) else [key]
        given = sum(_covers(self.session, p) for p in parts)
        ndim = self.view.ndim
        single = isinstance(key, (int, SymInt)) or (
            isinstance(key, flambeau.Tensor) and self.session.fake(key).ndim == 0
        )
        if ndim == 0 and len(parts) == 1 and single and given:
            raise IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
            )
        if given > ndim:
            raise IndexError(f"too many indices for tensor of dimension {ndim}")
        self.left_over = ndim - given
        self.mixed = any(map(self.is_array, parts))
        for p in parts:
            self.part(p)

    def is_array(self, p: Any) -> bool:
        """An index tensor that does not merely select."""
        if isinstance(p, flambeau.Tensor):
            return not _is_place(self.session.fake(p))
        return isinstance(p, (bool, list, tuple)) or isinstance(p, np.ndarray) and p.ndim > 0

    @property
    def selects(self) -> bool:
        """All that was collected selects."""
        return bool(self.indices) and all(i is None or _is_place(i) for i in self.indices)

    def part(self, p: Any) -> None:
        if p is None:
            self.view = self.session.op("unsqueeze", self.view, self.dim)
            self.dim += 1
        elif p is Ellipsis:
            self.dim += self.left_over
            self.left_over = 0
        elif isinstance(p, bool):
            self.truth(p)
        elif isinstance(p, slice):
            self.slice(p)
        elif isinstance(p, flambeau.Tensor):
            self.tensor(self.session.fake(p))
        elif isinstance(p, np.ndarray) and p.ndim == 0:
            self.part(p.item())
        elif isinstance(p, (np.ndarray, list, tuple)):
            made = flambeau.tensor(p, device="cpu")
            if made.numel() == 0 and made.is_floating_point():
                made = made.to(flambeau.int64)
            self.tensor(self.session.attach(made).fake)
        elif isinstance(p, (int, SymInt)) or hasattr(p, "__index__"):
            self.select(p if isinstance(p, SymInt) else p.__index__())
        else:
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables "
                f"are valid indices (got {type(p).__name__})"
            )

    def select(self, i: Dim) -> None:
        n = self.view.shape[self.dim]
        if not (i >= -n and i < n):
            raise IndexError(f"index {i} is out of bounds for dimension {self.dim} with size {n}")
        self.view = self.session.op("select", self.view, self.dim, i)

    def slice(self, s: slice) -> None:
        n = self.view.shape[self.dim]
        step = 1 if s.step is None else s.step
        if not step > 0:
            raise ValueError("step must be greater than zero")
        whole = (s.start is None or (isinstance(s.start, int) and s.start == 0)) and s.stop is None
        if not (whole and step == 1):
            start, stop = _clamped(s.start, 0, n), _clamped(s.stop, n, n)
            if stop < start:
                stop = start
            if not (start == 0 and stop == n and step == 1):
                self.view = self.session.op("slice", self.view, self.dim, start, stop, step)
        self.dim += 1

    def truth(self, on: bool) -> None:
        self.view = self.session.op("unsqueeze", self.view, self.dim)
        self.at(self.session.op("zeros", [int(on)], flambeau.int64, None))
        self.dim += 1

    def tensor(self, t: Fake) -> None:
        if t.ndim == 0 and _is_mask(t):
            raise DataDependent("a mask that is a traced 0-d tensor")
        if _is_place(t):
            self.place(t)
            return
        covered = t.ndim if _is_mask(t) else 1
        self.at(t)
        self.dim += covered
        self.extra += covered - 1

    def place(self, t: Fake) -> None:
        if t.dtype not in (flambeau.int32, flambeau.int64):
            t = self.session.op("_to_copy", t, flambeau.int64)
        if self.mixed:
            self.view = stand_in(self.session, self.view, [None] * self.dim + [t])
        else:
            self.at(t)
            self.dim += 1

    def at(self, t: Fake) -> None:
        at = self.dim - self.extra
        self.indices += [None] * (at - len(self.indices))
        self.indices.append(t)


def _clamped(i: Any, default: Dim, n: Dim) -> Dim:
    """An end of a slice within [0, n]."""
    if i is None:
        return default
    i = i if isinstance(i, SymInt) else i.__index__()
    if i < 0:
        i = i + n
        return i if i >= 0 else 0
    return i if i <= n else n


def get_item(session: Session, name: str, x: Any, key: Any) -> Any:
    fake = session.fake(x)
    indexer = Indexer(session, fake)
    indexer.run(key)
    if indexer.selects:
        return session.shown(stand_in(session, indexer.view, indexer.indices))
    if indexer.indices:
        return session.shown(session.op("index", indexer.view, indexer.indices))
    view = session.op("alias", fake) if indexer.view is fake else indexer.view
    return session.shown(view)


def _only_mask(indices: list[Fake | None]) -> Fake | None:
    """The mask, where it is all that an index holds."""
    last = indices[-1]
    alone = all(i is None for i in indices[:-1])
    return last if last is not None and alone and last.dtype is flambeau.bool else None


def _fill_where(session: Session, view: Fake, dim: int, mask: Fake, v: Fake) -> None:
    """`view[..., mask] = v` of one value: how many elements that are need not be known."""
    for d, n in enumerate(mask.shape):
        if not n == view.shape[dim + d]:
            raise IndexError(
                f"The shape of the mask {list(mask.shape)} at index {d} does not match the shape "
                f"of the indexed tensor {list(view.shape)} at index {dim + d}"
            )
    for _ in range(view.ndim - dim - mask.ndim):
        mask = session.op("unsqueeze", mask, mask.ndim)
    session.op("copy_", view, session.op("where", mask, v, view), False)


def set_item(session: Session, name: str, x: Any, key: Any, value: Any) -> None:
    fake = session.fake(x)
    indexer = Indexer(session, fake)
    indexer.run(key)
    view = indexer.view
    given = session.fake(value) if isinstance(value, flambeau.Tensor) else None
    if given is None and fake.dtype in _HALVES and not fits(value, fake.dtype):
        wide = session.op("full", [], value, flambeau.float32, None)
        given = session.op("_to_copy", wide, fake.dtype)  # an infinity
    if indexer.indices:
        v = session.op("full", [], value, fake.dtype, None) if given is None else given
        if indexer.selects:  # eager copies to a view: sizes and dtypes may differ
            if repeats(view):
                raise DataDependent("x[i] = v with a traced i, and elements of x share memory")
            v = _without_leading_ones(
                session, v, view.ndim - sum(i is not None for i in indexer.indices)
            )
            v = v if v.dtype is view.dtype else session.op("_to_copy", v, view.dtype)
        mask = _only_mask(indexer.indices)
        sized = mask is not None and not any(map(only_run, mask.shape))
        if mask is not None and sized and v.ndim == 0 and v.dtype is view.dtype:
            _fill_where(session, view, len(indexer.indices) - 1, mask, v)
        else:
            session.op("index_put_", view, indexer.indices, v, False)
    elif given is None:
        session.op("fill_", view, value)
    else:
        v = _without_leading_ones(session, given, view.ndim)
        session.op("copy_", view, v, False)


def _without_leading_ones(session: Session, v: Fake, ndim: int) -> Fake:
    """Leading sizes of 1 do not count where something is assigned."""
    shape = list(v.shape)
    while len(shape) > ndim and shape[0] == 1:
        shape.pop(0)
    if len(shape) == v.ndim:
        return v
    made: Fake = session.op("view", v, shape)
    return made
