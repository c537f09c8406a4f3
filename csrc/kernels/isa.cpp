#include "kernels/isa.h"

#include <cstdlib>
#include <cstring>

namespace flambeau::kernels {
namespace {

constexpr const char* kNames[] = {FB_IF_PORTABLE("portable", ) FB_IF_V2("v2", ) FB_IF_V3("v3", )
                                      FB_IF_V4("v4", )};

#if defined(__x86_64__)
bool has_v3() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("f16c");
}
bool has_v4() {
  return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
bool supported(const char* name) {
  if (!std::strcmp(name, "v4")) return has_v4();
  if (!std::strcmp(name, "v3")) return has_v3();
  return true;
}
#else
bool supported(const char*) {
  return true;
}
#endif

// The richest set that the CPU has, or a plainer one when FLAMBEAU_ISA asks for it (tests do).
int choose() {
#if defined(__x86_64__)
  __builtin_cpu_init();
#endif
  int best = 0;
  const char* wanted = std::getenv("FLAMBEAU_ISA");
  for (int i = 0; i < kIsas; ++i) {
    if (!supported(kNames[i])) break;
    best = i;
    if (wanted && !std::strcmp(wanted, kNames[i])) break;
  }
  return best;
}

}  // namespace

const int isa_index = choose();

const char* isa_name() {
  return kNames[isa_index];
}

}  // namespace flambeau::kernels
