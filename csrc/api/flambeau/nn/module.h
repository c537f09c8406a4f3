// Module: the base of layers and models; ModuleHolder: a shared one as a value.
#pragma once

#include <memory>
#include <string>
#include <type_traits>

#include "flambeau/flambeau.h"
#include "flambeau/ordered_dict.h"

namespace flambeau::serialize {
class OutputArchive;
class InputArchive;
}  // namespace flambeau::serialize

namespace flambeau::nn {

class Module;
template <class Contained>
class ModuleHolder;
struct ModuleHolderIndicator {};
template <class T>
inline constexpr bool is_module_holder = std::is_base_of_v<ModuleHolderIndicator, std::decay_t<T>>;

class Module : public std::enable_shared_from_this<Module> {
 public:
  using ModuleApplyFunction = std::function<void(Module&)>;
  using NamedModuleApplyFunction = std::function<void(const std::string&, Module&)>;

  Module();
  explicit Module(std::string name);
  Module(const Module&);
  Module& operator=(const Module&);
  virtual ~Module();

  // The class's name, "Linear" of LinearImpl, or the one that it was given.
  const std::string& name() const;

  // In the order of registration, those of the module itself before those of its children.
  std::vector<Tensor> parameters(bool recurse = true) const;
  OrderedDict<std::string, Tensor> named_parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  OrderedDict<std::string, Tensor> named_buffers(bool recurse = true) const;
  std::vector<std::shared_ptr<Module>> modules(bool include_self = true) const;
  OrderedDict<std::string, std::shared_ptr<Module>> named_modules(
      const std::string& name_prefix = "", bool include_self = true) const;
  std::vector<std::shared_ptr<Module>> children() const { return children_.values(); }
  OrderedDict<std::string, std::shared_ptr<Module>> named_children() const { return children_; }

  void apply(const ModuleApplyFunction& function);
  void apply(const NamedModuleApplyFunction& function, const std::string& name_prefix = "");

  virtual void train(bool on = true);
  void eval() { train(false); }
  virtual bool is_training() const noexcept { return training_; }
  virtual void zero_grad(bool set_to_none = true);
  virtual void to(Device device, DType dtype, bool non_blocking = false);
  virtual void to(DType dtype, bool non_blocking = false);
  virtual void to(Device device, bool non_blocking = false);
  void to(DeviceType device, bool non_blocking = false) { to(Device(device), non_blocking); }

  // A module of the same class with parameters and buffers of its own. Error(NotImplemented) for
  // classes that do not derive from Cloneable.
  virtual std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const;
  // Parameters and buffers by their names, as in Python's state_dict. What is read has to have the
  // sizes of what is there: Error(Runtime) that names the first that has not, or is not there.
  virtual void save(serialize::OutputArchive& archive) const;
  virtual void load(serialize::InputArchive& archive);
  // How it prints, without its children: Linear(in_features=2, out_features=3, bias=True).
  virtual void pretty_print(std::ostream& out) const;

  template <class M>
  auto as() noexcept {
    using Impl = std::conditional_t<is_module_holder<M>, impl_of<M>, std::type_identity<M>>;
    return dynamic_cast<typename Impl::type*>(this);
  }

  Tensor& register_parameter(std::string name, Tensor tensor, bool requires_grad = true);
  Tensor& register_buffer(std::string name, Tensor tensor);
  template <class M>
  std::shared_ptr<M> register_module(std::string name, std::shared_ptr<M> module) {
    add_child(std::move(name), module, false);
    return module;
  }
  template <class M>
  std::shared_ptr<M> register_module(std::string name, ModuleHolder<M> holder) {
    return register_module(std::move(name), holder.ptr());
  }
  template <class M>
  std::shared_ptr<M> replace_module(const std::string& name, std::shared_ptr<M> module) {
    add_child(name, module, true);
    return module;
  }
  template <class M>
  std::shared_ptr<M> replace_module(const std::string& name, ModuleHolder<M> holder) {
    return replace_module(name, holder.ptr());
  }
  void unregister_module(const std::string& name) { children_.erase(name); }

 protected:
  OrderedDict<std::string, Tensor> parameters_, buffers_;
  OrderedDict<std::string, std::shared_ptr<Module>> children_;

 private:
  template <class M>
  struct impl_of {
    using type = typename M::ContainedType;
  };
  template <class>
  friend class Cloneable;
  void add_child(std::string name, std::shared_ptr<Module> module, bool replace);
  // A copy whose members `reset` makes anew, then the values of this. Each class of layers gives
  // two functions of a line: a template of all this would be compiled for each by every program.
  std::shared_ptr<Module> cloned(Module* (*copied)(const Module&), void (*reset)(Module&),
                                 const std::optional<Device>& device) const;
  void copy_from(const Module& other, const std::optional<Device>& device);
  void collect(const std::string& prefix, bool recurse, bool buffers,
               OrderedDict<std::string, Tensor>& out) const;
  template <class F>
  void change(const F& f);

  mutable std::string name_;
  bool training_ = true;
};

// A new module, shared: one class of counts for all, where std::make_shared would be compiled for
// each class of modules by every program.
std::shared_ptr<Module> owned(Module* fresh);
[[noreturn]] void fail_empty_holder();

// Prints as Python does: with its children, indented.
std::ostream& operator<<(std::ostream& out, const Module& module);

// A module that can be cloned: `reset` makes its parameters, buffers and children anew.
template <class Derived>
class Cloneable : public Module {
 public:
  using Module::Module;
  virtual void reset() = 0;
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override {
    return cloned(
        [](const Module& m) -> Module* { return new Derived(static_cast<const Derived&>(m)); },
        [](Module& m) { static_cast<Cloneable&>(m).reset(); }, device);
  }
};

// A shared module with the look of a value: `Linear fc(2, 3); fc(x); fc->weight`. Made from nullptr
// it is empty, from nothing the module is made.
template <class Contained>
class ModuleHolder : public ModuleHolderIndicator {
 public:
  using ContainedType = Contained;

  ModuleHolder() : impl_(make_default()) {}
  ModuleHolder(std::nullptr_t) noexcept {}
  template <class Head, class... Tail>
  requires(
      !(std::is_base_of_v<ModuleHolder, std::decay_t<Head>> && sizeof...(Tail) == 0) &&
      !std::is_convertible_v<Head, std::shared_ptr<Contained>> &&
      !std::is_same_v<std::decay_t<Head>, std::nullptr_t>) explicit ModuleHolder(Head&& head,
                                                                                 Tail&&... tail)
      : impl_(owned(new Contained(std::forward<Head>(head), std::forward<Tail>(tail)...))) {}
  ModuleHolder(std::shared_ptr<Contained> module) : impl_(std::move(module)) {}

  explicit operator bool() const noexcept { return impl_ != nullptr; }
  bool is_empty() const noexcept { return impl_ == nullptr; }
  Contained* operator->() const { return get(); }
  Contained& operator*() const { return *get(); }
  Contained* get() const {
    if (!impl_) fail_empty_holder();
    return static_cast<Contained*>(impl_.get());
  }
  std::shared_ptr<Contained> ptr() const {
    if (!impl_) fail_empty_holder();
    return std::static_pointer_cast<Contained>(impl_);
  }
  template <class M = Contained, class... Args>
  auto operator()(Args&&... args) const
      -> decltype(std::declval<M&>().forward(std::forward<Args>(args)...)) {
    return get()->forward(std::forward<Args>(args)...);
  }
  template <class Arg>
  decltype(auto) operator[](Arg&& arg) const {
    return (*get())[std::forward<Arg>(arg)];
  }

 private:
  static std::shared_ptr<Module> make_default() {
    if constexpr (std::is_default_constructible_v<Contained>)
      return owned(new Contained());
    else
      return nullptr;
  }
  // Of the base: pointers of a hundred classes would be made wherever the header is read.
  std::shared_ptr<Module> impl_;
};

template <class M>
std::ostream& operator<<(std::ostream& out, const ModuleHolder<M>& module) {
  return out << static_cast<const Module&>(*module);
}

// How options print, as Python writes the values.
std::string shown(bool x);
std::string shown(int64_t x);
std::string shown(double x);
std::string shown(const std::string& x);
std::string shown(const std::vector<int64_t>& xs);  // a tuple
template <class T>
std::string shown(const std::optional<T>& x) {
  return x ? shown(*x) : "None";
}

// D numbers; one stands for D of them.
template <size_t D, class T = int64_t>
class ExpandingArray {
 public:
  ExpandingArray(T x) { values_.fill(x); }
  ExpandingArray(std::initializer_list<T> xs) : ExpandingArray(ArrayRef<T>(xs)) {}
  ExpandingArray(const std::vector<T>& xs) : ExpandingArray(ArrayRef<T>(xs)) {}
  ExpandingArray(const std::array<T, D>& xs) : values_(xs) {}
  ExpandingArray(ArrayRef<T> xs) {
    FB_CHECK_VALUE(xs.size() == D, "Expected ", D, " values, but instead got ", xs.size());
    std::copy(xs.begin(), xs.end(), values_.begin());
  }
  const std::array<T, D>& operator*() const { return values_; }
  const T& operator[](size_t i) const { return values_[i]; }
  size_t size() const { return D; }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  operator ArrayRef<T>() const { return ArrayRef<T>(values_); }
  std::vector<T> vec() const { return {values_.begin(), values_.end()}; }
  bool uniform() const {
    return std::all_of(values_.begin(), values_.end(), [&](T x) { return x == values_[0]; });
  }

 private:
  std::array<T, D> values_;
};
template <size_t D>
std::string shown(const ExpandingArray<D>& xs) {
  return shown(xs.vec());
}

}  // namespace flambeau::nn

// Compiled once, in module.cpp.
namespace flambeau {
extern template class OrderedDict<std::string, Tensor>;
extern template class OrderedDict<std::string, std::shared_ptr<nn::Module>>;
}  // namespace flambeau

// class Name of a module NameImpl
#define TORCH_MODULE_IMPL(Name, ImplType)                       \
  class Name : public ::flambeau::nn::ModuleHolder<ImplType> {  \
   public:                                                      \
    using ::flambeau::nn::ModuleHolder<ImplType>::ModuleHolder; \
    Name(const Name&) = default;                                \
    Name(Name&&) = default;                                     \
    Name& operator=(const Name&) = default;                     \
    Name& operator=(Name&&) = default;                          \
    using Impl [[maybe_unused]] = ImplType;                     \
  }
#define TORCH_MODULE(Name) TORCH_MODULE_IMPL(Name, Name##Impl)

// An option of a class of options: `x(value)` sets it and gives the options, `x()` reads it.
#define TORCH_ARG(T, name)         \
 public:                           \
  auto& name(const T& value) {     \
    this->name##_ = value;         \
    return *this;                  \
  }                                \
  const T& name() const noexcept { \
    return name##_;                \
  }                                \
  T& name() noexcept {             \
    return name##_;                \
  }                                \
                                   \
 private:                          \
  T name##_
