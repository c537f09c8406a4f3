"""Values, layouts and memory of what native code gives, where they have been wrong once."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._compiler.emit_cpp import _canonical
from flambeau.ops.scalar import PRIMITIVES


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLAMBEAU_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def test_digits_of_constants_are_no_names():
    line = "x = b12[i0] + float(-0x1.b2dd2fp-2) + double(0x1.b2p-2);"
    assert _canonical([line])[0] == [line.replace("b12", "b0")]


def test_constants_keep_their_value():
    x = torch.rand(3, 4) * 4 - 2
    f = lambda x: torch.nn.functional.hardtanh(x, -0.431, 0.631)  # noqa: E731
    assert torch.equal(torch.compile(f)(x), f(x))


def test_division_of_whole_numbers_by_a_tensor():
    a, b = torch.tensor([7, -7, 5]), torch.tensor([2, 2, -3])
    f = torch.compile(lambda a, b: (a // b, a % b, torch.fmod(a, b)))
    got, want = f(a, b), (a // b, a % b, torch.fmod(a, b))
    assert all(torch.equal(x, y) for x, y in zip(got, want, strict=True))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        f(a, torch.tensor([1, 0, 1]))


def test_functions_of_the_extension():
    x = torch.rand(5) + 0.5
    f = lambda x: (x.lgamma() * 2, x.digamma(), torch.special.i0(x) + 1)  # noqa: E731
    for a, b in zip(torch.compile(f)(x), f(x), strict=True):
        assert torch.equal(a, b)
    assert PRIMITIVES["lgamma"].library and not PRIMITIVES["exp"].library


def test_numbers_made_of_sizes():
    f = lambda x: x * (x.shape[0] ** 0.5) - 0.25 * x.shape[1]  # noqa: E731
    g = torch.compile(f, dynamic=True)
    for shape in ((3, 4), (5, 7)):
        x = torch.rand(shape)
        assert torch.allclose(g(x), f(x), atol=1e-6)


def test_views_with_another_dtype():
    f = lambda x: torch.view_as_real(torch.complex(x, x.cos())) * 2  # noqa: E731
    x = torch.rand(3, 4)
    assert torch.allclose(torch.compile(f)(x), f(x), atol=1e-6)


def test_results_with_equal_values_have_memory_of_their_own():
    x = torch.rand(3)
    a, b, c = torch.compile(lambda x: (x.exp(), x.exp(), x.exp()[1:]))(x)
    a.zero_()
    assert torch.equal(b, x.exp()) and torch.equal(c, x.exp()[1:])


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_view_of_what_was_computed_keeps_its_strides(dynamic):
    def f(x):
        part = x.double().split(1, 1)[0]
        return part, part.sum(0) + 1

    x = torch.rand(7, 3)
    for a, b in zip(torch.compile(f, dynamic=dynamic)(x), f(x), strict=True):
        assert a.stride() == b.stride() and torch.equal(a, b)
