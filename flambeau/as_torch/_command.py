"""What `python -m flambeau.as_torch` does: run a program, or manage an environment's `torch`.

Owns the command line. What follows the script, `-m` or `-c` belongs to the program, which runs in
the real `__main__` as `python` itself would run it; processes that it starts find the alias too.
"""

from __future__ import annotations

import builtins
import os
import runpy
import site
import sys
import sysconfig
from typing import Any

from . import _paths, install

_USAGE = """usage: python -m flambeau.as_torch SCRIPT [ARG ...]        run a script
       python -m flambeau.as_torch -m MODULE [ARG ...]      run a module, such as pytest
       python -m flambeau.as_torch -c CODE [ARG ...]        run code
       python -m flambeau.as_torch                          a prompt, or a program on standard input
       python -m flambeau.as_torch enable|disable|status    `torch` of a whole environment"""


def _lead_children() -> None:
    """Put the alias, and this package where it is not installed, on the path of children."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    installed = {*site.getsitepackages(), sysconfig.get_path("purelib"), site.getusersitepackages()}
    front = [_paths.FOLDER] if root in installed else [_paths.FOLDER, root]
    rest = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    joined = [*front, *(p for p in rest if p not in front)]
    os.environ["PYTHONPATH"] = os.pathsep.join(joined)


def _main_namespace(file: str | None) -> dict[str, Any]:
    """The namespace of `__main__`, as a program finds it when it starts."""
    namespace = vars(sys.modules["__main__"])
    namespace.clear()
    namespace.update(
        __name__="__main__", __doc__=None, __package__=None, __spec__=None, __loader__=None,
        __builtins__=builtins,
    )  # fmt: skip
    if file is not None:
        namespace.update(__file__=file, __cached__=None)
    return namespace


def _prompt() -> None:
    import code

    namespace = _main_namespace(None)
    if not sys.stdin.isatty():
        exec(compile(sys.stdin.read(), "<stdin>", "exec"), namespace)
        return
    try:
        import readline
        import rlcompleter

        readline.set_completer(rlcompleter.Completer(namespace).complete)
        readline.parse_and_bind("tab: complete")
    except ImportError:
        pass
    code.interact(f"Python {sys.version.split()[0]}; `import torch` is Flambeau", None, namespace)


def _run(arguments: list[str]) -> None:
    if not arguments:
        sys.argv = [""]
        _prompt()
    elif arguments[0] == "-m" and len(arguments) > 1:
        sys.argv = arguments[1:]
        run: Any = runpy._run_module_as_main  # type: ignore[attr-defined]
        run(arguments[1])
    elif arguments[0] == "-c" and len(arguments) > 1:
        sys.argv = ["-c", *arguments[2:]]
        sys.path[0] = ""
        exec(compile(arguments[1], "<string>", "exec"), _main_namespace(None))
    else:
        script = arguments[0]
        sys.argv = arguments
        if os.path.isdir(script):
            sys.path[0] = script
            runpy.run_path(script, run_name="__main__")
            return
        sys.path[0] = os.path.dirname(os.path.realpath(script))
        with open(script, "rb") as f:
            text = f.read()
        exec(compile(text, script, "exec"), _main_namespace(script))


def main(arguments: list[str]) -> int:
    """Do what the command line says."""
    if arguments and arguments[0] in ("enable", "disable", "status"):
        from . import _environment

        return _environment.command(arguments)
    if arguments and arguments[0] in ("-h", "--help"):
        print(_USAGE)
        return 0
    if arguments and arguments[0].startswith("-") and arguments[0] not in ("-m", "-c"):
        print(f"{_USAGE}\nunknown option {arguments[0]}", file=sys.stderr)
        return 2
    if arguments and arguments[0] in ("-m", "-c") and len(arguments) == 1:
        print(f"{_USAGE}\n{arguments[0]} expects an argument", file=sys.stderr)
        return 2
    install()
    _lead_children()
    _run(arguments)
    return 0
