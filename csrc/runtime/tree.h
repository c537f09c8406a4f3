// Plain data: how a description of native code comes to it, from Python (python/tree.h) or from the
// text of a file. A tree is a leaf, which is a number, a string, a small constant of the library, a
// tensor or nothing, or it is a list of trees. Reading what is not as expected is Error(Type).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dispatch/op.h"

namespace flambeau::runtime {

class Tree {
 public:
  Tree() = default;
  explicit Tree(Value leaf) : leaf_(std::move(leaf)) {}
  explicit Tree(std::vector<Tree> items) : items_(std::move(items)), list_(true) {}

  bool is_list() const noexcept { return list_; }
  bool is_none() const noexcept { return !list_ && leaf_.is_none(); }
  const Value& leaf() const;  // of what is no list
  const std::vector<Tree>& items() const;
  const Tree& operator[](size_t i) const;
  size_t size() const { return items().size(); }

  // What a leaf says.
  int64_t integer() const;
  int64_t integer_below(size_t bound, const char* what) const;  // Error(Value) for one that is not
  double real() const;
  bool truth() const;
  const std::string& text() const;
  DType dtype() const;

 private:
  Value leaf_;
  std::vector<Tree> items_;
  bool list_ = false;
};

// The value of a parameter of an entry.
Value value_of(const ParamDesc& p, const Tree& t);

// The tree of a text that flambeau/_ir/plain.py wrote; Error(Value) for another text.
Tree parse_tree(std::string_view text);

}  // namespace flambeau::runtime
