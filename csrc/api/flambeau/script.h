// Scripts in C++: modules and functions that `torch.jit.save` wrote in Python, loaded and run, and
// trained, without Python.
//
//   torch::jit::Module module = torch::jit::load("net.pt");
//   torch::Tensor out = module.forward({torch::ones({1, 3})}).toTensor();
#pragma once

#include <istream>
#include <memory>
#include <string>
#include <unordered_map>

#include "flambeau/flambeau.h"
#include "flambeau/ordered_dict.h"

namespace flambeau::jit {

struct Loaded;
class Module;
using IValue = flambeau::IValue;
using Stack = std::vector<IValue>;
// What a file has besides the module, by name.
using ExtraFilesMap = std::unordered_map<std::string, std::string>;

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
  bool has_method(const std::string& name) const;
  std::optional<Method> find_method(const std::string& name) const {
    return has_method(name) ? std::optional<Method>(get_method(name)) : std::nullopt;
  }
  std::vector<Method> get_methods() const;
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
  // Itself with values of its own: what the two hold is equal, and changes of one leave the other.
  Module deepcopy(std::optional<Device> device = std::nullopt) const;
  Module clone() const { return deepcopy(); }
  Module copy() const { return deepcopy(); }
  // The value that scripts see, as an argument of other methods.
  IValue _ivalue() const { return IValue(self_); }
  // The class's name in the script.
  std::string type_name() const;
  bool defined() const noexcept { return file_ != nullptr; }

  // Writes a file that jit::load and Python's torch.jit.load read: the program as it was loaded,
  // the values of parameters, buffers and attributes as they are now. A file at the path is
  // replaced once the new one is complete.
  void save(const std::string& filename, const ExtraFilesMap& extra_files = {}) const;
  void save(std::ostream& out, const ExtraFilesMap& extra_files = {}) const;

 private:
  friend struct Loaded;
  friend class flambeau::IValue;
  Module(std::shared_ptr<const Loaded> file, Value self, std::string function = {})
      : file_(std::move(file)), self_(std::move(self)), function_(std::move(function)) {}
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

// Reads a file of `jit.save`; `extra_files` gets what the file has of the names that it holds.
// Error(Runtime) that says why where it is none, is damaged, or holds what runs in Python alone.
Module load(const std::string& filename, std::optional<Device> device = std::nullopt);
Module load(const std::string& filename, std::optional<Device> device, ExtraFilesMap& extra_files);
Module load(std::istream& in, std::optional<Device> device = std::nullopt);
Module load(std::istream& in, std::optional<Device> device, ExtraFilesMap& extra_files);
inline void save(const Module& module, const std::string& filename,
                 const ExtraFilesMap& extra_files = {}) {
  module.save(filename, extra_files);
}
inline void save(const Module& module, std::ostream& out, const ExtraFilesMap& extra_files = {}) {
  module.save(out, extra_files);
}

namespace script {
using Module = jit::Module;
using Method = jit::Method;
using ExtraFilesMap = jit::ExtraFilesMap;
}  // namespace script

}  // namespace flambeau::jit
