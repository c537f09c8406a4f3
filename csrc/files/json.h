// JSON (RFC 8259) as a tree. Invariant: the text is UTF-8, no name stands twice in an object, depth
// is bounded, and memory by the text; all else is Error(Value) with the place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flambeau::files {

struct Json {
  enum class Kind : uint8_t { Null, Bool, Integer, Real, Text, List, Object };
  Kind kind = Kind::Null;
  int64_t integer = 0;  // of Bool too; numbers beyond 64 bits are Real
  double real = 0;
  std::string text;
  std::vector<Json> items;         // of lists, and the values of objects
  std::vector<std::string> names;  // of objects, in the order of the text

  bool is(Kind k) const { return kind == k; }
  const Json* find(std::string_view name) const;  // null: there is none
};

Json parse_json(std::string_view text);
bool is_utf8(std::string_view text);

}  // namespace flambeau::files
