"""Scans: running sums, products, extremes, log-sum-exp along a dim; differences and trapezoids.

Derivatives of products and of log-sum-exp are linear recurrences, y[t] = x[t] + c[t] y[t-1], an
operation of its own: nothing is divided, so zeros are no special case, and every order exists.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(namespaces=(), method=False)
def _scan_dtype(input: Tensor, dtype: DType | None, name: str) -> DType:
    """Element type of a running sum or product: integers are counted in int64."""
    if dtype is not None:
        check_not_implemented(not dtype.is_bool, f"\"{name}_out_cpu\" not implemented for 'Bool'")
        return dtype
    if input.dtype.is_inexact:
        return input.dtype
    return int64


@structured(inplace=True, linear=True, batch=True, out_cast=True)
def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """Running sums along `dim`; integers add up in int64. float32 is added up in double precision.

    >>> torch.cumsum(torch.tensor([1, 2, 3]), 0)
    tensor([1, 3, 6])
    """
    wrap_dim(dim, input.ndim)
    return empty(input.shape, dtype=_scan_dtype(input, dtype, "cumsum"), like=input)


@cumsum.vjp
def _(g, input, dim: int):
    x = g.to(input.dtype)
    if x.ndim == 0:
        return x
    return x.flip([dim]).cumsum(dim).flip([dim])


@structured(inplace=True, batch=True, out_cast=True)
def cumprod(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """Running products along `dim`; integers multiply in int64.

    >>> torch.cumprod(torch.tensor([1, 2, 3]), 0)
    tensor([1, 2, 6])
    """
    wrap_dim(dim, input.ndim)
    return empty(input.shape, dtype=_scan_dtype(input, dtype, "cumprod"), like=input)


@cumprod.vjp
def _(g, input, dim: int, result):
    if input.ndim == 0 or input.numel() == 0:
        return g.to(input.dtype)
    x = input.to(g.dtype).conj()
    after = _linear_recurrence(_shifted(x, dim, -1, 0.0), g, dim, True)
    return (after * _shifted(result.conj(), dim, 1, 1.0)).to(input.dtype)


@composite(namespaces=(), method=False)
def _shifted(input: Tensor, dim: int, by: int, value: float) -> Tensor:
    """Entries moved one place on (`by` 1) or back (-1) along `dim`; `value` fills the gap."""
    n = input.size(dim)
    shape = input.shape
    shape[wrap_dim(dim, input.ndim)] = 1
    gap = full(shape, value, dtype=input.dtype)
    if by > 0:
        return cat([gap, input.narrow(dim, 0, n - 1)], dim)
    return cat([input.narrow(dim, 1, n - 1), gap], dim)


@structured(kernel="linear_recurrence", namespaces=(), method=False, out=False, batch=True)
def _linear_recurrence(factor: Tensor, input: Tensor, dim: int, backwards: bool) -> Tensor:
    """y[t] = input[t] + factor[t] y[t-1] along `dim` (y[t+1] when backwards)."""
    check(
        factor.shape == input.shape,
        f"_linear_recurrence: expected equal shapes, got {factor.shape} and {input.shape}",
    )
    check(
        factor.dtype == input.dtype,
        f"_linear_recurrence: expected equal dtypes, got {factor.dtype} and {input.dtype}",
    )
    return empty(input.shape, like=input)


@_linear_recurrence.vjp
def _(g, factor, dim: int, backwards: bool, result):
    if factor.ndim == 0 or factor.numel() == 0:
        return zeros(g.shape, dtype=g.dtype), g
    on = -1 if backwards else 1
    grad_input = _linear_recurrence(_shifted(factor.conj(), dim, -on, 0.0), g, dim, not backwards)
    return grad_input * _shifted(result.conj(), dim, on, 0.0), grad_input


@structured(fields=("values", "indices"), batch=True)
def cummax(input: Tensor, dim: int) -> Tuple[Tensor, Tensor]:
    """The largest entry so far along `dim` and its place (the last of equal ones); NaN stays.

    >>> torch.cummax(torch.tensor([1, 3, 2]), 0).values
    tensor([1, 3, 3])
    """
    wrap_dim(dim, input.ndim)
    return empty(input.shape, like=input), empty(input.shape, dtype=int64)


@cummax.vjp(undefined=True)
def _(g0: Tensor | None, input, dim: int, result1):
    return _gathered_back(g0, input, dim, result1)


@structured(fields=("values", "indices"), batch=True)
def cummin(input: Tensor, dim: int) -> Tuple[Tensor, Tensor]:
    """The smallest entry so far along `dim` and its place (the last of equal ones); NaN stays.

    >>> torch.cummin(torch.tensor([2, 1, 3]), 0).values
    tensor([2, 1, 1])
    """
    wrap_dim(dim, input.ndim)
    return empty(input.shape, like=input), empty(input.shape, dtype=int64)


@cummin.vjp(undefined=True)
def _(g0: Tensor | None, input, dim: int, result1):
    return _gathered_back(g0, input, dim, result1)


@composite(namespaces=(), method=False)
def _gathered_back(g: Tensor | None, input: Tensor, dim: int, places: Tensor) -> Tensor:
    """Cotangent of entries that were read from `places` along `dim`."""
    out = zeros(input.shape, dtype=input.dtype)
    if g is None or input.numel() == 0:
        return out
    return out.scatter_add(dim, places, g)


@structured(batch=True)
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """Logarithm of the running sums of exponentials along `dim`, without overflow.

    >>> torch.logcumsumexp(torch.zeros(1), 0)
    tensor([0.])
    """
    wrap_dim(dim, input.ndim)
    check_not_implemented(
        input.dtype.is_inexact,
        f"\"logcumsumexp_out_cpu\" not implemented for '{scalar_type_name(input.dtype)}'",
    )
    return empty(input.shape, like=input)


@logcumsumexp.vjp
def _(g, input, dim: int, result):
    if input.ndim == 0 or input.numel() == 0:
        return g
    n = input.size(dim)
    steps = _exp_of_difference(result.narrow(dim, 0, n - 1), result.narrow(dim, 1, n - 1))
    shape = input.shape
    shape[wrap_dim(dim, input.ndim)] = 1
    factor = cat([steps, zeros(shape, dtype=input.dtype)], dim).conj()
    after = _linear_recurrence(factor, g, dim, True)
    return after * _exp_of_difference(input, result).conj()


@composite(namespaces=(), method=False)
def _exp_of_difference(a: Tensor, b: Tensor) -> Tensor:
    """exp(a - b), where equal infinities differ by zero."""
    return exp(where(a == b, 0, a - b))


@composite(out=True, out_casts=True)
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """The n-th differences of neighbours along `dim`; of bool: whether they differ.

    >>> torch.diff(torch.tensor([1, 4, 9]))
    tensor([3, 5])
    """
    check(input.ndim > 0, "diff expects input to be at least one-dimensional")
    d = wrap_dim(dim, input.ndim)
    check(n >= 0, f"order must be non-negative but got {n}")
    parts: Tensors = []
    if prepend is not None:
        _check_diff_part(input, prepend, d)
        parts.append(prepend)
    parts.append(input)
    if append is not None:
        _check_diff_part(input, append, d)
        parts.append(append)
    if n == 0:  # what would be joined does not matter then
        return input.clone()
    x = cat(parts, d) if len(parts) > 1 else input
    length = x.size(d)
    if n > length:
        n = length
    for _ in range(n):
        count = x.size(d) - 1 if x.size(d) > 0 else 0
        start = 1 if x.size(d) > 0 else 0
        right, left = x.narrow(d, start, count), x.narrow(d, 0, count)
        x = logical_xor(right, left) if x.dtype.is_bool else right - left
    return x


@composite(namespaces=(), method=False)
def _check_diff_part(input: Tensor, part: Tensor, dim: int) -> None:
    """Refuses what cannot be joined to the input of diff."""
    check(
        part.ndim == input.ndim, "diff expects prepend or append to be the same dimension as input"
    )
    for i in range(input.ndim):
        check(
            i == dim or part.size(i) == input.size(i),
            f"diff expects the shape of tensor to prepend or append to match that of input except "
            f"along the differencing dimension; input.size({i}) = {input.size(i)}, but got "
            f"tensor.size({i}) = {part.size(i)}",
        )


@composite(namespaces=(), method=False)
def _trapezoid_steps(y: Tensor, x: Tensor, dim: int, name: str) -> Tensor:
    """Widths of the trapezoids, to be multiplied with sums of neighbouring entries of `y`."""
    points = x
    if x.ndim == 1:
        check(
            x.size(0) == y.size(dim), f"{name}: There must be one `x` value for each sample point"
        )
        shape = [1 for _ in range(y.ndim)]
        shape[wrap_dim(dim, y.ndim)] = x.size(0)
        points = x.reshape(shape)
    elif x.ndim < y.ndim:
        shape = [1 for _ in range(y.ndim - x.ndim)] + x.shape
        points = x.reshape(shape)
    n = points.size(dim)
    return points.narrow(dim, 1, n - 1) - points.narrow(dim, 0, n - 1)


@composite(namespaces=(), method=False)
def _neighbour_sums(y: Tensor, dim: int, name: str) -> Tensor:
    """Sums of neighbouring entries along `dim`."""
    check(not y.dtype.is_bool, f"{name}: received a bool input for `y`, but bool is not supported")
    n = y.size(dim)
    return y.narrow(dim, 0, n - 1) + y.narrow(dim, 1, n - 1)


@composite(method=False)
def trapezoid(y: Tensor, x: Tensor, *, dim: int = -1) -> Tensor:
    """Integral along `dim` by the trapezoidal rule, samples `y` taken at `x`.

    >>> torch.trapezoid(torch.tensor([1.0, 3.0]), torch.tensor([0.0, 2.0]))
    tensor(4.)
    """
    d = wrap_dim(dim, y.ndim)
    check_index(y.ndim > 0, f"Dimension specified as {dim} but tensor has no dimensions")
    if y.size(d) == 0:
        return zeros(y.shape, dtype=y.dtype).sum([d])
    check(
        not x.dtype.is_bool, "trapezoid: received a bool input for `x`, but bool is not supported"
    )
    steps = _trapezoid_steps(y, x, d, "trapezoid")
    return (steps * _neighbour_sums(y, d, "trapezoid")).sum([d]) / 2.0


@trapezoid.overload(method=False)
def trapezoid(y: Tensor, *, dx: Number = 1, dim: int = -1) -> Tensor:
    """With samples `dx` apart.

    >>> torch.trapezoid(torch.tensor([1.0, 3.0]))
    tensor(2.)
    """
    d = wrap_dim(dim, y.ndim)
    check_index(y.ndim > 0, f"Dimension specified as {dim} but tensor has no dimensions")
    if y.size(d) == 0:
        return zeros(y.shape, dtype=y.dtype).sum([d])
    check(
        not y.dtype.is_bool, "trapezoid: received a bool input for `y`, but bool is not supported"
    )
    ends = y.select(d, 0) + y.select(d, -1)
    return (y.sum([d]) - ends * 0.5) * dx


@composite(method=False)
def trapz(y: Tensor, x: Tensor, *, dim: int = -1) -> Tensor:
    """Another name of trapezoid.

    >>> torch.trapz(torch.tensor([1.0, 3.0]), torch.tensor([0.0, 2.0]))
    tensor(4.)
    """
    return trapezoid(y, x, dim=dim)


@trapz.overload(method=False)
def trapz(y: Tensor, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """With samples `dx` apart.

    >>> torch.trapz(torch.tensor([1.0, 3.0]))
    tensor(2.)
    """
    return trapezoid(y, dx=dx, dim=dim)


@composite(method=False)
def cumulative_trapezoid(y: Tensor, x: Tensor, *, dim: int = -1) -> Tensor:
    """Running integrals along `dim` by the trapezoidal rule, samples `y` taken at `x`.

    >>> torch.cumulative_trapezoid(torch.tensor([1.0, 3.0]), torch.tensor([0.0, 2.0]))
    tensor([4.])
    """
    d = wrap_dim(dim, y.ndim)
    check_index(y.ndim > 0, f"Dimension specified as {dim} but tensor has no dimensions")
    check(
        not x.dtype.is_bool,
        "cumulative_trapezoid: received a bool input for `x`, but bool is not supported",
    )
    if y.size(d) == 0:
        return zeros(y.shape, dtype=y.dtype) / 2.0
    steps = _trapezoid_steps(y, x, d, "cumulative_trapezoid")
    return cumsum(steps * _neighbour_sums(y, d, "cumulative_trapezoid"), d) / 2.0


@cumulative_trapezoid.overload(method=False)
def cumulative_trapezoid(y: Tensor, *, dx: Number = 1, dim: int = -1) -> Tensor:
    """With samples `dx` apart.

    >>> torch.cumulative_trapezoid(torch.tensor([1.0, 3.0]))
    tensor([2.])
    """
    d = wrap_dim(dim, y.ndim)
    check_index(y.ndim > 0, f"Dimension specified as {dim} but tensor has no dimensions")
    if y.size(d) == 0:
        return zeros(y.shape, dtype=y.dtype) * dx / 2.0
    return cumsum(_neighbour_sums(y, d, "cumulative_trapezoid"), d) * dx / 2.0
