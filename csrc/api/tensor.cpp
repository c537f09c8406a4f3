#define FLAMBEAU_API
#include "flambeau/flambeau.h"

#include <mutex>
#include <unordered_map>

#include "autograd/engine.h"
#include "autograd/forward_mode.h"
#include "autograd/items.h"
#include "autograd/meta.h"
#include "autograd/print.h"
#include "core/parallel.h"
#include "func/frames.h"
#include "gen/ops.h"

namespace flambeau {

// The class has the same layout for programs as inside of the library.
static_assert(sizeof(Tensor) == sizeof(void*));

// As something else
// -----------------------------------------------------------------------------------------------

Tensor Tensor::to(const TensorOptions& options, bool, bool copy,
                  std::optional<MemoryFormat> memory_format) const {
  if (!memory_format) memory_format = options.memory_format_opt();
  return ops::to(*this, options.dtype_opt(), copy, memory_format, options.device_opt());
}
Tensor Tensor::to(DType dtype, bool, bool copy, std::optional<MemoryFormat> memory_format) const {
  return ops::to(*this, dtype, copy, memory_format, std::nullopt);
}
Tensor Tensor::to(Device device, DType dtype, bool, bool copy,
                  std::optional<MemoryFormat> memory_format) const {
  return ops::to(*this, dtype, copy, memory_format, device);
}
Tensor Tensor::to(const Tensor& other, bool, bool copy,
                  std::optional<MemoryFormat> memory_format) const {
  return ops::to(*this, other.dtype(), copy, memory_format, other.device());
}
Tensor Tensor::cpu() const {
  return to(Device(DeviceType::CPU), dtype());
}
Tensor Tensor::cuda() const {
  return to(Device(DeviceType::CUDA), dtype());
}
Tensor Tensor::alias() const {
  return ops::alias(*this);
}

std::string DeprecatedTypeProperties::toString() const {
  std::string where = device_.is_cuda() ? "CUDA" : device_.is_meta() ? "Meta" : "CPU";
  return where + scalar_type_name(dtype_) + "Type";
}
std::string Tensor::toString() const {
  return defined() ? type().toString() : "UndefinedType";
}
std::ostream& operator<<(std::ostream& out, DeviceType type) {
  return out << Device(type);
}
std::ostream& operator<<(std::ostream& out, Layout layout) {
  return out << (layout == Layout::Strided     ? "Strided"
                 : layout == Layout::SparseCoo ? "Sparse"
                                               : "SparseCsr");
}
std::ostream& operator<<(std::ostream& out, MemoryFormat format) {
  constexpr const char* names[] = {"Contiguous", "Preserve", "ChannelsLast", "ChannelsLast3d"};
  return out << names[static_cast<size_t>(format)];
}

// Parts
// -----------------------------------------------------------------------------------------------

using indexing::TensorIndex;

// Reads the parts of a key, which lives as long as its indexer.
static void read(Indexer& indexer, ArrayRef<TensorIndex> key) {
  FB_CHECK_INDEX(!key.empty(),
                 "Passing an empty index list to Tensor::index() is not valid syntax");
  int64_t given = 0;
  for (const TensorIndex& part : key)
    given += part.is_tensor() && is_mask(part.tensor())                 ? part.tensor().dim()
             : part.is_integer() || part.is_slice() || part.is_tensor() ? 1
                                                                        : 0;
  indexer.begin(given, key.size() == 1 && key[0].is_integer());
  for (const TensorIndex& part : key) {
    switch (part.kind()) {
      case TensorIndex::Kind::None:
        indexer.none();
        break;
      case TensorIndex::Kind::Ellipsis:
        indexer.ellipsis();
        break;
      case TensorIndex::Kind::Integer:
        indexer.select(part.integer());
        break;
      case TensorIndex::Kind::Boolean:
        indexer.truth(part.boolean());
        break;
      case TensorIndex::Kind::Slice:
        indexer.slice(part.slice().start(), part.slice().stop(), part.slice().step());
        break;
      case TensorIndex::Kind::Tensor:
        indexer.tensor(part.tensor());
        break;
    }
  }
}

Tensor Tensor::index(ArrayRef<TensorIndex> key) const {
  Indexer indexer(*this);
  read(indexer, key);
  Tensor view = indexer.view(false);
  return indexer.advanced() ? ops::index(view, indexer.indices()) : view;
}
Tensor Tensor::index(std::initializer_list<TensorIndex> key) const {
  return index(ArrayRef<TensorIndex>(key));
}
Tensor& Tensor::index_put_(ArrayRef<TensorIndex> key, const Tensor& value) const {
  Indexer indexer(*this);
  read(indexer, key);
  assign(*this, indexer, value);
  return const_cast<Tensor&>(*this);
}
Tensor& Tensor::index_put_(ArrayRef<TensorIndex> key, const Scalar& value) const {
  Indexer indexer(*this);
  read(indexer, key);
  assign(*this, indexer, value);
  return const_cast<Tensor&>(*this);
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> key, const Tensor& value) const {
  return index_put_(ArrayRef<TensorIndex>(key), value);
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> key, const Scalar& value) const {
  return index_put_(ArrayRef<TensorIndex>(key), value);
}
Tensor Tensor::operator[](int64_t i) const {
  return index({TensorIndex(i)});
}
Tensor Tensor::operator[](const Scalar& i) const {
  FB_CHECK_INDEX(i.is_integral(), "Can only index tensors with integral scalars");
  return index({TensorIndex(i.to_int())});
}
Tensor Tensor::operator[](const Tensor& i) const {
  FB_CHECK_INDEX(i.defined(), "Can only index with tensors that are defined");
  return index({TensorIndex(i)});
}
Tensor& Tensor::operator=(const Tensor& value) && {
  ops::copy_(*this, value);
  return *this;
}
Tensor& Tensor::operator=(const Scalar& value) && {
  ops::fill_(*this, value);
  return *this;
}

// Derivatives
// -----------------------------------------------------------------------------------------------

Tensor& Tensor::requires_grad_(bool on) const {
  func::refuse_inside("requires_grad_()", "use grad, vjp or jvp of the function");
  flambeau::set_requires_grad(*this, on);
  return const_cast<Tensor&>(*this);
}
bool Tensor::is_leaf() const {
  return flambeau::is_leaf(*this);
}
Ref<Node> Tensor::grad_fn() const {
  return flambeau::grad_fn(*this);
}
int64_t Tensor::output_nr() const {
  return impl()->autograd ? impl()->autograd->output_nr : 0;
}
Tensor Tensor::grad() const {
  return grad_of(*this);
}
Tensor& Tensor::mutable_grad() const {
  return materialize_meta(*this).grad;
}
void Tensor::set_grad(const Tensor& value) const {
  flambeau::set_grad(*this, value);
}
Tensor Tensor::detach() const {
  return flambeau::detach(*this);
}
Tensor& Tensor::detach_() const {
  flambeau::detach_(*this);
  return const_cast<Tensor&>(*this);
}
Tensor Tensor::data() const {
  return data_of(*this);
}
void Tensor::set_data(const Tensor& value) const {
  flambeau::set_data(*this, value);
}
void Tensor::retain_grad() const {
  flambeau::retain_grad(*this);
}
bool Tensor::retains_grad() const {
  return impl()->autograd && impl()->autograd->retained;
}
void Tensor::backward(const std::optional<Tensor>& gradient, std::optional<bool> retain_graph,
                      bool create_graph, std::optional<TensorList> inputs) const {
  autograd::backward({*this}, {gradient.value_or(Tensor())}, retain_graph, create_graph,
                     inputs ? inputs->vec() : std::vector<Tensor>());
}
Tensor Tensor::_fw_grad(uint64_t) const {
  return tangent_of(*this);
}

// The handles by the numbers that register_hook gave.
static std::mutex handles_mutex;
static std::unordered_map<unsigned, HookHandle>& handles() {
  static auto* all = new std::unordered_map<unsigned, HookHandle>();
  return *all;
}
unsigned Tensor::add_hook(std::function<Tensor(const Tensor&)> hook) const {
  HookHandle handle = add_tensor_hook(*this, std::move(hook));
  const auto number = static_cast<unsigned>(handle.id);
  std::lock_guard guard(handles_mutex);
  handles()[number] = std::move(handle);
  return number;
}
void Tensor::remove_hook(unsigned number) const {
  std::lock_guard guard(handles_mutex);
  auto found = handles().find(number);
  FB_CHECK_INDEX(found != handles().end(), "remove_hook: there is no hook ", number);
  found->second.remove();
  handles().erase(found);
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) {
  return out << tensor_text(x, {});
}
void Tensor::print() const {
  std::cout << *this << '\n';
}
void print(const Tensor& x) {
  x.print();
}

// Random state and threads
// -----------------------------------------------------------------------------------------------

void manual_seed(uint64_t seed) {
  default_generator()->manual_seed(seed);
}
Generator make_generator(uint64_t seed) {
  auto g = Generator::adopt(new GeneratorImpl());
  g->manual_seed(seed);
  return g;
}
int get_num_threads() {
  return num_threads();
}

namespace api {
Tensor with_options(Tensor made, const TensorOptions& options) {
  if (options.requires_grad()) flambeau::set_requires_grad(made, true);
  return made;
}
}  // namespace api

// Tensors from what a program has
// -----------------------------------------------------------------------------------------------

TensorData::TensorData(std::initializer_list<TensorData> parts) : kind_(default_dtype()) {
  const auto count = static_cast<int64_t>(parts.size());
  if (count) {
    sizes_ = parts.begin()->sizes_;
    kind_ = parts.begin()->kind_;
  }
  for (const TensorData& part : parts) {
    FB_CHECK_VALUE(part.sizes_ == sizes_, "tensor: expected parts of equal sizes, got ", sizes_,
                   " and ", part.sizes_);
    FB_CHECK_VALUE(part.kind_ == kind_, "tensor: expected numbers of one kind, got ", kind_,
                   " and ", part.kind_);
    numbers_.insert(numbers_.end(), part.numbers_.begin(), part.numbers_.end());
  }
  sizes_.insert(sizes_.begin(), count);
}

Tensor TensorData::tensor(const TensorOptions& options) const {
  const DType dtype = options.dtype_opt().value_or(kind_);
  Tensor out = ops::empty(sizes_, dtype);
  visit(dtype, [&]<class T>() {
    T* to = static_cast<T*>(out.data_ptr());
    for (const Scalar& x : numbers_) *to++ = x.to<T>();
  });
  if (options.has_device()) out = ops::to(out, std::nullopt, false, std::nullopt, options.device());
  return api::with_options(out, options);
}

static void call_deleter(void* context) {
  auto* held = static_cast<std::pair<std::function<void(void*)>, void*>*>(context);
  held->first(held->second);
  delete held;
}

Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                 const std::function<void(void*)>& deleter, const TensorOptions& options) {
  FB_CHECK_VALUE(sizes.size() == strides.size(), "from_blob: expected a stride for each of ",
                 sizes.size(), " sizes, got ", strides.size());
  FB_CHECK_IMPL(options.device().is_cpu(), "from_blob: expected memory of the CPU, got device ",
                options.device());
  const Ints shape = sizes.ints(), steps = strides.ints();
  const DType dtype = options.dtype();
  const int64_t count = checked_numel(shape, "from_blob");
  int64_t last = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    FB_CHECK_VALUE(steps[d] >= 0, "from_blob: strides must not be negative, got ", steps);
    int64_t reach;
    FB_CHECK(count == 0 || (!__builtin_mul_overflow(shape[d] - 1, steps[d], &reach) &&
                            !__builtin_add_overflow(last, reach, &last)),
             "from_blob: sizes ", shape, " with strides ", steps, " reach too far");
  }
  int64_t bytes = 0;
  FB_CHECK(!__builtin_mul_overflow(last + 1, itemsize(dtype), &bytes), "from_blob: sizes ", shape,
           " with strides ", steps, " reach too far");
  FB_CHECK_VALUE(data || count == 0, "from_blob: expected memory of ", bytes, " bytes, got null");
  auto* held = new std::pair(deleter ? deleter : [](void*) {}, data);
  Tensor out(Ref<TensorImpl>::adopt(TensorImpl::make()));
  out->dtype = dtype;
  out->sizes = shape;
  out->strides = steps;
  out->storage = Storage::wrap(data, count ? bytes : 0, call_deleter, held);
  out->refresh();
  return api::with_options(out, options);
}
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options) {
  return from_blob(data, sizes, strides, std::function<void(void*)>(), options);
}
Tensor from_blob(void* data, IntArrayRef sizes, const std::function<void(void*)>& deleter,
                 const TensorOptions& options) {
  return from_blob(data, sizes, contiguous_strides(sizes.ints()), deleter, options);
}
Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options) {
  return from_blob(data, sizes, contiguous_strides(sizes.ints()), std::function<void(void*)>(),
                   options);
}

}  // namespace flambeau
