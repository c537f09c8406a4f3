"""Every way in to `import torch` of docs/as_torch.md, and those of docs/distributed.md, from an
installed package; run by scripts/wheel.sh in an empty environment.

A script, not tests: nothing but the package and what it requires is there. It changes the
environment it runs in (`enable`) and puts it back.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap

VERSION = "2.13.0+flambeau"
#: prints that the alias is there, as a program or a library would ask
SAYS = (
    "import importlib.metadata as m; before = m.version('torch')\n"
    "import importlib.util as u; assert u.find_spec('torch') is not None\n"
    "import torch, torch.nn.functional as F; from torch import nn\n"
    "assert nn.Linear.__module__ == 'torch.nn.modules.linear', nn.Linear.__module__\n"
    "assert F.relu(torch.ones(1)).item() == 1 and m.version('torch') == before\n"
    "print('way in', __name__, before, torch.__version__, torch.version.__version__)\n"
)
SAID = f"way in __main__ {VERSION} {VERSION} {VERSION}"


def python(*arguments: object, text: str | None = None, status: int = 0) -> str:
    """What a process of Python prints; its path is that of a user without settings."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, env=clean)
    assert done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


def launched(*arguments: object, text: str | None = None) -> str:
    """The same under `python -m flambeau.as_torch`."""
    return python("-m", "flambeau.as_torch", *arguments, text=text)


def launcher(folder: pathlib.Path) -> None:
    """A script, a folder, `-m`, `-c`, a program on standard input."""
    script = folder / "program.py"
    script.write_text(SAYS)
    (folder / "__main__.py").write_text(SAYS)
    assert launched(script) == SAID
    assert launched(folder) == SAID
    assert launched("-m", "program") == SAID
    assert launched("-c", SAYS) == SAID
    assert launched(text=SAYS) == SAID
    assert VERSION in launched("-m", "pip", "list", "--disable-pip-version-check")
    assert "Flambeau version" in launched("-m", "torch.utils.collect_env")


def prompt() -> None:
    """A prompt at a terminal."""
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "flambeau.as_torch"]
    child = subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs)
    os.write(ours, b"import torch\nprint('prompt', torch.__name__ + '!')\nexit()\n")
    out, _ = child.communicate(timeout=120)
    os.close(theirs)
    os.close(ours)
    assert b"prompt torch!" in out, out


def notebook() -> None:
    """What `%load_ext flambeau.as_torch` does: by IPython, where there is one."""
    try:
        from IPython.core.interactiveshell import InteractiveShell  # noqa: F401

        load = (
            "from IPython.core.interactiveshell import InteractiveShell\n"
            "InteractiveShell.instance().run_line_magic('load_ext', 'flambeau.as_torch')\n"
        )
    except ImportError:
        load = "import flambeau.as_torch; flambeau.as_torch.load_ipython_extension(None)\n"
    assert python("-c", load + SAYS).endswith(SAID)


def children(folder: pathlib.Path) -> None:
    """Processes of multiprocessing and `python ...`, of each way in."""
    worker = folder / "worker.py"
    worker.write_text(SAYS + "def work(x): return torch.__name__\n")
    parent = folder / "parent.py"
    parent.write_text(
        textwrap.dedent(
            """
            import multiprocessing
            import worker

            if __name__ == "__main__":
                for how in ("fork", "forkserver", "spawn"):
                    with multiprocessing.get_context(how).Pool(1) as pool:
                        print(how, *pool.map(worker.work, [1]))
            """
        )
    )
    start = folder / "start.py"
    start.write_text(
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, {str(folder / 'program.py')!r}], check=True)\n"
        "subprocess.run([sys.executable, '-m', 'pip', 'show', 'torch'], check=True)\n"
    )
    installs = folder / "installs.py"
    installs.write_text("import flambeau.as_torch as a\na.install()\n" + parent.read_text())
    wanted = {"fork torch", "forkserver torch", "spawn torch"}
    assert wanted <= set(launched(parent).splitlines())
    assert wanted <= set(python(installs).splitlines())
    out = launched(start)
    assert SAID in out and f"Version: {VERSION}" in out, out


def whole_environment(folder: pathlib.Path) -> None:
    """enable, status, disable, and pip in between."""
    this = ("-m", "flambeau.as_torch")
    assert "no torch" in python(*this, "status")
    python("-c", "import torch", status=1)
    assert "torch is Flambeau" in python(*this, "enable")
    try:
        assert "torch is Flambeau" in python(*this, "status")
        assert python("-c", SAYS) == SAID
        assert VERSION in python("-m", "pip", "list", "--disable-pip-version-check")
        assert "fork torch" in python(folder / "parent.py")
        python("-m", "pip", "check")
    finally:
        assert "no torch" in python(*this, "disable")
    python("-c", "import torch", status=1)


def modules() -> None:
    """Every module of the package is imported, by either name."""
    program = (
        "import importlib, pkgutil, flambeau\n"
        "names = [m.name for m in pkgutil.walk_packages(flambeau.__path__, 'flambeau.')\n"
        "         if not {'__main__', '_path', '_onednn'} & {*m.name.split('.')}]\n"
        "for name in names: importlib.import_module(name)\n"
        "public = [n for n in names if '._' not in n and 'as_torch' not in n\n"
        "          and not n.startswith('flambeau.ops')]\n"
        "import sys\n"
        "if 'torch' in sys.modules:\n"
        "    for n in public: importlib.import_module(n.replace('flambeau', 'torch', 1))\n"
        "print(len(public))\n"
    )
    assert int(python("-c", program)) == int(launched("-c", program)) > 100


def processes(folder: pathlib.Path) -> None:
    """`torchrun` and `python -m flambeau.distributed.run`, the ways in of docs/distributed.md."""
    script = folder / "rank.py"
    script.write_text(
        "import flambeau as torch, flambeau.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "x = torch.ones(1) * (dist.get_rank() + 1); dist.all_reduce(x)\n"
        "if dist.get_rank() == 0: print('sum', x.item())\n"
        "dist.destroy_process_group()\n"
    )
    options = ("--standalone", "--nproc-per-node=2", script)
    assert python("-m", "flambeau.distributed.run", *options) == "sum 3.0"
    torchrun = pathlib.Path(sys.executable).with_name("torchrun")
    assert python(torchrun, *options) == "sum 3.0"
    by_connections(folder)


def by_connections(folder: pathlib.Path) -> None:
    """A sum over TCP, as between machines."""
    script = folder / "rank_by_connections.py"
    script.write_text(
        "import flambeau as torch, flambeau.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "x = torch.ones(1_000_000) * (dist.get_rank() + 1); dist.all_reduce(x)\n"
        "if dist.get_rank() == 0: print('sum', x[-1].item(), dist.group.WORLD._engine)\n"
        "dist.destroy_process_group()\n"
    )
    os.environ["FLAMBEAU_DISTRIBUTED_ENGINE"] = "tcp"
    try:
        options = ("--standalone", "--nproc-per-node=2", script)
        assert python("-m", "flambeau.distributed.run", *options) == "sum 3.0 tcp"
    finally:
        del os.environ["FLAMBEAU_DISTRIBUTED_ENGINE"]


def main() -> None:
    """Try them all, away from any checkout."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.chdir(folder)
        installed = "import flambeau.as_torch as a; a.install(); assert a.installed()\n"
        launcher(folder)
        assert python("-c", installed + SAYS) == SAID
        prompt()
        notebook()
        children(folder)
        whole_environment(folder)
        modules()
        processes(folder)
        os.chdir("/")
    print("installed package: every way in works")


if __name__ == "__main__":
    main()
