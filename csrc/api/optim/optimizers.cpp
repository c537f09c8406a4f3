#include "flambeau/optim.h"

#include <cmath>
#include <set>

#include "gen/ops.h"

namespace flambeau::optim {

Optimizer::Optimizer(std::vector<OptimizerParamGroup> groups,
                     std::unique_ptr<OptimizerOptions> defaults)
    : defaults_(std::move(defaults)) {
  for (const auto& group : groups) add_param_group(group);
}

Optimizer::~Optimizer() = default;

static std::vector<OptimizerParamGroup> one_group(std::vector<Tensor> params) {
  return {OptimizerParamGroup(std::move(params))};
}
#define FB_PARAMS(Name)                                           \
  Name::Name(std::vector<Tensor> params, Name##Options defaults)  \
      : Name(one_group(std::move(params)), std::move(defaults)) {}
#define FB_PARAMS_ALONE(Name) \
  Name::Name(std::vector<Tensor> params) : Name(std::move(params), Name##Options()) {}
FB_PARAMS(SGD)
FB_PARAMS(Adam)
FB_PARAMS(AdamW)
FB_PARAMS(RMSprop)
FB_PARAMS(Adagrad)
FB_PARAMS(LBFGS)
FB_PARAMS_ALONE(Adam)
FB_PARAMS_ALONE(AdamW)
FB_PARAMS_ALONE(RMSprop)
FB_PARAMS_ALONE(Adagrad)
FB_PARAMS_ALONE(LBFGS)
#undef FB_PARAMS_ALONE
#undef FB_PARAMS

void Optimizer::add_param_group(const OptimizerParamGroup& given) {
  OptimizerParamGroup group = given;
  std::set<TensorImpl*> seen;
  for (const auto& g : groups_)
    for (const Tensor& p : g.params()) seen.insert(p.impl());
  for (const Tensor& p : group.params()) {
    FB_CHECK_VALUE(p.defined() && p.is_leaf(), "can't optimize a non-leaf Tensor");
    FB_CHECK_VALUE(seen.insert(p.impl()).second,
                   "some parameters appear in more than one parameter group");
  }
  if (!group.has_options()) group.set_options(defaults_->clone());
  groups_.push_back(std::move(group));
}

Optimizer::State& Optimizer::state_of(const Tensor& param) {
  return state_[param.impl()];
}
size_t Optimizer::size() const noexcept {
  size_t n = 0;
  for (const auto& g : groups_) n += g.params().size();
  return n;
}

void Optimizer::zero_grad(bool set_to_none) {
  for (auto& g : groups_) {
    for (const Tensor& p : g.params()) {
      Tensor& grad = p.mutable_grad();
      if (!grad.defined()) continue;
      if (set_to_none)
        grad.reset();
      else
        grad.detach_().zero_();
    }
  }
}

std::vector<Tensor> Optimizer::Part::state(const std::string& name) const {
  std::vector<Tensor> out;
  for (State* s : states) out.push_back(s->at(name));
  return out;
}
std::vector<double> Optimizer::Part::steps() const {
  std::vector<double> out;
  for (State* s : states) out.push_back(s->at("step").item<double>());
  return out;
}

Tensor Optimizer::step(LossClosure closure) {
  Tensor loss;
  if (closure) {
    GradGuard grad(true);
    loss = closure();
  }
  NoGradGuard no_grad;
  for (auto& group : groups_) {
    // Parameters whose state begins with this step are updated by themselves: their count differs.
    std::map<double, Part> parts;
    for (const Tensor& p : group.params()) {
      Tensor grad = p.grad();
      if (!grad.defined()) continue;
      State& state = state_of(p);
      if (state.empty()) init_state(p, state, group.options());
      auto count = state.find("step");
      Part& part = parts[count == state.end() ? !state.empty() : count->second.item<double>()];
      part.params.push_back(p);
      part.grads.push_back(std::move(grad));
      part.states.push_back(&state);
    }
    for (auto& [count, part] : parts) update(part, group.options());
  }
  return loss;
}

namespace {

Tensor zeros_of(const Tensor& param) {
  return ops::zeros_like(param, std::nullopt, std::nullopt, MemoryFormat::Preserve);
}
Tensor no_steps() {
  return ops::zeros(Ints{}, DType::Float32);
}
void at_least(double x, double least, const char* what) {
  FB_CHECK_VALUE(x >= least, "Invalid ", what, ": ", x);
}

template <class O>
void check_adam(const O& o) {
  at_least(o.lr(), 0, "learning rate");
  at_least(o.eps(), 0, "epsilon value");
  at_least(o.weight_decay(), 0, "weight_decay value");
  auto [b1, b2] = o.betas();
  FB_CHECK_VALUE(b1 >= 0 && b1 < 1, "Invalid beta parameter at index 0: ", b1);
  FB_CHECK_VALUE(b2 >= 0 && b2 < 1, "Invalid beta parameter at index 1: ", b2);
}

}  // namespace

// SGD

SGD::SGD(std::vector<OptimizerParamGroup> groups, SGDOptions defaults)
    : Optimizer(std::move(groups), defaults.clone()) {
  at_least(defaults.lr(), 0, "learning rate");
  at_least(defaults.momentum(), 0, "momentum value");
  at_least(defaults.weight_decay(), 0, "weight_decay value");
  FB_CHECK_VALUE(!defaults.nesterov() || (defaults.momentum() > 0 && defaults.dampening() == 0),
                 "Nesterov momentum requires a momentum and zero dampening");
}
// The buffer is there from the second step on, and is all that there is.
void SGD::init_state(const Tensor&, State&, const OptimizerOptions&) {}
void SGD::update(Part& part, const OptimizerOptions& options) {
  const auto& o = static_cast<const SGDOptions&>(options);
  bool first = true;
  std::vector<Tensor> buffers;
  for (size_t i = 0; o.momentum() != 0 && i < part.params.size(); ++i) {
    auto [at, fresh] = part.states[i]->emplace("momentum_buffer", Tensor());
    if (fresh) at->second = zeros_of(part.params[i]);
    first = fresh;
    buffers.push_back(at->second);
  }
  ops::_fused_sgd_(part.params, part.grads, buffers, o.lr(), o.momentum(), o.dampening(),
                   o.weight_decay(), o.nesterov(), o.maximize(), first);
}

// Adam and AdamW

namespace {
template <class O, class State>
void init_adam(const Tensor& param, State& state, const O& o) {
  state["step"] = no_steps();
  state["exp_avg"] = zeros_of(param);
  state["exp_avg_sq"] = zeros_of(param);
  if (o.amsgrad()) state["max_exp_avg_sq"] = zeros_of(param);
}
template <class O, class Part>
void update_adam(Part& part, const O& o, bool decoupled) {
  auto [beta1, beta2] = o.betas();
  ops::_fused_adam_(part.params, part.grads, part.state("exp_avg"), part.state("exp_avg_sq"),
                    o.amsgrad() ? part.state("max_exp_avg_sq") : std::vector<Tensor>(),
                    part.state("step"), o.lr(), beta1, beta2, o.eps(), o.weight_decay(),
                    o.amsgrad(), o.maximize(), decoupled);
}
}  // namespace

Adam::Adam(std::vector<OptimizerParamGroup> groups, AdamOptions defaults)
    : Optimizer(std::move(groups), defaults.clone()) {
  check_adam(defaults);
}
void Adam::init_state(const Tensor& param, State& state, const OptimizerOptions& options) {
  init_adam(param, state, static_cast<const AdamOptions&>(options));
}
void Adam::update(Part& part, const OptimizerOptions& options) {
  update_adam(part, static_cast<const AdamOptions&>(options), false);
}

AdamW::AdamW(std::vector<OptimizerParamGroup> groups, AdamWOptions defaults)
    : Optimizer(std::move(groups), defaults.clone()) {
  check_adam(defaults);
}
void AdamW::init_state(const Tensor& param, State& state, const OptimizerOptions& options) {
  init_adam(param, state, static_cast<const AdamWOptions&>(options));
}
void AdamW::update(Part& part, const OptimizerOptions& options) {
  update_adam(part, static_cast<const AdamWOptions&>(options), true);
}

// RMSprop

RMSprop::RMSprop(std::vector<OptimizerParamGroup> groups, RMSpropOptions defaults)
    : Optimizer(std::move(groups), defaults.clone()) {
  at_least(defaults.lr(), 0, "learning rate");
  at_least(defaults.eps(), 0, "epsilon value");
  at_least(defaults.momentum(), 0, "momentum value");
  at_least(defaults.weight_decay(), 0, "weight_decay value");
  at_least(defaults.alpha(), 0, "alpha value");
}
void RMSprop::init_state(const Tensor& param, State& state, const OptimizerOptions& options) {
  const auto& o = static_cast<const RMSpropOptions&>(options);
  state["step"] = no_steps();
  state["square_avg"] = zeros_of(param);
  if (o.momentum() > 0) state["momentum_buffer"] = zeros_of(param);
  if (o.centered()) state["grad_avg"] = zeros_of(param);
}
void RMSprop::update(Part& part, const OptimizerOptions& options) {
  const auto& o = static_cast<const RMSpropOptions&>(options);
  std::vector<Tensor> grads = part.grads, squares = part.state("square_avg"), variances = squares;
  ops::_foreach_add_(part.state("step"), Scalar(1));
  if (o.weight_decay() != 0) grads = ops::_foreach_add(grads, part.params, o.weight_decay());
  ops::_foreach_mul_(squares, Scalar(o.alpha()));
  ops::_foreach_addcmul_(squares, grads, grads, Scalar(1 - o.alpha()));
  if (o.centered()) {
    const std::vector<Tensor> means = part.state("grad_avg");
    ops::_foreach_lerp_(means, grads, Scalar(1 - o.alpha()));
    variances = ops::_foreach_mul(squares, Scalar(1.0));
    ops::_foreach_addcmul_(variances, means, means, Scalar(-1));
  }
  const std::vector<Tensor> denominators = ops::_foreach_sqrt(variances);
  ops::_foreach_add_(denominators, Scalar(o.eps()));
  if (o.momentum() > 0) {
    const std::vector<Tensor> buffers = part.state("momentum_buffer");
    ops::_foreach_mul_(buffers, Scalar(o.momentum()));
    ops::_foreach_addcdiv_(buffers, grads, denominators);
    ops::_foreach_add_(part.params, buffers, -o.lr());
  } else {
    ops::_foreach_addcdiv_(part.params, grads, denominators, Scalar(-o.lr()));
  }
}

// Adagrad

Adagrad::Adagrad(std::vector<OptimizerParamGroup> groups, AdagradOptions defaults)
    : Optimizer(std::move(groups), defaults.clone()) {
  at_least(defaults.lr(), 0, "learning rate");
  at_least(defaults.lr_decay(), 0, "lr_decay value");
  at_least(defaults.weight_decay(), 0, "weight_decay value");
  at_least(defaults.initial_accumulator_value(), 0, "initial_accumulator_value value");
  at_least(defaults.eps(), 0, "epsilon value");
}
void Adagrad::init_state(const Tensor& param, State& state, const OptimizerOptions& options) {
  state["step"] = no_steps();
  state["sum"] = zeros_of(param).fill_(
      static_cast<const AdagradOptions&>(options).initial_accumulator_value());
}
void Adagrad::update(Part& part, const OptimizerOptions& options) {
  const auto& o = static_cast<const AdagradOptions&>(options);
  std::vector<Tensor> grads = part.grads;
  const std::vector<Tensor> sums = part.state("sum");
  ops::_foreach_add_(part.state("step"), Scalar(1));
  if (o.weight_decay() != 0) grads = ops::_foreach_add(grads, part.params, o.weight_decay());
  std::vector<Scalar> rates;
  for (double t : part.steps()) rates.push_back(-o.lr() / (1 + (t - 1) * o.lr_decay()));
  ops::_foreach_addcmul_(sums, grads, grads);
  const std::vector<Tensor> denominators = ops::_foreach_sqrt(sums);
  ops::_foreach_add_(denominators, Scalar(o.eps()));
  ops::_foreach_addcdiv_(part.params, grads, denominators, rates);
}

// Learning rates

LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {}
std::vector<double> LRScheduler::get_current_lrs() const {
  std::vector<double> out;
  for (auto& g : optimizer_.param_groups()) out.push_back(g.options().get_lr());
  return out;
}
void LRScheduler::step() {
  ++step_count_;
  const std::vector<double> lrs = get_lrs();
  for (size_t i = 0; i < lrs.size(); ++i) optimizer_.param_groups()[i].options().set_lr(lrs[i]);
}

StepLR::StepLR(Optimizer& optimizer, unsigned step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  FB_CHECK_VALUE(step_size > 0, "StepLR: step_size must be positive");
}
std::vector<double> StepLR::get_lrs() {
  std::vector<double> lrs = get_current_lrs();
  if (step_count_ % step_size_ == 0)
    for (double& lr : lrs) lr *= gamma_;
  return lrs;
}

ReduceLROnPlateauScheduler::ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode,
                                                       float factor, int patience, double threshold,
                                                       ThresholdMode threshold_mode, int cooldown,
                                                       const std::vector<float>& min_lr, double eps,
                                                       bool verbose)
    : optimizer_(optimizer),
      mode_(mode),
      factor_(static_cast<double>(factor)),
      threshold_(threshold),
      eps_(eps),
      best_(mode == min ? INFINITY : -INFINITY),
      patience_(patience),
      cooldown_(cooldown),
      threshold_mode_(threshold_mode),
      min_lrs_(min_lr.begin(), min_lr.end()),
      verbose_(verbose) {
  FB_CHECK_VALUE(factor < 1, "Factor should be < 1.0.");
  const size_t groups = optimizer.param_groups().size();
  if (min_lrs_.empty()) min_lrs_.assign(groups, 0.0);
  FB_CHECK_VALUE(min_lrs_.size() == groups,
                 "Number of learning rates not equal to the number of "
                 "param groups\nNumber of learning rates given: ",
                 min_lrs_.size(), "\nNumber of param groups: ", groups);
}
bool ReduceLROnPlateauScheduler::is_better(double a) const {
  const double part = std::isfinite(best_) ? std::abs(best_) : 0;
  const double margin = threshold_mode_ == rel ? threshold_ * part : threshold_;
  return mode_ == min ? a < best_ - margin : a > best_ + margin;
}
void ReduceLROnPlateauScheduler::step(float metric) {
  const auto value = static_cast<double>(metric);
  if (is_better(value)) {
    best_ = value;
    bad_ = 0;
  } else {
    ++bad_;
  }
  if (waiting_ > 0) {
    --waiting_;
    bad_ = 0;
  }
  if (bad_ <= patience_) return;
  waiting_ = cooldown_;
  bad_ = 0;
  for (size_t i = 0; i < min_lrs_.size(); ++i) {
    auto& options = optimizer_.param_groups()[i].options();
    const double old = options.get_lr(), lr = std::max(old * factor_, min_lrs_[i]);
    if (old - lr <= eps_) continue;
    options.set_lr(lr);
    if (verbose_) std::cout << "reducing learning rate of group " << i << " to " << lr << '\n';
  }
}

}  // namespace flambeau::optim
