"""`assert_close`: two values agree within a tolerance, or the message says where they do not.

Owns the pairing of containers, the checks of attributes, the default tolerances by dtype and the
message. Two numbers agree where |actual - expected| <= atol + rtol * |expected|.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import flambeau as fb

__all__ = ["assert_close", "default_tolerances"]

#: dtype -> (rtol, atol); exact for those that are not here
_TOLERANCES = {
    fb.float16: (1e-3, 1e-5),
    fb.bfloat16: (1.6e-2, 1e-5),
    fb.float32: (1.3e-6, 1e-5),
    fb.float64: (1e-7, 1e-7),
    fb.complex64: (1.3e-6, 1e-5),
    fb.complex128: (1e-7, 1e-7),
}
_NUMBERS = (bool, int, float, complex, np.bool_, np.number)
_Message = str | Callable[[str], str] | None


def default_tolerances(*values: Any) -> tuple[float, float]:
    """(rtol, atol) for tensors or dtypes: the largest of theirs."""
    dtypes = [v.dtype if isinstance(v, fb.Tensor) else v for v in values]
    pairs = [_TOLERANCES.get(d, (0.0, 0.0)) for d in dtypes]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


def _pairs(actual: Any, expected: Any, path: str) -> Iterator[tuple[Any, Any, str]]:
    """The leaves of two values of the same structure."""
    text = isinstance(actual, str) or isinstance(expected, str)
    sequences = isinstance(actual, Sequence) and isinstance(expected, Sequence) and not text
    if sequences:
        if len(actual) != len(expected):
            raise AssertionError(
                f"The length of the sequences mismatch: {len(actual)} != {len(expected)}{path}"
            )
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            yield from _pairs(a, e, _inside(path, i))
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            missing = sorted(map(repr, expected.keys() - actual.keys()))
            more = sorted(map(repr, actual.keys() - expected.keys()))
            raise AssertionError(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: [{', '.join(missing)}]\n"
                f"Additional keys in the actual mapping: [{', '.join(more)}]{path}"
            )
        for key in actual:
            yield from _pairs(actual[key], expected[key], _inside(path, key))
    else:
        yield actual, expected, path


def _inside(path: str, key: Any) -> str:
    return (path or "\n\nThe failure occurred for item ") + f"[{key!r}]"


def _tensor(value: Any, like: Any) -> Any:
    """A leaf as a tensor; numbers by their type, as wide as can be."""
    if isinstance(value, fb.Tensor):
        return value
    if isinstance(value, np.ndarray):
        return fb.from_numpy(value)
    if isinstance(value, _NUMBERS):
        plain = value.item() if isinstance(value, np.generic) else value
        kinds = {bool: fb.bool, int: fb.int64, float: fb.float64, complex: fb.complex128}
        return fb.tensor(plain, dtype=kinds[type(plain)])
    raise TypeError(
        f"No comparison pair was able to handle inputs of type {type(value)} and {type(like)}."
    )


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: _Message = None,
) -> None:
    """Raise unless two values agree: tensors, arrays, numbers, None, or containers of these.

    Args:
        actual: what was computed.
        expected: what it should be.
        allow_subclasses: accept two types of which one derives from the other.
        rtol, atol: tolerances, both or neither; by default they follow from the dtypes.
        equal_nan: two NaN agree.
        check_device, check_dtype, check_layout, check_stride: compare these too.
        msg: the message of a failure, or a function of the usual one.

    Raises:
        AssertionError: they do not agree.
        TypeError: something in them cannot be compared.
        ValueError: one tolerance is given without the other.

    >>> torch.testing.assert_close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0 + 1e-7]))
    """
    if (rtol is None) != (atol is None):
        raise ValueError(
            f"assert_close: expected rtol and atol both or neither, got rtol={rtol}, atol={atol}"
        )
    checks = (check_device, check_dtype, check_layout, check_stride)
    try:
        for a, e, path in _pairs(actual, expected, ""):
            _compare(a, e, path, rtol, atol, equal_nan, checks, allow_subclasses)
    except AssertionError as error:
        if msg is None:
            raise
        raise AssertionError(msg(str(error)) if callable(msg) else msg) from None


def _compare(
    actual: Any,
    expected: Any,
    path: str,
    rtol: float | None,
    atol: float | None,
    equal_nan: bool,
    checks: tuple[bool, bool, bool, bool],
    allow_subclasses: bool,
) -> None:
    if actual is None or expected is None:
        if actual is not expected:
            raise AssertionError(f"None mismatch: {actual} is not {expected}{path}")
        return
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    numbers = isinstance(actual, _NUMBERS) and isinstance(expected, _NUMBERS)
    if not numbers and (
        not related or (not allow_subclasses and type(actual) is not type(expected))
    ):
        raise TypeError(
            "No comparison pair was able to handle inputs of type "
            f"{type(actual)} and {type(expected)}.{path}"
        )
    a, e = _tensor(actual, expected).detach(), _tensor(expected, actual).detach()
    device, dtype, layout, stride = checks
    differ = (
        ("shape", a.shape != e.shape, tuple(a.shape), tuple(e.shape)),
        ("device", device and a.device != e.device, a.device, e.device),
        ("dtype", dtype and not numbers and a.dtype != e.dtype, a.dtype, e.dtype),
        ("layout", layout and a.layout != e.layout, a.layout, e.layout),
    )
    for what, wrong, left, right in differ:
        if wrong:
            raise AssertionError(
                f"The values for attribute '{what}' do not match: {left} != {right}.{path}"
            )
    if stride and a.stride() != e.stride():
        raise AssertionError(
            f"The values for attribute 'stride()' do not match: {a.stride()} != {e.stride()}.{path}"
        )
    if rtol is None or atol is None:
        rtol, atol = default_tolerances(a, e)
    _values(a, e, path, rtol, atol, equal_nan, numbers)


def _values(
    a: Any, e: Any, path: str, rtol: float, atol: float, equal_nan: bool, numbers: bool
) -> None:
    if a.is_meta or a.numel() == 0:
        return
    common = fb.promote_types(a.dtype, e.dtype)
    a, e = a.to(common), e.to(device=a.device, dtype=common)
    close = fb.isclose(a, e, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if bool(close.all()):
        return
    kind = "Scalars" if numbers or a.ndim == 0 else "Tensor-likes"
    exact = rtol == 0 and atol == 0
    word = "equal" if exact else "close"
    wide = a.dtype if a.dtype.is_complex else fb.float64
    difference = (a.to(wide) - e.to(wide)).abs()
    difference = fb.where(close, fb.zeros_like(difference), difference)
    relative = difference / e.to(wide).abs()
    relative = fb.where(close, fb.zeros_like(relative), relative)
    if kind == "Scalars":
        lines = [
            f"{kind} are not {word}!\n",
            f"Expected {e.item()} but got {a.item()}.",
            f"Absolute difference: {difference.item()}{_allowed(atol, exact)}",
            f"Relative difference: {relative.item()}{_allowed(rtol, exact)}",
        ]
    else:
        wrong, total = int((~close).sum()), a.numel()
        lines = [
            f"{kind} are not {word}!\n",
            f"Mismatched elements: {wrong} / {total} ({100 * wrong / total:.1f}%)",
            f"Greatest absolute difference: {_greatest(difference)}{_allowed(atol, exact)}",
            f"Greatest relative difference: {_greatest(relative)}{_allowed(rtol, exact)}",
        ]
    raise AssertionError("\n".join(lines) + path)


def _allowed(tolerance: float, exact: bool) -> str:
    return "" if exact else f" (up to {tolerance} allowed)"


def _greatest(values: Any) -> str:
    flat = values.reshape(-1)
    at = int(fb.argmax(fb.where(flat.isnan(), fb.full_like(flat, float("inf")), flat)))
    index = tuple(int(i) for i in np.unravel_index(at, tuple(values.shape)))
    return f"{flat[at].item()} at index {index}"
