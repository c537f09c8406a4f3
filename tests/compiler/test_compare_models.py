"""The tool that compares models by turns, with a model of ours and no PyTorch."""

import pytest

from tools import compare_models


@pytest.mark.parametrize("mode", ["infer", "train"])
def test_eager_beside_compiled(mode: str) -> None:
    ways = ["fe", "fc"]
    rows = compare_models.compare("small", mode, ways, "", threads=1, rounds=3, calls=2)
    assert list(rows) == ways
    assert rows["fe"].ratios == [1.0] * 3
    assert all(r > 0 for r in rows["fc"].ratios) and rows["fc"].ms > 0


def test_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    compare_models.main(["--mode", "infer", "--threads", "1", "--rounds", "2"])
    row, mean = capsys.readouterr().out.splitlines()
    assert row.startswith("small      infer  fe") and " ms  1.00 (1.00-1.00)  fc" in row
    assert mean.startswith("geometric mean: fe 1.00  fc ")


def test_a_model_that_is_nowhere() -> None:
    with pytest.raises(SystemExit, match="fe: ended with 1"):
        compare_models.compare("gpt", "infer", ["fe"], "", threads=1, rounds=1, calls=1)


def test_a_call(capsys: pytest.CaptureFixture[str]) -> None:
    call = "x = torch.ones(8); y = x * 3; (x + y).sum()"
    compare_models.main(["--call", call, "--threads", "1", "--rounds", "2", "--calls", "3"])
    row, _ = capsys.readouterr().out.splitlines()
    assert row.startswith("(x + y).sum() infer  fe")
