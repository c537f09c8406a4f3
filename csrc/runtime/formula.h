// Formulas over symbols, as programs for a stack: how sizes that vary reach native code.
// flambeau/_ir/formula.py writes them, its numbers are the enumerations here. Knows no tensor.
#pragma once

#include <span>
#include <string>
#include <vector>

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
  enum Op : uint8_t { Push, Load, Add, Mul, Div, Mod, Min, Max };
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
  enum Relation : uint8_t { Zero, NotZero, NotNegative } relation;
  std::string text;
};

// A number computed in floating point from integer expressions, as Python computes it.
class FloatFormula {
 public:
  explicit FloatFormula(const Tree& steps);  // ((op, number or index of an integer), ...)
  double evaluate(std::span<const int64_t> integers) const;
  int64_t highest() const;  // of the integers it loads; -1: none

 private:
  enum Op : uint8_t { Push, Load, Add, Sub, Mul, Div, Pow, Float, Sqrt, Exp, Log, Cos, Sin };
  struct Step {
    Op op;
    double number;
    int64_t index;
  };
  std::vector<Step> steps_;
};

}  // namespace flambeau::runtime
