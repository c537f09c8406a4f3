"""What added operators return, as fakes: the function registered with `register_fake`, run over
tensors without data that no graph records."""

from __future__ import annotations

from typing import Any

from flambeau import _C

from .._ir.symbols import ShapeEnv
from .._ir.symscalar import SymInt
from .._table.added import Added
from . import table
from .fake import Fake
from .record import CapturedRecorder
from .session import Session


def _env(args: Any) -> ShapeEnv | None:
    """Where the sizes of arguments come from; None where all are numbers."""
    if isinstance(args, SymInt):
        return args.env
    if isinstance(args, Fake):
        return _env((*args.shape, *args.strides))
    if isinstance(args, (list, tuple)):
        return next((env for a in args if (env := _env(a)) is not None), None)
    return None


def results(op: Added, args: list[Any]) -> Any:
    """The results of a call: a fake, a list of them, a tuple of results, or None.

    Raises:
        NotImplementedError: the operator has no fake, or returns what no graph holds.
    """
    overload = op.overload_object
    function = overload._fake
    if function is None and _C._op_has_kernel(op.uid, "Composite"):
        function = overload._composite
    like = _arguments(op, args)
    if len(like) == len(overload._schema.returns) and like:
        made = tuple(Fake(x.dtype, x.shape, x.strides, x.device) for x in like)
        return made[0] if len(made) == 1 else made
    if function is None and op.outputs[0].base != "None":
        raise NotImplementedError(
            f"the operator {op.uid} has no fake, which says what it returns without data; give it "
            "one with torch.library.register_fake"
        )
    if any(t.base not in ("Tensor", "Tensors", "None") for t in op.outputs) or (
        len(op.outputs) > 1 and any(t.base != "Tensor" for t in op.outputs)
    ):
        raise NotImplementedError(
            f"the operator {op.uid} returns {overload._schema.returns}; graphs hold operators that "
            "return tensors, or one list of them"
        )
    if function is None:
        return None
    session = Session(CapturedRecorder(_env(args)))

    def shown(x: Any) -> Any:
        if isinstance(x, Fake):
            if x.only_number:
                return session.shown(x)
            return session.input(Fake(x.dtype, x.shape, x.strides, x.device))
        return [shown(t) for t in x] if isinstance(x, (list, tuple)) else x

    positional, named = overload.spread([shown(a) for a in args])
    out = session.run(lambda *given: function(*given, **named), positional)
    return _results(op, session, out)


def _arguments(op: Added, args: list[Any]) -> list[Fake]:
    """The arguments that results are: to graphs these are tensors with the same values."""
    schema = op.overload_object._schema
    written = {a.alias_info: x for a, x in zip(schema.arguments, args, strict=True) if a.is_write}
    found = [written.get(r.alias_info) for r in schema.returns if r.alias_info is not None]
    return [x for x in found if isinstance(x, Fake)]


def _results(op: Added, session: Session, out: Any) -> Any:
    def fake(x: Any, k: int) -> Fake:
        if not isinstance(x, _C.Tensor):
            raise TypeError(
                f"the fake of {op.uid}: expected a Tensor as result {k}, got {type(x).__name__}"
            )
        made = session.fake(x)
        return Fake(made.dtype, made.shape, made.strides, made.device)

    if op.outputs[0].base == "None":
        return None
    if len(op.outputs) == 1 and not op.outputs[0].is_list:
        return fake(out, 0)
    if not isinstance(out, (list, tuple)) or (len(op.outputs) > 1 and len(out) != len(op.outputs)):
        raise TypeError(
            f"the fake of {op.uid}: expected what {op.overload_object._schema} returns, "
            f"got {type(out).__name__}"
        )
    made = [fake(x, k) for k, x in enumerate(out)]
    return made if len(op.outputs) == 1 else tuple(made)


table.ADDED.append(results)
