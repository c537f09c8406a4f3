"""Boxed calls from C++: values of 16 bytes, descriptors with types, in-place forms by name."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

import flambeau
from flambeau import _C

#: prints a line for each thing that is not as it should be
PROGRAM = r"""
#include <cstdio>

#include "core/error.h"
#include "dispatch/boxing.h"
#include "gen/ops.h"

using namespace flambeau;

#define CHECK(...) if (!(__VA_ARGS__)) std::printf("line %d: %s\n", __LINE__, #__VA_ARGS__)

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

static void values() {
  static_assert(sizeof(Value) == 16);
  Value ints(Ints{1, 2, 3}), shared = ints;
  shared.get<Ints>()[0] = 7;  // who writes gets a box of its own
  CHECK(ints.get<Ints>() == Ints{1, 2, 3} && shared.get<Ints>() == Ints{7, 2, 3});
  const Value moved = std::move(shared);
  CHECK(shared.is_none() && moved.get<Ints>() == Ints{7, 2, 3});
  const Ints* before = moved.get_if<Ints>();
  Value another = moved;
  CHECK(std::as_const(another).get_if<Ints>() == before);  // who reads shares
  another = another;
  CHECK(another.get<Ints>() == Ints{7, 2, 3});

  for (Scalar x : {Scalar(true), Scalar(-3), Scalar(UINT64_MAX), Scalar(2.5),
                   Scalar(complex128(1, 2))}) {
    Scalar back = Value(x).number();
    CHECK(back.kind() == x.kind() && back.to_complex() == x.to_complex());
  }
  CHECK(Value(std::string("a")).get<std::string>() == "a");
  CHECK(Value(std::vector<bool>{true, false}).get<std::vector<bool>>().size() == 2);
  CHECK(Value(Tensors(2)).get<Tensors>().size() == 2 && !Value(Tensor()).get<Tensor>().defined());
  CHECK(error_of([] { Value(2.5).get<int64_t>(); }) ==
        "expected a value of type int, got one of type float");
  CHECK(error_of([] { Value().number(); }) == "expected a number, got a value of type None");
  using Maybe = std::optional<int64_t>;
  CHECK(!unbox<Maybe>(Value()) && unbox<Maybe>(Value(int64_t{3})) == 3);

  Tensor x = ops::ones(Ints{4});
  {
    Values many(5, Value(x));
    many.insert(many.begin(), Value(Tensors{x, x}));
    CHECK(x->use_count() == 8);
  }
  CHECK(x->use_count() == 1);
}

static void calls() {
  const OpDesc& add = *find_op("add");
  CHECK(add.kind == OpKind::Pointwise && add.returns.size() == 1 && add.params.size() == 3);
  CHECK(add.params[1].type.base == TypeBase::Tensor && add.params[1].type.or_number);
  CHECK(add.params[2].type.base == TypeBase::Number && add.params[2].kwonly);
  Tensor x = ops::ones(Ints{4});
  Value a(x), b(ops::full(Ints{4}, 2)), alpha(int64_t{3}), result;
  const Value* args[] = {&a, &b, &alpha};
  add.call(add, args, &result);
  CHECK(ops::select(result.get<Tensor>(), 0, 3).item().to_double() == 7);
  CHECK(ops::select(x, 0, 3).item().to_double() == 1);

  Callee in_place = find_callee("add_");
  CHECK(in_place.op == &add && find_op("add_") == nullptr && !find_callee("ad_").op);
  in_place.call(add, args, &result);
  CHECK(result.get<Tensor>().is_same(x) && ops::select(x, 0, 3).item().to_double() == 7);

  CHECK(error_of([&] { call_op(add, {a, b}); }) == "add: expected 3 arguments, got 2");
  CHECK(error_of([&] { call_op(add, {a, b, std::string("x")}); }) ==
        "expected a number, got a value of type str");
  Values topk = call_op(*find_op("topk"), {a, int64_t{2}, int64_t{-1}, true, true});
  CHECK(topk.size() == 2 && topk[1].get<Tensor>().dtype() == DType::Int64);
}

int main() {
  values();
  calls();
  size_t in_place = 0;
  for (const OpDesc* op : all_ops()) {
    CHECK(find_op(op->uid) == op && (op->inplace == nullptr) == (op->inplace_uid == nullptr));
    if (!op->inplace) continue;
    ++in_place;
    CHECK(find_callee(op->inplace_uid).op == op && op->returns[0].base == TypeBase::Tensor);
  }
  CHECK(in_place > 100);
}
"""


def test_values_and_descriptors(compile_program):
    done = subprocess.run([compile_program(PROGRAM)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_in_place_forms_are_called_by_name():
    x, y = flambeau.arange(4.0), flambeau.ones(4)
    (out,) = _C._call_entry("add_", (x, y, 2))
    assert out is x
    np.testing.assert_array_equal(x.numpy(), [2, 3, 4, 5])
    leaf = flambeau.ones(4, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        _C._call_entry("add_", (leaf, y, 1))
    with pytest.raises(ValueError, match="no entry ad_"):
        _C._call_entry("ad_", (x, y, 1))
    with pytest.raises(ValueError, match="no entry 3"):
        _C._call_entry("3", (x,))
