"""Extension modules in C++: built when a program runs (`load`, `load_inline`) or by setuptools.

Owns the compiler's flags, the cache of what was built, and setuptools' build step. A module is
linked to ``libflambeau`` alone and includes ``torch/extension.h``, whose casters need pybind11 (a
package of that name). Knows nothing of what extensions compute.

Note [Built by content]
What `load` builds lies in a folder named by a hash of the sources, the flags, the compiler and the
library; it is built again when one of them changes and found at once otherwise. Two processes that
build the same wait for each other.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import flambeau
from flambeau._compiler import toolchain

__all__ = [
    "CUDA_HOME",
    "CUDAExtension",
    "CppExtension",
    "get_default_build_root",
    "include_paths",
    "is_ninja_available",
    "library_paths",
    "load",
    "load_inline",
]

#: where a CUDA toolkit would be: extensions for accelerators are not built
CUDA_HOME = None
ROCM_HOME = None
IS_HIP_EXTENSION = False

_PACKAGE = Path(flambeau.__file__).resolve().parent
_STANDARD = "-std=c++20"
#: name of a module -> what was loaded under it; a process has one module of a name, so that the
#: others are NAME_v1 and so on
_VERSIONS: dict[str, list[str]] = {}


def include_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """Folders of headers that an extension includes.

    >>> include_paths()[0].endswith("include")
    True
    """
    _only_cpu("include_paths", device_type)
    return [str(_PACKAGE / "include")] if torch_include_dirs else []


def library_paths(
    device_type: str = "cpu", torch_include_dirs: bool = True, cross_target_platform: Any = None
) -> list[str]:
    """Folders of libraries that an extension is linked to."""
    _only_cpu("library_paths", device_type)
    return [str(_PACKAGE / "lib")]


def _only_cpu(function: str, device_type: Any) -> None:
    if device_type not in ("cpu", False, None):
        raise RuntimeError(f"{function}: expected device_type 'cpu', got {device_type!r}")


def _pybind11() -> str:
    """The folder of pybind11's headers."""
    if importlib.util.find_spec("pybind11") is None:
        raise RuntimeError(
            "cpp_extension: torch/extension.h needs pybind11, which is not installed: "
            "pip install pybind11"
        )
    import pybind11

    found: str = pybind11.get_include()
    return found


def _python_flags() -> list[str]:
    return [f"-I{sysconfig.get_paths()['include']}"]


def _compile_flags(name: str, pybind: bool = True) -> list[str]:
    flags = [f"-I{folder}" for folder in include_paths()]
    if pybind:
        flags.append(f"-I{_pybind11()}")
    flags += [*_python_flags(), "-fPIC", "-O2", "-fvisibility=hidden"]
    return [*flags, f"-DTORCH_EXTENSION_NAME={name}", "-DTORCH_API_INCLUDE_EXTENSION_H"]


def _link_flags() -> list[str]:
    folder = library_paths()[0]
    return ["-shared", f"-L{folder}", "-lflambeau", f"-Wl,-rpath,{folder}"]


def _own_standard(flags: Sequence[str]) -> list[str]:
    """Flags of the caller's; an older standard of C++ than the headers need gives way."""
    return [f for f in flags if not re.fullmatch(r"-std=(c|gnu)\+\+(0x|11|14|1y|17|1z)", f)]


def get_default_build_root() -> str:
    """The folder below which `load` builds: FLAMBEAU_EXTENSIONS_DIR, or part of the user's cache.

    >>> os.path.isabs(get_default_build_root())
    True
    """
    named = os.environ.get("FLAMBEAU_EXTENSIONS_DIR") or os.environ.get("TORCH_EXTENSIONS_DIR")
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return os.path.abspath(named or os.path.join(cache, "flambeau", "extensions"))


def is_ninja_available() -> bool:
    """Is ninja there? Building does not need it."""
    return shutil.which("ninja") is not None


def verify_ninja_availability() -> None:
    """Nothing: sources are compiled side by side without it."""


def _compiler() -> str:
    try:
        return toolchain.compiler()
    except toolchain.CompilerError:
        raise RuntimeError(
            "cpp_extension: expected a C++ compiler, found neither g++ nor clang++; install one "
            "(Debian: apt-get install g++)"
        ) from None


def _digest(parts: Sequence[str | bytes]) -> str:
    state = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()[:16]


def _identity() -> list[str]:
    """What else decides about the result: the compiler, the library's headers, Python."""
    compiler = Path(_compiler()).resolve()
    facts = [str(compiler), str(compiler.stat().st_mtime_ns), sys.version]
    for file in (toolchain.library(), _PACKAGE / "include" / "flambeau" / "flambeau.h"):
        stat = file.stat()
        facts += [str(file), str(stat.st_mtime_ns), str(stat.st_size)]
    return facts


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(command: list[str], name: str, verbose: bool) -> None:
    if verbose:
        print(" ".join(command), flush=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(
            f"Error building extension '{name}': the compiler failed\n"
            f"{' '.join(command)}\n{done.stderr or done.stdout}"
        )
    if verbose and done.stderr:
        print(done.stderr, flush=True)


def _build(
    name: str, sources: Sequence[Path], folder: Path, flags: list[str], link: list[str],
    verbose: bool, target: str,
) -> Path:  # fmt: skip
    """Compiles what is not there yet, side by side, and links it."""
    made = folder / target
    with _locked(folder):
        if made.exists():
            return made
        compiler = _compiler()
        objects = [folder / f"{i}_{s.stem}.o" for i, s in enumerate(sources)]
        commands = [
            [compiler, *flags, _STANDARD, "-c", str(s), "-o", str(o)]
            for s, o in zip(sources, objects, strict=True)
        ]
        workers = max(1, min(len(commands), len(os.sched_getaffinity(0))))
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            for result in [pool.submit(_run, c, name, verbose) for c in commands]:
                result.result()
        part = made.with_suffix(".part")
        _run([compiler, *map(str, objects), "-o", str(part), *link], name, verbose)
        os.replace(part, made)
    return made


def _import(name: str, file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load(
    name: str,
    sources: str | Sequence[str],
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
) -> Any:
    """Build an extension from files of C++ and import it; see Note [Built by content].

    Args:
        name: of the module; the sources say ``PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)``.
        sources: files.
        extra_cflags, extra_ldflags, extra_include_paths: for the compiler, behind its own.
        build_directory: where it is built, in place of a folder of the cache.
        verbose: print the commands.
        is_python_module: import it; otherwise the library is loaded, for the operators that it
            adds, and its path is returned.
        is_standalone: build a program, whose path is returned.
        keep_intermediates: keep object files.

    Returns:
        the module, or a path.

    Raises:
        RuntimeError: there is no compiler, or it refused, with what it said; ``with_cuda``.
    """
    files = [Path(s).resolve() for s in ([sources] if isinstance(sources, str) else sources)]
    _refuse_devices(with_cuda, with_sycl, extra_cuda_cflags, extra_sycl_cflags, files)
    for file in files:
        if not file.is_file():
            raise RuntimeError(f"load: expected source files, {file} is none")
    module, extra = name, _own_standard(extra_cflags or ())
    extra += [f"-I{Path(p).resolve()}" for p in extra_include_paths or ()]
    near = sorted({h for f in files for h in f.parent.rglob("*.h*") if h.is_file()})
    pybind = is_python_module or importlib.util.find_spec("pybind11") is not None
    flags = [*_compile_flags(name, pybind), *extra]
    link = [*_link_flags(), *(extra_ldflags or ())]
    if is_standalone:
        link.remove("-shared")
    contents = [p.read_bytes() for p in (*files, *near)]
    key = _digest([name, *flags, *link, *map(str, files), *contents, *_identity()])
    seen = _VERSIONS.setdefault(name, [])
    if key not in seen:
        seen.append(key)
    if version := seen.index(key):
        name = f"{name}_v{version}"
        flags = [*_compile_flags(name, pybind), *extra]
        key = _digest([name, key])
    root = Path(build_directory) if build_directory else Path(get_default_build_root()) / module
    folder = root / key
    target = name if is_standalone else f"{name}.so"
    made = _build(name, files, folder, flags, link, verbose, target)
    if not keep_intermediates:
        for file in folder.glob("*.o"):
            file.unlink()
    if is_standalone:
        return str(made)
    if not is_python_module:
        _load_library(made)
        return str(made)
    return _import(name, made)


def _load_library(path: Path) -> None:
    from flambeau._library.operators import load_library

    load_library(str(path))


def _refuse_devices(*given: Any) -> None:
    *options, files = given
    if any(options) or any(f.suffix in (".cu", ".cuh", ".sycl") for f in files):
        raise RuntimeError(
            "cpp_extension: extensions for accelerators are not built, there is no such device; "
            "leave out the sources and flags of CUDA and SYCL"
        )


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    cuda_sources: str | Sequence[str] | None = None,
    sycl_sources: str | Sequence[str] | None = None,
    functions: str | Sequence[str] | dict[str, str] | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = True,
    no_implicit_headers: bool = False,
) -> Any:
    """Build an extension from text; arguments as those of :func:`load`, and:

    Args:
        cpp_sources: text, or several that are put together.
        functions: names of functions to bind, perhaps with docstrings.
        no_implicit_headers: leave out the line that includes ``torch/extension.h``.
        use_pch: read that header as the compiler prepared it once; the first use takes longer.

    >>> source = "torch::Tensor twice(torch::Tensor x) { return x * 2; }"  # doctest: +SKIP
    >>> load_inline("doubled", source, functions="twice").twice(flambeau.ones(2))
    tensor([2., 2.])
    """
    _refuse_devices(
        cuda_sources, sycl_sources, with_cuda, with_sycl, extra_cuda_cflags, extra_sycl_cflags, []
    )
    texts = [cpp_sources] if isinstance(cpp_sources, str) else list(cpp_sources)
    if not no_implicit_headers:
        texts.insert(0, "#include <torch/extension.h>")
    named = [functions] if isinstance(functions, str) else functions
    if named is not None:
        docs = named if isinstance(named, dict) else {n: n for n in named}
        texts.append("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {")
        for function, text in docs.items():
            escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            texts.append(f'm.def("{function}", &{function}, "{escaped}");')
        texts.append("}")
    text = "\n".join(texts) + "\n"
    root = Path(build_directory) if build_directory else Path(get_default_build_root()) / name
    folder = root / "sources" / _digest([text])
    source = folder / "main.cpp"
    with _locked(folder):
        if not source.exists():
            source.write_text(text)
    flags = _own_standard(extra_cflags or ())
    pybind = is_python_module or importlib.util.find_spec("pybind11") is not None
    if use_pch and not flags and not no_implicit_headers and pybind:
        flags = _prepared(name, verbose)
    return load(
        name, [str(source)], flags, None, None, extra_ldflags, extra_include_paths,
        str(root), verbose, False, False, is_python_module, False, keep_intermediates,
    )  # fmt: skip


def _prepared(name: str, verbose: bool) -> list[str]:
    """Flags by which the compiler reads torch/extension.h as it was prepared."""
    compiler = _compiler()
    if "clang" in os.path.basename(compiler):
        return []
    flags = [f for f in _compile_flags(name) if not f.startswith("-DTORCH_EXTENSION_NAME")]
    folder = Path(get_default_build_root()) / "prepared" / _digest([*flags, *_identity()])
    header = folder / "prepared.h"
    with _locked(folder):
        if not (folder / "prepared.h.gch").exists():
            header.write_text("#include <torch/extension.h>\n")
            part = folder / "part.gch"
            command = [compiler, *flags, _STANDARD, "-x", "c++-header", str(header), "-o"]
            _run([*command, str(part)], name, verbose)
            os.replace(part, folder / "prepared.h.gch")
    return ["-include", str(header)]


def CppExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """A `setuptools.Extension` for C++ that includes this library's headers and is linked to it.

    >>> CppExtension("fast", ["fast.cpp"]).language
    'c++'
    """
    import setuptools

    kwargs["include_dirs"] = [*kwargs.get("include_dirs", ()), *include_paths()]
    if importlib.util.find_spec("pybind11") is not None:
        kwargs["include_dirs"].append(_pybind11())
    kwargs["library_dirs"] = [*kwargs.get("library_dirs", ()), *library_paths()]
    kwargs["libraries"] = [*kwargs.get("libraries", ()), "flambeau"]
    kwargs["runtime_library_dirs"] = [*(kwargs.get("runtime_library_dirs") or ()), *library_paths()]
    kwargs["language"] = "c++"
    return setuptools.Extension(name, list(sources), *args, **kwargs)


def CUDAExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """Refused: there is no such device."""
    _refuse_devices(True, [])


def _build_extension() -> Any:
    """The class `BuildExtension`, made when it is asked for: it derives from setuptools'."""
    from setuptools.command.build_ext import build_ext

    class BuildExtension(build_ext):
        """setuptools' build_ext with the flags that this library's headers need.

        `BuildExtension.with_options(use_ninja=False, no_python_abi_suffix=True)` gives a class
        whose options are set; sources are compiled by setuptools in either case.
        """

        _no_abi_suffix = False

        @classmethod
        def with_options(cls, **options: Any) -> type:
            unknown = set(options) - {"use_ninja", "no_python_abi_suffix", "max_jobs"}
            if unknown:
                raise TypeError(f"BuildExtension.with_options: unknown options {sorted(unknown)}")
            suffix = bool(options.get("no_python_abi_suffix", False))
            return type("BuildExtension", (cls,), {"_no_abi_suffix": suffix})

        def build_extensions(self) -> None:
            for extension in self.extensions:
                self._prepare(extension)
            super().build_extensions()

        def _prepare(self, extension: Any) -> None:
            given = extension.extra_compile_args or []
            if isinstance(given, dict):  # by compiler
                given = given.get("cxx", [])
            base = extension.name.rpartition(".")[2]
            extension.extra_compile_args = [
                *_own_standard(given),
                _STANDARD,
                f"-DTORCH_EXTENSION_NAME={base}",
                "-DTORCH_API_INCLUDE_EXTENSION_H",
            ]

        def get_ext_filename(self, ext_name: str) -> str:
            name: str = super().get_ext_filename(ext_name)
            if not self._no_abi_suffix:
                return name
            *front, _abi, last = name.split(".")
            return ".".join([*front, last])

    BuildExtension.__module__ = __name__
    return BuildExtension


def __getattr__(name: str) -> Any:
    if name == "BuildExtension":
        made = globals()[name] = _build_extension()
        return made
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
