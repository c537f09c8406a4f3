#include "script/values.h"

#include <bit>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "gen/ops.h"
#include "script/custom.h"
#include "script/text.h"

namespace flambeau::script {

namespace {

using Tag = ValueTag;

bool is_number(const Value& v) noexcept {
  return (v.tag() >= Tag::Bool && v.tag() <= Tag::Float) || v.tag() == Tag::Complex;
}
bool is_whole(const Value& v) noexcept {
  return v.is<int64_t>() || v.is<bool>();
}
int64_t whole(const Value& v) {
  return v.is<bool>() ? v.get<bool>() : v.get<int64_t>();
}

// Calls f with the vector behind a list; lists of anything come as Values.
template <class F>
decltype(auto) visit_list(const Value& v, F f) {
  switch (v.tag()) {
    case Tag::Ints:
      return f(*v.shared_if<Ints>());
    case Tag::Floats:
      return f(*v.shared_if<std::vector<double>>());
    case Tag::Bools:
      return f(*v.shared_if<std::vector<bool>>());
    case Tag::Numbers:
      return f(*v.shared_if<std::vector<Scalar>>());
    case Tag::Tensors:
      return f(*v.shared_if<Tensors>());
    case Tag::OptTensors:
      return f(*v.shared_if<OptTensors>());
    default:
      if (List* xs = box_of<List>(v)) return f(xs->items);
      wrong_value("a list", v);
  }
}

Value boxed(const Value& x) {
  return x;
}
template <class T>
requires(!std::is_same_v<T, Value>) Value boxed(const T& x) {
  return Value(x);
}
Value boxed(const OptTensor& x) {
  return x ? Value(*x) : Value();
}

template <class T>
struct Unboxed {
  static T from(const Value& v) { return v.get<T>(); }
};
template <>
struct Unboxed<double> {  // a float's place takes whole numbers, as in Python's annotations
  static double from(const Value& v) {
    return v.is<double>() ? v.get<double>() : v.number().to_double();
  }
};
template <>
struct Unboxed<Value> {
  static const Value& from(const Value& v) { return v; }
};
template <>
struct Unboxed<Scalar> {
  static Scalar from(const Value& v) { return v.number(); }
};
template <>
struct Unboxed<OptTensor> {
  static OptTensor from(const Value& v) {
    return v.is_none() ? OptTensor() : OptTensor(v.get<Tensor>());
  }
};
template <class L>
using ItemOf = std::remove_cvref_t<typename std::remove_cvref_t<L>::value_type>;
template <class L>
decltype(auto) unboxed(const Value& v) {
  return Unboxed<ItemOf<L>>::from(v);
}

bool equal_numbers(const Value& a, const Value& b) {
  if (is_whole(a) && is_whole(b)) return whole(a) == whole(b);
  if (a.is<complex128>() || b.is<complex128>())
    return a.number().to_complex() == b.number().to_complex();
  if (a.tag() == Tag::UInt || b.tag() == Tag::UInt)
    return a.tag() == b.tag() ? a.same_as(b)
                              : a.number().to_double() == b.number().to_double();
  // Exact: 64 bits of a whole number fit.
  auto wide = [](const Value& v) {
    return v.is<double>() ? static_cast<long double>(v.get<double>())
                          : static_cast<long double>(whole(v));
  };
  return wide(a) == wide(b);
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (a.size() != b.size()) return false;
  bool same = true;
  a.each([&](const Value& k, const Value& x) {
    const Value* y = same ? b.find(k) : nullptr;
    same = same && y && equal(x, *y);
  });
  return same;
}

// Depth of values in each other, for those that hold themselves.
thread_local int depth = 0;
struct Deeper {
  Deeper() { FB_CHECK(++depth < 500, "a value is nested too deeply"); }
  ~Deeper() { --depth; }
};

}  // namespace

// -- what holds values

void List::visit(void (*f)(void*, const Value&), void* data) const {
  Deeper deeper;
  for (const Value& x : items) f(data, x);
}
void Tuple::visit(void (*f)(void*, const Value&), void* data) const {
  Deeper deeper;
  for (const Value& x : items) f(data, x);
}
void Dict::visit(void (*f)(void*, const Value&), void* data) const {
  Deeper deeper;
  each([&](const Value& key, const Value& x) {
    f(data, key);
    f(data, x);
  });
}

// -- messages

const char* kind_name(const Value& v) {
  if (auto* b = static_cast<Box*>(v.object())) {
    static constexpr const char* names[] = {"list",     "tuple",  "dict",  "slice",
                                            "ellipsis", "object", "Future", "types",
                                            "object"};
    return names[static_cast<size_t>(b->kind)];
  }
  static constexpr const char* names[] = {
      "NoneType", "bool",   "int",       "int",     "float", "dtype", "device", "layout",
      "memory_format", "Tensor", "Generator", "complex", "str",   "list",  "list",   "list",
      "list",     "list",   "list"};
  return names[static_cast<size_t>(v.tag())];
}

void wrong_value(const char* expected, const Value& v) {
  fail(ErrorKind::Type, "expected ", expected, ", got a value of type ", kind_name(v));
}

template <class T>
T& expect_box(const Value& v) {
  static constexpr const char* names[] = {"a list",  "a tuple",     "a dict",
                                          "a slice", "an ellipsis", "an object"};
  if (T* b = box_of<T>(v)) return *b;
  wrong_value(names[static_cast<size_t>(T::kKind)], v);
}
template List& expect_box<List>(const Value&);
template Tuple& expect_box<Tuple>(const Value&);
template Dict& expect_box<Dict>(const Value&);
template Slice& expect_box<Slice>(const Value&);
template Instance& expect_box<Instance>(const Value&);

const Tensor& defined_tensor(const Value& v) {
  const Tensor& t = v.get<Tensor>();
  FB_CHECK_TYPE(t.defined(), "expected a Tensor, got an undefined one");
  return t;
}

// -- dicts

size_t Dict::slot_of(const Value& key, size_t hash) const {
  size_t mask = slots_.size() - 1;
  size_t i = (hash * 0x9E3779B97F4A7C15u >> 20) & mask;
  if (const auto* x = key.get_if<int64_t>()) {  // the most frequent by far, with strings
    for (;; i = (i + 1) & mask) {
      uint32_t at = slots_[i];
      if (at == kFree) return i;
      const Pair& p = pairs_[at];
      if (p.hash != hash || !p.live) continue;
      const auto* y = p.key.get_if<int64_t>();
      if (y ? *x == *y : equal(p.key, key)) return i;
    }
  }
  for (;; i = (i + 1) & mask) {
    uint32_t at = slots_[i];
    if (at == kFree) return i;
    const Pair& p = pairs_[at];
    if (p.live && p.hash == hash && (p.key.same_as(key) || equal(p.key, key))) return i;
  }
}

void Dict::rebuild() {
  std::erase_if(pairs_, [](const Pair& p) { return !p.live; });
  size_t size = std::bit_ceil(std::max<size_t>(8, 2 * pairs_.size() + 2));
  slots_.assign(size, kFree);
  for (uint32_t i = 0; i < pairs_.size(); ++i) {
    size_t at = (pairs_[i].hash * 0x9E3779B97F4A7C15u >> 20) & (size - 1);
    while (slots_[at] != kFree) at = (at + 1) & (size - 1);
    slots_[at] = i;
  }
}

const Value* Dict::find(const Value& key) const {
  if (used_ == 0) return hash_of(key), nullptr;
  uint32_t at = slots_[slot_of(key, hash_of(key))];
  return at == kFree ? nullptr : &pairs_[at].value;
}

void Dict::set(const Value& key, Value x) {
  size_t hash = hash_of(key);
  // Places of erased pairs stay taken until the table is built again.
  if (2 * (pairs_.size() + 1) > slots_.size()) rebuild();
  size_t i = slot_of(key, hash);
  if (slots_[i] != kFree) {
    std::swap(pairs_[slots_[i]].value, x);  // the old value goes once nothing is half done
    return;
  }
  pairs_.push_back({key, std::move(x), hash, true});
  slots_[i] = static_cast<uint32_t>(pairs_.size() - 1);
  ++used_;
}

bool Dict::erase(const Value& key, Value* taken) {
  if (used_ == 0) return hash_of(key), false;
  uint32_t at = slots_[slot_of(key, hash_of(key))];
  if (at == kFree) return false;
  Pair gone = std::move(pairs_[at]);
  pairs_[at].live = false;
  --used_;
  if (taken) *taken = std::move(gone.value);
  if (pairs_.size() > 16 && 2 * used_ < pairs_.size()) rebuild();
  return true;
}

void Dict::clear() {
  std::vector<Pair> gone = std::move(pairs_);
  pairs_.clear();
  slots_.clear();
  used_ = 0;
}

bool Dict::take_last(Value* key, Value* x) {
  for (size_t i = pairs_.size(); i-- > 0;) {
    if (!pairs_[i].live) continue;
    *key = pairs_[i].key;
    return erase(*key, x);
  }
  return false;
}

// -- lists

bool is_list(const Value& v) noexcept {
  return (v.tag() >= Tag::Tensors && v.tag() <= Tag::Numbers) || box_of<List>(v);
}

int64_t list_size(const Value& list) {
  if (auto* t = box_of<Tuple>(list)) return static_cast<int64_t>(t->items.size());
  return visit_list(list, [](auto& xs) { return static_cast<int64_t>(xs.size()); });
}

Value list_item(const Value& list, int64_t i) {
  if (auto* t = box_of<Tuple>(list)) return t->items[static_cast<size_t>(i)];
  return visit_list(list, [i](auto& xs) -> Value {
    using T = ItemOf<decltype(xs)>;
    if constexpr (std::is_same_v<T, bool>)
      return Value(static_cast<bool>(xs[static_cast<size_t>(i)]));
    else
      return boxed(xs[static_cast<size_t>(i)]);
  });
}

void list_set(const Value& list, int64_t i, const Value& x) {
  visit_list(list, [&](auto& xs) {
    ItemOf<decltype(xs)> item = unboxed<decltype(xs)>(x);
    if constexpr (std::is_same_v<decltype(item), bool>) {
      xs[static_cast<size_t>(i)] = item;
    } else {
      std::swap(xs[static_cast<size_t>(i)], item);
    }
  });
}

void list_insert(const Value& list, int64_t i, const Value& x) {
  visit_list(list, [&](auto& xs) {
    ItemOf<decltype(xs)> item = unboxed<decltype(xs)>(x);
    if (i >= static_cast<int64_t>(xs.size()))
      xs.push_back(std::move(item));
    else
      xs.insert(xs.begin() + i, std::move(item));
  });
}

Value list_take(const Value& list, int64_t i) {
  Value out = list_item(list, i);
  visit_list(list, [i](auto& xs) { xs.erase(xs.begin() + i); });
  return out;
}

Value list_slice(const Value& list, int64_t start, int64_t stop, int64_t step) {
  Span s{start, stop, step};
  int64_t n = s.count();
  if (auto* t = box_of<Tuple>(list)) {
    Values out;
    for (int64_t k = 0; k < n; ++k) out.push_back(t->items[static_cast<size_t>(start + k * step)]);
    return make_box<Tuple>(std::move(out));
  }
  Value out = list_like(list);
  visit_list(list, [&](auto& xs) {
    auto& made = [&]() -> auto& {
      using L = std::remove_reference_t<decltype(xs)>;
      if constexpr (std::is_same_v<L, Values>)
        return box_of<List>(out)->items;
      else
        return *out.shared_if<L>();
    }();
    for (int64_t k = 0; k < n; ++k) made.push_back(xs[static_cast<size_t>(start + k * step)]);
  });
  return out;
}

Value list_like(const Value& list) {
  return visit_list(list, [](auto& xs) -> Value {
    using L = std::remove_reference_t<decltype(xs)>;
    if constexpr (std::is_same_v<L, Values>)
      return make_box<List>();
    else
      return Value(L());
  });
}

void list_clear(const Value& list) {
  visit_list(list, [](auto& xs) {
    auto gone = std::move(xs);
    xs.clear();
  });
}

void list_assign(const Value& list, const Value& from) {
  visit_list(list, [&](auto& xs) {
    using L = std::remove_reference_t<decltype(xs)>;
    L made;
    for (int64_t i = 0, n = list_size(from); i < n; ++i)
      made.push_back(unboxed<L>(list_item(from, i)));
    std::swap(xs, made);
  });
}

// -- operators

bool equal(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b)) return equal_numbers(a, b);
  if (a.is<std::string>() && b.is<std::string>())
    return a.get<std::string>() == b.get<std::string>();
  if (a.is<Tensor>() && b.is<Tensor>()) {
    if (a.same_as(b)) return true;
    return ops::eq(defined_tensor(a), defined_tensor(b)).item().to_bool();
  }
  if (is_list(a) && is_list(b)) {
    Deeper deeper;
    if (list_size(a) != list_size(b)) return false;
    for (int64_t i = 0; i < list_size(a) && i < list_size(b); ++i)
      if (!equal(list_item(a, i), list_item(b, i))) return false;
    return list_size(a) == list_size(b);
  }
  if (a.tag() != b.tag()) return false;
  if (a.tag() != Tag::Object) return a.same_as(b);
  if (a.same_as(b)) return true;
  Deeper deeper;
  if (auto *x = box_of<Dict>(a), *y = box_of<Dict>(b); x && y) return equal_dicts(*x, *y);
  if (auto *x = box_of<Instance>(a), *y = box_of<Instance>(b); x && y) return x->equal(*y);
  auto *x = box_of<Tuple>(a), *y = box_of<Tuple>(b);
  if (!x || !y || x->items.size() != y->items.size()) return false;
  for (size_t i = 0; i < x->items.size(); ++i)
    if (!equal(x->items[i], y->items[i])) return false;
  return true;
}

bool less(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b) && !a.is<complex128>() && !b.is<complex128>()) {
    if (is_whole(a) && is_whole(b)) return whole(a) < whole(b);
    auto wide = [](const Value& v) {
      return is_whole(v) ? static_cast<long double>(whole(v))
                         : static_cast<long double>(v.number().to_double());
    };
    return wide(a) < wide(b);
  }
  if (a.is<std::string>() && b.is<std::string>())  // UTF-8 sorts as its characters do
    return a.get<std::string>() < b.get<std::string>();
  if ((is_list(a) && is_list(b)) || (box_of<Tuple>(a) && box_of<Tuple>(b))) {
    Deeper deeper;
    int64_t n = std::min(list_size(a), list_size(b));
    for (int64_t i = 0; i < n; ++i) {
      Value x = list_item(a, i), y = list_item(b, i);
      if (!equal(x, y)) return less(x, y);
    }
    return list_size(a) < list_size(b);
  }
  if (a.is<Tensor>() && b.is<Tensor>())
    return ops::lt(defined_tensor(a), defined_tensor(b)).item().to_bool();
  fail(ErrorKind::Type, "'<' not supported between instances of '", kind_name(a), "' and '",
       kind_name(b), "'");
}

size_t hash_of(const Value& v) {
  if (const auto* x = v.get_if<int64_t>()) return static_cast<size_t>(*x);
  auto of_real = [](double x) {
    // Equal numbers hash alike, whatever they are.
    if (x == std::trunc(x) && std::abs(x) < 9e18)
      return static_cast<size_t>(static_cast<int64_t>(x));
    return std::hash<double>()(x);
  };
  switch (v.tag()) {
    case Tag::Bool:
    case Tag::Int:
      return static_cast<size_t>(whole(v));
    case Tag::Float:
      return of_real(v.get<double>());
    case Tag::Complex: {
      complex128 z = v.get<complex128>();
      return of_real(z.real()) + 1000003 * of_real(z.imag());
    }
    case Tag::Str:
      return std::hash<std::string>()(v.get<std::string>());
    case Tag::Tensor:
      return reinterpret_cast<size_t>(v.get<Tensor>().impl()) >> 4;
    case Tag::None:
    case Tag::DType:
    case Tag::Device:
      return static_cast<size_t>(v.tag());
    default:
      break;
  }
  if (auto* t = box_of<Tuple>(v)) {
    Deeper deeper;
    size_t h = 17;
    for (const Value& x : t->items) h = h * 1000003 + hash_of(x);
    return h;
  }
  if (auto* o = box_of<Instance>(v)) return o->hash();
  if (auto* o = box_of<CustomObject>(v)) return reinterpret_cast<size_t>(o) >> 4;
  fail(ErrorKind::Type, "unhashable type: '", kind_name(v), "'");
}

bool truth(const Value& v) {
  switch (v.tag()) {
    case Tag::None:
      return false;
    case Tag::Bool:
      return v.get<bool>();
    case Tag::Int:
      return v.get<int64_t>() != 0;
    case Tag::UInt:
    case Tag::Float:
    case Tag::Complex:
      return v.number().to_bool();
    case Tag::Str:
      return !v.get<std::string>().empty();
    case Tag::Tensor: {
      const Tensor& t = v.get<Tensor>();
      FB_CHECK(t.defined() && t.numel() == 1, "Boolean value of Tensor with ",
               t.defined() && t.numel() ? "more than one value" : "no values", " is ambiguous");
      return t.item().to_bool();
    }
    case Tag::Object:
      if (auto* d = box_of<Dict>(v)) return d->size() != 0;
      if (auto* o = box_of<Instance>(v)) return o->truth();
      if (box_of<Tuple>(v) || box_of<List>(v)) return list_size(v) != 0;
      return true;
    default:
      return is_list(v) ? list_size(v) != 0 : true;
  }
}

// -- text

std::string quoted(std::string_view text) {
  bool doubled = text.find('\'') != text.npos && text.find('"') == text.npos;
  std::string out(1, doubled ? '"' : '\'');
  for (char c : text) {
    auto u = static_cast<unsigned char>(c);
    if (c == '\\' || c == out[0]) {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (u < 0x20 || u == 0x7F) {
      static constexpr char digits[] = "0123456789abcdef";
      out += {'\\', 'x', digits[u >> 4], digits[u & 15]};
    } else {
      out += c;
    }
  }
  return out + out[0];
}

std::string repr(const Value& v) {
  Deeper deeper;
  switch (v.tag()) {
    case Tag::None:
      return "None";
    case Tag::Bool:
      return v.get<bool>() ? "True" : "False";
    case Tag::Int:
      return std::to_string(v.get<int64_t>());
    case Tag::Float:
      return show(v.get<double>());
    case Tag::Str:
      return quoted(v.get<std::string>());
    default:
      break;
  }
  if (is_list(v) || box_of<Tuple>(v)) {
    bool tuple = !is_list(v);
    std::string out = tuple ? "(" : "[";
    int64_t n = list_size(v);
    for (int64_t i = 0; i < n; ++i) out += (i ? ", " : "") + repr(list_item(v, i));
    return out + (tuple ? n == 1 ? ",)" : ")" : "]");
  }
  if (auto* d = box_of<Dict>(v)) {
    std::string out = "{";
    d->each([&](const Value& k, const Value& x) {
      out += (out.size() > 1 ? ", " : "") + repr(k) + ": " + repr(x);
    });
    return out + "}";
  }
  fail(ErrorKind::Type, "a script cannot show a ", kind_name(v), " without Python");
}

std::string to_text(const Value& v) {
  return v.is<std::string>() ? v.get<std::string>() : repr(v);
}

namespace {
bool begins(char c) noexcept {  // a character of UTF-8
  return (c & 0xC0) != 0x80;
}
}  // namespace

int64_t length(std::string_view text) {
  int64_t n = 0;
  for (char c : text) n += begins(c);
  return n;
}

std::string_view characters(std::string_view text, int64_t from, int64_t to) {
  size_t i = 0, n = text.size();
  auto skip = [&](int64_t count) {
    for (; count > 0 && i < n; --count)
      for (++i; i < n && !begins(text[i]);) ++i;
    return i;
  };
  size_t start = skip(from), end = skip(std::max<int64_t>(to - from, 0));
  return text.substr(start, end - start);
}

int64_t Span::count() const {
  if (step > 0) return stop > start ? (stop - start - 1) / step + 1 : 0;
  return start > stop ? (start - stop - 1) / -step + 1 : 0;
}

Span span_of(const Value& start, const Value& stop, const Value& step, int64_t n) {
  Span s{0, n, step.is_none() ? 1 : whole(step)};
  if (s.step == 0) fail(ErrorKind::Value, "slice step cannot be zero");
  bool up = s.step > 0;
  if (s.step == INT64_MIN) s.step = -INT64_MAX;
  auto clamp = [&](int64_t i) {
    if (i < 0) i += n;  // no overflow: n is not negative
    return i < 0 ? (up ? 0 : -1) : i >= n ? (up ? n : n - 1) : i;
  };
  s.start = start.is_none() ? (up ? 0 : n - 1) : clamp(whole(start));
  s.stop = stop.is_none() ? (up ? n : -1) : clamp(whole(stop));
  return s;
}

int64_t place_of(int64_t i, int64_t n, const char* text) {
  int64_t k = i < 0 ? i + n : i;
  FB_CHECK_INDEX(k >= 0 && k < n, text);
  return k;
}

}  // namespace flambeau::script
