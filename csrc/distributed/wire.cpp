#include "distributed/wire.h"

#include <cstring>

namespace flambeau::distributed {

namespace {

template <class T>
void put(std::string& out, T x) {
  out.append(reinterpret_cast<const char*>(&x), sizeof x);
}
void put(std::string& out, const Strings& texts) {
  put(out, static_cast<uint32_t>(texts.size()));
  for (auto& text : texts) {
    put(out, static_cast<uint32_t>(text.size()));
    out += text;
  }
}

[[noreturn]] void malformed() {
  throw Fault(FaultKind::Network, "store: a message does not parse");
}

struct Reader {
  const char* at;
  size_t left;
  template <class T>
  T number() {
    if (left < sizeof(T)) malformed();
    T x;
    std::memcpy(&x, at, sizeof x);
    at += sizeof x, left -= sizeof x;
    return x;
  }
  Strings texts() {
    auto count = number<uint32_t>();
    if (count > left / sizeof(uint32_t)) malformed();
    Strings out;
    out.reserve(count);
    for (uint32_t i = 0; i < count; ++i) {
      auto n = number<uint32_t>();
      if (n > left) malformed();
      out.emplace_back(at, n);
      at += n, left -= n;
    }
    return out;
  }
};

}  // namespace

Digest proof(const std::string& secret, const char* side, const Digest& server_nonce,
             const Digest& client_nonce) {
  if (secret.empty()) return {};
  std::string text(side);
  text.append(reinterpret_cast<const char*>(server_nonce.data()), server_nonce.size());
  text.append(reinterpret_cast<const char*>(client_nonce.data()), client_nonce.size());
  return hmac_sha256(secret, text);
}

std::string encode(const Message& m) {
  std::string out(sizeof(uint32_t), 0);
  put(out, static_cast<uint8_t>(m.code));
  put(out, m.number);
  put(out, m.keys);
  put(out, m.values);
  size_t bytes = out.size() - sizeof(uint32_t);
  if (bytes > kLargestMessage)
    throw Fault(FaultKind::Store, "store: expected keys and values of at most 1 GiB, got " +
                                      std::to_string(bytes) + " bytes");
  auto length = static_cast<uint32_t>(bytes);
  std::memcpy(out.data(), &length, sizeof length);
  return out;
}

Message decode(const char* body, size_t bytes) {
  Reader in{body, bytes};
  Message m;
  auto code = in.number<uint8_t>();
  if (code > static_cast<uint8_t>(Code::EmptyQueue)) malformed();
  m.code = static_cast<Code>(code);
  m.number = in.number<int64_t>();
  m.keys = in.texts();
  m.values = in.texts();
  if (in.left) malformed();
  return m;
}

std::optional<size_t> whole_message(const char* data, size_t bytes) {
  uint32_t length = 0;
  if (bytes < sizeof length) return std::nullopt;
  std::memcpy(&length, data, sizeof length);
  if (length > kLargestMessage) malformed();
  if (bytes - sizeof length < length) return std::nullopt;
  return length;
}

}  // namespace flambeau::distributed
