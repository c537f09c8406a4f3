// Optimisers: steps are Python's to the bit.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "flambeau/nn/module.h"

namespace flambeau::optim {

// The options of a group of parameters.
// Goes through the options of an optimiser by their names in Python.
class OptionVisitor {
 public:
  virtual ~OptionVisitor() = default;
  virtual void visit(const char* name, double& x) = 0;
  virtual void visit(const char* name, int64_t& x) = 0;
  virtual void visit(const char* name, bool& x) = 0;
  virtual void visit(const char* name, std::tuple<double, double>& x) = 0;
  virtual void visit(const char* name, std::optional<int64_t>& x) = 0;
  virtual void visit(const char* name, std::optional<std::string>& x) = 0;
};

class OptimizerOptions {
 public:
  virtual ~OptimizerOptions() = default;
  virtual std::unique_ptr<OptimizerOptions> clone() const = 0;
  virtual double get_lr() const = 0;
  virtual void set_lr(double lr) = 0;
  // Those of `visit`, by name. What the archive does not have stays as it is.
  virtual void serialize(serialize::OutputArchive& archive) const;
  virtual void serialize(serialize::InputArchive& archive);

 protected:
  virtual void visit(OptionVisitor& visitor);  // of options that do not say more: the rate
};
template <class Derived>
class OptimizerCloneableOptions : public OptimizerOptions {
 public:
  std::unique_ptr<OptimizerOptions> clone() const override {
    return std::unique_ptr<OptimizerOptions>(new Derived(static_cast<const Derived&>(*this)));
  }
  double get_lr() const override { return static_cast<const Derived*>(this)->lr(); }
  void set_lr(double lr) override { static_cast<Derived*>(this)->lr(lr); }
};

// Parameters that share their options; without options it takes the optimiser's.
class OptimizerParamGroup {
 public:
  OptimizerParamGroup(std::vector<Tensor> params) : params_(std::move(params)) {}
  OptimizerParamGroup(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> options)
      : params_(std::move(params)), options_(std::move(options)) {}
  OptimizerParamGroup(const OptimizerParamGroup& o)
      : params_(o.params_), options_(o.options_ ? o.options_->clone() : nullptr) {}
  OptimizerParamGroup(OptimizerParamGroup&&) = default;
  OptimizerParamGroup& operator=(OptimizerParamGroup&&) = default;

  bool has_options() const { return options_ != nullptr; }
  OptimizerOptions& options() {
    FB_CHECK(options_, "this parameter group has no options");
    return *options_;
  }
  const OptimizerOptions& options() const {
    return const_cast<OptimizerParamGroup*>(this)->options();
  }
  void set_options(std::unique_ptr<OptimizerOptions> options) { options_ = std::move(options); }
  std::vector<Tensor>& params() { return params_; }
  const std::vector<Tensor>& params() const { return params_; }

 private:
  std::vector<Tensor> params_;
  std::unique_ptr<OptimizerOptions> options_;
};

class Optimizer {
 public:
  using LossClosure = std::function<Tensor()>;

  Optimizer(std::vector<OptimizerParamGroup> groups, std::unique_ptr<OptimizerOptions> defaults);
  Optimizer(const Optimizer&) = delete;
  virtual ~Optimizer();

  void add_param_group(const OptimizerParamGroup& group);
  std::vector<OptimizerParamGroup>& param_groups() noexcept { return groups_; }
  const std::vector<OptimizerParamGroup>& param_groups() const noexcept { return groups_; }
  // Of the first group.
  std::vector<Tensor>& parameters() noexcept { return groups_.at(0).params(); }
  size_t size() const noexcept;
  OptimizerOptions& defaults() noexcept { return *defaults_; }
  void zero_grad(bool set_to_none = true);

  // As Python's state_dict has it: `state`, by the number of the parameter, and `param_groups`.
  // What is read has to have as many groups and parameters: Error(Runtime) that says so.
  virtual void save(serialize::OutputArchive& archive) const;
  virtual void load(serialize::InputArchive& archive);

  // One step by the gradients that the parameters have; with a closure, which computes the loss and
  // its gradients, after a call of it. Gives what the closure gave.
  virtual Tensor step(LossClosure closure = nullptr);

 protected:
  // What is kept for a parameter, by name: made by the first step that it takes part in.
  using State = std::map<std::string, Tensor>;
  State& state_of(const Tensor& param);
  // The parameters of a group that have gradients, the gradients, and their state.
  struct Part {
    std::vector<Tensor> params, grads;
    std::vector<State*> states;
    std::vector<Tensor> state(const std::string& name) const;
    std::vector<double> steps() const;  // of the state "step"
  };
  virtual void init_state(const Tensor& param, State& state, const OptimizerOptions& options) = 0;
  virtual void update(Part& part, const OptimizerOptions& options) = 0;
  // What a file has for a parameter.
  virtual IValue written(const Tensor& param) const;
  virtual void read(const Tensor& param, const IValue& value);

 private:
  std::vector<OptimizerParamGroup> groups_;
  std::unique_ptr<OptimizerOptions> defaults_;
  std::unordered_map<TensorImpl*, State> state_;
};

#define FB_OPTIMIZER(Name)                                                                      \
  explicit Name(std::vector<OptimizerParamGroup> groups, Name##Options defaults);               \
  explicit Name(std::vector<Tensor> params, Name##Options defaults);                            \
                                                                                                \
 protected:                                                                                     \
  void init_state(const Tensor& param, State& state, const OptimizerOptions& options) override; \
  void update(Part& part, const OptimizerOptions& options) override

struct SGDOptions : OptimizerCloneableOptions<SGDOptions> {
  SGDOptions(double lr) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(double, momentum) = 0;
  TORCH_ARG(double, dampening) = 0;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(bool, nesterov) = false;
  TORCH_ARG(bool, maximize) = false;

 protected:
  void visit(OptionVisitor& visitor) override;
};
class SGD : public Optimizer {
 public:
  FB_OPTIMIZER(SGD);
};

struct AdamOptions : OptimizerCloneableOptions<AdamOptions> {
  AdamOptions(double lr = 1e-3) : lr_(lr) {}
  using betas_t = std::tuple<double, double>;
  TORCH_ARG(double, lr) = 1e-3;
  TORCH_ARG(betas_t, betas) = std::make_tuple(0.9, 0.999);
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(bool, amsgrad) = false;
  TORCH_ARG(bool, maximize) = false;

 protected:
  void visit(OptionVisitor& visitor) override;
};
class Adam : public Optimizer {
 public:
  explicit Adam(std::vector<Tensor> params);
  FB_OPTIMIZER(Adam);
};

struct AdamWOptions : OptimizerCloneableOptions<AdamWOptions> {
  AdamWOptions(double lr = 1e-3) : lr_(lr) {}
  using betas_t = std::tuple<double, double>;
  TORCH_ARG(double, lr) = 1e-3;
  TORCH_ARG(betas_t, betas) = std::make_tuple(0.9, 0.999);
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 1e-2;
  TORCH_ARG(bool, amsgrad) = false;
  TORCH_ARG(bool, maximize) = false;

 protected:
  void visit(OptionVisitor& visitor) override;
};
class AdamW : public Optimizer {
 public:
  explicit AdamW(std::vector<Tensor> params);
  FB_OPTIMIZER(AdamW);
};

struct RMSpropOptions : OptimizerCloneableOptions<RMSpropOptions> {
  RMSpropOptions(double lr = 1e-2) : lr_(lr) {}
  TORCH_ARG(double, lr) = 1e-2;
  TORCH_ARG(double, alpha) = 0.99;
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(double, momentum) = 0;
  TORCH_ARG(bool, centered) = false;

 protected:
  void visit(OptionVisitor& visitor) override;
};
class RMSprop : public Optimizer {
 public:
  explicit RMSprop(std::vector<Tensor> params);
  FB_OPTIMIZER(RMSprop);
};

struct AdagradOptions : OptimizerCloneableOptions<AdagradOptions> {
  AdagradOptions(double lr = 1e-2) : lr_(lr) {}
  TORCH_ARG(double, lr) = 1e-2;
  TORCH_ARG(double, lr_decay) = 0;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(double, initial_accumulator_value) = 0;
  TORCH_ARG(double, eps) = 1e-10;

 protected:
  void visit(OptionVisitor& visitor) override;
};
class Adagrad : public Optimizer {
 public:
  explicit Adagrad(std::vector<Tensor> params);
  FB_OPTIMIZER(Adagrad);
};

struct LBFGSOptions : OptimizerCloneableOptions<LBFGSOptions> {
  LBFGSOptions(double lr = 1) : lr_(lr) {}
  TORCH_ARG(double, lr) = 1;
  TORCH_ARG(int64_t, max_iter) = 20;
  TORCH_ARG(std::optional<int64_t>, max_eval);  // none: max_iter * 5 / 4
  TORCH_ARG(double, tolerance_grad) = 1e-7;
  TORCH_ARG(double, tolerance_change) = 1e-9;
  TORCH_ARG(int64_t, history_size) = 100;
  TORCH_ARG(std::optional<std::string>, line_search_fn);  // none or "strong_wolfe"

 protected:
  void visit(OptionVisitor& visitor) override;
};
// Limited-memory BFGS over one group of parameters; `step` needs a closure, which it calls several
// times, and gives the loss at the start.
class LBFGS : public Optimizer {
 public:
  explicit LBFGS(std::vector<Tensor> params);
  ~LBFGS() override;
  Tensor step(LossClosure closure) override;
  FB_OPTIMIZER(LBFGS);
  IValue written(const Tensor& param) const override;
  void read(const Tensor& param, const IValue& value) override;

 private:
  struct Memory;
  Tensor flat_grad();
  void move(double t, const Tensor& direction);
  Tensor direction(const Tensor& grad, int64_t history);
  std::unique_ptr<Memory> memory_;
};
#undef FB_OPTIMIZER

// Compiled once, in optim/files.cpp.
extern template class OptimizerCloneableOptions<SGDOptions>;
extern template class OptimizerCloneableOptions<AdamOptions>;
extern template class OptimizerCloneableOptions<AdamWOptions>;
extern template class OptimizerCloneableOptions<RMSpropOptions>;
extern template class OptimizerCloneableOptions<AdagradOptions>;
extern template class OptimizerCloneableOptions<LBFGSOptions>;

// Changes the learning rates of an optimiser's groups from step to step.
class LRScheduler {
 public:
  explicit LRScheduler(Optimizer& optimizer);
  virtual ~LRScheduler() = default;
  void step();

 protected:
  virtual std::vector<double> get_lrs() = 0;
  std::vector<double> get_current_lrs() const;
  unsigned step_count_ = 0;
  Optimizer& optimizer_;
};

// Multiplies by gamma every step_size steps.
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, unsigned step_size, double gamma = 0.1);

 private:
  std::vector<double> get_lrs() override;
  const unsigned step_size_;
  const double gamma_;
};

// Divides by 1 / factor when a metric has not become better for more than `patience` steps.
class ReduceLROnPlateauScheduler {
 public:
  enum SchedulerMode { min, max };
  enum ThresholdMode { rel, abs };
  ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode = min, float factor = 0.1f,
                             int patience = 10, double threshold = 1e-4,
                             ThresholdMode threshold_mode = rel, int cooldown = 0,
                             const std::vector<float>& min_lr = {}, double eps = 1e-8,
                             bool verbose = false);
  virtual ~ReduceLROnPlateauScheduler() = default;
  void step(float metric);

 private:
  bool is_better(double a) const;
  Optimizer& optimizer_;
  SchedulerMode mode_;
  double factor_, threshold_, eps_, best_;
  int patience_, cooldown_, bad_ = 0, waiting_ = 0;
  ThresholdMode threshold_mode_;
  std::vector<double> min_lrs_;
  bool verbose_;
};

}  // namespace flambeau::optim
