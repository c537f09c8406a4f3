#include "kernels/special.h"

#include "core/error.h"

namespace flambeau::special {
void division_by_zero() { fail(ErrorKind::Runtime, "ZeroDivisionError"); }
}  // namespace flambeau::special
