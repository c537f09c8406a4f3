// Events of a profile: what ran, when, on which thread, inside of what. Operations of the table,
// backward nodes, named ranges and compiled programs open and close events; a buffer of each thread
// takes them, and `stop` reads all buffers once. One profile at a time, of all threads of the
// process. Knows nothing of Python.
//
// Note [Events of operations]
// While no profile is open, an operation reads one byte and nothing else. While one is, the function
// of an operation opens an event and calls itself again: the thread's `entered` names the operation
// that the next call is the inside of, so that call goes on to its work. The way that is taken
// without a profile holds no state for it, not even a register.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dispatch/op.h"

namespace flambeau::profiler {

// What a profile records besides names and times.
enum Record : uint8_t { kTimes = 1, kInputs = 2, kMemory = 4, kStacks = 8 };

// Of the running profile, 0: there is none. Hidden, for a read without a table of addresses: what is
// outside of the library asks `is_open`.
[[gnu::visibility("hidden")]] extern std::atomic<uint8_t> recorded;
inline bool on() noexcept {
  return recorded.load(std::memory_order_relaxed) != 0;
}
bool is_open() noexcept;

enum class Kind : uint8_t { Operation, Node, Evaluation, Range, Program, Step };
enum class Form : uint8_t { Plain, InPlace, Out };

// Where an event lies, for who closes it later, perhaps on another thread.
struct Place {
  uint64_t profile = 0;  // 0: nowhere
  uint32_t thread = 0, event = 0;
};

// What goes from `open` to `close` on one thread. `text` is copied.
Place open(Kind kind, std::string_view text, std::string_view args = {}, int64_t sequence = -1);
void close(const Place& place) noexcept;
// The event of a call of an operation that was added at run time, whose descriptor may go.
Place open(const OpDesc& op, std::string_view name, const Value* const* args);

// Closes an event, if it is one, at the end of a scope.
class Scope {
 public:
  explicit Scope(const Place& place) noexcept : place_(place) {}
  ~Scope() {
    if (place_.profile) [[unlikely]]
      close(place_);
  }
  Scope(const Scope&) = delete;

 private:
  Place place_;
};

// The event of a call of an operation, see Note [Events of operations]. `given` points to the
// parameters, in order.
class OperationEvent {
 public:
  OperationEvent(const OpDesc& op, Form form, const void* const* given);
  ~OperationEvent();
  OperationEvent(const OperationEvent&) = delete;
  bool outside() const noexcept { return place_.profile != 0; }

 private:
  Place place_;
};

// A profile that was read.
struct Event {
  Kind kind;
  Form form;
  const OpDesc* op;      // of the table; null: `text` is the name
  std::string text, args;
  int64_t begin, end;    // nanoseconds of a clock that never goes back
  int64_t parent;        // on the same thread; -1: none
  int64_t sequence;      // of the node that the call records, or that is applied; -1: none
  int64_t bytes;         // taken less given back by itself
  int64_t inputs;        // where they begin in `inputs` of the thread; -1: not recorded
  uint32_t stack;        // what the source of stacks said; 0: nothing
};
struct MemoryEvent {
  int64_t at, bytes, total;  // of the process, since the profile began
  uint64_t address;
  int64_t event;  // that it happened in; -1: none
};
struct ThreadEvents {
  uint32_t ordinal;  // from 1, in the order in which threads had their first event
  int64_t id;        // of the system
  std::string name;
  std::vector<Event> events;
  std::vector<MemoryEvent> memory;
  std::vector<int64_t> inputs;  // see inputs.h
};
struct Profile {
  int64_t begin = 0, end = 0;  // of the clock
  int64_t wall = 0;            // nanoseconds since 1970 at `begin`
  std::vector<ThreadEvents> threads;
};

void start(uint8_t records);  // Error(Runtime) if a profile is open
Profile stop();               // Error(Runtime) if none is
// Leaves out what begins from now on, or takes it again; Error(Runtime) if no profile is open.
void pause(bool paused);

// Who says where a program is when an operation is called: a number that is its own affair.
using StackSource = uint32_t (*)() noexcept;
void set_stack_source(StackSource source) noexcept;

}  // namespace flambeau::profiler
