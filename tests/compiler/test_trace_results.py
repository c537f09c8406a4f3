"""Fake results against eager's: every call that the table's own examples make, in shape, dtype,
strides and identity, with sizes as numbers and as symbols. Bodies of composites, printed and read
back, give eager's values over the same data.
"""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

import flambeau as torch
from flambeau import _C
from flambeau._ir.graph import show
from flambeau._ir.graph_parse import parse_function
from flambeau._ir.symscalar import SymFloat, SymInt
from flambeau._ir.targets import resolve
from flambeau._table.entries import entries
from flambeau._trace import on_data
from flambeau._trace.fake import Fake, plain
from flambeau._trace.meanings import DataDependent
from flambeau._trace.record import CapturedRecorder, fake_input, fakes_of
from flambeau._trace.session import Session, default, result_fields
from flambeau._trace.table import body, evaluate_call

#: examples that do not run in eager either (tests/known_failures.txt says so)
KNOWN = (Path(__file__).parents[1] / "known_failures.txt").read_text()
EXAMPLES = {
    u: op
    for u, op in entries().items()
    if ">>>" in op.doc and ">>> True\n" not in op.doc and f"test_example[{u}]" not in KNOWN
}
METHODS = {f"as_{n}": n for n in "float double half bfloat16 long int short char byte bool".split()}
#: what it gives is memory as it was found
UNSET = ("empty_permuted",)


class Shadow:
    """Runs every bound call for real and, beside it, over fakes of its arguments."""

    def __init__(self, dynamic: bool) -> None:
        self.dynamic = dynamic
        self.compared: list[str] = []

    def __call__(self, name, target, named):
        if target is None:
            owner = torch.Tensor if hasattr(torch.Tensor, METHODS.get(name, name)) else _C
            return getattr(owner, METHODS.get(name, name))(*named.values())
        form = resolve(target)
        session = Session(CapturedRecorder())
        fakes, real = self.arguments(session, form.op, named)
        try:
            made = evaluate_call(form.op, form.form == "inplace", fakes)
        except (DataDependent, NotImplementedError):
            made = None
        result = self.real(form, real, named)
        if made is not None and named.get("out") is None:
            self.compare(target, made, result, fakes, real, session.recorder.env)
        return result

    def arguments(self, session, op, named):
        fakes, real = [], []
        for p in op.params:
            x = named[p.name] if p.name in named else default(op.uid, p.name)
            if p.type.base in ("Tensor", "Tensors", "OptTensors"):
                one = p.type.base == "Tensor"
                made = [self.fake(session, t) for t in ([x] if one else x or [])]
                fakes.append(made[0] if one else made if x is not None else None)
                real.append(x if one or x is None else tuple(x))
            elif p.type.base == "Generator":
                fakes.append(None)
                real.append(x)
            else:
                value = session.bound(op, p, x)
                fakes.append(list(value) if isinstance(value, (list, tuple)) else value)
                real.append(tuple(value) if isinstance(value, list) else value)
        return fakes, real

    def fake(self, session, x):
        if x is None:
            return None
        if not isinstance(x, torch.Tensor):
            return session.tensor(x).fake
        known = session.of_tensor.get(id(x))
        if known is None:
            fake = fake_input(x, session.recorder.env, len(session.of_tensor), self.dynamic)
            session.of_tensor[id(x)] = known = session.shown(session.recorder.input(fake))
        return known.fake

    def real(self, form, real, named):
        op = form.op
        if form.form == "inplace":
            kwonly = {p.name: a for p, a in zip(op.params, real, strict=True) if p.kwonly}
            plain_args = [a for p, a in zip(op.params, real, strict=True) if not p.kwonly]
            return getattr(torch.Tensor, f"{op.name}_")(*plain_args, **kwonly)
        results = _C._call_entry(op.uid, tuple(real))
        if named.get("out") is not None:
            out = named["out"]
            for o, r in zip([out] if len(results) == 1 else out, results, strict=True):
                o.resize_(r.shape).copy_(r)
            return out
        if not results:
            return None
        if op.name.startswith("_") and op.returns.base == "None":
            return None
        if op.mutates:
            return real[0]
        if named.get("requires_grad"):
            results[0].requires_grad_()
        fields = result_fields(op.uid)
        if fields is not None:
            return fields(*results)
        return results[0] if len(results) == 1 else results

    def compare(self, target, made, result, fakes, real, env):
        tensors = [result] if isinstance(result, torch.Tensor) else result
        if not isinstance(made, (Fake, list, tuple)) or not isinstance(tensors, (list, tuple)):
            if not isinstance(made, Fake):
                assert made == result, target
            return
        results = fakes_of(made)
        assert len(results) == len(tensors), target
        values = env.hints()
        for f, t in zip(results, tensors, strict=True):
            got = [f.dtype] + [
                tuple(d if isinstance(d, int) else d.evaluate(values) for d in map(plain, dims))
                for dims in (f.shape, f.strides)
            ]
            assert got == [t.dtype, tuple(t.shape), t.stride()], f"{target}: {got}"
        self.compared.append(target)


def flat(x):
    """The tensors in a result."""
    return [t for part in x for t in flat(part)] if isinstance(x, (list, tuple)) else [x]


class Bodies(Shadow):
    """Runs every bound call for real, and the entry's body, as it is read back, over its data."""

    def __call__(self, name, target, named):
        form = None if target is None else resolve(target)
        if form is None or form.mutates or form.draws or form.op.mutated_lists:
            return super().__call__(name, target, named)
        op = form.op
        _, real = self.arguments(Session(CapturedRecorder()), op, named)
        result = self.real(form, real, named)
        batched = any(isinstance(x, torch.Tensor) and _C._vmap_info(x) for x in real)
        function = body(op.uid)
        if named.get("out") is None and not named.get("requires_grad") and not batched and function:
            f = parse_function(show(function))
            made = on_data.run(f, [list(x) if isinstance(x, tuple) else x for x in real])
            if op.kind == "pointwise":
                assert isinstance(made, int)  # which of the kernels
            elif not op.option("dynamic"):
                self.judge(made, result, same=op.kind != "structured" and op.uid not in UNSET)
            self.compared.append(target)
        return result

    def judge(self, made, result, same):
        """Composites and views give the values; a structured entry's body gives their places."""
        if not isinstance(result, (torch.Tensor, list, tuple)):
            assert made == result
            return
        for x, y in zip(flat(made), flat(result), strict=True):
            assert (x.shape, x.dtype, x.stride()) == (y.shape, y.dtype, y.stride())
            if same:
                torch.testing.assert_close(x, y, equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("uid", list(EXAMPLES))
def test_fake_results_are_eager_results(uid, dynamic):
    run_examples(uid, Shadow(dynamic))


@pytest.mark.parametrize("uid", list(EXAMPLES))
def test_bodies_over_data_give_eager_results(uid):
    run_examples(uid, Bodies(False))


def run_examples(uid, shadow):
    """The examples of an entry, each call of them through `shadow`."""
    op = EXAMPLES[uid]
    test = doctest.DocTestParser().get_doctest(op.doc, {}, uid, op.file, 0)
    names = {"torch": torch, "F": torch.nn.functional}
    torch.manual_seed(0)
    before = _C._set_tracer(shadow, SymInt, SymFloat)
    try:
        for example in test.examples:
            if example.exc_msg is None:
                exec(
                    compile(example.source, uid, "single"), {**names, "__builtins__": SILENT}, names
                )
    finally:
        _C._set_tracer(before, SymInt, SymFloat)


def _silent():
    import builtins
    import types

    quiet = types.ModuleType("quiet")
    quiet.__dict__.update(builtins.__dict__)
    return quiet.__dict__


SILENT = _silent()
