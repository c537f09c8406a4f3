"""The arithmetic of the clients' speed, and its turns, with workers that say known times."""

import math
import sys

import pytest

from tools.clients import registry, speed

WORKER = """
import json, os, sys
if os.environ["FLAMBEAU_CACHE"] == os.environ["TORCHINDUCTOR_CACHE_DIR"]: os.abort()
if os.path.exists(os.environ["TORCHINDUCTOR_CACHE_DIR"]): os.abort()
scale, log = float(sys.argv[1]), open(sys.argv[2], "a")
print(json.dumps({"ready": 1}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    print(sys.argv[1], *request, request.get("round"), file=log, flush=True)
    name = request.get("name")
    if name == "p.crash": os.abort()
    if name == "p.raise": said = {"error": "Traceback\\nValueError: no"}
    elif name: said = {"first": 10 * scale, "call": 0.01 * scale}
    else: said = {"wall": 2 * scale, "processor": scale}
    print(json.dumps(said), flush=True)
"""


def cases(*names, **options):
    return [registry.Case(n.partition(".")[0], n, lambda: None, **options) for n in names]


def record(name, part, value, **changes):
    return {
        "name": name, "part": part, "compiled": False, "processor": value, "wall": value,
        "first": 0.1, "first_seconds": [1.0, 10.0], "milliseconds": [1.0, 2.0], **changes,
    }  # fmt: skip


@pytest.fixture
def commands(tmp_path):
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    return [[sys.executable, str(script), scale, str(tmp_path / "log")] for scale in ("1", "4")]


def test_means_and_ratios():
    assert speed.geometric([0.25, 4.0, 8.0]) == pytest.approx(2.0)
    assert math.isnan(speed.geometric([]))
    # Load that falls on both sides of one round, or on one side of a few, does not move it.
    assert speed.ratio([1.0, 30.0, 1.0, 9.0, 1.0], [2.0, 60.0, 2.0, 2.0, 2.0]) == 0.5


def test_a_sample_takes_from_every_package_and_is_the_same_each_time():
    all_cases = cases(*(f"many.{i}" for i in range(20)), "few.a", "few.b", "one.a")
    taken = [entry.name for entry in speed.spread(all_cases, 6)]
    assert taken == [entry.name for entry in speed.spread(all_cases, 6)]
    assert taken == [entry.name for entry in all_cases if entry.name in taken]
    packages = [name.partition(".")[0] for name in taken]
    assert [packages.count(p) for p in ("many", "few", "one")] == [3, 2, 1]
    assert speed.spread(all_cases, 100) == all_cases


def test_rounds_are_by_turns_and_calls_fill_a_round(commands, tmp_path):
    (infer, train) = speed.measure(cases("p.a"), commands, 1, False, 3, 20)
    assert (infer["part"], train["part"]) == ("infer", "train")
    assert infer["processor"] == infer["wall"] == infer["first"] == 0.25
    assert infer["milliseconds"] == [2000.0, 8000.0]
    lines = (tmp_path / "log").read_text().splitlines()
    half = len(lines) // 2
    assert [line.split()[0] for line in lines[:half]] == ["1", "4"] * 4
    assert lines[:2] == [f"{scale} name part compiled dtype None" for scale in "14"]
    assert lines[2:4] == ["1 round 3", "4 round 1"]


def test_a_case_without_training_has_one_part(commands):
    (only,) = speed.measure(cases("p.a", train=False), commands, 1, False, 1, 20)
    assert only["part"] == "infer"


@pytest.mark.parametrize("name", ["p.crash", "p.raise"])
def test_a_case_that_fails_is_said_and_the_next_one_runs(commands, name):
    first, second = speed.measure(cases(name, "p.b", train=False), commands, 1, False, 1, 20)
    assert first["error"].startswith("ours: ")
    assert second["processor"] == 0.25
    assert speed.line(first, "wall").startswith(f"{name} infer: ours: ")


def test_the_table_counts_what_is_slow_and_what_failed():
    records = [
        record("a.x", "infer", 0.5),
        record("a.y", "infer", 2.0),
        record("a.x", "train", 0.2),
        record("b.generate.greedy", "infer", 1.3, wall=0.9),
        {"name": "b.z", "part": "infer", "compiled": False, "error": "PyTorch: no"},
    ]
    lines = speed.table(records, "processor")
    rows = {row.split()[0]: row.split()[1:] for row in lines[2:6]}
    assert rows["a"] == ["3", "1.000", "0.200", "1", "0"]
    assert rows["b"] == ["1", "1.300", "nan", "1", "1"]
    assert rows["generate()"] == ["1", "1.300", "nan", "1", "0"]
    assert rows["all"] == ["4", f"{1.3 ** (1 / 3):.3f}", "0.200", "2", "1"]
    assert lines[lines.index("worst:") + 1].startswith("  a.y infer: 2.000")
    assert "all parts by wall time: 0.651" in lines


def test_the_table_of_compiled_cases_has_the_time_of_compiling():
    lines = speed.table([record("a.x", "infer", 0.5, compiled=True)], "wall")
    assert lines[1].split()[:5] == ["package", "parts", "infer", "train", "compile"]
    assert lines[2].split() == ["a", "1", "0.500", "nan", "0.100", "0", "0"]
    assert "compiled in 1.00 and 10.00 s: 0.100" in lines[-1]


def test_imports_are_timed_by_turns_and_errors_are_theirs(monkeypatch):
    monkeypatch.setattr(speed, "PREPARE", "")
    python = [sys.executable]
    (good, bad) = speed.imports(["json", "no_such_module"], [python, python], 2)
    assert good.startswith("json: processor ")
    assert "least" in good
    assert bad.startswith("no_such_module: ours: import: ModuleNotFoundError")
