#include "distributed/fault.h"

namespace flambeau::distributed {

namespace {
void nothing() {}
}  // namespace

void (*check_interrupt)() = nothing;

std::string seconds_text(Milliseconds t) {
  auto n = t.count();
  return n % 1000 == 0 && n > 0 ? std::to_string(n / 1000) + " s" : std::to_string(n) + " ms";
}

}  // namespace flambeau::distributed
