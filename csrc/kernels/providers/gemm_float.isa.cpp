// Matrix products of floating point: float and double as they are; half formats are widened while
// they are packed, summed in float, and rounded once.
#include "kernels/providers/gemm.h"
#include "kernels/providers/gemm_call.h"

namespace flambeau::kernels::FB_ISA {
using namespace tiles;

void gemm_real(const GemmCall& call) {
  switch (call.dtype) {
    case DType::Float32:
      return gemm_same<float>(call);
    case DType::Float64:
      return gemm_same<double>(call);
    case DType::BFloat16:
      return gemm_converted<float, BFloat16>(call);
    default:
      return gemm_converted<float, Half>(call);
  }
}

}  // namespace flambeau::kernels::FB_ISA
