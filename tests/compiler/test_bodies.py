"""What an entry's kernel computes is what its body (`decompose`) says: the samples of the table,
forward and backward, as graphs of primitives and written out."""

from __future__ import annotations

import pytest
from table_samples import documented, entries

import flambeau as torch
from flambeau._aot import NotFunctional, aot, callable_of
from flambeau._compiler.decompose import decompose
from flambeau._ir.graph_run import prepare
from flambeau._ir.targets import resolve
from flambeau._table.entries import entries as table
from tools._agreement import is_inexact, unequal

BODIES = {uid for uid, op in table().items() if "decompose" in op.rules}
FAMILIES = sorted({op.family for op in map(table().get, BODIES) if op.tensor_params})
#: entries that have one; the number may only grow
LEAST = 36


def test_no_body_is_lost():
    assert len(BODIES) >= LEAST


class Both:
    """A back end that runs every graph of primitives as it is and with bodies in their places."""

    takes_graph = True

    def __init__(self):
        self.met, self.found = set(), []

    def __call__(self, graph, examples):
        wanted = [isinstance(x, torch.Tensor) and x.requires_grad for x in examples]
        try:
            return callable_of(aot(graph, wanted), self.prepared, self.prepared)
        except NotFunctional:
            return prepare(graph)

    def prepared(self, graph):
        plain, nodes = prepare(graph), {resolve(n.target).op.uid for n in graph.nodes if not n.rule}
        if not nodes & BODIES:
            return plain
        self.met |= nodes & BODIES
        again = prepare(decompose(graph, slower=True))

        def run(*inputs, **sizes):
            copies = [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]
            state = torch.get_rng_state()
            theirs = again(*copies, **sizes)
            torch.set_rng_state(state)
            ours = plain(*inputs, **sizes)
            for a, b in zip(theirs, ours, strict=True):
                narrow = isinstance(b, torch.Tensor) and is_inexact(b)
                why = unequal(a, b, 64 * torch.finfo(b.dtype).eps if narrow else 0.0)
                self.found += [f"{sorted(nodes & BODIES)}: {why}"] if why else []
            return ours

        return run


@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_compute_what_bodies_say(family):
    both = Both()
    for op in entries():
        if op.family != family:
            continue
        for sample in documented(op):
            torch._dynamo.reset()
            compiled = torch.compile(sample.function, backend=both)
            leaves = [t.clone().requires_grad_(is_inexact(t)) for t in sample.tensors]
            try:
                sample.function(*[t.clone() for t in sample.tensors])
            except (RuntimeError, IndexError, ValueError, TypeError):
                continue
            out = compiled(*leaves)
            for y in out if isinstance(out, (tuple, list)) else [out]:
                if isinstance(y, torch.Tensor) and y.requires_grad and not y.is_complex():
                    y.sum().backward(retain_graph=True)
    assert not both.found, both.found[:3]
    assert both.met, f"no sample of {family} meets a body"
