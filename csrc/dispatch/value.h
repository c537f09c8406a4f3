// Value: an argument or a result of a boxed call, in 16 bytes: what it is, and a payload. Numbers,
// tensors and small enumerations lie in it; lists, strings and what is larger are counted boxes,
// which copies share until one of them is written to (see `get_if`). Scripts, whose lists are
// references, write to what is shared (`shared_if`). Knows nothing of operations.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <new>
#include <string>

#include "core/generator.h"
#include "core/tensor.h"

namespace flambeau {

// A Scalar is one of Bool, Int, UInt, Float, Complex. From Tensor on, the payload is owned, from
// Generator on it is a box.
enum class ValueTag : uint8_t {
  None,
  Bool,
  Int,
  UInt,
  Float,
  DType,
  Device,
  Layout,
  MemoryFormat,
  Tensor,
  Generator,
  Complex,
  Str,
  Tensors,
  OptTensors,
  Ints,
  Floats,
  Bools,
  Numbers,
  Object
};

class Value;

// What a value holds by reference, with a count of those who do.
struct ValueBox : Counted<ValueBox> {
  explicit ValueBox(ValueTag t) noexcept : tag(t) {}
  static void destroy(ValueBox* b) noexcept;
  const ValueTag tag;
};

// What the table has no type for: the dicts, tuples and objects of scripts (csrc/script).
class ValueObject : public ValueBox {
 public:
  ValueObject() noexcept : ValueBox(ValueTag::Object) {}
  virtual ~ValueObject() = default;
  // Calls f(data, value) for each value that it holds.
  virtual void visit(void (*)(void* data, const Value&), void*) const {}
};

// The tag of a type that a value can be made of; None for all others.
template <class T>
constexpr ValueTag value_tag() noexcept {
  using std::same_as;
  if constexpr (same_as<T, bool>) return ValueTag::Bool;
  if constexpr (same_as<T, int64_t>) return ValueTag::Int;
  if constexpr (same_as<T, double>) return ValueTag::Float;
  if constexpr (same_as<T, DType>) return ValueTag::DType;
  if constexpr (same_as<T, Device>) return ValueTag::Device;
  if constexpr (same_as<T, Layout>) return ValueTag::Layout;
  if constexpr (same_as<T, MemoryFormat>) return ValueTag::MemoryFormat;
  if constexpr (same_as<T, Tensor>) return ValueTag::Tensor;
  if constexpr (same_as<T, Generator>) return ValueTag::Generator;
  if constexpr (same_as<T, complex128>) return ValueTag::Complex;
  if constexpr (same_as<T, std::string>) return ValueTag::Str;
  if constexpr (same_as<T, Tensors>) return ValueTag::Tensors;
  if constexpr (same_as<T, OptTensors>) return ValueTag::OptTensors;
  if constexpr (same_as<T, Ints>) return ValueTag::Ints;
  if constexpr (same_as<T, std::vector<double>>) return ValueTag::Floats;
  if constexpr (same_as<T, std::vector<bool>>) return ValueTag::Bools;
  if constexpr (same_as<T, std::vector<Scalar>>) return ValueTag::Numbers;
  return ValueTag::None;
}

class Value {
 public:
  using Tag = ValueTag;

  Value() noexcept {}
  Value(const Scalar& x);
  explicit Value(Ref<ValueObject> o) noexcept : tag_(Tag::Object) {
    new (bits_.bytes) Boxed*(o.detach());
  }
  // Of exactly these types: a pointer is no truth value.
  template <class T>
  requires(value_tag<T>() != ValueTag::None) Value(T x) : tag_(value_tag<T>()) {
    if constexpr (is_boxed<T>())
      new (bits_.bytes) Boxed*(new Box<T>(std::move(x)));
    else
      new (place<T>()) T(std::move(x));
  }
  Value(const Value& o) noexcept : bits_(o.bits_), tag_(o.tag_) {
    if (owns()) retain();
  }
  Value(Value&& o) noexcept : bits_(o.bits_), tag_(std::exchange(o.tag_, Tag::None)) {}
  Value& operator=(Value o) noexcept {
    std::swap(bits_, o.bits_);
    std::swap(tag_, o.tag_);
    return *this;
  }
  ~Value() {
    if (owns()) release();
  }

  Tag tag() const noexcept { return tag_; }
  bool is_none() const noexcept { return tag_ == Tag::None; }
  template <class T>
  bool is() const noexcept {
    return tag_ == value_tag<T>();
  }
  // The payload if it is of this type, else null. Who may write to it gets a box of its own.
  template <class T>
  const T* get_if() const noexcept {
    if (!is<T>()) return nullptr;
    if constexpr (is_boxed<T>())
      return &static_cast<const Box<T>*>(box())->value;
    else
      return const_cast<Value*>(this)->place<T>();
  }
  template <class T>
  T* get_if() {
    if (!is<T>()) return nullptr;
    if constexpr (is_boxed<T>()) {
      if (box()->use_count() > 1) *this = Value(T(*std::as_const(*this).get_if<T>()));
      return &static_cast<Box<T>*>(box())->value;
    } else {
      return place<T>();
    }
  }
  // The same; an error where the value is something else.
  template <class T>
  const T& get() const {
    if (const T* x = get_if<T>()) [[likely]]
      return *x;
    wrong(value_tag<T>());
  }
  template <class T>
  T& get() {
    if (T* x = get_if<T>()) [[likely]]
      return *x;
    wrong(value_tag<T>());
  }
  Scalar number() const;  // an error for what is none

  // The payload that all copies have, to be written to; null if it is of another type.
  template <class T>
  T* shared_if() const noexcept {
    return const_cast<T*>(get_if<T>());
  }
  ValueObject* object() const noexcept {
    return tag_ == Tag::Object ? static_cast<ValueObject*>(box()) : nullptr;
  }
  // Assigns what lies in the value.
  template <class T>
  void put(T x) noexcept {
    static_assert(value_tag<T>() != Tag::None && value_tag<T>() < Tag::Tensor);
    if (owns()) [[unlikely]]
      release();
    new (place<T>()) T(x);
    tag_ = value_tag<T>();
  }
  void clear() noexcept {
    if (owns()) release();
    tag_ = Tag::None;
  }
  // The very same: of one tag, with the same payload or the same thing behind it.
  bool same_as(const Value& o) const noexcept {
    return tag_ == o.tag_ && std::memcmp(bits_.bytes, o.bits_.bytes, size()) == 0;
  }

 private:
  using Boxed = ValueBox;
  friend ValueBox;
  static void destroy(Boxed* b) noexcept;
  template <class T>
  struct Box final : Boxed {
    explicit Box(T x) : Boxed(value_tag<T>()), value(std::move(x)) {}
    T value;
  };

  template <class T>
  static constexpr bool is_boxed() noexcept {
    return value_tag<T>() >= Tag::Generator;
  }
  template <class T>
  T* place() noexcept {
    static_assert(sizeof(T) <= sizeof(bits_));
    return std::launder(reinterpret_cast<T*>(bits_.bytes));
  }
  // Bytes of the payload that count.
  size_t size() const noexcept {
    switch (tag_) {
      case Tag::None:
        return 0;
      case Tag::Bool:
        return sizeof(bool);
      case Tag::DType:
        return sizeof(DType);
      case Tag::Layout:
        return sizeof(Layout);
      case Tag::MemoryFormat:
        return sizeof(MemoryFormat);
      case Tag::Device:
        return sizeof(Device);
      default:
        return sizeof(bits_);
    }
  }
  Boxed* box() const noexcept { return *const_cast<Value*>(this)->place<Boxed*>(); }

  bool owns() const noexcept { return tag_ >= Tag::Tensor; }
  void retain() const noexcept;
  void release() noexcept;
  [[noreturn]] void wrong(Tag wanted) const;

  struct Bits {
    alignas(8) std::byte bytes[8];
  };
  Bits bits_{};
  Tag tag_ = Tag::None;
};
static_assert(sizeof(Value) == 16);

using Values = std::vector<Value>;

}  // namespace flambeau

extern template class std::vector<flambeau::Value>;
