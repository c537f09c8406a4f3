"""Which files a package holds, held to the sources; run by scripts/wheel.sh.

    package_files.py [WHEEL | SDIST ...]       without arguments: the installed package

A script that needs nothing but Python: it knows the checkout that it lies in and imports nothing of
ours. A wheel may lack what CMake makes, which is how one is made in a second (wheel.cmake=false).
"""

from __future__ import annotations

import importlib.metadata
import pathlib
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
#: what a build in place leaves in the sources
_LEFT = (".so", ".pyc", ".pyo")


def _python_sources() -> set[str]:
    """Files of the package that lie in the checkout, but for what only a build runs."""
    return {
        str(p.relative_to(ROOT))
        for p in (ROOT / "flambeau").rglob("*")
        if p.is_file()
        and p.suffix not in _LEFT
        and not {"_build", "__pycache__"} & set(p.relative_to(ROOT).parts)
        and p.relative_to(ROOT).parts[:2] != ("flambeau", "include")
    }


def _headers(names: set[str]) -> set[str]:
    """What CMake installs: sources of kernels, and headers of programs, which the build makes."""
    kernels = ROOT / "csrc" / "kernels"
    api = ROOT / "csrc" / "api"
    public = {f"flambeau/include/{p.relative_to(api)}" for p in api.glob("*/**/*.h")
              if p.relative_to(api).parts[0] != "nn"}  # fmt: skip
    if not public <= names:
        sys.exit(f"headers are missing: {sorted(public - names)[:20]}")
    made = {n for n in names if n.startswith("flambeau/include/") and n.endswith(".h")}
    return made | {
        f"flambeau/_compiler/csrc/kernels/{p.relative_to(kernels)}" for p in kernels.rglob("*.h")
    }


def _same(where: str, found: set[str], wanted: set[str]) -> None:
    missing, strange = sorted(wanted - found), sorted(found - wanted)
    if missing or strange:
        sys.exit(
            f"{where}: {len(missing)} files are missing {missing[:20]}, not known: {strange[:20]}"
        )


def _check_package(where: str, names: set[str], built: bool) -> None:
    """`names` are those of the sources, and of what CMake makes if the package is `built`."""
    libraries = {n for n in names if n.endswith(".so") or n.startswith("flambeau/_libs/")}
    _same(where, names - libraries, _python_sources() | (_headers(names) if built else set()))
    extensions = [n for n in libraries if n.startswith("flambeau/_C.")]
    if len(extensions) != int(built):
        sys.exit(f"{where}: expected {int(built)} extension, got {extensions}")
    if built != ("flambeau/lib/libflambeau.so" in libraries):
        sys.exit(f"{where}: expected the core beside {extensions}, got {sorted(libraries)}")


def _ours(names: list[str]) -> set[str]:
    """Names of the package, without those of the record and of compiled files."""
    return {n for n in names if n.startswith("flambeau/") and not n.endswith((".pyc", "/"))}


def _check_source(where: str, names: list[str]) -> None:
    """A source holds all that builds read, and the tests."""
    found = {n.partition("/")[2] for n in names}
    wanted = _python_sources() | {"pyproject.toml", "CMakeLists.txt", "LICENSE", "README.md"}
    for folder in ("csrc", "cmake", "flambeau/_build", "tests", "scripts"):
        wanted |= {
            str(p.relative_to(ROOT))
            for p in (ROOT / folder).rglob("*")
            if p.is_file() and p.suffix not in _LEFT and "__pycache__" not in p.parts
        }
    _same(where, found & wanted, wanted)


def main(packages: list[str]) -> None:
    """Compare each package, or the one that is installed."""
    for package in packages:
        if package.endswith(".whl"):
            names = _ours(zipfile.ZipFile(package).namelist())
            _check_package(package, names, any(n.startswith("flambeau/_C.") for n in names))
        else:
            with tarfile.open(package) as archive:
                _check_source(package, archive.getnames())
    if not packages:
        files = importlib.metadata.files("flambeau") or []
        _check_package("installed package", _ours([str(f) for f in files]), True)
        for file in files:
            if not pathlib.Path(str(file.locate())).is_file():
                sys.exit(f"installed package: {file} is recorded but missing")


if __name__ == "__main__":
    main(sys.argv[1:])
