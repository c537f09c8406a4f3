"""The ways to run a program, and the processes that it starts."""

import textwrap

import pytest

SAYS = "import sys, torch; print(torch.__name__, __name__, sys.argv[1:])"


def test_script_runs_as_main_with_its_arguments(run, tmp_path):
    script = tmp_path / "script.py"
    (tmp_path / "beside.py").write_text("here = 1\n")
    script.write_text(
        f"{SAYS}\nimport beside, pickle\nclass A: pass\n"
        "print(__file__, type(pickle.loads(pickle.dumps(A()))) is A, __spec__)\n"
    )
    out = run(script, "a", "-c", "b").splitlines()
    assert out == ["torch __main__ ['a', '-c', 'b']", f"{script} True None"]


def test_code_module_and_standard_input(run, tmp_path):
    assert run("-c", SAYS, "x") == "torch __main__ ['x']\n"
    assert run(text=SAYS) == "torch __main__ []\n"
    (tmp_path / "program.py").write_text(SAYS)
    assert run("-m", "program", "y", cwd=tmp_path) == "torch __main__ ['y']\n"


def test_exit_status_and_errors_are_the_programs(run):
    assert run("-c", "raise SystemExit(7)", check=False).returncode == 7
    done = run("-c", "1 / 0", check=False)
    assert done.returncode == 1 and done.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert run("--what", check=False).returncode == 2
    assert run("-m", check=False).returncode == 2


def test_interpreter_starts_no_slower_than_the_package(run, python):
    """Nothing but what `import flambeau` loads, and the alias itself."""
    names = "print(sorted(m for m in sys.modules if m.startswith('flambeau.')))"
    plain = set(eval(python("-c", f"import sys, flambeau; {names}")))
    alias = set(eval(run("-c", f"import sys, torch; {names}")))
    assert {m for m in alias - plain if "as_torch" not in m} <= {
        "flambeau._ir",
        "flambeau._ir.own",
        "flambeau._library",  # which `torch.ops` is
        "flambeau._library.operators",
        "flambeau.version",
    }


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_multiprocessing(run, tmp_path, method):
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import multiprocessing, sys, torch

            def work(queue, x):
                import importlib.metadata as m
                queue.put((torch.__version__ + "", m.version("torch"), (x + 1).tolist()))

            if __name__ == "__main__":
                context = multiprocessing.get_context({method!r})
                queue = context.Queue()
                child = context.Process(target=work, args=(queue, torch.ones(2)))
                child.start()
                print(queue.get())
                child.join()
            """
        )
    )
    version = "2.13.0+flambeau"
    assert run(script) == f"{(version, version, [2.0, 2.0])}\n"


@pytest.mark.parametrize("install", ["", "import flambeau.as_torch as a; a.install()\n"])
def test_spawned_children_of_an_installed_alias(run, python, tmp_path, install):
    """The child imports `torch` before anything of ours, in a function's module."""
    (tmp_path / "worker.py").write_text("import sys, torch\ndef work(x): return torch.__name__\n")
    script = tmp_path / "parent.py"
    script.write_text(
        f"{install}import multiprocessing, sys, worker\n"
        "if __name__ == '__main__':\n"
        "    print(multiprocessing.get_context('spawn').Pool(1).map(worker.work, [1]))\n"
    )
    out = python(script) if install else run(script)
    assert out == "['torch']\n"


def test_subprocesses_have_it(run, tmp_path):
    script = tmp_path / "child.py"
    script.write_text(SAYS)
    program = f"import subprocess, sys; subprocess.run([sys.executable, {str(script)!r}])"
    assert run("-c", program) == "torch __main__ []\n"
    assert run("-c", program, cwd=tmp_path) == "torch __main__ []\n"


def test_pytest_under_the_alias(run, tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import sys, torch\ndef test(): assert torch.add(torch.ones(1), 1).item() == 2\n"
    )
    assert "1 passed" in run("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=tmp_path)


def test_another_torch_is_refused_and_never_mixed(run, python, tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("real_torch = True\n")
    program = "import sys, torch, flambeau.as_torch as a; assert torch.real_torch; a.install()"
    done = python("-c", program, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert "ImportError: flambeau.as_torch: expected that torch is not imported yet" in done.stderr
    # Found first, though another one is installed.
    assert (
        run("-c", "import sys, torch; print(hasattr(torch, 'real_torch'))", cwd=tmp_path)
        == "False\n"
    )


def test_ipython_extension(python):
    program = "from flambeau import as_torch; as_torch.load_ipython_extension(None); import torch"
    assert python("-c", f"{program}; print(torch.__name__, as_torch.installed())") == "torch True\n"
    again = "import flambeau.as_torch as a; a.install(); import torch as t; a.install()"
    assert python("-c", f"{again}; import torch; print(torch is t)") == "True\n"


def test_modules_of_torch_run_as_programs(run):
    assert "Flambeau version: " in run("-m", "torch.utils.collect_env")


def test_the_record_is_one_text(run, python, tmp_path):
    """The file that children read says what `enable` writes; without it, the alias answers."""
    from flambeau.as_torch import _paths

    with open(_paths.RECORD, encoding="utf-8") as f:
        assert f.read() == _paths.METADATA
    asks = "import importlib.metadata as m; print(m.version('torch'), m.metadata('torch')['Name'])"
    lists = "print([d.version for d in m.distributions() if d.metadata['Name'] == 'torch'])"
    gone = "from flambeau.as_torch import _paths; _paths.RECORD = '/gone'; _paths.FOLDER = '/gone'"
    for before, install in (("", "a.install()"), (gone, "a.install()")):
        out = python("-c", f"import flambeau.as_torch as a; {before}\n{install}\n{asks}\n{lists}")
        assert out == f"{_paths.VERSION} torch\n['{_paths.VERSION}']\n"
