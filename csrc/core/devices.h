// On which device an operation runs: whether its kernel is called, the device of new tensors, and
// the refusal of tensors on different devices. Knows no operation.
//
// Note [Meta tensors]
// A meta tensor has dtype, sizes, strides and a storage with a length, and no memory. An operation
// on meta tensors runs its shape rule, makes its results on the meta device and calls no kernel, so
// nothing ever reads or writes through one. The places that keep it so:
// - generated code asks `runs_kernel` before each kernel, kernels/pointwise.cpp does the same;
// - a kernel whose result's size depends on values is refused (`refuse_meta`);
// - what reads elements without an operation (Tensor::item, kernels/copy.cpp, the binding) refuses.
// 0-d tensors of the CPU go with tensors of every device: they count as numbers.
#pragma once

#include <initializer_list>
#include <tuple>

#include "core/tensor.h"

namespace flambeau {

// An operand of a call: a tensor, a list of tensors, either of them perhaps absent.
class Operand {
 public:
  Operand(const Tensor& x) : p_(&x), kind_(kTensor) {}
  Operand(const OptTensor& x) : p_(&x), kind_(kOptional) {}
  Operand(const Tensors& xs) : p_(&xs), kind_(kList) {}
  Operand(const OptTensors& xs) : p_(&xs), kind_(kOptionalList) {}
  Operand(const std::optional<Tensors>& xs) : p_(xs ? &*xs : nullptr), kind_(kList) {}

  template <class F>
  void each(const F& f) const {  // f(tensor) for every tensor there is
    if (kind_ == kTensor) {
      visit(f, *static_cast<const Tensor*>(p_));
    } else if (kind_ == kOptional) {
      visit(f, *static_cast<const OptTensor*>(p_));
    } else if (kind_ == kList && p_) {
      for (const Tensor& x : *static_cast<const Tensors*>(p_)) visit(f, x);
    } else if (kind_ == kOptionalList) {
      for (const OptTensor& x : *static_cast<const OptTensors*>(p_)) visit(f, x);
    }
  }

 private:
  enum Kind : char { kTensor, kOptional, kList, kOptionalList };
  template <class F>
  static void visit(const F& f, const Tensor& x) {
    if (x.defined()) f(x);
  }
  template <class F>
  static void visit(const F& f, const OptTensor& x) {
    if (x && x->defined()) f(*x);
  }
  const void* p_;
  Kind kind_;
};
using Operands = std::initializer_list<Operand>;

inline bool on_cpu(const Tensor& x) noexcept {
  return !x.defined() || x.device().type() == DeviceType::CPU;
}
inline bool on_cpu(const OptTensor& x) noexcept {
  return !x || on_cpu(*x);
}
template <class T>
bool on_cpu(const std::vector<T>& xs) noexcept {
  for (const T& x : xs)
    if (!on_cpu(x)) return false;
  return true;
}
template <class T>
bool on_cpu(const std::optional<std::vector<T>>& xs) noexcept {
  return !xs || on_cpu(*xs);
}

// New tensor like x on another device.
Tensor empty_like(const Tensor& x, std::optional<DType> dtype, MemoryFormat format, Device device);

// The one device of the tensors of a call. Error(Runtime) when there are two.
class CommonDevice {
 public:
  void read(const Tensor& x) {
    if (x.dim() > 0 || x.device().type() != DeviceType::CPU) write(x);  // others count as numbers
  }
  void write(const Tensor& x);
  Device get() const { return device_.value_or(Device{}); }

 private:
  std::optional<Device> device_;
};

// The first device that is not the CPU, else the CPU: where what goes with these tensors belongs.
Device device_of(Operands operands);

// For tensors that are not all on the CPU: false, when `written` are on the device of `read`.
[[gnu::cold]] bool runs_kernel_elsewhere(Operands written, Operands read);

// May the kernel that writes `written` (a std::tie) and reads `read` be called? True on the CPU,
// false when its results are meta tensors; Error(Runtime) when devices do not fit.
template <class Written, class... Read>
inline bool runs_kernel(const Written& written, const Read&... read) {
  bool here = std::apply([](const auto&... w) { return (on_cpu(w) && ...); }, written);
  if (here && (on_cpu(read) && ...)) [[likely]]
    return true;
  return std::apply([&](const auto&... w) { return runs_kernel_elsewhere({w...}, {read...}); },
                    written);
}
// Before a kernel on the CPU: operands that may stay there when the others are elsewhere (indices).
[[gnu::cold, noreturn]] void fail_off_cpu(Operands read);
template <class... Read>
inline bool kept_on_cpu(const Read&... read) {
  if (!(on_cpu(read) && ...)) [[unlikely]]
    fail_off_cpu({read...});
  return true;
}

// Before results on `result` go into `out`. Error(Runtime) when that is elsewhere.
void check_out_device(Device result, const Tensor& out);

// What a rule asks of values: the only element of x; `otherwise` for a meta tensor, which has none,
// and for a batched one, which has several.
bool truth(const Tensor& x, bool otherwise);

// Before a kernel whose result depends on values, in size or in kind. Error(NotImplemented).
[[gnu::cold, noreturn]] void fail_on_meta(const char* op);
template <class... Read>
inline void refuse_meta(const char* op, const Read&... read) {
  if (!(on_cpu(read) && ...)) [[unlikely]]
    fail_on_meta(op);
}

}  // namespace flambeau
