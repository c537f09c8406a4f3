#include "profiler/events.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>

#include "autograd/sequence.h"
#include "core/error.h"
#include "core/memory_hook.h"
#include "profiler/inputs.h"

namespace flambeau::profiler {

std::atomic<uint8_t> recorded{0};

namespace {

int64_t now() noexcept {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

// An event as its thread writes it. Others read it when the profile is over: fields other than
// `end` and `bytes` are written before it counts.
struct Slot {
  const OpDesc* op = nullptr;
  Kind kind{};
  Form form{};
  uint32_t text = 0, args = 0;  // index among the texts, + 1
  uint32_t stack = 0;
  int64_t parent = -1, sequence = -1, begin = 0, inputs = -1;
  std::atomic<int64_t> end{0}, bytes{0};  // end 0: it is open
};

// The events of a thread. The thread alone appends; `mutex` is for what moves when it grows.
class Buffer {
 public:
  Buffer(uint64_t profile, uint32_t ordinal) : profile(profile), ordinal(ordinal) {
    id = static_cast<int64_t>(syscall(SYS_gettid));
    char text[16] = {};
    if (pthread_getname_np(pthread_self(), text, sizeof text) == 0) name = text;
  }

  Slot& at(int64_t i) noexcept {
    return chunks_[static_cast<size_t>(i) / kChunk][static_cast<size_t>(i) % kChunk];
  }

  bool has(uint32_t event) const noexcept {
    return event < size_.load(std::memory_order_relaxed);
  }

  // The next event, which counts after `publish`.
  Slot& next() {
    int64_t n = size_.load(std::memory_order_relaxed);
    if (static_cast<size_t>(n) == chunks_.size() * kChunk) {
      auto chunk = std::make_unique<Slot[]>(kChunk);
      std::lock_guard guard(mutex);
      chunks_.push_back(std::move(chunk));
    }
    // The innermost that is open: one may have been closed from elsewhere, or out of order.
    while (current >= 0 && at(current).end.load(std::memory_order_relaxed))
      current = at(current).parent;
    Slot& s = at(n);
    s.parent = current;
    return s;
  }
  int64_t publish() noexcept {
    int64_t n = size_.load(std::memory_order_relaxed);
    current = n;
    size_.store(n + 1, std::memory_order_release);
    return n;
  }
  uint32_t text(std::string_view s) {
    if (s.empty()) return 0;
    std::lock_guard guard(mutex);
    texts_.emplace_back(s);
    return static_cast<uint32_t>(texts_.size());
  }
  template <class Given>
  int64_t inputs(const OpDesc& op, const Given* const* given) {
    std::lock_guard guard(mutex);
    int64_t start = std::ssize(inputs_);
    append_inputs(op, given, inputs_);
    return start;
  }
  // Its thread goes on from the event around it when it opens the next.
  void close_from_elsewhere(uint32_t event, int64_t end) noexcept {
    std::lock_guard guard(mutex);
    int64_t open = 0;
    if (has(event))
      at(event).end.compare_exchange_strong(open, end, std::memory_order_release);
  }
  void memory(const MemoryEvent& e) {
    std::lock_guard guard(mutex);
    memory_.push_back(e);
  }

  ThreadEvents read(int64_t over) {
    ThreadEvents out{ordinal, id, name, {}, {}, {}};
    std::lock_guard guard(mutex);
    int64_t n = size_.load(std::memory_order_acquire);
    out.events.reserve(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      Slot& s = at(i);
      int64_t end = s.end.load(std::memory_order_acquire);
      if (!end || end > over) end = std::max(over, s.begin);
      out.events.push_back({s.kind, s.form, s.op, said(s.text), said(s.args), s.begin, end,
                            s.parent, s.sequence, s.bytes.load(std::memory_order_relaxed),
                            s.inputs, s.stack});
    }
    out.memory = memory_;
    out.inputs = inputs_;
    return out;
  }

  const uint64_t profile;
  const uint32_t ordinal;
  int64_t id = 0;
  std::string name;
  int64_t current = -1;

 private:
  static constexpr size_t kChunk = 512;
  std::string said(uint32_t index) const { return index ? texts_[index - 1] : std::string(); }

  std::mutex mutex;
  std::deque<std::unique_ptr<Slot[]>> chunks_;
  std::atomic<int64_t> size_{0};
  std::deque<std::string> texts_;
  std::vector<int64_t> inputs_;
  std::vector<MemoryEvent> memory_;
};

// The profile that is open, or was last: threads may still close events of one that is over.
struct Session {
  std::mutex mutex;
  std::atomic<uint64_t> number{0};
  std::vector<std::shared_ptr<Buffer>> buffers;
  int64_t begin = 0, wall = 0;
  uint8_t asked = 0;  // 0: none is open
  std::atomic<int64_t> total{0};
};
Session& session() {
  static auto* s = new Session;  // never destroyed: threads may outlive static destruction
  return *s;
}
std::atomic<StackSource> stack_source{nullptr};

struct Thread {
  std::shared_ptr<Buffer> buffer;
  const OpDesc* entered = nullptr;
};
thread_local Thread thread;

Buffer& buffer() {
  Session& s = session();
  uint64_t number = s.number.load(std::memory_order_acquire);
  if (thread.buffer && thread.buffer->profile == number) [[likely]]
    return *thread.buffer;
  std::lock_guard guard(s.mutex);
  auto made = std::make_shared<Buffer>(number, static_cast<uint32_t>(s.buffers.size() + 1));
  s.buffers.push_back(made);
  thread.buffer = std::move(made);
  return *thread.buffer;
}

uint32_t stack_of(uint8_t asked) noexcept {
  if (!(asked & kStacks)) return 0;
  StackSource source = stack_source.load(std::memory_order_acquire);
  return source ? source() : 0;
}

void told_of_memory(const void* p, int64_t bytes) noexcept {
  if (!(recorded.load(std::memory_order_relaxed) & kMemory)) return;
  try {
    Buffer& b = buffer();
    int64_t in = b.current;
    while (in >= 0 && b.at(in).end.load(std::memory_order_relaxed)) in = b.at(in).parent;
    if (in >= 0) b.at(in).bytes.fetch_add(bytes, std::memory_order_relaxed);
    int64_t total = session().total.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    b.memory({now(), bytes, total, reinterpret_cast<uintptr_t>(p), in});
  } catch (const std::bad_alloc&) {  // an event less
  }
}

// A child of fork has the threads of nobody; it records nothing.
void forget_in_child() noexcept {
  recorded.store(0, std::memory_order_relaxed);
  memory_hook.store(nullptr, std::memory_order_relaxed);
  new (&session()) Session;
  new (&thread.buffer) std::shared_ptr<Buffer>;
}

}  // namespace

bool is_open() noexcept {
  return on();
}

Place open(Kind kind, std::string_view text, std::string_view args, int64_t sequence) {
  uint8_t asked = recorded.load(std::memory_order_relaxed);
  if (!asked) return {};
  Buffer& b = buffer();
  Slot& s = b.next();
  s.kind = kind;
  s.text = b.text(text);
  s.args = b.text(args);
  s.sequence = sequence;
  s.stack = kind == Kind::Range || kind == Kind::Operation ? stack_of(asked) : 0;
  s.begin = now();
  return {b.profile, b.ordinal, static_cast<uint32_t>(b.publish())};
}

Place open(const OpDesc& op, std::string_view name, const Value* const* args) {
  uint8_t asked = recorded.load(std::memory_order_relaxed);
  if (!asked) return {};
  Buffer& b = buffer();
  Slot& s = b.next();
  s.kind = Kind::Operation;
  s.text = b.text(name);
  if (modes.grad) s.sequence = static_cast<int64_t>(next_sequence());
  if (asked & kInputs) s.inputs = b.inputs(op, args);
  s.stack = stack_of(asked);
  s.begin = now();
  return {b.profile, b.ordinal, static_cast<uint32_t>(b.publish())};
}

void close(const Place& place) noexcept {
  int64_t end = now();
  Buffer* b = thread.buffer.get();
  if (b && b->profile == place.profile && b->ordinal == place.thread) [[likely]] {
    if (!b->has(place.event)) return;
    Slot& s = b->at(place.event);
    if (!s.end.load(std::memory_order_relaxed)) s.end.store(end, std::memory_order_release);
    if (b->current == place.event) b->current = s.parent;
    return;
  }
  Session& all = session();
  std::lock_guard guard(all.mutex);
  if (all.number.load(std::memory_order_relaxed) != place.profile || !place.thread ||
      place.thread > all.buffers.size())
    return;
  all.buffers[place.thread - 1]->close_from_elsewhere(place.event, end);
}

OperationEvent::OperationEvent(const OpDesc& op, Form form, const void* const* given) {
  if (thread.entered == &op) {
    thread.entered = nullptr;
    return;
  }
  uint8_t asked = recorded.load(std::memory_order_relaxed);
  if (!asked) return;
  Buffer& b = buffer();
  Slot& s = b.next();
  s.op = &op;
  s.kind = Kind::Operation;
  s.form = form;
  if (modes.grad) s.sequence = static_cast<int64_t>(next_sequence());
  if (asked & kInputs) s.inputs = b.inputs(op, given);
  s.stack = stack_of(asked);
  s.begin = now();
  place_ = {b.profile, b.ordinal, static_cast<uint32_t>(b.publish())};
  thread.entered = &op;
}

OperationEvent::~OperationEvent() {
  if (!place_.profile) return;
  thread.entered = nullptr;
  close(place_);
}

void start(uint8_t records) {
  Session& s = session();
  std::lock_guard guard(s.mutex);
  FB_CHECK(!s.asked, "profiler: expected no profile to be open, but one is; close it first");
  // Not by std::call_once: its thread-local variables lie in libstdc++, and where a process has
  // loaded that before us their place is not one that our code (initial-exec) can reach.
  static const bool told = pthread_atfork(nullptr, nullptr, forget_in_child) == 0;
  static_cast<void>(told);
  s.buffers.clear();
  s.number.fetch_add(1, std::memory_order_release);
  s.total.store(0, std::memory_order_relaxed);
  s.wall = std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
               .count();
  s.begin = now();
  s.asked = records | kTimes;
  if (s.asked & kMemory) memory_hook.store(told_of_memory, std::memory_order_release);
  recorded.store(s.asked, std::memory_order_release);
}

Profile stop() {
  Session& s = session();
  std::lock_guard guard(s.mutex);
  FB_CHECK(s.asked, "profiler: expected an open profile to stop, found none");
  recorded.store(0, std::memory_order_release);
  memory_hook.store(nullptr, std::memory_order_release);
  s.asked = 0;
  Profile out;
  out.begin = s.begin;
  out.end = now();
  out.wall = s.wall;
  for (auto& b : s.buffers) out.threads.push_back(b->read(out.end));
  return out;
}

void pause(bool paused) {
  Session& s = session();
  std::lock_guard guard(s.mutex);
  FB_CHECK(s.asked, "profiler: expected an open profile to pause, found none");
  recorded.store(paused ? 0 : s.asked, std::memory_order_release);
}

void set_stack_source(StackSource source) noexcept {
  stack_source.store(source, std::memory_order_release);
}

}  // namespace flambeau::profiler
