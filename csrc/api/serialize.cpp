#include "flambeau/serialize.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>

#include "api/pickle_out.h"
#include "files/checkpoint.h"
#include "script/values.h"

// `jit::script` is a name of programs for other things.
namespace fs = flambeau::script;

namespace flambeau {

using files::Data;

namespace {

// What a file holds, as values: lists of one kind are the typed ones of operations.
class Reader {
 public:
  explicit Reader(std::optional<Device> device) : device_(device) {}

  Value value(const Data& d, int depth = 0) {
    FB_CHECK_VALUE(depth < 500, "load: values are nested too deep");
    using Kind = Data::Kind;
    switch (d.kind) {
      case Kind::None:
        return {};
      case Kind::Bool:
        return Value(d.integer != 0);
      case Kind::Integer:
        return Value(d.integer);
      case Kind::Real:
        return Value(d.real);
      case Kind::Complex:
        return Value(complex128(d.real, d.imaginary));
      case Kind::Text:
      case Kind::Bytes:
        return Value(d.text);
      case Kind::Tensor:
        return Value(placed(d.tensor));
      case Kind::DType:
        return Value(d.dtype);
      case Kind::Device:
        return Value(d.device);
      case Kind::Tuple:
        return fs::make_box<fs::Tuple>(values(d, depth));
      case Kind::List:
      case Kind::Dict: {
        if (auto found = made_.find(&d); found != made_.end()) return found->second;
        return d.kind == Kind::List ? list(d, depth) : dict(d, depth);
      }
      case Kind::Global:
        fail(ErrorKind::Value, "load: the file names ", d.text, ", which is no data");
      case Kind::Storage:
        fail(ErrorKind::Value, "load: a storage by itself is not read in C++; save a tensor");
    }
    return {};
  }

 private:
  Tensor placed(const Tensor& x) {
    if (!device_ || *device_ == x.device()) return x;
    NoGradGuard no_grad;
    return x.to(*device_, x.dtype()).requires_grad_(x.requires_grad());
  }
  Values values(const Data& d, int depth) {
    Values out;
    for (const Data* x : d.items) out.push_back(value(*x, depth + 1));
    return out;
  }
  static bool all(const Data& d, Data::Kind kind) {
    for (const Data* x : d.items)
      if (!x->is(kind)) return false;
    return !d.items.empty();
  }
  template <class T, class F>
  static Value typed(const Data& d, F f) {
    T out;
    for (const Data* x : d.items) out.push_back(f(*x));
    return Value(std::move(out));
  }
  Value list(const Data& d, int depth) {
    using Kind = Data::Kind;
    if (all(d, Kind::Tensor))
      return made_[&d] = typed<Tensors>(d, [this](const Data& x) { return placed(x.tensor); });
    if (all(d, Kind::Integer))
      return made_[&d] = typed<Ints>(d, [](const Data& x) { return x.integer; });
    if (all(d, Kind::Real))
      return made_[&d] = typed<std::vector<double>>(d, [](const Data& x) { return x.real; });
    if (all(d, Kind::Bool))
      return made_[&d] = typed<std::vector<bool>>(d, [](const Data& x) { return x.integer != 0; });
    Value made = made_[&d] = fs::make_box<fs::List>();
    // Not before the list stands in the table: it may hold itself.
    for (const Data* x : d.items)
      fs::expect_box<fs::List>(made).items.push_back(value(*x, depth + 1));
    return made;
  }
  Value dict(const Data& d, int depth) {
    Value made = made_[&d] = fs::make_box<fs::Dict>();
    for (size_t i = 0; i + 1 < d.items.size(); i += 2)
      fs::expect_box<fs::Dict>(made).set(value(*d.items[i], depth + 1),
                                         value(*d.items[i + 1], depth + 1));
    return made;
  }

  std::optional<Device> device_;
  std::map<const Data*, Value> made_;
};

IValue read(const files::Source& from, std::optional<Device> device) {
  try {
    const files::Tree tree = files::read_checkpoint(from);
    return IValue(Reader(device).value(*tree.root));
  } catch (const Error& e) {
    const std::string text = e.what();
    throw Error(e.kind, text.starts_with("load: ") ? text : "load: " + text);
  }
}

// A file by path; `top` of its archive is the file's name without its ending, as Python's is.
std::string stem(const std::string& path) {
  std::string name = path.substr(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
  if (const size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0) name.resize(dot);
  return name.empty() ? "archive" : name;
}

class FunctionSource final : public files::Source {
 public:
  FunctionSource(const std::function<size_t(uint64_t, void*, size_t)>& read, size_t size)
      : read_(read), size_(size) {}
  uint64_t size() const override { return size_; }
  size_t read(uint64_t at, void* to, size_t count) const override {
    const size_t n = at < size_ ? std::min<uint64_t>(count, size_ - at) : 0;
    return n ? read_(at, to, n) : 0;
  }

 private:
  const std::function<size_t(uint64_t, void*, size_t)>& read_;
  uint64_t size_;
};

}  // namespace

namespace serialize {

void OutputArchive::write(const std::string& key, const IValue& value) {
  FB_CHECK(!root_, "save: the archive is one value already, it takes no '", key, "'");
  items_.insert(key, value);
}
void OutputArchive::write(const std::string& key, const Tensor& tensor, bool) {
  // As in state dicts: values, without what autograd knows of them.
  write(key, tensor.defined() ? IValue(tensor.detach()) : IValue());
}
void OutputArchive::write(const std::string& key, OutputArchive& nested) {
  if (nested.root_) return write(key, *nested.root_);
  for (const auto& item : nested.items_) write(key + "." + item.key(), item.value());
}
IValue OutputArchive::value() const {
  if (root_) return *root_;
  std::vector<std::pair<IValue, IValue>> items;
  for (const auto& item : items_) items.emplace_back(item.key(), item.value());
  return dict_of(std::move(items));
}

void OutputArchive::save_to(const std::string& filename) const {
  const IValue root = value();
  files::write_file(filename, "save", [&](const files::Sink& to) {
    api::write_checkpoint(root, to, stem(filename), "save");
  });
}
void OutputArchive::save_to(std::ostream& stream) const {
  api::write_checkpoint(
      value(),
      [&](const void* data, size_t size) {
        stream.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
        FB_CHECK(stream.good(), "save: cannot write to the stream");
      },
      "archive", "save");
}
void OutputArchive::save_to(const std::function<size_t(const void*, size_t)>& func) const {
  api::write_checkpoint(
      value(),
      [&](const void* data, size_t size) {
        const size_t taken = func(data, size);
        FB_CHECK(taken == size, "save: the function took ", taken, " of ", size, " bytes");
      },
      "archive", "save");
}

void InputArchive::take(IValue root) {
  root_ = std::move(root);
  prefix_.clear();
  path_.clear();
}
void InputArchive::load_from(const std::string& filename, std::optional<Device> device) {
  const int descriptor = ::open(filename.c_str(), O_RDONLY | O_CLOEXEC);
  FB_CHECK(descriptor >= 0, "load: cannot open ", filename, ": ", std::strerror(errno));
  struct Close {
    int descriptor;
    ~Close() { ::close(descriptor); }
  } close{descriptor};
  take(flambeau::read(files::FileSource(descriptor), device));
}
void InputArchive::load_from(std::istream& stream, std::optional<Device> device) {
  const std::string bytes((std::istreambuf_iterator<char>(stream)),
                          std::istreambuf_iterator<char>());
  load_from(bytes.data(), bytes.size(), device);
}
void InputArchive::load_from(const char* data, size_t size, std::optional<Device> device) {
  take(flambeau::read(files::MemorySource(data, size), device));
}
void InputArchive::load_from(
    const std::function<size_t(uint64_t pos, void* buf, size_t nbytes)>& read_func,
    const std::function<size_t()>& size_func, std::optional<Device> device) {
  take(flambeau::read(FunctionSource(read_func, size_func()), device));
}

bool InputArchive::try_read(const std::string& key, IValue& value) const {
  auto* dict = fs::box_of<fs::Dict>(root_);
  const Value* found = dict ? dict->find(Value(prefix_ + key)) : nullptr;
  if (found) value = IValue(*found);
  return found != nullptr;
}
bool InputArchive::try_read(const std::string& key, Tensor& tensor, bool) const {
  IValue value;
  if (!try_read(key, value) || value.isNone()) return false;
  FB_CHECK(value.isTensor(), "load: '", path_, key, "' is a ", fs::kind_name(value),
           ", expected a tensor");
  if (tensor.defined())
    tensor.set_data(value.toTensor().detach());
  else
    tensor = value.toTensor();
  return true;
}
bool InputArchive::try_read(const std::string& key, InputArchive& archive) const {
  InputArchive made;
  made.path_ = path_ + key + ".";
  IValue value;
  if (try_read(key, value) && value.isGenericDict()) {
    made.root_ = value;
  } else {
    made.root_ = root_;
    made.prefix_ = prefix_ + key + ".";
    if (made.keys().empty()) return false;
  }
  archive = std::move(made);
  return true;
}
void InputArchive::read(const std::string& key, IValue& value) const {
  FB_CHECK(try_read(key, value), "No such serialized value '", path_, key, "'");
}
void InputArchive::read(const std::string& key, Tensor& tensor, bool is_buffer) const {
  FB_CHECK(try_read(key, tensor, is_buffer), "No such serialized tensor '", path_, key, "'");
}
void InputArchive::read(const std::string& key, InputArchive& archive) const {
  FB_CHECK(try_read(key, archive), "No such serialized submodule: '", path_, key, "'");
}
std::vector<std::string> InputArchive::keys() const {
  std::vector<std::string> out;
  auto* dict = fs::box_of<fs::Dict>(root_);
  if (dict)
    dict->each([&](const Value& key, const Value&) {
      const auto* text = key.get_if<std::string>();
      if (text && text->starts_with(prefix_)) out.push_back(text->substr(prefix_.size()));
    });
  return out;
}

OutputArchive& operator<<(OutputArchive& archive, const Tensor& x) {
  archive.assign(IValue(x));
  return archive;
}
InputArchive& operator>>(InputArchive& archive, Tensor& x) {
  if (archive.value().isTensor()) {
    x = archive.value().toTensor();
  } else {
    // PyTorch's C++ writes a tensor as one of this name.
    IValue value;
    archive.read("0", value);
    x = value.toTensor();
  }
  return archive;
}
OutputArchive& operator<<(OutputArchive& archive, const std::vector<Tensor>& xs) {
  archive.assign(IValue(Value(Tensors(xs.begin(), xs.end()))));
  return archive;
}
InputArchive& operator>>(InputArchive& archive, std::vector<Tensor>& xs) {
  xs.clear();
  const IValue& root = archive.value();
  if (root.isList()) {
    for (const IValue& x : root.toListRef()) xs.push_back(x.toTensor());
    return archive;
  }
  // PyTorch's C++ counts: "0", "1", ...
  Tensor x;
  for (int64_t i = 0; archive.try_read(std::to_string(i), x); ++i, x = Tensor()) xs.push_back(x);
  FB_CHECK(!xs.empty() || archive.keys().empty(), "load: the file holds no list of tensors");
  return archive;
}
OutputArchive& operator<<(OutputArchive& archive, const IValue& x) {
  archive.assign(x);
  return archive;
}
InputArchive& operator>>(InputArchive& archive, IValue& x) {
  x = archive.value();
  return archive;
}

OutputArchive& operator<<(OutputArchive& archive, const optim::Optimizer& optimizer) {
  optimizer.save(archive);
  return archive;
}
InputArchive& operator>>(InputArchive& archive, optim::Optimizer& optimizer) {
  optimizer.load(archive);
  return archive;
}

}  // namespace serialize

std::vector<char> pickle_save(const IValue& value) {
  std::vector<char> out;
  api::write_checkpoint(
      value,
      [&](const void* data, size_t size) {
        auto* from = static_cast<const char*>(data);
        out.insert(out.end(), from, from + size);
      },
      "archive", "pickle_save");
  return out;
}
IValue pickle_load(const std::vector<char>& data) {
  return read(files::MemorySource(data.data(), data.size()), std::nullopt);
}

namespace nn {

void Module::save(serialize::OutputArchive& archive) const {
  for (const auto& item : parameters_) archive.write(item.key(), item.value());
  for (const auto& item : buffers_) archive.write(item.key(), item.value(), true);
  for (const auto& child : children_) {
    serialize::OutputArchive nested;
    child.value()->save(nested);
    archive.write(child.key(), nested);
  }
}
static void read_into(const serialize::InputArchive& archive, const std::string& key, Tensor& to,
                      const std::string& module) {
  if (!to.defined()) return;
  Tensor found;
  archive.read(key, found);
  FB_CHECK(found.sizes() == to.sizes(), "Error(s) in loading ", module, ": size mismatch for ",
           archive.prefix(), key, ": the file has ", found.sizes(), ", the module has ",
           to.sizes());
  NoGradGuard no_grad;
  if (found.dtype() == to.dtype() && found.device() == to.device())
    to.data().copy_(found);
  else
    to.set_data(found.detach());
}
void Module::load(serialize::InputArchive& archive) {
  for (auto& item : parameters_) read_into(archive, item.key(), item.value(), name());
  for (auto& item : buffers_) read_into(archive, item.key(), item.value(), name());
  for (auto& child : children_) {
    serialize::InputArchive nested;
    // One that has nothing to read has nothing in the file.
    if (!archive.try_read(child.key(), nested)) {
      const bool empty = child.value()->parameters().empty() && child.value()->buffers().empty();
      FB_CHECK(empty, "No such serialized submodule: '", archive.prefix(), child.key(), "'");
      continue;
    }
    child.value()->load(nested);
  }
}

}  // namespace nn

}  // namespace flambeau
