"""Functions of nn::functional with options, and fractional pooling, are Python's to the bit."""

from __future__ import annotations

import flambeau as torch
from flambeau.nn import functional as F
from tests.cpp.conftest import program
from tests.cpp.test_modules import hexed

ERRORS = """\
fractional_max_pool2d requires specifying either an output_size or an output_ratio
fractional_max_pool2d: pool size 3 too large relative to input of size 9, output 8
output_ratio must be between 0 and 1 (got 1.5)
kernel_size must be greater than zero, but got 0
n is too large for result tensor type: 'int8'
RandomSampler: expected an index_dtype of integers, got float32
"""


def test_options_fractional_pooling_and_the_dtype_of_an_order(run_program):
    values, said = run_program(program("functional")).split("==\n")
    torch.manual_seed(3)
    image = torch.randn(2, 3, 9, 8, requires_grad=True)
    volume = torch.randn(2, 6, 7, 5)
    flat = torch.nn.FractionalMaxPool2d(3, output_size=4, return_indices=True)
    deep = torch.nn.FractionalMaxPool3d((2, 3, 2), output_ratio=(0.5, 0.4, 0.7))
    best, places = flat(image)
    best.pow(2).sum().backward()
    lines = [
        [best, places, image.grad, deep(volume)],
    ]
    x, samples = image.detach(), torch.rand(2, 3, 2)
    lines += [
        [F.fractional_max_pool2d(x, 2, (3, 5), _random_samples=samples)],
        [F.pad(x, (1, 2, 0, 1), value=1.5), F.pad(x, (1, 2, 0, 1), "circular"), F.pad(x, (1, 2))],
        [F.normalize(x, 3.0, -1), F.normalize(x, 3.0, -1), F.normalize(x)],
    ]
    grid = torch.rand(2, 4, 5, 2) * 2.4 - 1.2
    lines.append([F.grid_sample(x, grid, "nearest", "border", True)])
    wanted = [" ".join(map(hexed, line)) for line in lines]
    wanted[0] += f"{flat!r}"
    assert values.splitlines() == wanted
    torch.manual_seed(0)
    order = " ".join(map(str, torch.randperm(5).tolist()))
    assert said == f"{ERRORS}{order} \n"
