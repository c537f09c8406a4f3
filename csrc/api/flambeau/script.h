// Scripts in C++: modules and functions that `torch.jit.save` wrote in Python, loaded and run, and
// trained, without Python.
//
//   torch::jit::Module module = torch::jit::load("net.pt");
//   torch::Tensor out = module.forward({torch::ones({1, 3})}).toTensor();
#pragma once

#include <istream>
#include <memory>
#include <string>

#include "flambeau/flambeau.h"
#include "flambeau/ordered_dict.h"

namespace flambeau::jit {

struct Loaded;
class Module;

// A tensor or a module with its name below the module that was asked.
struct NameTensor {
  std::string name;
  Tensor value;
};
struct NameModule;

// A function of a script, with the module that it is a method of.
class Method {
 public:
  const std::string& name() const noexcept { return name_; }
  // Arguments in order; those that are left out have their defaults. Errors are those of the
  // operations, with the lines of the script behind their text.
  IValue operator()(std::vector<IValue> args) const;

 private:
  friend class Module;
  std::shared_ptr<const Loaded> file_;
  Value self_;
  std::string name_, function_;
};

class Module {
 public:
  Module() = default;

  IValue forward(std::vector<IValue> args) const { return get_method("forward")(std::move(args)); }
  template <class... Args>
  IValue operator()(Args&&... args) const {
    return forward({IValue(std::forward<Args>(args))...});
  }
  // Error(Attribute) where there is none.
  Method get_method(const std::string& name) const;
  bool has_method(const std::string& name) const { return find_method(name); }
  template <class... Args>
  IValue run_method(const std::string& name, Args&&... args) const {
    return get_method(name)({IValue(std::forward<Args>(args))...});
  }

  // Parameters, buffers, plain attributes and children by name.
  IValue attr(const std::string& name) const;
  IValue attr(const std::string& name, IValue otherwise) const;
  bool hasattr(const std::string& name) const;
  // Of the type that the script says; a parameter is replaced by a tensor.
  void setattr(const std::string& name, const IValue& value) const;
  Module child(const std::string& name) const;

  std::vector<Tensor> parameters(bool recurse = true) const;
  std::vector<NameTensor> named_parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  std::vector<NameTensor> named_buffers(bool recurse = true) const;
  std::vector<Module> children() const;
  std::vector<NameModule> named_children() const;

  void train(bool on = true) const;
  void eval() const { train(false); }
  bool is_training() const;
  void zero_grad() const;
  void to(Device device) const;
  void to(DType dtype) const;
  void to(Device device, DType dtype) const;
  // The class's name in the script.
  std::string type_name() const;
  bool defined() const noexcept { return file_ != nullptr; }

 private:
  friend Module load(const std::string&, std::optional<Device>);
  friend Module load(std::istream&, std::optional<Device>);
  Module(std::shared_ptr<const Loaded> file, Value self, std::string function = {})
      : file_(std::move(file)), self_(std::move(self)), function_(std::move(function)) {}
  bool find_method(const std::string& name) const;
  void tensors(const std::string& prefix, const char* place, bool recurse,
               std::vector<NameTensor>& out) const;
  template <class F>
  void change(const F& f) const;

  std::shared_ptr<const Loaded> file_;
  Value self_;
  std::string function_;  // of a file that holds a function alone
};

struct NameModule {
  std::string name;
  Module value;
};

// Reads a file of `jit.save`. Error(Runtime) that says why where it is none, is damaged, or holds
// what runs in Python alone.
Module load(const std::string& filename, std::optional<Device> device = std::nullopt);
Module load(std::istream& in, std::optional<Device> device = std::nullopt);

namespace script {
using Module = jit::Module;
}  // namespace script

}  // namespace flambeau::jit
