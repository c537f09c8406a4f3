// Generator: a counted handle to random state. The CPU engine is mt19937 with PyTorch's transforms,
// so the same seed gives the same numbers; see core/random.h for the transforms.
#pragma once

#include <mutex>
#include <string>

#include "core/intrusive.h"
#include "core/tensor.h"

namespace flambeau {

// mt19937 by its definition (Matsumoto & Nishimura 1998), state open for get_state/set_state.
struct Mt19937 {
  uint32_t state[624];
  int left = 1;
  int next = 0;
  uint64_t seed = 5489;
  explicit Mt19937(uint64_t s = 5489) { reseed(s); }
  void reseed(uint64_t s);
  uint32_t operator()();
};

struct GeneratorImpl : Counted<GeneratorImpl> {
  std::mutex mutex;  // held while a kernel draws
  Mt19937 engine;
  std::optional<double> next_normal_double;  // the spare of Box-Muller
  std::optional<float> next_normal_float;
  Device device;
  void* pyobj = nullptr;
  static void destroy(GeneratorImpl* g) { delete g; }

  uint32_t random() { return engine(); }
  uint64_t random64();
  void manual_seed(uint64_t seed);
  uint64_t seed_from_system();
  Tensor get_state();  // uint8, PyTorch's layout
  void set_state(const Tensor& state);
};

using Generator = Ref<GeneratorImpl>;
const Generator& default_generator();
inline GeneratorImpl& generator_or_default(const std::optional<Generator>& g) {
  return g && *g ? **g : *default_generator();
}

}  // namespace flambeau
