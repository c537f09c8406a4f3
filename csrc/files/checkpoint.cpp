#include "files/checkpoint.h"

#include <charconv>
#include <map>
#include <set>

#include "autograd/meta.h"
#include "files/json.h"
#include "files/pickle.h"
#include "files/zip.h"

namespace flambeau::files {

const Data* Data::find(std::string_view key) const {
  for (size_t i = 0; kind == Kind::Dict && i + 1 < items.size(); i += 2)
    if (items[i]->kind == Kind::Text && items[i]->text == key) return items[i + 1];
  return nullptr;
}
const Data& Data::at(std::string_view key) const {
  const Data* found = find(key);
  FB_CHECK_VALUE(found, "the file has no '", std::string(key), "' where one is expected");
  return *found;
}
const Data& Data::expect(Kind k, const char* what) const {
  FB_CHECK_VALUE(kind == k, "expected ", what, ", the file has something else");
  return *this;
}

namespace {

void read_into(const Source& from, const Entry& entry, void* to) {
  const uint32_t crc = read_checked(from, entry.start, to, entry.size);
  // PyTorch writes zero where it was told to leave checksums out.
  FB_CHECK(crc == entry.crc || entry.crc == 0, "the file is damaged: the checksum of ", entry.name,
           " is not that of its bytes");
}

// Storages by the names of their classes.
const std::map<std::string, DType, std::less<>> kStorages = {
    {"torch.FloatStorage", DType::Float32},
    {"torch.DoubleStorage", DType::Float64},
    {"torch.HalfStorage", DType::Float16},
    {"torch.BFloat16Storage", DType::BFloat16},
    {"torch.LongStorage", DType::Int64},
    {"torch.IntStorage", DType::Int32},
    {"torch.ShortStorage", DType::Int16},
    {"torch.CharStorage", DType::Int8},
    {"torch.ByteStorage", DType::UInt8},
    {"torch.BoolStorage", DType::Bool},
    {"torch.ComplexFloatStorage", DType::Complex64},
    {"torch.ComplexDoubleStorage", DType::Complex128},
    {"torch.storage.UntypedStorage", DType::UInt8},
};

// Makes nodes of what the pickle machine reads.
class Maker {
 public:
  using Value = Data*;

  Maker(const Source& from, const std::vector<Entry>& entries, std::string folder, Tree& tree)
      : from_(from), entries_(entries), folder_(std::move(folder)), tree_(tree) {}

  Value none() { return make(Data::Kind::None); }
  Value boolean(bool x) { return whole(Data::Kind::Bool, x); }
  Value integer(int64_t x) { return whole(Data::Kind::Integer, x); }
  Value real(double x) {
    Data* d = make(Data::Kind::Real);
    d->real = x;
    return d;
  }
  Value long_integer(std::string_view bytes) {
    FB_CHECK_VALUE(bytes.size() <= 8, "a whole number of more than 64 bits");
    uint64_t n = 0;
    for (size_t k = bytes.size(); k--;) n = n << 8 | static_cast<unsigned char>(bytes[k]);
    const bool negative = !bytes.empty() && static_cast<unsigned char>(bytes.back()) & 0x80;
    if (negative && bytes.size() < 8) n |= ~uint64_t{0} << (8 * bytes.size());
    return integer(static_cast<int64_t>(n));
  }
  Value decimal(std::string_view text) {
    if (!text.empty() && text.back() == 'L') text.remove_suffix(1);
    int64_t n = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    FB_CHECK_VALUE(error == std::errc{} && end == text.data() + text.size(), "a whole number '",
                   std::string(text), "'");
    return integer(n);
  }
  Value real_text(std::string_view text) {
    double x = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
    FB_CHECK_VALUE(error == std::errc{} && end == text.data() + text.size(), "a number '",
                   std::string(text), "'");
    return real(x);
  }
  Value text(std::string_view bytes) {
    FB_CHECK_VALUE(is_utf8(bytes), "a text that is no UTF-8");
    return worded(Data::Kind::Text, bytes);
  }
  Value raw_unicode(std::string_view bytes) {
    FB_CHECK_VALUE(bytes.find('\\') == std::string_view::npos, "an escaped text");
    return text(bytes);
  }
  Value old_text(std::string_view bytes) { return text(bytes); }
  Value quoted(std::string_view bytes) {
    FB_CHECK_VALUE(bytes.size() >= 2 && bytes.front() == bytes.back() &&
                       bytes.find('\\') == std::string_view::npos,
                   "an escaped text");
    return text(bytes.substr(1, bytes.size() - 2));
  }
  Value bytes(std::string_view xs) { return worded(Data::Kind::Bytes, xs); }
  Value byte_array(std::string_view xs) { return bytes(xs); }
  Value tuple(Value* xs, size_t n) { return holding(Data::Kind::Tuple, xs, n); }
  Value list(Value* xs, size_t n) { return holding(Data::Kind::List, xs, n); }
  Value dict(Value* xs, size_t n) {
    Data* d = make(Data::Kind::Dict);
    set_items(d, xs, n);
    return d;
  }
  Value set(Value*, size_t, bool) { fail(ErrorKind::Value, "sets are not read here"); }
  void add_items(Value, Value*, size_t) { fail(ErrorKind::Value, "sets are not read here"); }
  void extend(Value target, Value* xs, size_t n) {
    target->expect(Data::Kind::List, "a list");
    target->items.insert(target->items.end(), xs, xs + n);
  }
  void set_items(Value target, Value* xs, size_t n) {
    target->expect(Data::Kind::Dict, "a dict");
    FB_CHECK_VALUE(n % 2 == 0, "a key without a value");
    for (size_t i = 0; i < n; i += 2) {
      // The last value of a key is the one that counts; its place is that of the first.
      Data* key = xs[i];
      auto& all = target->items;
      size_t at = all.size();
      if (key->is(Data::Kind::Text) && target->integer < 64)  // of small dicts, as states are
        for (size_t k = 0; k < all.size(); k += 2)
          if (all[k]->is(Data::Kind::Text) && all[k]->text == key->text) at = k;
      if (at < all.size()) {
        all[at + 1] = xs[i + 1];
      } else {
        all.push_back(key);
        all.push_back(xs[i + 1]);
        ++target->integer;
      }
    }
  }
  Value global(Value module, Value name, int) {
    const std::string& m = module->expect(Data::Kind::Text, "a module's name").text;
    const std::string whole = m + "." + name->expect(Data::Kind::Text, "a name").text;
    if (m == "torch") {
      for (int d = 0; d < kDTypes; ++d) {
        if (whole != std::string("torch.") + dtype_name(static_cast<DType>(d))) continue;
        Data* made = make(Data::Kind::DType);
        made->dtype = static_cast<DType>(d);
        return made;
      }
    }
    return worded(Data::Kind::Global, whole);
  }
  Value persistent(Value id) {
    const auto& parts = id->expect(Data::Kind::Tuple, "a storage").items;
    FB_CHECK_VALUE(parts.size() == 5 && parts[0]->text == "storage", "expected a storage");
    const std::string& cls = parts[1]->expect(Data::Kind::Global, "a class of storages").text;
    auto type = kStorages.find(cls);
    FB_CHECK_VALUE(type != kStorages.end(), "storages of class ", cls, " are not read here");
    const std::string& key = parts[2]->expect(Data::Kind::Text, "the name of a storage").text;
    Data* made = make(Data::Kind::Storage);
    made->dtype = type->second;
    made->storage = storage(key);
    return made;
  }
  Value call(Value function, Value args) {
    const std::string& name = function->expect(Data::Kind::Global, "a function").text;
    const auto& xs = args->expect(Data::Kind::Tuple, "arguments").items;
    if (name == "torch._utils._rebuild_tensor_v2" || name == "torch._utils._rebuild_tensor" ||
        name == "torch._utils._rebuild_tensor_v3")
      return tensor(xs, name.ends_with("v3"), !name.ends_with("tensor"));
    if (name == "torch._utils._rebuild_parameter") return parameter(xs);
    if (name == "collections.OrderedDict" && xs.empty()) return make(Data::Kind::Dict);
    if (name == "torch.device" && (xs.size() == 1 || xs.size() == 2)) {
      Data* made = make(Data::Kind::Device);
      const Device d(xs[0]->expect(Data::Kind::Text, "a device").text);
      const int64_t i =
          xs.size() == 2 ? xs[1]->expect(Data::Kind::Integer, "an ordinal").integer : d.index();
      FB_CHECK_VALUE(i >= -1 && i < 128, "a device of ordinal ", i);
      made->device = Device(d.type(), static_cast<int8_t>(i));
      return made;
    }
    if ((name == "builtins.complex" || name == "__builtin__.complex") && xs.size() == 2) {
      Data* made = make(Data::Kind::Complex);
      made->real = xs[0]->expect(Data::Kind::Real, "a number").real;
      made->imaginary = xs[1]->expect(Data::Kind::Real, "a number").real;
      return made;
    }
    // Lists whose type PyTorch's scripts state.
    if (name.starts_with("torch.jit._pickle.") && !xs.empty()) return xs[0];
    fail(ErrorKind::Value, "the file calls ", name, ", which is not read here");
  }
  Value new_object(Value cls, Value args, Value kwargs) {
    FB_CHECK_VALUE(!kwargs, "objects with named arguments are not read here");
    // Modules as PyTorch's scripts and its C++ write them: their attributes by name.
    if (cls->is(Data::Kind::Global) && cls->text.starts_with("__torch__.")) {
      Data* made = make(Data::Kind::Dict);
      objects_.insert(made);
      return made;
    }
    return call(cls, args);
  }
  // What an ordered dict has besides, such as the versions of a state dict's modules.
  void state(Value object, Value state) {
    object->expect(Data::Kind::Dict, "a dict");
    if (objects_.count(object)) object->items = state->expect(Data::Kind::Dict, "a dict").items;
  }

 private:
  Data* make(Data::Kind kind) {
    tree_.nodes.push_back(std::make_unique<Data>());
    tree_.nodes.back()->kind = kind;
    return tree_.nodes.back().get();
  }
  Data* whole(Data::Kind kind, int64_t x) {
    Data* d = make(kind);
    d->integer = x;
    return d;
  }
  Data* worded(Data::Kind kind, std::string_view text) {
    Data* d = make(kind);
    d->text = text;
    return d;
  }
  Data* holding(Data::Kind kind, Value* xs, size_t n) {
    Data* d = make(kind);
    d->items.assign(xs, xs + n);
    return d;
  }

  Ref<Storage> storage(const std::string& key) {
    auto found = storages_.find(key);
    if (found != storages_.end()) return found->second;
    const std::string name = folder_ + "data/" + key;
    for (const Entry& e : entries_) {
      if (e.name != name) continue;
      auto made = Storage::make(static_cast<int64_t>(e.size));
      read_into(from_, e, made->data());
      return storages_[key] = made;
    }
    fail(ErrorKind::Value, "the file has no storage '", key, "'");
  }

  static Ints ints(const Data* d) {
    Ints out;
    for (const Data* x : d->expect(Data::Kind::Tuple, "a tuple of whole numbers").items)
      out.push_back(x->expect(Data::Kind::Integer, "a whole number").integer);
    return out;
  }
  static bool truth(const Data* d) {
    return d->expect(Data::Kind::Bool, "a truth value").integer != 0;
  }

  Data* tensor(const std::vector<Data*>& xs, bool with_dtype, bool with_grad) {
    FB_CHECK_VALUE(xs.size() >= (with_dtype ? 7u : with_grad ? 6u : 4u), "a tensor's arguments");
    const Data& from = xs[0]->expect(Data::Kind::Storage, "a storage");
    const DType dtype = with_dtype ? xs[6]->expect(Data::Kind::DType, "a dtype").dtype : from.dtype;
    Tensor whole(Ref<TensorImpl>::adopt(TensorImpl::make()));
    whole->dtype = dtype;
    whole->sizes = {from.storage->nbytes() / itemsize(dtype)};
    whole->strides = {1};
    whole->storage = from.storage;
    whole->refresh();
    Data* made = make(Data::Kind::Tensor);
    // Bounds are checked there.
    made->tensor = alias(whole, ints(xs[2]), ints(xs[3]),
                         xs[1]->expect(Data::Kind::Integer, "an offset").integer);
    if (with_grad && truth(xs[4])) set_requires_grad(made->tensor, true);
    return made;
  }
  Data* parameter(const std::vector<Data*>& xs) {
    FB_CHECK_VALUE(xs.size() == 3, "a parameter's arguments");
    Data* made = make(Data::Kind::Tensor);
    made->tensor = xs[0]->expect(Data::Kind::Tensor, "a tensor").tensor;
    set_requires_grad(made->tensor, truth(xs[1]));
    return made;
  }

  const Source& from_;
  const std::vector<Entry>& entries_;
  const std::string folder_;
  Tree& tree_;
  std::map<std::string, Ref<Storage>> storages_;
  std::set<const Data*> objects_;  // whose attributes are their state
};

std::string contents(const Source& from, const Entry& entry) {
  std::string out(entry.size, '\0');
  read_into(from, entry, out.data());
  return out;
}

}  // namespace

std::string read_entry(const Source& from, std::string_view name) {
  for (const Entry& e : read_directory(from)) {
    const size_t slash = e.name.find('/');
    // Archives may hold all they hold in one folder.
    if (e.name == name || (slash != std::string::npos && e.name.substr(slash + 1) == name))
      return contents(from, e);
  }
  fail(ErrorKind::Runtime, "the archive has no ", std::string(name));
}

Tree read_checkpoint(const Source& from) {
  const std::vector<Entry> entries = read_directory(from, true);
  for (const Entry& e : entries) {
    if (!e.name.ends_with("data.pkl")) continue;
    Tree tree;
    const std::string pickle = contents(from, e);
    Maker maker(from, entries, e.name.substr(0, e.name.size() - 8), tree);
    tree.root = Unpickler<Maker>(pickle, 0, maker).run();
    return tree;
  }
  fail(ErrorKind::Runtime, "the archive is no file of torch.save: it has no data.pkl");
}

}  // namespace flambeau::files
