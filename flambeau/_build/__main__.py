"""`python flambeau/_build --root . --out build/gen`: writes every generated C++ file.

Files whose text did not change are left alone, so that the build recompiles only what did.
`--list-outputs` prints the names, for CMake. Errors go to stderr with source line and caret.
"""

from __future__ import annotations

import argparse
import sys
import types
from pathlib import Path

if not __package__:
    # Run as a folder: the package itself cannot be imported yet, it needs what this generates.
    here = Path(__file__).resolve().parent
    package = types.ModuleType("flambeau")
    package.__path__ = [str(here.parent)]
    sys.modules["flambeau"] = package
    __package__ = "flambeau._build"
    import flambeau._build  # noqa: F401

from flambeau._build import (  # noqa: E402
    compiler,
    emit_api,
    emit_bindings,
    emit_files,
    emit_modules,
    headers,
)
from flambeau._ir.errors import CompileError  # noqa: E402


def _report(errors: list[CompileError], root: Path) -> None:
    sources: dict[str, list[str]] = {}
    for error in errors:
        if error.file not in sources:
            path = root / error.file
            sources[error.file] = path.read_text().splitlines() if path.exists() else []
        print(error.show(sources[error.file]), file=sys.stderr)
    print(f"{len(errors)} error{'s' if len(errors) > 1 else ''} in the table", file=sys.stderr)


def main(argv: list[str] | None = None) -> int:
    """Entry point; the exit status."""
    parser = argparse.ArgumentParser(
        prog="flambeau._build", description="table of operations to C++"
    )
    parser.add_argument("--root", type=Path, default=Path("."), help="root of the repository")
    parser.add_argument("--out", type=Path, default=Path("build/gen"), help="folder of the output")
    parser.add_argument("--include", type=Path, help="folder of the public headers")
    parser.add_argument("--list-outputs", action="store_true", help="print the names of the files")
    parser.add_argument("--keep-going", action="store_true", help="leave out entries with errors")
    args = parser.parse_args(argv)
    try:
        unit = compiler.load(args.root)
    except CompileError as error:
        _report([error], args.root)
        return 1
    if unit.errors:
        _report(unit.errors, args.root)
        if not args.keep_going:
            return 1
    files = emit_files.all_files(unit) | emit_bindings.files(unit) | emit_api.files(unit)
    files |= emit_modules.files()
    if args.list_outputs:
        print("\n".join(sorted(files)))
        return 0
    changed = emit_files.write(files, args.out)
    if args.include:
        emit_files.write(headers.collect(args.root, files), args.include)
    print(f"{len(files)} files, {changed} changed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
