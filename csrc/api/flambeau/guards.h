// What extensions ask of tensors before a kernel: guards of devices, borrowed tensors, checks of
// arguments.
#pragma once

#include "flambeau/flambeau.h"

namespace flambeau {

// The device of what is made inside. Error(NotImplemented) for one that is not there.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device) { set_device(device); }
  DeviceGuard(const DeviceGuard&) = delete;
  void set_device(Device device) {
    FB_CHECK_IMPL(!device.is_cuda(), "DeviceGuard: expected a device that is there, got ", device);
    device_ = device;
  }
  Device current_device() const noexcept { return device_; }
  Device original_device() const noexcept { return Device(); }

 private:
  Device device_;
};
class OptionalDeviceGuard {
 public:
  OptionalDeviceGuard() = default;
  explicit OptionalDeviceGuard(std::optional<Device> device) {
    if (device) guard_.emplace(*device);
  }
  void reset_device(Device device) { guard_.emplace(device); }

 private:
  std::optional<DeviceGuard> guard_;
};
inline std::optional<Device> device_of(const Tensor& x) {
  return x.defined() ? std::optional<Device>(x.device()) : std::nullopt;
}
inline std::optional<Device> device_of(const std::optional<Tensor>& x) {
  return x ? device_of(*x) : std::nullopt;
}
inline std::optional<Device> device_of(TensorList xs) {
  return xs.empty() ? std::nullopt : device_of(xs.front());
}

// A value of its own, or one that somebody else keeps.
template <class T>
class MaybeOwned {
 public:
  MaybeOwned() = default;
  static MaybeOwned borrowed(const T& x) {
    MaybeOwned out;
    out.borrowed_ = &x;
    return out;
  }
  static MaybeOwned owned(T x) {
    MaybeOwned out;
    out.owned_ = std::move(x);
    return out;
  }
  const T& operator*() const noexcept { return borrowed_ ? *borrowed_ : owned_; }
  const T* operator->() const noexcept { return &**this; }

 private:
  T owned_;
  const T* borrowed_ = nullptr;
};

inline MaybeOwned<Tensor> Tensor::expect_contiguous() const& {
  return is_contiguous() ? MaybeOwned<Tensor>::borrowed(*this)
                         : MaybeOwned<Tensor>::owned(contiguous());
}

// What there is, as programs ask for it.
class Context {
 public:
  bool hasCUDA() const noexcept { return false; }
  bool hasCuDNN() const noexcept { return false; }
  bool hasMPS() const noexcept { return false; }
  bool hasXPU() const noexcept { return false; }
  bool hasHIP() const noexcept { return false; }
};
inline Context& globalContext() {
  static Context one;
  return one;
}

// An argument as checks name it.
struct TensorArg {
  TensorArg(const Tensor& x, const char* name, int pos) : tensor(x), name(name), pos(pos) {}
  const Tensor* operator->() const { return &tensor; }
  const Tensor& operator*() const { return tensor; }
  Tensor tensor;
  const char* name;
  int pos;
};
inline std::ostream& operator<<(std::ostream& out, const TensorArg& x) {
  return out << "argument #" << x.pos << " '" << x.name << "'";
}
using CheckedFrom = const char*;
// Error(Runtime) that names the argument, what is expected and what it is.
void checkDim(CheckedFrom c, const TensorArg& x, int64_t dim);
void checkDimRange(CheckedFrom c, const TensorArg& x, int64_t from, int64_t to);  // to: not in it
void checkNumel(CheckedFrom c, const TensorArg& x, int64_t numel);
void checkSize(CheckedFrom c, const TensorArg& x, IntArrayRef sizes);
void checkSize(CheckedFrom c, const TensorArg& x, int64_t dim, int64_t size);
void checkContiguous(CheckedFrom c, const TensorArg& x);
void checkDefined(CheckedFrom c, const TensorArg& x);
void checkScalarType(CheckedFrom c, const TensorArg& x, DType dtype);
void checkScalarTypes(CheckedFrom c, const TensorArg& x, ArrayRef<DType> dtypes);
void checkSameType(CheckedFrom c, const TensorArg& a, const TensorArg& b);
void checkSameSize(CheckedFrom c, const TensorArg& a, const TensorArg& b);
void checkSameDim(CheckedFrom c, const TensorArg& a, const TensorArg& b);
void checkSameNumel(CheckedFrom c, const TensorArg& a, const TensorArg& b);
void checkAllSameType(CheckedFrom c, ArrayRef<TensorArg> xs);
void checkAllSameSize(CheckedFrom c, ArrayRef<TensorArg> xs);
void checkAllSameNumel(CheckedFrom c, ArrayRef<TensorArg> xs);
void checkAllDefined(CheckedFrom c, ArrayRef<TensorArg> xs);
void checkAllContiguous(CheckedFrom c, ArrayRef<TensorArg> xs);

}  // namespace flambeau
