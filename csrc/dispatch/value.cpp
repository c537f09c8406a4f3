#include "dispatch/value.h"

#include "core/error.h"

namespace flambeau {

namespace {

const char* name_of(Value::Tag tag) {
  static constexpr const char* names[] = {"None",
                                          "bool",
                                          "int",
                                          "int",
                                          "float",
                                          "dtype",
                                          "device",
                                          "layout",
                                          "memory format",
                                          "Tensor",
                                          "Generator",
                                          "complex",
                                          "str",
                                          "list of Tensors",
                                          "list of optional Tensors",
                                          "list of ints",
                                          "list of floats",
                                          "list of bools",
                                          "list of numbers",
                                          "object"};
  return names[static_cast<size_t>(tag)];
}

}  // namespace

Value::Value(const Scalar& x) {
  switch (x.kind()) {
    case Scalar::Kind::Bool:
      *this = Value(x.to_bool());
      break;
    case Scalar::Kind::Int:
      *this = Value(x.to_int());
      break;
    case Scalar::Kind::UInt:
      new (bits_.bytes) int64_t(x.to_int());
      tag_ = Tag::UInt;
      break;
    case Scalar::Kind::Float:
      *this = Value(x.to_double());
      break;
    case Scalar::Kind::Complex:
      *this = Value(x.to_complex());
      break;
  }
}

Scalar Value::number() const {
  switch (tag_) {
    case Tag::Bool:
      return get<bool>();
    case Tag::Int:
      return get<int64_t>();
    case Tag::UInt:
      return static_cast<uint64_t>(*const_cast<Value*>(this)->place<int64_t>());
    case Tag::Float:
      return get<double>();
    case Tag::Complex:
      return get<complex128>();
    default:
      fail(ErrorKind::Type, "expected a number, got a value of type ", name_of(tag_));
  }
}

void Value::retain() const noexcept {
  if (tag_ != Tag::Tensor)
    box()->retain();
  else if (TensorImpl* impl = get<Tensor>().impl())
    impl->retain();
}

void Value::release() noexcept {
  if (tag_ == Tag::Tensor)
    place<Tensor>()->~Tensor();
  else
    box()->release();
}

void ValueBox::destroy(ValueBox* b) noexcept {
  Value::destroy(b);
}

void Value::destroy(Boxed* b) noexcept {
  switch (b->tag) {
    case Tag::Generator:
      return delete static_cast<Box<Generator>*>(b);
    case Tag::Complex:
      return delete static_cast<Box<complex128>*>(b);
    case Tag::Str:
      return delete static_cast<Box<std::string>*>(b);
    case Tag::Tensors:
      return delete static_cast<Box<Tensors>*>(b);
    case Tag::OptTensors:
      return delete static_cast<Box<OptTensors>*>(b);
    case Tag::Ints:
      return delete static_cast<Box<Ints>*>(b);
    case Tag::Floats:
      return delete static_cast<Box<std::vector<double>>*>(b);
    case Tag::Bools:
      return delete static_cast<Box<std::vector<bool>>*>(b);
    case Tag::Numbers:
      return delete static_cast<Box<std::vector<Scalar>>*>(b);
    default:
      return delete static_cast<ValueObject*>(b);
  }
}

void Value::wrong(Tag wanted) const {
  fail(ErrorKind::Type, "expected a value of type ", name_of(wanted), ", got one of type ",
       name_of(tag_));
}

}  // namespace flambeau

template class std::vector<flambeau::Value>;
