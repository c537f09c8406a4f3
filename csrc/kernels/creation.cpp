#include "gen/kernels.h"

#include <cmath>

#include "core/parallel.h"
#include "kernels/copy.h"

namespace flambeau::kernels {

using OptDType = std::optional<DType>;
using OptDevice = std::optional<Device>;

void fill_value(Tensor& out, const Ints&, const Scalar& value, OptDType, OptDevice) {
  fill(out, value);
}
void new_full(Tensor& out, const Tensor&, const Ints&, const Scalar& value, OptDType, OptDevice) {
  fill(out, value);
}
void new_zeros(Tensor& out, const Tensor&, const Ints&, OptDType, OptDevice) {
  fill(out, Scalar(0));
}
void fill_zeros(Tensor& out, const Ints&, OptDType, OptDevice) {
  fill(out, Scalar(0));
}

namespace {
// Fills out (1-d, any stride) with f(i) of the compute type of its dtype: int64, double or
// complex128.
template <class F>
void fill_sequence(Tensor& out, const char* name, const F& f) {
  FB_CHECK_IMPL(out.dtype() != DType::Bool || out.numel() == 0, '"', name,
                "\" not implemented for 'Bool'");
  visit(out.dtype(), [&]<class T>() {
    T* data = out.data<T>();
    int64_t stride = out.dim() ? out.strides()[0] : 1;
    parallel_for(0, out.numel(), kGrain, [&](int64_t a, int64_t b) {
      for (int64_t i = a; i < b; ++i) {
        if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>)
          data[i * stride] = T(f.template operator()<complex128>(i));
        else if constexpr (is_whole<T>)
          data[i * stride] = static_cast<T>(f.template operator()<int64_t>(i));
        else if constexpr (std::is_same_v<T, double>)
          data[i * stride] = f.template operator()<double>(i);
        else
          data[i * stride] = T(static_cast<float>(f.template operator()<double>(i)));
      }
    });
  });
}
}  // namespace

void arange(Tensor& out, const Scalar& start, const Scalar&, const Scalar& step, OptDType,
            OptDevice) {
  bool whole = start.is_integral(true) && step.is_integral(true);
  fill_sequence(out, "arange_cpu", [&]<class A>(int64_t i) -> A {
    if constexpr (std::is_same_v<A, int64_t>) {
      if (whole)
        return static_cast<int64_t>(static_cast<uint64_t>(start.to_int()) +
                                    static_cast<uint64_t>(i) *
                                        static_cast<uint64_t>(step.to_int()));
      return start.to_int() + i * step.to_int();  // the type converts its bounds first
    } else {
      return A(start.to_double() + static_cast<double>(i) * step.to_double());
    }
  });
}

void arange_to(Tensor& out, const Scalar& end, OptDType dtype, OptDevice device) {
  Scalar zero = end.is_floating_point() ? Scalar(0.0) : Scalar(int64_t{0});
  arange(out, zero, end, Scalar(int64_t{1}), dtype, device);
}

void linspace(Tensor& out, const Scalar& start, const Scalar& end, int64_t steps, OptDType,
              OptDevice) {
  for (const Scalar* x : {&start, &end})  // a dtype of out= alone
    FB_CHECK(x->fits(out.dtype()), "linspace: value cannot be converted to type ",
             dtype_name(out.dtype()), " without overflow: ", *x);
  if (steps == 1) return fill(out, start);
  const double first = held(out.dtype(), start.to_complex().real()),
               last = held(out.dtype(), end.to_complex().real());
  auto at = [&]<class A>(int64_t i) -> A {
    // From both ends, so that the last value is exact and the sequence is symmetric.
    if constexpr (std::is_same_v<A, complex128>) {
      complex128 s = start.to_complex(), e = end.to_complex(),
                 d = (e - s) / static_cast<double>(steps - 1);
      return i < steps / 2 ? s + d * static_cast<double>(i)
                           : e - d * static_cast<double>(steps - 1 - i);
    } else if constexpr (std::is_same_v<A, int64_t>) {
      // Whole ends, a step in double, and values truncated after one rounding.
      double s = static_cast<double>(start.to_int()), e = static_cast<double>(end.to_int()),
             d = (e - s) / static_cast<double>(steps - 1);
      return static_cast<int64_t>(i < steps / 2
                                      ? std::fma(d, static_cast<double>(i), s)
                                      : std::fma(-d, static_cast<double>(steps - 1 - i), e));
    } else {
      double s = first, e = last, d = (e - s) / static_cast<double>(steps - 1);
      return i < steps / 2 ? s + d * static_cast<double>(i)
                           : e - d * static_cast<double>(steps - 1 - i);
    }
  };
  if (out.dtype() ==
      DType::Float32) {  // the step itself is rounded to float, as users' references have it
    float s = start.to<float>(), e = end.to<float>(), d = (e - s) / static_cast<float>(steps - 1);
    float* data = out.data<float>();
    int64_t stride = out.dim() ? out.strides()[0] : 1;
    for (int64_t i = 0; i < steps; ++i)
      data[i * stride] =
          i < steps / 2 ? s + d * static_cast<float>(i) : e - d * static_cast<float>(steps - 1 - i);
    return;
  }
  fill_sequence(out, "linspace_cpu", at);
}

void logspace(Tensor& out, const Scalar& start, const Scalar& end, int64_t steps, double base,
              OptDType, OptDevice) {
  fill_sequence(out, "logspace_cpu", [&]<class A>(int64_t i) -> A {
    double n = static_cast<double>(steps > 1 ? steps - 1 : 1);
    if constexpr (std::is_same_v<A, complex128>) {
      complex128 s = start.to_complex(), e = end.to_complex(), d = (e - s) / n;
      complex128 x = i < steps / 2 || steps == 1 ? s + d * static_cast<double>(i)
                                                 : e - d * static_cast<double>(steps - 1 - i);
      return std::pow(complex128(base), x);
    } else {
      constexpr bool whole = std::is_same_v<A, int64_t>;  // the ends are whole numbers then
      double s = whole ? static_cast<double>(start.to_int()) : start.to_double(),
             e = whole ? static_cast<double>(end.to_int()) : end.to_double(), d = (e - s) / n;
      double x = i < steps / 2 || steps == 1 ? s + d * static_cast<double>(i)
                                             : e - d * static_cast<double>(steps - 1 - i);
      return A(std::pow(base, x));
    }
  });
}

void eye(Tensor& out, int64_t, std::optional<int64_t>, OptDType, OptDevice) {
  fill(out, Scalar(0));
  int64_t n = std::min(out.size(0), out.size(1));
  if (n == 0) return;
  Tensor diagonal = alias(out, {n}, {out.stride(0) + out.stride(1)}, out.offset());
  fill(diagonal, Scalar(1));
}

namespace {
// Rows from `begin` to `end`, which have entries, so that the loop is no longer than the result.
template <class First, class Last>
void triangle(Tensor& out, int64_t begin, int64_t end, const First& first, const Last& last) {
  visit(out.dtype(), [&]<class T>() {
    if constexpr (std::is_integral_v<T>) {
      T *r = out.data<T>(), *c = r + out.size(1);
      if (out.numel() == 0) return;
      for (int64_t i = begin; i < end; ++i)
        for (int64_t j = first(i); j < last(i); ++j)
          *r++ = static_cast<T>(i), *c++ = static_cast<T>(j);
    } else {
      fail(ErrorKind::Runtime, "tril_indices: expected an integral dtype, got ", out.dtype());
    }
  });
}
}  // namespace

void tril_indices(Tensor& out, int64_t row, int64_t col, int64_t offset, OptDType, OptDevice) {
  triangle(
      out, std::clamp<int64_t>(-offset, 0, row), row, [](int64_t) { return int64_t{0}; },
      [&](int64_t i) { return std::clamp<int64_t>(i + offset + 1, 0, col); });
}

void triu_indices(Tensor& out, int64_t row, int64_t col, int64_t offset, OptDType, OptDevice) {
  triangle(
      out, 0, std::clamp<int64_t>(col - offset, 0, row),
      [&](int64_t i) { return std::clamp<int64_t>(i + offset, 0, col); },
      [&](int64_t) { return col; });
}

}  // namespace flambeau::kernels
