"""`opcheck`: whether what is registered for an operator agrees with what it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flambeau
from flambeau import _C, Tensor

from .operators import OpOverload, overload_of
from .rules import _tensors


class OpCheckError(Exception):
    """What an operator does and what is registered for it differ."""


Case = tuple[OpOverload, tuple[Any, ...], dict[str, Any], dict[str, Any]]


def _copies(values: Sequence[Any], device: str | None = None) -> list[Any]:
    """Arguments with tensors of their own."""

    def copy(x: Any) -> Any:
        if isinstance(x, Tensor):
            made = x.detach().clone() if device is None else x.detach().to(device)
            return made.requires_grad_(x.requires_grad)
        return [copy(t) for t in x] if isinstance(x, (list, tuple)) else x

    return [copy(v) for v in values]


def _call(op: Callable[..., Any], case: Case, values: Sequence[Any]) -> Any:
    args, kwargs = case[0].spread(values)
    return op(*args, **kwargs)


def _results(out: Any) -> list[Any]:
    return list(out) if isinstance(out, tuple) else [out]


def _values(case: Case) -> list[Any]:
    return case[0].bind(case[1], case[2])


def test_schema(case: Case) -> None:
    """What the schema does not say is written to stays, and results share no memory unasked."""
    op = case[0]
    schema = op._schema
    given, untouched = _copies(_values(case)), _copies(_values(case))
    with flambeau.no_grad():
        out = _call(op, case, given)
    for a, now, before in zip(schema.arguments, given, untouched, strict=True):
        if a.is_write:
            continue
        for x, y in zip(_tensors([now]), _tensors([before]), strict=True):
            if not ((x == y) | ((x != x) & (y != y))).all():
                raise OpCheckError(
                    f"{op._uid}: argument '{a.name}' is written to, which the schema does not say: "
                    f"{schema}"
                )
    memory = {}
    for a, v in zip(schema.arguments, given, strict=True):
        memory.update({t.untyped_storage().data_ptr(): a for t in _tensors([v]) if t.numel()})
    for r, y in zip(schema.returns, _results(out), strict=False):
        for t in _tensors([y]):
            of = memory.get(t.untyped_storage().data_ptr()) if t.numel() else None
            if of is not None and (r.alias_info is None or of.alias_info is None):
                raise OpCheckError(
                    f"{op._uid}: a result shares memory with argument '{of.name}', but the schema "
                    f"does not say so: {schema}"
                )


def test_autograd_registration(case: Case) -> None:
    """There is a derivative where an argument requires gradients."""
    op = case[0]
    if not any(t.requires_grad for t in _tensors(_values(case))) or op._schema.is_mutable:
        return
    if not any(_C._op_has_kernel(op._uid, kind) for kind in ("Autograd", "Composite")):
        raise OpCheckError(
            f"{op._uid}: arguments require gradients, but the operator has no derivative; give it "
            "one with register_autograd, or a kernel for Autograd or CompositeImplicitAutograd"
        )


def test_faketensor(case: Case) -> None:
    """For tensors without data the operator returns what it returns for those with data."""
    op = case[0]
    with flambeau.no_grad():
        real = _results(_call(op, case, _copies(_values(case))))
        try:
            fake = _results(_call(op, case, _copies(_values(case), "meta")))
        except NotImplementedError as e:
            raise OpCheckError(str(e)) from e
    if len(real) != len(fake):
        raise OpCheckError(f"{op._uid}: the fake returns {len(fake)} results, not {len(real)}")
    for k, (x, y) in enumerate(zip(_tensors(real), _tensors(fake), strict=True)):
        for what in ("shape", "dtype", "stride()"):
            a, b = (getattr(t, what.removesuffix("()")) for t in (x, y))
            a, b = (a(), b()) if what == "stride()" else (a, b)
            if a != b and (what != "stride()" or x.numel()):
                raise OpCheckError(f"{op._uid}: result {k} has {what} {a}, but the fake says {b}")


def _test_compiled(case: Case, dynamic: bool) -> None:
    op, _, _, tolerances = case
    wanted: list[Any] = []
    names: dict[str, Any] = {"op": op}  # a function that is not ours, which are not looked into
    exec(
        compile("def call(*args, **kwargs): return op(*args, **kwargs)", "<opcheck>", "exec"), names
    )
    for function in (op, flambeau.compile(names["call"], fullgraph=True, dynamic=dynamic)):
        given = _copies(_values(case))
        out = _tensors(_results(_call(function, case, given)))
        differentiable = [y for y in out if y.requires_grad and y.is_floating_point()]
        leaves = [t for t in _tensors(given) if t.requires_grad]
        grads: Sequence[Any] = ()
        if differentiable and leaves:
            total = sum((y.sum() for y in differentiable), flambeau.zeros(()))
            grads = flambeau.autograd.grad(total, leaves, allow_unused=True)
        wanted.append([*[y.detach() for y in out], *_tensors(given), *grads])
    for x, y in zip(*wanted, strict=True):
        if (x is None) != (y is None):
            raise OpCheckError(f"{op._uid}: compiled, a gradient is there that eager has not")
        if x is not None:
            try:
                flambeau.testing.assert_close(y, x, equal_nan=True, **tolerances)
            except AssertionError as e:
                raise OpCheckError(f"{op._uid}: compiled, it gives something else: {e}") from e


def test_aot_dispatch_static(case: Case) -> None:
    """Compiled, the operator and its gradients are what they are in eager."""
    _test_compiled(case, False)


def test_aot_dispatch_dynamic(case: Case) -> None:
    """The same with sizes that vary."""
    _test_compiled(case, True)


_TESTS = {
    f.__name__: f
    for f in (
        test_schema,
        test_autograd_registration,
        test_faketensor,
        test_aot_dispatch_static,
        test_aot_dispatch_dynamic,
    )
}
_DEFAULT = tuple(n for n in _TESTS if n != "test_aot_dispatch_static")


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = _DEFAULT,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Check that what is registered for an operator agrees with what it does.

    It does not check that gradients are right; `torch.autograd.gradcheck` does.

    Args:
        op: an operator, as `custom_op` returns it or `torch.ops` has it.
        args: arguments for a call, some that require gradients if it has a derivative.
        kwargs: arguments by name.
        test_utils: which checks: of the schema ("test_schema"), of the derivative
            ("test_autograd_registration"), of the fake ("test_faketensor"), compiled
            ("test_aot_dispatch_dynamic", "test_aot_dispatch_static").
        raise_exception: False puts errors into what is returned.
        atol, rtol: how far compiled results may be from eager's.

    Returns:
        "SUCCESS" by the name of each check.

    Raises:
        OpCheckError: a check failed.

    >>> @torch.library.custom_op("docs::plus_one", mutates_args=())
    ... def plus_one(x: torch.Tensor) -> torch.Tensor:
    ...     return x + 1
    >>> torch.library.opcheck(plus_one, (torch.ones(2),), test_utils="test_schema")
    {'test_schema': 'SUCCESS'}
    """
    if (atol is None) != (rtol is None):
        raise ValueError("opcheck: expected atol and rtol, or neither")
    tolerances: dict[str, Any] = {} if atol is None else {"atol": atol, "rtol": rtol}
    case = (overload_of(op), tuple(args), dict(kwargs or {}), tolerances)
    names = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    if unknown := [n for n in names if n not in _TESTS]:
        raise ValueError(f"opcheck: expected names of {', '.join(_TESTS)}, got {unknown}")
    out: dict[str, Any] = {}
    for name in names:
        try:
            _TESTS[name](case)
            out[name] = "SUCCESS"
        except Exception as e:
            if raise_exception:
                if isinstance(e, OpCheckError):
                    raise
                raise OpCheckError(f"opcheck({op}): {name}: {type(e).__name__}: {e}") from e
            out[name] = e
    return out
