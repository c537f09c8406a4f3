"""How tensors print.

Owns the print options and the text of ``repr(tensor)``, which is PyTorch's to the character. It
reads values through ``tolist`` and works on Python numbers; it never changes a tensor or records
gradients.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import flambeau as fb

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]

# A float column turns to scientific notation beyond these.
_SCI_RATIO, _SCI_LARGE, _SCI_SMALL = 1000.0, 1.0e8, 1.0e-4


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


class _Column:
    """One notation for all numbers of a tensor: all get the same width and number of digits."""

    def __init__(self, values: list[Any], floating: bool) -> None:
        self.width = 1
        self._write: Callable[[Any], str] = str
        if floating:
            self._choose_float_notation(values)
        else:
            self.width = max((len(str(v)) for v in values), default=1)

    def _choose_float_notation(self, values: list[float]) -> None:
        precision = PRINT_OPTS.precision
        self._write = _whole
        finite = [v for v in values if v != 0 and math.isfinite(v)]
        if not finite:
            return
        sizes = [abs(v) for v in finite]
        least, most = min(sizes), max(sizes)
        scientific = PRINT_OPTS.sci_mode
        if scientific is None:
            scientific = most / least > _SCI_RATIO or most > _SCI_LARGE or least < _SCI_SMALL
        if scientific:
            self._write = f"{{:.{precision}e}}".format
        elif any(v != math.ceil(v) for v in finite):
            self._write = f"{{:.{precision}f}}".format
        self.width = max(1, *(len(self._write(v)) for v in finite))

    def __call__(self, value: Any) -> str:
        return self._write(value).rjust(self.width)


def _whole(value: float) -> str:
    """A float without fraction keeps its point, to tell it from an int."""
    return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"


class _ComplexColumn:
    """Real and imaginary parts in a notation each."""

    def __init__(self, values: list[complex]) -> None:
        self._real = _Column([v.real for v in values], True)
        self._imag = _Column([v.imag for v in values], True)
        self.width = self._real.width + self._imag.width + 1

    def __call__(self, value: complex) -> str:
        imag = self._imag(value.imag).lstrip() + "j"
        sign = "" if imag[0] in "+-" else "+"
        return self._real(value.real) + sign + imag


def _flatten(nested: Any, dims: int) -> list[Any]:
    if dims == 0:
        return [nested]
    for _ in range(dims - 1):
        nested = [item for part in nested for item in part]
    return nested


def _edges(tensor: Any) -> tuple[Any, list[bool]]:
    """The ends of each long dimension put together, and which dimensions were shortened."""
    count, shortened = PRINT_OPTS.edgeitems, []
    for dim, size in enumerate(tensor.shape):
        shortened.append(size > 2 * count)
        if shortened[-1]:
            ends = (tensor.narrow(dim, 0, count), tensor.narrow(dim, size - count, count))
            tensor = fb.cat(ends, dim)
    return tensor, shortened


def _brackets(nested: Any, shortened: list[bool], column: Any, indent: int) -> str:
    """Nested lists as text; ``shortened`` tells for each level whether its middle was left out."""
    if not shortened:
        return column(nested)
    gap = len(nested) // 2 if shortened[0] else None
    if len(shortened) == 1:
        words = [column(value) for value in nested]
        if gap is not None:
            words.insert(gap, " ...")
        per_line = max(1, (PRINT_OPTS.linewidth - indent) // (column.width + 2))
        lines = [", ".join(words[i : i + per_line]) for i in range(0, len(words), per_line)]
        separator = ",\n" + " " * (indent + 1)
    else:
        lines = [_brackets(part, shortened[1:], column, indent + 1) for part in nested]
        if gap is not None:
            lines.insert(gap, "...")
        separator = "," + "\n" * (len(shortened) - 1) + " " * (indent + 1)
    return "[" + separator.join(lines) + "]"


def _contents(tensor: Any, indent: int) -> str:
    if tensor.numel() == 0:
        return "[]"
    shortened = [False] * tensor.dim()
    if tensor.numel() > PRINT_OPTS.threshold and tensor.dim():
        if not PRINT_OPTS.edgeitems:
            return "[...]"
        tensor, shortened = _edges(tensor)
    nested = tensor.tolist()
    values = _flatten(nested, len(shortened))
    if tensor.dtype.is_complex:
        return _brackets(nested, shortened, _ComplexColumn(values), indent)
    column = _Column(values, tensor.dtype.is_floating_point)
    return _brackets(nested, shortened, column, indent)


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
