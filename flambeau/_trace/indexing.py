"""x[key] and x[key] = value under a trace, as views and calls of `index` and `index_put_`.

What the parts of a key are and which dims they stand for is read below Python, as eager's keys are
(csrc/python/indexing.cpp).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flambeau
from flambeau import _C

from .._ir.enumerations import KeyKind
from .._ir.symscalar import SymInt, only_run
from .fake import Fake, repeats
from .meanings import DataDependent, fits
from .stand_ins import stand_in

if TYPE_CHECKING:
    from .session import Session

_HALVES = (flambeau.float16, flambeau.bfloat16)


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

    def __init__(self, session: Session, x: Fake, key: Any) -> None:
        self.session = session
        self.view = x
        self.indices: list[Fake | None] = []
        parts, places = _C._key_parts(key, x.ndim, self.seen)
        dropped = 0
        for what, at, *rest in parts:
            if what == "index":
                self.at(at, *rest)
            elif what == "place":
                self.view = stand_in(session, self.view, [None] * at + [_whole(session, *rest)])
            elif what == "truth":
                self.view = session.op("unsqueeze", self.view, at)
                slot, on = rest
                self.at(slot, session.op("zeros", [int(on)], flambeau.int64, None))
            elif what == "select":
                self.select(at, dropped, *rest)
            else:
                given = (x if x is None or isinstance(x, SymInt) else x.__index__() for x in rest)
                self.view = session.op(what, self.view, at, *given)
            dropped += (what in ("select", "place")) - (what in ("unsqueeze", "truth"))
        #: all that was collected selects
        self.selects = places and bool(self.indices)
        if self.selects:
            self.indices = [i if i is None else _whole(session, i) for i in self.indices]

    def seen(self, p: Any) -> tuple[Fake, int, int]:
        """A tensor, array or list of the key: what stands for it, its dims, what it is."""
        if isinstance(p, flambeau.Tensor):
            fake = self.session.fake(p)
        else:
            made = flambeau.tensor(p, device="cpu")
            if made.numel() == 0 and made.is_floating_point():
                made = made.to(flambeau.int64)
            fake = self.session.fake(made)
        if _is_mask(fake) and fake.ndim == 0:
            raise DataDependent("a mask that is a traced 0-d tensor")
        kind = KeyKind.Place if _is_place(fake) else KeyKind.Array
        return fake, fake.ndim, KeyKind.Mask if _is_mask(fake) else kind

    def select(self, dim: int, dropped: int, i: Any) -> None:
        i = i if isinstance(i, SymInt) else i.__index__()
        try:
            self.view = self.session.op("select", self.view, dim, i)
        except IndexError:
            raise IndexError(
                f"index {i} is out of bounds for dimension {dim + max(dropped, 0)} with size "
                f"{self.view.shape[dim]}"
            ) from None

    def at(self, slot: int, t: Fake) -> None:
        self.indices += [None] * (slot - len(self.indices))
        self.indices.append(t)


def _whole(session: Session, t: Fake) -> Fake:
    """A place in a dtype that `index` takes."""
    if t.dtype in (flambeau.int32, flambeau.int64):
        return t
    made: Fake = session.op("_to_copy", t, flambeau.int64)
    return made


def get_item(session: Session, name: str, x: Any, key: Any) -> Any:
    fake = session.fake(x)
    indexer = Indexer(session, fake, key)
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
    indexer = Indexer(session, fake, key)
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
