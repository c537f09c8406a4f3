// Modules that hold others: AnyModule, Sequential, ModuleList, ModuleDict, and a function as one.
#pragma once

#include <any>
#include <typeinfo>

#include "flambeau/nn/module.h"

namespace flambeau::nn {

// A value of any type on its way through modules.
class AnyValue {
 public:
  AnyValue() = default;
  template <class T>
    requires(!std::is_same_v<std::decay_t<T>, AnyValue>)
  AnyValue(T&& x) : value_(std::forward<T>(x)) {}
  // Error(Runtime) that names both types.
  template <class T>
  std::decay_t<T> get() const {
    using Plain = std::decay_t<T>;
    if (auto* x = std::any_cast<Plain>(&value_)) return *x;
    if constexpr (std::is_constructible_v<Plain, Tensor>)
      if (auto* x = std::any_cast<Tensor>(&value_)) return Plain(*x);
    fail(ErrorKind::Runtime, "Attempted to cast AnyValue to ", typeid(Plain).name(),
         ", but its actual type is ", value_.type().name());
  }
  const std::type_info& type_info() const noexcept { return value_.type(); }

 private:
  std::any value_;
};

// A module whose forward is known by its type alone when it is put in.
class AnyModule {
 public:
  AnyModule() = default;
  template <class M>
    requires(std::is_base_of_v<Module, M>)
  AnyModule(std::shared_ptr<M> module)
      : module_(module), forward_(erased(module.get(), &M::forward)) {}
  template <class M>
    requires(std::is_base_of_v<Module, std::decay_t<M>>)
  explicit AnyModule(M&& module)
      : AnyModule(std::make_shared<std::decay_t<M>>(std::forward<M>(module))) {}
  template <class M>
  AnyModule(const ModuleHolder<M>& holder) : AnyModule(holder.ptr()) {}

  template <class... Args>
  AnyValue any_forward(Args&&... args) const {
    FB_CHECK(module_, "Cannot call forward() on an empty AnyModule");
    return forward_({AnyValue(std::forward<Args>(args))...});
  }
  AnyValue call(std::vector<AnyValue> args) const { return forward_(std::move(args)); }
  template <class Result = Tensor, class... Args>
  Result forward(Args&&... args) const {
    return any_forward(std::forward<Args>(args)...).template get<Result>();
  }
  bool is_empty() const noexcept { return !module_; }
  const std::shared_ptr<Module>& ptr() const { return module_; }
  template <class M>
  std::shared_ptr<M> ptr() const {
    return std::dynamic_pointer_cast<M>(module_);
  }
  // The module, or its holder; Error(Runtime) where it is of another class.
  template <class M>
  requires(is_module_holder<M>) M get() const {
    auto found = std::dynamic_pointer_cast<typename M::ContainedType>(module_);
    FB_CHECK(found, "Attempted to cast module of type ", module_ ? module_->name() : "none",
             " to another type");
    return M(std::move(found));
  }
  template <class M>
  requires(!is_module_holder<M>) M& get() const {
    auto* found = dynamic_cast<M*>(module_.get());
    FB_CHECK(found, "Attempted to cast module of type ", module_ ? module_->name() : "none",
             " to another type");
    return *found;
  }
  AnyModule clone(const std::optional<Device>& device = std::nullopt) const;

 private:
  using Forward = std::function<AnyValue(std::vector<AnyValue>)>;

  // Arguments that are left out are what their types are when made from nothing: none.
  template <class A>
  static std::decay_t<A> argument(const std::vector<AnyValue>& args, size_t i) {
    if (i < args.size()) return args[i].get<A>();
    if constexpr (std::is_constructible_v<std::decay_t<A>, std::nullopt_t>)
      return std::decay_t<A>(std::nullopt);
    else
      fail(ErrorKind::Runtime, "forward() expects more arguments than the ", args.size(), " given");
  }
  template <class M, class C, class R, class... Args>
  Forward erased(M* module, R (C::*method)(Args...)) {
    rebind_ = [](Module* m) { return AnyModule::make(dynamic_cast<M*>(m)); };
    return [module, method](std::vector<AnyValue> args) {
      FB_CHECK(args.size() <= sizeof...(Args), module->name(), "'s forward() method expects ",
               sizeof...(Args), " argument(s), but received ", args.size());
      return [&]<size_t... I>(std::index_sequence<I...>) {
        return AnyValue((module->*method)(argument<Args>(args, I)...));
      }(std::index_sequence_for<Args...>());
    };
  }
  template <class M, class C, class R, class... Args>
  Forward erased(M* module, R (C::*method)(Args...) const) {
    return erased(module, reinterpret_cast<R (C::*)(Args...)>(method));
  }
  template <class M>
  static AnyModule make(M* module) {
    return AnyModule(std::static_pointer_cast<M>(module->shared_from_this()));
  }

  std::shared_ptr<Module> module_;
  AnyModule (*rebind_)(Module*) = nullptr;
  Forward forward_;
};

// A module with a name, as Sequential({{"fc", Linear(2, 3)}}) takes them.
class NamedAnyModule {
 public:
  template <class M>
  NamedAnyModule(std::string name, M&& module)
      : name_(std::move(name)), module_(std::forward<M>(module)) {}
  const std::string& name() const noexcept { return name_; }
  AnyModule& module() noexcept { return module_; }
  const AnyModule& module() const noexcept { return module_; }

 private:
  std::string name_;
  AnyModule module_;
};

// A function as a module: Functional(torch::relu), Functional(f, more arguments).
class FunctionalImpl : public Cloneable<FunctionalImpl> {
 public:
  using Function = std::function<Tensor(Tensor)>;
  FunctionalImpl(Function function) : Cloneable("Functional"), function_(std::move(function)) {}
  FunctionalImpl(Tensor (*function)(const Tensor&))
      : FunctionalImpl(Function([function](Tensor x) { return function(x); })) {}
  template <class F, class... Args>
    requires(sizeof...(Args) > 0)
  FunctionalImpl(F function, Args&&... args)
      : FunctionalImpl(Function([=](Tensor x) { return function(x, args...); })) {}
  void reset() override {}
  Tensor forward(Tensor x) { return function_(std::move(x)); }

 private:
  Function function_;
};
TORCH_MODULE(Functional);

// Modules one after another: each is given what the one before gives.
class SequentialImpl : public Cloneable<SequentialImpl> {
 public:
  SequentialImpl() = default;
  template <class... Modules>
    requires(sizeof...(Modules) > 0)
  explicit SequentialImpl(Modules&&... modules) {
    (push_back(std::forward<Modules>(modules)), ...);
  }
  explicit SequentialImpl(std::initializer_list<NamedAnyModule> modules);
  explicit SequentialImpl(OrderedDict<std::string, AnyModule>&& modules);
  void reset() override {}
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;

  template <class Result = Tensor, class... Args>
  Result forward(Args&&... args) {
    FB_CHECK(!modules_.empty(), "Cannot call forward() on an empty Sequential");
    AnyValue value = modules_.front().call({AnyValue(std::forward<Args>(args))...});
    for (size_t i = 1; i < modules_.size(); ++i) value = modules_[i].call({std::move(value)});
    return value.template get<Result>();
  }

  void push_back(std::string name, AnyModule module);
  void push_back(AnyModule module);
  template <class M>
    requires(std::is_base_of_v<Module, M>)
  void push_back(std::shared_ptr<M> module) {
    push_back(AnyModule(std::move(module)));
  }
  template <class M>
    requires(std::is_base_of_v<Module, M>)
  void push_back(std::string name, std::shared_ptr<M> module) {
    push_back(std::move(name), AnyModule(std::move(module)));
  }
  template <class M>
    requires(is_module_holder<M>)
  void push_back(const M& holder) {
    push_back(AnyModule(holder));
  }
  template <class M>
    requires(is_module_holder<M>)
  void push_back(std::string name, const M& holder) {
    push_back(std::move(name), AnyModule(holder));
  }
  template <class M>
    requires(std::is_base_of_v<Module, std::decay_t<M>>)
  void push_back(M&& module) {
    push_back(AnyModule(std::forward<M>(module)));
  }
  template <class Container>
  void extend(const Container& modules) {
    for (const auto& m : modules) push_back(m);
  }

  auto begin() { return modules_.begin(); }
  auto end() { return modules_.end(); }
  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }
  size_t size() const noexcept { return modules_.size(); }
  bool is_empty() const noexcept { return modules_.empty(); }
  template <class M>
  M& at(size_t i) const {
    FB_CHECK_INDEX(i < size(), "Index out of range");
    return modules_[i].template get<M>();
  }
  std::shared_ptr<Module> ptr(size_t i) const {
    FB_CHECK_INDEX(i < size(), "Index out of range");
    return modules_[i].ptr();
  }
  template <class M>  // of a module or its holder
  auto ptr(size_t i) const {
    if constexpr (is_module_holder<M>)
      return std::dynamic_pointer_cast<typename M::ContainedType>(ptr(i));
    else
      return std::dynamic_pointer_cast<M>(ptr(i));
  }
  std::shared_ptr<Module> operator[](size_t i) const { return ptr(i); }

 private:
  std::vector<AnyModule> modules_;
};

class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  Sequential() : ModuleHolder() {}
  Sequential(std::initializer_list<NamedAnyModule> modules)
      : ModuleHolder(std::make_shared<SequentialImpl>(modules)) {}
};

class ModuleListImpl : public Cloneable<ModuleListImpl> {
 public:
  ModuleListImpl() = default;
  template <class... Modules>
    requires(sizeof...(Modules) > 0)
  explicit ModuleListImpl(Modules&&... modules) {
    (push_back(std::forward<Modules>(modules)), ...);
  }
  void reset() override {}
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;

  void push_back(std::shared_ptr<Module> module);
  template <class M>
    requires(is_module_holder<M>)
  void push_back(const M& holder) {
    push_back(std::shared_ptr<Module>(holder.ptr()));
  }
  template <class M>
    requires(std::is_base_of_v<Module, std::decay_t<M>>)
  void push_back(M&& module) {
    push_back(std::shared_ptr<Module>(std::make_shared<std::decay_t<M>>(std::forward<M>(module))));
  }
  void insert(size_t i, std::shared_ptr<Module> module);
  template <class Container>
  void extend(const Container& modules) {
    for (const auto& m : modules) push_back(m);
  }
  auto begin() { return modules_.begin(); }
  auto end() { return modules_.end(); }
  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }
  size_t size() const noexcept { return modules_.size(); }
  bool is_empty() const noexcept { return modules_.empty(); }
  std::shared_ptr<Module> ptr(size_t i) const {
    FB_CHECK_INDEX(i < size(), "Index out of range");
    return modules_[i];
  }
  std::shared_ptr<Module> operator[](size_t i) const { return ptr(i); }
  template <class M>
  M& at(size_t i) const {
    auto* found = ptr(i)->template as<M>();
    FB_CHECK(found, "Unable to cast module[", i, "] to another type");
    return *found;
  }
  template <class M>
  std::shared_ptr<M> ptr(size_t i) const {
    return std::dynamic_pointer_cast<M>(ptr(i));
  }

 private:
  std::vector<std::shared_ptr<Module>> modules_;
};
TORCH_MODULE(ModuleList);

class ModuleDictImpl : public Cloneable<ModuleDictImpl> {
 public:
  ModuleDictImpl() = default;
  explicit ModuleDictImpl(
      const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules) {
    for (const auto& [key, module] : modules) insert(key, module);
  }
  void reset() override {}
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;

  void insert(const std::string& key, std::shared_ptr<Module> module) {
    if (contains(key))
      replace_module(key, std::move(module));
    else
      register_module(key, std::move(module));
  }
  explicit ModuleDictImpl(const OrderedDict<std::string, std::shared_ptr<Module>>& modules) {
    update(modules);
  }
  void update(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules) {
    for (const auto& [key, module] : modules) insert(key, module);
  }
  void update(const OrderedDict<std::string, std::shared_ptr<Module>>& modules) {
    for (const auto& item : modules) insert(item.key(), item.value());
  }
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> items() const {
    return children_.pairs();
  }
  std::vector<std::string> keys() const { return children_.keys(); }
  std::vector<std::shared_ptr<Module>> values() const { return children_.values(); }
  size_t size() const noexcept { return children_.size(); }
  bool empty() const noexcept { return children_.is_empty(); }
  bool contains(const std::string& key) const noexcept { return children_.contains(key); }
  void clear() { children_.clear(); }
  std::shared_ptr<Module> pop(const std::string& key) {
    auto module = children_[key];
    unregister_module(key);
    return module;
  }
  std::shared_ptr<Module> operator[](const std::string& key) const { return children_[key]; }
  template <class M>
  M& at(const std::string& key) const {
    auto* found = children_[key]->template as<M>();
    FB_CHECK(found, "Unable to cast module[", key, "] to another type");
    return *found;
  }
};
TORCH_MODULE(ModuleDict);

class ParameterListImpl : public Cloneable<ParameterListImpl> {
 public:
  ParameterListImpl() = default;
  template <class... Tensors>
    requires(sizeof...(Tensors) > 0)
  explicit ParameterListImpl(Tensors&&... tensors) {
    (append(std::forward<Tensors>(tensors)), ...);
  }
  void reset() override {}
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void append(Tensor x) {
    const bool wanted = x.requires_grad();
    register_parameter(std::to_string(size()), std::move(x), wanted);
  }
  auto begin() { return parameters_.begin(); }
  auto end() { return parameters_.end(); }
  size_t size() const noexcept { return parameters_.size(); }
  bool is_empty() const noexcept { return parameters_.is_empty(); }
  Tensor& operator[](size_t i) { return parameters_[i].value(); }
  Tensor& at(size_t i) { return parameters_[i].value(); }
};
TORCH_MODULE(ParameterList);

class ParameterDictImpl : public Cloneable<ParameterDictImpl> {
 public:
  ParameterDictImpl() = default;
  explicit ParameterDictImpl(const OrderedDict<std::string, Tensor>& parameters) {
    for (const auto& item : parameters) insert(item.key(), item.value());
  }
  void reset() override {}
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  Tensor& insert(const std::string& key, Tensor x) {
    const bool wanted = x.requires_grad();
    return register_parameter(key, std::move(x), wanted);
  }
  void update(const ParameterDictImpl& other) {
    for (const auto& item : other.parameters_) {
      if (contains(item.key())) parameters_.erase(item.key());
      insert(item.key(), item.value());
    }
  }
  Tensor pop(const std::string& key) {
    Tensor found = parameters_[key];
    parameters_.erase(key);
    return found;
  }
  std::vector<std::string> keys() const { return parameters_.keys(); }
  std::vector<Tensor> values() const { return parameters_.values(); }
  auto begin() { return parameters_.begin(); }
  auto end() { return parameters_.end(); }
  size_t size() const noexcept { return parameters_.size(); }
  bool empty() const noexcept { return parameters_.is_empty(); }
  bool contains(const std::string& key) const noexcept { return parameters_.contains(key); }
  void clear() { parameters_.clear(); }
  Tensor& get(const std::string& key) { return parameters_[key]; }
  Tensor& operator[](const std::string& key) { return parameters_[key]; }
};
TORCH_MODULE(ParameterDict);

}  // namespace flambeau::nn
