"""Rules for every file: length, no traces of one machine, notes that exist, docstrings."""

import ast
import functools
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIMIT = 1000
SOURCES = {".py", ".pyi", ".cpp", ".h", ".cu", ".cmake", ".sh"}
TEXTS = SOURCES | {".md", ".toml", ".txt", ".yml", ""}
SKIPPED = {".git", ".venv", "build", "dist", "demo_out", "__pycache__"}

# Absolute paths of a home or work folder. Written so that this file does not contain one itself.
MACHINE_PATH = re.compile(r"(?<![\w./])/(?:work|opt/dev|root|home/\w+|Users/\w+|private)/[\w.]")
NOTE = re.compile(r"\bNote \[([^\]]+)\]")


@functools.cache
def files():
    """Paths of the project's text files, relative to its root: those under version control."""
    try:
        listing = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        listing = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*")]
    paths = [pathlib.Path(name) for name in listing]
    return [
        path
        for path in sorted(paths)
        if path.suffix in TEXTS and not SKIPPED & set(path.parts) and (ROOT / path).is_file()
    ]


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8")


def test_there_are_files():
    assert sum(path.suffix == ".py" for path in files()) > 20


def test_no_file_is_too_long():
    long = {}
    for path in files():
        count = text_of(path).count("\n")
        if path.suffix in SOURCES and count > LIMIT:
            long[str(path)] = count
    assert not long


def test_no_machine_paths():
    found = [
        f"{path}:{number}: {line.strip()}"
        for path in files()
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]
    assert not found


def joined_lines(path):
    """The text with line breaks inside comments undone, so that a title may be split in two."""
    return re.sub(r"\s*\n\s*(?:#|//|\*)?\s*", " ", text_of(path))


def note_titles():
    """Titles by the files that define them: a line that holds the title alone, with text below."""
    heading = re.compile(
        r"^[ \t]*(#|//|\*|)[ \t]*Note \[([^\]]+)\]:?[ \t]*\n[ \t]*\1[ \t]*\S", re.M
    )
    titles = {}
    for path in files():
        for marker, title in heading.findall(text_of(path)):
            if marker or path.suffix == ".py":
                titles.setdefault(title, []).append(str(path))
    return titles


def test_notes_are_written_once_and_references_resolve():
    titles = note_titles()
    doubled = {title: where for title, where in titles.items() if len(where) > 1}
    assert not doubled
    placeholders = {"Title"}
    dangling = [
        f"{path}: Note [{title}]"
        for path in files()
        if path.suffix in SOURCES | {".md"} and path.name != "test_style.py"
        for title in NOTE.findall(joined_lines(path))
        if title not in titles and title not in placeholders
    ]
    assert not dangling


@pytest.mark.parametrize("folder", ["flambeau", "tools", "examples", "bench"])
def test_python_files_open_with_what_they_are(folder):
    bare = [
        str(path)
        for path in files()
        if path.suffix == ".py" and path.parts[0] == folder
        if not ast.get_docstring(ast.parse(text_of(path)))
    ]
    assert not bare


def test_no_test_imports_the_library_we_are_measured_by():
    guilty = [
        str(path)
        for path in files()
        if path.suffix == ".py" and path.parts[0] in ("tests", "flambeau", "examples")
        if re.search(r"^\s*(?:import|from) torch\b", text_of(path), re.MULTILINE)
    ]
    assert not guilty
