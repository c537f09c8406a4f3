"""Graphs: text that parses back, and refusals of what is no graph."""

from __future__ import annotations

import random

import pytest

import flambeau as torch
from flambeau._ir.graph import Builder, Node, TensorType, Value, contiguous_strides, show
from flambeau._ir.graph_parse import parse
from flambeau._ir.graph_verify import GraphError, verify
from flambeau._ir.symbols import Origin, ShapeEnv
from flambeau._ir.symscalar import SymFloat
from flambeau._ir.targets import Target, resolve
from flambeau._ir.where import Where
from flambeau._table.entries import record

WHERE = Where("model.py", 12, "Net.forward")


def tensor(shape, dtype=torch.float32, strides=None):
    shape = tuple(shape)
    return TensorType(dtype, shape, strides or contiguous_strides(shape), torch.device("cpu"))


def example():
    env = ShapeEnv(lambda: WHERE)
    s = env.symbol(8, Origin(0, "size", 0))
    assert s > 4
    b = Builder(env)
    x = b.input(tensor((s.expr, 128)))
    y = b.input(tensor((128,)))
    sum_ = b.add("add", (x, y, 1), (tensor((s.expr, 128)),), WHERE).out
    t = tensor((128, s.expr), strides=(1, 128))
    turned = b.add("transpose", (sum_, 0, -1), (t,), None).out
    n = SymFloat.of(s) * 0.5
    scaled = b.add("mul", (turned, n.expr), (t,), WHERE).out
    b.add("alias", (scaled,), (t,), None, grad=False)
    halves = tensor((128, (s * 2).expr), torch.bfloat16)
    wide = b.add("cat", ((scaled, scaled), 1), (halves,), WHERE).out
    b.graph.outputs = (wide, (x, (s + 1).expr, "a # (b)", None, -1.5, True, torch.int8))
    return b.graph


def test_text_parses_back():
    text = show(example())
    assert show(parse(text)) == text
    assert "%2: f32[s0, 128] = add(%0, %1, 1)  # model.py:12 in Net.forward" in text
    assert "%3: f32[128, s0]{1, 128} = transpose(%2, 0, -1)" in text
    assert "s0 = 8 in [2, inf) from input 0 size 0".replace(")", "]") in text


@pytest.mark.parametrize(
    "number", [complex("nan"), complex("-inf"), complex(-0.0, 2), complex(1, -0.0), -0.0, 1e300]
)
def test_numbers_are_read_as_they_were_written(number):
    b = Builder(ShapeEnv())
    x = b.input(tensor((3,), torch.complex128))
    b.graph.outputs = (b.add("mul", (x, number), (x.type,), None).out,)
    (read,) = (n.args[1] for n in parse(show(b.graph)).nodes)
    assert repr(read) == repr(number) and type(read) is type(number)


def test_damaged_text_is_refused_or_still_a_text():
    r = random.Random(11)
    text = show(example())
    refused = 0
    for _ in range(2000):
        at, n = r.randrange(len(text)), r.randrange(1, 12)
        put = r.choice(
            ["", "", "%7", "(", "]", "'", "s0", "-1", " = ", "**", "\x00", "\n", "9" * 30]
        )
        damaged = text[:at] + put + text[at + (n if r.random() < 0.5 else 0) :]
        try:
            again = show(parse(damaged))
        except ValueError as error:
            assert str(error).startswith("graph text, line "), damaged
            refused += 1
        else:
            assert show(parse(again)) == again, damaged
    assert refused > 800


def test_a_graph_passes():
    g = example()
    assert verify(g, "primitive") is g
    assert verify(parse(show(g)), "functional")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%2: f32[2] = ad(%0, %1, 1)", "no entry ad"),
        ("%2: f32[2] = add(%0, %1)", "add has 3 parameters, got 2"),
        ("%2: f32[2] = add(%0, 'x', 1)", "'other' is Tensor, got 'x'"),
        ("%1: f32[2] = add(%0, %1, 1)", "defined twice"),
        ("%2: f32[s3] = add(%0, %1, 1)", "no symbol s3"),
        ("%2: f32[2], %3: f32[2] = add(%0, %1, 1)", "add gives Tensor"),
        ("%2: f32[2] = add_(%0, %1, 1)", "add_ changes its argument"),
        ("%2: f32[2] = ones((2,), None, None)", "composed of others"),
    ],
)
def test_refusals(line, message):
    text = f"graph(%0: f32[2], %1: f32[2]):\n  {line}\n  return %0\n"
    with pytest.raises(GraphError, match=message.replace("(", r"\(")):
        verify(parse(text), "primitive")


CUSTOM = """\
graph(%0: f32[2], %1: f32[2]):
  %2: f32[2] = exp(%0)
  %3: f32[2] = custom_gradient((%2,), (%0, %1), (%2,))  # model.py:12 in Net.forward
  backward(%4: f32[2], %5: f32[2]):
    %6: f32[2] = mul(%5, %4)
    yield %6, None
  return %3
"""


def test_derivatives_of_their_own_are_read_back():
    g = parse(CUSTOM)
    assert show(g) == CUSTOM and verify(g, "functional").nodes[1].rule.outputs[1] is None
    assert [v.id for v in g.values()] == list(range(7))


@pytest.mark.parametrize(
    ("line", "other", "message"),
    [
        ("mul(%5, %4)", "mul(%5, %0)", "%0 is used before"),  # it sees what it is given alone
        ("mul(%5, %4)", "mull(%5, %4)", "no entry mull"),
        ("(%0, %1), (%2,)", "(%0,), (%2,)", "the rule is one of other values"),
        ("%4: f32[2], %5", "%2: f32[2], %5", "%2 is defined twice"),
        ("custom_gradient((%2,)", "custom_gradient((%2, %2)", "copies of other tensors"),
    ],
)
def test_rules_are_verified(line, other, message):
    with pytest.raises(GraphError, match=message):
        verify(parse(CUSTOM.replace(line, other).replace("mul(%5, %4)", "mul(%5, %5)")), "captured")


def test_use_before_definition():
    b = Builder(ShapeEnv())
    b.graph.nodes.append(Node("neg", (Value(5, tensor((2,))),), (Value(6, tensor((2,))),)))
    with pytest.raises(GraphError, match="used before"):
        verify(b.graph)


def test_targets():
    assert record("clamp_1").inplace_uid == "clamp__1"
    assert resolve("clamp__1") == Target(record("clamp_1"), "inplace")
    assert resolve("add_") == Target(record("add"), "inplace") and resolve("add_").mutates
    assert resolve("copy_") == Target(record("copy_")) and resolve("copy_").mutates
    assert resolve("copy_.new").op is record("copy_") and not resolve("copy_.new").mutates
    with pytest.raises(KeyError):
        resolve("add__7")
    with pytest.raises(KeyError):
        resolve("add.new")
