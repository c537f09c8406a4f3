"""The C++ that the design pages show is what the build emits, line by line."""

from pathlib import Path

import pytest

from flambeau._build import compiler, emit_bindings, emit_files

ROOT = Path(__file__).resolve().parents[2]


def shown(page):
    """Lines of the page's C++ blocks; what only the page says (`// comment`, `...`) is left out."""
    inside = False
    for line in page.read_text().splitlines():
        if line.startswith("```"):
            inside = line == "```cpp"
        elif inside and line.strip():
            yield line.split("  //")[0].strip()


@pytest.fixture(scope="module")
def emitted():
    unit = compiler.load(ROOT)
    files = {**emit_files.all_files(unit), **emit_bindings.files(unit)}
    lines = "\n".join(files.values()).splitlines()
    return {line.split("  //")[0].strip() for line in lines}


@pytest.mark.parametrize("name", ["ops.md", "pointwise.md"])
def test_lines_are_emitted(emitted, name):
    lines = list(shown(ROOT / "docs" / "design" / name))
    assert len(lines) > 10
    assert [line for line in lines if line not in emitted] == []
