// Values that scripts have and operations do not: lists of anything, tuples, dicts, slices and
// objects. Lists are references: who changes one changes it for all who hold it, in the typed boxes
// of operations (Ints, Tensors, ...) as in those of this file. Knows no code and no Python.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dispatch/value.h"

namespace flambeau::script {

class Box : public ValueObject {
 public:
  enum class Kind : uint8_t { List, Tuple, Dict, Slice, Ellipsis, Instance, Future, Types, Custom };
  explicit Box(Kind k) noexcept : kind(k) {}
  const Kind kind;
};

struct List final : Box {
  static constexpr Kind kKind = Kind::List;
  explicit List(Values xs = {}) : Box(kKind), items(std::move(xs)) {}
  void visit(void (*f)(void*, const Value&), void* data) const override;
  Values items;
};

struct Tuple final : Box {
  static constexpr Kind kKind = Kind::Tuple;
  explicit Tuple(Values xs, std::string cls = {})
      : Box(kKind), items(std::move(xs)), name(std::move(cls)) {}
  void visit(void (*f)(void*, const Value&), void* data) const override;
  const Values items;
  const std::string name;  // of the class of a named one
};

struct Slice final : Box {
  static constexpr Kind kKind = Kind::Slice;
  Slice(Value a, Value b, Value c)
      : Box(kKind), start(std::move(a)), stop(std::move(b)), step(std::move(c)) {}
  const Value start, stop, step;
};

struct Ellipsis final : Box {
  static constexpr Kind kKind = Kind::Ellipsis;
  Ellipsis() : Box(kKind) {}
};

// Pairs in the order in which their keys came. Keys are numbers, strings, tensors and objects.
class Dict final : public Box {
 public:
  static constexpr Kind kKind = Kind::Dict;
  Dict() : Box(kKind) {}
  void visit(void (*f)(void*, const Value&), void* data) const override;

  const Value* find(const Value& key) const;
  void set(const Value& key, Value x);
  bool erase(const Value& key, Value* taken = nullptr);
  void clear();
  size_t size() const noexcept { return used_; }
  // Calls f(key, value) for each pair.
  template <class F>
  void each(F f) const {
    for (const Pair& p : pairs_)
      if (p.live) f(p.key, p.value);
  }
  bool take_last(Value* key, Value* x);

 private:
  struct Pair {
    Value key, value;
    size_t hash;
    bool live;
  };
  static constexpr uint32_t kFree = ~0u;
  size_t slot_of(const Value& key, size_t hash) const;  // where it is, or would be
  void rebuild();

  std::vector<Pair> pairs_;
  std::vector<uint32_t> slots_;  // places in pairs_; a power of two
  size_t used_ = 0;
};

struct AttrRef;  // code.h

// An object of a class.
class Instance : public Box {
 public:
  static constexpr Kind kKind = Kind::Instance;
  Instance() : Box(kKind) {}
  virtual Value get(const AttrRef& attribute) const = 0;
  virtual void set(const AttrRef& attribute, const Value& x) = 0;
  // The object itself, where this one only stands for it.
  virtual const Instance& resolved() const noexcept { return *this; }
  virtual bool same(const Instance& o) const { return &resolved() == &o.resolved(); }
  virtual bool equal(const Instance& o) const { return same(o); }
  virtual size_t hash() const { return reinterpret_cast<size_t>(this) >> 4; }
  virtual bool truth() const { return true; }
};

template <class T>
T* box_of(const Value& v) noexcept {
  auto* o = static_cast<Box*>(v.object());
  return o && o->kind == T::kKind ? static_cast<T*>(o) : nullptr;
}
template <class T>
T& expect_box(const Value& v);
template <class T, class... A>
Value make_box(A&&... args) {
  return Value(Ref<ValueObject>::adopt(new T(std::forward<A>(args)...)));
}

// What a value is, for messages: `int`, `List`, `Tensor`.
const char* kind_name(const Value& v);
[[noreturn]] void wrong_value(const char* expected, const Value& v);

const Tensor& defined_tensor(const Value& v);  // an error for what is none, or an undefined one

// -- lists of every kind

int64_t list_size(const Value& list);                // of lists and tuples
Value list_item(const Value& list, int64_t i);       // i within the size
void list_set(const Value& list, int64_t i, const Value& x);
void list_insert(const Value& list, int64_t i, const Value& x);
Value list_take(const Value& list, int64_t i);  // removed
Value list_slice(const Value& list, int64_t start, int64_t stop, int64_t step);
Value list_like(const Value& list);  // an empty one of its kind
void list_clear(const Value& list);
void list_assign(const Value& list, const Value& from);  // of the same kind
bool is_list(const Value& v) noexcept;

// -- what Python's operators mean

bool equal(const Value& a, const Value& b);
bool less(const Value& a, const Value& b);
size_t hash_of(const Value& v);
bool truth(const Value& v);
std::string to_text(const Value& v);  // str(x)
std::string repr(const Value& v);
std::string quoted(std::string_view text);  // a string as repr has it

// Characters of a string: their number, and the bytes of one or of some of them.
int64_t length(std::string_view text);
std::string_view characters(std::string_view text, int64_t from, int64_t to);
// Where a slice begins and ends in a sequence of n, with the ends that are given.
struct Span {
  int64_t start, stop, step;
  int64_t count() const;
};
Span span_of(const Value& start, const Value& stop, const Value& step, int64_t n);
// A place within n, from the end where negative; an IndexError of that text otherwise.
int64_t place_of(int64_t i, int64_t n, const char* text);

}  // namespace flambeau::script
