"""Functions and methods that are no entries: what they mean under a trace, made of entries.

Each stands for the hand-written C++ of csrc/python of the same name. `FUNCTIONS` maps the name of a
binding to a function of the session, the name and the bound arguments in order.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import flambeau
from flambeau import _C

from .dtypes import PYTHON_DTYPES
from .indexing import get_item, set_item
from .tensor import FakeTensor

if TYPE_CHECKING:
    from .session import Session


def converted(
    session: Session,
    x: Any,
    dtype: Any,
    copy: bool = False,
    memory_format: Any = None,
    device: Any = None,
) -> Any:
    """x.to(...): itself when nothing changes."""
    fake = session.fake(x)
    dtype = PYTHON_DTYPES.get(dtype, dtype)
    if device is not None and device.type == fake.device.type:
        device = None
    return session.shown(session.op("to", fake, dtype, copy, memory_format, device))


def _device(args: Any) -> Any:
    """The device among arguments, by whatever name it is given."""
    for a in args:
        if isinstance(a, (flambeau.device, str)):
            return flambeau.device(a)
    return None


def to(session: Session, name: str, x: Any, *args: Any) -> Any:
    """The three signatures of x.to, told apart by what the arguments are."""
    dtype = copy = memory_format = None
    device = _device(args)
    for a in args:
        if isinstance(a, flambeau.Tensor):
            dtype, device = a.dtype, a.device
        elif isinstance(a, flambeau.dtype) or a in PYTHON_DTYPES:
            dtype = a
        elif isinstance(a, flambeau.memory_format):
            memory_format = a
    # Booleans are non_blocking, then copy.
    flags = [a for a in args if isinstance(a, bool)]
    copy = len(flags) > 1 and flags[1]
    return converted(session, x, dtype, bool(copy), memory_format, device)


def _as(dtype: Any) -> Callable[..., Any]:
    def convert(session: Session, name: str, x: Any, memory_format: Any = None) -> Any:
        return converted(session, x, dtype, False, memory_format)

    return convert


def type_as(session: Session, name: str, x: Any, other: Any) -> Any:
    return converted(session, x, other.dtype)


def type_(session: Session, name: str, x: Any, dtype: Any = None, *rest: Any) -> Any:
    if dtype is None:
        return flambeau.empty(0, dtype=x.dtype, device="cpu").type()
    if isinstance(dtype, str):
        dtype = flambeau.empty(0, device="cpu").type(dtype).dtype
    return converted(session, x, getattr(dtype, "dtype", dtype))


def view(session: Session, name: str, x: Any, size: Any) -> Any:
    if isinstance(size, flambeau.dtype):
        return session.shown(session.op("view_dtype", session.fake(x), size))
    sizes = list(size) if isinstance(size, (list, tuple)) else [size]
    return session.shown(session.op("view", session.fake(x), sizes))


def tensor(session: Session, name: str, data: Any, *args: Any) -> Any:
    """Data of Python: made once, copied anew in every run."""
    dtype = next((a for a in args if isinstance(a, flambeau.dtype)), None)
    device = _device(args) or session.default_device()
    if isinstance(data, flambeau.Tensor):
        return copied(session, data, dtype, device)
    if _has_fakes(data):
        return converted(session, stacked(session, data, dtype), None, device=device)
    constant = flambeau.tensor(data, dtype=dtype, device="cpu")
    made = session.attach(constant)
    if device is not None and device.type != "cpu":
        return converted(session, made, None, device=device)
    fresh = session.op("clone", made.fake, None)
    session.recorder.constants[fresh.value] = constant
    return session.shown(fresh)


def copied(session: Session, x: Any, dtype: Any, device: Any) -> Any:
    """torch.tensor(x) of a tensor: its data anew, without history."""
    at = session.recorder.env.locate()
    file, line = ("", 0) if at is None else (at.file, at.line)
    words = (
        "To copy a tensor, write sourceTensor.detach().clone() rather than tensor(sourceTensor)."
    )
    warnings.warn_explicit(words, UserWarning, file, line)
    session.recorder.grad = False
    fake = session.op("alias", session.fake(x))
    device = device if device is not None and device.type != fake.device.type else None
    return session.shown(session.op("to", fake, dtype, True, None, device))


def _has_fakes(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(map(_has_fakes, x))
    return isinstance(x, FakeTensor)


def stacked(session: Session, data: Any, dtype: Any) -> Any:
    """Nested sequences with traced tensors in them: numbers, where the first items end."""

    def make(x: Any, depth: int) -> Any:
        if isinstance(x, (list, tuple)):
            return session.op("stack", [make(item, depth - 1) for item in x], 0)
        fake = session.tensor(x).fake
        if depth > 0 or fake.ndim == 0:
            return session.op("clone", fake, None)
        if fake.numel() != 1:
            raise ValueError(
                "only one element tensors can be converted to Python scalars, got shape "
                f"{list(fake.shape)}"
            )
        return session.op("reshape", fake, [])

    depth, first = 0, data
    while isinstance(first, (list, tuple)) and first:
        depth, first = depth + 1, first[0]
    made = session.shown(make(data, depth))
    return converted(session, made, dtype) if dtype is not None else made


def new_tensor(session: Session, name: str, x: Any, data: Any, *args: Any) -> Any:
    """x.new_tensor(data): of its dtype and device, unless others are given."""
    given = [a for a in args if isinstance(a, (flambeau.dtype, flambeau.device, str))]
    return tensor(session, name, data, *given, x.dtype, x.device)


def as_tensor(session: Session, name: str, data: Any, dtype: Any = None, *rest: Any) -> Any:
    if isinstance(data, flambeau.Tensor):
        chosen = dtype if isinstance(dtype, flambeau.dtype) else None
        return converted(session, data, chosen, device=_device((dtype, *rest)))
    given = [a for a in (dtype, *rest) if isinstance(a, (flambeau.dtype, flambeau.device, str))]
    return tensor(session, name, data, *given)


def scalar_tensor(session: Session, name: str, number: Any, dtype: Any = None, *rest: Any) -> Any:
    dtype = dtype if isinstance(dtype, flambeau.dtype) else flambeau.get_default_dtype()
    device = _device(rest) or session.default_device()
    return session.shown(session.op("full", [], number, dtype, device))


def transposed(session: Session, name: str, x: Any) -> Any:
    """T, mT, H, mH, real and imag."""
    fake = session.fake(x)
    if name == "T":
        return session.shown(session.op("permute", fake, list(range(fake.ndim))[::-1]))
    if name in ("real", "imag"):
        return session.shown(session.op(name, fake))
    if name == "H" and fake.ndim not in (0, 2) or name != "H" and fake.ndim < 2:
        raise RuntimeError(f"tensor.{name} is only supported on matrices, got {fake.ndim}-D tensor")
    if fake.ndim:
        fake = session.op("transpose", fake, -2, -1)
    if name in ("H", "mH") and fake.dtype.is_complex:
        fake = session.op("conj", fake)
    return session.shown(fake)


def detach(session: Session, name: str, x: Any) -> Any:
    """The same data without history."""
    session.recorder.grad = False
    return session.shown(session.op("alias", session.fake(x)))


def seen_in_place(session: Session, name: str, x: Any, *args: Any) -> Any:
    """`x.unsqueeze_(0)` and its kin: the object shows its memory another way from now on."""
    if not session.may_change_geometry(x):
        raise NotImplementedError(f"{name}(): not traced on a tensor that came from outside")
    session.become(x, session.fake(session.method(name.removesuffix("_"), x, *args)))
    return x


def metadata(session: Session, name: str, *args: Any) -> Any:
    """Functions whose result is not traced: of dtypes and sizes alone."""
    return getattr(_C, name)(*args)


def numel(session: Session, name: str, x: Any) -> Any:
    return x.numel()


def unknown(session: Session, name: str, *args: Any) -> Any:
    raise NotImplementedError(f"{name}(): not traced")


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "__getitem__": get_item,
    "__setitem__": set_item,
    "to": to,
    "type": type_,
    "type_as": type_as,
    "view": view,
    "tensor": tensor,
    "new_tensor": new_tensor,
    "as_tensor": as_tensor,
    "asarray": as_tensor,
    "scalar_tensor": scalar_tensor,
    "promote_types": metadata,
    "can_cast": metadata,
    "numel": numel,
    "detach": detach,
    "cpu": lambda session, name, x, *rest: to(session, name, x, "cpu", *rest),
    **{
        f"as_{name}": _as(getattr(flambeau, dtype))
        for name, dtype in (
            ("float", "float32"), ("double", "float64"), ("half", "float16"),
            ("bfloat16", "bfloat16"), ("long", "int64"), ("int", "int32"), ("short", "int16"),
            ("char", "int8"), ("byte", "uint8"), ("bool", "bool"), ("cfloat", "complex64"),
            ("cdouble", "complex128"),
        )
    },
    **dict.fromkeys(("T", "mT", "H", "mH", "real", "imag"), transposed),
    **dict.fromkeys(
        "unsqueeze_ squeeze_ transpose_ t_ swapaxes_ swapdims_ as_strided_".split(), seen_in_place
    ),
}  # fmt: skip
