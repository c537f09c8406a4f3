// Pointwise operations: the table entry of a generated kernel and the driver that applies it to
// tensors. The driver owns type promotion, broadcasting, the layout of results, overlap checks,
// tiling, conversion and threads; a kernel is a loop over contiguous runs of one compute type.
// Below autograd and modes.
//
// Note [Compute types]
// Loops exist for float32, float64, int64, complex64, complex128, and for uint64 and bool where
// these differ from int64. Other dtypes are converted a tile at a time, in the first-level cache:
// half formats to float32, small integers and bool to int64. So an operation needs few
// instantiations, and every dtype and layout is served. What is not of the computed dtype (numbers,
// mostly) is first taken to it: beside bfloat16, 0.1 is 0.10009765625, so that what was filled with
// 0.1 equals it. Factors and divisors are exempt, as in PyTorch, whose arithmetic this is.
#pragma once

#include <array>
#include <initializer_list>
#include <tuple>
#include <utility>

#include "core/tensor.h"
#include "kernels/isa.h"

namespace flambeau::kernels {

// A number parameter in every form that a loop may want.
struct Param {
  double re = 0, im = 0;
  int64_t i = 0;
  Param() = default;
  Param(double x) : re(x), i(Scalar(x).to_int()) {}
  Param(int64_t x) : re(static_cast<double>(x)), i(x) {}
  Param(bool x) : re(x), i(x) {}
  Param(complex128 z) : re(z.real()), im(z.imag()) {}
  Param(const Scalar& x) : Param(x.to_complex()) {
    if (!x.is_complex()) i = x.to_int();
  }
};

using Loop = void (*)(int64_t n, const void* const* in, void* const* out, const Param* params);

// Over rows; `steps` are the bytes from one to the next in each input, then each output.
using RowsLoop = void (*)(int64_t rows, int64_t n, const void* const* in, void* const* out,
                          const int64_t* steps, const Param* params);

enum class Compute : uint8_t { Float32, Float64, Int64, UInt64, Bool, Complex64, Complex128 };
inline constexpr int kComputeTypes = 7;
struct LoopTable {
  Loop loops[kComputeTypes];  // null: the loop does not exist
  RowsLoop fixed = nullptr;   // of float: the last input is one number per row. Most have none
};

// Which type an operation computes in, from the promoted type of its inputs.
enum class Promote : uint8_t {
  Same,
  Float,  // integers and bool become the default float
  First,  // the first input decides alone
};
// Element type of a result, from the type computed in.
enum class Result : uint8_t { Same, Bool, Real, Complex, Int32, Int64 };
enum DTypeClass : uint8_t { kBools = 1, kInts = 2, kFloats = 4, kComplexes = 8 };

struct PointwiseKernel {
  const char* name;
  uint8_t inputs, outputs, params;
  Promote promote;
  uint8_t classes;     // DTypeClass bits that are implemented
  uint8_t conditions;  // bit i: input i is read as bool and takes no part in promotion
  uint8_t exact;       // bit i: a number as input i keeps its precision beside a half format
  uint8_t rounded;     // bit i: parameter i has none but that of the computed dtype
  bool divides;        // by the last input; loops over whole numbers refuse zeros there
  uint16_t cost;       // about how many operations per element
  Result results[4];
  const LoopTable* builds[kIsas > 0 ? kIsas : 1];
};

using Inputs = std::initializer_list<const Tensor*>;
using Params = std::initializer_list<Param>;

// New result.
Tensor pointwise_call(const PointwiseKernel& k, Inputs inputs, Params params = {});
// Several new results (k.outputs of them).
void pointwise_many(const PointwiseKernel& k, Inputs inputs, Params params, Tensor* results);
template <size_t... I>
auto pointwise_tuple(const PointwiseKernel& k, Inputs inputs, Params params,
                     std::index_sequence<I...>) {
  Tensor results[sizeof...(I)];
  pointwise_many(k, inputs, params, results);
  return std::tuple{(void(I), std::move(results[I]))...};
}
// self becomes the result; the shape and dtype must fit. Bumps the version.
void pointwise_inplace(const PointwiseKernel& k, const Tensor& self, Inputs inputs,
                       Params params = {});
// out= form: outs are resized where PyTorch resizes them, and must be able to hold the result's
// dtype.
void pointwise_out(const PointwiseKernel& k, Inputs inputs, Params params,
                   std::initializer_list<const Tensor*> outs);

}  // namespace flambeau::kernels
