"""Statistics of samples: histograms, covariances, correlations; slices scaled to a norm.

A value falls into bin i when edge[i] <= value < edge[i + 1]; the last bin has both its edges.
"""

from __future__ import annotations

from flambeau.ops._lang import *

# Histograms -----------------------------------------------------------------------------------


@structured(kernel="count_in_bins", dynamic=True, namespaces=(), method=False)
def _count_in_bins(input: Tensor, edges: Tensors, weight: Tensor | None) -> Tensor:
    """How many rows of a matrix (or what weight of them) fall into each box of a grid."""
    _check_counted(input)


@composite(namespaces=(), method=False)
def _check_counted(input: Tensor) -> None:
    """Refuses what is not counted in boxes."""
    check_not_implemented(
        input.dtype == float32 or input.dtype == float64,
        f"\"histogramdd\" not implemented for '{scalar_type_name(input.dtype)}'",
    )


@composite(namespaces=(), method=False)
def _check_histogram(input: Tensor, bins: int, weight: Tensor | None) -> None:
    """Refuses inputs of a histogram that do not fit together."""
    check(input.ndim >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions")
    check(
        bins == input.size(-1),
        "histogramdd: The size of bins must be equal to the innermost dimension of the input.",
    )
    _check_counted(input)
    if weight is None:
        return
    check(
        weight.dtype == input.dtype,
        "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should "
        f"have the same dtype, but got input({dtype_name(input.dtype)}), and "
        f"weight({dtype_name(weight.dtype)})",
    )
    check(
        weight.shape == input.shape[: input.ndim - 1],
        "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
        "input tensor excluding its innermost dimension, but got input with shape "
        f"{input.shape} and weight with shape {weight.shape}",
    )


@composite(namespaces=(), method=False)
def _check_edges(input: Tensor, edges: Tensors) -> None:
    """Refuses edges of bins that are not vectors of the input's dtype with an entry."""
    for d, edge in enumerate(edges):
        check(
            edge.dtype == input.dtype,
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but "
            f"got input with dtype {dtype_name(input.dtype)} and bins for dimension {d} with "
            f"dtype {dtype_name(edge.dtype)}",
        )
        check(
            edge.ndim == 1,
            "torch.histogramdd: bins tensor should have one dimension, but got "
            f"{edge.ndim} dimensions in the bins tensor for dimension {d}",
        )
        check(
            edge.numel() > 1,
            "torch.histogram(): bins must be > 0, but got "
            f"{max(edge.numel() - 1, 0)} for dimension {d}",
        )


@composite(namespaces=(), method=False)
def _bin_edges(input: Tensor, bins: Ints, range: Floats | None) -> Tensors:
    """Edges of equal bins over a range, by default that of the values."""
    n = len(bins)
    if range is not None:
        check(
            len(range) == 2 * n,
            f"torch.histogramdd: for a {n}-dimensional histogram range should have {2 * n} "
            f"elements, but got {len(range)}",
        )
    rows = input.reshape([-1, n])
    edges: Tensors = []
    for d, count in enumerate(bins):
        check(
            count > 0,
            f"torch.histogram(): bins must be > 0, but got {count} for dimension {d}",
        )
        lo = 0.0
        hi = 1.0
        if range is not None:
            lo = range[2 * d]
            hi = range[2 * d + 1]
        elif rows.numel() > 0:
            lo = float(amin(rows.select(1, d)))
            hi = float(amax(rows.select(1, d)))
        finite = not (isnan(lo) or isnan(hi) or isinf(lo) or isinf(hi))
        check(finite, f"torch.histogramdd: dimension {d}'s range [{lo}, {hi}] is not finite")
        check(
            lo <= hi,
            f"torch.histogramdd: min should not exceed max, but got min {lo} max {hi} for "
            f"dimension {d}",
        )
        if lo == hi:
            lo -= 0.5
            hi += 0.5
        edges.append(linspace(lo, hi, count + 1, dtype=input.dtype))
    return edges


@composite(namespaces=(), method=False)
def _histogram(input: Tensor, edges: Tensors, weight: Tensor | None, density: bool) -> Tensor:
    """Counts of the rows (all dims but the last); as a density they integrate to one."""
    rows = input.reshape([-1, len(edges)])
    counts = _count_in_bins(rows, edges, None if weight is None else weight.reshape([-1]))
    if not density:
        return counts
    counts = counts / counts.sum()
    for d, edge in enumerate(edges):
        shape = [1 for _ in edges]
        shape[d] = edge.numel() - 1
        counts = counts / diff(edge).reshape(shape)
    return counts


@composite(fields=("hist", "bin_edges"), out=True)
def histogram(
    input: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: bool = False
) -> Tuple[Tensor, Tensor]:
    """Counts of the values between given edges.

    >>> torch.histogram(torch.tensor([1.0, 2.0, 1.5]), torch.tensor([0.0, 2.0, 3.0])).hist
    tensor([2., 1.])
    """
    rows = input.reshape([-1, 1])
    flat = None if weight is None else weight.reshape([-1])
    _check_histogram(rows, 1, flat)
    _check_edges(rows, [bins])
    return _histogram(rows, [bins], flat, density), bins.clone()


@histogram.overload(fields=("hist", "bin_edges"), out=True)
def histogram(
    input: Tensor,
    bins: int = 100,
    *,
    range: Floats | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Tuple[Tensor, Tensor]:
    """Counts of the values in equal bins over `range`, by default from the least to the largest.

    >>> torch.histogram(torch.tensor([1.0, 2.0, 1.25]), 2).hist
    tensor([2., 1.])
    """
    rows = input.reshape([-1, 1])
    flat = None if weight is None else weight.reshape([-1])
    _check_histogram(rows, 1, flat)
    edges = _bin_edges(rows, [bins], range)
    return _histogram(rows, edges, flat, density), edges[0]


@composite(fields=("hist", "bin_edges"), method=False)
def histogramdd(
    input: Tensor,
    bins: Tensors,
    range: Floats | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Tuple[Tensor, Tensors]:
    """Counts of points (the last dim) in the boxes between given edges.

    >>> torch.histogramdd(torch.zeros(2, 1), [torch.tensor([0.0, 1.0])]).hist
    tensor([2.])
    """
    _check_histogram(input, len(bins), weight)
    _check_edges(input, bins)
    return _histogram(input, bins, weight, density), bins


@histogramdd.overload(fields=("hist", "bin_edges"), method=False)
def histogramdd(
    input: Tensor,
    bins: int,
    range: Floats | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Tuple[Tensor, Tensors]:
    """With equal bins, as many along every axis.

    >>> torch.histogramdd(torch.zeros(2, 1), 1).hist
    tensor([2.])
    """
    check(input.ndim >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions")
    counts: Ints = []
    while len(counts) < input.size(-1):
        counts.append(bins)
    return histogramdd(input, counts, range, weight, density)


@histogramdd.overload(fields=("hist", "bin_edges"), method=False)
def histogramdd(
    input: Tensor,
    bins: Ints,
    range: Floats | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Tuple[Tensor, Tensors]:
    """With equal bins, `bins` of them along each axis.

    >>> torch.histogramdd(torch.zeros(2, 1), [1]).hist
    tensor([2.])
    """
    _check_histogram(input, len(bins), weight)
    edges = _bin_edges(input, bins, range)
    return _histogram(input, edges, weight, density), edges


# Covariances ----------------------------------------------------------------------------------


@composite(namespaces=(), method=False)
def _check_weights(name: str, weights: Tensor, observations: int) -> None:
    """Refuses weights of observations that are not one non-negative number each."""
    check(
        weights.ndim <= 1,
        f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
        f"{weights.ndim} dimensions",
    )
    check(
        weights.numel() == observations,
        f"cov(): expected {name} to have the same numel as there are observations in the input "
        f"but got {weights.numel()} != {observations}",
    )
    if observations > 0:
        check(float(amin(weights)) >= 0.0, f"cov(): {name} cannot be negative")


@composite()
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """Covariance matrix of variables (rows) from observations (columns).

    `fweights` says how often each observation was made, `aweights` how much it counts.

    >>> torch.cov(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    check(
        input.ndim <= 2,
        "cov(): expected input to have two or fewer dimensions but got an input with "
        f"{input.ndim} dimensions",
    )
    check(not input.dtype.is_bool, "cov(): bool dtype is not supported for input")
    x = input if input.ndim == 2 else input.reshape([1, -1])
    n = x.size(1)
    w: Tensor | None = None
    if fweights is not None:
        integral = fweights.dtype.is_integral and not fweights.dtype.is_bool
        check(
            integral,
            "cov(): expected fweights to have integral dtype but got fweights with "
            f"{scalar_type_name(fweights.dtype)} dtype",
        )
        _check_weights("fweights", fweights, n)
        w = fweights
    if aweights is not None:
        check(
            aweights.is_floating_point(),
            "cov(): expected aweights to have floating point dtype but got aweights with "
            f"{scalar_type_name(aweights.dtype)} dtype",
        )
        _check_weights("aweights", aweights, n)
        w = aweights if w is None else w * aweights
    if w is None:
        if n <= correction:
            warn(
                "cov(): degrees of freedom is <= 0. Correction should be strictly less than the "
                "number of observations."
            )
        centred = x - (x.sum([1]) / n).unsqueeze(1)
        return (mm(centred, centred.t().conj()) / max(n - correction, 0)).squeeze()
    total = w.sum()
    check(float(total) != 0.0, "cov(): weights sum to zero, can't be normalized")
    centred = x - ((x * w).sum([1]) / total).unsqueeze(1)
    freedom = total - correction
    if aweights is not None and correction != 0:
        freedom = total - correction * (w * aweights).sum() / total
    if float(freedom) <= 0.0:
        freedom = zeros([], dtype=freedom.dtype)
    return (mm(centred, (centred * w).t().conj()) / freedom).squeeze()


@composite()
def corrcoef(input: Tensor) -> Tensor:
    """Correlation coefficients of variables (rows) from observations (columns).

    >>> torch.corrcoef(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    check(
        input.ndim <= 2,
        "corrcoef(): expected input to have two or fewer dimensions but got an input with "
        f"{input.ndim} dimensions",
    )
    c = cov(input)
    if c.ndim == 0:
        return c / c
    variance = c.diagonal()
    deviation = sqrt(real(variance) if variance.is_complex() else variance)
    c = c / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    if c.is_complex():
        return complex(clamp(real(c), -1.0, 1.0), clamp(imag(c), -1.0, 1.0))
    return clamp(c, -1.0, 1.0)


@composite(inplace=True, out=True)
def renorm(input: Tensor, p: Number, dim: int, maxnorm: Number) -> Tensor:
    """Slices along `dim`, those whose p-norm exceeds `maxnorm` scaled down to it.

    >>> torch.renorm(torch.tensor([[3.0, 4.0], [0.0, 1.0]]), 2, 0, 1)
    tensor([[0.6000, 0.8000],
            [0.0000, 1.0000]])
    """
    check(not p.is_complex(), "renorm: p must be real-valued")
    check(not maxnorm.is_complex(), "renorm: maxnorm must be real-valued")
    check(float(p) > 0.0, "renorm: non-positive-norm not supported")
    limit = float(maxnorm)
    check(limit >= 0.0, f"renorm: expected maxnorm to be >= 0 but got {limit}")
    check(
        input.ndim > 1,
        f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions",
    )
    d = wrap_dim(dim, input.ndim)
    others: Ints = []
    for i in range(input.ndim):
        if i != d:
            others.append(i)
    kind = opmath(to_real(input.dtype))
    norm = linalg_vector_norm(input, float(p), others, True, dtype=opmath(input.dtype))
    factor = where(norm > limit, limit / (norm + 1e-7), 1.0).to(kind)
    return (input * factor.to(to_real(input.dtype))).contiguous()
