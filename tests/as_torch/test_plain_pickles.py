"""Tensors that PyTorch 2.13 wrote by `pickle.dump`, read by `pickle.load` under the alias."""

import pathlib
import subprocess
import sys

TESTS = pathlib.Path(__file__).parents[1]
FILE = TESTS / "serialization" / "pytorch_files" / "plain_pickle.pkl"
PROGRAM = """
import pickle, sys
import torch
with open(sys.argv[1], "rb") as file:
    got = pickle.load(file)
x = torch.arange(6.0).view(2, 3)
assert list(got) == "w t part p i b c u n a m s size d f".split()
assert torch.equal(got["w"], x) and torch.equal(got["t"], x.t()) and got["t"].stride() == (1, 3)
assert torch.equal(got["part"], x[1:]) and got["part"].storage_offset() == 3
assert type(got["p"]) is torch.nn.Parameter and got["p"].requires_grad
assert got["i"].tolist() == [1, 2] and got["b"].dtype == torch.bfloat16
assert got["c"].tolist() == [1j] and got["u"].dtype == torch.uint16 and got["u"].tolist() == [7]
assert got["n"].note == "kept" and got["a"].rank == 3 and type(got["n"]) is torch.Tensor
assert got["m"].device.type == "meta" and got["s"].tolist() == [1, 2]
assert got["size"] == (2, 3) and got["d"] == torch.device("cpu") and got["f"] is torch.float16
try:
    torch._utils._rebuild_tensor_v2(got["s"], 1, (2,), (1,), False, {})
except ValueError as error:
    assert "needs 3 elements of its storage, which has 2" in str(error)
else:
    raise AssertionError("a view beyond its storage")
"""


def test_plain_pickles(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    subprocess.run(
        [sys.executable, "-m", "flambeau.as_torch", program, FILE], check=True, timeout=120
    )
