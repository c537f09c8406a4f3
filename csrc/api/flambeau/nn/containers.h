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
    fail_type(typeid(Plain));
  }
  const std::type_info& type_info() const noexcept { return value_.type(); }

 private:
  [[noreturn]] void fail_type(const std::type_info& wanted) const;
  std::any value_;
};

// A module whose forward is known by its type alone when it is put in. What depends on the type is
// two pointers to functions: whatever is more is compiled for each class by every program.
class AnyModule {
 public:
  AnyModule() = default;
  template <class M>
    requires(std::is_base_of_v<Module, M>)
  AnyModule(std::shared_ptr<M> module)
      : module_(std::move(module)), forward_(&forward_of<M>), rebind_(&rebound<M>) {}
  template <class M>
    requires(std::is_base_of_v<Module, std::decay_t<M>>)
  explicit AnyModule(M&& module)
      : AnyModule(shared(new std::decay_t<M>(std::forward<M>(module)))) {}
  template <class M>
  AnyModule(const ModuleHolder<M>& holder) : AnyModule(holder.ptr()) {}

  template <class... Args>
  AnyValue any_forward(Args&&... args) const {
    return call({AnyValue(std::forward<Args>(args))...});
  }
  AnyValue call(std::vector<AnyValue> args) const;
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
    if (!found) fail_class();
    return M(std::move(found));
  }
  template <class M>
  requires(!is_module_holder<M>) M& get() const {
    auto* found = dynamic_cast<M*>(module_.get());
    if (!found) fail_class();
    return *found;
  }
  AnyModule clone(const std::optional<Device>& device = std::nullopt) const;

 private:
  using Values = std::vector<AnyValue>;

  // Arguments that are left out are what their types are when made from nothing: none.
  template <class A>
  static std::decay_t<A> argument(const Values& args, size_t i) {
    if (i < args.size()) return args[i].get<A>();
    if constexpr (std::is_constructible_v<std::decay_t<A>, std::nullopt_t>)
      return std::decay_t<A>(std::nullopt);
    else
      fail_missing(args.size());
  }
  template <class M>
  static AnyValue forward_of(Module* module, const Values& args) {
    return passed(static_cast<M*>(module), &M::forward, args);
  }
  template <class M, class C, class R, class... Args>
  static AnyValue passed(M* module, R (C::*method)(Args...), const Values& args) {
    check_count(*module, sizeof...(Args), args.size());
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return AnyValue((module->*method)(argument<Args>(args, I)...));
    }(std::index_sequence_for<Args...>());
  }
  template <class M, class C, class R, class... Args>
  static AnyValue passed(M* module, R (C::*method)(Args...) const, const Values& args) {
    return passed(module, reinterpret_cast<R (C::*)(Args...)>(method), args);
  }
  // Of another module of the class.
  template <class M>
  static AnyModule rebound(std::shared_ptr<Module> module) {
    return AnyModule(std::static_pointer_cast<M>(std::move(module)));
  }
  template <class M>
  static std::shared_ptr<M> shared(M* fresh) {
    return std::static_pointer_cast<M>(owned(fresh));
  }
  static void check_count(const Module& module, size_t most, size_t given);
  [[noreturn]] static void fail_missing(size_t given);
  [[noreturn]] void fail_class() const;

  std::shared_ptr<Module> module_;
  AnyValue (*forward_)(Module*, const Values&) = nullptr;
  AnyModule (*rebind_)(std::shared_ptr<Module>) = nullptr;
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
  FunctionalImpl(Function function);
  FunctionalImpl(Tensor (*function)(const Tensor&));
  template <class F, class... Args>
    requires(sizeof...(Args) > 0)
  FunctionalImpl(F function, Args&&... args)
      : FunctionalImpl(Function([=](Tensor x) { return function(x, args...); })) {}
  void reset() override {}
  Tensor forward(Tensor x);

 private:
  Function function_;
};
TORCH_MODULE(Functional);

// Modules one after another: each is given what the one before gives.
class SequentialImpl;
extern template class Cloneable<SequentialImpl>;
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
  SequentialImpl(const SequentialImpl&);
  ~SequentialImpl() override;
  void reset() override {}
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;

  template <class Result = Tensor, class... Args>
  Result forward(Args&&... args) {
    return run({AnyValue(std::forward<Args>(args))...}).template get<Result>();
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
  AnyValue run(std::vector<AnyValue> args);
  std::vector<AnyModule> modules_;
};

class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  Sequential() : ModuleHolder() {}
  Sequential(std::initializer_list<NamedAnyModule> modules);
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
  using Items = std::vector<std::pair<std::string, std::shared_ptr<Module>>>;
  using Dict = OrderedDict<std::string, std::shared_ptr<Module>>;

  ModuleDictImpl();
  explicit ModuleDictImpl(const Items& modules);
  explicit ModuleDictImpl(const Dict& modules);
  void reset() override {}
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;

  void insert(const std::string& key, std::shared_ptr<Module> module);
  void update(const Items& modules);
  void update(const Dict& modules);
  Items items() const;
  std::vector<std::string> keys() const;
  std::vector<std::shared_ptr<Module>> values() const;
  size_t size() const noexcept { return children_.size(); }
  bool empty() const noexcept { return children_.is_empty(); }
  bool contains(const std::string& key) const noexcept;
  void clear();
  std::shared_ptr<Module> pop(const std::string& key);
  std::shared_ptr<Module> operator[](const std::string& key) const;
  template <class M>
  M& at(const std::string& key) const {
    auto* found = (*this)[key]->template as<M>();
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
  void append(Tensor x);
  auto begin() { return parameters_.begin(); }
  auto end() { return parameters_.end(); }
  size_t size() const noexcept { return parameters_.size(); }
  bool is_empty() const noexcept { return parameters_.is_empty(); }
  Tensor& operator[](size_t i);
  Tensor& at(size_t i) { return (*this)[i]; }
};
TORCH_MODULE(ParameterList);

class ParameterDictImpl : public Cloneable<ParameterDictImpl> {
 public:
  ParameterDictImpl();
  explicit ParameterDictImpl(const OrderedDict<std::string, Tensor>& parameters);
  void reset() override {}
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  Tensor& insert(const std::string& key, Tensor x);
  void update(const ParameterDictImpl& other);
  Tensor pop(const std::string& key);
  std::vector<std::string> keys() const;
  std::vector<Tensor> values() const;
  auto begin() { return parameters_.begin(); }
  auto end() { return parameters_.end(); }
  size_t size() const noexcept { return parameters_.size(); }
  bool empty() const noexcept { return parameters_.is_empty(); }
  bool contains(const std::string& key) const noexcept;
  void clear();
  Tensor& get(const std::string& key) { return (*this)[key]; }
  Tensor& operator[](const std::string& key);
};
TORCH_MODULE(ParameterDict);

}  // namespace flambeau::nn
