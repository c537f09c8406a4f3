// SHA-256 (FIPS 180-4) and HMAC over it (RFC 2104), for proving that one knows a secret without
// sending it. Comparison takes the same time wherever two codes differ. Not for large data.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace flambeau::distributed {

using Digest = std::array<uint8_t, 32>;

Digest sha256(std::string_view data);
Digest hmac_sha256(std::string_view key, std::string_view data);
bool same_digest(const Digest& a, const Digest& b);
Digest random_bytes();  // from the system; throws Fault when it has none

}  // namespace flambeau::distributed
