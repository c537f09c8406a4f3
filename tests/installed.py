"""What an installed package must do, run by scripts/wheel.sh in an empty environment.

A script, not tests: nothing but the package and what it requires is there. Prints one line.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time

import numpy as np


def imports() -> float:
    """Seconds of an import in a fresh process, NumPy's apart; the package lies where it belongs."""
    import flambeau

    home = pathlib.Path(flambeau.__file__).resolve()
    assert home.is_relative_to(pathlib.Path(sysconfig.get_paths()["platlib"]).resolve()), home
    assert (home.parent / "py.typed").is_file() and (home.parent / "__init__.pyi").is_file()
    assert len(list(home.parent.glob("_C*.so"))) == 1, list(home.parent.glob("_C*.so"))
    code = (
        "import time, numpy; t = time.perf_counter(); import flambeau, sys;"
        "print(time.perf_counter() - t); assert 'scipy_openblas32' not in sys.modules"
    )
    out = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, check=True)
    return float(out.stdout)


def training() -> None:
    """A compiled net learns as the same net does eagerly; its state survives saving and loading."""
    import flambeau as torch
    from flambeau import nn

    def train(compiled: bool) -> tuple[list[float], nn.Module]:
        torch.manual_seed(0)
        net = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 3)
        )
        step = torch.optim.Adam(net.parameters(), lr=0.01)
        run = torch.compile(net) if compiled else net
        x, y, losses = torch.randn(24, 1, 8, 8), torch.arange(24) % 3, []
        for _ in range(10):
            step.zero_grad()
            loss = nn.functional.cross_entropy(run(x), y)
            loss.backward()
            step.step()
            losses.append(loss.item())
        return losses, net

    eager, net = train(False)
    compiled, _ = train(True)
    assert eager[-1] < 0.5 * eager[0]
    np.testing.assert_allclose(eager, compiled, rtol=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        torch.save(net.state_dict(), os.path.join(folder, "net.pt"))
        state = torch.load(os.path.join(folder, "net.pt"))
    assert all(torch.equal(value, net.state_dict()[name]) for name, value in state.items())


def libraries() -> None:
    """LAPACK comes from the OpenBLAS wheel, convolutions from oneDNN, threads from one OpenMP."""
    import flambeau as torch

    text = torch.__config__.show()
    package = pathlib.Path(torch.__file__).resolve().parent
    assert "libscipy_openblas" in text, text
    assert ("oneDNN: yes" in text) == (package / "lib" / "_onednn.so").is_file(), text
    a = np.random.default_rng(0).standard_normal((64, 64))
    inverse = torch.linalg.inv(torch.from_numpy(a)).numpy()
    np.testing.assert_allclose(inverse @ a, np.eye(64), atol=1e-9)
    x, w = torch.randn(2, 16, 20, 20), torch.randn(16, 16, 3, 3)
    y = torch.nn.functional.conv2d(x, w)
    want = np.einsum(
        "nchwij,ocij->nohw",
        np.lib.stride_tricks.sliding_window_view(x.numpy(), (3, 3), axis=(2, 3)),
        w.numpy(),
    )
    np.testing.assert_allclose(y.numpy(), want, atol=1e-3)
    loaded = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
    openmp = {name for name in loaded if "libgomp" in name}
    assert len(openmp) == 1, openmp
    if (package / "_libs").is_dir():  # a wheel that carries its libraries uses them
        for stem in ("libgomp", "libdnnl"):
            assert any(name.startswith(str(package / "_libs" / stem)) for name in loaded), loaded
        for library in (package / "_libs").glob("*.so*"):
            if library.suffix != ".txt":
                assert library.with_name(library.name + ".licence.txt").stat().st_size > 500


def without_a_compiler() -> None:
    """Compiling says what is missing."""
    code = "import flambeau as t; t.compile(lambda x: x.sin() + 1)(t.ones(3))"
    with tempfile.TemporaryDirectory() as empty:
        env = {"PATH": empty, "FLAMBEAU_CACHE": empty, "HOME": empty}
        out = subprocess.run(
            [sys.executable, "-P", "-c", code], capture_output=True, text=True, env=env
        )
    assert out.returncode and "expected a C++ compiler" in out.stderr, out.stderr


def program_in_cpp() -> None:
    """CMake, or the compiler alone, builds a program that trains; it needs no Python."""
    import flambeau as torch

    gxx = shutil.which("g++")
    if gxx is None:
        return
    package = pathlib.Path(torch.__file__).resolve().parent
    source = """
    #include <torch/torch.h>
    int main() {
      torch::manual_seed(0);
      torch::nn::Sequential net(torch::nn::Conv2d(1, 2, 3), torch::nn::Flatten(),
                                torch::nn::Linear(32, 1));
      torch::optim::SGD step(net->parameters(), 0.01);
      auto x = torch::randn({4, 1, 6, 6}), y = torch::randn({4, 1});
      double first = 0, last = 0;
      for (int i = 0; i < 20; ++i) {
        step.zero_grad();
        auto loss = torch::mse_loss(net->forward(x), y);
        loss.backward();
        step.step();
        last = loss.item<double>();
        if (!i) first = last;
      }
      std::cout << (last < first / 2) << torch::linalg::inv(torch::eye(2)).sum().item<double>();
    }
    """
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        (here / "first.cpp").write_text(source)
        (here / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.18)\nproject(first CXX)\n"
            "find_package(Torch REQUIRED)\nadd_executable(first first.cpp)\n"
            'target_link_libraries(first "${TORCH_LIBRARIES}")\n'
        )
        prefix = f"-DCMAKE_PREFIX_PATH={torch.utils.cmake_prefix_path}"
        flags = [f"-I{package / 'include'}", f"-L{package / 'lib'}", "-lflambeau"]
        plain = [gxx, "-std=c++20", "first.cpp", "-o", "first", *flags]
        ways = [[[*plain, f"-Wl,-rpath,{package / 'lib'}"]]]
        if shutil.which("cmake"):
            ways.append([["cmake", "-S", ".", "-B", ".", prefix], ["cmake", "--build", "."]])
        for way in ways:
            for command in way:
                done = subprocess.run(command, cwd=here, capture_output=True, text=True)
                assert done.returncode == 0, done.stdout + done.stderr
            out = subprocess.run([here / "first"], capture_output=True, text=True)
            assert (out.stdout, out.stderr) == ("12", ""), out
            needed = subprocess.run(["ldd", here / "first"], capture_output=True, text=True)
            assert "libpython" not in needed.stdout, needed.stdout
            (here / "first").unlink()


def main() -> None:
    """Run all, then tell two figures to hold beside those of the build in place."""
    seconds = imports()
    training()
    libraries()
    without_a_compiler()
    program_in_cpp()
    import flambeau as torch

    a = torch.randn(512, 512, dtype=torch.float64)
    torch.linalg.svd(a)
    start = time.perf_counter()
    torch.linalg.svd(a)
    svd = time.perf_counter() - start
    print(f"installed package: works; import {seconds * 1e3:.0f} ms, svd(512) {svd * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
