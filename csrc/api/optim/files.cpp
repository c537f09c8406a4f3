// Optimisers in files, as Python's state_dict has them.
#include "flambeau/serialize.h"
#include "gen/ops.h"

namespace flambeau::optim {

using serialize::InputArchive;
using serialize::OutputArchive;

namespace {

class Writer final : public OptionVisitor {
 public:
  explicit Writer(OutputArchive& to) : to_(to) {}
  void visit(const char* name, double& x) override { to_.write(name, IValue(x)); }
  void visit(const char* name, int64_t& x) override { to_.write(name, IValue(x)); }
  void visit(const char* name, bool& x) override { to_.write(name, IValue(x)); }
  void visit(const char* name, std::tuple<double, double>& x) override {
    to_.write(name, serialize::tuple_of({std::get<0>(x), std::get<1>(x)}));
  }
  void visit(const char* name, std::optional<int64_t>& x) override { to_.write(name, IValue(x)); }
  void visit(const char* name, std::optional<std::string>& x) override {
    to_.write(name, IValue(x));
  }

 private:
  OutputArchive& to_;
};

// A number as Python may have written it: whole, or a tensor of one element.
double real(const IValue& x) {
  return x.isTensor() ? x.toTensor().item<double>() : x.toScalar().to_double();
}

class Reader final : public OptionVisitor {
 public:
  explicit Reader(const InputArchive& from) : from_(from) {}
  void visit(const char* name, double& x) override {
    if (from_.try_read(name, value_)) x = real(value_);
  }
  void visit(const char* name, int64_t& x) override {
    if (from_.try_read(name, value_)) x = value_.toInt();
  }
  void visit(const char* name, bool& x) override {
    if (from_.try_read(name, value_)) x = value_.toBool();
  }
  void visit(const char* name, std::tuple<double, double>& x) override {
    if (!from_.try_read(name, value_)) return;
    const std::vector<IValue> both =
        value_.isTuple() ? value_.toTuple()->elements().vec() : value_.toListRef();
    FB_CHECK_VALUE(both.size() == 2, "load: ", name, " has ", both.size(), " values, expected 2");
    x = {real(both[0]), real(both[1])};
  }
  void visit(const char* name, std::optional<int64_t>& x) override {
    if (!from_.try_read(name, value_)) return;
    x = value_.isNone() ? std::nullopt : std::optional<int64_t>(value_.toInt());
  }
  void visit(const char* name, std::optional<std::string>& x) override {
    if (!from_.try_read(name, value_)) return;
    x = value_.isNone() ? std::nullopt : std::optional<std::string>(value_.toStr());
  }

 private:
  const InputArchive& from_;
  IValue value_;
};

}  // namespace

void OptimizerOptions::visit(OptionVisitor& visitor) {
  double lr = get_lr();
  visitor.visit("lr", lr);
  set_lr(lr);
}
void OptimizerOptions::serialize(OutputArchive& archive) const {
  Writer writer(archive);
  const_cast<OptimizerOptions*>(this)->visit(writer);
}
void OptimizerOptions::serialize(InputArchive& archive) {
  Reader reader(archive);
  visit(reader);
}

// The options that files have.
#define FB_VISITED(Name, ...)                                            \
  template class OptimizerCloneableOptions<Name>;                        \
  void Name::visit(OptionVisitor& visitor) {                             \
    auto v = [&](const char* name, auto& x) { visitor.visit(name, x); }; \
    __VA_ARGS__;                                                         \
  }
FB_VISITED(SGDOptions, v("lr", lr_), v("momentum", momentum_), v("dampening", dampening_),
             v("weight_decay", weight_decay_), v("nesterov", nesterov_), v("maximize", maximize_))
FB_VISITED(AdamOptions, v("lr", lr_), v("betas", betas_), v("eps", eps_), v("weight_decay", weight_decay_),
             v("amsgrad", amsgrad_), v("maximize", maximize_))
FB_VISITED(AdamWOptions, v("lr", lr_), v("betas", betas_), v("eps", eps_), v("weight_decay", weight_decay_),
             v("amsgrad", amsgrad_), v("maximize", maximize_))
FB_VISITED(RMSpropOptions, v("lr", lr_), v("alpha", alpha_), v("eps", eps_), v("weight_decay", weight_decay_),
             v("momentum", momentum_), v("centered", centered_))
FB_VISITED(AdagradOptions, v("lr", lr_), v("lr_decay", lr_decay_), v("weight_decay", weight_decay_),
             v("initial_accumulator_value", initial_accumulator_value_), v("eps", eps_))
FB_VISITED(LBFGSOptions, v("lr", lr_), v("max_iter", max_iter_), v("max_eval", max_eval_),
             v("tolerance_grad", tolerance_grad_), v("tolerance_change", tolerance_change_),
             v("history_size", history_size_), v("line_search_fn", line_search_fn_))
#undef FB_VISITED

// What is kept for a parameter, as values of a file.
IValue Optimizer::written(const Tensor& param) const {
  std::vector<std::pair<IValue, IValue>> items;
  if (auto found = state_.find(param.impl()); found != state_.end())
    for (const auto& [name, x] : found->second) items.emplace_back(name, x.detach());
  return serialize::dict_of(std::move(items));
}
void Optimizer::read(const Tensor& param, const IValue& value) {
  State& state = state_of(param);
  state.clear();
  for (const auto& [key, x] : value.toGenericDict()) {
    const std::string& name = key.toStringRef();
    if (x.isTensor()) {
      // Counts keep their dtype; what goes with the parameter has its.
      const Tensor given = x.toTensor().detach();
      state[name] = name == "step" || !param.is_floating_point()
                        ? given.clone()
                        : given.to(param.device(), param.dtype(), false, true);
    } else if (x.isInt() || x.isDouble()) {
      state[name] = ops::full(Ints{}, x.toScalar(), DType::Float32);
    }
  }
}

void Optimizer::save(OutputArchive& archive) const {
  std::vector<std::pair<IValue, IValue>> states;
  std::vector<IValue> groups;
  int64_t number = 0;
  for (const auto& group : groups_) {
    OutputArchive options;
    group.options().serialize(options);
    std::vector<int64_t> numbers;
    for (const Tensor& p : group.params()) {
      IValue state = written(p);
      if (!state.toGenericDict().empty()) states.emplace_back(number, std::move(state));
      numbers.push_back(number++);
    }
    options.write("params", IValue(numbers));
    groups.push_back(options.value());
  }
  archive.write("state", serialize::dict_of(std::move(states)));
  archive.write("param_groups", serialize::list_of(std::move(groups)));
}

void Optimizer::load(InputArchive& archive) {
  IValue states, found;
  archive.read("param_groups", found);
  archive.read("state", states);
  FB_CHECK(found.isList() && states.isGenericDict(),
           "load: the file holds no state of an optimizer (Python's state_dict)");
  const std::vector<IValue> groups = found.toListRef();
  FB_CHECK(groups.size() == groups_.size(), "load: the file has ", groups.size(),
           " parameter groups, the optimizer has ", groups_.size());
  std::vector<std::vector<IValue>> numbers;
  for (size_t i = 0; i < groups.size(); ++i) {
    InputArchive options(groups[i]);
    IValue params;
    options.read("params", params);
    numbers.push_back(params.toListRef());
    FB_CHECK(numbers[i].size() == groups_[i].params().size(), "load: group ", i,
             " of the file has ", numbers[i].size(), " parameters, that of the optimizer has ",
             groups_[i].params().size());
  }
  // Nothing is changed before all has been looked at.
  std::map<int64_t, IValue> all;
  for (auto& [number, state] : states.toGenericDict())
    if (number.isInt()) all[number.toInt()] = state;
  state_.clear();
  for (size_t i = 0; i < groups.size(); ++i) {
    InputArchive options(groups[i]);
    groups_[i].options().serialize(options);
    for (size_t k = 0; k < numbers[i].size(); ++k)
      if (auto state = all.find(numbers[i][k].toInt()); state != all.end())
        read(groups_[i].params()[k], state->second);
  }
}

}  // namespace flambeau::optim
