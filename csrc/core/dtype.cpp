#include "core/dtype.h"

#include <atomic>
#include <iterator>
#include <utility>

#include "core/scalar.h"

namespace flambeau {
namespace {
std::atomic<DType> default_{DType::Float32};
}

DType default_dtype() {
  return default_.load(std::memory_order_relaxed);
}

void set_default_dtype(DType d) {
  FB_CHECK_TYPE(is_floating_point(d), "set_default_dtype: expected a floating-point dtype, got ",
                d);
  default_ = d;
}

const char* scalar_type_name(DType d) {
  constexpr const char* names[] = {"Bool",     "Byte",   "Char",   "Short",        "Int",
                                   "Long",     "UInt16", "UInt32", "UInt64",       "Half",
                                   "BFloat16", "Float",  "Double", "ComplexFloat", "ComplexDouble"};
  static_assert(std::size(names) == kDTypes);
  return names[static_cast<int>(d)];
}

// Classes: bool < integers < floats < complex. Within integers: the wider wins; unsigned 8 with a
// signed type gives the smallest signed type that holds both; the wide unsigned types meet no other
// integer type.
DType promote(DType a, DType b) {
  if (a == b) return a;
  if (a > b) std::swap(a, b);
  if (is_complex(b)) {
    bool wide = b == DType::Complex128 || a == DType::Float64;
    return wide ? DType::Complex128 : DType::Complex64;
  }
  if (is_floating_point(b)) {
    bool both_half = is_reduced_float(a) && is_reduced_float(b);
    return both_half ? DType::Float32 : b;
  }
  if (a == DType::Bool) return b;
  if (b >= DType::UInt16) {  // the wide unsigned types
    if (a == DType::UInt8) return b;
    FB_CHECK(a >= DType::UInt16, "promote: no common type for ", a, " and ", b);
    return b;
  }
  if (a == DType::UInt8) return b == DType::Int8 ? DType::Int16 : b;
  return b;  // both signed: ordered by width
}

}  // namespace flambeau
