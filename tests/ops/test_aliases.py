"""Second names of entries do what the first ones do, in place too, and write where they say."""

import numpy as np
import pytest
from table_cases import TABLE, array, resolve

import flambeau as torch

ALIASES = sorted(
    {
        (op.name, str(alias))
        for op in TABLE
        for alias in op.option("aliases", ())
        if op.is_method and "." not in str(alias)
    }
)
INPLACE = [
    (name, alias)
    for name, alias in ALIASES
    if any(op.name == name and op.has_inplace for op in TABLE)
]


def arguments(name, dtype="float64"):
    op = next(op for op in TABLE if op.name == name)
    count = sum(p.type.base == "Tensor" and p.required for p in op.params)
    return [torch.from_numpy(array(op, (3, 4), dtype, i)) for i in range(max(count, 1))]


def extra(name):
    return {"min": -0.5, "max": 0.5} if name == "clamp" else {}


def test_there_are_aliases():
    assert ("abs", "absolute") in INPLACE and ("div", "divide") in INPLACE
    assert ("gt", "greater") in INPLACE and ("clamp", "clip") in INPLACE


@pytest.mark.parametrize(("name", "alias"), INPLACE)
def test_alias_writes_in_place(name, alias):
    x, *rest = arguments(name)
    want = getattr(x.clone(), name + "_")(*rest, **extra(name))
    version = x._version
    assert getattr(x, alias + "_")(*rest, **extra(name)) is x
    assert x._version > version
    np.testing.assert_array_equal(x.numpy(), want.numpy())


@pytest.mark.parametrize(("name", "alias"), INPLACE)
def test_alias_makes_a_new_tensor(name, alias):
    x, *rest = arguments(name)
    before = x.clone()
    want = getattr(x, name)(*rest, **extra(name))
    for got in (
        getattr(x, alias)(*rest, **extra(name)),
        resolve(alias)(x, *rest, **extra(name)),
    ):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got.numpy(), want.numpy())
    np.testing.assert_array_equal(x.numpy(), before.numpy())


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge", "greater", "less_equal"])
def test_comparison_in_place_keeps_the_dtype(name):
    x = torch.tensor([1.0, 2.0, 3.0])
    want = getattr(x, name)(2)
    assert getattr(x, name + "_")(2) is x
    assert x.dtype == torch.float32 and x.tolist() == want.float().tolist()


def test_division_by_its_other_names_rounds():
    x = torch.tensor([7.0, -7.0])
    assert torch.divide(x, 2, rounding_mode="floor").tolist() == [3.0, -4.0]
    assert x.divide_(2, rounding_mode="trunc").tolist() == [3.0, -3.0]
    assert x.true_divide_(2).tolist() == [1.5, -1.5]


@pytest.mark.parametrize("name", ["pow", "float_power", "xlogy", "special.zeta", "special.xlog1py"])
def test_numbers_alone_are_refused(name):
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        resolve(name)(2, 3)
    assert resolve(name)(2.0, torch.tensor([3.0])).shape == (1,)
    assert resolve(name)(torch.tensor([2.0]), 3.0).shape == (1,)
