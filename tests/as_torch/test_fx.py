"""fx under the alias, where modules go by PyTorch's names."""

import pytest

PROGRAM = """
import sys, {name} as torch
from {name} import fx, nn
import {name}.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())
        self.b = nn.TransformerEncoderLayer(4, 2)

    def forward(self, x):
        return F.relu(torch.add(self.b(self.a(x)), x))

traced = fx.symbolic_trace(Net())
print([(n.op, str(n.target)) for n in traced.graph.nodes if n.op == "call_module"])
print(traced.graph)
"""


@pytest.mark.parametrize("name", ["torch", "flambeau"])
def test_modules_of_nn_are_leaves_under_either_name(run, name):
    leaves, *text = run("-c", PROGRAM.format(name=name)).splitlines()
    assert eval(leaves) == [("call_module", n) for n in ("a.0", "a.1", "a.2", "b")]
    functions = [line.split("target=")[1].split("]")[0] for line in text if "call_function" in line]
    names = ["torch.add", "torch.nn.functional.relu"]
    assert functions == names


def test_a_module_of_a_program_with_a_name_like_ours_is_no_leaf(python, tmp_path):
    (tmp_path / "flambeau_nn.py").write_text(
        "import flambeau as torch\n"
        "class Own(torch.nn.Module):\n"
        "    def forward(self, x): return x + 1\n"
    )
    program = (
        "import flambeau as torch, flambeau_nn\n"
        "g = torch.fx.symbolic_trace(torch.nn.Sequential(flambeau_nn.Own()))\n"
        "print([n.op for n in g.graph.nodes])"
    )
    out = python("-c", program, cwd=tmp_path)
    assert out == "['placeholder', 'call_function', 'output']\n"
