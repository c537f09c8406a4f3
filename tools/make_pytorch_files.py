"""Writes `tests/serialization/pytorch_files`; run with the Python of an installed PyTorch 2.13.

Owns which of the cases are stored in which format; the objects are those of `pytorch_cases`.
"""

import pathlib
import sys

import torch

TESTS = pathlib.Path(__file__).parents[1] / "tests" / "serialization"
HERE = TESTS / "pytorch_files"
sys.path.insert(0, str(TESTS))
from pytorch_cases import CASES, LEGACY  # noqa: E402

for name, case in CASES.items():
    torch.save(case(torch), HERE / f"{name}.pt")
for name in LEGACY:
    file = HERE / f"{name}_legacy.pt"
    torch.save(CASES[name](torch), file, _use_new_zipfile_serialization=False)
module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), torch.nn.ReLU())
torch.nn.init.ones_(module[0].weight)
torch.nn.init.zeros_(module[0].bias)
torch.save(module, HERE / "module.pt")
torch.save(torch.ones(2).to_sparse(), HERE / "sparse.pt")
torch.save(torch.ones(2).to(torch.float8_e4m3fn), HERE / "float8.pt")
torch.save(torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), HERE / "quantised.pt")
