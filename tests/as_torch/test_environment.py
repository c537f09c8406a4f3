"""`enable`, `disable`, `status` in an environment of its own, with pip."""

import os
import pathlib
import subprocess
import sys

import numpy
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """(interpreter, its site-packages): this checkout and NumPy are on its path."""
    root = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", root], check=True, capture_output=True)
    python = root / "bin" / "python"
    site = next(root.glob("lib/python*/site-packages"))
    numpys = pathlib.Path(numpy.__file__).parents[1]
    (site / "paths.pth").write_text(f"{ROOT}\n{numpys}\n")
    return python, site


@pytest.fixture
def call(environment, tmp_path):
    def call(*arguments, check=True, text=None):
        clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        done = subprocess.run(
            [environment[0], *arguments], capture_output=True, text=True, cwd=tmp_path, env=clean,
            timeout=240, input=text,
        )  # fmt: skip
        if check:
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout
        return done

    yield call
    call("-m", "flambeau.as_torch", "disable")


def tree(folder):
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    }  # fmt: skip


def test_enable_and_disable_leave_no_trace(environment, call):
    _, site = environment
    before = tree(site)
    assert "no torch" in call("-m", "flambeau.as_torch", "status")
    for _ in range(2):  # twice does no harm
        assert "torch is Flambeau" in call("-m", "flambeau.as_torch", "enable")
    assert "torch is Flambeau" in call("-m", "flambeau.as_torch", "status")
    added = set(tree(site)) - set(before)
    record = next(n for n in os.listdir(site) if n.startswith("torch-"))
    names = ("METADATA", "INSTALLER", "RECORD", "top_level.txt")
    assert added == {"torch/__init__.py", *(f"{record}/{n}" for n in names)}
    says = "import sys, torch; print(torch.__name__, torch.ones(1).item(), torch.__version__)"
    assert call("-c", says) == "torch 1.0 2.13.0+flambeau\n"
    assert "no torch" in call("-m", "flambeau.as_torch", "disable")
    assert tree(site) == before and not (site / "torch").exists()
    call("-m", "flambeau.as_torch", "disable")


def test_pip_regards_it_as_installed(environment, call):
    _, site = environment
    call("-m", "flambeau.as_torch", "enable")
    pip = ("-m", "pip", "--disable-pip-version-check", "--no-input")
    assert "2.13.0+flambeau" in call(*pip, "show", "torch")
    again = ("install", "--no-index", "--dry-run")
    assert "already satisfied" in call(*pip, *again, "torch>=2,<3")
    assert call(*pip, *again, "torch>=3", check=False).returncode != 0
    listing = call(*pip, "show", "-f", "torch")
    assert "torch/__init__.py" in listing
    call(*pip, "uninstall", "-y", "torch")
    assert not (site / "torch" / "__init__.py").exists()
    assert not list(site.glob("torch-*"))
    assert call("-c", "import sys, torch", check=False).returncode == 1


def test_children_and_specs_of_an_enabled_environment(call, tmp_path):
    call("-m", "flambeau.as_torch", "enable")
    (tmp_path / "work.py").write_text(
        "import sys, torch, multiprocessing as m, subprocess\n"
        "def f(x): return torch.__name__ + str(torch.nn.Linear)\n"
        "if __name__ == '__main__':\n"
        "    for how in ('fork', 'spawn', 'forkserver'):\n"
        "        with m.get_context(how).Pool(1) as pool: print(pool.map(f, [1]))\n"
        "    subprocess.run([sys.executable, '-c', 'import sys, torch; print(torch.__name__)'])\n"
    )
    one = "['torch<class 'torch.nn.modules.linear.Linear'>']".replace("['", '["').replace(
        "']", '"]'
    )
    assert call("work.py").splitlines() == [one] * 3 + ["torch"]
    found = call(
        "-c",
        "import importlib.util as u, importlib.metadata as m\n"
        "print(m.version('torch'), u.find_spec('torch').name, u.find_spec('torch.nn').name)\n",
    )
    assert found == "2.13.0+flambeau torch torch.nn\n"


def test_another_torch_is_not_touched(environment, call):
    _, site = environment
    record = site / "torch-2.0.0.dist-info"
    for make in ("record", "package"):
        if make == "record":
            record.mkdir()
            (record / "INSTALLER").write_text("pip\n")
        else:
            (site / "torch").mkdir()
        try:
            done = call("-m", "flambeau.as_torch", "enable", check=False)
            assert done.returncode == 1
            assert "expected an environment without PyTorch" in done.stderr
            call("-m", "flambeau.as_torch", "disable")
            assert "PyTorch's own" in call("-m", "flambeau.as_torch", "status")
            assert record.exists() if make == "record" else (site / "torch").exists()
        finally:
            if make == "record":
                (record / "INSTALLER").unlink()
                record.rmdir()
            else:
                (site / "torch").rmdir()
