// Formulas over symbols, as programs for a stack: how sizes that vary reach native code.
// flambeau/_ir/formula.py writes them. Knows no tensor.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gen/enumerations.h"
#include "runtime/tree.h"

namespace flambeau::runtime {

// An integer expression.
class Formula {
 public:
  explicit Formula(const Tree& steps);  // ((op, number), ...)
  // False where the value does not exist: a division by zero or an overflow.
  bool evaluate(std::span<const int64_t> symbols, int64_t& out) const;
  int64_t highest() const;  // of the symbols it loads; -1: none

 private:
  using Op = FormulaOp;
  using enum FormulaOp;
  struct Step {
    Op op;
    int64_t number;
  };
  std::vector<Step> steps_;
};

// What must hold of an integer expression.
struct Condition {
  explicit Condition(const Tree& spec);  // (steps, relation, text)
  bool holds(std::span<const int64_t> symbols) const;

  Formula formula;
  Relation relation;
  std::string text;
};

// A number computed in floating point from integer expressions, as Python computes it.
class FloatFormula {
 public:
  explicit FloatFormula(const Tree& steps);  // ((op, number or index of an integer), ...)
  double evaluate(std::span<const int64_t> integers) const;
  int64_t highest() const;  // of the integers it loads; -1: none

 private:
  using Op = FloatOp;
  using enum FloatOp;
  struct Step {
    Op op;
    double number;
    int64_t index;
  };
  std::vector<Step> steps_;
};

}  // namespace flambeau::runtime
