"""A pointwise entry as scalar nodes: its own expression, with the loop's values put in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._table.kernel import Kernel
from .._table.model import Op
from .._trace import pointwise, table
from .._trace.dtypes import is_integral
from .._trace.fake import Fake
from .._trace.interp import Interpreter
from ..ops.scalar import PRIMITIVES
from .scalar import COMPLEX, REAL, REGISTER, Body, Scalar, walk


def kernel_of(op: Op, args: Sequence[Any]) -> Kernel:
    """The kernel that a call takes: entries with tests in their body have several."""
    variants = pointwise.plan(op.uid).variants
    if len(variants) == 1:
        return variants[0].kernel
    selector = table.body(op.uid)
    assert selector is not None
    given = pointwise.with_tensors(op, args)
    return variants[Interpreter(table.evaluate_call).run(selector, given)].kernel


#: what C++ has no sensible form of for bool, where it computes with whole numbers as well
_NO_TRUTHS = {"mul", "pow", "sign", "sgn", "signbit"}


def possible(op: Op, kernel: Kernel, fakes: Sequence[Fake], given: dict[str, Any]) -> bool:
    """Whether a loop can hold the entry.

    Args:
        fakes: the tensor operands' types.
        given: arguments by name; numbers among them are known when the loop is compiled.
    """
    nodes = walk(kernel.outputs)
    if any(n.op in PRIMITIVES and PRIMITIVES[n.op].library for n in nodes):
        return False
    computed = pointwise.computed_dtype(op, fakes)
    if computed.is_floating_point or computed.is_complex:
        return True
    # By zero it is an error, which a loop cannot raise.
    divisors = [n.args[1] for n in nodes if n.args and PRIMITIVES[n.op].divides]
    return all(isinstance(_number(d, given), int) and _number(d, given) for d in divisors)


def _number(n: Scalar, given: dict[str, Any]) -> Any:
    """The number that an operand of a division is, if it is one."""
    return n.value if n.op == "const" else given.get(str(n.value))


def apply(
    body: Body, op: Op, kernel: Kernel, fakes: Sequence[Fake], tensors: Sequence[Scalar],
    params: Sequence[Scalar],
) -> list[Scalar]:  # fmt: skip
    """Results of an entry at one point.

    Args:
        fakes: the tensor operands' types, which decide what the entry computes in.
        tensors: their elements.
        params: values of the kernel's number parameters.
    """
    computed = pointwise.computed_dtype(op, fakes)
    compute = REGISTER[computed]
    narrow = is_integral(computed, True) or computed.itemsize == 2
    if compute == "bool" and primitives(kernel) & _NO_TRUTHS:
        compute = "int64_t"
    types = {
        "same": compute,
        "real": REAL.get(compute, compute),
        "complex": COMPLEX.get(compute, compute),
        "bool": "bool",
    }
    done: dict[int, Scalar] = {}
    for n in walk(kernel.outputs):
        if n.op == "input":
            at = kernel.inputs.index(str(n.value))
            x = tensors[at]
            exact = computed.is_floating_point and n.value in kernel.exact and not fakes[at].ndim
            if narrow and not exact and n.type != "bool" and fakes[at].dtype is not computed:
                x = body.stored_as(x, computed)  # what it holds of a number
            done[id(n)] = body.cast(x, types[n.type])
        elif n.op == "param":
            number = params[kernel.params.index(str(n.value))]
            if narrow and computed.is_floating_point and n.value in kernel.rounded:
                number = body.stored_as(number, computed)
            done[id(n)] = body.cast(number, types["real"])
        elif n.op == "const":
            done[id(n)] = body.const(n.value, types[n.type])
        else:
            wanted = _argument_types(n, types)
            args = [body.cast(done[id(a)], t) for a, t in zip(n.args, wanted, strict=True)]
            done[id(n)] = body.make(n.op, types[n.type], args)
    truths = REGISTER[computed] == "bool"
    made = [done[id(n)] for n in kernel.outputs]
    return [body.cast(x, "bool") if truths else x for x in made]


def primitives(kernel: Kernel) -> set[str]:
    """Names of the scalar functions that a kernel computes with."""
    return {n.op for n in walk(kernel.outputs)}


def _argument_types(n: Scalar, types: dict[str, str]) -> list[str]:
    """Types to which the arguments of a primitive are brought."""
    if n.op == "where":
        return ["bool", types[n.type], types[n.type]]
    if n.op.startswith("logical_"):
        return ["bool"] * len(n.args)
    if n.op == "complex":
        return [types["real"]] * len(n.args)
    kinds = {a.type for a in n.args if a.op != "const"}
    for kind in ("same", "complex", "real"):
        if kind in kinds:
            return [types[kind]] * len(n.args)
    return [types["same" if kinds else "real"]] * len(n.args)
