// Link: what the ranks of one group have to each other besides collectives: a stream of bytes from
// each to each, for messages, and word of who left, gave up or died. Memory that ranks of one
// machine share (Region) or connections (Mesh). Knows no collective and no message.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "distributed/fault.h"

namespace flambeau::distributed {

inline constexpr int kMostRanks = 256;

// What a rank says it calls, so that others can compare it with their own call.
struct Record {
  uint32_t number;  // of the collective in its group
  uint8_t kind, dtype, op, reserved;
  int32_t root;
  uint32_t reserved2;
  uint64_t bytes;   // what all ranks must agree on, for this kind
  uint64_t layout;  // the same: a digest of a list of sizes
};

enum class RankState : uint32_t { Working, GaveUp, Left };

class Link {
 public:
  Link(int rank, int size, std::string group)
      : rank_(rank), size_(size), group_(std::move(group)) {}
  virtual ~Link() = default;
  Link(const Link&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& group() const { return group_; }

  virtual std::string address() const = 0;           // by which other ranks find this one
  virtual void begin(const std::vector<std::string>& addresses,
                     Milliseconds timeout) = 0;      // until every rank is here
  virtual void leave(RankState state, const std::string& reason) = 0;
  virtual void set_doing(uint64_t doing) = 0;  // number << 9 | kind << 1 | whether it is in it
  // Why rank r will never come: it died, gave up or left. Empty while it may.
  virtual std::string trouble(int r) = 0;
  virtual std::string whereabouts(int r) = 0;

  // Streams: how many bytes are there, and as many as there are or there is room for.
  virtual size_t put(int r, const char* data, size_t bytes) = 0;
  virtual size_t waiting(int r) = 0;
  virtual size_t get(int r, char* data, size_t bytes) = 0;
  // The same, and what is not there yet may be written behind it as it comes, until all has come or
  // `forget`. The next calls, for the rest, say how much has been.
  virtual size_t get_lasting(int r, char* data, size_t bytes) { return get(r, data, bytes); }
  // Nothing is written there any more; how much has been, and no call has said.
  virtual size_t forget(int) { return 0; }
  // Counts what came, or was taken by its receiver. Rank r's is rung once something was moved.
  virtual uint32_t bell() = 0;
  virtual void ring_bell(int r) = 0;
  // Until the bell has another value than `seen`, or a while has passed; whether it rang.
  virtual bool wait_bell(uint32_t seen, const Deadline& deadline) = 0;

  void close() { closing_ = true; }
  bool closing() const { return closing_; }

 protected:
  int rank_, size_;
  std::string group_;
  std::atomic<bool> closing_{false};
};

extern const char* const kKindNames[];  // of Record::kind; engine.cpp
// What a rank does, as its `doing` says: "it is in barrier, collective 3".
std::string doing_text(uint64_t doing);

}  // namespace flambeau::distributed
