"""Bytecode is read into one form for all versions and written from it."""

from __future__ import annotations

import dis

import pytest

import flambeau._capture.capture  # noqa: F401  fills HANDLERS
from flambeau._capture import opcodes, opcodes_311, opcodes_312
from flambeau._capture.interpreter import HANDLERS


@pytest.mark.parametrize(
    ("native", "common"),
    [
        (("POP_JUMP_FORWARD_IF_TRUE", 7), ("POP_JUMP_IF_TRUE", 7)),
        (("POP_JUMP_BACKWARD_IF_NOT_NONE", 7), ("POP_JUMP_IF_NOT_NONE", 7)),
        (("LOAD_METHOD", 3), ("LOAD_METHOD", 3)),
        (("LOAD_ATTR", 3), ("LOAD_ATTR", 3)),
        (("COMPARE_OP", 2), ("COMPARE_OP", 2)),
    ],
)
def test_common_form_of_311(native, common):
    assert opcodes_311.common(*native) == common


@pytest.mark.parametrize(
    ("native", "common"),
    [
        (("POP_JUMP_IF_TRUE", 7), ("POP_JUMP_IF_TRUE", 7)),
        (("LOAD_ATTR", 7), ("LOAD_METHOD", 3)),
        (("LOAD_ATTR", 6), ("LOAD_ATTR", 3)),
        (("COMPARE_OP", 0x28), ("COMPARE_OP", 2)),
        (("LOAD_FAST_CHECK", 5), ("LOAD_FAST", 5)),
        (("CALL_INTRINSIC_1", 5), ("UNARY_POSITIVE", 0)),
        (("CALL_INTRINSIC_1", 1), ("CALL_INTRINSIC_1 1", 0)),
    ],
)
def test_common_form_of_312(native, common):
    assert opcodes_312.common(*native) == common


def test_what_is_written():
    assert opcodes_311.native("CALL", 2) == [("PRECALL", 2), ("CALL", 2)]
    assert opcodes_312.native("CALL", 2) == [("CALL", 2)]
    assert opcodes_311.native("POP_JUMP_IF_NONE", 9) == [("POP_JUMP_FORWARD_IF_NONE", 9)]
    assert opcodes_312.native("LOAD_ATTR", 3) == [("LOAD_ATTR", 6)]


def sample(xs, k):
    total = 0
    for x in xs:
        if x is None or x.real < k:
            continue
        total += [x, k][0].imag
    return total


def test_jumps_lead_where_dis_says():
    code = sample.__code__
    d = opcodes.decoded(code)
    told = {i.offset: i for i in dis.get_instructions(code)}
    for i in d.instructions:
        assert (i.op, i.oparg) == (told[i.offset].opcode, told[i.offset].arg or 0)
        if i.target < 0:
            continue
        target, expected = d.instructions[i.target], told[i.offset].argval
        if i.name == "FOR_ITER":  # behind END_FOR, where there is one
            assert target.name != "END_FOR" and expected <= target.offset <= expected + 2
        else:
            assert target.offset == expected


def test_instructions_are_written_as_they_were_read():
    code = sample.__code__
    for i in opcodes.decoded(code).instructions:
        if i.name in ("COMPARE_OP", "LOAD_METHOD") or i.target >= 0 or i.name == "PRECALL":
            continue
        written = opcodes.encode(i.name, i.arg)
        written = written[-(i.end - i.offset) :]  # without PRECALL
        assert written[:2] == code.co_code[i.offset : i.offset + 2]
        assert len(written) == i.end - i.offset


def test_every_instruction_of_a_function_has_a_meaning():
    """What is left is of async functions, class bodies, `except*` and CPython's own."""
    apart = {
        "ASYNC_GEN_WRAP", "BEFORE_ASYNC_WITH", "CHECK_EG_MATCH", "CLEANUP_THROW", "DELETE_NAME",
        "END_ASYNC_FOR", "GET_AITER", "GET_ANEXT", "GET_AWAITABLE", "IMPORT_STAR",
        "INTERPRETER_EXIT", "LOAD_BUILD_CLASS", "LOAD_FROM_DICT_OR_DEREF",
        "LOAD_FROM_DICT_OR_GLOBALS", "LOAD_LOCALS", "LOAD_NAME", "PREP_RERAISE_STAR", "PRINT_EXPR",
        "RESERVED", "STORE_NAME", "CALL_INTRINSIC_1 0", "CALL_INTRINSIC_2", "END_FOR", "END_SEND",
    }  # fmt: skip
    names = {
        opcodes.version.common(name, 0)[0]
        for name, op in dis.opmap.items()
        if op < 256 and not name.startswith("INSTRUMENTED_")
    }
    assert names - apart <= set(HANDLERS)
