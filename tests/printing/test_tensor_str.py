"""repr of tensors against texts captured from PyTorch, options, subclasses, neutrality."""

import doctest
import math
import pathlib

import pytest

import flambeau as fb
from flambeau import _tensor_str as ts


def captured():
    """(expression, options, expected) from cases.txt: blocks that start with >>>."""
    text = (pathlib.Path(__file__).parent / "cases.txt").read_text()
    for block in text.split("\n>>> ")[1:]:
        head, _, expected = block.partition("\n")
        expression, _, options = head.partition("  # ")
        yield pytest.param(expression, options, expected.rstrip("\n"), id=head)


@pytest.fixture(autouse=True)
def restored_options():
    before = ts.get_printoptions()
    yield
    ts.set_printoptions(**before)


def shown(tensor):
    """The text, with dtypes spelt as in the captured file whatever this library calls itself."""
    return ts._str(tensor).replace(f"dtype={fb.float32}"[:-7], "dtype=torch.")


@pytest.mark.parametrize(("expression", "options", "expected"), list(captured()))
def test_captured(expression, options, expected):
    names = {"fb": fb, "nan": math.nan, "inf": math.inf}
    with ts.printoptions(**eval(f"dict({options})")):
        assert shown(eval(expression, names)) == expected


def test_repr_and_str_are_this_text():
    tensor = fb.arange(3)
    assert repr(tensor) == str(tensor) == ts._str(tensor)
    assert f"{fb.tensor(2.5):.2f}" == "2.50"


def test_options():
    assert ts.get_printoptions() == {
        "precision": 4,
        "threshold": 1000,
        "edgeitems": 3,
        "linewidth": 80,
        "sci_mode": None,
    }
    ts.set_printoptions(precision=7, sci_mode=True)
    ts.set_printoptions(edgeitems=1)
    assert ts.get_printoptions()["precision"] == 7 and ts.get_printoptions()["sci_mode"] is None
    ts.set_printoptions(profile="short", linewidth=10)
    assert ts.get_printoptions()["edgeitems"] == 2 and ts.get_printoptions()["linewidth"] == 10
    ts.set_printoptions(profile="full")
    assert ts.get_printoptions()["threshold"] == math.inf
    with pytest.raises(ZeroDivisionError), ts.printoptions(precision=1):
        raise ZeroDivisionError
    assert ts.get_printoptions()["precision"] == 4


def test_subclasses_show_their_name():
    class Marked(fb.Tensor):
        pass

    class Weight(fb.nn.Parameter):
        pass

    assert ts._str(fb.Tensor._make_subclass(Marked, fb.ones(1), False)) == "Marked([1.])"
    weight = fb.Tensor._make_subclass(Weight, fb.ones(1), True)
    assert ts._str(weight) == "Parameter(Weight([1.], requires_grad=True))"


def test_contents_can_be_replaced():
    assert ts._str(fb.ones(2, dtype=fb.int32), tensor_contents="<2>").startswith("tensor(<2>, dty")


def test_printing_leaves_no_trace():
    leaf = fb.ones(1200, requires_grad=True)
    result = leaf * 2
    version = result._version
    text = ts._str(result)
    assert "..." in text and "grad_fn=<MulBackward0>" in text
    assert result._version == version and leaf.grad is None and fb.is_grad_enabled()


def test_default_dtype_is_not_shown():
    before = fb.get_default_dtype()
    try:
        fb.set_default_dtype(fb.float64)
        assert ts._str(fb.ones(1, dtype=fb.float64)) == "tensor([1.])"
        assert ts._str(fb.ones(1, dtype=fb.complex128)) == "tensor([1.+0.j])"
        assert shown(fb.ones(1, dtype=fb.float32)) == "tensor([1.], dtype=torch.float32)"
    finally:
        fb.set_default_dtype(before)


def test_docstring_examples():
    assert doctest.testmod(ts, extraglobs={"set_printoptions": fb.set_printoptions}).failed == 0


def test_options_are_whole_numbers():
    x = fb.tensor([1.23456, 2.0])
    for two in (2, 2.0, fb.tensor(2), "2"):
        ts.set_printoptions(precision=two)
        assert repr(x) == "tensor([1.23, 2.00])"
    ts.set_printoptions(profile="default", linewidth=40.0, edgeitems=1.0, threshold=1.0)
    assert repr(fb.arange(9)) == "tensor([0,  ..., 8])"
    before = ts.get_printoptions()
    for name in ("precision", "edgeitems", "linewidth"):
        for bad in (2.5, -1, "two", [2]):
            with pytest.raises(ValueError, match=f"set_printoptions: {name} is a whole number"):
                ts.set_printoptions(**{name: bad})
    assert ts.get_printoptions() == before
