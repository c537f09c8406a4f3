"""What follows from the declared fields of a module: signature, printed form, order of set-up."""

import copy
import inspect
import pickle
import typing

import pytest

import flambeau as fb
from flambeau import nn


def names_and_defaults(cls):
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    return [(p.name, p.default) for p in parameters]


def test_signature_is_in_the_order_of_the_fields():
    empty = inspect.Parameter.empty
    assert names_and_defaults(nn.Linear) == [
        ("in_features", empty),
        ("out_features", empty),
        ("bias", True),
        ("device", None),
        ("dtype", None),
    ]
    assert names_and_defaults(nn.PairwiseDistance) == [
        ("p", 2.0),
        ("eps", 1e-6),
        ("keepdim", False),
    ]
    assert names_and_defaults(nn.Dropout2d) == [("p", 0.5), ("inplace", False)]
    assert typing.get_type_hints(nn.Linear)["in_features"] is int


def test_fields_are_no_class_attributes():
    assert not hasattr(nn.Dropout, "p") and not hasattr(nn.Linear, "bias")
    assert nn.Linear.__constants__ == ["in_features", "out_features"]


def test_attributes_and_printing_follow_changes():
    layer = nn.Dropout(0.25)
    layer.p = 0.1
    assert repr(layer) == "Dropout(p=0.1, inplace=False)"
    assert repr(nn.Linear(2, 3, bias=False)) == "Linear(in_features=2, out_features=3, bias=False)"
    assert repr(nn.PairwiseDistance()) == "PairwiseDistance()"
    assert nn.PairwiseDistance(p=1.0).norm == 1.0


def test_a_subclass_with_its_own_init_and_reset():
    class Ones(nn.Linear):
        def __init__(self, n):
            self.called = 0
            super().__init__(n, n, bias=False, dtype=fb.float64)

        def reset_parameters(self):
            self.__dict__["called"] += 1
            nn.init.ones_(self.weight)

    layer = Ones(2)
    assert layer.called == 1 and layer.weight.dtype == fb.float64
    assert layer(fb.ones(2, dtype=fb.float64)).tolist() == [2.0, 2.0]
    assert isinstance(layer, nn.Linear) and list(dict(layer.named_parameters())) == ["weight"]


def test_copies_and_pickles():
    layer = nn.Bilinear(2, 3, 4)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert repr(other) == repr(layer)
        assert all(map(fb.equal, other.parameters(), layer.parameters()))


def test_refusals_come_before_the_parameters_and_show_their_source():
    with pytest.raises(ValueError, match="in1_features must be > 0, but got 0"):
        nn.Bilinear(0, 1, 1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'wrong'"):
        nn.Linear(1, 2, wrong=3)
    assert "self.in_features = in_features" in inspect.getsource(nn.Linear.__init__)


def test_linear_draws_what_its_formula_says():
    fb.manual_seed(3)
    layer = nn.Linear(4, 2)
    fb.manual_seed(3)
    assert fb.equal(layer.weight, fb.empty(2, 4).uniform_(-0.5, 0.5))
    assert fb.equal(layer.bias, fb.empty(2).uniform_(-0.5, 0.5))
