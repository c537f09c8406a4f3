"""Packages whose C++ is built here: their own setup.py under this library's headers, then checks.

    python -m tools.clients.extensions [NAMES]

Each line of `extensions.txt` is a source package, built unmodified by `pip install` without
isolation; `scripts/clients.sh extensions` has made the environment, in which `torch` is this
library. What a package computes is held to NumPy, its gradients to differences. A function below
has the name of its package; a package without one is an error. Exits with 1 if one fails.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

LIST = Path(__file__).with_name("extensions.txt")
CHECKS: dict[str, Callable[[Any], None]] = {}


def check(function: Callable[[Any], None]) -> Callable[[Any], None]:
    """Registers the checks of the package of that name."""
    CHECKS[function.__name__] = function
    return function


def close(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(got.detach().numpy(), wanted, rtol=1e-12, atol=1e-12)


def drawn(torch: Any, *sizes: int) -> Any:
    return torch.randn(*sizes, dtype=torch.float64, requires_grad=True)


@check
def torch_discounted_cumsum(torch: Any) -> None:
    from torch_discounted_cumsum import discounted_cumsum_left, discounted_cumsum_right

    # A rate for each row: for one rate this version reads behind its only element.
    x, rates = drawn(torch, 3, 50), torch.tensor([0.5, 0.9, 0.99], dtype=torch.float64)
    rates.requires_grad_()
    rows, by = x.detach().numpy(), rates.detach().numpy()
    left, right = rows.copy(), rows.copy()
    for i in range(1, 50):
        left[:, i] += by * left[:, i - 1]
        right[:, 49 - i] += by * right[:, 50 - i]
    close(discounted_cumsum_left(x, rates), left)
    close(discounted_cumsum_right(x, rates), right)
    for function in (discounted_cumsum_left, discounted_cumsum_right):
        assert torch.autograd.gradcheck(function, (x, rates))


@check
def torchlpc(torch: Any) -> None:
    from torchlpc import sample_wise_lpc

    x, a = drawn(torch, 2, 20), (drawn(torch, 2, 20, 3) * 0.2).detach().requires_grad_()
    signal, filters = x.detach().numpy(), a.detach().numpy()
    wanted = np.zeros((2, 23))
    for t in range(20):
        past = wanted[:, t : t + 3][:, ::-1]
        wanted[:, t + 3] = signal[:, t] - (filters[:, t] * past).sum(1)
    close(sample_wise_lpc(x, a), wanted[:, 3:])
    assert torch.autograd.gradcheck(sample_wise_lpc, (x, a))


@check
def torchsort(torch: Any) -> None:
    from torchsort import soft_rank, soft_sort

    x = drawn(torch, 3, 8)
    values = x.detach().numpy()
    for kind in ("l2", "kl"):
        hard = soft_rank(x, regularization=kind, regularization_strength=1e-4)
        np.testing.assert_allclose(
            hard.detach().numpy(), values.argsort(1).argsort(1) + 1, atol=1e-6
        )
    # A projection onto the hull of the permutations keeps the sum.
    close(soft_sort(x, regularization_strength=0.5).sum(1), values.sum(1))
    close(soft_rank(x, regularization_strength=0.5).sum(1), [36.0] * 3)
    for function in (soft_rank, soft_sort):
        assert torch.autograd.gradcheck(function, x)


@check
def torch_scatter(torch: Any) -> None:
    from torch_scatter import gather_csr, scatter, scatter_softmax, segment_csr

    x = drawn(torch, 4, 12)
    places = torch.tensor([0, 3, 1, 1, 0, 3, 4, 4, 1, 0, 3, 3])
    rows, at = x.detach().numpy(), places.numpy()
    reducers = {"sum": np.sum, "mean": np.mean, "mul": np.prod, "max": np.max, "min": np.min}
    for name, reducer in reducers.items():
        wanted = np.full((4, 5), 1.0 if name == "mul" else 0.0)
        for i in set(at.tolist()):
            wanted[:, i] = reducer(rows[:, at == i], axis=1)
        close(scatter(x, places, -1, reduce=name), wanted)
        assert torch.autograd.gradcheck(lambda t, n=name: scatter(t, places, -1, reduce=n), x)
    ends = torch.tensor([0, 2, 2, 5, 12])
    for name in ("sum", "mean", "max", "min"):
        wanted = np.zeros((4, 4))
        for i, (a, b) in enumerate([(0, 2), (2, 2), (2, 5), (5, 12)]):
            wanted[:, i] = reducers[name](rows[:, a:b], axis=1) if b > a else 0
        every = ends.expand(4, -1)
        close(segment_csr(x, every, reduce=name), wanted)
        assert torch.autograd.gradcheck(lambda t, n=name, e=every: segment_csr(t, e, reduce=n), x)
    close(gather_csr(x[:, :4], ends.expand(4, -1)), rows[:, [0, 0, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3]])
    soft = np.exp(rows)
    for i in set(at.tolist()):
        soft[:, at == i] /= soft[:, at == i].sum(1, keepdims=True)
    close(scatter_softmax(x, places, -1), soft)


@check
def torch_spline_conv(torch: Any) -> None:
    from torch_spline_conv import spline_basis, spline_conv, spline_weighting

    pseudo = torch.rand(6, 2, dtype=torch.float64)
    sizes, opened = torch.tensor([3, 4]), torch.tensor([1, 1], dtype=torch.uint8)
    basis, index = spline_basis(pseudo, sizes, opened, 1)
    v = pseudo.numpy() * (np.array([3, 4]) - 1)
    low, part = np.floor(v).astype(int), v - np.floor(v)
    for s in range(4):
        step = np.array([s & 1, s >> 1])
        close(basis[:, s], np.where(step == 1, part, 1 - part).prod(1))
        cell = (low + step) % np.array([3, 4])
        assert index[:, s].tolist() == (cell[:, 0] + 3 * cell[:, 1]).tolist()
    x, weight = drawn(torch, 6, 3), drawn(torch, 12, 3, 2)
    wanted = np.einsum(
        "es,ei,esio->eo", basis.numpy(), x.detach().numpy(), weight.detach().numpy()[index.numpy()]
    )
    close(spline_weighting(x, weight, basis, index), wanted)
    assert torch.autograd.gradcheck(lambda a, w: spline_weighting(a, w, basis, index), (x, weight))
    # Row i sums over its edges what their other ends send, divided by how many there are.
    edges = np.array([[1, 1, 0, 5, 5, 5], [0, 1, 2, 3, 4, 5]])
    sent = np.einsum(
        "es,ei,esio->eo",
        basis.numpy(), x.detach().numpy()[edges[1]], weight.detach().numpy()[index.numpy()],
    )  # fmt: skip
    summed = np.zeros((6, 2))
    np.add.at(summed, edges[0], sent)
    count = np.bincount(edges[0], minlength=6).clip(1)[:, None]
    out = spline_conv(x, torch.from_numpy(edges), pseudo, weight, sizes, opened, 1, True)
    close(out, summed / count)


@check
def torch_cluster(torch: Any) -> None:
    from torch_cluster import fps, grid_cluster, knn, nearest, radius

    points, others = torch.rand(40, 3), torch.rand(15, 3)
    far = np.linalg.norm(others.numpy()[:, None] - points.numpy()[None], axis=2)
    row, column = knn(points, others, 4)
    order = far.argsort(1)[:, :4]
    assert [set(column[row == i].tolist()) for i in range(15)] == [set(o.tolist()) for o in order]
    row, column = radius(points, others, 0.4, max_num_neighbors=40)
    near = [set(np.flatnonzero(far[i] < 0.4).tolist()) for i in range(15)]
    assert [set(column[row == i].tolist()) for i in range(15)] == near
    assert nearest(others, points).tolist() == far.argmin(1).tolist()
    chosen = fps(points, ratio=0.25, random_start=False).tolist()
    wanted, all_points = [0], points.numpy()
    while len(wanted) < 10:
        gaps = np.linalg.norm(all_points[:, None] - all_points[wanted][None], axis=2).min(1)
        wanted.append(int(gaps.argmax()))
    assert chosen == wanted
    cells = grid_cluster(points[:, :2], torch.tensor([0.25, 0.25]))
    corner = np.floor((points[:, :2] - points[:, :2].min(0).values).numpy() / 0.25).astype(int)
    same = (corner[:, None] == corner[None]).all(2)
    assert ((cells[:, None] == cells[None]).numpy() == same).all()


def wanted_packages() -> list[tuple[str, str]]:
    """(name, version) of each line."""
    lines = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    return [(name, version) for name, _, version in (line.partition("==") for line in lines)]


def install(name: str, version: str) -> None:
    """Builds the package from its source, unless this version is there."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as version_of

    try:
        if version_of(name) == version:
            return
    except PackageNotFoundError:
        pass
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-build-isolation", "--no-binary", name, f"{name}=={version}"]
    subprocess.run(command, check=True)


def main(names: list[str]) -> int:
    """Builds and checks the packages that are named, or all."""
    import torch

    failed = 0
    for name, version in wanted_packages():
        if names and name not in names:
            continue
        began = time.monotonic()
        try:
            install(name, version)
            torch.manual_seed(0)
            CHECKS[name](torch)
            said = "equal"
        except Exception as e:  # of any package: the next one is tried
            failed += 1
            said = f"{type(e).__name__}: {str(e)[:500]}"
        print(f"{name} {version} {time.monotonic() - began:.1f} s: {said}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
