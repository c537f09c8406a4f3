#include "flambeau/nn/containers.h"

namespace flambeau::nn {

void AnyValue::fail_type(const std::type_info& wanted) const {
  fail(ErrorKind::Runtime, "Attempted to cast AnyValue to ", wanted.name(),
       ", but its actual type is ", value_.type().name());
}

AnyValue AnyModule::call(std::vector<AnyValue> args) const {
  FB_CHECK(module_, "Cannot call forward() on an empty AnyModule");
  return forward_(module_.get(), args);
}
AnyModule AnyModule::clone(const std::optional<Device>& device) const {
  if (!module_) return {};
  return rebind_(module_->clone(device));
}
void AnyModule::check_count(const Module& module, size_t most, size_t given) {
  FB_CHECK(given <= most, module.name(), "'s forward() method expects ", most,
           " argument(s), but received ", given);
}
void AnyModule::fail_missing(size_t given) {
  fail(ErrorKind::Runtime, "forward() expects more arguments than the ", given, " given");
}
void AnyModule::fail_class() const {
  fail(ErrorKind::Runtime, "Attempted to cast module of type ", module_ ? module_->name() : "none",
       " to another type");
}

FunctionalImpl::FunctionalImpl(Function function)
    : Cloneable("Functional"), function_(std::move(function)) {}
FunctionalImpl::FunctionalImpl(Tensor (*function)(const Tensor&))
    : FunctionalImpl(Function([function](Tensor x) { return function(x); })) {}
Tensor FunctionalImpl::forward(Tensor x) {
  return function_(std::move(x));
}

Sequential::Sequential(std::initializer_list<NamedAnyModule> modules)
    : ModuleHolder(std::make_shared<SequentialImpl>(modules)) {}
template class Cloneable<SequentialImpl>;
SequentialImpl::SequentialImpl(const SequentialImpl&) = default;
SequentialImpl::~SequentialImpl() = default;
SequentialImpl::SequentialImpl(std::initializer_list<NamedAnyModule> modules) {
  for (const auto& m : modules) push_back(m.name(), m.module());
}
SequentialImpl::SequentialImpl(OrderedDict<std::string, AnyModule>&& modules) {
  for (auto& m : modules) push_back(m.key(), m.value());
}
AnyValue SequentialImpl::run(std::vector<AnyValue> args) {
  FB_CHECK(!modules_.empty(), "Cannot call forward() on an empty Sequential");
  AnyValue value = modules_.front().call(std::move(args));
  for (size_t i = 1; i < modules_.size(); ++i) value = modules_[i].call({std::move(value)});
  return value;
}
void SequentialImpl::push_back(std::string name, AnyModule module) {
  register_module(std::move(name), module.ptr());
  modules_.push_back(std::move(module));
}
void SequentialImpl::push_back(AnyModule module) {
  push_back(std::to_string(modules_.size()), std::move(module));
}

std::shared_ptr<Module> SequentialImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<SequentialImpl>();
  const auto names = children_.keys();
  for (size_t i = 0; i < modules_.size(); ++i) copy->push_back(names[i], modules_[i].clone(device));
  copy->train(is_training());
  return copy;
}

std::shared_ptr<Module> ModuleListImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ModuleListImpl>();
  for (const auto& m : modules_) copy->push_back(m->clone(device));
  copy->train(is_training());
  return copy;
}

void ModuleListImpl::push_back(std::shared_ptr<Module> module) {
  register_module(std::to_string(modules_.size()), module);
  modules_.push_back(std::move(module));
}
void ModuleListImpl::insert(size_t i, std::shared_ptr<Module> module) {
  FB_CHECK_INDEX(i <= size(), "Index out of range");
  modules_.insert(modules_.begin() + static_cast<std::ptrdiff_t>(i), std::move(module));
  children_.clear();
  for (size_t k = 0; k < modules_.size(); ++k) register_module(std::to_string(k), modules_[k]);
}

ModuleDictImpl::ModuleDictImpl() = default;
ModuleDictImpl::ModuleDictImpl(const Items& modules) {
  update(modules);
}
ModuleDictImpl::ModuleDictImpl(const Dict& modules) {
  update(modules);
}
void ModuleDictImpl::insert(const std::string& key, std::shared_ptr<Module> module) {
  if (contains(key)) replace_module(key, std::move(module));
  else register_module(key, std::move(module));
}
void ModuleDictImpl::update(const Items& modules) {
  for (const auto& [key, module] : modules) insert(key, module);
}
void ModuleDictImpl::update(const Dict& modules) {
  for (const auto& item : modules) insert(item.key(), item.value());
}
ModuleDictImpl::Items ModuleDictImpl::items() const {
  return children_.pairs();
}
std::vector<std::string> ModuleDictImpl::keys() const {
  return children_.keys();
}
std::vector<std::shared_ptr<Module>> ModuleDictImpl::values() const {
  return children_.values();
}
bool ModuleDictImpl::contains(const std::string& key) const noexcept {
  return children_.contains(key);
}
void ModuleDictImpl::clear() {
  children_.clear();
}
std::shared_ptr<Module> ModuleDictImpl::pop(const std::string& key) {
  auto module = children_[key];
  unregister_module(key);
  return module;
}
std::shared_ptr<Module> ModuleDictImpl::operator[](const std::string& key) const {
  return children_[key];
}
std::shared_ptr<Module> ModuleDictImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ModuleDictImpl>();
  for (const auto& [key, module] : items()) copy->insert(key, module->clone(device));
  copy->train(is_training());
  return copy;
}

ParameterDictImpl::ParameterDictImpl() = default;
ParameterDictImpl::ParameterDictImpl(const OrderedDict<std::string, Tensor>& parameters) {
  for (const auto& item : parameters) insert(item.key(), item.value());
}
Tensor& ParameterDictImpl::insert(const std::string& key, Tensor x) {
  const bool wanted = x.requires_grad();
  return register_parameter(key, std::move(x), wanted);
}
void ParameterDictImpl::update(const ParameterDictImpl& other) {
  for (const auto& item : other.parameters_) {
    if (contains(item.key())) parameters_.erase(item.key());
    insert(item.key(), item.value());
  }
}
Tensor ParameterDictImpl::pop(const std::string& key) {
  Tensor found = parameters_[key];
  parameters_.erase(key);
  return found;
}
std::vector<std::string> ParameterDictImpl::keys() const {
  return parameters_.keys();
}
std::vector<Tensor> ParameterDictImpl::values() const {
  return parameters_.values();
}
bool ParameterDictImpl::contains(const std::string& key) const noexcept {
  return parameters_.contains(key);
}
void ParameterDictImpl::clear() {
  parameters_.clear();
}
Tensor& ParameterDictImpl::operator[](const std::string& key) {
  return parameters_[key];
}
std::shared_ptr<Module> ParameterDictImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ParameterDictImpl>();
  for (const auto& item : parameters_) {
    Tensor x = item.value().detach().clone();
    if (device) x = x.to(*device, x.dtype());
    copy->insert(item.key(), x.requires_grad_(item.value().requires_grad()));
  }
  return copy;
}

void ParameterListImpl::append(Tensor x) {
  const bool wanted = x.requires_grad();
  register_parameter(std::to_string(size()), std::move(x), wanted);
}
Tensor& ParameterListImpl::operator[](size_t i) {
  return parameters_[i].value();
}
std::shared_ptr<Module> ParameterListImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ParameterListImpl>();
  for (const auto& item : parameters_) {
    Tensor x = item.value().detach().clone();
    if (device) x = x.to(*device, x.dtype());
    copy->append(x.requires_grad_(item.value().requires_grad()));
  }
  return copy;
}

}  // namespace flambeau::nn
