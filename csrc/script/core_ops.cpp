#include "script/core_ops.h"

#include <unordered_map>

#include "core/error.h"
#include "script/core_table.h"
#include "script/text.h"
#include "script/values.h"

namespace flambeau::script {

namespace {

bool one_of(char c, std::string_view letters) {
  return letters.find(c) != letters.npos;
}

bool matches(char pattern, char c) {
  switch (pattern) {
    case '*':
      return true;
    case '#':
      return one_of(c, "ifb");
    case 'N':
      return one_of(c, "ifbnc");
    case 'B':
      return one_of(c, "ib");
    case 'v':
      return one_of(c, "iS0Etb");
    case 'y':
      return one_of(c, "tifbn");
    case '&':
      return one_of(c, "oe0?btld");
    case '@':
      return one_of(c, "ifbncslpd0DVeo?");
    default:
      return pattern == c;
  }
}

bool matches(std::string_view pattern, std::string_view letters) {
  bool open = pattern.ends_with('~');
  if (open) pattern.remove_suffix(1);
  if (open ? letters.size() < pattern.size() : letters.size() != pattern.size()) return false;
  for (size_t i = 0; i < pattern.size(); ++i)
    if (!matches(pattern[i], letters[i])) return false;
  return true;
}

}  // namespace

CoreEntry find_core(std::string_view name, std::string_view letters, bool alone) {
  static const auto* index = [] {
    auto* map = new std::unordered_multimap<std::string, const CoreRow*>;
    for (auto rows : {number_rows(), container_rows(), tensor_rows(), data_rows(), text_rows()})
      for (const CoreRow& r : rows)
        map->emplace(r.name.starts_with("lib.") ? std::string(r.name)
                                                : "core." + std::string(r.name), &r);
    return map;
  }();
  auto [at, end] = index->equal_range(std::string(name));
  for (; at != end; ++at)
    if ((alone || !at->second->alone) && matches(at->second->pattern, letters))
      return {at->second->function, at->second->makes_list};
  return {};
}

char letter(const Type& t, const Unit& unit) {
  if (t.optional) return '?';
  if (t.is_list()) return 'l';
  static constexpr std::pair<std::string_view, char> plain[] = {
      {"int", 'i'},    {"float", 'f'}, {"bool", 'b'},     {"str", 's'},
      {"Number", 'n'}, {"complex", 'c'}, {"Dict", 'd'},   {"Tuple", 'p'},
      {"Tensor", 't'}, {"None", '0'},  {"Slice", 'S'},    {"Ellipsis", 'E'},
      {"DType", 'D'},  {"Device", 'V'}};
  for (auto& [name, c] : plain)
    if (t.base == name) return c;
  if (t.base.find('.') != t.base.npos)
    if (const Class* c = unit.find_class(t.base))
      return c->kind == "tuple" ? 'p' : c->kind == "enum" ? 'e' : 'o';
  return 'x';
}

void raise(const std::string& cls, const std::string& message) {
  static constexpr std::pair<std::string_view, ErrorKind> kinds[] = {
      {"ValueError", ErrorKind::Value},           {"TypeError", ErrorKind::Type},
      {"IndexError", ErrorKind::Index},           {"KeyError", ErrorKind::Key},
      {"AttributeError", ErrorKind::Attribute},   {"AssertionError", ErrorKind::Assertion},
      {"OverflowError", ErrorKind::Overflow},
      {"NotImplementedError", ErrorKind::NotImplemented}};
  ErrorKind kind = ErrorKind::Runtime;
  for (auto& [name, k] : kinds)
    if (cls == name) kind = k;
  throw Raised(kind, cls, message);
}

static std::string key_text(const Value& k) {
  return k.tag() == ValueTag::Object || k.is<Tensor>() ? "a key that is not there" : repr(k);
}
MissingKey::MissingKey(const Value& k) : Error(ErrorKind::Key, key_text(k)), key(k) {}

std::string show_float(double x) {
  return show(x);
}

}  // namespace flambeau::script
