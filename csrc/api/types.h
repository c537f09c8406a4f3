// What arguments of the public functions are: lists by reference, texts, options of new tensors.
// Included by core/tensor.h where programs read it; knows no operation.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/device.h"
#include "core/dtype.h"
#include "core/intrusive.h"
#include "core/scalar.h"
#include "core/small_vector.h"

namespace flambeau {

class Tensor;
class Node;
using OptTensor = std::optional<Tensor>;
struct GeneratorImpl;
using Generator = Ref<GeneratorImpl>;
using CPUGeneratorImpl = GeneratorImpl;
using ScalarType = DType;
using std::make_optional;
using std::nullopt;
template <class T>
using optional = std::optional<T>;

// A list of somebody else's, as an argument: of braces, a vector, a shape, one element. It lives no
// longer than what it was made from.
template <class T>
class ArrayRef {
 public:
  using value_type = T;
  constexpr ArrayRef() noexcept = default;
  constexpr ArrayRef(const T* data, size_t size) noexcept : data_(data), size_(size) {}
  constexpr ArrayRef(const T& x) noexcept : data_(&x), size_(1) {}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
  constexpr ArrayRef(const std::initializer_list<T>& xs) noexcept
      : data_(xs.begin()), size_(xs.size()) {}
#pragma GCC diagnostic pop
  ArrayRef(const std::vector<T>& xs) noexcept : data_(xs.data()), size_(xs.size()) {}
  template <unsigned N>
  ArrayRef(const SmallVector<T, N>& xs) noexcept : data_(xs.data()), size_(xs.size()) {}
  template <size_t N>
  constexpr ArrayRef(const std::array<T, N>& xs) noexcept : data_(xs.data()), size_(N) {}
  template <size_t N>
  constexpr ArrayRef(const T (&xs)[N]) noexcept : data_(xs), size_(N) {}

  constexpr const T* begin() const noexcept { return data_; }
  constexpr const T* end() const noexcept { return data_ + size_; }
  constexpr const T* data() const noexcept { return data_; }
  constexpr size_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }
  const T& operator[](size_t i) const { return data_[i]; }
  const T& at(size_t i) const {
    FB_CHECK_INDEX(i < size_, "ArrayRef: index ", i, " is out of range for ", size_, " elements");
    return data_[i];
  }
  const T& front() const { return at(0); }
  const T& back() const { return at(size_ - 1); }
  ArrayRef slice(size_t from, size_t count) const {
    FB_CHECK_INDEX(from <= size_ && count <= size_ - from, "ArrayRef: slice of ", count,
                   " elements from ", from, " is out of range for ", size_, " elements");
    return {data_ + from, count};
  }
  ArrayRef slice(size_t from) const { return slice(from, from <= size_ ? size_ - from : 0); }
  bool equals(ArrayRef other) const { return *this == other; }
  std::vector<T> vec() const { return {begin(), end()}; }
  SmallVector<T, 6> ints() const { return {begin(), end()}; }
  friend bool operator==(const ArrayRef& a, const ArrayRef& b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

using IntArrayRef = ArrayRef<int64_t>;
using TensorList = ArrayRef<Tensor>;
using ITensorListRef = TensorList;
using string_view = std::string_view;

// Where it points.
template <class T>
std::ostream& operator<<(std::ostream& out, const Ref<T>& x) {
  return out << static_cast<const void*>(x.get());
}
template <class T>
std::ostream& operator<<(std::ostream& out, const ArrayRef<T>& xs) {
  out << '[';
  for (size_t i = 0; i < xs.size(); ++i) out << (i ? ", " : "") << xs[i];
  return out << ']';
}

// The same or none.
class OptionalIntArrayRef {
 public:
  OptionalIntArrayRef() = default;
  OptionalIntArrayRef(std::nullopt_t) {}
  OptionalIntArrayRef(const std::initializer_list<int64_t>& xs) : list_(IntArrayRef(xs)) {}
  OptionalIntArrayRef(IntArrayRef xs) : list_(xs) {}
  OptionalIntArrayRef(const Ints& xs) : list_(IntArrayRef(xs)) {}
  OptionalIntArrayRef(const std::vector<int64_t>& xs) : list_(IntArrayRef(xs)) {}
  template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
  OptionalIntArrayRef(T x) : one_(static_cast<int64_t>(x)) {}
  OptionalIntArrayRef(const std::optional<IntArrayRef>& xs) : list_(xs) {}

  bool has_value() const noexcept { return list_ || one_; }
  IntArrayRef value() const& { return one_ ? IntArrayRef(*one_) : list_.value(); }
  std::optional<Ints> ints() const {
    return has_value() ? std::optional<Ints>(value().ints()) : std::nullopt;
  }

 private:
  std::optional<IntArrayRef> list_;
  std::optional<int64_t> one_;
};

// Words of options as programs name them: torch::kMean is "mean".
struct Word {
  const char* text;
};
#define FB_FOR_EACH_WORD(X)                                                                        \
  X(kNone, "none")                                                                                 \
  X(kMean, "mean") X(kSum, "sum") X(kBatchMean, "batchmean") X(kLinear, "linear")                  \
      X(kConv1D, "conv1d") X(kConv2D, "conv2d") X(kConv3D, "conv3d")                               \
          X(kConvTranspose1D, "conv_transpose1d") X(kConvTranspose2D, "conv_transpose2d")          \
              X(kConvTranspose3D, "conv_transpose3d") X(kSigmoid, "sigmoid") X(kTanh, "tanh")      \
                  X(kReLU, "relu") X(kGELU, "gelu") X(kSiLU, "silu") X(kMish, "mish")              \
                      X(kLeakyReLU, "leaky_relu") X(kFanIn, "fan_in") X(kFanOut, "fan_out") X(     \
                          kConstant, "constant") X(kReflect, "reflect") X(kReplicate, "replicate") \
                          X(kCircular, "circular") X(kZeros, "zeros") X(kBorder, "border")         \
                              X(kReflection, "reflection") X(kNearest, "nearest")                  \
                                  X(kNearestExact, "nearest-exact") X(kBilinear, "bilinear")       \
                                      X(kBicubic, "bicubic") X(kTrilinear, "trilinear")            \
                                          X(kArea, "area") X(kMax, "max") X(kRNN_TANH, "RNN_TANH") \
                                              X(kRNN_RELU, "RNN_RELU") X(kLSTM, "LSTM")            \
                                                  X(kGRU, "GRU") X(kValid, "valid")                \
                                                      X(kSame, "same")
#define X(name, text) inline constexpr Word name{text};
FB_FOR_EACH_WORD(X)
#undef X

namespace Reduction {
enum Reduction { None, Mean, Sum, END };
}

// A text as an argument: also torch::kMean, Reduction::Mean. Nothing else becomes one, so that
// `{0, 0}` and `0` stay lists of numbers where a text could stand too.
class Text {
 public:
  Text() = default;
  template <class T>
    requires(std::is_convertible_v<const T&, std::string_view>)
  Text(const T& x) : text_(std::string_view(x)) {}
  Text(Word w) : text_(w.text) {}
  Text(Reduction::Reduction r)
      : text_(r == Reduction::Mean  ? "mean"
              : r == Reduction::Sum ? "sum"
                                    : "none") {}

  const std::string& str() const noexcept { return text_; }
  operator const std::string&() const noexcept { return text_; }

 private:
  std::string text_;
};

// A truth value that no number becomes.
class Flag {
 public:
  template <class T>
    requires(std::is_same_v<T, bool>)
  Flag(T on) : on_(on) {}
  operator bool() const noexcept { return on_; }

 private:
  bool on_;
};

inline constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA,
                            kMeta = DeviceType::Meta;
inline constexpr Layout kStrided = Layout::Strided;
inline constexpr DType kBool = DType::Bool, kByte = DType::UInt8, kChar = DType::Int8,
                       kShort = DType::Int16, kInt = DType::Int32, kLong = DType::Int64,
                       kHalf = DType::Float16, kFloat = DType::Float32, kDouble = DType::Float64,
                       kUInt8 = DType::UInt8, kInt8 = DType::Int8, kInt16 = DType::Int16,
                       kInt32 = DType::Int32, kInt64 = DType::Int64, kUInt16 = DType::UInt16,
                       kUInt32 = DType::UInt32, kUInt64 = DType::UInt64, kFloat16 = DType::Float16,
                       kBFloat16 = DType::BFloat16, kFloat32 = DType::Float32,
                       kFloat64 = DType::Float64, kComplexFloat = DType::Complex64,
                       kComplexDouble = DType::Complex128;

// What programs ask of types.
inline const char* toString(DType d) {
  return scalar_type_name(d);
}
constexpr size_t elementSize(DType d) {
  return static_cast<size_t>(itemsize(d));
}
constexpr bool isFloatingType(DType d) {
  return is_floating_point(d);
}
constexpr bool isComplexType(DType d) {
  return is_complex(d);
}
constexpr bool isIntegralType(DType d, bool include_bool = false) {
  return is_integral(d, include_bool);
}
constexpr bool isReducedFloatingType(DType d) {
  return is_reduced_float(d);
}
constexpr bool isSignedType(DType d) {
  return is_signed(d);
}
inline DType promoteTypes(DType a, DType b) {
  return promote(a, b);
}
constexpr DType toComplexType(DType d) {
  return to_complex(d);
}
constexpr DType toRealValueType(DType d) {
  return to_real(d);
}
inline DType get_default_dtype() {
  return default_dtype();
}
inline std::ostream& operator<<(std::ostream& out, Half x) {
  return out << static_cast<float>(x);
}
inline std::ostream& operator<<(std::ostream& out, BFloat16 x) {
  return out << static_cast<float>(x);
}
std::ostream& operator<<(std::ostream& out, Layout layout);
std::ostream& operator<<(std::ostream& out, MemoryFormat format);
std::ostream& operator<<(std::ostream& out, DeviceType type);

// What Tensor::type gives: the dtype and where the elements are, as older programs ask for it.
class DeprecatedTypeProperties {
 public:
  DeprecatedTypeProperties(DType dtype, Device device) : dtype_(dtype), device_(device) {}
  operator DType() const noexcept { return dtype_; }
  DType scalarType() const noexcept { return dtype_; }
  DeviceType device_type() const noexcept { return device_.type(); }
  bool is_cuda() const noexcept { return device_.is_cuda(); }
  bool is_sparse() const noexcept { return false; }
  std::string toString() const;  // "CPUFloatType"
  friend bool operator==(const DeprecatedTypeProperties& a, const DeprecatedTypeProperties& b) {
    return a.dtype_ == b.dtype_ && a.device_.type() == b.device_.type();
  }
  friend std::ostream& operator<<(std::ostream& out, const DeprecatedTypeProperties& x) {
    return out << x.toString();
  }

 private:
  DType dtype_;
  Device device_;
};

// What a new tensor is to be; what is not said comes from the operation, else from the defaults.
class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(DType d) : dtype_(d) {}
  TensorOptions(Device d) : device_(d) {}
  TensorOptions(DeviceType d) : device_(d) {}
  TensorOptions(Layout l) { *this = layout(l); }
  TensorOptions(MemoryFormat f) : format_(f) {}

  [[nodiscard]] TensorOptions dtype(std::optional<DType> d) const {
    auto o = *this;
    o.dtype_ = d;
    return o;
  }
  template <class T>
  [[nodiscard]] TensorOptions dtype() const {
    return dtype(dtype_of<T>);
  }
  [[nodiscard]] TensorOptions device(std::optional<Device> d) const {
    auto o = *this;
    o.device_ = d;
    return o;
  }
  [[nodiscard]] TensorOptions device(DeviceType d, int8_t index) const {
    return device(Device(d, index));
  }
  [[nodiscard]] TensorOptions requires_grad(std::optional<bool> on) const {
    auto o = *this;
    o.requires_grad_ = on;
    return o;
  }
  [[nodiscard]] TensorOptions memory_format(std::optional<MemoryFormat> f) const {
    auto o = *this;
    o.format_ = f;
    return o;
  }
  // Error(NotImplemented) for what tensors here cannot be.
  [[nodiscard]] TensorOptions layout(std::optional<Layout> l) const {
    FB_CHECK_IMPL(!l || *l == Layout::Strided,
                  "TensorOptions: expected layout torch::kStrided, tensors here are strided");
    return *this;
  }
  [[nodiscard]] TensorOptions pinned_memory(std::optional<bool> on) const {
    FB_CHECK_IMPL(!on.value_or(false),
                  "TensorOptions: pinned memory is for transfers to an accelerator, there is none");
    return *this;
  }

  DType dtype() const { return dtype_.value_or(default_dtype()); }
  Device device() const { return device_.value_or(Device()); }
  Layout layout() const { return Layout::Strided; }
  bool requires_grad() const { return requires_grad_.value_or(false); }
  bool pinned_memory() const { return false; }
  bool has_dtype() const { return dtype_.has_value(); }
  bool has_device() const { return device_.has_value(); }
  std::optional<DType> dtype_opt() const { return dtype_; }
  std::optional<Device> device_opt() const { return device_; }
  std::optional<MemoryFormat> memory_format_opt() const { return format_; }
  // What `other` says goes before.
  [[nodiscard]] TensorOptions merge_in(const TensorOptions& other) const {
    auto o = *this;
    if (other.dtype_) o.dtype_ = other.dtype_;
    if (other.device_) o.device_ = other.device_;
    if (other.requires_grad_) o.requires_grad_ = other.requires_grad_;
    if (other.format_) o.format_ = other.format_;
    return o;
  }

 private:
  std::optional<DType> dtype_;
  std::optional<Device> device_;
  std::optional<MemoryFormat> format_;
  std::optional<bool> requires_grad_;
};

inline TensorOptions dtype(DType d) {
  return TensorOptions(d);
}
template <class T>
TensorOptions dtype() {
  return TensorOptions(dtype_of<T>);
}
inline TensorOptions device(Device d) {
  return TensorOptions(d);
}
inline TensorOptions device(DeviceType d, int8_t index = -1) {
  return TensorOptions(Device(d, index));
}
inline TensorOptions layout(Layout l) {
  return TensorOptions(l);
}
inline TensorOptions memory_format(MemoryFormat f) {
  return TensorOptions(f);
}
inline TensorOptions requires_grad(bool on = true) {
  return TensorOptions().requires_grad(on);
}

namespace indexing {
class TensorIndex;
}
template <class T, size_t N>
class TensorAccessor;
template <class T>
class MaybeOwned;
// How an accessor refers to elements: bounds, types and values are the same with either.
template <class T>
struct DefaultPtrTraits {
  using PtrType = T*;
};
template <class T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict__;
};
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits,
          class index_t = int64_t>
class PackedTensorAccessor;
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
using PackedTensorAccessor32 = PackedTensorAccessor<T, N, PtrTraits, int32_t>;
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
using PackedTensorAccessor64 = PackedTensorAccessor<T, N, PtrTraits, int64_t>;

}  // namespace flambeau
