// L-BFGS: directions from the last few changes of point and gradient, as Python's, number for
// number. Nocedal, Wright, "Numerical Optimization", 2nd edition, algorithms 7.4 and 7.5; the line
// search is 3.5 and 3.6 there, with the safeguards of Schmidt's minFunc (2005).
#include <cmath>

#include "flambeau/serialize.h"
#include "gen/ops.h"

namespace flambeau::optim {

namespace {

// A number of Python: a float, or a tensor of one element, whose dtype rounds what is made of it.
class Number {
 public:
  Number(double x = 0) : real_(x) {}
  Number(Tensor x) : tensor_(std::move(x)) {}
  double real() const { return tensor_.defined() ? tensor_.item<double>() : real_; }
  Tensor tensor() const { return tensor_.defined() ? tensor_ : wrapped_number(real_); }
  bool is_tensor() const { return tensor_.defined(); }
  IValue value() const { return is_tensor() ? IValue(tensor_) : IValue(real_); }

#define FB_NUMBER(op, name)                                                  \
  friend Number operator op(const Number& a, const Number& b) {              \
    if (!a.is_tensor() && !b.is_tensor()) return Number(a.real_ op b.real_); \
    return Number(ops::name(a.tensor(), b.tensor()));                        \
  }
  FB_NUMBER(+, add)
  FB_NUMBER(-, sub)
  FB_NUMBER(*, mul)
  FB_NUMBER(/, div)
#undef FB_NUMBER
#define FB_NUMBER(op, name)                                          \
  friend bool operator op(const Number& a, const Number& b) {        \
    if (!a.is_tensor() && !b.is_tensor()) return a.real_ op b.real_; \
    return ops::name(a.tensor(), b.tensor()).item<bool>();           \
  }
  FB_NUMBER(<, lt)
  FB_NUMBER(<=, le)
  FB_NUMBER(>, gt)
  FB_NUMBER(>=, ge)
  FB_NUMBER(==, eq)
#undef FB_NUMBER

 private:
  Tensor tensor_;
  double real_ = 0;
};
Number magnitude(const Number& x) {
  return x.is_tensor() ? Number(ops::abs(x.tensor())) : Number(std::abs(x.real()));
}
Number root(const Number& x) {
  return x.is_tensor() ? Number(ops::pow(x.tensor(), wrapped_number(0.5)))
                       : Number(std::pow(x.real(), 0.5));
}
// The first of those that are least, or largest.
Number least(const Number& a, const Number& b) {
  return b < a ? b : a;
}
Number most(const Number& a, const Number& b) {
  return b > a ? b : a;
}

struct Point {
  Number t;
  double loss = 0;
  Tensor grad;
  Number slope;
};

// Minimiser, between low and high, of the cubic through two points and their slopes.
Number cubic_minimum(const Point& a, const Point& b, const Number& low, const Number& high) {
  const Number d1 = a.slope + b.slope - Number(3 * (a.loss - b.loss)) / (a.t - b.t);
  const Number square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0.0)) return (low + high) / 2.0;
  const Number d2 = root(square);
  const bool ordered = a.t <= b.t;
  const Point &first = ordered ? a : b, &last = ordered ? b : a;
  const Number curvature = last.slope - first.slope + Number(2.0) * d2;
  if (curvature == 0.0) return (low + high) / 2.0;
  const Number best = last.t - (last.t - first.t) * ((last.slope + d2 - d1) / curvature);
  return least(most(best, low), high);
}

// Moves a trial that keeps falling at an end of the bracket a tenth of its width inside.
Number off_the_edges(const Number& t, const Number& left, const Number& right, bool& stalled) {
  const Number margin = Number(0.1) * (right - left);
  if (least(right - t, t - left) >= margin) {
    stalled = false;
    return t;
  }
  if (stalled || t >= right || t <= left) {
    stalled = false;
    return magnitude(t - right) < magnitude(t - left) ? right - margin : left + margin;
  }
  stalled = true;
  return t;
}

constexpr double kSufficientDecrease = 1e-4, kCurvature = 0.9, kToleranceChange = 1e-9;
constexpr int kMaxEvals = 25;

// A step that decreases the loss enough and flattens the slope, and the number of evaluations.
template <class F>
std::pair<Point, int> strong_wolfe(F evaluate, const Point& start, Number t, double direction) {
  const auto too_high = [&](const Point& p) {
    return Number(p.loss) > Number(start.loss) + Number(kSufficientDecrease) * p.t * start.slope;
  };
  const auto flat = [&](const Point& p) {
    return magnitude(p.slope) <= Number(-kCurvature) * start.slope;
  };
  // Grow the step until a bracket holds a good point, or the point is good itself.
  Point previous = start, next = evaluate(t), ends[2];
  int trials = 0;
  while (true) {
    if (trials == kMaxEvals) {
      ends[0] = start, ends[1] = next;
      break;
    }
    if (too_high(next) || (trials > 1 && next.loss >= previous.loss)) {
      ends[0] = previous, ends[1] = next;
      break;
    }
    if (flat(next)) return {next, trials + 1};
    if (next.slope >= 0.0) {
      ends[0] = previous, ends[1] = next;
      break;
    }
    t = cubic_minimum(previous, next, next.t + Number(0.01) * (next.t - previous.t),
                      next.t * Number(10.0));
    previous = next;
    next = evaluate(t);
    ++trials;
  }
  // Narrow it.
  int low = ends[0].loss <= ends[1].loss ? 0 : 1;
  bool stalled = false;
  while (trials < kMaxEvals) {
    const bool ordered = !(ends[1].t < ends[0].t);
    const Number left = ends[ordered ? 0 : 1].t, right = ends[ordered ? 1 : 0].t;
    if ((right - left) * Number(direction) < Number(kToleranceChange)) break;
    t = cubic_minimum(ends[0], ends[1], least(ends[0].t, ends[1].t), most(ends[0].t, ends[1].t));
    t = off_the_edges(t, left, right, stalled);
    next = evaluate(t);
    ++trials;
    if (too_high(next) || next.loss >= ends[low].loss) {
      ends[1 - low] = next;
      low = ends[0].loss <= ends[1].loss ? 0 : 1;
      continue;
    }
    if (flat(next)) {
      ends[low] = next;
      break;
    }
    if (next.slope * (ends[1 - low].t - ends[low].t) >= 0.0) ends[1 - low] = ends[low];
    ends[low] = next;
  }
  return {ends[low], trials + 1};
}

Tensor as_real(const Tensor& x) {
  return x.is_complex() ? ops::view_as_real(x) : x;
}
double largest(const Tensor& x) {
  return ops::max(ops::abs(x)).item<double>();
}

}  // namespace

// What a step leaves for the next.
struct LBFGS::Memory {
  bool begun = false;
  int64_t func_evals = 0, n_iter = 0;
  Tensor d, prev_flat_grad;
  Number t, h_diag = 1.0;
  std::vector<Tensor> old_dirs, old_stps, ro;
  double prev_loss = 0;
};

LBFGS::LBFGS(std::vector<OptimizerParamGroup> groups, LBFGSOptions defaults)
    : Optimizer(std::move(groups), defaults.clone()), memory_(std::make_unique<Memory>()) {
  FB_CHECK_VALUE(param_groups().size() == 1,
                 "LBFGS doesn't support per-parameter options (parameter groups)");
  FB_CHECK_VALUE(defaults.lr() >= 0, "Invalid learning rate: ", defaults.lr());
  auto& o = static_cast<LBFGSOptions&>(param_groups()[0].options());
  if (!o.max_eval()) o.max_eval(o.max_iter() * 5 / 4);
}
LBFGS::~LBFGS() = default;

void LBFGS::init_state(const Tensor&, State&, const OptimizerOptions&) {}
void LBFGS::update(Part&, const OptimizerOptions&) {}

Tensor LBFGS::flat_grad() {
  std::vector<Tensor> pieces;
  for (const Tensor& p : parameters()) {
    const Tensor grad = p.grad();
    pieces.push_back(ops::reshape(as_real(grad.defined() ? grad : ops::zeros_like(p)), Ints{-1}));
  }
  return ops::cat(pieces, 0);
}
void LBFGS::move(double t, const Tensor& direction) {
  int64_t offset = 0;
  for (const Tensor& p : parameters()) {
    const Tensor target = as_real(p);
    const int64_t count = target.numel();
    const Tensor piece = direction.slice(0, offset, offset + count);
    ops::add_(target, ops::reshape(piece, target.sizes()), Scalar(t));
    offset += count;
  }
}

// Minus the approximate inverse Hessian times the gradient (two-loop recursion).
Tensor LBFGS::direction(const Tensor& grad, int64_t history) {
  constexpr double kMinCurvature = 1e-10;
  Memory& m = *memory_;
  if (m.n_iter == 1) {
    m.old_dirs.clear();
    m.old_stps.clear();
    m.ro.clear();
    m.h_diag = 1.0;
    return ops::neg(grad);
  }
  const Tensor change = ops::sub(grad, m.prev_flat_grad);
  const Tensor step = ops::mul(m.d, m.t.tensor());
  const Tensor curvature = ops::dot(change, step);
  if (curvature.item<double>() > kMinCurvature) {
    if (static_cast<int64_t>(m.old_dirs.size()) == history)
      for (auto* kept : {&m.old_dirs, &m.old_stps, &m.ro}) kept->erase(kept->begin());
    m.old_dirs.push_back(change);
    m.old_stps.push_back(step);
    m.ro.push_back((Number(1.0) / Number(curvature)).tensor());
    m.h_diag = Number(ops::div(curvature, ops::dot(change, change)));
  }
  std::vector<Tensor> weights(m.old_dirs.size());
  const Tensor r = ops::neg(grad);
  for (size_t i = m.old_dirs.size(); i-- > 0;) {
    weights[i] = ops::mul(ops::dot(m.old_stps[i], r), m.ro[i]);
    ops::add_(r, m.old_dirs[i], Scalar(-weights[i].item<double>()));
  }
  ops::mul_(r, m.h_diag.tensor());
  for (size_t i = 0; i < m.old_dirs.size(); ++i) {
    const Tensor more = ops::sub(weights[i], ops::mul(ops::dot(m.old_dirs[i], r), m.ro[i]));
    ops::add_(r, m.old_stps[i], Scalar(more.item<double>()));
  }
  return r;
}

Tensor LBFGS::step(LossClosure given) {
  FB_CHECK(given, "LBFGS optimizer requires a closure function");
  NoGradGuard no_grad;
  const auto closure = [&] {
    GradGuard grad(true);
    return given();
  };
  const auto& o = static_cast<const LBFGSOptions&>(param_groups()[0].options());
  const std::string search = o.line_search_fn().value_or("");
  FB_CHECK(search.empty() || search == "strong_wolfe", "only 'strong_wolfe' is supported");
  Memory& m = *memory_;
  const Tensor first_loss = closure();
  double loss = first_loss.item<double>();
  Tensor grad = flat_grad();
  int64_t evals = 1;
  ++m.func_evals;
  if (largest(grad) <= o.tolerance_grad()) return first_loss;
  const int64_t most_evals = o.max_eval().value_or(o.max_iter() * 5 / 4);
  for (int64_t n = 1; n <= o.max_iter(); ++n) {
    ++m.n_iter;
    m.begun = true;
    const Tensor d = direction(grad, o.history_size());
    m.d = d;
    m.prev_flat_grad = grad;
    m.prev_loss = loss;
    const Number slope(ops::dot(grad, d));
    Number t = o.lr();
    if (m.n_iter == 1) {
      const double inverse = (Number(1.0) / Number(ops::sum(ops::abs(grad)))).real();
      t = Number(std::min(1.0, inverse) * o.lr());
    }
    m.t = t;
    if (slope > Number(-o.tolerance_change())) break;
    Point point{t, loss, grad, slope};
    int used = 0;
    if (search.empty()) {
      move(t.real(), d);
      if (n != o.max_iter()) {  // else nobody will look at the gradient there
        point.loss = closure().item<double>();
        point.grad = flat_grad();
        used = 1;
      }
    } else {
      std::vector<Tensor> origin;
      for (const Tensor& p : parameters())
        origin.push_back(ops::clone(p, MemoryFormat::Contiguous));
      const auto evaluate = [&](const Number& length) {
        move(length.real(), d);
        const double l = closure().item<double>();
        const Tensor g = flat_grad();
        for (size_t i = 0; i < origin.size(); ++i) parameters()[i].copy_(origin[i]);
        return Point{length, l, g, Number(ops::dot(g, d))};
      };
      std::tie(point, used) = strong_wolfe(evaluate, {0.0, loss, grad, slope}, t, largest(d));
      move(point.t.real(), d);
    }
    m.t = point.t;
    loss = point.loss;
    grad = point.grad;
    evals += used;
    m.func_evals += used;
    if (evals >= most_evals || largest(grad) <= o.tolerance_grad() ||
        Number(largest(d)) * point.t <= Number(o.tolerance_change()) ||
        std::abs(loss - m.prev_loss) < o.tolerance_change())
      break;
  }
  return first_loss;
}

IValue LBFGS::written(const Tensor& param) const {
  const Memory& m = *memory_;
  if (!param.is_same(param_groups()[0].params()[0]) || m.func_evals == 0)
    return serialize::dict_of({});
  std::vector<std::pair<IValue, IValue>> out{{"func_evals", m.func_evals}, {"n_iter", m.n_iter}};
  const auto list = [](const std::vector<Tensor>& xs) {
    return IValue(Value(Tensors(xs.begin(), xs.end())));
  };
  if (m.begun) {
    out.emplace_back("d", m.d);
    out.emplace_back("t", m.t.value());
    out.emplace_back("old_dirs", list(m.old_dirs));
    out.emplace_back("old_stps", list(m.old_stps));
    out.emplace_back("ro", list(m.ro));
    out.emplace_back("H_diag", m.h_diag.is_tensor() ? m.h_diag.value() : IValue(1));
    out.emplace_back("prev_flat_grad", m.prev_flat_grad);
    out.emplace_back("prev_loss", m.prev_loss);
  }
  return serialize::dict_of(std::move(out));
}
void LBFGS::read(const Tensor& param, const IValue& value) {
  if (!param.is_same(parameters()[0])) return;
  Memory made;
  serialize::InputArchive from(value);
  IValue x;
  const auto number = [&](const char* name) {
    from.read(name, x);
    return x.isTensor() ? Number(x.toTensor()) : Number(x.toScalar().to_double());
  };
  const auto tensors = [&](const char* name) {
    std::vector<Tensor> out;
    from.read(name, x);
    for (const IValue& item : x.toListRef()) out.push_back(item.toTensor());
    return out;
  };
  made.func_evals = static_cast<int64_t>(number("func_evals").real());
  made.n_iter = static_cast<int64_t>(number("n_iter").real());
  made.begun = from.try_read("d", made.d);
  if (made.begun) {
    made.t = number("t");
    made.h_diag = number("H_diag");
    made.prev_loss = number("prev_loss").real();
    from.read("prev_flat_grad", made.prev_flat_grad);
    made.old_dirs = tensors("old_dirs");
    made.old_stps = tensors("old_stps");
    made.ro = tensors("ro");
    FB_CHECK_VALUE(
        made.old_dirs.size() == made.old_stps.size() && made.old_dirs.size() == made.ro.size(),
        "load: the lists of an LBFGS state have different lengths");
  }
  *memory_ = std::move(made);
}

}  // namespace flambeau::optim
