"""Whether all ways to a derivative of a function agree with finite differences, and each other.

A function takes tensors of float64 and gives one, or several. From it a number is made, whose
slope along a direction, gradient and product of the Hessian with the direction are taken in every
nesting of two of jvp, vjp, vmap, grad and `dual_level`. Knows nothing of how functions are drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import flambeau as torch
import flambeau.autograd.forward_ad as fwAD
from flambeau import func

Function = Callable[..., Any]
Way = Callable[[], Any]
EPS = 1e-5
FLOATS = (torch.float32, torch.float64, torch.complex64, torch.complex128)


def numbers(f: Function) -> Function:
    """One number of all that f gives, with a curvature of its own."""

    def number(*xs: Any) -> Any:
        result = f(*xs)
        total = torch.zeros((), dtype=torch.float64)
        flat = [result] if isinstance(result, torch.Tensor) else list(result)
        for k, y in enumerate(y for y in flat if isinstance(y, torch.Tensor)):
            if y.dtype not in FLOATS or y.numel() == 0:
                continue
            y = torch.view_as_real(y) if y.is_complex() else y
            weights = torch.linspace(0.5, 1.5 + k, y.numel(), dtype=torch.float64).reshape(y.shape)
            total = total + (weights * (y + 0.1 * y * y)).sum()
        return total

    return number


def _shifted(xs: Sequence[Any], vs: Sequence[Any], by: float) -> list[Any]:
    return [x + by * v for x, v in zip(xs, vs, strict=True)]


def _flat(xs: Any) -> Any:
    xs = [xs] if isinstance(xs, torch.Tensor) else list(xs)
    return torch.cat([x.detach().reshape(-1) for x in xs])


def _dot(xs: Sequence[Any], vs: Sequence[Any]) -> Any:
    return sum(((x * v).sum() for x, v in zip(xs, vs, strict=True)), torch.zeros(()).double())


class Checked:
    """A function at a point, along a direction. Arguments are tuples of tensors of float64.
    `compiled`: it is compiled, too, and differentiated twice."""

    def __init__(
        self, f: Function, xs: Sequence[Any], vs: Sequence[Any], compiled: bool = False
    ) -> None:
        self.f, self.s, self.compiled = f, numbers(f), compiled
        self.xs, self.vs = tuple(xs), tuple(vs)
        self.all = tuple(range(len(self.xs)))
        self.kept = [v.clone() for v in self.vs]

    # Single derivatives ---------------------------------------------------------------------------

    def gradient(self, xs: Sequence[Any]) -> tuple[Any, ...]:
        """By reverse mode, outside of all transforms."""
        leaves = [x.detach().clone().requires_grad_() for x in xs]
        y = self.s(*leaves)
        if not y.requires_grad:
            return tuple(torch.zeros_like(x) for x in xs)
        return torch.autograd.grad(y, leaves, allow_unused=True, materialize_grads=True)

    def slope(self, *xs: Any) -> Any:
        return func.jvp(self.s, xs, self.vs)[1]

    def pulled(self, *xs: Any) -> tuple[Any, ...]:
        value, pull = func.vjp(self.s, *xs)
        return pull(torch.ones_like(value))

    def grads(self, *xs: Any) -> tuple[Any, ...]:
        return func.grad(self.s, self.all)(*xs)

    def dual(self, of: Function, live: bool) -> tuple[Any, ...]:
        """Tangents of what `of` gives for dual arguments."""
        with fwAD.dual_level():
            xs = [
                fwAD.make_dual(x.detach().clone().requires_grad_(live), v)
                for x, v in zip(self.xs, self.vs, strict=True)
            ]
            ys = of(*xs)
            ys = [ys] if isinstance(ys, torch.Tensor) else ys
            found = []
            for y in ys:
                primal, tangent = fwAD.unpack_dual(y)
                found.append(torch.zeros_like(primal) if tangent is None else tangent)
            return tuple(found)

    def backward_of_duals(self, create: bool) -> tuple[Any, ...]:
        def slopes(*xs: Any) -> Any:
            y = self.s(*xs)
            if not y.requires_grad:
                return [torch.zeros_like(x) for x in xs]
            return torch.autograd.grad(
                y, xs, create_graph=create, allow_unused=True, materialize_grads=True
            )

        return self.dual(slopes, True)

    def twice_compiled(self) -> tuple[Any, ...]:
        """The same with a compiled function, whose backward is a graph of its own."""
        compiled = torch.compile(self.s, backend="aot_eager")
        try:
            return self.twice_backward(compiled)
        finally:
            compiled._flambeau_config.forget()

    def twice_backward(self, s: Function | None = None) -> tuple[Any, ...]:
        leaves = [x.detach().clone().requires_grad_() for x in self.xs]
        y = (s or self.s)(*leaves)
        zeros = tuple(torch.zeros_like(x) for x in leaves)
        if not y.requires_grad:
            return zeros
        slopes = torch.autograd.grad(
            y, leaves, create_graph=True, allow_unused=True, materialize_grads=True
        )
        along = _dot(slopes, self.vs)
        if not along.requires_grad:
            return zeros
        return torch.autograd.grad(along, leaves, allow_unused=True, materialize_grads=True)

    def batch(self, dim: int) -> tuple[list[Any], Any]:
        """The arguments and others near them, as samples in dim `dim`."""
        stacked = [
            torch.stack([x, x + 1e-3 * v], dim if x.dim() >= dim else 0)
            for x, v in zip(self.xs, self.vs, strict=True)
        ]
        return stacked, tuple(dim if x.dim() >= dim else 0 for x in self.xs)

    def of_samples(self, g: Function, dim: int) -> Any:
        """g of the first sample of a batch, and that of the second beside g by itself."""
        xs, dims = self.batch(dim)
        found = func.vmap(g, in_dims=dims)(*xs)
        found = found if isinstance(found, tuple) else (found,)
        other = g(*_shifted(self.xs, self.vs, 1e-3))
        other = other if isinstance(other, tuple) else (other,)
        _compare("the second sample", [y[1] for y in found], other)
        return tuple(y[0] for y in found)

    def along_both(self, push: Function) -> Any:
        """`push` of a batch of directions, the first of which is ours, in their last dim."""
        vs = [torch.stack([v, 2 * v], -1) for v in self.vs]
        found = func.vmap(lambda *d: push(d), in_dims=-1)(*vs)
        found = found if isinstance(found, tuple) else (found,)
        _compare("twice the direction", [y[1] for y in found], [2 * y[0] for y in found])
        return tuple(y[0] for y in found)

    # What is compared ---------------------------------------------------------------------------

    def first(self) -> dict[str, Way]:
        """Ways to the slope along the direction."""
        xs, vs = self.xs, self.vs
        return {
            "jvp": lambda: self.slope(*xs),
            "dual_level": lambda: self.dual(self.s, False)[0],
            "dual_level of live inputs": lambda: self.dual(self.s, True)[0],
            "vjp": lambda: _dot(self.pulled(*xs), vs),
            "linearize": lambda: func.linearize(self.s, *xs)[1](*vs),
            "vmap of jvp": lambda: self.along_both(lambda d: func.jvp(self.s, xs, d)[1]),
            "vmap of jvp over samples": lambda: self.of_samples(self.slope, 1),
            "jvp of vmap": lambda: func.jvp(
                lambda *a: func.vmap(self.s)(*(x.unsqueeze(0) for x in a)).sum(), xs, vs
            )[1],
        }

    def whole(self) -> dict[str, Way]:
        """Ways to the gradient."""
        xs = self.xs
        return {
            "grad": lambda: self.grads(*xs),
            "vmap of vjp": lambda: tuple(
                g[0]
                for g in func.vmap(lambda c: func.vjp(self.s, *xs)[1](c))(torch.ones(2).double())
            ),
            "vmap of grad": lambda: self.of_samples(self.grads, 0),
            "vmap of grad, samples in dim 1": lambda: self.of_samples(self.grads, 1),
            "grad of vmap": lambda: func.grad(
                lambda *a: func.vmap(self.s)(*(x.unsqueeze(0) for x in a)).sum(), self.all
            )(*xs),
            "jacrev": lambda: func.jacrev(self.s, self.all)(*xs),
        }

    def second(self) -> dict[str, Way]:
        """Ways to the product of the Hessian and the direction."""
        xs, vs = self.xs, self.vs
        return {
            "jvp of grad": lambda: func.jvp(self.grads, xs, vs)[1],
            "jvp of vjp": lambda: func.jvp(self.pulled, xs, vs)[1],
            "grad of jvp": lambda: func.grad(self.slope, self.all)(*xs),
            "vjp of jvp": lambda: func.vjp(self.slope, *xs)[1](torch.ones(()).double()),
            "vjp of grad": lambda: func.vjp(self.grads, *xs)[1](vs),
            "grad of vjp": lambda: func.grad(lambda *a: _dot(self.pulled(*a), vs), self.all)(*xs),
            "backward twice": self.twice_backward,
            **({"backward twice, compiled": self.twice_compiled} if self.compiled else {}),
            "backward in a dual_level": lambda: self.backward_of_duals(False),
            "backward, recorded, in a dual_level": lambda: self.backward_of_duals(True),
            "grad in a dual_level": lambda: self.dual(self.grads, False),
            "vmap of jvp of grad": lambda: self.along_both(
                lambda d: func.jvp(self.grads, xs, d)[1]
            ),
            "vmap of vjp of grad": lambda: self.along_both(
                lambda d: func.vjp(self.grads, *xs)[1](d)
            ),
            "vmap of grad of jvp": lambda: self.along_both(
                lambda d: func.grad(lambda *a: func.jvp(self.s, a, d)[1], self.all)(*xs)
            ),
            "vmap over samples of jvp of grad": lambda: self.of_samples(
                lambda *a: func.jvp(self.grads, a, vs)[1], 1
            ),
            "jvp of vmap of grad": lambda: func.jvp(
                lambda *a: tuple(
                    g[0]
                    for g in func.vmap(self.grads)(*(x.unsqueeze(0) for x in a))
                ),
                xs, vs,
            )[1],
        }  # fmt: skip

    def differences(self, of: Function) -> list[Any] | None:
        """Central differences of what `of` gives; None where they depend on the step."""
        found = []
        for step in (EPS, 4 * EPS):
            ups, downs = (of(_shifted(self.xs, self.vs, by)) for by in (step, -step))
            found.append([(a - b) / (2 * step) for a, b in zip(ups, downs, strict=True)])
        a, b = map(_flat, found)
        settled = bool(((a - b).abs() <= _allowed(b) / 2).all())
        return found[0] if settled else None

    def failure(self) -> str:
        """What is wrong, "" when nothing is."""
        try:
            slope = self.differences(lambda xs: [self.s(*xs)])
        except Exception as error:
            return f"program: {type(error).__name__}: {error}"
        try:
            gradient = self.gradient(self.xs)
        except Exception:  # reverse mode refuses it; forward mode may know the derivative
            want = slope[0] if slope else None
            return "" if want is None else _found("jvp", lambda: self.slope(*self.xs), want)
        product = self.differences(self.gradient)
        if slope and (why := _found("backward", lambda: _dot(gradient, self.vs), slope)):
            return why
        along = slope or [_dot(gradient, self.vs)]
        compared: list[tuple[dict[str, Way], Any]] = [
            (self.first(), along),
            (self.whole(), gradient),
        ]
        try:
            compared.append((self.second(), product or self.twice_backward()))
        except Exception as error:
            if not _is_refusal(error):
                return f"backward twice: {type(error).__name__}: {error}"
        for ways, want in compared:
            for name, way in ways.items():
                if why := _found(name, way, want):
                    return why
        for v, kept in zip(self.vs, self.kept, strict=True):
            if not torch.equal(v, kept):
                return "the direction was changed"
        return ""


class Differs(Exception):
    pass


#: clear refusals: a derivative that does not exist, or a value that was needed and overwritten
REFUSALS = (
    "not implemented", "is not available", "modified by an inplace operation",
    "cannot mutate a captured", "depends on the data", "the same for all samples",
    "Python's control flow would depend", "in randomness error mode",
    "it has one value for each sample", "function that returns multiple views",
)  # fmt: skip


def _allowed(x: Any) -> float:
    """Of central differences of float64: rounding of 1e-16 / EPS, and EPS squared."""
    return 2e-5 * (1 + (float(x.nan_to_num().abs().max()) if x.numel() else 0.0))


def _is_refusal(error: Exception) -> bool:
    return any(text in str(error) for text in REFUSALS)


def _compare(what: str, got: Any, want: Any) -> None:
    a, b = _flat(got), _flat(want)
    if a.shape != b.shape:
        raise Differs(f"{what}: shape {tuple(a.shape)} for {tuple(b.shape)}")
    close = ((a - b).abs() <= _allowed(b)) | (a.isnan() & b.isnan())
    if a.numel() and not bool(close.all()):
        raise Differs(f"{what}: {a.tolist()[:6]} for {b.tolist()[:6]}")


#: how often which way was refused, for whoever looks
refused: Counter[str] = Counter()


def _found(name: str, way: Way, want: Any) -> str:
    try:
        _compare("differs", way(), want)
    except Differs as error:
        return f"{name}: {error}"
    except Exception as error:
        if _is_refusal(error):
            refused[f"{name}: {str(error)[:70]}"] += 1
            return ""
        return f"{name}: {type(error).__name__}: {error}"
    return ""


def layouts(v: Any, kind: int) -> Any:
    """The same numbers laid out in another way, or (3) those of one row for all."""
    if v.dim() == 0 or kind == 0:
        return v.clone()
    if kind == 1:
        return v.transpose(0, -1).contiguous().transpose(0, -1)
    if kind == 2:
        return torch.stack([v, v], -1)[..., 0]
    return v[:1].expand(v.shape)
