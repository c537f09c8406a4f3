// mt19937 by its published recurrence, and the states around it. Seeding draws nothing.
#include "core/generator.h"

#include <cstring>
#include <random>

namespace flambeau {

void Mt19937::reseed(uint64_t s) {
  seed = s;
  state[0] = static_cast<uint32_t>(s);
  for (uint32_t i = 1; i < 624; ++i)
    state[i] = 1812433253u * (state[i - 1] ^ (state[i - 1] >> 30)) + i;
  left = 1;
  next = 0;
}

static void twist(uint32_t* s) {
  auto mix = [](uint32_t u, uint32_t v) { return (u & 0x80000000u) | (v & 0x7fffffffu); };
  auto step = [&](uint32_t u, uint32_t v) { return (mix(u, v) >> 1) ^ (v & 1 ? 0x9908b0dfu : 0u); };
  int i = 0;
  for (; i < 624 - 397; ++i) s[i] = s[i + 397] ^ step(s[i], s[i + 1]);
  for (; i < 623; ++i) s[i] = s[i + 397 - 624] ^ step(s[i], s[i + 1]);
  s[623] = s[396] ^ step(s[623], s[0]);
}

uint32_t Mt19937::operator()() {
  if (--left == 0) {
    twist(state);
    left = 624;
    next = 0;
  }
  uint32_t y = state[next++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

uint64_t GeneratorImpl::random64() {
  uint32_t high = engine(), low = engine();
  return static_cast<uint64_t>(high) << 32 | low;
}

void GeneratorImpl::manual_seed(uint64_t s) {
  std::lock_guard guard(mutex);
  next_normal_double.reset();
  next_normal_float.reset();
  engine.reseed(s);
}

uint64_t GeneratorImpl::seed_from_system() {
  std::random_device device;
  uint64_t s = (static_cast<uint64_t>(device()) << 32 | device()) & 0x1fffffffffffffull;
  manual_seed(s);
  return s;
}

namespace {
// The layout that PyTorch's CPU state has, so that a saved state means the same: the legacy block
// (seed, left, seeded, next, 624 words of 64 bits, normals) followed by the float spare.
struct State {
  uint64_t seed;
  int32_t left, seeded;
  uint64_t next;
  uint64_t words[624];
  double normal_x, normal_y, normal_rho;
  int32_t normal_valid, pad;
  float spare;
  bool spare_valid;
};
}  // namespace

Tensor GeneratorImpl::get_state() {
  std::lock_guard guard(mutex);
  State s{};
  s.seed = engine.seed;
  s.left = engine.left;
  s.seeded = 1;
  s.next = static_cast<uint64_t>(engine.next);
  for (int i = 0; i < 624; ++i) s.words[i] = engine.state[i];
  if (next_normal_double) {
    s.normal_valid = 1;
    s.normal_y = *next_normal_double;
  }
  if (next_normal_float) {
    s.spare_valid = true;
    s.spare = *next_normal_float;
  }
  Tensor out = empty({static_cast<int64_t>(sizeof s)}, DType::UInt8);
  std::memcpy(out.data_ptr(), &s, sizeof s);
  return out;
}

void GeneratorImpl::set_state(const Tensor& state) {
  FB_CHECK_TYPE(state.dtype() == DType::UInt8,
                "set_state: expected a tensor of dtype torch.uint8, got ", state.dtype());
  FB_CHECK(state.numel() == sizeof(State) && state.is_contiguous(), "set_state: expected ",
           sizeof(State), " contiguous bytes, got ", state.numel());
  FB_CHECK_TYPE(state.device().type() == DeviceType::CPU, "set_state: expected a CPU tensor, got ",
                state.device());
  State s;
  std::memcpy(static_cast<void*>(&s), state.data_ptr(), sizeof s);
  FB_CHECK(s.left >= 1 && s.left <= 624 && s.next <= 624,
           "set_state: the state is not one of mt19937");
  std::lock_guard guard(mutex);
  engine.seed = s.seed;
  engine.left = s.left;
  engine.next = static_cast<int>(s.next);
  for (int i = 0; i < 624; ++i) engine.state[i] = static_cast<uint32_t>(s.words[i]);
  next_normal_double = s.normal_valid ? std::optional(s.normal_y) : std::nullopt;
  next_normal_float = s.spare_valid ? std::optional(s.spare) : std::nullopt;
}

const Generator& default_generator() {
  static const Generator g = [] {
    auto made = Generator::adopt(new GeneratorImpl);
    made->engine.reseed(67280421310721ull);
    return made;
  }();
  return g;
}

}  // namespace flambeau
