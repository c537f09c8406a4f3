"""The examples in the documentation do what it says, and the tool that checks this can fail."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOOL = ROOT / "tools" / "rundocs.py"


def run(*paths):
    return subprocess.run(
        [sys.executable, TOOL, *paths], capture_output=True, text=True, timeout=600
    )


CACHE = ROOT / "docs" / "memory.md"


def test_all_pages():
    pages = [p for p in (ROOT / "docs").rglob("*.md") if p != CACHE]
    outcome = run(ROOT / "README.md", ROOT / "CONTRIBUTING.md", *pages)
    assert outcome.returncode == 0, outcome.stderr[-4000:]


@pytest.mark.freed_memory_is_kept
def test_the_page_on_memory():
    outcome = run(CACHE)
    assert outcome.returncode == 0, outcome.stderr[-4000:]


@pytest.mark.parametrize(
    ("page", "code", "text"),
    [
        ("```python\n>>> 1 + 1\n2\n```\n", 0, "1 examples, 0 failed"),
        ("```python\n>>> 1 + 1\n3\n```\n", 1, "Expected:\n    3\nGot:\n    2"),
        ("```python\nx = 1\n```\n```python\n>>> x\n1\n```\n", 0, "2 examples, 0 failed"),
        ("\n\n```python\nboom()\n```\n", 1, "page.md:4: the block fails"),
        ("```python no-run\nboom()\n```\n```sh\nls\n```\n", 0, "0 examples"),
        ("```python\nimport warnings\nwarnings.warn('x')\n```\n", 1, "UserWarning: x"),
        ("1. item\n\n   ```python\n   >>> 2\n   2\n   ```\n", 0, "1 examples, 0 failed"),
        ("```python\n", 1, "never closed"),
    ],
)
def test_the_tool_itself(tmp_path, page, code, text):
    path = tmp_path / "page.md"
    path.write_text(page)
    outcome = run(path)
    assert outcome.returncode == code
    assert text in outcome.stdout + outcome.stderr
