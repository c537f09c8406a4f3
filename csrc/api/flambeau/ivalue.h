// IValue: a value of any kind, as AutogradContext::saved_data and scripts hold them.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "dispatch/value.h"

namespace flambeau {

class IValue;
// What IValue::toTuple gives: toTuple()->elements()[0].
class IValueTuple {
 public:
  const std::vector<IValue>& elements() const noexcept { return elements_; }

 private:
  friend class IValue;
  std::vector<IValue> elements_;
};

class IValue : public Value {
 public:
  using Value::Value;
  IValue() = default;
  IValue(const Value& x) : Value(x) {}
  IValue(std::nullopt_t) {}
  IValue(const char* text) : Value(std::string(text)) {}
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, int64_t>)
      IValue(T x)
      : Value(static_cast<int64_t>(x)) {}
  IValue(float x) : Value(static_cast<double>(x)) {}
  IValue(IntArrayRef xs) : Value(xs.ints()) {}
  IValue(const std::vector<int64_t>& xs) : Value(Ints(xs)) {}
  template <class T>
  IValue(const std::optional<T>& x) : IValue(x ? IValue(*x) : IValue()) {}

  bool isNone() const { return is_none(); }
  bool isTensor() const { return is<Tensor>(); }
  bool isInt() const { return is<int64_t>(); }
  bool isDouble() const { return is<double>(); }
  bool isBool() const { return is<bool>(); }
  bool isString() const { return is<std::string>(); }
  bool isIntList() const { return is<Ints>(); }
  bool isDoubleList() const { return is<std::vector<double>>(); }
  bool isBoolList() const { return is<std::vector<bool>>(); }
  bool isTensorList() const { return is<Tensors>(); }
  bool isDevice() const { return is<Device>(); }
  bool isComplexDouble() const { return is<complex128>(); }
  bool isScalar() const { return isInt() || isDouble() || isBool() || isComplexDouble(); }

  // Error(Runtime) that names both kinds where the value is of another.
  const Tensor& toTensor() const { return get<Tensor>(); }
  int64_t toInt() const { return get<int64_t>(); }
  double toDouble() const { return get<double>(); }
  bool toBool() const { return get<bool>(); }
  const std::string& toStringRef() const { return get<std::string>(); }
  std::string toStr() const { return get<std::string>(); }
  std::vector<int64_t> toIntVector() const { return get<Ints>().vec(); }
  std::vector<int64_t> toIntList() const { return toIntVector(); }
  std::vector<double> toDoubleVector() const { return get<std::vector<double>>(); }
  std::vector<double> toDoubleList() const { return toDoubleVector(); }
  std::vector<bool> toBoolList() const { return get<std::vector<bool>>(); }
  std::vector<Tensor> toTensorVector() const { return get<Tensors>(); }
  std::vector<Tensor> toTensorList() const { return toTensorVector(); }
  Device toDevice() const { return get<Device>(); }
  Scalar toScalar() const { return number(); }
  // Of scripts: tuples, lists of anything, dicts
  bool isTuple() const;
  bool isList() const;
  bool isGenericDict() const;
  std::shared_ptr<IValueTuple> toTuple() const;
  std::vector<IValue> toListRef() const;
  std::vector<std::pair<IValue, IValue>> toGenericDict() const;
  // As Python's str.
  friend std::ostream& operator<<(std::ostream& out, const IValue& x);
  template <class T>
  T to() const {
    if constexpr (std::is_same_v<T, std::vector<int64_t>>)
      return toIntVector();
    else
      return get<T>();
  }
};

}  // namespace flambeau
