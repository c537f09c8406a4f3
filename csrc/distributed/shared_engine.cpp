#include "distributed/shared_engine.h"

namespace flambeau::distributed {

namespace {
// Up to so many bytes, every rank joins all values: a step less.
constexpr size_t kJoinedByAll = 512 * 1024;
}  // namespace

void SharedEngine::perform(const Call& call) {
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
void SharedEngine::step(const Call& call, Write write) {
  ++step_;
  write(slot(region_.rank()));
  region_.arrive(step_);
  region_.wait_all(step_, Deadline(call.timeout), call.timeout,
                   kKindNames[static_cast<int>(call.kind)]);
}

template <class Write>
void SharedEngine::begin(const Call& call, uint64_t bytes, uint64_t layout, Write write) {
  step(call, [&](char* slot) {
    region_.mine().records[step_ & 1] = record(call, bytes, layout);
    write(slot);
  });
  const Record* records[kMostRanks];
  for (int r = 0; r < region_.size(); ++r) records[r] = &region_.line(r).records[step_ & 1];
  compare(records);
}

// all_reduce and reduce: `here` where the result is wanted.
void SharedEngine::join(const Call& call, bool here) {
  const Span& data = call.in[0];
  if (region_.size() > 2 && data.bytes > kJoinedByAll) return join_parts(call, here);
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

// The same of much data by more than two ranks, which would read all slots whole: each joins one
// part of every block, for all. A step brings a block, the joined part of the one before, and takes
// the joined parts of that one.
void SharedEngine::join_parts(const Call& call, bool here) {
  auto ranks = static_cast<size_t>(region_.size());
  auto rank = static_cast<size_t>(region_.rank());
  size_t item = static_cast<size_t>(itemsize(call.dtype));
  size_t share = region_.slot_bytes() / (ranks + 1) / 64 * 64;  // a multiple of every item's size
  size_t most = share * ranks;
  const void* inputs[kMostRanks];
  for (size_t at = 0; at < call.in[0].bytes + most; at += most) {
    Span before = at ? part(call.in[0], at - most, most) : Span{};
    auto write = [&](char* slot) {
      copy(slot, part(call.in[0], at, most));
      size_t bytes = part(before, rank * share, share).bytes;
      if (!bytes) return;
      for (size_t r = 0; r < ranks; ++r)
        inputs[r] = region_.slot(static_cast<int>(r), step_ - 1) + rank * share;
      kernels::join_values(call.op, call.dtype, slot + most, inputs, region_.size(), bytes / item);
    };
    if (at == 0) begin(call, call.in[0].bytes, 0, write);
    else step(call, write);
    for (size_t r = 0; r < ranks && here; ++r)
      fill(part(before, r * share, share), slot(static_cast<int>(r)) + most);
  }
}

void SharedEngine::broadcast(const Call& call) {
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
void SharedEngine::all_gather(const Call& call, bool here) {
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

void SharedEngine::scatter(const Call& call) {
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

void SharedEngine::reduce_scatter(const Call& call) {
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
void SharedEngine::all_to_all(const Call& call) {
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
  compare_sizes(sent, expected);
  exchange(call, sent);
}

void SharedEngine::exchange(const Call& call, const std::vector<uint64_t>& sizes) {
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
