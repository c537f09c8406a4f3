#include "runtime/tree.h"

#include <cmath>
#include <limits>

#include "files/json.h"

namespace flambeau::runtime {
namespace {

[[noreturn]] void unexpected(const char* wanted) {
  fail(ErrorKind::Type, "a description of native code: expected ", wanted);
}

}  // namespace

const Value& Tree::leaf() const {
  if (list_) unexpected("one value, got a list");
  return leaf_;
}

const std::vector<Tree>& Tree::items() const {
  if (!list_) unexpected("a list");
  return items_;
}

const Tree& Tree::operator[](size_t i) const {
  if (!list_ || i >= items_.size()) unexpected("a longer list");
  return items_[i];
}

int64_t Tree::integer() const {
  if (const auto* i = leaf().get_if<int64_t>()) return *i;
  if (const auto* b = leaf().get_if<bool>()) return *b;
  unexpected("an integer");
}

int64_t Tree::integer_below(size_t bound, const char* what) const {
  const int64_t i = integer();
  FB_CHECK_VALUE(i >= 0 && static_cast<size_t>(i) < bound, "a program: there is no ", what, " ", i);
  return i;
}

double Tree::real() const {
  if (const auto* x = leaf().get_if<double>()) return *x;
  return static_cast<double>(integer());
}

bool Tree::truth() const {
  return integer() != 0;
}

const std::string& Tree::text() const {
  if (const auto* s = leaf().get_if<std::string>()) return *s;
  unexpected("a text");
}

DType Tree::dtype() const {
  if (const auto* d = leaf().get_if<DType>()) return *d;
  unexpected("a dtype");
}

// Parameters of entries
// ------------------------------------------------------------------------------------------------

namespace {

Scalar number_of(const Tree& t) {
  return t.leaf().number();
}

Tensor tensor_of(const Tree& t) {
  if (const auto* x = t.leaf().get_if<Tensor>()) return *x;
  return wrapped_number(number_of(t));
}

template <class T, class F>
Value list_of(const Tree& t, F&& f) {
  T out;
  for (const Tree& i : t.items()) out.push_back(f(i));
  return out;
}

template <class T>
Value leaf_of(const Tree& t, const char* what) {
  if (!t.leaf().is<T>()) unexpected(what);
  return t.leaf();
}

}  // namespace

Value value_of(const ParamDesc& p, const Tree& t) {
  if (t.is_none()) return {};
  switch (p.type.base) {
    case TypeBase::Tensor:
      return tensor_of(t);
    case TypeBase::Tensors:
      return list_of<Tensors>(t, tensor_of);
    case TypeBase::OptTensors:
      return list_of<OptTensors>(
          t, [](const Tree& i) { return i.is_none() ? OptTensor() : OptTensor(tensor_of(i)); });
    case TypeBase::Int:
      return t.integer();
    case TypeBase::Float:
      return number_of(t).to_double();
    case TypeBase::Bool:
      return t.truth();
    case TypeBase::Str:
      return leaf_of<std::string>(t, "a text");
    case TypeBase::Number:
      return number_of(t);
    case TypeBase::Ints:
      if (!t.is_list()) return Ints(std::max<size_t>(p.type.length, 1), t.integer());
      return list_of<Ints>(t, [](const Tree& i) { return i.integer(); });
    case TypeBase::Floats:
      return list_of<std::vector<double>>(t, [](const Tree& i) { return i.real(); });
    case TypeBase::Bools:
      return list_of<std::vector<bool>>(t, [](const Tree& i) { return i.truth(); });
    case TypeBase::Numbers:
      return list_of<std::vector<Scalar>>(t, number_of);
    case TypeBase::DType:
      return t.dtype();
    case TypeBase::Device:
      return leaf_of<Device>(t, "a device");
    case TypeBase::Layout:
      return leaf_of<Layout>(t, "a layout");
    case TypeBase::MemoryFormat:
      return leaf_of<MemoryFormat>(t, "a memory format");
    case TypeBase::Generator:
      return leaf_of<Generator>(t, "a generator");
    case TypeBase::Object:
      break;
  }
  unexpected("a parameter of a known type");
}

// Texts
// ------------------------------------------------------------------------------------------------

namespace {

using files::Json;

template <class T>
struct Named {
  const char* name;
  T value;
};
constexpr Named<Layout> kLayouts[] = {{"strided", Layout::Strided},
                                      {"sparse_coo", Layout::SparseCoo},
                                      {"sparse_csr", Layout::SparseCsr}};
constexpr Named<MemoryFormat> kFormats[] = {{"contiguous_format", MemoryFormat::Contiguous},
                                            {"preserve_format", MemoryFormat::Preserve},
                                            {"channels_last", MemoryFormat::ChannelsLast},
                                            {"channels_last_3d", MemoryFormat::ChannelsLast3d}};
constexpr Named<double> kNumbers[] = {{"inf", std::numeric_limits<double>::infinity()},
                                      {"-inf", -std::numeric_limits<double>::infinity()},
                                      {"nan", std::numeric_limits<double>::quiet_NaN()}};

[[noreturn]] void no_constant(std::string_view word) {
  fail(ErrorKind::Value, "plain data: expected a constant, got one named ", word);
}

template <class T, size_t N>
Value find(const Named<T> (&known)[N], std::string_view name) {
  for (const Named<T>& k : known)
    if (name == k.name) return k.value;
  no_constant(name);
}

Value dtype_named(std::string_view name) {
  for (int d = 0; d < kDTypes; ++d)
    if (name == dtype_name(static_cast<DType>(d))) return static_cast<DType>(d);
  no_constant(name);
}

double real_of(const Json& j) {
  if (j.is(Json::Kind::Real)) return j.real;
  if (!j.is(Json::Kind::Integer)) no_constant("complex");
  return static_cast<double>(j.integer);
}

// What JSON has no word for: an object of one member.
Value constant(const Json& j) {
  if (j.names.size() != 1) no_constant(j.names.empty() ? "" : j.names[0]);
  const std::string& word = j.names[0];
  const Json& value = j.items[0];
  if (word == "complex" && value.is(Json::Kind::List) && value.items.size() == 2)
    return complex128(real_of(value.items[0]), real_of(value.items[1]));
  if (!value.is(Json::Kind::Text)) no_constant(word);
  if (word == "dtype") return dtype_named(value.text);
  if (word == "device") return Device(value.text);
  if (word == "layout") return find(kLayouts, value.text);
  if (word == "memory_format") return find(kFormats, value.text);
  if (word == "float") return find(kNumbers, value.text);
  no_constant(word);
}

Tree tree_of(const Json& j) {
  switch (j.kind) {
    case Json::Kind::Null:
      return {};
    case Json::Kind::Bool:
      return Tree(Value(j.integer != 0));
    case Json::Kind::Integer:
      return Tree(Value(j.integer));
    case Json::Kind::Real:
      return Tree(Value(j.real));
    case Json::Kind::Text:
      return Tree(Value(j.text));
    case Json::Kind::Object:
      return Tree(constant(j));
    case Json::Kind::List:
      break;
  }
  std::vector<Tree> items;
  items.reserve(j.items.size());
  for (const Json& i : j.items) items.push_back(tree_of(i));
  return Tree(std::move(items));
}

}  // namespace

Tree parse_tree(std::string_view text) {
  return tree_of(files::parse_json(text));
}

}  // namespace flambeau::runtime
