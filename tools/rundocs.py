"""Runs the Python examples of Markdown pages and compares what they print.

Owns the meaning of a fenced block: ```python is executed; with >>> prompts its output is compared
as in a doctest (``...`` matches anything), without prompts it only has to run. The blocks of a
page share their names. ```python no-run is shown, not executed. It knows nothing of what the pages
describe.

    python tools/rundocs.py README.md docs
"""

from __future__ import annotations

import argparse
import dataclasses
import doctest
import os
import pathlib
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

_FENCE = re.compile(r"^(?P<indent> *)(?P<mark>`{3,}|~{3,})(?P<info>[^`\n]*)$")
_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclasses.dataclass
class Block:
    """A fenced block: the words after the fence, its text, and the line where the text starts."""

    words: list[str]
    text: str
    line: int


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page.

    Raises:
        ValueError: a fence is never closed.
    """
    words: list[str] = []
    body: list[str] = []
    fence, start = "", 0
    for number, line in enumerate(page.splitlines(), 1):
        match = _FENCE.match(line)
        if not fence:
            if match:
                fence, words = match["mark"], match["info"].split()
                body, start, indent = [], number + 1, len(match["indent"])
        elif match and match["mark"].startswith(fence) and not match["info"].strip():
            yield Block(words, "\n".join(body) + "\n", start)
            fence = ""
        else:
            body.append(line[indent:] if not line[:indent].strip() else line)
    if fence:
        raise ValueError(f"the block opened at line {start - 1} is never closed")


def run_block(block: Block, names: dict[str, Any], path: str) -> list[str]:
    """Executes a block in ``names``; returns what went wrong, as text."""
    if ">>>" not in block.text:
        # Padding makes tracebacks point to the line in the page.
        code = "\n" * (block.line - 1) + block.text
        try:
            exec(compile(code, path, "exec"), names)
        except Exception:
            return [f"{path}:{block.line}: the block fails\n{traceback.format_exc()}"]
        return []
    test = doctest.DocTestParser().get_doctest(block.text, {}, path, path, block.line - 1)
    test.globs = names
    messages: list[str] = []
    runner = doctest.DocTestRunner(optionflags=_OPTIONS)
    runner.run(test, out=messages.append, clear_globs=False)
    return ["".join(messages)] if runner.failures else []


def run_page(path: pathlib.Path) -> tuple[int, list[str]]:
    """Runs a page's blocks; returns how many ran and what went wrong."""
    names: dict[str, Any] = {"__name__": "__main__"}
    count, problems = 0, []
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.words[:1] == ["python"] and "no-run" not in block.words:
            count += 1
            problems += run_block(block, names, str(path))
    return count, problems


def pages(arguments: list[str]) -> Iterator[pathlib.Path]:
    """The Markdown files among the arguments and in the folders among them."""
    for argument in arguments:
        path = pathlib.Path(argument).resolve()
        yield from sorted(path.rglob("*.md")) if path.is_dir() else [path]


def main(arguments: list[str] | None = None) -> int:
    """Runs all pages; returns 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", help="Markdown files and folders of them")
    todo = list(pages(parser.parse_args(arguments).paths))
    warnings.simplefilter("error")
    failed = total = 0
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # examples may write files
        try:
            for path in todo:
                try:
                    count, problems = run_page(path)
                except (OSError, ValueError) as error:
                    count, problems = 0, [f"{path}: {error}"]
                total += count
                failed += len(problems)
                for problem in problems:
                    print(problem, file=sys.stderr)
        finally:
            os.chdir(here)
    print(f"{len(todo)} pages, {total} examples, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
