// What a store's clients and server say to each other, as bytes: the greeting, in which each side
// proves that it knows the job's secret, then requests and replies. Every length is checked against
// what has arrived; a message that does not parse raises Fault(Network).
//
//   greeting   server: magic, whether it has a secret, a nonce; client: magic, a nonce, a proof;
//              server: its proof, and the connection is open
//   message    length (4 bytes), code (1), number (8), two lists of texts
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "distributed/hmac.h"
#include "distributed/store.h"

namespace flambeau::distributed {

enum class Code : uint8_t {
  // requests
  Set, Get, Add, Check, Wait, CompareSet, Delete, Count, Keys, Append, MultiGet, MultiSet, Push,
  Pop, Length,
  // replies
  Done, TimedOut, Refused, EmptyQueue,
};
inline constexpr Code kLastRequest = Code::Length;

struct Message {
  Code code = Code::Done;
  int64_t number = 0;  // a count, an amount, or how many milliseconds to wait
  Strings keys, values;
};

inline constexpr size_t kLargestMessage = size_t{1} << 30;
inline constexpr char kMagic[8] = {'F', 'B', 'S', 'T', 'O', 'R', 'E', '1'};

// The two halves of the greeting; proofs are zero where there is no secret.
struct ServerHello {
  char magic[8];
  uint8_t has_secret;
  Digest nonce;
};
struct ClientHello {
  char magic[8];
  Digest nonce, proof;
};
static_assert(sizeof(ServerHello) == 41 && sizeof(ClientHello) == 72);
Digest proof(const std::string& secret, const char* side, const Digest& server_nonce,
             const Digest& client_nonce);

std::string encode(const Message& m);  // with its length in front
Message decode(const char* body, size_t bytes);
// The length of the message that these bytes begin with, once it has come whole.
std::optional<size_t> whole_message(const char* data, size_t bytes);

}  // namespace flambeau::distributed
