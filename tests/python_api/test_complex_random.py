"""Random complex numbers: both parts come from the stream of real ones."""

import pytest

import flambeau as fb


@pytest.mark.parametrize("dtype", [fb.complex64, fb.complex128])
def test_rand_draws_parts_in_turn(dtype):
    real = fb.float32 if dtype is fb.complex64 else fb.float64
    fb.manual_seed(5)
    parts = fb.rand(40, 2, dtype=real)
    fb.manual_seed(5)
    assert fb.equal(fb.view_as_real(fb.rand(40, dtype=dtype)), parts)


def test_uniform_keeps_to_its_range_and_to_the_view():
    whole = fb.zeros(6, 4, dtype=fb.complex128)
    part = whole[1::2].t().uniform_(2, 3)
    values = fb.view_as_real(part.contiguous())
    assert values.amin().item() >= 2 and values.amax().item() < 3
    assert fb.equal(whole[::2], fb.zeros(3, 4, dtype=fb.complex128))


def test_whole_numbers_are_refused():
    with pytest.raises(NotImplementedError, match="check_uniform_bounds.*Int"):
        fb.zeros(2, dtype=fb.int32).uniform_()


@pytest.mark.parametrize(
    "x",
    [
        fb.ones(6, 8)[::2, ::2].t(),
        fb.ones(5, 7, dtype=fb.float64).expand(2, 5, 7).transpose(0, 2),
        fb.ones(4, 3).t(),
        fb.ones(1, 2, 3, 3).to(memory_format=fb.channels_last)[:, :, ::2],
    ],
)
def test_dropout_draws_in_the_order_of_its_results_memory(x):
    fb.manual_seed(3)
    got = fb.nn.functional.dropout(x, 0.25)
    fb.manual_seed(3)
    mask = fb.empty_like(x).bernoulli_(0.75)
    assert got.stride() == mask.stride() and fb.equal(got != 0, mask != 0)
