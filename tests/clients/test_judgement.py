"""The judgement of a client's numbers: what counts as equal, what is said of what is not."""

import copy
import sys

import pytest

from tools.clients import __main__ as main
from tools.clients import compare, pool

TENSOR = [[2, 3], "float64", 0, 2.0, 0.5, -1.0]
REFERENCE = {
    "state": [1.0, 2.0, 0.5, -1.0],
    "infer": {".out": TENSOR},
    "train": {"grads": {"w": list(TENSOR)}, "losses": [1.0, 0.9], "weights": 3.0},
    "mixed": False,
    "conditions": {"infer": 1.0, "grads": 1.0, "steps": 1.0},
}


def record(**changes):
    return {**copy.deepcopy(REFERENCE), "errors": {}, **changes}


def test_equal_numbers_are_equal():
    assert compare.judge(record(), REFERENCE, True) == []


@pytest.mark.parametrize("at", [3, 4, 5])
def test_each_number_of_a_tensor_counts(at):
    ours = record()
    ours["infer"][".out"][at] += 1e-6
    (said,) = compare.judge(ours, REFERENCE, True)
    assert said.startswith("infer: .out differs by")


@pytest.mark.parametrize(
    ("at", "value", "said"),
    [(0, [3, 2], "shape"), (1, "float32", "dtype float32"), (2, 1, "1 entries not finite")],
)
def test_form_counts(at, value, said):
    ours = record()
    ours["train"]["grads"]["w"][at] = value
    assert said in compare.judge(ours, REFERENCE, True)[0]


def test_conditions_widen_the_tolerance_and_nothing_else():
    assert compare.tolerance(0.0, False) == 1e-9
    assert compare.tolerance(1e9, False) == pytest.approx(1e-9 + 64 * 2.0**-53 * 1e9)


def test_errors_other_weights_and_missing_gradients_are_said():
    ours = record(errors={"infer": "Traceback\n  File\nValueError: no"})
    assert compare.judge(ours, REFERENCE, True) == ["error in infer: ValueError: no"]
    assert (
        "weights or inputs"
        in compare.judge(record(state=[1.0, 2.1, 0.5, -1.0]), REFERENCE, True)[0]
    )
    ours = record()
    del ours["train"]["grads"]["w"]
    assert "only PyTorch has it" in compare.judge(ours, REFERENCE, True)[0]


def test_crashes_and_hangs_are_results(tmp_path):
    script = tmp_path / "worker.py"
    script.write_text(
        "import json, os, sys, time\n"
        "print(json.dumps({'ready': 1}), flush=True)\n"
        "for line in sys.stdin:\n"
        "    name = line.strip()\n"
        "    if name == 'crash': os.abort()\n"
        "    if name == 'hang': time.sleep(60)\n"
        "    print(json.dumps({'name': name, 'record': {'errors': {}}}), flush=True)\n"
    )
    found = pool.run(["a", "crash", "b", "hang", "c"], "m", [sys.executable, str(script)], 1, 2)
    assert [name for name in found if not found[name]["errors"]] == ["a", "b", "c"]
    assert "ended with -6" in found["crash"]["errors"]["process"]
    assert "no answer within 2 s" in found["hang"]["errors"]["process"]


def test_known_failures_excuse_their_case_and_mode_alone():
    known = main.known_failures("# a comment\n\na.b compiled: PyTorch raises too: see there\n")
    assert known == {("a.b", "compiled"): "PyTorch raises too: see there"}
    assert main.unexpected({"a.b": ["differs"], "c.d": []}, "compiled", known) == []
    assert main.unexpected({"a.b": [], "c.d": ["differs"]}, "compiled", known) == ["a.b", "c.d"]
    assert main.unexpected({"a.b": ["differs"]}, "eager", known) == ["a.b"]


@pytest.mark.parametrize("line", ["a.b compiled", "a.b: reason", "a.b compiled: ", "a b c: d"])
def test_known_failures_need_case_mode_and_reason(line):
    with pytest.raises(ValueError, match="known.txt: expected `case mode: reason`, got .* line 1"):
        main.known_failures(line)
