#include "distributed/tcp_store.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace flambeau::distributed {

namespace {
// What the answer may take beyond the wait itself, on a busy machine.
constexpr Milliseconds kPatience(60000);
// How PyTorch counts the processes that have come; it is one of the keys.
const char* const kWorkers = "init/";
}  // namespace

TcpStore::TcpStore(TcpStoreOptions options)
    : Store(options.timeout), options_(std::move(options)), port_(options_.port) {
  if (options_.is_master) start_server();
  if (port_ == 0)
    throw Fault(FaultKind::Store, "TCPStore: expected the port of the server, got 0");
  {
    std::lock_guard lock(mutex_);
    connect(timeout_);
  }
  if (options_.world_size > 0) {
    add(kWorkers, 1);
    if (options_.wait_for_workers && options_.is_master) wait_for_workers();
  }
}

void TcpStore::start_server() {
  bool loopback = options_.secret.empty();
  Socket listener;
  try {
    listener = options_.listen_fd >= 0 ? Socket(options_.listen_fd) : listen_on(port_, loopback);
  } catch (const Fault&) {
    if (options_.multi_tenant && port_ != 0) return;
    throw;
  }
  port_ = port_of(listener);
  server_ = std::make_unique<StoreServer>(std::move(listener), options_.secret);
}

void TcpStore::connect(Milliseconds timeout) {
  socket_ = Socket();
  Deadline deadline(timeout);
  const std::string& host = server_ ? "127.0.0.1" : options_.host;
  Socket s;
  try {
    s = connect_to(host, port_, deadline);
  } catch (const Fault& f) {
    if (f.kind != FaultKind::Network || !options_.secret.empty()) throw;
    throw Fault(f.kind, std::string(f.what()) +
                            " (a store without a secret is reached from its own machine alone; "
                            "set FLAMBEAU_STORE_SECRET for other machines)");
  }
  std::string place = "store at (" + host + ", " + std::to_string(port_) + ")";
  ServerHello hello;
  if (!receive_all(s, &hello, sizeof hello, deadline) ||
      std::memcmp(hello.magic, kMagic, sizeof kMagic) != 0)
    throw Fault(FaultKind::Network, place + ": what listens there is no store");
  if (hello.has_secret != (options_.secret.empty() ? 0 : 1))
    throw Fault(FaultKind::Network,
                place + (hello.has_secret ? ": it asks for a secret, and none is given"
                                          : ": a secret is given, and it does not know any"));
  ClientHello mine{};
  std::memcpy(mine.magic, kMagic, sizeof kMagic);
  mine.nonce = random_bytes();
  mine.proof = proof(options_.secret, "client", hello.nonce, mine.nonce);
  send_all(s, &mine, sizeof mine, deadline);
  Digest theirs{};
  if (!receive_all(s, theirs.data(), theirs.size(), deadline) ||
      !same_digest(theirs, proof(options_.secret, "server", hello.nonce, mine.nonce)))
    throw Fault(FaultKind::Network, place + ": the secrets differ");
  socket_ = std::move(s);
  owner_ = ::getpid();
}

void TcpStore::wait_for_workers() {
  Deadline deadline(timeout_);
  for (;;) {
    int64_t come = number_of(kWorkers, get(kWorkers));
    if (come >= options_.world_size) return;
    if (deadline.passed())
      throw Fault(FaultKind::Store, "Timed out after " + seconds_text(timeout_) +
                                        " waiting for clients. " + std::to_string(come) + "/" +
                                        std::to_string(options_.world_size) + " clients joined.");
    std::this_thread::sleep_for(Milliseconds(2));
    check_interrupt();
  }
}

std::unique_ptr<TcpStore> TcpStore::clone() const {
  TcpStoreOptions o = options_;
  o.port = port_;
  o.is_master = o.multi_tenant = false;
  o.listen_fd = -1;
  o.world_size = -1;
  if (server_) o.host = "127.0.0.1";
  auto copy = std::make_unique<TcpStore>(std::move(o));
  copy->set_timeout(timeout_);
  return copy;
}

Message TcpStore::ask(const Message& request, Milliseconds timeout) {
  std::string bytes = encode(request);
  std::lock_guard lock(mutex_);
  if (!socket_ || owner_ != ::getpid()) connect(std::max(timeout_, options_.timeout));
  // Put back only after a whole exchange: what throws below leaves a connection not to be used.
  Socket s = std::move(socket_);
  socket_ = Socket();
  Deadline deadline(timeout + kPatience);
  send_all(s, bytes.data(), bytes.size(), deadline);
  uint32_t length = 0;
  if (!receive_all(s, &length, sizeof length, deadline))
    throw Fault(FaultKind::Network,
                "Connection was likely closed. Did the remote server shutdown or crash?");
  if (length > kLargestMessage)
    throw Fault(FaultKind::Network, "the store's server sent a message that is too long");
  std::string body(length, 0);
  if (!receive_all(s, body.data(), length, deadline) && length)
    throw Fault(FaultKind::Network, "the store's server closed the connection in its answer");
  Message reply = decode(body.data(), body.size());
  socket_ = std::move(s);
  switch (reply.code) {
    case Code::Done: return reply;
    case Code::TimedOut: fail_waiting(reply.keys, timeout);
    case Code::EmptyQueue: fail_empty_queue(request.keys.at(0));
    case Code::Refused:
      throw Fault(FaultKind::Store, reply.values.empty() ? "refused" : reply.values[0]);
    default: throw Fault(FaultKind::Network, "the store's server answers with a request");
  }
}

void TcpStore::set(const std::string& key, const std::string& value) {
  ask({Code::Set, 0, {key}, {value}}, timeout_);
}
std::string TcpStore::get(const std::string& key) {
  return ask({Code::Get, timeout_.count(), {key}, {}}, timeout_).values.at(0);
}
int64_t TcpStore::add(const std::string& key, int64_t amount) {
  return ask({Code::Add, amount, {key}, {}}, timeout_).number;
}
bool TcpStore::check(const Strings& keys) {
  return ask({Code::Check, 0, keys, {}}, timeout_).number != 0;
}
void TcpStore::wait(const Strings& keys, Milliseconds timeout) {
  ask({Code::Wait, timeout.count(), keys, {}}, timeout);
}
std::string TcpStore::compare_set(const std::string& key, const std::string& expected,
                                  const std::string& desired) {
  return ask({Code::CompareSet, 0, {key}, {expected, desired}}, timeout_).values.at(0);
}
bool TcpStore::delete_key(const std::string& key) {
  return ask({Code::Delete, 0, {key}, {}}, timeout_).number != 0;
}
int64_t TcpStore::num_keys() {
  return ask({Code::Count, 0, {}, {}}, timeout_).number;
}
Strings TcpStore::list_keys() {
  return ask({Code::Keys, 0, {}, {}}, timeout_).keys;
}
void TcpStore::append(const std::string& key, const std::string& value) {
  ask({Code::Append, 0, {key}, {value}}, timeout_);
}
Strings TcpStore::multi_get(const Strings& keys) {
  return ask({Code::MultiGet, timeout_.count(), keys, {}}, timeout_).values;
}
void TcpStore::multi_set(const Strings& keys, const Strings& values) {
  ask({Code::MultiSet, 0, keys, values}, timeout_);
}
void TcpStore::queue_push(const std::string& key, const std::string& value) {
  ask({Code::Push, 0, {key}, {value}}, timeout_);
}
std::string TcpStore::queue_pop(const std::string& key, bool block) {
  return ask({Code::Pop, block ? timeout_.count() : -1, {key}, {}}, timeout_).values.at(0);
}
int64_t TcpStore::queue_len(const std::string& key) {
  return ask({Code::Length, 0, {key}, {}}, timeout_).number;
}

}  // namespace flambeau::distributed
