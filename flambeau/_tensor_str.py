"""How tensors print.

Owns the print options and what stands around the values in ``repr(tensor)``, which is PyTorch's to
the character; the values themselves are written by csrc/autograd/print.cpp, for C++ too.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import flambeau as fb

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]


@dataclasses.dataclass
class _PrintOptions:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PRINT_OPTS = _PrintOptions()

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def _count(name: str, value: Any) -> int:
    """A whole number, also written as one of another type."""
    try:
        whole = int(value)
        if whole == (float(value) if isinstance(value, str) else value) and whole >= 0:
            return whole
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"set_printoptions: {name} is a whole number of at least 0, got {value!r}")


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors print, for the whole process.

    Args:
        precision: digits after the point.
        threshold: tensors with more elements than this are summarised.
        edgeitems: elements shown at either end of each summarised dimension.
        linewidth: columns per line.
        profile: "default", "short" or "full", each a set of values for all of the above; the other
            arguments then override it.
        sci_mode: force scientific notation on or off; None, also when it is left out, lets the
            values decide.

    Raises:
        ValueError: a number of digits, elements or columns that is not whole.

    Example:
        >>> set_printoptions(precision=2)
        >>> fb.tensor([1.12345])
        tensor([1.12])
        >>> set_printoptions(profile="default")
    """
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    chosen = dict(_PROFILES.get(profile, {})) if profile is not None else {}
    for name, value in given.items():
        if value is not None:
            chosen[name] = value if name == "threshold" else _count(name, value)
    for name, value in chosen.items():
        setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The current options, as keyword arguments for ``set_printoptions``."""
    return dataclasses.asdict(PRINT_OPTS)


@contextlib.contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Sets print options within a ``with`` block; takes the arguments of ``set_printoptions``."""
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


def _contents(tensor: Any, indent: int) -> str:
    o = PRINT_OPTS
    return fb.Tensor._values_text(
        tensor, indent, o.precision, o.threshold, o.edgeitems, o.linewidth, o.sci_mode
    )


_tensor_str = _contents  # the name by which programs import it


def _dtype_goes_without_saying(dtype: Any) -> bool:
    default = fb.get_default_dtype()
    if dtype.is_complex:
        return dtype == (fb.complex128 if default == fb.float64 else fb.complex64)
    return dtype in (default, fb.int64, fb.bool)


def _suffixes(tensor: Any) -> list[str]:
    """What follows the values: device, size, dtype, as far as the values do not show them."""
    words = []
    if tensor.device.type != "cpu":
        words.append(f"device='{tensor.device}'")
    size, dtype = f"size={tuple(tensor.shape)}", f"dtype={tensor.dtype}"
    if tensor.device.type == "meta" or tensor.numel() == 0:
        if tensor.device.type == "meta" or tensor.dim() != 1:
            words.append(size)
        if tensor.dtype != fb.get_default_dtype():
            words.append(dtype)
        return words
    if not PRINT_OPTS.edgeitems:
        words.append(size)
    if not _dtype_goes_without_saying(tensor.dtype):
        words.append(dtype)
    return words


def _grad_suffix(tensor: Any) -> list[str]:
    try:
        node = tensor.grad_fn
    except RuntimeError:
        # Asking for it may have to rebuild the history of a view that was changed in place where
        # gradients were off, which is an error; printing is not the place to report it.
        return ["grad_fn=<Invalid>"]
    if node is not None:
        return [f"grad_fn=<{_node_name(node)}>"]
    return ["requires_grad=True"] if tensor.requires_grad else []


def _node_name(node: Any) -> str:
    name = type(node).__name__
    return node.name().rpartition("::")[2] if name == "CppFunction" else name


def _unpack_dual(tensor: Any) -> tuple[Any, Any]:
    forward_ad = getattr(fb.autograd, "forward_ad", None)
    return (tensor, None) if forward_ad is None else tuple(forward_ad.unpack_dual(tensor))


def _join(text: str, suffixes: list[str], indent: int) -> str:
    """Appends suffixes, each on a new line when it would pass the line's end."""
    column = len(text) - text.rfind("\n") + 1
    parts = [text]
    for suffix in suffixes:
        if column + len(suffix) + 2 > PRINT_OPTS.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            column = indent + len(suffix)
        else:
            parts.append(", " + suffix)
            column += len(suffix) + 2
    return "".join(parts) + ")"


def _str(tensor: Any, *, tensor_contents: str | None = None) -> str:
    """The text of ``repr(tensor)``.

    Args:
        tensor: any tensor.
        tensor_contents: shown in place of the values.
    """
    batch = fb._C._vmap_info(tensor)
    if batch is not None:
        depth, batched, value = batch
        return f"BatchedTensor(lvl={depth}, bdim={0 if batched else None}, value=\n{_str(value)}\n)"
    plain = type(tensor) is fb.Tensor or type(tensor) is fb.nn.Parameter
    prefix = "tensor(" if plain else f"{type(tensor).__name__}("
    with fb.no_grad():
        primal, tangent = _unpack_dual(tensor)
        text = tensor_contents
        if text is None:
            meta = primal.device.type == "meta"
            text = "..." if meta else _contents(primal.detach(), len(prefix))
        suffixes = _suffixes(primal) + _grad_suffix(tensor)
        if tangent is not None:
            suffixes.append(f"tangent={tangent}")
    text = _join(prefix + text, suffixes, len(prefix))
    return f"Parameter({text})" if isinstance(primal, fb.nn.Parameter) and not plain else text
