#include "core/tensor.h"

#include <algorithm>
#include <numeric>

#include "core/caching.h"
#include "core/devices.h"
#include "core/warning.h"
#include "dispatch/modes.h"  // the one mode that new tensors remember

namespace flambeau {

// A wrapper's alias stands for the same; defined in autograd/meta.cpp.
AutogradMeta* copy_wrapper(const AutogradMeta* meta);

// Impl: a free list per thread
// ---------------------------------------------------------------------------------------

namespace {
constexpr int kKeptImpls = kCaching ? 256 : 0;
// Freed blocks are linked through themselves: thread-local memory of an extension module is scarce
// (initial-exec).
struct FreeBlock {
  FreeBlock* next;
};
struct ImplCache {
  FreeBlock* first = nullptr;
  int count = 0;
  static thread_local bool alive;
  ~ImplCache() {
    while (first) ::operator delete(std::exchange(first, first->next));
    alive = false;
  }
};
thread_local bool ImplCache::alive = true;
thread_local ImplCache impl_cache;

// New memory, as opposed to an alias, is marked when it is made under inference_mode.
uint16_t fresh_flags() {
  return modes.inference ? kInference : 0;
}
Tensor fresh(Tensor t) {
  t->flags |= fresh_flags();
  return t;
}

Tensor make_tensor(const Ints& sizes, const Ints& strides, DType dtype, int64_t offset,
                   Ref<Storage> storage) {
  auto* impl = TensorImpl::make();
  impl->dtype = dtype;
  impl->sizes = sizes;
  impl->strides = strides;
  impl->offset = offset;
  impl->storage = std::move(storage);
  impl->refresh();
  return Tensor(Ref<TensorImpl>::adopt(impl));
}

// Elements from offset 0 that a geometry reaches; Error on negative strides or overflow.
int64_t extent(const Ints& sizes, const Ints& strides, int64_t offset, const char* op) {
  FB_CHECK(sizes.size() == strides.size(), op, ": expected as many strides as sizes, got ", strides,
           " for ", sizes);
  FB_CHECK(offset >= 0, op, ": expected a non-negative storage offset, got ", offset);
  checked_numel(sizes, op);
  int64_t last = offset;
  bool none = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    FB_CHECK(strides[i] >= 0, op, ": negative strides are not supported, got ", strides);
    if (sizes[i] == 0) none = true;
    int64_t reach = 0;
    FB_CHECK(sizes[i] == 0 || (!__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) &&
                               !__builtin_add_overflow(last, reach, &last)),
             op, ": sizes ", sizes, " with strides ", strides, " overflow");
  }
  if (none) return offset;
  FB_CHECK(!__builtin_add_overflow(last, 1, &last), op, ": storage offset ", offset, " overflows");
  return last;
}
}  // namespace

TensorImpl* TensorImpl::make() {
  ImplCache& cache = impl_cache;
  if (cache.first) [[likely]] {
    --cache.count;
    return new (std::exchange(cache.first, cache.first->next)) TensorImpl;
  }
  return new TensorImpl;
}

void (*release_python_object)(void* pyobj) noexcept = nullptr;

void TensorImpl::destroy(TensorImpl* t) noexcept {
  if (t->flags & kOwnsPython) [[unlikely]]
    release_python_object(t->pyobj);
  if (t->autograd) destroy_autograd_meta(t->autograd);
  t->~TensorImpl();
  if (ImplCache::alive && impl_cache.count < kKeptImpls) {
    ImplCache& cache = impl_cache;
    cache.first = new (static_cast<void*>(t)) FreeBlock{cache.first};
    ++cache.count;
  } else {
    ::operator delete(t);
  }
}

void TensorImpl::refresh() {
  int64_t step = 1;
  bool dense = true;
  int64_t n = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1) {
      dense &= strides[i] == step;
      step *= sizes[i];
    }
    n *= sizes[i];
  }
  numel = n;
  flags = dense || n == 0 ? flags | kContiguous : flags & ~kContiguous;
}

// Geometry of one tensor
// ----------------------------------------------------------------------------------------------

int64_t Tensor::size(int64_t d) const {
  int64_t n = dim();
  FB_CHECK_INDEX(n > 0, "Dimension specified as ", d, " but tensor has no dimensions");
  return impl_->sizes[wrap_dim(d, n)];
}

int64_t Tensor::stride(int64_t d) const {
  int64_t n = dim();
  FB_CHECK_INDEX(n > 0, "Dimension specified as ", d, " but tensor has no dimensions");
  return impl_->strides[wrap_dim(d, n)];
}

namespace {
bool laid_out_as(const Tensor& x, const Ints& order) {  // dims from the fastest to the slowest
  int64_t step = 1;
  for (int64_t d : order) {
    if (x.sizes()[d] != 1 && x.strides()[d] != step) return false;
    step *= x.sizes()[d];
  }
  return true;
}
Ints channels_last_order(int64_t n) {
  Ints order{1};
  for (int64_t d = n - 1; d >= 2; --d) order.push_back(d);
  order.push_back(0);
  return order;
}
}  // namespace

bool Tensor::is_contiguous(MemoryFormat f) const {
  if (f == MemoryFormat::ChannelsLast || f == MemoryFormat::ChannelsLast3d) {
    int64_t want = f == MemoryFormat::ChannelsLast ? 4 : 5;
    return dim() == want && (numel() == 0 || laid_out_as(*this, channels_last_order(want)));
  }
  return is_contiguous();
}

// By strides: ties (size-1 dims) are ambiguous, and a channels-last order must be visible in them.
MemoryFormat Tensor::suggest_memory_format() const {
  int64_t n = dim();
  if (n != 4 && n != 5) return MemoryFormat::Contiguous;
  const Ints &s = sizes(), &st = strides();
  int64_t least = 0;
  if (st[1] == 0) return MemoryFormat::Contiguous;
  for (int64_t d : channels_last_order(n)) {
    if (s[d] == 0 || st[d] < least) return MemoryFormat::Contiguous;
    if (d == 0 && least == st[1]) return MemoryFormat::Contiguous;  // N111: row-major wins
    least = st[d];
    if (s[d] > 1) least *= s[d];
  }
  return n == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}

bool Tensor::is_dense() const {
  if (is_contiguous()) return true;
  Ints order(dim());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::pair(strides()[a], sizes()[a]) < std::pair(strides()[b], sizes()[b]);
  });
  return laid_out_as(*this, order);
}

Scalar Tensor::item() const {
  FB_CHECK(device().type() != DeviceType::Meta, "Tensor.item() cannot be called on meta tensors");
  FB_CHECK(!has_flag(kWrapper),
           "vmap: .item() was called on a batched tensor, or it was used in data-dependent control "
           "flow: it has one value for each sample; use tensor operations, such as torch.where");
  FB_CHECK(numel() == 1, "a Tensor with ", numel(), " elements cannot be converted to Scalar");
  return visit(dtype(), [&]<class T>() -> Scalar {
    T x = *data<T>();
    if constexpr (is_truth<T>)
      return Scalar(x);
    else if constexpr (std::is_same_v<T, uint64_t>)
      return Scalar(x);
    else if constexpr (std::is_integral_v<T>)
      return Scalar(static_cast<int64_t>(x));
    else if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>)
      return Scalar(complex128(x));
    else if constexpr (std::is_same_v<T, double>)
      return Scalar(x);
    else
      return Scalar(static_cast<double>(static_cast<float>(x)));
  });
}

// New tensors
// ---------------------------------------------------------------------------------------------------------

Tensor empty(const Ints& sizes, DType dtype, MemoryFormat format, Device device) {
  int64_t n = checked_numel(sizes);
  if (format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve) [[likely]] {
    auto storage = Storage::make(n * itemsize(dtype), device);
    auto* impl = TensorImpl::make();
    impl->dtype = dtype;
    impl->sizes = sizes;
    impl->strides.resize(sizes.size());
    int64_t step = 1;
    for (size_t i = sizes.size(); i-- > 0;) {
      impl->strides[i] = step;
      step *= std::max<int64_t>(sizes[i], 1);
    }
    impl->storage = std::move(storage);
    impl->numel = n;
    impl->flags = kContiguous | fresh_flags();
    return Tensor(Ref<TensorImpl>::adopt(impl));
  }
  return fresh(make_tensor(sizes, format_strides(sizes, format), dtype, 0,
                           Storage::make(n * itemsize(dtype), device)));
}

Tensor empty_strided(const Ints& sizes, const Ints& strides, DType dtype, Device device) {
  int64_t elements = extent(sizes, strides, 0, "empty_strided");
  FB_CHECK(elements <= INT64_MAX / 16, "empty_strided: sizes ", sizes, " with strides ", strides,
           " are too large");
  return fresh(
      make_tensor(sizes, strides, dtype, 0, Storage::make(elements * itemsize(dtype), device)));
}

constinit Asked asked;

void fill_new_memory(const Tensor& x, int64_t from_byte) {
  if (x.device().type() != DeviceType::CPU || x.numel() == 0) return;
  visit(x.dtype(), [&]<class T>() {
    using Limits = std::numeric_limits<T>;
    T value;
    if constexpr (std::is_integral_v<T>)
      value = Limits::max();
    else
      value = T(std::numeric_limits<float>::quiet_NaN());
    constexpr auto size = static_cast<int64_t>(sizeof(T));
    int64_t first = from_byte / size, last = x.storage()->nbytes() / size;
    std::fill_n(static_cast<T*>(x.storage()->data()) + first, last - first, value);
  });
}

Tensor empty_like(const Tensor& x, std::optional<DType> dtype, MemoryFormat format) {
  return empty_like(x, dtype, format, x.device());
}

Tensor empty_like(const Tensor& x, std::optional<DType> dtype, MemoryFormat format, Device on) {
  DType d = dtype.value_or(x.dtype());
  if (format != MemoryFormat::Preserve) return empty(x.sizes(), d, format, on);
  if (x.is_contiguous() && x.strides() == contiguous_strides(x.sizes()))
    return empty(x.sizes(), d, MemoryFormat::Contiguous, on);
  if (x.is_contiguous() || x.is_dense()) return empty_strided(x.sizes(), x.strides(), d, on);
  // Others become dense in the order of their strides; broadcast dims keep their place by position.
  int64_t n = x.dim();
  Ints order(n);
  std::iota(order.begin(), order.end(), 0);
  std::reverse(order.begin(), order.end());
  // 1 where dim a is slower than dim b, -1 where it is faster, 0 where strides do not say
  auto compare = [&](int64_t a, int64_t b) {
    int64_t sa = x.strides()[a], sb = x.strides()[b];
    if (sa == 0 || sb == 0) return 0;
    if (sa != sb) return sa > sb ? 1 : -1;
    return x.sizes()[a] > x.sizes()[b] ? 1 : 0;
  };
  for (int64_t i = 1; i < n; ++i) {  // insertion: a dim that is not told passes those that are not
    int64_t at = i;
    for (int64_t j = i - 1; j >= 0; --j) {
      int c = compare(order[j], order[at]);
      if (c < 0) break;
      if (c > 0) std::swap(order[j], order[at]), at = j;
    }
  }
  Ints strides(n);
  int64_t step = 1;
  for (int64_t d2 : order) {
    strides[d2] = step;
    step *= std::max<int64_t>(x.sizes()[d2], 1);
  }
  return empty_strided(x.sizes(), strides, d, on);
}

Tensor scalar_tensor(const Scalar& x, DType dtype) {
  auto* impl = TensorImpl::make();
  Tensor out(Ref<TensorImpl>::adopt(impl));
  impl->dtype = dtype;
  impl->storage = Storage::make(itemsize(dtype));
  impl->numel = 1;
  impl->flags = kContiguous | fresh_flags();
  switch (dtype) {
    case DType::Float32:
      *static_cast<float*>(impl->storage->data()) = x.to<float>();
      break;
    case DType::Float64:
      *static_cast<double*>(impl->storage->data()) = x.to<double>();
      break;
    case DType::Int64:
      *static_cast<int64_t*>(impl->storage->data()) = x.to<int64_t>();
      break;
    default:
      visit(dtype, [&]<class T>() { *static_cast<T*>(impl->storage->data()) = x.to<T>(); });
  }
  return out;
}

Tensor wrapped_number(const Scalar& x) {
  DType d;
  switch (
      x.kind()) {  // in full precision: the number is converted when its partner's type is known
    case Scalar::Kind::Float:
      d = DType::Float64;
      break;
    case Scalar::Kind::Complex:
      d = DType::Complex128;
      break;
    default:
      d = x.dtype();
  }
  Tensor t = scalar_tensor(x, d);
  t.set_flag(kWrappedNumber);
  return t;
}

// Aliases
// -------------------------------------------------------------------------------------------------------------

Tensor alias(const Tensor& x, const Ints& sizes, const Ints& strides, int64_t offset) {
  return alias_as(x, x.dtype(), sizes, strides, offset);
}

Tensor alias(const Tensor& x) {
  auto* impl = TensorImpl::make();
  impl->dtype = x->dtype;
  impl->flags = x->flags & (kContiguous | kWrappedNumber | kInference | kWrapper);
  impl->sizes = x->sizes;
  impl->strides = x->strides;
  impl->numel = x->numel;
  impl->offset = x->offset;
  impl->storage = x->storage;
  impl->own_version = x->own_version;
  if (x->flags & kWrapper) [[unlikely]]
    impl->autograd = copy_wrapper(x->autograd);
  return Tensor(Ref<TensorImpl>::adopt(impl));
}

Tensor alias_as(const Tensor& x, DType dtype, const Ints& sizes, const Ints& strides,
                int64_t offset) {
  int64_t elements = extent(sizes, strides, offset, "as_strided");
  int64_t bytes;
  bool overflow = __builtin_mul_overflow(elements, itemsize(dtype), &bytes);
  FB_CHECK(!overflow && (bytes <= x.storage()->nbytes() || checked_numel(sizes) == 0),
           "setStorage: sizes ", sizes, ", strides ", strides, ", storage offset ", offset,
           " and itemsize ", itemsize(dtype), " need ", bytes,
           " bytes, out of bounds for storage of size ", x.storage()->nbytes());
  // Memory of another library may start anywhere, and kernels read whole elements.
  if (dtype != x.dtype()) {
    uintptr_t alignment = visit(dtype, []<class T>() { return alignof(T); });
    FB_CHECK(reinterpret_cast<uintptr_t>(x.storage()->data()) % alignment == 0,
             "view: the memory is not aligned for elements of ", dtype);
  }
  Tensor out = make_tensor(sizes, strides, dtype, offset, x.storage());
  out->own_version = x->own_version;
  out->flags |= x->flags & kInference;
  return out;
}

void set_data(const Tensor& x, const Tensor& with) {
  x->dtype = with->dtype;
  x->sizes = with->sizes;
  x->strides = with->strides;
  x->offset = with->offset;
  x->storage = with->storage;
  x->refresh();
}

void resize(const Tensor& x, const Ints& sizes) {
  if (x.sizes() == sizes) return;
  int64_t n = checked_numel(sizes, "resize_");
  int64_t bytes;
  FB_CHECK(!__builtin_add_overflow(n, x.offset(), &bytes) &&
               !__builtin_mul_overflow(bytes, x.itemsize(), &bytes),
           "resize_: shape ", sizes, " is too large");
  int64_t held = x.storage()->nbytes();
  bool grows = n > 0 && bytes > held;
  if (grows) x.storage()->resize(bytes);
  x->sizes = sizes;
  x->strides = contiguous_strides(sizes);
  x->refresh();
  if (grows && asked.fills_new_memory) fill_new_memory(x, held);
}

void resize_output(const Tensor& out, const Ints& sizes, const char*) {
  if (out.sizes() == sizes) return;
  if (out.numel() > 0)
    warn(concat("An output with one or more elements was resized since it had shape ", out.sizes(),
                ", which does not match the required output shape ", sizes,
                ". This behavior is deprecated, and in a future PyTorch release outputs will not "
                "be resized unless they have zero elements. You can explicitly reuse an out "
                "tensor t by resizing it, inplace, to zero elements with t.resize_(0)."));
  resize(out, sizes);
}

// Overlap
// -------------------------------------------------------------------------------------------------------------

bool has_internal_overlap(const Tensor& x) {
  if (x.is_contiguous()) return false;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (x.sizes()[d] > 1 && x.strides()[d] == 0) return true;
  return false;
}

Overlap overlap(const Tensor& x, const Tensor& y) {
  if (x.is_same(y)) return Overlap::Full;
  if (!x.shares_storage(y) || !x.numel() || !y.numel()) return Overlap::None;
  if (x.offset() == y.offset() && x.sizes() == y.sizes() && x.strides() == y.strides() &&
      x.dtype() == y.dtype())
    return Overlap::Full;
  if (!x.is_dense() || !y.is_dense()) return Overlap::None;  // too hard in general, as everywhere
  auto begin = [](const Tensor& t) { return static_cast<char*>(t.data_ptr()); };
  auto end = [&](const Tensor& t) { return begin(t) + t.numel() * t.itemsize(); };
  return begin(x) < end(y) && begin(y) < end(x) ? Overlap::Partial : Overlap::None;
}

}  // namespace flambeau

template class std::vector<flambeau::Tensor>;
