"""Compiled functions as files, which run in later processes and in C++ without a compiler.

A file is one of `torch.save`: the native program as text (`_ir.plain`), the library with its loops,
and the tensors that the function has of its own. `csrc/api/compiled.cpp` reads it in C++.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import flambeau
from flambeau import _C, Tensor

from .._ir import plain
from .._ir.settings import Settings, using
from . import config

_FORMAT = "flambeau compiled function"
_ENDING = ".pt2"
#: what a file has besides its format, for those who read it
_PARTS = {"version", "processor", "inputs", "program", "output", "library", "constants"}
#: how /proc/cpuinfo calls the instructions that compiled code may have
_INSTRUCTIONS = (
    "abm", "adx", "aes", "amx", "avx", "bmi", "f16c", "fma", "gfni", "movbe", "pclmul", "popcnt",
    "sha", "sse", "ssse", "vaes", "vpclmul",
)  # fmt: skip


def aoti_compile_and_package(
    model: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    package_path: str | os.PathLike[str] | None = None,
    inductor_configs: Mapping[str, bool] | None = None,
) -> str:
    """Compile a function or a module for inputs like these, into one file.

    What it computes is fixed: the shapes, strides and dtypes of the inputs, the values of
    parameters and buffers, whether it trains. Gradients do not flow through it. The file holds
    machine code for this kind of processor. PyTorch takes an exported program in the place of
    `model` and `args`.

    Args:
        model: a function or module of tensors; it gives tensors, and tuples of them.
        args: its arguments, tensors; the values do not matter.
        kwargs: tensors by name, inputs after the others in the order given.
        package_path: where the file goes, a name that ends in ".pt2"; None: "model.pt2" in the
            folder one is in.
        inductor_configs: options of `torch._inductor.list_options()` for this compilation.

    Returns:
        The path of the file.

    Raises:
        TypeError: an input or a result is no tensor.
        ValueError: the path has another ending, or an option does not exist.
        NotImplementedError: the function changes its inputs or its parameters.
        RuntimeError: what it does depends on the values of its inputs.

    Source: PyTorch's documentation of AOTInductor.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "double.pt2")
    >>> _ = torch._inductor.aoti_compile_and_package(lambda x: x * 2, (torch.ones(3),), package_path=path)
    >>> torch._inductor.aoti_load_package(path)(torch.tensor([1.0, 2.0, 3.0]))
    tensor([2., 4., 6.])
    """
    path = Path("model" + _ENDING if package_path is None else package_path)
    if path.suffix != _ENDING:
        raise ValueError(
            f"aoti_compile_and_package: expected a package_path that ends in {_ENDING}, got {path}"
        )
    named = dict(kwargs or {})
    inputs = [*args, *named.values()]
    for i, x in enumerate(inputs):
        if not isinstance(x, Tensor):
            raise TypeError(
                f"aoti_compile_and_package: expected a tensor as input {i}, got "
                f"{type(x).__name__}; a function may hold other values"
            )
    count, names = len(args), tuple(named)

    def called(*given: Tensor) -> Any:
        return model(*given[:count], **dict(zip(names, given[count:], strict=True)))

    with using(_settings(inductor_configs)), flambeau.no_grad():
        spec, library, constants = _compiled(called, inputs)
    described = {
        "format": _FORMAT,
        "version": flambeau.__version__,
        "isa": str(_C._build_info()["isa"]),
        "processor": _features(),
        "inputs": names,
        "program": plain.dumps(_finite(spec[:5])),
        "output": plain.dumps(_finite(spec[5])),
        "library": library,
        "constants": constants,
    }
    flambeau.save(described, path)
    return str(path)


def aoti_load_package(path: str | os.PathLike[str]) -> Callable[..., Any]:
    """The function of a file that `aoti_compile_and_package` wrote.

    It holds machine code, which runs: load files that you trust.

    Args:
        path: of the file.

    Returns:
        A function of the tensors that it was compiled for, in their order or by their names.

    Raises:
        FileNotFoundError: there is no such file.
        RuntimeError: it is no such file, of another version of Flambeau, or for a processor that
            has what this one lacks.

    Source: PyTorch's documentation of AOTInductor.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "net.pt2")
    >>> net = torch.nn.Linear(2, 1)
    >>> _ = torch._inductor.aoti_compile_and_package(net, (torch.ones(1, 2),), package_path=path)
    >>> loaded = torch._inductor.aoti_load_package(path)
    >>> torch.allclose(loaded(torch.ones(1, 2)), net(torch.ones(1, 2)))
    True
    """
    held = flambeau.load(path, weights_only=True)
    if not isinstance(held, dict) or held.get("format") != _FORMAT:
        raise RuntimeError(f"aoti_load_package: {path} is no compiled function")
    if absent := _PARTS - held.keys():
        raise RuntimeError(f"aoti_load_package: {path} lacks {', '.join(sorted(absent))}")
    if held["version"] != flambeau.__version__:
        raise RuntimeError(
            f"aoti_load_package: {path} was compiled by Flambeau {held['version']}, this is "
            f"{flambeau.__version__}; compile it again"
        )
    lacking = set(held["processor"].split()) - set(_features().split())
    if lacking and _features():
        raise RuntimeError(
            f"aoti_load_package: {path} was compiled for a processor with "
            f"{', '.join(sorted(lacking))}, which this one lacks"
        )
    spec = (*plain.loads(held["program"]), plain.loads(held["output"]))
    program = _C._Program(spec, tuple(held["constants"]), _opened(held["library"]))
    names: tuple[str, ...] = held["inputs"]

    def run(*args: Tensor, **kwargs: Tensor) -> Any:
        if kwargs and set(kwargs) != set(names):
            raise TypeError(
                f"compiled function: expected inputs by the names {', '.join(names)}, got "
                f"{', '.join(kwargs)}"
            )
        return program(*args, *(kwargs[n] for n in names if kwargs))

    return run


def _settings(given: Mapping[str, bool] | None) -> Settings:
    """The settings of a compilation; options that have no effect here are refused."""
    known = {"epilogue_fusion", "layout_optimization"}
    for name in given or {}:
        if name not in known:
            raise ValueError(
                f"aoti_compile_and_package: expected inductor_configs of {sorted(known)}, got "
                f"{name!r}"
            )
    chosen = {name: config.value(name) for name in known} | dict(given or {})
    return Settings(chosen["epilogue_fusion"], chosen["layout_optimization"])


def _compiled(f: Callable[..., Any], inputs: Sequence[Tensor]) -> tuple[Any, ...]:
    """The description of the native program, its library's bytes or None, its own tensors."""
    from .._aot import aot
    from .._aot.metadata import Alias
    from .._compiler import execute, toolchain
    from .._trace import trace

    single = False

    def called(*xs: Tensor) -> Any:
        nonlocal single
        result = f(*xs)
        single = isinstance(result, Tensor)
        return _own(result)

    def output(a: Any) -> tuple[int, Any]:
        return (0, a.index) if isinstance(a, Alias) else (4, tuple(map(output, a)))

    graph = trace(called, inputs)
    made = aot(graph, [False] * len(graph.inputs))
    if made.metadata.mutated:
        raise NotImplementedError(
            "aoti_compile_and_package: the function changes its inputs, parameters or buffers; "
            "call eval() of a module first, or return the new values"
        )
    (program,) = execute.programs([made.forward])
    library = None
    if program.code is not None:
        library = flambeau.frombuffer(bytearray(toolchain.read(program.code)), dtype=flambeau.uint8)
    results = made.metadata.outputs
    shape = output(results[0]) if single else output(results)
    constants = [t.detach() for t in made.forward.attached]
    return (*program.spec[:5], shape), library, constants


def _own(x: Any) -> Any:
    """Results in memory of their own."""
    if isinstance(x, Tensor):
        return x.clone()
    if isinstance(x, (list, tuple)):
        return tuple(map(_own, x))
    raise TypeError(
        "aoti_compile_and_package: expected tensors, and tuples of them, as results, got "
        f"{type(x).__name__}"
    )


def _opened(library: Tensor | None) -> Any:
    """What runs the loops of a library's bytes."""
    from .._compiler import toolchain

    return None if library is None else toolchain.opened(library.numpy()).function("run")


def _features() -> str:
    """Which instructions this processor has, of those that compilers use."""
    from .._compiler import toolchain

    flags = toolchain.processor().partition("\n")[0].partition(":")[2].split()
    return " ".join(x for x in flags if x.startswith(_INSTRUCTIONS))


def _finite(x: Any) -> Any:
    """Plain data with the numbers that JSON has no word for as `plain` reads them."""
    if isinstance(x, float) and not math.isfinite(x):
        return {"float": str(x)}
    return tuple(map(_finite, x)) if isinstance(x, (list, tuple)) else x
