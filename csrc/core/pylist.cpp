#include "core/pylist.h"

namespace flambeau::py {

void fail_overflow(const char* op, int64_t a, int64_t b) {
  fail(ErrorKind::Runtime, "the whole number ", a, " ", op, " ", b, " does not fit in 64 bits");
}

}  // namespace flambeau::py
