// Schemas: the signature of an operation as text, in the notation in which PyTorch writes them:
//
//   space::scale.out(Tensor x, float by=1., *, int[2] pad=0, Tensor(a!) out) -> Tensor(a!)
//
// A name with its namespace and overload; parameters with types, defaults, and what happens to
// their memory (`(a)`: a result may share it, `(a!)`: it is written to); results. `parse_schema`
// and `to_text` are inverse. Knows what the words are, no operation and nothing of calls.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dispatch/value.h"

namespace flambeau {

struct SchemaType {
  enum class Form : uint8_t { Name, List, Optional, Tuple, Dict, Future };
  Form form = Form::Name;
  std::string name;               // of a Name: "Tensor", "SymInt", "t"
  std::vector<SchemaType> items;  // what the other forms are made of
  int64_t length = 0;             // int[2]: one number stands for that many; 0: of any length

  bool is(std::string_view word) const { return form == Form::Name && name == word; }
  bool operator==(const SchemaType&) const = default;
};

// Sets of memory by name: those that a value may lie in, and, `after ->`, those it lies in later.
struct SchemaAlias {
  std::vector<std::string> before, after;
  bool write = false;
  bool operator==(const SchemaAlias&) const = default;
};

struct SchemaArgument {
  std::string name;  // a result need not have one
  SchemaType type;
  std::optional<SchemaAlias> alias;
  std::optional<Value> value;  // the default
  bool kwonly = false;

  bool is_written() const { return alias && alias->write; }
};

struct Schema {
  std::string name;      // "space::scale", or "scale" where no namespace is given
  std::string overload;  // "out"; empty for the one without a name
  std::vector<SchemaArgument> arguments, returns;
  bool more_arguments = false, more_returns = false;  // `...` ends the list

  std::string space() const;      // "space"; empty where there is none
  std::string full_name() const;  // "space::scale.out"
  bool is_mutable() const;        // an argument is written to
};

// Error(Runtime) that names the place and what was expected there.
Schema parse_schema(std::string_view text);
std::string to_text(const Schema& schema);
std::string to_text(const SchemaType& type);
// A default as it is written after `=` of a parameter of that type.
std::string default_text(const SchemaType& type, const Value& value);

}  // namespace flambeau
