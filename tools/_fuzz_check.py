"""What must hold of any call: the findings of one `Call`.

A call raises one of the documented classes or gives a right result. A refused one leaves everything
as it was; an accepted one changes what it says it changes and nothing else; its results lie inside
their memory; strides do not matter; memory it took comes back.
"""

from __future__ import annotations

import ctypes
import gc
import math
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import flambeau as torch

from ._fuzz_draw import UNSTABLE, Call, names

REFUSALS = (
    RuntimeError,
    TypeError,
    ValueError,
    IndexError,
    NotImplementedError,
    OverflowError,
    ZeroDivisionError,
    MemoryError,
)
#: functions whose answer is about the layout, or that exist for some layouts alone
_OF_LAYOUT = (
    "view as_strided is_contiguous unfold set_ __ expand reshape ravel flatten squeeze_ transpose_ "
    "t_ swap unsqueeze_ numpy tolist is_non dim_order"
).split()

#: where PyTorch defines a function otherwise than NumPy does
_OTHER_THAN_NUMPY = {"sign": np.isnan}


def differentiate(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls `f` on leaves that require gradients and differentiates what it returns."""
    leaves = [t for t in tensors([args, kwargs]) if t.is_floating_point() or t.is_complex()]
    for t in leaves:
        t.requires_grad_()
    out = f(*args, **kwargs)
    roots = [t for t in tensors(out) if t.requires_grad]
    if roots and leaves:
        ones = [torch.ones_like(t) for t in roots]
        torch.autograd.grad(roots, leaves, ones, allow_unused=True)
    return out


def tensors(x: Any) -> Iterator[Any]:
    """All tensors in nested lists, tuples and dicts."""
    if isinstance(x, torch.Tensor):
        yield x
    elif isinstance(x, (list, tuple)):
        for v in x:
            yield from tensors(v)
    elif isinstance(x, dict):
        yield from tensors(list(x.values()))


def environment() -> dict[str, Any]:
    """Names that a printed call needs: `from tools.fuzz import *` gives the same."""
    return names() | {"G": differentiate}


def prepared(
    call: Call, change: Callable[[Any], Any] = lambda x: x
) -> tuple[Any, list[Any], dict[str, Any]]:
    """The function and its arguments, each tensor of them passed through `change`."""
    env = environment()
    args = [_deep(eval(a, env), change) for a in call.args]
    kwargs = {k: _deep(eval(v, env), change) for k, v in call.kwargs.items()}
    f = eval(call.target.text, env)
    return f, ([f, *args] if call.grad else args), kwargs


def _deep(x: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(x, torch.Tensor):
        return change(x)
    return type(x)(_deep(v, change) for v in x) if type(x) in (list, tuple) else x


def dense(x: Any) -> Any:
    """The same numbers, side by side; truths are 1 to 255 in turn, as any byte but 0 is true."""
    y = x.clone(memory_format=torch.contiguous_format)
    if y.dtype == torch.bool and y.device.type == "cpu":
        y.view(torch.uint8).mul_((torch.arange(y.numel()) % 255 + 1).to(torch.uint8).view(y.shape))
    return y


def perform(
    call: Call, change: Callable[[Any], Any] = lambda x: x
) -> tuple[Any, list[Any], dict[str, Any]]:
    f, args, kwargs = prepared(call, change)
    return (differentiate if call.grad else f)(*args, **kwargs), args, kwargs


class Memory:
    """The bytes behind tensors, and which of them a tensor reaches."""

    def __init__(self, ts: list[Any]) -> None:
        self.ts = ts
        self.geometry = [(tuple(t.shape), t.stride(), t.storage_offset(), t.dtype) for t in ts]
        self.bytes = [_bytes(t).copy() if t.device.type == "cpu" else None for t in ts]

    def changed(self, k: int, inside: bool) -> bool:
        """Did bytes of tensor k change: any at all, or such as it does not reach?"""
        t, before = self.ts[k], self.bytes[k]
        now = (tuple(t.shape), t.stride(), t.storage_offset(), t.dtype)
        if now != self.geometry[k]:
            return not inside
        if before is None:
            return False
        after = _bytes(t)
        if len(after) != len(before):
            return not inside
        if not inside:
            return not np.array_equal(before, after)
        reach = np.zeros(len(before), np.bool_)
        size = t.element_size()
        at = np.array([t.storage_offset()])
        for n, s in zip(t.shape, t.stride(), strict=True):
            at = (at[:, None] + np.arange(n) * s).ravel() if s else at[: len(at) * min(n, 1)]
        for b in range(size):
            reach[at * size + b] = True
        return not np.array_equal(before[~reach], after[~reach])


def _bytes(t: Any) -> Any:
    return np.frombuffer(t.untyped_storage(), np.uint8)


def outside(t: Any) -> bool:
    """Does the geometry of t leave its memory?"""
    if 0 in t.shape:
        return False
    last = t.storage_offset() + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True))
    return t.storage_offset() < 0 or (last + 1) * t.element_size() > t.untyped_storage().nbytes()


def differ(a: Any, b: Any) -> bool:
    """Are results unequal beyond what another order of summation explains?"""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        if a.shape != b.shape or a.dtype != b.dtype:
            return True
        if a.numel() > 1 << 22 or a.device.type != "cpu":
            return False
        x, y = (np.asarray(_wide(t)) for t in (a, b))
        with np.errstate(all="ignore"):
            scale = np.abs(y[np.isfinite(y)]).max(initial=1.0)
            if scale > 1e6:  # extremes: cancellation decides
                return False
            return not np.allclose(x, y, rtol=1e-2, atol=1e-2 * scale, equal_nan=True)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) != len(b) or any(differ(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return not math.isclose(a, b, rel_tol=1e-2, abs_tol=1e-2) and not (a != a and b != b)
    if isinstance(a, (int, bool, str)) and isinstance(b, (int, bool, str)):
        return a != b
    return False


def _wide(t: Any) -> Any:
    return t.detach().to(torch.complex128 if t.is_complex() else torch.float64).numpy()


def finding(call: Call, share: float) -> str | None:
    """What is wrong with the call, or None. `share` in [0, 1) picks the costly checks."""
    try:
        f, args, kwargs = prepared(call)
    except REFUSALS:
        return None  # an argument that cannot be made
    ts = list(tensors([args, kwargs]))
    few = sum(t.untyped_storage().nbytes() for t in ts) < 1 << 22
    memory = Memory(ts if few else [])
    try:
        got = (differentiate if call.grad else f)(*args, **kwargs)
    except REFUSALS as e:
        for k in range(len(memory.ts)):
            if memory.changed(k, inside=False) and not call.grad:
                why = f"{type(e).__name__}: {str(e)[:200]}"
                return f"half-written: refused ({why}), but argument tensor {k} changed"
        return _leak(call) if share > 0.98 else None
    except Exception as e:
        if call.wild and isinstance(e, (AttributeError, KeyError)):
            return None
        if isinstance(e, AssertionError) and "CUDA" in str(e):  # PyTorch's class for it
            return None
        return f"undocumented exception {type(e).__name__}: {str(e)[:300]}"
    return (
        _wrong(call, f, args, kwargs, memory, got)
        or _unequal(call, got, args, share)
        or (_leak(call) if share > 0.97 else None)
    )


def _wrong(
    call: Call, f: Any, args: list[Any], kwargs: dict[str, Any], memory: Memory, got: Any
) -> str | None:
    if isinstance(got, types.BuiltinFunctionType):
        return None
    results = list(tensors(got))
    for t in [*results, *memory.ts]:
        if t.device.type == "cpu" and outside(t):
            return f"a tensor of shape {tuple(t.shape)}, strides {t.stride()} leaves its memory"
    writes = list(tensors(kwargs.get("out")))
    asked = call.target.op is not None and any(p.name == "inplace" for p in call.target.op.params)
    if call.target.form == "inplace" or call.target.name.endswith("_") or asked:
        # Lists of tensors to change come first, as a lone one does.
        writes += [t for a in args[: 2 if call.grad else 1] for t in tensors(a)]
    if call.target.op is not None:  # statistics that a norm keeps
        names = [p.name for p in call.target.op.params]
        given = dict(zip(names, args[1:] if call.grad else args, strict=False)) | kwargs
        writes += tensors([v for name, v in given.items() if name.startswith("running_")])
    shared = {w.untyped_storage().data_ptr() for w in writes}
    for k, t in enumerate(memory.ts):
        written = any(w is t for w in writes)
        if t.untyped_storage().data_ptr() in shared and not (
            written and len(shared) == len(writes)
        ):
            continue
        if memory.changed(k, inside=written):
            return f"argument tensor {k} was changed" + (" outside the view" if written else "")
    return None


def _unordered(call: Call) -> bool:
    """`topk(sorted=False)`: the order is whatever the way through the layout gives."""
    if call.target.name != "topk":
        return False
    given = call.args[4] if len(call.args) > 4 else call.kwargs.get("sorted", "True")
    return given != "True"


def _unequal(call: Call, got: Any, args: list[Any], share: float) -> str | None:
    name = call.target.name
    unstable = name == "new" or any(u in name for u in (*UNSTABLE, *_OF_LAYOUT))
    if share > 0.6 or unstable or call.shared or call.grad or _unordered(call):
        return None
    try:
        want, twin, _ = perform(call, dense)
    except REFUSALS as e:
        if "not enough memory" in str(e):  # the first result still has it
            return None
        return f"strided arguments gave a result, dense ones {type(e).__name__}: {str(e)[:200]}"
    if differ(got, want):
        return "strided and dense arguments give different results"
    overlapping = ".expand(" in call.args[0] or ".as_strided(" in call.args[0]
    if name == "setitem" and not overlapping and differ(args[0], twin[0]):
        return "strided and dense targets differ after the assignment"
    return _not_as_numpy(call, want, twin) or _not_the_product(call, got, args)


def _not_as_numpy(call: Call, got: Any, args: list[Any]) -> str | None:
    op = call.target.op
    if op is None or op.kind != "pointwise" or call.kwargs or call.target.form != "function":
        return None
    reference = getattr(np, op.name, None)
    if not isinstance(reference, np.ufunc) or len(op.params) != reference.nin != len(args):
        return None
    if not all(isinstance(a, torch.Tensor) and a.dtype == torch.float64 for a in args):
        return None
    with np.errstate(all="ignore"):
        try:
            want = reference(*(a.numpy() for a in args))
        except TypeError:  # NumPy's function is for other types
            return None
    if not isinstance(got, torch.Tensor) or want.dtype.kind != "f":
        return None
    x = got.numpy()
    other = _OTHER_THAN_NUMPY.get(op.name)
    same = np.isclose(x, want, rtol=1e-9, atol=1e-300, equal_nan=True) | ~(
        np.abs(want) < 1e290
    ) & ~(np.abs(x) < 1e290)
    if other:
        same |= other(args[0].numpy())
    return None if same.all() else "result differs from NumPy's"


def _not_the_product(call: Call, got: Any, args: list[Any]) -> str | None:
    """A product of matrices against NumPy's of the same numbers in double precision."""
    if call.target.name not in ("mm", "bmm", "matmul", "mv") or call.kwargs:
        return None
    if call.target.form not in ("function", "method") or not isinstance(got, torch.Tensor):
        return None
    if not (got.is_floating_point() or got.is_complex()):
        return None
    a, b = (np.asarray(_wide(t)) for t in args)
    with np.errstate(all="ignore"):
        want, most = np.matmul(a, b), np.matmul(np.abs(a), np.abs(b))
        # Sums of k products, in float32 where the result is shorter, and the result's rounding.
        result, sums = torch.finfo(got.dtype), torch.finfo(torch.float32)
        bound = min(result.eps, sums.eps) * (a.shape[-1] + 2) * most + result.eps * np.abs(want)
        bound += result.tiny
        known = most < result.max / 4
        wrong = known & ~(np.abs(np.asarray(_wide(got)) - want) <= bound)
    return "result differs from NumPy's product" if wrong.any() else None


# Memory ------------------------------------------------------------------------------------------


class _Info(ctypes.Structure):
    _names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in _names.split()]


def _counter() -> Callable[[], int]:
    """Bytes that the process has allocated now."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "__sanitizer_get_current_allocated_bytes"):
        f = libc.__sanitizer_get_current_allocated_bytes
        f.restype = ctypes.c_size_t
        return lambda: int(f())
    info = libc.mallinfo2
    info.restype = _Info
    return lambda: int(info().uordblks) + int(torch.memory_stats()["live_bytes"])


allocated = _counter()


def _leak(call: Call) -> str | None:
    """Memory that repeating the call does not give back."""

    def repeat(n: int) -> int:
        before = allocated()
        for _ in range(n):
            try:
                perform(call)
            except Exception:
                pass
        gc.collect()
        return allocated() - before

    repeat(3)
    if repeat(4) <= 0 or repeat(4) <= 0:
        return None
    grown = [repeat(8), repeat(8), repeat(16)]
    if min(grown) <= 0 or grown[2] < 16 * 16 or grown[2] < 1.5 * max(grown[:2]):
        return None
    # Python's table of names grows too, ever more slowly; a leak goes on as it began.
    until = time.process_time() + 5
    while time.process_time() < until:
        repeat(64)
    if repeat(64) < 2 * grown[2]:
        return None
    return f"leak: {grown[2] // 16} bytes for each call"
