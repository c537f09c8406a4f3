"""Interpolation and sampling at points.

All modes of interpolation are one linear primitive with its transpose; `nn.functional.interpolate`
works out sizes and modes. Kernels: csrc/kernels/upsample.cpp, grid_sample.cpp.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(kernel="resample", method=False, out=False)
def _resample(input: Tensor, size: Ints, mode: str, align_corners: bool, scales: Floats) -> Tensor:
    """Input (N, C, ...) resampled to spatial `size`; positive `scales` override the ratio of sizes.

    Args:
        mode: nearest, nearest-exact, linear, cubic, linear-aa, cubic-aa

    >>> torch.nn.functional.interpolate(torch.tensor([[[0.0, 1.0]]]), size=4)
    tensor([[[0., 0., 1., 1.]]])
    """
    n = len(size)
    check(
        input.ndim == n + 2,
        f"interpolate: It is expected input_size equals to {n + 2}, but got size {input.ndim}",
    )
    check(
        input.is_floating_point() or input.dtype == uint8,
        f"\"interpolate\" not implemented for '{scalar_type_name(input.dtype)}'",
    )
    for i in range(n):
        check(
            input.shape[i + 2] > 0 and size[i] > 0,
            f"interpolate: Input and output sizes should be greater than 0, but got input "
            f"{input.shape[2:]} output {size}",
        )
    return empty(
        input.shape[:2] + size, dtype=input.dtype, like=input,
        memory_format=input.suggest_memory_format(),
    )  # fmt: skip


@_resample.vjp
def _(g, input, mode, align_corners, scales):
    return _resample_transposed(g, input.shape, mode, align_corners, scales)


@_resample.vmap
def _(input, size, mode, align_corners, scales, input_b, batch):
    return _unfolded(
        _resample(_folded(input, input_b, batch), size, mode, align_corners, scales), batch
    )


@structured(kernel="resample_transposed", namespaces=(), out=False)
def _resample_transposed(
    grad: Tensor, input_size: Ints, mode: str, align_corners: bool, scales: Floats
) -> Tensor:
    """Cotangent of the input of `_resample`.

    >>> torch.nn.functional.interpolate(torch.ones(1, 1, 2), size=4).shape
    torch.Size([1, 1, 4])
    """
    return empty(
        input_size, dtype=grad.dtype, like=grad, memory_format=grad.suggest_memory_format()
    )


@_resample_transposed.vjp
def _(g, grad, mode, align_corners, scales):
    return _resample(g, grad.shape[2:], mode, align_corners, scales)


@_resample_transposed.vmap
def _(grad, input_size, mode, align_corners, scales, grad_b, batch):
    return _unfolded(
        _resample_transposed(
            _folded(grad, grad_b, batch),
            [batch * input_size[0]] + input_size[1:],
            mode,
            align_corners,
            scales,
        ),
        batch,
    )


@structured(kernel="grid_sample", namespaces=(), out=False)
def _grid_sample(
    input: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool
) -> Tensor:
    """Values of `input` at the points of `grid`; modes and paddings as `grid_sampler`'s."""
    n = input.ndim - 2
    return empty(input.shape[:2] + grid.shape[1 : n + 1], dtype=input.dtype, like=input)


@_grid_sample.vjp
def _(g, input, grid, mode, padding, align_corners):
    gi, gg = _grid_sample_backward(g, input, grid, mode, padding, align_corners)
    return gi, gg


@_grid_sample.vmap
def _(input, grid, mode, padding, align_corners, input_b, grid_b, batch):
    return _unfolded(
        _grid_sample(
            _folded(input, input_b, batch),
            _folded(grid, grid_b, batch),
            mode,
            padding,
            align_corners,
        ),
        batch,
    )


@structured(kernel="grid_sample_backward", namespaces=(), out=False)
def _grid_sample_backward(
    grad: Tensor, input: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool
) -> Tuple[Tensor, Tensor]:
    """Cotangents of `input` and `grid` of `_grid_sample`."""
    return empty(input.shape, dtype=input.dtype, like=input), empty(
        grid.shape, dtype=grid.dtype, like=grid
    )


@_grid_sample_backward.vjp
def _(g0, g1, grad, input, grid, mode, padding, align_corners):
    a, b, c = _grid_sample_twice(g0, g1, grad, input, grid, mode, padding, align_corners)
    return a, b, c


@structured(kernel="grid_sample_twice", namespaces=(), out=False)
def _grid_sample_twice(
    by_input: Tensor, by_grid: Tensor, grad: Tensor, input: Tensor, grid: Tensor, mode: int,
    padding: int, align_corners: bool,
) -> Tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Cotangents of `grad`, `input` and `grid` of `_grid_sample_backward`."""
    return (
        empty(grad.shape, dtype=grad.dtype, like=grad),
        empty(input.shape, dtype=input.dtype, like=input),
        empty(grid.shape, dtype=grid.dtype, like=grid),
    )


@_grid_sample_twice.vmap
def _(
    by_input, by_grid, grad, input, grid, mode, padding, align_corners,
    by_input_b, by_grid_b, grad_b, input_b, grid_b, batch,
):  # fmt: skip
    a, b, c = _grid_sample_twice(
        _folded(by_input, by_input_b, batch),
        _folded(by_grid, by_grid_b, batch),
        _folded(grad, grad_b, batch),
        _folded(input, input_b, batch),
        _folded(grid, grid_b, batch),
        mode,
        padding,
        align_corners,
    )
    return _unfolded(a, batch), _unfolded(b, batch), _unfolded(c, batch)


@_grid_sample_backward.vmap
def _(grad, input, grid, mode, padding, align_corners, grad_b, input_b, grid_b, batch):
    a, b = _grid_sample_backward(
        _folded(grad, grad_b, batch),
        _folded(input, input_b, batch),
        _folded(grid, grid_b, batch),
        mode,
        padding,
        align_corners,
    )
    return _unfolded(a, batch), _unfolded(b, batch)


@composite(method=False, autocast="float32", aliases=("grid_sampler_2d", "grid_sampler_3d"))
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Values of `input` at normalised coordinates `grid` (x first, -1 and 1 the borders).

    Args:
        input: (N, C, H, W) or (N, C, D, H, W)
        grid: (N, OH, OW, 2) or (N, OD, OH, OW, 3)
        interpolation_mode: 0 bilinear, 1 nearest, 2 bicubic
        padding_mode: 0 zeros, 1 border, 2 reflection

    >>> torch.grid_sampler(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2), 0, 0, False).item()
    1.0
    """
    check(
        input.dtype == grid.dtype,
        f"grid_sampler(): expected input and grid to have same dtype, but input has {input.dtype} "
        f"and grid has {grid.dtype}",
    )
    check(
        input.ndim in (4, 5) and input.ndim == grid.ndim,
        f"grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got "
        f"input with sizes {input.shape} and grid with sizes {grid.shape}",
    )
    check(
        input.shape[0] == grid.shape[0],
        "grid_sampler(): expected grid and input to have same batch size, but got input with "
        "sizes "
        f"{input.shape} and grid with sizes {grid.shape}",
    )
    check(
        grid.shape[-1] == input.ndim - 2,
        f"grid_sampler(): expected grid to have size {input.ndim - 2} in last dimension, but got "
        "grid "
        f"with sizes {grid.shape}",
    )
    for i in range(2, input.ndim):
        check(
            input.shape[i] > 0,
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input has "
            "sizes "
            f"{input.shape} with dimension {i} being empty",
        )
    check(
        not (input.ndim == 5 and interpolation_mode == 2),
        "grid_sampler(): bicubic interpolation only supports 4D input",
    )
    check(
        input.is_floating_point(),
        f"\"grid_sampler\" not implemented for '{scalar_type_name(input.dtype)}'",
    )
    return _grid_sample(input, grid, interpolation_mode, padding_mode, align_corners)


@composite(method=False)
def affine_grid_generator(theta: Tensor, size: Ints, align_corners: bool) -> Tensor:
    """Sampling grid of affine maps `theta` (N, 2, 3) or (N, 3, 4) for images of `size`.

    >>> torch.affine_grid_generator(torch.eye(2, 3).unsqueeze(0), [1, 1, 2, 2], True).shape
    torch.Size([1, 2, 2, 2])
    """
    n = len(size) - 2
    space = size[2:]
    # An affine map is what linear interpolation makes of its values at the corners. Of these, the
    # last dim of the grid runs along the first column of theta.
    offset = theta.select(-1, n)
    corners = offset.reshape([size[0], n] + [1 for i in range(n)])
    for i in range(n):
        extent = space[n - 1 - i]
        reach = 1.0 if align_corners else (extent - 1) / extent
        reach = reach if extent > 1 else 0.0
        column = theta.select(-1, i).reshape([size[0], n] + [1 for j in range(n)])
        ends = [corners.sub(column, alpha=reach), corners.add(column, alpha=reach)]
        corners = cat(ends, n + 1 - i)
    scales: Floats = [0.0 for i in range(n)]
    grid = _resample(corners, space, "linear", True, scales)
    return grid.movedim([1], [n + 1]).contiguous()


# Functions of nn.functional ---------------------------------------------------------------------


@composite(namespaces=(), method=False)
def _method_of(mode: str, ndim: int) -> str:
    """What `_resample` calls the mode of `interpolate`; refuses one that does not fit the dims."""
    spatial = 0  # any
    method = mode
    if mode in ("linear", "bilinear", "trilinear"):
        spatial = 1 if mode == "linear" else 2 if mode == "bilinear" else 3
        method = "linear"
    elif mode == "bicubic":
        spatial = 2
        method = "cubic"
    check_not_implemented(
        ndim in (3, 4, 5) and (spatial > 0 or mode in ("nearest", "nearest-exact", "area")),
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {ndim}D) for the modes: "
        "nearest | nearest-exact | area | linear | bilinear | trilinear | bicubic "
        f"(got {mode})",
    )
    check_not_implemented(
        spatial == 0 or ndim == spatial + 2,
        f"Got {ndim}D input, but {mode} mode needs {spatial + 2}D input",
    )
    return method


@composite(namespaces=(), method=False)
def _for_each_dim(size: int, ndim: int) -> Ints:
    """One size for every spatial dim."""
    sizes: Ints = [size for i in range(ndim - 2)]
    return sizes


@composite(namespaces=(), method=False)
def _factors_for_each_dim(scale_factor: float, ndim: int) -> Floats:
    """One ratio for every spatial dim."""
    factors: Floats = [scale_factor for i in range(ndim - 2)]
    return factors


@composite(namespaces=("nn.functional",), method=False)
def interpolate(
    input: Tensor,
    size: int | None = None,
    scale_factor: float | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resamples (N, C, ...) with one to three spatial dimensions.

    Args:
        input: what to resample.
        size: spatial size of the result; one number for all dims, or one for each.
        scale_factor: instead of it, the ratio to the input's.
        mode: nearest, nearest-exact, linear, bilinear, bicubic, trilinear or area.
        align_corners: corner pixels' centres are the corners (smooth modes only).
        recompute_scale_factor: positions follow from the sizes, not from `scale_factor`.
        antialias: widen the kernel when shrinking (bilinear and bicubic).

    Raises:
        ValueError: for arguments that exclude each other.
        NotImplementedError: for a mode that does not fit the number of dimensions.

    >>> F.interpolate(torch.ones(1, 1, 2), scale_factor=2.0)
    tensor([[[1., 1., 1., 1.]]])
    """
    sizes: Ints | None = None
    if size is not None:
        sizes = _for_each_dim(size, input.ndim)
    factors: Floats | None = None
    if scale_factor is not None:
        factors = _factors_for_each_dim(scale_factor, input.ndim)
    return interpolate(
        input, sizes, factors, mode, align_corners, recompute_scale_factor, antialias
    )


@interpolate.overload(namespaces=("nn.functional",), method=False)
def interpolate(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: Floats | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """With a number for each spatial dimension.

    >>> F.interpolate(torch.ones(1, 1, 2, 2), size=(1, 4)).shape
    torch.Size([1, 1, 1, 4])
    """
    check_value(
        align_corners is None or mode in ("linear", "bilinear", "bicubic", "trilinear"),
        "align_corners option can only be set with the interpolating modes: linear | bilinear | "
        "bicubic | trilinear",
    )
    axes = input.ndim - 2
    check_value(
        size is None or scale_factor is None, "only one of size or scale_factor should be defined"
    )
    space = input.shape[2:]
    sizes: Ints = []
    scales: Floats = []
    recompute = False if recompute_scale_factor is None else recompute_scale_factor
    if size is not None:
        check_value(
            not recompute, "recompute_scale_factor is not meaningful with an explicit size."
        )
        sizes = size
        check_value(
            len(sizes) == axes,
            "Input and output must have the same number of spatial dimensions, but got input with "
            f"spatial dimensions of {space} and output size of {size}. Please provide input tensor "
            "in (N, C, d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) format.",
        )
    elif scale_factor is not None:
        check_value(
            len(scale_factor) == axes,
            "Input and scale_factor must have the same number of spatial dimensions, but got input "
            f"with spatial dimensions of {space} and scale_factor of {len(scale_factor)} numbers. "
            "Please provide input tensor in (N, C, d1, d2, ...,dK) format and scale_factor in "
            "(s1, s2, ...,sK) format.",
        )
        sizes = [floor(n * f) for n, f in zip(space, scale_factor)]
        if not recompute:
            scales = scale_factor
    else:
        raise ValueError("either size or scale_factor should be defined")
    check_value(
        not antialias or (mode in ("bilinear", "bicubic") and input.ndim == 4),
        "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor "
        "as input",
    )
    method = _method_of(mode, input.ndim)
    if mode == "area":
        return _adaptive_avg_pool(input, sizes)
    align = False if align_corners is None else align_corners
    return _resample(input, sizes, f"{method}-aa" if antialias else method, align, scales)


@composite(namespaces=("nn.functional",), method=False)
def upsample(
    input: Tensor,
    size: int | None = None,
    scale_factor: float | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Older name of `interpolate`, told by a warning.

    >>> F.interpolate(torch.ones(1, 1, 2), 4).shape
    torch.Size([1, 1, 4])
    """
    warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode, align_corners)


@upsample.overload(namespaces=("nn.functional",), method=False)
def upsample(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: Floats | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """With a number for each spatial dimension.

    >>> F.interpolate(torch.ones(1, 1, 2), [4]).shape
    torch.Size([1, 1, 4])
    """
    warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode, align_corners)


@composite(namespaces=("nn.functional",), method=False)
def upsample_nearest(
    input: Tensor, size: int | None = None, scale_factor: float | None = None
) -> Tensor:
    """Older name of `interpolate` with mode "nearest".

    >>> F.interpolate(torch.ones(1, 1, 2), 4).shape
    torch.Size([1, 1, 4])
    """
    warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, "nearest")


@upsample_nearest.overload(namespaces=("nn.functional",), method=False)
def upsample_nearest(
    input: Tensor, size: Ints | None = None, scale_factor: Floats | None = None
) -> Tensor:
    """With a number for each spatial dimension.

    >>> F.interpolate(torch.ones(1, 1, 2, 2), (1, 4)).shape
    torch.Size([1, 1, 1, 4])
    """
    warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, "nearest")


@composite(namespaces=("nn.functional",), method=False)
def upsample_bilinear(
    input: Tensor, size: int | None = None, scale_factor: float | None = None
) -> Tensor:
    """Older name of `interpolate` with mode "bilinear" and aligned corners.

    >>> F.interpolate(torch.ones(1, 1, 2, 2), 4, mode="bilinear", align_corners=True).shape
    torch.Size([1, 1, 4, 4])
    """
    warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead."
    )
    return interpolate(input, size, scale_factor, "bilinear", True)


@upsample_bilinear.overload(namespaces=("nn.functional",), method=False)
def upsample_bilinear(
    input: Tensor, size: Ints | None = None, scale_factor: Floats | None = None
) -> Tensor:
    """With a number for each spatial dimension.

    >>> F.interpolate(torch.ones(1, 1, 2, 2), (1, 4)).shape
    torch.Size([1, 1, 1, 4])
    """
    warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead."
    )
    return interpolate(input, size, scale_factor, "bilinear", True)


@composite(namespaces=(), method=False)
def _aligned_corners(align_corners: bool | None) -> bool:
    """Are corners aligned? Warns where nothing is said."""
    if align_corners is None:
        warn(
            "Default grid_sample and affine_grid behavior is align_corners=False: pass it to say "
            "what you mean."
        )
        return False
    return align_corners


@composite(namespaces=("nn.functional",), method=False)
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Values of `input` at the points of `grid`.

    Args:
        input: (N, C, H, W) or (N, C, D, H, W).
        grid: (N, OH, OW, 2) or (N, OD, OH, OW, 3): x first, -1 and 1 at the borders.
        mode: bilinear, nearest or bicubic.
        padding_mode: zeros, border or reflection outside.
        align_corners: -1 and 1 are the centres of the corner pixels, not their edges.

    >>> F.grid_sample(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2), align_corners=True)
    tensor([[[[1.]]]])
    """
    check_value(
        mode in ("bilinear", "nearest", "bicubic"),
        "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
        f"but got: '{mode}'",
    )
    check_value(
        padding_mode in ("zeros", "border", "reflection"),
        "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
        f"'reflection', but got: '{padding_mode}'",
    )
    how = 0 if mode == "bilinear" else 1 if mode == "nearest" else 2
    outside = 0 if padding_mode == "zeros" else 1 if padding_mode == "border" else 2
    return grid_sampler(input, grid, how, outside, _aligned_corners(align_corners))


@composite(namespaces=("nn.functional",), method=False)
def affine_grid(theta: Tensor, size: Ints, align_corners: bool | None = None) -> Tensor:
    """Sampling grid of affine maps, for results of `size` (N, C, ...).

    Args:
        theta: (N, 2, 3) or (N, 3, 4).

    >>> F.affine_grid(torch.eye(2, 3).unsqueeze(0), [1, 1, 2, 2], align_corners=True).shape
    torch.Size([1, 2, 2, 2])
    """
    align = _aligned_corners(align_corners)
    check_value(
        theta.is_floating_point(),
        f"Expected theta to have floating point type, but got torch.{dtype_name(theta.dtype)}",
    )
    axes = len(size) - 2
    check_not_implemented(
        axes in (2, 3),
        "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
        f"Got size {size}.",
    )
    check_value(
        theta.ndim == 3 and theta.size(1) == axes and theta.size(2) == axes + 1,
        f"Expected a batch of {axes}D affine matrices of shape Nx{axes}x{axes + 1} for size "
        f"{size}. Got {theta.shape}.",
    )
    check_value(min(size) > 0, f"Expected non-zero, positive output size. Got {size}")
    return affine_grid_generator(theta, size, align)
