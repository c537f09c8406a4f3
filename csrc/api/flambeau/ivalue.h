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
template <class T>
class List;
template <class K, class V>
class Dict;
template <class T>
class intrusive_ptr;  // custom_class.h
namespace jit {
class Module;
}
// What IValue::toString gives.
class IValueString {
 public:
  explicit IValueString(std::string text) : text_(std::move(text)) {}
  const std::string& string() const noexcept { return text_; }

 private:
  std::string text_;
};
// The values of a tuple, which it keeps alive.
class IValueElements {
 public:
  const IValue* begin() const noexcept { return data_; }
  inline const IValue* end() const noexcept;
  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  inline const IValue& operator[](size_t i) const;
  inline const IValue& at(size_t i) const;
  std::vector<IValue> vec() const;
  operator std::vector<IValue>() const { return vec(); }

 private:
  friend class IValue;
  Value owner_;
  const IValue* data_ = nullptr;
  size_t size_ = 0;
};
// What IValue::toTuple gives: toTuple()->elements()[0].
class IValueTuple {
 public:
  IValueElements elements() const { return elements_; }
  size_t size() const noexcept { return elements_.size(); }

 private:
  friend class IValue;
  IValueElements elements_;
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
  IValue(T x) : Value(static_cast<int64_t>(x)) {}
  IValue(float x) : Value(static_cast<double>(x)) {}
  IValue(IntArrayRef xs) : Value(xs.ints()) {}
  IValue(const std::vector<int64_t>& xs) : Value(Ints(xs)) {}
  template <class T>
  IValue(const std::optional<T>& x) : IValue(x ? IValue(*x) : IValue()) {}
  template <class... T>
  IValue(const std::tuple<T...>& xs)
      : IValue(std::apply([](const auto&... x) { return of_tuple({IValue(x)...}); }, xs)) {}
  template <class T>
  IValue(const List<T>& xs);
  template <class K, class V>
  IValue(const Dict<K, V>& xs);
  IValue(const std::vector<IValue>& xs) : IValue(of_list(xs)) {}
  IValue(const std::vector<std::string>& xs) : IValue(of_list({xs.begin(), xs.end()})) {}
  template <class P>  // a pointer to an object of a class of the program's own
    requires requires(const P& p) { p.as_value(); }
  IValue(const P& p) : Value(p.as_value()) {}
  IValue(TensorList xs) : Value(Tensors(xs.begin(), xs.end())) {}
  static IValue of_tuple(std::vector<IValue> xs);
  static IValue of_list(const std::vector<IValue>& xs);
  static IValue of_pairs(std::vector<std::pair<IValue, IValue>> xs);

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
  bool isObject() const;
  bool isCustomClass() const;
  bool isModule() const { return isObject(); }
  IValueTuple toTupleRef() const { return *toTuple(); }
  Dict<IValue, IValue> toGenericDict() const;
  List<IValue> toList() const;
  jit::Module toModule() const;
  template <class T>
  intrusive_ptr<T> toCustomClass() const;
  std::shared_ptr<IValueString> toString() const {
    return std::make_shared<IValueString>(toStringRef());
  }
  // "Tensor", "Int", "GenericDict": the kind, as messages say it.
  std::string tagKind() const;
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

static_assert(sizeof(IValue) == sizeof(Value));
inline const IValue* IValueElements::end() const noexcept {
  return data_ + size_;
}
inline const IValue& IValueElements::operator[](size_t i) const {
  return data_[i];
}
inline const IValue& IValueElements::at(size_t i) const {
  FB_CHECK_INDEX(i < size_, "IValue: index ", i, " is out of range for a tuple of ", size_);
  return data_[i];
}

}  // namespace flambeau
