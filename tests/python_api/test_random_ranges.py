"""Whole numbers of wide ranges: the numbers that PyTorch 2.13 draws from a seed."""

import pytest

import flambeau as fb

DRAWN = {
    2**28 - 1: [218175346, 35325593, 88681732],
    2**28: [35325592, 117892739, 252666824],
    2**31: [303761048, 1460070019, 521102280],
    2**32 - 1: [2669420034, 2354058109, 1770528640],
}


@pytest.mark.parametrize("high", DRAWN)
def test_numbers_of_a_seed(high):
    generator = fb.Generator().manual_seed(3)
    assert fb.randint(0, high, (3,), generator=generator).tolist() == DRAWN[high]
    generator.manual_seed(3)
    shifted = fb.empty(3, dtype=fb.int64).random_(5, 5 + high, generator=generator)
    assert (shifted - 5).tolist() == DRAWN[high]
