"""A small stand-in for Triton: emitted modules run over NumPy arrays, one program after another.

It knows just the vocabulary that the emitter uses, and is stricter than the real thing: elements
that a mask leaves out are poisoned, addresses are checked against the storage, two elements of one
store may not share a place. `/` and `%` of whole numbers are C's, as on a GPU.
"""

from __future__ import annotations

import ctypes
import sys
import types
from typing import Any

import numpy as np
from scipy import special

_MEMORY = {
    "bool": np.bool_, "bfloat16": np.uint16, "float16": np.float16, "float32": np.float32,
    "float64": np.float64,
    **{f"{u}int{n}": np.dtype(f"{u}int{n}") for u in ("", "u") for n in (8, 16, 32, 64)},
}  # fmt: skip
BFLOAT16 = "bfloat16"  # a tile of it holds float32s that are rounded


def _vanishing(f: Any) -> Any:
    """A Bessel function, which is zero at infinity where it is defined there."""
    return lambda x: np.where(np.isinf(x) & ~np.isnan(f(np.copysign(1.0, x))), 0.0, f(x))


#: function of libdevice -> the same in NumPy
LIBDEVICE = {
    **{n: getattr(np, n) for n in "exp exp2 expm1 log log2 log10 log1p".split()},
    **{n: getattr(np, n) for n in "sin cos tan sinh cosh tanh".split()},
    **{n: getattr(np, "arc" + n[1:]) for n in "asin acos atan asinh acosh atanh atan2".split()},
    **{n: getattr(np, n) for n in "trunc rint copysign fmod nextafter hypot".split()},
    **{n: getattr(special, n) for n in "erf erfc erfcx".split()},
    # At infinities and zeros SciPy's are not the C library's, which libdevice follows.
    **{n: _vanishing(getattr(special, n)) for n in "j0 y0 y1".split()},
    "j1": lambda x: np.where(np.isinf(x), np.copysign(0.0, x), special.j1(x)),
    "erfinv": lambda x: np.copysign(special.erfinv(x), x),
    "lgamma": lambda x: np.where(np.isinf(x), np.inf, special.gammaln(x)),
    "pow": np.power, "normcdfinv": special.ndtri,
    "cyl_bessel_i0": special.i0, "cyl_bessel_i1": special.i1,
}  # fmt: skip


class Tile(np.ndarray):
    """A value of a kernel."""

    def to(self, dtype: Any, bitcast: bool = False) -> Tile:
        if isinstance(dtype, str):
            return tile(rounded(np.asarray(self)))
        return self.view(dtype) if bitcast else self.astype(dtype)

    def __floordiv__(self, other: Any) -> Tile:
        a, b = (np.asarray(x, dtype=np.result_type(self, other)) for x in (self, other))
        assert a.dtype.kind in "iu"
        zero = b == 0
        return tile((a - np.fmod(a, b + zero)) // (b + zero))

    def __mod__(self, other: Any) -> Tile:
        zero = np.asarray(other) == 0
        return tile(np.fmod(self, np.where(zero, 1, other).astype(np.asarray(self).dtype)))


def tile(x: Any) -> Tile:
    return np.asarray(x).view(Tile)


def rounded(x: np.ndarray) -> np.ndarray:
    """float32s rounded to bfloat16, ties to even."""
    bits = x.astype(np.float32).view(np.uint32)
    up = bits + 0x7FFF + ((bits >> 16) & 1)
    return np.where(np.isnan(x), x, (up & 0xFFFF0000).astype(np.uint32).view(np.float32))


class Pointer:
    """Memory of a tensor from its first element to the end of its storage, and places in it."""

    def __init__(self, memory: np.ndarray, dtype: str, places: Any = 0) -> None:
        self.memory, self.dtype, self.places = memory, dtype, np.asarray(places)

    def __add__(self, offset: Any) -> Pointer:
        return Pointer(self.memory, self.dtype, self.places + np.asarray(offset, dtype=np.int64))


def pointer(x: Any) -> Pointer:
    dtype = str(x.dtype).rpartition(".")[2]
    kind = np.dtype(_MEMORY[dtype])
    count = x.untyped_storage().nbytes() // kind.itemsize - x.storage_offset()
    raw = (ctypes.c_char * (count * kind.itemsize)).from_address(x.data_ptr())
    return Pointer(np.frombuffer(raw, dtype=kind), dtype)


def _chosen(p: Pointer, mask: Any, shape: Any = ()) -> tuple[np.ndarray, np.ndarray]:
    places, on = np.broadcast_arrays(p.places, True if mask is None else np.asarray(mask))
    bad = on & ((places < 0) | (places >= p.memory.size))
    assert not bad.any(), f"address {places[bad][:3]} is outside of {p.memory.size} elements"
    return places, on


def load(p: Pointer, mask: Any = None) -> Tile:
    places, on = _chosen(p, mask)
    assert mask is None or places.shape == p.places.shape, "a mask is wider than its pointers"
    x = p.memory[np.where(on, places, 0)]
    if p.dtype == BFLOAT16:
        x = (x.astype(np.uint32) << 16).view(np.float32)
    poison = np.nan if x.dtype.kind == "f" else 1 if x.dtype.kind == "b" else 77
    return tile(np.where(on, x, np.asarray(poison, dtype=x.dtype)))


def store(p: Pointer, value: Any, mask: Any = None) -> None:
    places, on = _chosen(p, mask)
    assert places.shape == p.places.shape, "a mask is wider than its pointers"
    value = np.broadcast_to(np.asarray(value), places.shape)
    if p.dtype == BFLOAT16:
        assert np.array_equal(rounded(value), value, equal_nan=True), "not rounded to bfloat16"
        value = (value.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    assert value.dtype == p.memory.dtype, f"{value.dtype} is stored as {p.memory.dtype}"
    assert np.unique(places[on]).size == places[on].size, "two elements have one place"
    p.memory[places[on]] = value[on]


def _reduce(x: Any, axis: int, combine: Any, keep_dims: bool) -> Tile:
    assert axis == 1 and keep_dims
    total = x[:, :1]
    for k in range(1, x.shape[1]):
        total = combine(total, x[:, k : k + 1])
    return total


def _where(c: Any, a: Any, b: Any) -> Tile:
    """A plain number takes the other side's type; two are float32 or int32."""
    if not isinstance(a, np.ndarray) and not isinstance(b, np.ndarray):
        a = np.asarray(a, dtype=np.float32 if isinstance(a, float) else np.int32)
    if not isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        a = np.asarray(a, dtype=b.dtype)
    elif isinstance(a, np.ndarray) and not isinstance(b, np.ndarray):
        b = np.asarray(b, dtype=a.dtype)
    return tile(np.where(c, a, b))


def _whole(f: Any) -> Any:
    return lambda x, axis, keep_dims: tile(f(np.asarray(x), axis=axis, keepdims=keep_dims))


class Kernel:
    """What `triton.jit` makes: called, a device function; indexed by a grid, a launch."""

    place = (0, 0)

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def launch(*args: Any, num_warps: int) -> None:
            assert num_warps in (4, 8, 16, 32)
            lifted = [pointer(x) if hasattr(x, "data_ptr") else tile(np.int64(x)) for x in args]
            with np.errstate(all="ignore"):
                for x in range(grid[0]):
                    for y in range(grid[1] if len(grid) > 1 else 1):
                        Kernel.place = (x, y)
                        self.function(*lifted)

        return launch


def _jit(function: Any = None, do_not_specialize: Any = ()) -> Any:
    return Kernel(function) if function else lambda f: Kernel(f)


def _same_type(f: Any) -> Any:
    def called(*xs: Any) -> Tile:
        assert len({np.asarray(x).dtype for x in xs}) == 1
        return tile(np.asarray(f(*map(np.asarray, xs))).astype(xs[0].dtype))

    return called


def _arange(start: int, end: int) -> Tile:
    assert end > start and (end - start) & (end - start - 1) == 0, "tiles are powers of two"
    return tile(np.arange(start, end, dtype=np.int32))


_TL = {
    **{n: np.dtype(k) for n, k in _MEMORY.items() if n not in ("bool", BFLOAT16)},
    "int1": np.dtype(bool), "bfloat16": BFLOAT16, "jit": _jit, "load": load, "store": store,
    "arange": _arange, "program_id": lambda axis: tile(np.int32(Kernel.place[axis])),
    "where": _where, "full": lambda shape, x, dtype: tile(np.full(shape, x, dtype)),
    "broadcast_to": lambda x, shape: tile(np.broadcast_to(x, shape)),
    "maximum": lambda a, b, propagate_nan=None: tile(np.maximum(a, b)),
    "minimum": lambda a, b, propagate_nan=None: tile(np.minimum(a, b)),
    "PropagateNan": types.SimpleNamespace(ALL=True), "abs": lambda x: tile(np.abs(x)),
    "floor": lambda x: tile(np.floor(x)), "ceil": lambda x: tile(np.ceil(x)),
    "sqrt": lambda x: tile(np.sqrt(x)), "sqrt_rn": lambda x: tile(np.sqrt(x)),
    "div_rn": lambda a, b: tile(np.divide(a, b, dtype=np.float32)),
    "sum": _whole(np.sum), "max": _whole(np.max), "min": _whole(np.min), "reduce": _reduce,
    "debug_barrier": lambda: None,
}  # fmt: skip


def load_module(text: str) -> types.ModuleType:
    """The module of an emitted text, its Triton replaced."""
    lib = types.SimpleNamespace(**{n: _same_type(f) for n, f in LIBDEVICE.items()})
    fakes = {
        name: types.ModuleType(name)
        for name in ("triton", "triton.language", "triton.language.extra")
    }
    for name, value in _TL.items():
        setattr(fakes["triton" if name == "jit" else "triton.language"], name, value)
    fakes["triton"].language = fakes["triton.language"]  # type: ignore[attr-defined]
    fakes["triton.language.extra"].libdevice = lib  # type: ignore[attr-defined]
    before = {name: sys.modules.get(name) for name in fakes}
    sys.modules.update(fakes)
    try:
        module = types.ModuleType("emitted")
        exec(compile(text, "emitted", "exec"), module.__dict__)
    finally:
        for name, old in before.items():
            if old is None:
                del sys.modules[name]
            else:
                sys.modules[name] = old
    return module
