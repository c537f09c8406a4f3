// The store's server under damaged messages while clients go on: test_sanitized.py builds this with
// sanitizers. Every client counts, keeps keys of its own, and waits for its neighbour's; what they
// find at the end must be right, whatever others have sent meanwhile.
//
//   store_fuzz MESSAGES CLIENTS SEED
#include <sys/socket.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "distributed/tcp_store.h"

using namespace flambeau::distributed;

namespace {

std::atomic<bool> ended{false};
std::atomic<long> counted{0}, wrong{0};

void expect(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  ++wrong;
}

TcpStore client_of(uint16_t port) {
  TcpStoreOptions o;
  o.host = "localhost", o.port = port, o.timeout = Milliseconds(60000);
  return TcpStore(std::move(o));
}

// A client's life: all it asks is answered, and rightly.
void serve_one(uint16_t port, int self, int all) {
  try {
    TcpStore store = client_of(port);
    std::string mine = "client " + std::to_string(self), next;
    for (long round = 0; !ended || round < 3; ++round) {
      std::string text = std::to_string(round);
      store.add("clients count", 1), ++counted;
      store.set(mine, text);
      expect(store.get(mine) == text, "a key of its own");
      expect(store.compare_set(mine, text, text + "!") == text + "!", "compare_set");
      store.queue_push(mine + " queue", text);
      expect(store.queue_pop(mine + " queue", true) == text, "a queue");
      store.set(mine + " round " + text, text);
      next = "client " + std::to_string((self + 1) % all) + " round ";
      if (round < 3) store.wait({next + text}, Milliseconds(60000));
      if (round >= 8) expect(store.delete_key(mine + " round " + std::to_string(round - 4)), "old");
      std::this_thread::sleep_for(Milliseconds(1));
    }
  } catch (const std::exception& e) {
    expect(false, e.what());
  }
}

using Random = std::mt19937_64;

std::string text_of(Random& draw, size_t most) {
  std::string out(draw() % (most + 1), 0);
  for (auto& c : out) c = static_cast<char>(draw());
  return out;
}

// A request with a few keys, often damaged.
std::string message(Random& draw) {
  Message m;
  m.code = static_cast<Code>(draw() % 19);
  int64_t numbers[] = {0, 1, -1, 50, INT64_MAX, INT64_MIN, static_cast<int64_t>(draw())};
  m.number = numbers[draw() % 7];
  for (uint64_t n = draw() % 4; n > 0; --n) m.keys.push_back("fuzz " + std::to_string(draw() % 9));
  for (uint64_t n = draw() % 4; n > 0; --n) m.values.push_back(text_of(draw, 40));
  std::string out = encode(m);
  switch (draw() % 8) {
    case 0: out.resize(draw() % out.size()); break;
    case 1: out += text_of(draw, 30); break;
    case 2: out.replace(0, 4, text_of(draw, 4)); break;
    case 3:
    case 4:
      for (uint64_t n = 1 + draw() % 4; n > 0; --n)
        out[4 + draw() % (out.size() - 4)] = static_cast<char>(draw());
      break;
    default: break;  // whole
  }
  return out;
}

Socket greeted(uint16_t port, Random& draw) {
  Socket s = connect_to("localhost", port, Deadline(Milliseconds(20000)));
  ClientHello hello{};
  std::memcpy(hello.magic, kMagic, sizeof kMagic);
  std::string bytes(reinterpret_cast<const char*>(&hello), sizeof hello);
  bool whole = draw() % 8 != 0;
  if (!whole && draw() % 2) bytes[draw() % 8] = static_cast<char>(draw());
  else if (!whole) bytes.resize(draw() % bytes.size());
  (void)!::send(s.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  char answer[sizeof(ServerHello) + sizeof(Digest)];
  if (whole) (void)receive_all(s, answer, sizeof answer, Deadline(Milliseconds(20000)));
  return s;
}

void fuzz(uint16_t port, long messages, uint64_t seed) {
  Random draw(seed);
  std::vector<Socket> open;  // some half open, some that never read
  char waste[4096];
  for (long n = 0; n < messages;) {
    if (open.size() < 16) open.push_back(greeted(port, draw));
    size_t at = draw() % open.size();
    int fd = open[at].fd();
    bool good = true;
    for (uint64_t more = draw() % 6; good && more > 0; --more, ++n) {
      std::string bytes = message(draw);
      good = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
    }
    if (draw() % 2) good = ::recv(fd, waste, sizeof waste, MSG_DONTWAIT) != 0 && good;
    if (!good || draw() % 8 == 0) {
      std::swap(open[at], open.back());
      open.pop_back();
    }
  }
}

}  // namespace

int main(int count, char** args) {
  if (count != 4) return 2;
  long messages = std::atol(args[1]);
  int clients = std::atoi(args[2]);
  auto seed = static_cast<uint64_t>(std::atol(args[3]));
  TcpStoreOptions o;
  o.is_master = true, o.host = "localhost", o.timeout = Milliseconds(60000);
  TcpStore store(std::move(o));
  std::vector<std::thread> going, others;
  for (int i = 0; i < clients; ++i)
    going.emplace_back([&, i] { serve_one(store.port(), i, clients); });
  for (uint64_t i = 0; i < 4; ++i)
    others.emplace_back([&, i] { fuzz(store.port(), messages / 4, 4 * seed + i); });
  for (auto& t : others) t.join();
  ended = true;
  for (auto& t : going) t.join();
  expect(store.add("clients count", 0) == counted, "the count");
  std::printf("%ld damaged messages, %d clients with %ld rounds, %ld wrong\n", messages, clients,
              counted.load(), wrong.load());
  return wrong ? 1 : 0;
}
