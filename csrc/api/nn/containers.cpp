#include "flambeau/nn/containers.h"

namespace flambeau::nn {

AnyModule AnyModule::clone(const std::optional<Device>& device) const {
  if (!module_) return {};
  // Kept alive here until the new one holds it.
  std::shared_ptr<Module> copy = module_->clone(device);
  return rebind_(copy.get());
}

SequentialImpl::SequentialImpl(std::initializer_list<NamedAnyModule> modules) {
  for (const auto& m : modules) push_back(m.name(), m.module());
}
SequentialImpl::SequentialImpl(OrderedDict<std::string, AnyModule>&& modules) {
  for (auto& m : modules) push_back(m.key(), m.value());
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

std::shared_ptr<Module> ModuleDictImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ModuleDictImpl>();
  for (const auto& [key, module] : items()) copy->insert(key, module->clone(device));
  copy->train(is_training());
  return copy;
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
