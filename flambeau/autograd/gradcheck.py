"""Comparison of derivatives with finite differences.

Owns ``gradcheck``, ``gradgradcheck`` and the Jacobians they compare. Invariant: inputs are as
before when a check returns. Must not know any operation.
"""

# Note [Real Jacobians]
# A complex tensor counts as pairs of reals throughout. Backward with vector v then gives the real
# Jacobian's transpose times v, forward with tangent u gives the Jacobian times u, and one
# comparison serves all mixtures of real and complex.

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import flambeau as fb

if TYPE_CHECKING:
    from flambeau import Tensor

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

Tensors = tuple["Tensor", ...]


class GradcheckError(RuntimeError):
    """Derivatives do not agree, or cannot be computed."""


@dataclass(frozen=True)
class _Options:
    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    fast: bool
    grad_dtypes: bool
    undefined: bool
    batched: bool
    batched_forward: bool
    forward: bool
    backward: bool


# ---- pieces --------------------------------------------------------------------------------


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _real(x: Tensor) -> Tensor:
    """See Note [Real Jacobians]."""
    return fb.view_as_real(x.resolve_conj()) if x.is_complex() else x


def _flat(x: Tensor) -> Tensor:
    return _real(x.detach()).reshape(-1)


def _like(flat: Tensor, x: Tensor) -> Tensor:
    """The tensor of the kind of ``x`` whose real entries are ``flat``."""
    if x.is_complex():
        return fb.view_as_complex(flat.reshape((*x.shape, 2)).contiguous())
    return flat.reshape(x.shape)


def _size(x: Tensor) -> int:
    return x.numel() * (2 if x.is_complex() else 1)


def _unit(size: int, k: int, like: Tensor) -> Tensor:
    out = fb.zeros(size, dtype=_flat(like).dtype, device=like.device)
    out[k] = 1
    return out


def _differentiable(values: Sequence[Any]) -> Tensors:
    return tuple(x for x in values if isinstance(x, fb.Tensor) and x.requires_grad)


def _inexact_outputs(func: Callable[..., Any], inputs: tuple[Any, ...]) -> Tensors:
    """Outputs that could have a gradient, whether or not autograd says so."""
    return tuple(
        x
        for x in _as_tuple(func(*inputs))
        if isinstance(x, fb.Tensor) and (x.is_floating_point() or x.is_complex())
    )


# ---- numerical derivatives -----------------------------------------------------------------


@contextmanager
def _moved(x: Tensor, flat_step: Tensor) -> Iterator[None]:
    """``x`` with a step added, in place: closures over it must see the step too."""
    data = x.detach()
    before = data.clone()
    data.add_(_like(flat_step, x))
    try:
        yield
    finally:
        data.copy_(before)


def _difference(
    func: Callable[..., Any], inputs: tuple[Any, ...], x: Tensor, u: Tensor, eps: float
) -> list[Tensor]:
    """Central difference of all outputs along ``u``, a flat real direction of ``x``."""
    # The inputs want gradients as in the analytical pass: what the function makes of that counts.
    with _moved(x, u * eps):
        ahead = [_flat(y).detach().clone() for y in _inexact_outputs(func, inputs)]
    with _moved(x, u * -eps):
        behind = [_flat(y).detach().clone() for y in _inexact_outputs(func, inputs)]
    return [(a - b) / (2 * eps) for a, b in zip(ahead, behind, strict=True)]


def _numerical_jacobians(
    func: Callable[..., Any], inputs: tuple[Any, ...], x: Tensor, eps: float
) -> list[Tensor]:
    """For each output the real matrix (entries of ``x``, entries of the output)."""
    rows = [_difference(func, inputs, x, _unit(_size(x), k, x), eps) for k in range(_size(x))]
    if not rows:
        outs = _inexact_outputs(func, inputs)
        return [_flat(y).new_zeros((0, _size(y))) for y in outs]
    return [fb.stack(list(column)) for column in zip(*rows, strict=True)]


# ---- analytical derivatives ----------------------------------------------------------------


def _vjp(output: Tensor, xs: Tensors, v: Tensor, options: _Options, where: str) -> list[Tensor]:
    """Backward with the flat real vector ``v``, as flat real vectors; twice, for determinism."""
    grad_output = _like(v, output)

    def once() -> list[Any]:
        return list(fb.autograd.grad(output, xs, grad_output, retain_graph=True, allow_unused=True))

    first, second = once(), once()
    results = []
    for i, (a, b, x) in enumerate(zip(first, second, xs, strict=True)):
        if a is None:
            results.append(fb.zeros_like(_flat(x)))
            continue
        if a.shape != x.shape:
            raise GradcheckError(
                f"Analytical gradient has incorrect size: {where}, input {i} of shape "
                f"{tuple(x.shape)}, gradient of shape {tuple(a.shape)}"
            )
        if options.grad_dtypes and a.dtype != x.dtype:
            raise GradcheckError(
                "Gradient has dtype mismatch with its corresponding input tensor: "
                f"{where}, input {i} is {x.dtype}, gradient is {a.dtype}"
            )
        spread = _flat(a - b).abs().max().item() if a.numel() else 0.0
        if spread > options.nondet_tol:
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and "
                "grad_output multiple times gives different values, although analytical gradient "
                f"matches numerical gradient. {where}, input {i}: difference {spread}, tolerance "
                f"for nondeterminism {options.nondet_tol}"
            )
        results.append(_flat(a.to_dense() if a.is_sparse else a))
    return results


def _jvp(func: Callable[..., Any], inputs: tuple[Any, ...], x: Tensor, u: Tensor) -> list[Tensor]:
    """Forward mode along ``u``, as flat real vectors per output."""
    forward_ad = fb.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.detach(), _like(u, x).detach())
        given = [dual if y is x else y.detach() if isinstance(y, fb.Tensor) else y for y in inputs]
        tangents = []
        for y in _inexact_outputs(func, tuple(given)):
            primal, tangent = forward_ad.unpack_dual(y)
            tangents.append(fb.zeros_like(_flat(primal)) if tangent is None else _flat(tangent))
    return [t.clone() for t in tangents]


# ---- comparison ----------------------------------------------------------------------------


def _compare(
    analytical: Tensor, numerical: Tensor, options: _Options, where: str, atol: float | None = None
) -> None:
    atol = options.atol if atol is None else atol
    numerical = numerical.to(analytical.dtype)
    if not fb.allclose(analytical, numerical, rtol=options.rtol, atol=atol):
        raise GradcheckError(
            f"Jacobian mismatch for {where},\nnumerical:{numerical}\nanalytical:{analytical}\n"
        )


def _name(j: int, i: int, mode: str) -> str:
    return f"output {j} with respect to input {i} ({mode})"


def _slow(func: Callable[..., Any], inputs: tuple[Any, ...], options: _Options) -> None:
    """Whole Jacobians."""
    xs = _differentiable(inputs)
    numerical = [_numerical_jacobians(func, inputs, x, options.eps) for x in xs]
    outputs = _inexact_outputs(func, inputs)
    for j, y in enumerate(outputs):
        if options.backward:
            columns = [_backward_columns(y, xs, k, options, j) for k in range(_size(y))]
            for i, x in enumerate(xs):
                rows = [column[i] for column in columns]
                whole = fb.stack(rows, 1) if rows else _flat(x).new_zeros((_size(x), 0))
                _compare(whole, numerical[i][j], options, _name(j, i, "backward"))
    if options.forward:
        for i, x in enumerate(xs):
            units = (_unit(_size(x), k, x) for k in range(_size(x)))
            tangents = [_jvp(func, inputs, x, u) for u in units]
            for j in range(len(outputs) if tangents else 0):
                whole = fb.stack([t[j] for t in tangents])
                _compare(whole, numerical[i][j], options, _name(j, i, "forward mode"))


def _backward_columns(y: Tensor, xs: Tensors, k: int, options: _Options, j: int) -> list[Tensor]:
    if not y.requires_grad:
        return [fb.zeros_like(_flat(x)) for x in xs]
    return _vjp(y, xs, _unit(_size(y), k, y), options, f"output {j}")


def _fast(func: Callable[..., Any], inputs: tuple[Any, ...], options: _Options) -> None:
    """One random direction per input and per output: ``v (J u)`` against ``(v J) u``."""
    xs = _differentiable(inputs)
    generator = fb.Generator().manual_seed(0)

    def random(x: Tensor) -> Tensor:
        u = fb.rand(_size(x), generator=generator, dtype=fb.float64) + 0.1
        return (u / u.norm()).to(_flat(x).dtype) if u.numel() else u.to(_flat(x).dtype)

    us = [random(x) for x in xs]
    slopes = [_difference(func, inputs, x, u, options.eps) for x, u in zip(xs, us, strict=True)]
    outputs = _inexact_outputs(func, inputs)
    for j, y in enumerate(outputs):
        v = random(y)
        if options.backward:
            zeros = [fb.zeros_like(u) for u in us]
            grads = _vjp(y, xs, v, options, f"output {j}") if y.requires_grad else zeros
            for i, (grad, u) in enumerate(zip(grads, us, strict=True)):
                atol = options.atol * float(u.abs().sum()) * float(v.abs().sum())
                numerical = (slopes[i][j] * v).sum()
                _compare((grad * u).sum(), numerical, options, _name(j, i, "backward, fast"), atol)
    if options.forward:
        for i, (x, u) in enumerate(zip(xs, us, strict=True)):
            for j, tangent in enumerate(_jvp(func, inputs, x, u)):
                atol = options.atol * float(u.abs().sum())
                _compare(tangent, slopes[i][j], options, _name(j, i, "forward mode, fast"), atol)


# ---- further checks ------------------------------------------------------------------------


def _check_undefined(outputs: Tensors, xs: Tensors) -> None:
    """A zero vector gives zero or no gradient, never NaN."""
    for j, y in enumerate(outputs):
        zeros = fb.zeros_like(y)
        grads = fb.autograd.grad(y, xs, zeros, retain_graph=True, allow_unused=True)
        for i, grad in enumerate(grads):
            if grad is not None and not (grad.to_dense() == 0).all().item():
                raise GradcheckError(
                    f"Expected the gradient of input {i} to be None or zero where the gradient of "
                    f"output {j} is, got {grad}"
                )


def _check_batched(outputs: Tensors, xs: Tensors, options: _Options) -> None:
    """Backward over a batch of vectors equals a loop over them."""
    generator = fb.Generator().manual_seed(0)
    for j, y in enumerate(outputs):
        flat = fb.rand((2, _size(y)), generator=generator, dtype=fb.float64)
        vs = [_like(row.to(_flat(y).dtype), y) for row in flat]
        loop = [fb.autograd.grad(y, xs, v, retain_graph=True, allow_unused=True) for v in vs]
        try:
            batch = fb.autograd.grad(
                y, xs, fb.stack(vs), retain_graph=True, allow_unused=True, is_grads_batched=True
            )
        except RuntimeError as error:
            raise GradcheckError(
                f"While computing batched gradients of output {j}, got: {error}"
            ) from error
        for i, got in enumerate(batch):
            want = [row[i] for row in loop]
            if want[0] is None:
                continue
            if not fb.allclose(got, fb.stack(want), rtol=options.rtol, atol=options.atol):
                raise GradcheckError(
                    f"For output {j} and input {i}: the batched gradient differs from a loop "
                    f"over its vectors:\nbatched:{got}\nloop:{fb.stack(want)}\n"
                )


def _check_batched_forward(
    func: Callable[..., Any], inputs: tuple[Any, ...], options: _Options
) -> None:
    """Forward mode over a batch of tangents equals a loop over them."""
    forward_ad = fb.autograd.forward_ad
    generator = fb.Generator().manual_seed(0)
    for i, x in enumerate(_differentiable(inputs)):
        flat = fb.rand((2, _size(x)), generator=generator, dtype=fb.float64)
        tangents = fb.stack([_like(row.to(_flat(x).dtype), x) for row in flat])

        def push(tangent: Tensor, x: Tensor = x) -> Tensors:
            with forward_ad.dual_level():
                dual = forward_ad.make_dual(x.detach(), tangent)
                outs = _inexact_outputs(func, tuple(dual if y is x else y for y in inputs))
                parts = [forward_ad.unpack_dual(out) for out in outs]
                return tuple(
                    fb.zeros_like(p.primal) if p.tangent is None else p.tangent for p in parts
                )

        try:
            whole: Any = fb
            batch = whole.vmap(push)(tangents)
        except RuntimeError as error:
            raise GradcheckError(
                f"While computing batched forward derivatives by input {i}, got: {error}"
            ) from error
        loop = [push(t) for t in tangents]
        for j, got in enumerate(batch):
            want = fb.stack([row[j] for row in loop])
            if not fb.allclose(got, want, rtol=options.rtol, atol=options.atol):
                raise GradcheckError(
                    f"For output {j} and input {i}: the batched forward derivative differs from "
                    f"a loop over its tangents:\nbatched:{got}\nloop:{want}\n"
                )


# ---- the checks ----------------------------------------------------------------------------


def _check_inputs(inputs: tuple[Any, ...]) -> None:
    xs = _differentiable(inputs)
    if not xs:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )
    for i, x in enumerate(inputs):
        if not isinstance(x, fb.Tensor) or not x.requires_grad:
            continue
        if x.dtype not in (fb.float64, fb.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex.",
                stacklevel=4,
            )
        strided = zip(x.stride(), x.shape, strict=True)
        if any(stride == 0 and size > 1 for stride, size in strided):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs "
                "that are non-overlapping to be able to compute the numerical gradients "
                "correctly. You should call .contiguous on the input before passing it to "
                "gradcheck."
            )


def _run(func: Callable[..., Any], inputs: tuple[Any, ...], options: _Options) -> None:
    _check_inputs(inputs)
    xs = _differentiable(inputs)
    if options.fast:
        try:
            _fast(func, inputs, options)
        except GradcheckError as fast_error:
            if "mismatch for" not in str(fast_error):
                raise
            _slow(func, inputs, options)
            raise GradcheckError(
                f"{fast_error}\nThe whole Jacobians agree in slow mode: the tolerances are too "
                "narrow for fast mode here."
            ) from None
    else:
        _slow(func, inputs, options)
    outputs = tuple(y for y in _as_tuple(func(*inputs)) if isinstance(y, fb.Tensor))
    outputs = tuple(y for y in outputs if y.requires_grad)
    if options.backward and options.undefined:
        _check_undefined(outputs, xs)
    if options.batched:
        _check_batched(outputs, xs, options)
    if options.batched_forward:
        _check_batched_forward(func, inputs, options)


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare derivatives of ``func`` with central differences.

    Args:
        func: takes tensors, returns a tensor or a tuple.
        inputs: a tensor or a tuple; those that require gradients (double precision) are checked.
        eps: half the step of the differences.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: False returns False where derivatives disagree.
        nondet_tol: tolerated difference of two backward passes.
        check_undefined_grad: a zero vector must give zero or no gradients.
        check_grad_dtypes: gradients must have their inputs' dtypes.
        check_batched_grad: backward over a batch of vectors must equal a loop.
        check_batched_forward_grad: the same for forward mode.
        check_forward_ad: check forward mode too.
        check_backward_ad: check backward.
        fast_mode: one random direction in place of whole Jacobians.
        masked: accepted for sparse inputs, which are not perturbed.

    Returns:
        True where all agree.

    Raises:
        GradcheckError: they do not.
        ValueError: no input requires a gradient.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "Expected at least one of check_forward_ad and check_backward_ad to be True"
        )
    if check_batched_grad and not check_backward_ad:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_backward_ad to be True"
        )
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError(
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
        )
    options = _Options(
        eps=eps,
        atol=atol,
        rtol=rtol,
        nondet_tol=nondet_tol,
        fast=fast_mode,
        grad_dtypes=check_grad_dtypes,
        undefined=check_undefined_grad,
        batched=check_batched_grad,
        batched_forward=check_batched_forward_grad,
        forward=check_forward_ad,
        backward=check_backward_ad,
    )
    try:
        _run(func, _as_tuple(inputs), options)
    except RuntimeError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """``gradcheck`` of the gradient of ``func``, by the inputs and by the vectors of backward.

    Args:
        func: takes tensors, returns a tensor or a tuple.
        inputs: a tensor or a tuple.
        grad_outputs: vectors of backward; None draws them.
        gen_non_contig_grad_outputs: draw them with gaps in memory.
        check_fwd_over_rev: check forward mode through backward.
        check_rev_over_rev: check backward through backward.

    The other arguments are those of ``gradcheck``.
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError(
            "Expected at least one of check_fwd_over_rev and check_rev_over_rev to be True"
        )
    given = _as_tuple(inputs)
    if grad_outputs is None:
        outputs = _differentiable(_as_tuple(func(*given)))
        vectors = tuple(_draw(y, gen_non_contig_grad_outputs, k) for k, y in enumerate(outputs))
    else:
        vectors = _as_tuple(grad_outputs)
    count = len(vectors)

    def gradient(*args: Any) -> Tensors:
        arguments, vs = args[: len(args) - count], args[len(args) - count :]
        # Non-leaf copies: differentiating must not touch the caller's tensors.
        arguments = tuple(
            x.requires_grad_() if _needs(x, like) else x
            for x, like in zip(arguments, given, strict=True)
        )
        outputs = _differentiable(_as_tuple(func(*arguments)))
        xs = _differentiable(arguments)
        grads = fb.autograd.grad(outputs, xs, vs, create_graph=True, allow_unused=True)
        return tuple(g for g in grads if isinstance(g, fb.Tensor))

    with fb.enable_grad():
        return gradcheck(
            gradient,
            given + vectors,
            eps=eps,
            atol=atol,
            rtol=rtol,
            raise_exception=raise_exception,
            nondet_tol=nondet_tol,
            check_undefined_grad=check_undefined_grad,
            check_grad_dtypes=check_grad_dtypes,
            check_batched_grad=check_batched_grad,
            fast_mode=fast_mode,
            check_forward_ad=check_fwd_over_rev,
            check_backward_ad=check_rev_over_rev,
            masked=masked,
        )


def _needs(x: Any, like: Any) -> bool:
    return isinstance(x, fb.Tensor) and like.requires_grad and not x.requires_grad


def _draw(y: Tensor, gaps: bool, seed: int) -> Tensor:
    """A vector for backward from ``y``, away from zero."""
    generator = fb.Generator().manual_seed(seed)
    flat = fb.rand(_size(y), generator=generator, dtype=fb.float64) + 0.1
    v = _like(flat.to(_flat(y).dtype), y)
    if gaps and v.dim() > 0:
        wide = fb.stack([v, v], dim=-1)
        v = wide[..., 0]
    return v.detach().requires_grad_()
