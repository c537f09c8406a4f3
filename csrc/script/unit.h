// A program of scripts as data: functions of typed values, nodes and blocks, and the classes of
// their values. It is what the text of a file says (text.h) and what the machine is made from
// (lower.h). Knows no operation, no registers and no Python.
//
// A value is defined once, by the inputs of a block or by one node, before its uses; blocks see the
// values of the blocks around them. `check` holds a unit to that, and to the arity of what has
// blocks and of calls.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flambeau::script {

struct Type {
  std::string base;
  bool optional = false;
  int length = 0;  // Ints1, Ints2, Ints3: one number stands for that many
  std::vector<Type> items;

  bool operator==(const Type&) const = default;
  bool is(std::string_view name) const { return base == name && !optional; }
  bool is_list() const;
  Type element() const;  // of a list
};

// An argument of a node, or a constant of a class.
struct Arg {
  enum class Kind : uint8_t {
    Value,    // of the function: `index`
    None,
    Bool,     // in `whole`
    Int,
    BigInt,   // beyond 64 bits: in `text`
    Float,    // in `real`
    Complex,  // in `real`, `imag`
    Str,
    Device,   // in `text`
    Name,     // of a dtype, a layout or a memory format: in `text`
    Tuple,    // in `items`
    List,
    Dict      // an empty one
  };
  Kind kind = Kind::None;
  uint32_t index = 0;
  int64_t whole = 0;
  double real = 0, imag = 0;
  std::string text;
  std::string spelling;  // of a string: which characters Python escapes is a matter of Unicode
  std::vector<Arg> items;

  bool is_value() const { return kind == Kind::Value; }
};

struct IrValue {
  int64_t id;
  std::string name;  // the variable of the source that it is a version of
  Type type;
};

struct Node;

struct Block {
  std::vector<uint32_t> inputs;
  std::vector<Node> nodes;
  std::vector<Arg> outputs;

  bool ended() const;  // its last node leaves it
};

struct Node {
  std::string target;
  std::vector<Arg> args;
  std::vector<uint32_t> outs;
  std::vector<Block> blocks;
  int64_t line = -1;  // unknown where negative
  bool grad = true;  // else it runs as under no_grad
};

struct Default {
  bool kwonly = false;
  std::optional<Arg> value;  // none: required
};

struct Function {
  std::string name;
  Block body;
  Type returns;
  std::string file, where;  // file, and the function in it; empty: unknown
  int64_t line = 0;
  std::vector<IrValue> values;
  std::map<uint32_t, Default> defaults;  // by parameter
};

struct Attribute {
  std::string name;
  Type type;
  std::string place;  // the table of a module that has it, or none
  std::optional<Arg> initial;
};

struct Class {
  std::string name, kind;  // module, class, tuple, enum, library
  std::vector<Attribute> attributes;
  std::vector<std::pair<std::string, Arg>> members;           // of an enum
  std::vector<std::string> children;                          // submodules without a type
  std::vector<std::pair<std::string, std::string>> methods;  // and their functions

  const Attribute* attribute(std::string_view n) const;
  bool has_child(std::string_view n) const;
  size_t slots() const { return attributes.size() + children.size(); }
  size_t slot(std::string_view n) const;  // of an attribute or a child; `slots()` where none is
  const std::string* method(std::string_view n) const;
};

struct Unit {
  std::vector<Function> functions;
  std::vector<Class> classes;

  const Class* find_class(std::string_view name) const;
};

// Raises a ValueError that says what is not sound: where control, calls of functions and of
// entries, or values do not fit together. Types are their own word and are not looked at.
void check(const Unit& unit);

}  // namespace flambeau::script
