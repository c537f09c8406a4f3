"""The examples in the docstrings of the package run, and every public class has one."""

import doctest
import importlib
import pkgutil

import pytest

from flambeau import distributions as D

MODULES = sorted({m.name for m in pkgutil.iter_modules(D.__path__)})


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(f"flambeau.distributions.{name}")
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


@pytest.mark.parametrize("name", [n for n in D.__all__ if isinstance(getattr(D, n), type)])
def test_every_class_has_an_example(name):
    assert ">>>" in getattr(D, name).__doc__
