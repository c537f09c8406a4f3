// Matrix products of integers, modulo two to their width.
#include "kernels/providers/gemm.h"
#include "kernels/providers/gemm_call.h"

namespace flambeau::kernels::FB_ISA {
using namespace tiles;

void gemm_integer(const GemmCall& call) {
  // Unsigned arithmetic wraps; signed does not, so all sums are unsigned.
  switch (call.dtype) {
    case DType::Int64:
    case DType::UInt64:
      return gemm_same<uint64_t>(call);
    case DType::Int32:
    case DType::UInt32:
      return gemm_same<uint32_t>(call);
    case DType::Int16:
    case DType::UInt16:
      return gemm_converted<uint32_t, int16_t>(call);
    default:
      return gemm_converted<uint32_t, int8_t>(call);
  }
}

}  // namespace flambeau::kernels::FB_ISA
