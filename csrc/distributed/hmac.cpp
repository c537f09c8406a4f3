#include "distributed/hmac.h"

#include <sys/random.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "distributed/fault.h"

namespace flambeau::distributed {

namespace {

// The first 32 bits of the fractional parts of roots of the first primes, as the standard defines
// its constants; long double has 64 bits, of which the largest root takes 5 for its whole part.
struct Constants {
  uint32_t start[8], round[64];
  Constants() {
    int found = 0;
    for (int n = 2; found < 64; ++n) {
      bool prime = true;
      for (int d = 2; d * d <= n; ++d) prime = prime && n % d != 0;
      if (!prime) continue;
      if (found < 8) start[found] = fraction(std::sqrt(static_cast<long double>(n)));
      round[found++] = fraction(std::cbrt(static_cast<long double>(n)));
    }
  }
  static uint32_t fraction(long double x) {
    return static_cast<uint32_t>((x - std::floor(x)) * 4294967296.0L);
  }
};

void absorb(uint32_t* state, const uint8_t* block) {
  static const Constants constants;
  uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 |
           uint32_t{block[4 * i + 2]} << 8 | block[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    uint32_t x = w[i - 15], y = w[i - 2];
    uint32_t s0 = std::rotr(x, 7) ^ std::rotr(x, 18) ^ (x >> 3);
    uint32_t s1 = std::rotr(y, 17) ^ std::rotr(y, 19) ^ (y >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  uint32_t v[8];
  std::memcpy(v, state, sizeof v);
  for (int i = 0; i < 64; ++i) {
    uint32_t e = v[4], a = v[0];
    uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    uint32_t choice = (e & v[5]) ^ (~e & v[6]);
    uint32_t t1 = v[7] + s1 + choice + constants.round[i] + w[i];
    uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    uint32_t majority = (a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]);
    std::memmove(v + 1, v, 7 * sizeof *v);
    v[4] += t1;
    v[0] = t1 + s0 + majority;
  }
  for (int i = 0; i < 8; ++i) state[i] += v[i];
}

std::string_view text(const Digest& d) {
  return {reinterpret_cast<const char*>(d.data()), d.size()};
}

}  // namespace

Digest sha256(std::string_view data) {
  static const Constants constants;
  uint32_t state[8];
  std::memcpy(state, constants.start, sizeof state);
  std::string padded(data);
  padded.push_back(static_cast<char>(0x80));
  while (padded.size() % 64 != 56) padded.push_back(0);
  uint64_t bits = uint64_t{data.size()} * 8;
  for (int i = 7; i >= 0; --i) padded.push_back(static_cast<char>(bits >> (8 * i)));
  for (size_t at = 0; at < padded.size(); at += 64)
    absorb(state, reinterpret_cast<const uint8_t*>(padded.data()) + at);
  Digest out;
  for (size_t i = 0; i < 32; ++i) out[i] = static_cast<uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  return out;
}

Digest hmac_sha256(std::string_view key, std::string_view data) {
  std::string block(key.size() > 64 ? text(sha256(key)) : key);
  block.resize(64, 0);
  std::string inner, outer;
  for (char c : block) inner.push_back(c ^ 0x36), outer.push_back(c ^ 0x5c);
  inner.append(data);
  Digest first = sha256(inner);
  outer.append(text(first));
  return sha256(outer);
}

bool same_digest(const Digest& a, const Digest& b) {
  unsigned different = 0;
  for (size_t i = 0; i < a.size(); ++i) different |= a[i] ^ b[i];
  return different == 0;
}

Digest random_bytes() {
  Digest out;
  if (::getrandom(out.data(), out.size(), 0) != static_cast<ssize_t>(out.size()))
    throw Fault(FaultKind::Network, "store: the system gives no random numbers");
  return out;
}

}  // namespace flambeau::distributed
