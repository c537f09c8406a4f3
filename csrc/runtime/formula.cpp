#include "runtime/formula.h"

#include <cmath>

namespace flambeau::runtime {
namespace {

int64_t floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}

template <class Op>
Op operation(const Tree& step, int64_t count) {
  const int64_t op = step[0].integer();
  FB_CHECK_VALUE(op >= 0 && op < count, "a formula: there is no operation of number ", op);
  return static_cast<Op>(op);
}

}  // namespace

Formula::Formula(const Tree& steps) {
  int64_t depth = 0;
  for (const Tree& step : steps.items()) {
    Op op = operation<Op>(step, kFormulaOps);
    int64_t number = step[1].integer();
    FB_CHECK_VALUE(op != Load || number >= 0, "a formula: there is no symbol ", number);
    depth += op == Push || op == Load ? 1 : -1;
    FB_CHECK_VALUE(depth > 0, "a formula: an operation lacks an operand");
    steps_.push_back({op, number});
  }
  FB_CHECK_VALUE(depth == 1, "a formula: expected one result, got ", depth);
}

int64_t Formula::highest() const {
  int64_t found = -1;
  for (const Step& s : steps_)
    if (s.op == Load) found = std::max(found, s.number);
  return found;
}

bool Formula::evaluate(std::span<const int64_t> symbols, int64_t& out) const {
  SmallVector<int64_t, 16> stack;
  for (const Step& s : steps_) {
    if (s.op == Push || s.op == Load) {
      stack.push_back(s.op == Push ? s.number : symbols[static_cast<size_t>(s.number)]);
      continue;
    }
    int64_t b = stack.back();
    stack.pop_back();
    int64_t& a = stack.back();
    switch (s.op) {
      case Add:
        if (__builtin_add_overflow(a, b, &a)) return false;
        break;
      case Mul:
        if (__builtin_mul_overflow(a, b, &a)) return false;
        break;
      case Div:
      case Mod:
        if (b == 0 || (b == -1 && a == INT64_MIN)) return false;
        a = s.op == Div ? floor_div(a, b) : a - floor_div(a, b) * b;
        break;
      case Min:
        a = std::min(a, b);
        break;
      default:
        a = std::max(a, b);
        break;
    }
  }
  out = stack.back();
  return true;
}

Condition::Condition(const Tree& spec)
    : formula(spec[0]),
      relation(static_cast<Relation>(spec[1].integer_below(kRelations, "relation"))),
      text(spec[2].text()) {}

bool Condition::holds(std::span<const int64_t> symbols) const {
  int64_t v;
  if (!formula.evaluate(symbols, v)) return false;
  return relation == Relation::Zero ? v == 0 : relation == Relation::NotZero ? v != 0 : v >= 0;
}

FloatFormula::FloatFormula(const Tree& steps) {
  int64_t depth = 0;
  for (const Tree& step : steps.items()) {
    Op op = operation<Op>(step, kFloatOps);
    const Tree& number = step[1];
    double value = op == Push ? number.real() : 0;
    const int64_t index = op == Load ? number.integer() : 0;
    FB_CHECK_VALUE(index >= 0, "a formula: there is no number ", index);
    depth += op <= Load ? 1 : op <= Pow ? -1 : 0;
    FB_CHECK_VALUE(depth > 0, "a formula: an operation lacks an operand");
    steps_.push_back({op, value, index});
  }
  FB_CHECK_VALUE(depth == 1, "a formula: expected one result, got ", depth);
}

int64_t FloatFormula::highest() const {
  int64_t found = -1;
  for (const Step& s : steps_)
    if (s.op == Load) found = std::max(found, s.index);
  return found;
}

double FloatFormula::evaluate(std::span<const int64_t> integers) const {
  SmallVector<double, 16> stack;
  for (const Step& s : steps_) {
    if (s.op <= Load) {
      stack.push_back(s.op == Push ? s.number
                                   : static_cast<double>(integers[static_cast<size_t>(s.index)]));
      continue;
    }
    double b = stack.back();
    if (s.op <= Pow) stack.pop_back();
    double& a = stack.back();
    switch (s.op) {
      case Add:
        a += b;
        break;
      case Sub:
        a -= b;
        break;
      case Mul:
        a *= b;
        break;
      case Div:
        a /= b;
        break;
      case Pow:
        a = std::pow(a, b);
        break;
      case Sqrt:
        a = std::sqrt(a);
        break;
      case Exp:
        a = std::exp(a);
        break;
      case Log:
        a = std::log(a);
        break;
      case Cos:
        a = std::cos(a);
        break;
      case Sin:
        a = std::sin(a);
        break;
      default:
        break;
    }
  }
  return stack.back();
}

}  // namespace flambeau::runtime
