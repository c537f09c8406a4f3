// Text of values, and which types they are of.
#include <cstdio>

#include "core/error.h"
#include "core/warning.h"
#include "script/core_ops.h"
#include "script/core_table.h"
#include "script/run.h"
#include "script/values.h"

namespace flambeau::script {

namespace {

using Args = const Value* const*;
using Tag = ValueTag;

// Calls `text` with what stands between fields, `field` with the number of each argument. False
// where there is more in it than that.
template <class Text, class Field>
bool walk_format(std::string_view format, Text text, Field field) {
  size_t next = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    char c = format[i];
    if (c != '{' && c != '}') {
      text(c);
      continue;
    }
    if (i + 1 < format.size() && format[i + 1] == c) {
      text(c);
      ++i;
      continue;
    }
    if (c == '}' || i + 1 >= format.size() || format[i + 1] != '}') return false;
    if (!field(next++)) return false;
    ++i;
  }
  return true;
}

void print(Args a, size_t n, Value* out) {
  std::string line;
  for (size_t i = 0; i < n; ++i) line += (i ? " " : "") + to_text(*a[i]);
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stdout);
  out->clear();
}
void show_value(Args a, size_t, Value* out) {
  *out = Value(to_text(*a[0]));
}
void warning(Args a, size_t, Value* out) {
  warn(a[0]->get<std::string>());
  out->clear();
}

template <char first, char last, int step>
void change_case(Args a, size_t, Value* out) {
  std::string s = a[0]->get<std::string>();
  for (char& c : s) {
    FB_CHECK_VALUE(!(c & 0x80), "text other than ASCII is changed by Python alone");
    if (c >= first && c <= last) c = static_cast<char>(c + step);
  }
  *out = Value(std::move(s));
}

constexpr CoreRow kRows[] = {
    {"print", "~", print, false, true},
    {"str", "*", show_value, false, true},
    {"warn", "s", warning, false, true},
    {"upper", "s", change_case<'a', 'z', 'A' - 'a'>, false, true},
    {"lower", "s", change_case<'A', 'Z', 'a' - 'A'>, false, true},
};

bool all_hold(const Value& list, const Type& t) {
  static constexpr std::pair<Tag, std::string_view> plain[] = {
      {Tag::Ints, "int"}, {Tag::Floats, "float"}, {Tag::Bools, "bool"}, {Tag::Tensors, "Tensor"}};
  for (auto& [tag, base] : plain)
    if (list.tag() == tag && t.base == base) return true;
  for (int64_t i = 0; i < list_size(list); ++i)
    if (!holds(list_item(list, i), t)) return false;
  return true;
}

}  // namespace

std::span<const CoreRow> text_rows() {
  return kRows;
}

bool holds(const Value& v, const Type& t) {
  const std::string& base = t.base;
  if (v.is_none()) return t.optional || base == "None" || base == "Any";
  if (base == "Any") return true;
  if (base == "Union") {
    for (const Type& m : t.items)
      if (holds(v, m)) return true;
    return false;
  }
  static constexpr std::pair<std::string_view, Tag> plain[] = {
      {"Tensor", Tag::Tensor}, {"int", Tag::Int},         {"float", Tag::Float},
      {"bool", Tag::Bool},     {"str", Tag::Str},         {"complex", Tag::Complex},
      {"DType", Tag::DType},   {"Device", Tag::Device},   {"Layout", Tag::Layout},
      {"Generator", Tag::Generator}, {"MemoryFormat", Tag::MemoryFormat}};
  for (auto& [name, tag] : plain)
    if (base == name) return v.tag() == tag || (tag == Tag::Int && v.tag() == Tag::UInt);
  if (base == "Number")
    return (v.tag() >= Tag::Bool && v.tag() <= Tag::Float) || v.is<complex128>();
  if (t.is_list()) return is_list(v) && all_hold(v, t.element());
  if (base == "Tuple") {
    auto* x = box_of<Tuple>(v);
    if (!x || x->items.size() != t.items.size()) return false;
    for (size_t i = 0; i < x->items.size(); ++i)
      if (!holds(x->items[i], t.items[i])) return false;
    return true;
  }
  if (base == "Dict" && t.items.size() == 2) {
    auto* d = box_of<Dict>(v);
    bool all = d != nullptr;
    if (d)
      d->each([&](const Value& k, const Value& x) {
        all = all && holds(k, t.items[0]) && holds(x, t.items[1]);
      });
    return all;
  }
  if (auto* x = box_of<Tuple>(v)) return x->name == base;
  auto* o = dynamic_cast<Object*>(box_of<Instance>(v));
  return o && o->owner->name == base;
}

void core_isinstance(Args a, size_t, Value* out) {
  bool on = false;
  for (const Type& t : box_of<Types>(*a[1])->types) on = on || holds(*a[0], t);
  out->put(on);
}

bool is_plain_format(std::string_view text, size_t count) {
  return walk_format(text, [](char) {}, [count](size_t i) { return i < count; });
}

void core_format(Args a, size_t n, Value* out) {
  std::string made;
  bool plain = walk_format(
      a[0]->get<std::string>(), [&](char c) { made += c; },
      [&](size_t i) {
        if (i + 1 < n) made += to_text(*a[i + 1]);
        return i + 1 < n;
      });
  FB_CHECK_VALUE(plain, "format: expected plain fields, one for each argument");
  *out = Value(std::move(made));
}

}  // namespace flambeau::script
