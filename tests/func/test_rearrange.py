"""`func.rearrange` beside transposes and reshapes of NumPy."""

import numpy as np
import pytest

import flambeau as torch

X = np.arange(2 * 3 * 4 * 6).reshape(2, 3, 4, 6)

CASES = [
    ("b h w c -> b h w c", {}, X),
    ("b h w c -> h (b w) c", {}, X.transpose(1, 0, 2, 3).reshape(3, 8, 6)),
    ("b h w c -> b (c h w)", {}, X.transpose(0, 3, 1, 2).reshape(2, 72)),
    (
        "b h (w1 w) (c1 c) -> (b w1 c1) h w c",
        {"w1": 2, "c1": 3},
        X.reshape(2, 3, 2, 2, 3, 2).transpose(0, 2, 4, 1, 3, 5).reshape(12, 3, 2, 2),
    ),
    ("... c -> c ...", {}, X.transpose(3, 0, 1, 2)),
    ("b ... -> (...) b", {}, X.transpose(1, 2, 3, 0).reshape(72, 2)),
    ("b ... c -> b (... c)", {}, X.reshape(2, 72)),
    ("... a b -> ... b a", {}, X.transpose(0, 1, 3, 2)),
    ("b h w c -> b 1 h w 1 c", {}, X[:, None, :, :, None]),
    ("(b1 b2) h w c -> b1 b2 h w c", {"b2": 2}, X[None]),
]


@pytest.mark.parametrize(("pattern", "lengths", "expected"), CASES)
def test_patterns(pattern, lengths, expected):
    made = torch.func.rearrange(torch.from_numpy(X), pattern, **lengths)
    assert made.shape == expected.shape
    assert np.array_equal(made.numpy(), expected)


def test_several_tensors_and_views():
    x = torch.from_numpy(X)
    stacked = torch.func.rearrange([x[0], x[1]], "b h w c -> (b h) w c")
    assert np.array_equal(stacked.numpy(), X.reshape(6, 4, 6))
    assert torch.func.rearrange(x, "a b c d -> d c b a").data_ptr() == x.data_ptr()
    assert torch.func.rearrange(torch.ones(3, 1, 4), "a 1 b -> a b").shape == (3, 4)


@pytest.mark.parametrize(
    ("pattern", "lengths", "said"),
    [
        ("a b c d", {}, "expected one '->'"),
        ("a b -> a", {}, "expected 2 dims, got shape"),
        ("a b c d -> a b c", {}, "once on both sides, got d"),
        ("a b c d -> a b c a", {}, "a twice on one side"),
        ("(a b c d -> a b c d", {}, "has no other"),
        ("(a b) c d e -> a b c d e", {}, "all but one of a, b"),
        ("(a b) c d e -> a b c d e", {"a": 7}, "no multiple of 7"),
        ("a b c d -> a b c d", {"a": 3}, "expected a dim of 3, got 2"),
        ("a b c d -> a b c d", {"z": 2}, "got z"),
        ("a b c 2 -> a b c", {}, "expected a name or 1, got 2"),
        ("a b c d - e -> a", {}, "expected a name"),
    ],
)
def test_refusals(pattern, lengths, said):
    with pytest.raises(ValueError, match="rearrange: .*" + said.replace("'->'", ".->.")):
        torch.func.rearrange(torch.from_numpy(X), pattern, **lengths)
