// Files: tensors, lists of them, modules, optimisers and plain values, in the format of Python's
// torch.save, which torch.load reads, PyTorch's too; and the other way round.
//
//   torch::save(model, "model.pt");   // Python: model.load_state_dict(torch.load("model.pt"))
//   torch::load(model, "model.pt");
#pragma once

#include <functional>
#include <istream>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "flambeau/nn/module.h"
#include "flambeau/optim.h"

namespace flambeau::serialize {

// Values by name on their way to a file, which holds a dict of them: what a nested archive has is
// called NAME.KEY, as in a state dict.
class OutputArchive {
 public:
  OutputArchive() = default;

  // Error(Key) where the name is taken.
  void write(const std::string& key, const IValue& value);
  void write(const std::string& key, const Tensor& tensor, bool is_buffer = false);
  void write(const std::string& key, OutputArchive& nested);

  // A path, a stream, or a function that takes bytes and gives how many it took. A file at the path
  // is replaced once the new one is complete. Error(Runtime) where it cannot be written,
  // Error(Type) for values that are no data.
  void save_to(const std::string& filename) const;
  void save_to(std::ostream& stream) const;
  void save_to(const std::function<size_t(const void*, size_t)>& func) const;

  // The file is this value, not a dict of values.
  void assign(IValue root) { root_ = std::move(root); }
  IValue value() const;

 private:
  OrderedDict<std::string, IValue> items_{"value"};
  std::optional<IValue> root_;
};

// What a file holds, by name. Files of Python's torch.save, of PyTorch's C++ and of its scripts are
// read as data; nothing that they name is looked for or called.
class InputArchive {
 public:
  InputArchive() = default;
  explicit InputArchive(IValue root) : root_(std::move(root)) {}

  // Error(Runtime) where there is no such file, or it is none or a damaged one; Error(Value) where
  // it holds what is not data.
  void load_from(const std::string& filename, std::optional<Device> device = std::nullopt);
  void load_from(std::istream& stream, std::optional<Device> device = std::nullopt);
  void load_from(const char* data, size_t size, std::optional<Device> device = std::nullopt);
  void load_from(const std::function<size_t(uint64_t pos, void* buf, size_t nbytes)>& read_func,
                 const std::function<size_t()>& size_func,
                 std::optional<Device> device = std::nullopt);

  // False: there is none of this name. A tensor that is defined takes over what was read and stays
  // itself, another becomes it.
  bool try_read(const std::string& key, IValue& value) const;
  bool try_read(const std::string& key, Tensor& tensor, bool is_buffer = false) const;
  bool try_read(const std::string& key, InputArchive& archive) const;
  // The same; Error(Runtime) with the whole name where there is none.
  void read(const std::string& key, IValue& value) const;
  void read(const std::string& key, Tensor& tensor, bool is_buffer = false) const;
  void read(const std::string& key, InputArchive& archive) const;

  std::vector<std::string> keys() const;
  const IValue& value() const noexcept { return root_; }
  // What stands before every key here, for messages: "fc.".
  const std::string& prefix() const noexcept { return path_; }

 private:
  void take(IValue root);
  IValue root_;
  std::string prefix_, path_;
};

// Dicts, lists and tuples of anything, as values.
inline IValue dict_of(std::vector<std::pair<IValue, IValue>> items) {
  return IValue::of_pairs(std::move(items));
}
inline IValue list_of(const std::vector<IValue>& items) {
  return IValue::of_list(items);
}
inline IValue tuple_of(std::vector<IValue> items) {
  return IValue::of_tuple(std::move(items));
}

OutputArchive& operator<<(OutputArchive& archive, const Tensor& x);
InputArchive& operator>>(InputArchive& archive, Tensor& x);
OutputArchive& operator<<(OutputArchive& archive, const std::vector<Tensor>& xs);
InputArchive& operator>>(InputArchive& archive, std::vector<Tensor>& xs);
OutputArchive& operator<<(OutputArchive& archive, const IValue& x);
InputArchive& operator>>(InputArchive& archive, IValue& x);

template <class M>
  requires(std::is_base_of_v<nn::Module, M>)
OutputArchive& operator<<(OutputArchive& archive, const std::shared_ptr<M>& module) {
  FB_CHECK(module, "Cannot serialize empty module");
  module->save(archive);
  return archive;
}
template <class M>
  requires(std::is_base_of_v<nn::Module, M>)
InputArchive& operator>>(InputArchive& archive, const std::shared_ptr<M>& module) {
  FB_CHECK(module, "Cannot deserialize into an empty module");
  module->load(archive);
  return archive;
}
template <class M>
OutputArchive& operator<<(OutputArchive& archive, const nn::ModuleHolder<M>& holder) {
  return archive << holder.ptr();
}
template <class M>
InputArchive& operator>>(InputArchive& archive, const nn::ModuleHolder<M>& holder) {
  return archive >> holder.ptr();
}
OutputArchive& operator<<(OutputArchive& archive, const optim::Optimizer& optimizer);
InputArchive& operator>>(InputArchive& archive, optim::Optimizer& optimizer);

}  // namespace flambeau::serialize

namespace flambeau {

// `to` and `from`: a path, a stream, functions that write or read bytes, data with its size; behind
// `from`, the device that tensors go to.
template <class V, class... To>
void save(const V& value, To&&... to) {
  serialize::OutputArchive archive;
  archive << value;
  archive.save_to(std::forward<To>(to)...);
}
template <class V, class... From>
void load(V& value, From&&... from) {
  serialize::InputArchive archive;
  archive.load_from(std::forward<From>(from)...);
  archive >> value;
}

// A value as the bytes of a file, and back.
std::vector<char> pickle_save(const IValue& value);
IValue pickle_load(const std::vector<char>& data);

}  // namespace flambeau
