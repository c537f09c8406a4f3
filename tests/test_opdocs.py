"""The reference of operations: complete, and its pages are well formed and run."""

import pathlib
import re
import subprocess
import sys

import pytest

from flambeau._table import reader

ROOT = pathlib.Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("ops")
    subprocess.run([sys.executable, ROOT / "tools" / "opdocs.py", path], check=True)
    return path


def hidden(op):
    """Has it no name without an underscore?"""
    spaces = [space for space in op.namespaces if not space.startswith("_")]
    return op.name.startswith("_") or not (spaces or op.is_method)


def test_the_index_has_every_public_entry(folder):
    rows = re.findall(
        r"^\| `(?:torch|Tensor)\.([\w.]+)` \|", (folder / "index.md").read_text(), re.M
    )
    listed = {name.rpartition(".")[2] for name in rows}
    shown = [op for op in reader.load(ROOT) if op.option("function", True) and not hidden(op)]
    assert len(shown) > 500
    assert [op.name for op in shown if op.python_name not in listed] == []


def test_links_lead_to_pages(folder):
    targets = re.findall(r"\]\((\w+\.md)\)", (folder / "index.md").read_text())
    assert targets
    assert not [t for t in set(targets) if not (folder / t).is_file()]


def test_a_section_says_what_the_entry_says(folder):
    page = (folder / "pointwise_activation.md").read_text()
    section = page[page.index("## torch.nn.functional.gelu") :].split("\n## ")[0]
    assert "torch.nn.functional.gelu(input: Tensor, approximate: str='none', *, out:" in section
    assert "tensor([-0.1587,  0.8413])" in section
    assert "def backward(g, input, approximate):" in section
    assert "erf(v5)" in section
    assert "flambeau/ops/pointwise_activation.py" in section


def test_primitives_are_listed_with_what_they_are_written_out_as(folder):
    page = (folder / "primitives.md").read_text()
    assert "| `mul` | input, other |" in page and "| `transpose` |" in page
    assert re.search(r"\| `native_layer_norm` \| [\w, ]+ \| yes \| \[", page)
    assert "| `clone` |" not in page
    section = (folder / "copying.md").read_text().split("## torch.clone")[1].split("\n## ")[0]
    assert "composed of `_to_copy`" in section
