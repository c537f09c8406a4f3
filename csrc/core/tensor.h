// Tensor: a counted handle to a TensorImpl, which is dtype, shape, strides and offset over a
// Storage, plus what autograd attaches. Owns geometry and aliasing; knows no operation, no autograd
// rule, no Python (but for one opaque pointer that lets the binding return the same Python object
// for the same tensor).
#pragma once

#include <atomic>

#include <memory>
#include <optional>
#include <vector>

#ifdef FLAMBEAU_API
#include "api/types.h"
#endif
#include "core/dtype.h"
#include "core/scalar.h"
#include "core/storage.h"

namespace flambeau {

// What autograd attaches to a tensor; defined in autograd/meta.h.
struct AutogradMeta;
void destroy_autograd_meta(AutogradMeta*) noexcept;

enum TensorFlag : uint16_t {
  kRequiresGrad = 1,   // a leaf that asked for it, or a result of a recorded operation
  kWrappedNumber = 2,  // made from a Python scalar: weak in type promotion
  kInference = 4,      // made under inference_mode
  kContiguous = 8,     // cached: strides are those of a dense row-major array
  kHasTangent = 16,    // forward-mode dual
  kWrapper = 32,       // a wrapper of a transform (vmap, grad level): never reaches kernels
  kIsView = 64,        // autograd knows a base
  kOwnsPython = 128,   // pyobj is owned, see Note [Who owns whom] in python/tensor_object.h
};

// Installed by the binding: called when an impl that owns its Python object dies.
extern void (*release_python_object)(void* pyobj) noexcept;

struct TensorImpl : Counted<TensorImpl> {
  DType dtype = DType::Float32;
  uint16_t flags = 0;
  Ints sizes, strides;
  int64_t numel = 0;
  int64_t offset = 0;  // in elements
  Ref<Storage> storage;
  Ref<VersionCounter> own_version;  // null: the storage counts
  AutogradMeta* autograd = nullptr;
  void* pyobj = nullptr;  // borrowed; set and cleared by the binding under the GIL

  static TensorImpl* make();                  // from a free list
  static void destroy(TensorImpl*) noexcept;  // back to it
  void refresh();  // recomputes numel and kContiguous from sizes and strides
  void* data() const noexcept {
    return static_cast<char*>(storage->data()) + offset * itemsize(dtype);
  }
};

class Tensor {
 public:
#ifdef FLAMBEAU_API  // of programs in C++, see flambeau/flambeau.h
#include "api/members.h"
#include "gen/api/methods.h"
#endif
  Tensor() noexcept = default;
  explicit Tensor(Ref<TensorImpl> impl) noexcept : impl_(std::move(impl)) {}

  bool defined() const noexcept { return bool(impl_); }
  explicit operator bool() const noexcept { return defined(); }
  TensorImpl* impl() const noexcept { return impl_.get(); }
  TensorImpl* operator->() const noexcept { return impl_.get(); }
  bool is_same(const Tensor& o) const noexcept { return impl_ == o.impl_; }
  TensorImpl* detach_handle() noexcept { return impl_.detach(); }

  DType dtype() const noexcept { return impl_->dtype; }
  Device device() const noexcept { return impl_->storage->device(); }
  int64_t dim() const noexcept { return static_cast<int64_t>(impl_->sizes.size()); }
  int64_t ndim() const noexcept { return dim(); }
  int64_t numel() const noexcept { return impl_->numel; }
  const Ints& sizes() const noexcept { return impl_->sizes; }
  const Ints& strides() const noexcept { return impl_->strides; }
  int64_t offset() const noexcept { return impl_->offset; }
  int64_t size(int64_t d) const;  // negative dims count from the end; Error(Index)
  int64_t stride(int64_t d) const;
  int64_t itemsize() const noexcept { return flambeau::itemsize(dtype()); }
  bool is_floating_point() const noexcept { return flambeau::is_floating_point(dtype()); }
  bool is_complex() const noexcept { return flambeau::is_complex(dtype()); }
  bool is_integral(bool with_bool = false) const noexcept {
    return flambeau::is_integral(dtype(), with_bool);
  }
  bool is_signed() const noexcept { return flambeau::is_signed(dtype()); }
  bool is_contiguous() const noexcept { return impl_->flags & kContiguous; }
  bool is_contiguous(MemoryFormat f) const;
  MemoryFormat suggest_memory_format() const;  // ChannelsLast(3d) when laid out so, else Contiguous
  bool is_dense() const;                       // non-overlapping and without holes
  bool has_flag(TensorFlag f) const noexcept { return impl_->flags & f; }
  void set_flag(TensorFlag f, bool on = true) const noexcept {
    impl_->flags = on ? impl_->flags | f : impl_->flags & ~f;
  }
  bool is_wrapped_number() const noexcept { return has_flag(kWrappedNumber); }
  bool requires_grad() const noexcept { return has_flag(kRequiresGrad); }

  const Ref<Storage>& storage() const noexcept { return impl_->storage; }
  bool shares_storage(const Tensor& o) const noexcept { return impl_->storage == o->storage; }
  void* data_ptr() const noexcept { return impl_->data(); }
  template <class T>
  T* data() const noexcept {
    return static_cast<T*>(impl_->data());
  }

  uint32_t version() const noexcept {
    return impl_->own_version ? impl_->own_version->value.load() : impl_->storage->version();
  }
  void bump_version() const noexcept {
    if (impl_->own_version)
      impl_->own_version->value.fetch_add(1);
    else
      impl_->storage->bump_version();
  }

  Scalar item() const;  // the only element; Error(Runtime) for other sizes

 private:
  Ref<TensorImpl> impl_;
};

using OptTensor = std::optional<Tensor>;
using Tensors = std::vector<Tensor>;
using OptTensors = std::vector<OptTensor>;

#ifndef FLAMBEAU_API  // programs have the operations of these names
// New tensors, without autograd. Sizes are checked: negative and overflowing ones are errors.
Tensor empty(const Ints& sizes, DType dtype, MemoryFormat format = MemoryFormat::Contiguous,
             Device device = {});
Tensor empty_strided(const Ints& sizes, const Ints& strides, DType dtype, Device device = {});
Tensor empty_like(const Tensor& x, std::optional<DType> dtype = {},
                  MemoryFormat format = MemoryFormat::Preserve);
Tensor scalar_tensor(const Scalar& x, DType dtype);  // 0-d
#endif
Tensor wrapped_number(const Scalar& x);  // 0-d, weak in promotion

// Aliases, below autograd: same storage and version counter. Bounds are checked.
Tensor alias(const Tensor& x, const Ints& sizes, const Ints& strides, int64_t offset);
Tensor alias(const Tensor& x);
// A tensor of other element type over the same bytes (sizes are in elements of the new type).
Tensor alias_as(const Tensor& x, DType dtype, const Ints& sizes, const Ints& strides,
                int64_t offset);
// Makes x stand for what `with` stands for (storage, geometry, dtype): set_data, resize_ of out=.
void set_data(const Tensor& x, const Tensor& with);
// The resize rule of out=: an empty tensor takes the shape, another warns as PyTorch does and is
// resized.
void resize_output(const Tensor& out, const Ints& sizes, const char* op);
void resize(const Tensor& x, const Ints& sizes);

// What programs ask of results, see flambeau/_config.py: new memory that holds known values, and
// convolutions that may round further than direct ones. Read at every call, set by hand.
struct Asked {
  std::atomic<bool> fills_new_memory{false};
  std::atomic<bool> may_round{false};
};
extern constinit Asked asked;
// NaN, the greatest whole number or true, where memory was not set and that is asked for.
void fill_new_memory(const Tensor& x, int64_t from_byte = 0);

// Geometry.
Ints contiguous_strides(const Ints& sizes);
Ints format_strides(const Ints& sizes, MemoryFormat format);
int64_t checked_numel(const Ints& sizes, const char* op = "empty");
Ints broadcast_shapes(const Ints& a, const Ints& b);  // Error with both shapes when impossible
int64_t wrap_dim(int64_t dim, int64_t ndim);          // Error(Index) as PyTorch words it
Ints wrap_dims(const Ints& dims, int64_t ndim);       // also refuses repeated dims
// Strides that view x with other sizes without copying, or nothing (-1 already resolved).
std::optional<Ints> view_strides(const Ints& sizes, const Ints& strides, const Ints& new_sizes);
Ints infer_sizes(const Ints& sizes, int64_t numel);  // resolves one -1
// Do two elements of x share memory (as expanded tensors do)? / might x and y overlap?
bool has_internal_overlap(const Tensor& x);
enum class Overlap { None, Full, Partial };
Overlap overlap(const Tensor& x, const Tensor& y);

}  // namespace flambeau

// Compiled once, in tensor.cpp, for nearly every file has lists of tensors.
extern template class std::vector<flambeau::Tensor>;
