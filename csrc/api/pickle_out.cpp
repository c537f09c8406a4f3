#include "api/pickle_out.h"

#include <bit>
#include <map>
#include <unordered_map>

#include "files/crc32.h"
#include "gen/ops.h"
#include "script/values.h"

namespace flambeau::api {

namespace {

constexpr int kDeepest = 500;

// The class of storages of a dtype; null where PyTorch has none but that of bytes.
const char* storage_class(DType d) {
  switch (d) {
    case DType::Float32:
      return "FloatStorage";
    case DType::Float64:
      return "DoubleStorage";
    case DType::Float16:
      return "HalfStorage";
    case DType::BFloat16:
      return "BFloat16Storage";
    case DType::Int64:
      return "LongStorage";
    case DType::Int32:
      return "IntStorage";
    case DType::Int16:
      return "ShortStorage";
    case DType::Int8:
      return "CharStorage";
    case DType::UInt8:
      return "ByteStorage";
    case DType::Bool:
      return "BoolStorage";
    case DType::Complex64:
      return "ComplexFloatStorage";
    case DType::Complex128:
      return "ComplexDoubleStorage";
    default:
      return nullptr;
  }
}

class Pickler {
 public:
  Pickler(const char* what, const Parameters& parameters)
      : what_(what), parameters_(parameters), out_("\x80\2") {}

  std::string run(const Value& root) {
    value(root, 0);
    out_ += '.';
    return std::move(out_);
  }
  const std::vector<Ref<Storage>>& storages() const { return storages_; }

 private:
  void number(uint64_t n, int bytes) {
    for (int k = 0; k < bytes; ++k) out_ += static_cast<char>(n >> (8 * k) & 0xff);
  }
  void integer(int64_t n) {
    if (n >= 0 && n < 256) {
      out_ += 'K';
      number(n, 1);
    } else if (n >= 0 && n < 65536) {
      out_ += 'M';
      number(n, 2);
    } else if (n >= INT32_MIN && n <= INT32_MAX) {
      out_ += 'J';
      number(static_cast<uint64_t>(n), 4);
    } else {
      out_ += "\x8a\x8";
      number(static_cast<uint64_t>(n), 8);
    }
  }
  void real(double x) {
    out_ += 'G';
    const auto bits = std::bit_cast<uint64_t>(x);
    for (int k = 7; k >= 0; --k) out_ += static_cast<char>(bits >> (8 * k) & 0xff);
  }
  void truth(bool x) { out_ += x ? '\x88' : '\x89'; }
  void put() {
    const uint32_t index = count_++;
    out_ += index < 256 ? 'q' : 'r';
    number(index, index < 256 ? 1 : 4);
  }
  void get(uint32_t index) {
    out_ += index < 256 ? 'h' : 'j';
    number(index, index < 256 ? 1 : 4);
  }
  void text(const std::string& x) {
    auto [at, fresh] = texts_.emplace(x, count_);
    if (!fresh) return get(at->second);
    FB_CHECK_VALUE(x.size() <= UINT32_MAX, what_, ": a text of ", x.size(), " bytes");
    out_ += 'X';
    number(x.size(), 4);
    out_ += x;
    put();
  }
  void global(const char* module, const std::string& name) {
    auto [at, fresh] = globals_.emplace(std::string(module) + '\n' + name, count_);
    if (!fresh) return get(at->second);
    out_ += 'c';
    out_ += at->first + '\n';
    put();
  }
  // True if it was written before; else what follows is it.
  bool known(const void* object) {
    auto found = objects_.find(object);
    if (found != objects_.end()) get(found->second);
    return found != objects_.end();
  }
  void remember(const void* object) {
    objects_[object] = count_;
    put();
  }

  template <class Xs, class F>
  void list(const Xs& xs, F each) {
    out_ += ']';
    put();
    if (xs.empty()) return;
    out_ += '(';
    for (size_t i = 0; i < xs.size(); ++i) each(xs[i]);
    out_ += 'e';
  }
  void sizes(const Ints& xs) {
    out_ += '(';
    for (int64_t n : xs) integer(n);
    out_ += 't';
  }

  void value(const Value& v, int depth) {
    FB_CHECK_VALUE(depth < kDeepest, what_, ": values are nested deeper than ", kDeepest);
    using Tag = ValueTag;
    switch (v.tag()) {
      case Tag::None:
        out_ += 'N';
        return;
      case Tag::Bool:
        return truth(v.get<bool>());
      case Tag::Int:
        return integer(v.get<int64_t>());
      case Tag::Float:
        return real(v.get<double>());
      case Tag::Complex: {
        const complex128 z = v.get<complex128>();
        global("builtins", "complex");
        real(z.real());
        real(z.imag());
        out_ += "\x86R";
        return;
      }
      case Tag::Str:
        return text(v.get<std::string>());
      case Tag::DType:
        return global("torch", dtype_name(v.get<DType>()));
      case Tag::Device: {
        std::ostringstream name;
        name << v.get<Device>();
        global("torch", "device");
        text(name.str());
        out_ += "\x85R";
        return;
      }
      case Tag::Tensor:
        return tensor(v.get<Tensor>());
      case Tag::Tensors:
        return list(v.get<Tensors>(), [this](const Tensor& x) { tensor(x); });
      case Tag::Ints:
        return list(v.get<Ints>(), [this](int64_t n) { integer(n); });
      case Tag::Floats:
        return list(v.get<std::vector<double>>(), [this](double x) { real(x); });
      case Tag::Bools:
        return list(v.get<std::vector<bool>>(), [this](bool x) { truth(x); });
      case Tag::Object:
        return object(v, depth);
      default:
        wrong(v);
    }
  }
  [[noreturn]] void wrong(const Value& v) const {
    fail(ErrorKind::Type, what_,
         ": expected data (tensors, numbers, texts, lists, tuples, dicts), ", "got ",
         script::kind_name(v));
  }

  void object(const Value& v, int depth) {
    if (auto* xs = script::box_of<script::Tuple>(v)) {
      out_ += '(';
      for (const Value& x : xs->items) value(x, depth + 1);
      out_ += 't';
    } else if (auto* xs = script::box_of<script::List>(v)) {
      if (known(xs)) return;
      out_ += ']';
      remember(xs);
      if (xs->items.empty()) return;
      out_ += '(';
      for (const Value& x : xs->items) value(x, depth + 1);
      out_ += 'e';
    } else if (auto* pairs = script::box_of<script::Dict>(v)) {
      if (known(pairs)) return;
      out_ += '}';
      remember(pairs);
      if (pairs->size() == 0) return;
      out_ += '(';
      pairs->each([&](const Value& key, const Value& x) {
        value(key, depth + 1);
        value(x, depth + 1);
      });
      out_ += 'u';
    } else {
      wrong(v);
    }
  }

  void tensor(const Tensor& given) {
    if (!given.defined()) {
      out_ += 'N';
      return;
    }
    if (known(given.impl())) return;
    // A parameter is a call with the tensor in it; hooks are an empty OrderedDict.
    const bool parameter = parameters_.count(given.impl()) != 0;
    if (parameter) {
      global("torch._utils", "_rebuild_parameter");
      out_ += '(';
    }
    const NoGradGuard no_grad;
    const Tensor x = ops::resolve_neg(ops::resolve_conj(given.data()));
    const DType own = x.dtype();
    const auto [number_of, kind] = storage(x);
    const bool same = kind && storage_class(own) == kind;
    global("torch._utils", same ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    out_ += "((";
    text("storage");
    const int64_t bytes = x.storage()->nbytes();
    if (kind)
      global("torch", kind);
    else
      global("torch.storage", "UntypedStorage");
    text(std::to_string(number_of));
    text("cpu");
    integer(kind ? bytes / kinds_itemsize_[number_of] : bytes);
    out_ += "tQ";
    integer(x.offset());
    sizes(x.sizes());
    sizes(x.strides());
    truth(!parameter && given.requires_grad() && given.is_leaf());
    hooks();
    if (!same) global("torch", dtype_name(own));
    out_ += "tR";
    if (parameter) {
      truth(given.requires_grad());
      hooks();
      out_ += "tR";
    }
    remember(given.impl());
    alive_.push_back(given);
  }
  void hooks() {
    global("collections", "OrderedDict");
    out_ += ")R";
  }

  // The number of a tensor's storage and its class; null: bytes.
  std::pair<size_t, const char*> storage(const Tensor& x) {
    FB_CHECK_TYPE(x.is_cpu(), what_, ": a tensor of device ", x.device(),
                  " cannot be written from C++; move it to the CPU first");
    auto [at, fresh] = numbers_.emplace(x.storage().get(), storages_.size());
    if (fresh) {
      storages_.push_back(x.storage());
      const bool whole = x.storage()->nbytes() % itemsize(x.dtype()) == 0;
      kinds_.push_back(whole ? storage_class(x.dtype()) : nullptr);
      kinds_itemsize_.push_back(itemsize(x.dtype()));
    }
    return {at->second, kinds_[at->second]};
  }

  const char* what_;
  const Parameters& parameters_;
  std::string out_;
  uint32_t count_ = 0;
  std::map<std::string, uint32_t> texts_, globals_;
  std::unordered_map<const void*, uint32_t> objects_;
  std::unordered_map<const Storage*, size_t> numbers_;
  std::vector<Ref<Storage>> storages_;
  std::vector<const char*> kinds_;
  std::vector<int64_t> kinds_itemsize_;
  std::vector<Tensor> alive_;  // addresses stay those of the tensors that were met
};

}  // namespace

void write_checkpoint(const Value& root, const files::Sink& to, const std::string& top,
                      const char* what, const Parameters& parameters) {
  // All of it is a pickle before a byte is written.
  Pickler pickler(what, parameters);
  const std::string pickle = pickler.run(root);
  files::ZipWriter zip(to);
  zip.add(top + "/data.pkl", pickle);
  zip.add(top + "/.format_version", "1");
  zip.add(top + "/.storage_alignment", "64");
  zip.add(top + "/byteorder", "little");
  for (size_t i = 0; i < pickler.storages().size(); ++i) {
    const Storage& s = *pickler.storages()[i];
    zip.add(top + "/data/" + std::to_string(i), s.data(), static_cast<size_t>(s.nbytes()));
  }
  zip.add(top + "/version", "3\n");
  // A mark that is the same for the same contents.
  const std::string mark = std::to_string(files::crc32(0, pickle.data(), pickle.size()));
  zip.add(top + "/.data/serialization_id", std::string(40 - mark.size(), '0') + mark);
  zip.close();
}

}  // namespace flambeau::api
