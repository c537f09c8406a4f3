// Process groups under the thread sanitizer: test_sanitized.py builds this. The ranks are threads
// of one process, each with the group's memory mapped for itself, or joined by connections; of
// each rank one thread calls
// collectives, waited for and not, one sends and receives, and one waits for what both began. Then
// groups are destroyed with calls under way.
//
//   group_threads RANKS ROUNDS memory|mesh
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "core/tensor.h"
#include "distributed/process_group.h"

// What the core needs of the parts above it, and is not used here.
namespace flambeau {
void destroy_autograd_meta(AutogradMeta*) noexcept {}
AutogradMeta* copy_wrapper(const AutogradMeta*) { return nullptr; }
}  // namespace flambeau

using namespace flambeau;
using namespace flambeau::distributed;

namespace {

constexpr Milliseconds kLong(120000);
std::atomic<int> wrong{0}, called{0};
constexpr int64_t most = 200000;  // elements of a tensor

void expect(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  ++wrong;
}

Tensor filled(int64_t count, float value) {
  Tensor t = empty({count}, DType::Float32);
  for (int64_t i = 0; i < count; ++i) t.data<float>()[i] = value;
  return t;
}

void expect_all(const Tensor& t, float value, const char* what) {
  bool good = true;
  for (int64_t i = 0; i < t.numel(); ++i) good = good && t.data<float>()[i] == value;
  expect(good, what);
}

// Work of two threads, which a third waits for.
struct Begun {
  std::mutex mutex;
  std::vector<std::shared_ptr<Work>> works;
  void add(std::shared_ptr<Work> work) {
    work->then([] { ++called; });
    std::lock_guard lock(mutex);
    works.push_back(std::move(work));
  }
  void wait_all(bool well) {
    for (;;) {
      std::shared_ptr<Work> next;
      {
        std::lock_guard lock(mutex);
        if (works.empty()) return;
        next = works.back();
        works.pop_back();
      }
      try {
        next->wait(std::nullopt);
      } catch (const Fault& f) {
        expect(!well, f.what());
      }
      (void)next->done(), (void)next->fault();
    }
  }
};

void collectives(ProcessGroup& group, int rounds, Begun& begun) {
  auto ranks = static_cast<float>(group.size());
  for (int round = 0; round < rounds; ++round) {
    int64_t count = round % 5 == 0 ? most : 1 + round % 300;
    Tensor later = filled(count, 1), now = filled(count, 2), from = filled(7, float(group.rank()));
    auto work = group.collective(Kind::AllReduce, {}, {later}, ReduceOp::Sum, -1, kLong, true);
    group.collective(Kind::AllReduce, {}, {now}, ReduceOp::Avg, -1, kLong, false);
    begun.add(group.collective(Kind::Broadcast, {}, {from}, ReduceOp::Sum, 1, kLong, true));
    work->wait(std::nullopt);
    expect_all(later, ranks, "a sum that is waited for later");
    expect_all(now, 2, "a mean");
  }
}

void messages(ProcessGroup& group, int rounds, Begun& begun) {
  int next = (group.rank() + 1) % group.size();
  int before = (group.rank() + group.size() - 1) % group.size();
  for (int round = 0; round < rounds; ++round) {
    int64_t count = round % 5 == 0 ? 100000 : 1 + round % 300;
    Tensor sent = filled(count, float(round)), got = filled(count, -1);
    begun.add(group.message(true, sent, next, round % 3, kLong, true, nullptr));
    if (round % 2) {
      int source = -1;
      group.message(false, got, before, round % 3, kLong, false, &source);
      expect(source == before, "the sender");
    } else {
      auto work = group.message(false, got, before, round % 3, kLong, true, nullptr);
      work->wait(std::nullopt);
    }
    expect_all(got, float(round), "a message");
  }
}

void live(ProcessGroup& group, int rounds, const std::vector<std::string>& addresses) {
  group.begin(addresses, kLong);
  Begun begun;
  std::atomic<bool> ended{false};
  std::thread talks([&] { messages(group, rounds, begun); });
  std::thread waits([&] {
    while (!ended) begun.wait_all(true), std::this_thread::yield();
  });
  collectives(group, rounds, begun);
  talks.join();
  ended = true;
  waits.join();
  begun.wait_all(true);
  group.collective(Kind::Barrier, {}, {}, ReduceOp::Sum, -1, kLong, false);
  // Leaves with calls under way that nobody answers.
  int other = (group.rank() + 1) % group.size();
  Tensor never = filled(10, 0);
  begun.add(group.message(false, never, other, 9, kLong, true, nullptr));
  if (group.rank() == 0)
    for (int i = 0; i < 3; ++i)
      begun.add(group.collective(Kind::AllReduce, {}, {filled(10, 0)}, ReduceOp::Sum, -1, kLong,
                                 true));
  std::thread left([&] { begun.wait_all(false); });
  std::thread late([&] {
    for (bool alive = true; alive;) try {
        group.collective(Kind::Barrier, {}, {}, ReduceOp::Sum, -1, kLong, group.rank() % 2);
      } catch (const Fault&) {
        alive = false;
      }
  });
  group.shutdown();
  left.join();
  late.join();
}

}  // namespace

int main(int count, char** args) {
  if (count != 4) return 2;
  int ranks = std::atoi(args[1]), rounds = std::atoi(args[2]);
  bool mesh = args[3][0] == 'm' && args[3][2] == 's';
  std::vector<std::unique_ptr<ProcessGroup>> groups;
  std::vector<std::string> addresses;
  for (int rank = 0; rank < ranks; ++rank) {
    auto made = [&]() -> std::unique_ptr<ProcessGroup> {
      if (mesh)
        return std::make_unique<ProcessGroup>(
            std::make_unique<Mesh>(rank, ranks, "0", "127.0.0.1", "of the test"));
      if (rank == 0) return std::make_unique<ProcessGroup>(std::make_unique<Region>(ranks, "0"));
      return std::make_unique<ProcessGroup>(
          std::make_unique<Region>(addresses[0], rank, ranks, "0"));
    };
    groups.push_back(made());
    addresses.push_back(groups.back()->address());
  }
  std::vector<std::thread> threads;
  for (auto& group : groups)
    threads.emplace_back([&, one = group.get()] { live(*one, rounds, addresses); });
  for (auto& t : threads) t.join();
  std::printf("%d ranks, %d rounds, %d calls ended later, %d wrong\n", ranks, rounds, called.load(),
              wrong.load());
  return wrong ? 1 : 0;
}
