// Tensors from what a program has: torch::tensor({{1, 2}, {3, 4}}), from_blob of its own memory.
#pragma once

#include <functional>
#include <initializer_list>
#include <vector>

#include "core/tensor.h"

namespace flambeau {

// Numbers as braces nest them, or a list of one type. Whole numbers make int64, others the default
// dtype, unless options say another.
class TensorData {
 public:
  TensorData(Scalar x) : numbers_{x}, kind_(kind_of(x)) {}
  template <class T>
    requires(std::is_arithmetic_v<T>)
  TensorData(T x) : TensorData(Scalar(x)) {}
  TensorData(Half x) : TensorData(Scalar(x)) { kind_ = DType::Float16; }
  TensorData(BFloat16 x) : TensorData(Scalar(x)) { kind_ = DType::BFloat16; }
  TensorData(complex64 x) : TensorData(Scalar(x)) { kind_ = DType::Complex64; }
  TensorData(complex128 x) : TensorData(Scalar(x)) { kind_ = DType::Complex128; }
  // Error(Value) when the parts differ in shape or in kind of number.
  TensorData(std::initializer_list<TensorData> parts);
  template <class T>
  TensorData(const std::vector<T>& xs) : TensorData(ArrayRef<T>(xs.data(), xs.size())) {}
  TensorData(const std::vector<bool>& xs) : sizes_{static_cast<int64_t>(xs.size())}, kind_(kBool) {
    for (bool x : xs) numbers_.push_back(x);
  }
  template <class T>
  TensorData(ArrayRef<T> xs)
      : sizes_{static_cast<int64_t>(xs.size())},
        numbers_(xs.begin(), xs.end()),
        kind_(normal(dtype_of<std::conditional_t<std::is_same_v<T, bool>, Truth, T>>)) {}

  Tensor tensor(const TensorOptions& options) const;

 private:
  static DType normal(DType d) {
    return d == DType::Float64 || d == DType::Float32 ? default_dtype()
           : is_integral(d)                           ? DType::Int64
                                                      : d;
  }
  static DType kind_of(const Scalar& x) { return normal(x.dtype()); }

  Ints sizes_;
  std::vector<Scalar> numbers_;
  DType kind_;
};

inline Tensor tensor(const TensorData& data, const TensorOptions& options = {}) {
  return data.tensor(options);
}

// A tensor over memory of the program's, which must hold it for as long as the tensor or a view of
// it lives; then `deleter` is called. Sizes and strides are in elements of the options' dtype.
Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {});
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                 const TensorOptions& options = {});
Tensor from_blob(void* data, IntArrayRef sizes, const std::function<void(void*)>& deleter,
                 const TensorOptions& options = {});
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                 const std::function<void(void*)>& deleter, const TensorOptions& options = {});

// Elements of a tensor by index, [i][j]…; bounds are the program's matter, as with a pointer.
template <class T, size_t N>
class TensorAccessor {
 public:
  TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  IntArrayRef sizes() const { return {sizes_, N}; }
  IntArrayRef strides() const { return {strides_, N}; }
  int64_t size(int64_t d) const { return sizes_[d]; }
  int64_t stride(int64_t d) const { return strides_[d]; }
  T* data() const { return data_; }
  decltype(auto) operator[](int64_t i) const {
    if constexpr (N == 1)
      return static_cast<T&>(data_[i * strides_[0]]);
    else
      return TensorAccessor<T, N - 1>(data_ + i * strides_[0], sizes_ + 1, strides_ + 1);
  }

 private:
  T* data_;
  const int64_t *sizes_, *strides_;
};

template <class T, size_t N>
TensorAccessor<T, N> Tensor::accessor() const& {
  FB_CHECK(dim() == static_cast<int64_t>(N), "accessor: expected a tensor of ", N,
           " dimensions, got one of ", dim());
  return {data_ptr<T>(), sizes().data(), strides().data()};
}

// An accessor that owns its sizes and strides, so that it can be kept apart from the tensor.
template <class T, size_t N, template <class> class PtrTraits, class index_t>
class PackedTensorAccessor {
 public:
  using PtrType = typename PtrTraits<T>::PtrType;
  PackedTensorAccessor(PtrType data, const int64_t* sizes, const int64_t* strides) : data_(data) {
    std::copy(sizes, sizes + N, sizes_.begin());
    std::copy(strides, strides + N, strides_.begin());
  }
  index_t size(index_t d) const { return static_cast<index_t>(sizes_[static_cast<size_t>(d)]); }
  index_t stride(index_t d) const { return static_cast<index_t>(strides_[static_cast<size_t>(d)]); }
  PtrType data() const { return data_; }
  decltype(auto) operator[](index_t i) const {
    return TensorAccessor<T, N>(data_, sizes_.data(), strides_.data())[i];
  }

 private:
  PtrType data_;
  std::array<int64_t, N> sizes_, strides_;
};

template <class T, size_t N, template <class> class PtrTraits>
PackedTensorAccessor32<T, N, PtrTraits> Tensor::packed_accessor32() const& {
  FB_CHECK(numel() <= INT32_MAX, "packed_accessor32: expected fewer than 2^31 elements, got ",
           numel(), "; use packed_accessor64");
  FB_CHECK(dim() == static_cast<int64_t>(N), "packed_accessor32: expected a tensor of ", N,
           " dimensions, got one of ", dim());
  return {data_ptr<T>(), sizes().data(), strides().data()};
}
template <class T, size_t N, template <class> class PtrTraits>
PackedTensorAccessor64<T, N, PtrTraits> Tensor::packed_accessor64() const& {
  FB_CHECK(dim() == static_cast<int64_t>(N), "packed_accessor64: expected a tensor of ", N,
           " dimensions, got one of ", dim());
  return {data_ptr<T>(), sizes().data(), strides().data()};
}

}  // namespace flambeau
