"""Jacobians, Hessians and their products, by repeated backward passes.

Owns the functions of ``flambeau.autograd.functional``. Invariant: the given inputs are not
touched; without ``create_graph`` results carry no graph. Products with the Jacobian from the
right come from differentiating backward itself; with ``vectorize`` the passes are one under
``vmap``. ``flambeau.func`` is the composable face of the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import flambeau as fb

if TYPE_CHECKING:
    from flambeau import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = tuple["Tensor", ...]


# ---- arguments and results -----------------------------------------------------------------


def _as_tuple(value: Any, what: str, function: str) -> tuple[bool, Tensors]:
    """Whether a tuple was given, and the tensors as a tuple."""
    if isinstance(value, fb.Tensor):
        return False, (value,)
    if not isinstance(value, (tuple, list)):
        raise TypeError(
            f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but "
            f"got {type(value)} instead."
        )
    for i, x in enumerate(value):
        if not isinstance(x, fb.Tensor):
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors "
                f"but the value at index {i} has type {type(x)}."
            )
    return True, tuple(value)


def _prepare(inputs: Tensors, create_graph: bool) -> Tensors:
    """Inputs to differentiate by: their own nodes, linked to the caller's graph where wanted."""

    def fresh(x: Tensor) -> Tensor:
        if create_graph and x.requires_grad:
            return x.view_as(x)
        return x.detach().requires_grad_(True)

    return tuple(fresh(x) for x in inputs)


def _result(tensors: Tensors, is_tuple: bool, create_graph: bool) -> Any:
    out = tensors if create_graph else tuple(x.detach() for x in tensors)
    return out if is_tuple else out[0]


def _check_v(v: Tensors, like: Tensors, is_tuple: bool) -> None:
    if len(v) != len(like):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}."
        )
    for i, (a, b) in enumerate(zip(v, like, strict=True)):
        if a.shape != b.shape:
            name = f"Entry {i} in v" if is_tuple else "v"
            raise RuntimeError(f"{name} has invalid size: should be {b.shape} but got {a.shape}.")


def _vector(v: Any, like: Tensors, function: str, needless: bool, why: str) -> Tensors:
    """The given vector, checked, or the only one possible."""
    if v is not None:
        is_tuple, given = _as_tuple(v, "v", function)
        _check_v(given, like, is_tuple)
        return given
    if not needless:
        raise RuntimeError(f"The vector v can only be None if {why}.")
    return tuple(fb.ones_like(x) for x in like)


def _grads(
    outputs: Tensors,
    inputs: Tensors,
    vectors: Tensors,
    create_graph: bool,
    retain_graph: bool | None = None,
) -> list[Any]:
    """Gradients, None where there is no path; outputs without graph are left out."""
    pairs = [(o, v) for o, v in zip(outputs, vectors, strict=True) if o.requires_grad]
    if not pairs:
        return [None] * len(inputs)
    outs, vs = zip(*pairs, strict=True)
    return list(
        fb.autograd.grad(
            outs,
            inputs,
            vs,
            allow_unused=True,
            create_graph=create_graph,
            retain_graph=retain_graph,
        )
    )


def _filled(
    grads: list[Any], like: Tensors, strict: bool, create_graph: bool, what: str
) -> Tensors:
    """Zeros for what is independent; in strict mode that is an error."""
    out = []
    for i, (grad, x) in enumerate(zip(grads, like, strict=True)):
        if grad is None:
            if strict:
                raise RuntimeError(
                    f"{what}: The output of the user-provided function is independent of input "
                    f"{i}. This is not allowed in strict mode."
                )
            grad = fb.zeros_like(x)
        elif strict and create_graph and not grad.requires_grad:
            raise RuntimeError(
                f"{what}: The result of the user-provided function is independent of input {i}, "
                "as it does not depend on it differentiably. This is not allowed in strict mode "
                "when create_graph=True."
            )
        out.append(grad)
    return tuple(out)


def _check_outputs(outputs: Tensors, strict: bool, what: str) -> None:
    for i, out in enumerate(outputs):
        if strict and not out.requires_grad:
            raise RuntimeError(
                f"{what}: Output {i} of the user-provided function does not require gradients. "
                "The outputs must be computed in a differentiable manner from the input when "
                "running in strict mode."
            )


def _inputs(inputs: Any, create_graph: bool, name: str) -> tuple[bool, Tensors]:
    many, given = _as_tuple(inputs, "inputs", name)
    return many, _prepare(given, create_graph)


def _outputs(
    func: Callable[..., Any], xs: Tensors, strict: bool, name: str
) -> tuple[bool, Tensors]:
    many, outputs = _as_tuple(func(*xs), "outputs of the user-provided function", name)
    _check_outputs(outputs, strict, name)
    return many, outputs


def _is_scalar(many: bool, tensors: Tensors) -> bool:
    return len(tensors) == 1 and tensors[0].numel() == 1 and not (many and len(tensors) > 1)


def _input_vector(v: Any, many: bool, xs: Tensors, function: str) -> Tensors:
    why = "the input to the user-provided function is a single Tensor with a single element"
    return _vector(v, xs, function, _is_scalar(many, xs), why)


def _slope(outputs: Tensors, xs: Tensors, strict: bool, name: str) -> Tensors:
    """The gradient of a scalar output, with its graph."""
    ones = tuple(fb.ones_like(out) for out in outputs)
    return _filled(_grads(outputs, xs, ones, create_graph=True), xs, strict, True, name)


def _pushed(
    outputs: Tensors, xs: Tensors, vs: Tensors, strict: bool, create_graph: bool, name: str
) -> Tensors:
    """The Jacobian of outputs times `vs`. Backward is linear in its vector; its derivative with
    respect to that vector, times `vs`, is the product wanted."""
    probes = tuple(fb.zeros_like(out, requires_grad=True) for out in outputs)
    back = _filled(_grads(outputs, xs, probes, create_graph=True), xs, strict, True, name)
    columns = _grads(back, probes, vs, create_graph)
    return _filled(columns, outputs, strict, create_graph, name)


# ---- products ------------------------------------------------------------------------------


def vjp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The value of ``func`` and the product of ``v`` with its Jacobian.

    Args:
        func: takes and returns tensors.
        inputs: a tensor or a tuple.
        v: like the outputs; may be left out for a single element.
        create_graph: make the result differentiable.
        strict: refuse outputs that do not depend on an input, in place of zeros.

    Returns:
        outputs, and one tensor per input.
    """
    with fb.enable_grad():
        many_in, xs = _inputs(inputs, create_graph, "vjp")
        many_out, outputs = _outputs(func, xs, strict, "vjp")
        why = "the user-provided function returns a single Tensor with a single element"
        vs = _vector(v, outputs, "vjp", _is_scalar(many_out, outputs), why)
    with fb.set_grad_enabled(create_graph or fb.is_grad_enabled()):
        grads = _grads(outputs, xs, vs, create_graph)
        product = _filled(grads, xs, strict, create_graph, "vjp")
    return (
        _result(outputs, many_out, create_graph),
        _result(product, many_in, create_graph),
    )


def jvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The value of ``func`` and the product of its Jacobian with ``v``.

    Args:
        func: takes and returns tensors.
        inputs: a tensor or a tuple.
        v: like the inputs; may be left out for a single element.
        create_graph: make the result differentiable.
        strict: refuse outputs that do not depend on an input, in place of zeros.

    Returns:
        outputs, and one tensor per output.
    """
    with fb.enable_grad():
        many_in, xs = _inputs(inputs, create_graph, "jvp")
        vs = _input_vector(v, many_in, xs, "jvp")
        many_out, outputs = _outputs(func, xs, strict, "jvp")
        product = _pushed(outputs, xs, vs, strict, create_graph, "jvp")
    return (
        _result(outputs, many_out, create_graph),
        _result(product, many_out, create_graph),
    )


def _check_scalar_output(many_out: bool, outputs: Tensors, name: str) -> None:
    if many_out:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {name} should contain a single element"
        )


def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The value of a scalar function and the product of ``v`` with its Hessian.

    Args:
        func: takes tensors, returns a single element.
        inputs: a tensor or a tuple.
        v: like the inputs; may be left out for a single element.
        create_graph: make the result differentiable.
        strict: refuse outputs that do not depend on an input, in place of zeros.
    """
    with fb.enable_grad():
        many_in, xs = _inputs(inputs, create_graph, "vhp")
        vs = _input_vector(v, many_in, xs, "vhp")
        many_out, outputs = _outputs(func, xs, strict, "vhp")
        _check_scalar_output(many_out, outputs, "vhp")
        rows = _grads(_slope(outputs, xs, strict, "vhp"), xs, vs, create_graph)
        product = _filled(rows, xs, strict, create_graph, "vhp")
    return (
        _result(outputs, many_out, create_graph),
        _result(product, many_in, create_graph),
    )


def hvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The value of a scalar function and the product of its Hessian with ``v``.

    The Hessian of a twice differentiable function is symmetric, but the two products need not round
    equally; this one differentiates the gradient's own backward.

    Args:
        func: takes tensors, returns a single element.
        inputs: a tensor or a tuple.
        v: like the inputs; may be left out for a single element.
        create_graph: make the result differentiable.
        strict: refuse outputs that do not depend on an input, in place of zeros.
    """
    with fb.enable_grad():
        many_in, xs = _inputs(inputs, create_graph, "hvp")
        vs = _input_vector(v, many_in, xs, "hvp")
        many_out, outputs = _outputs(func, xs, strict, "hvp")
        _check_scalar_output(many_out, outputs, "hvp")
        slope = _slope(outputs, xs, strict, "hvp")
        product = _pushed(slope, xs, vs, strict, create_graph, "hvp")
    return (
        _result(outputs, many_out, create_graph),
        _result(product, many_in, create_graph),
    )


# ---- matrices ------------------------------------------------------------------------------


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian: for each output and input, a tensor of shape ``output.shape + input.shape``.

    Args:
        func: takes and returns tensors.
        inputs: a tensor or a tuple.
        create_graph: make the result differentiable (reverse mode only).
        strict: refuse outputs that do not depend on an input, in place of zeros.
        vectorize: one pass for all rows (or columns), under ``vmap``.
        strategy: ``"reverse-mode"``, or with ``vectorize`` ``"forward-mode"``, for few inputs and
            many outputs.

    Returns:
        a tensor; a tuple where the inputs, or the outputs, are one; nested with the outputs outside
        where both are.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
            'function has more outputs than inputs, "forward-mode" tends to be more performant. '
            'Otherwise, prefer to use "reverse-mode".'
        )
    if create_graph and strategy == "forward-mode":
        raise NotImplementedError(
            'jacobian: create_graph=True is not supported with strategy="forward-mode"'
        )
    if strict and (vectorize or strategy == "forward-mode"):
        raise RuntimeError(
            "jacobian: strict=True is not supported together with vectorize=True or "
            'strategy="forward-mode"'
        )
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs, vectorize)
    with fb.enable_grad():
        many_in, xs = _inputs(inputs, create_graph, "jacobian")
        many_out, outputs = _outputs(func, xs, strict, "jacobian")
        if not vectorize and any(out.is_complex() for out in outputs):
            raise RuntimeError(
                "jacobian: expected real outputs, got a complex one, whose Jacobian backward "
                "alone does not determine"
            )
        if vectorize:
            blocks = [_rows_at_once(out, xs, create_graph) for out in outputs]
        else:
            blocks = [_rows(out, xs, create_graph, strict) for out in outputs]
    return _nested(blocks, many_out, many_in, create_graph)


def _rows(out: Tensor, xs: Tensors, create_graph: bool, strict: bool) -> Tensors:
    """One backward per entry of ``out``."""
    rows: list[Tensors] = []
    flat = out.reshape(-1)
    for j in range(flat.numel()):
        entry = (flat[j],)
        grads = _grads(entry, xs, (fb.ones_like(entry[0]),), create_graph, retain_graph=True)
        rows.append(_filled(grads, xs, strict, create_graph, "jacobian"))
    if not rows:
        return tuple(x.new_zeros(out.shape + x.shape) for x in xs)
    return tuple(
        fb.stack(list(column)).reshape(out.shape + x.shape)
        for column, x in zip(zip(*rows, strict=True), xs, strict=True)
    )


def _basis(x: Tensor) -> Tensor:
    """A batch of the unit tensors of the shape of ``x``."""
    return fb.eye(x.numel(), dtype=x.dtype, device=x.device).reshape(x.numel(), *x.shape)


def _rows_at_once(out: Tensor, xs: Tensors, create_graph: bool) -> Tensors:
    """One backward under ``vmap`` for all entries of ``out``."""
    if not out.requires_grad or out.numel() == 0:
        return tuple(x.new_zeros(out.shape + x.shape) for x in xs)
    grads = fb.autograd.grad(
        out,
        xs,
        _basis(out),
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
        is_grads_batched=True,
    )
    return tuple(
        x.new_zeros(out.shape + x.shape) if g is None else g.reshape(out.shape + x.shape)
        for g, x in zip(grads, xs, strict=True)
    )


def _forward_jacobian(func: Callable[..., Any], inputs: Any, vectorize: bool) -> Any:
    """One forward pass with a tangent per entry of the inputs."""
    if not vectorize:
        raise NotImplementedError(
            'jacobian: strategy="forward-mode" is only supported with vectorize=True'
        )
    many_in, given = _as_tuple(inputs, "inputs", "jacobian")
    primals = tuple(x.detach() for x in given)
    many_out, outs = _as_tuple(func(*primals), "outputs of the user-provided function", "jacobian")
    blocks: list[list[Tensor]] = [[] for _ in outs]
    for i, x in enumerate(primals):
        columns = _columns(func, primals, i) if x.numel() else outs
        for block, out, column in zip(blocks, outs, columns, strict=True):
            if x.numel() == 0:
                block.append(out.new_zeros(out.shape + x.shape))
            else:
                block.append(column.movedim(0, -1).reshape(out.shape + x.shape))
    return _nested([tuple(block) for block in blocks], many_out, many_in, create_graph=False)


def _columns(func: Callable[..., Any], primals: Tensors, i: int) -> Tensors:
    """For each output a batch of its tangents, one for each entry of input ``i``."""
    forward_ad = fb.autograd.forward_ad

    def push(tangent: Tensor) -> Tensors:
        with forward_ad.dual_level():
            xs = list(primals)
            xs[i] = forward_ad.make_dual(primals[i], tangent)
            _, outs = _as_tuple(func(*xs), "outputs of the user-provided function", "jacobian")
            parts = [forward_ad.unpack_dual(out) for out in outs]
            return tuple(
                fb.zeros_like(p.primal) if p.tangent is None else p.tangent.clone() for p in parts
            )

    return fb.vmap(push)(_basis(primals[i]))


def _nested(blocks: list[Tensors], many_out: bool, many_in: bool, create_graph: bool) -> Any:
    rows = tuple(_result(block, many_in, create_graph) for block in blocks)
    return rows if many_out else rows[0]


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a scalar function: for each pair of inputs a tensor of both shapes.

    Args:
        func: takes tensors, returns a single element.
        inputs: a tensor or a tuple.
        create_graph: make the result differentiable.
        strict: refuse outputs that do not depend on an input, in place of zeros.
        vectorize: see ``jacobian``.
        outer_jacobian_strategy: how the gradient is differentiated.
    """
    many_in, given = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode", got '
            f"{outer_jacobian_strategy!r}."
        )

    def scalar(*xs: Any) -> Any:
        out = func(*xs)
        many_out, outs = _as_tuple(out, "outputs of the user-provided function", "hessian")
        _check_outputs(outs, strict, "hessian")
        _check_scalar_output(many_out, outs, "hessian")
        return outs[0].reshape(())

    def gradient(*xs: Any) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            xs = tuple(x if x.requires_grad else x.requires_grad_(True) for x in xs)
        rows = jacobian(scalar, xs, create_graph=True, strict=strict)
        return rows

    blocks = jacobian(
        gradient,
        given,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )
    return blocks if many_in else blocks[0][0]
