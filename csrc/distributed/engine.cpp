#include "distributed/engine.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace flambeau::kernels {
namespace {

void join_values(distributed::ReduceOp op, DType dtype, void* out, const void* const* inputs,
                 int ranks, size_t n) {
  FB_ISA_DISPATCH(join_ranks)
  (static_cast<int>(op), static_cast<int>(dtype), out, inputs, ranks, static_cast<int64_t>(n));
}

}  // namespace
}  // namespace flambeau::kernels

namespace flambeau::distributed {

const char* const kKindNames[] = {"nothing", "all_reduce",     "broadcast",  "reduce",
                                  "all_gather", "gather",      "scatter",    "reduce_scatter",
                                  "all_to_all", "barrier",     "monitored_barrier"};

namespace {

const char* const kOpNames[] = {"SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"};

// FNV-1a over sizes: only compared, never stored.
uint64_t digest(const std::vector<Span>& spans) {
  uint64_t h = 14695981039346656037u;
  for (auto& s : spans)
    for (int i = 0; i < 8; ++i) h = (h ^ ((s.bytes >> (8 * i)) & 255)) * 1099511628211u;
  return h;
}

size_t largest(const std::vector<Span>& spans) {
  size_t out = 0;
  for (auto& s : spans) out = std::max(out, s.bytes);
  return out;
}

// The part of a span that is `at` bytes into it, at most `most` long.
Span part(const Span& s, size_t at, size_t most) {
  if (at >= s.bytes) return {};
  return {s.data + at, std::min(most, s.bytes - at)};
}
void copy(char* to, const Span& from) {
  if (from.bytes) std::memcpy(to, from.data, from.bytes);
}
void fill(const Span& to, const char* from) {
  if (to.bytes) std::memcpy(to.data, from, to.bytes);
}

std::string described(const Record& r) {
  std::string text = kKindNames[r.kind];
  auto kind = static_cast<Kind>(r.kind);
  if (kind == Kind::Barrier || kind == Kind::MonitoredBarrier) return text;
  text += " of " + std::to_string(r.bytes) + " bytes of torch." +
          dtype_name(static_cast<DType>(r.dtype));
  if (kind == Kind::AllReduce || kind == Kind::Reduce || kind == Kind::ReduceScatter)
    text += std::string(" by ") + kOpNames[r.op];
  if (r.root >= 0) text += ", root " + std::to_string(r.root);
  return text;
}

}  // namespace

void Engine::run(const Call& call) {
  const char* name = kKindNames[static_cast<int>(call.kind)];
  if (!broken_.empty())
    throw Fault(FaultKind::Backend, std::string(name) + " (group '" + region_.group() +
                                        "'): the group failed before: " + broken_);
  ++number_;
  uint64_t doing = uint64_t{number_} << 9 | uint64_t(call.kind) << 1;
  region_.mine().doing.store(doing | 1);
  try {
    perform(call);
  } catch (const Fault& f) {
    broken_ = f.what();
    region_.leave(RankState::GaveUp, broken_);
    throw;
  } catch (const std::invalid_argument& disagreement) {
    region_.mine().doing.store(doing);
    throw Fault(FaultKind::Backend, disagreement.what());
  } catch (...) {
    broken_ = std::string(name) + " was interrupted";
    region_.leave(RankState::GaveUp, broken_);
    throw;
  }
  region_.mine().doing.store(doing);
}

void Engine::perform(const Call& call) {
  switch (call.kind) {
    case Kind::AllReduce: return join(call, true);
    case Kind::Reduce: return join(call, region_.rank() == call.root);
    case Kind::Broadcast: return broadcast(call);
    case Kind::AllGather: return all_gather(call, true);
    case Kind::Gather: return all_gather(call, region_.rank() == call.root);
    case Kind::Scatter: return scatter(call);
    case Kind::ReduceScatter: return reduce_scatter(call);
    case Kind::AllToAll: return all_to_all(call);
    case Kind::Barrier:
    case Kind::MonitoredBarrier: return begin(call, 0, 0, [](char*) {});
    case Kind::Nothing: return;
  }
}

template <class Write>
void Engine::step(const Call& call, Write write) {
  ++step_;
  write(slot(region_.rank()));
  region_.arrive(step_);
  region_.wait_all(step_, Deadline(call.timeout), call.timeout,
                   kKindNames[static_cast<int>(call.kind)]);
}

template <class Write>
void Engine::begin(const Call& call, uint64_t bytes, uint64_t layout, Write write) {
  bool joins = call.kind == Kind::AllReduce || call.kind == Kind::Reduce ||
               call.kind == Kind::ReduceScatter;
  step(call, [&](char* slot) {
    Record& r = region_.mine().records[step_ & 1];
    r = {number_, static_cast<uint8_t>(call.kind), static_cast<uint8_t>(call.dtype),
         static_cast<uint8_t>(joins ? call.op : ReduceOp::Sum), 0, call.root, 0, bytes, layout};
    write(slot);
  });
  compare();
}

void Engine::compare() {
  auto record = [&](int r) -> const Record& { return region_.line(r).records[step_ & 1]; };
  bool same = true;
  for (int r = 1; r < region_.size(); ++r)
    same = same && std::memcmp(&record(0), &record(r), sizeof(Record)) == 0;
  if (same) return;
  std::string text = "the ranks of group '" + region_.group() + "' call different collectives: ";
  bool equal = true;
  for (int r = 1; r < region_.size(); ++r)
    equal = equal && described(record(0)) == described(record(r));
  for (int r = 0; r < region_.size(); ++r)
    text += (r ? "; rank " : "rank ") + std::to_string(r) + " " + described(record(r));
  if (equal) text += ", with other sizes of the parts";
  throw std::invalid_argument(text);
}

// all_reduce and reduce: `here` where the result is wanted.
void Engine::join(const Call& call, bool here) {
  const Span& data = call.in[0];
  size_t item = static_cast<size_t>(itemsize(call.dtype));
  size_t most = region_.slot_bytes() / item * item;
  const void* inputs[kMostRanks];
  for (size_t at = 0; at == 0 || at < data.bytes; at += most) {
    Span mine = part(data, at, most);
    auto write = [&](char* slot) { copy(slot, mine); };
    if (at == 0) begin(call, data.bytes, 0, write);
    else step(call, write);
    if (!here || !mine.bytes) continue;
    for (int r = 0; r < region_.size(); ++r) inputs[r] = slot(r);
    kernels::join_values(call.op, call.dtype, mine.data, inputs, region_.size(), mine.bytes / item);
  }
}

void Engine::broadcast(const Call& call) {
  const Span& data = call.in[0];
  bool source = region_.rank() == call.root;
  for (size_t at = 0; at == 0 || at < data.bytes; at += region_.slot_bytes()) {
    Span here = part(data, at, region_.slot_bytes());
    auto write = [&](char* slot) {
      if (source) copy(slot, here);
    };
    if (at == 0) begin(call, data.bytes, 0, write);
    else step(call, write);
    if (!source) fill(here, slot(call.root));
  }
}

// all_gather, where ranks may have parts of different sizes, and gather.
void Engine::all_gather(const Call& call, bool here) {
  bool uneven = call.kind == Kind::AllGather;
  size_t longest = uneven ? largest(call.out) : call.in[0].bytes;
  uint64_t layout = uneven ? digest(call.out) : 0;
  for (size_t at = 0; at == 0 || at < longest; at += region_.slot_bytes()) {
    Span mine = part(call.in[0], at, region_.slot_bytes());
    auto write = [&](char* slot) { copy(slot, mine); };
    if (at == 0) begin(call, longest, layout, write);
    else step(call, write);
    if (!here) continue;
    for (int r = 0; r < region_.size(); ++r)
      fill(part(call.out[r], at, region_.slot_bytes()), r == region_.rank() ? mine.data : slot(r));
  }
}

void Engine::scatter(const Call& call) {
  auto ranks = static_cast<size_t>(region_.size());
  size_t most = region_.slot_bytes() / ranks / 64 * 64;
  const Span& out = call.out[0];
  for (size_t at = 0; at == 0 || at < out.bytes; at += most) {
    auto write = [&](char* slot) {
      for (size_t r = 0; r < call.in.size(); ++r) copy(slot + r * most, part(call.in[r], at, most));
    };
    if (at == 0) begin(call, out.bytes, 0, write);
    else step(call, write);
    fill(part(out, at, most), slot(call.root) + static_cast<size_t>(region_.rank()) * most);
  }
}

void Engine::reduce_scatter(const Call& call) {
  auto ranks = static_cast<size_t>(region_.size());
  auto rank = static_cast<size_t>(region_.rank());
  size_t item = static_cast<size_t>(itemsize(call.dtype));
  size_t most = region_.slot_bytes() / ranks / 64 * 64;  // a multiple of every element's size
  size_t longest = largest(call.in);
  const void* inputs[kMostRanks];
  for (size_t at = 0; at == 0 || at < longest; at += most) {
    auto write = [&](char* slot) {
      for (size_t r = 0; r < ranks; ++r) copy(slot + r * most, part(call.in[r], at, most));
    };
    if (at == 0) begin(call, longest, digest(call.in), write);
    else step(call, write);
    Span here = part(call.out[0], at, most);
    if (!here.bytes) continue;
    for (size_t r = 0; r < ranks; ++r) inputs[r] = slot(static_cast<int>(r)) + rank * most;
    kernels::join_values(call.op, call.dtype, here.data, inputs, region_.size(), here.bytes / item);
  }
}

// The first step tells all ranks how many bytes go from each to each, and what each expects.
void Engine::all_to_all(const Call& call) {
  auto ranks = static_cast<size_t>(region_.size());
  begin(call, 0, 0, [&](char* slot) {
    std::vector<uint64_t> sizes;
    for (auto& s : call.in) sizes.push_back(s.bytes);
    for (auto& s : call.out) sizes.push_back(s.bytes);
    std::memcpy(slot, sizes.data(), sizes.size() * sizeof(uint64_t));
  });
  std::vector<uint64_t> sent(ranks * ranks), row(2 * ranks), expected(ranks * ranks);
  for (size_t r = 0; r < ranks; ++r) {
    std::memcpy(row.data(), slot(static_cast<int>(r)), row.size() * sizeof(uint64_t));
    for (size_t q = 0; q < ranks; ++q) {
      sent[r * ranks + q] = row[q];
      expected[q * ranks + r] = row[ranks + q];
    }
  }
  for (size_t i = 0; i < sent.size(); ++i)
    if (sent[i] != expected[i])
      throw std::invalid_argument(
          "all_to_all (group '" + region_.group() + "'): rank " + std::to_string(i / ranks) +
          " sends " + std::to_string(sent[i]) + " bytes to rank " + std::to_string(i % ranks) +
          ", which expects " + std::to_string(expected[i]));
  exchange(call, sent);
}

void Engine::exchange(const Call& call, const std::vector<uint64_t>& sizes) {
  auto ranks = static_cast<size_t>(region_.size());
  auto rank = static_cast<size_t>(region_.rank());
  size_t most = region_.slot_bytes() / ranks / 64 * 64;
  size_t longest = *std::max_element(sizes.begin(), sizes.end());
  for (size_t at = 0; at < longest; at += most) {
    step(call, [&](char* slot) {
      for (size_t r = 0; r < ranks; ++r) copy(slot + r * most, part(call.in[r], at, most));
    });
    for (size_t r = 0; r < ranks; ++r)
      fill(part(call.out[r], at, most), slot(static_cast<int>(r)) + rank * most);
  }
}

}  // namespace flambeau::distributed
