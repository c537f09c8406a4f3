#include "distributed/tcp_engine.h"

#include <stdexcept>

#include "distributed/plans.h"

namespace flambeau::distributed {

namespace {

// Data of a collective that all ranks send with its head, to each other rank, in all.
constexpr size_t kMostInHeads = 64 * 1024;
constexpr size_t kMostPart = 64 * 1024;  // of a sum at once: it stays in the caches

struct Head {
  Record record;
  uint64_t bytes;  // of the data behind it
};

}  // namespace

// A head and its data to each rank, and of each.
struct TcpEngine::Heads final : Plan {
  TcpEngine& engine;
  const Wait& wait;
  std::vector<int> asked;
  std::vector<bool> given;
  size_t most;
  Heads(TcpEngine& e, const Wait& w)
      : engine(e),
        wait(w),
        asked(e.heads_.size(), 0),
        given(e.heads_.size(), false),
        most(std::max(e.small_, 2 * sizeof(uint64_t) * e.heads_.size())) {}
  Next send_next(int rank, Piece& piece) override {
    auto r = static_cast<size_t>(rank);
    if (given[r]) return Next::None;
    given[r] = true;
    piece = {engine.own_[r].data(), engine.own_[r].size()};
    return Next::Piece;
  }
  Next receive_next(int rank, Piece& piece) override {
    auto& to = engine.heads_[static_cast<size_t>(rank)];
    int step = asked[static_cast<size_t>(rank)]++;
    if (step == 0) {
      to.resize(kHead);
      piece = {to.data(), kHead};
      return Next::Piece;
    }
    Head head;
    std::memcpy(&head, to.data(), sizeof head);
    if (step == 2 || !head.bytes) return Next::None;
    if (head.bytes > most)
      engine.traffic_.fail(wait, false, "rank " + std::to_string(rank) + " sent no head");
    to.resize(kHead + head.bytes);
    piece = {to.data() + kHead, head.bytes};
    return Next::Piece;
  }
};

TcpEngine::TcpEngine(Mesh& mesh)
    : Engine(mesh),
      mesh_(mesh),
      traffic_(mesh),
      heads_(static_cast<size_t>(mesh.size())),
      own_(static_cast<size_t>(mesh.size())),
      small_(kMostInHeads / static_cast<size_t>(std::max(1, mesh.size() - 1)) / 64 * 64) {}

void TcpEngine::perform(const Call& call) {
  Wait wait{kKindNames[static_cast<int>(call.kind)], number_, call.timeout};
  // Nothing begins that is known not to end.
  if (mesh_.troubled()) traffic_.fail(wait, false, "");
  bool at_root = mesh_.rank() == call.root;
  switch (call.kind) {
    case Kind::AllReduce: return join(call, wait, true);
    case Kind::Reduce: return join(call, wait, at_root);
    case Kind::Broadcast: return broadcast(call, wait);
    case Kind::AllGather: return gather(call, wait, true);
    case Kind::Gather: return gather(call, wait, at_root);
    case Kind::Scatter: return scatter(call, wait);
    case Kind::ReduceScatter: return reduce_scatter(call, wait);
    case Kind::AllToAll: return all_to_all(call, wait);
    case Kind::Barrier:
    case Kind::MonitoredBarrier: begin(call, wait, 0, 0, [](int) { return Span{}; }); return;
    case Kind::Nothing: return;
  }
}

template <class Data>
void TcpEngine::begin(const Call& call, const Wait& wait, uint64_t bytes, uint64_t layout,
                      Data data) {
  static_assert(sizeof(Head) <= kHead);
  Head head{record(call, bytes, layout), 0};
  for (int r = 0; r < mesh_.size(); ++r) {
    Span with = data(r);
    auto& own = own_[static_cast<size_t>(r)];
    own.resize(kHead + with.bytes);
    head.bytes = with.bytes;
    std::memcpy(own.data(), &head, sizeof head);
    copy(own.data() + kHead, with);
  }
  Heads plan(*this, wait);
  traffic_.run(plan, wait);
  auto rank = static_cast<size_t>(mesh_.rank());
  heads_[rank].swap(own_[rank]);
  const Record* records[kMostRanks];
  for (int r = 0; r < mesh_.size(); ++r)
    records[r] = reinterpret_cast<const Record*>(heads_[static_cast<size_t>(r)].data());
  compare(records);
}

void TcpEngine::join_small(const Call& call, const Span& mine, const Span& out) {
  if (!out.bytes) return;
  const void* inputs[kMostRanks];
  for (int r = 0; r < mesh_.size(); ++r) inputs[r] = r == mesh_.rank() ? mine.data : sent_by(r);
  kernels::join_values(call.op, call.dtype, out.data, inputs, mesh_.size(),
                       out.bytes / static_cast<size_t>(itemsize(call.dtype)));
}

void TcpEngine::direct(const Wait& wait, const std::vector<Span>& in,
                       const std::vector<Span>& out) {
  DirectPlan plan(in, out);
  traffic_.run(plan, wait);
}

// all_reduce and reduce: `here` where the result is wanted.
void TcpEngine::join(const Call& call, const Wait& wait, bool here) {
  const Span& data = call.in[0];
  bool small = data.bytes <= small_;
  begin(call, wait, data.bytes, 0, [&](int) { return small ? data : Span{}; });
  if (small) {
    if (here) join_small(call, data, data);
    return;
  }
  auto ranks = static_cast<size_t>(mesh_.size()), item = static_cast<size_t>(itemsize(call.dtype));
  size_t items = data.bytes / item, block_items = kMostPart / item * ranks;
  auto part_of = [&](size_t block, int rank) -> Span {
    size_t from = block * block_items, count = std::min(block_items, items - from);
    auto r = static_cast<size_t>(rank);
    size_t first = count * r / ranks, last = count * (r + 1) / ranks;
    return {data.data + (from + first) * item, (last - first) * item};
  };
  JoinedParts parts;
  parts.blocks = (items + block_items - 1) / block_items;
  parts.most = kMostPart;
  parts.dtype = call.dtype, parts.op = call.op;
  parts.raw = part_of;
  parts.joined = [&](size_t block, int rank) { return here ? part_of(block, rank) : Span{}; };
  parts.wants = [&](int rank) { return call.kind == Kind::AllReduce || rank == call.root; };
  JoinPlan plan(parts, mesh_.rank(), mesh_.size(), scratch_);
  traffic_.run(plan, wait);
}

void TcpEngine::broadcast(const Call& call, const Wait& wait) {
  const Span& data = call.in[0];
  bool small = data.bytes <= small_, source = mesh_.rank() == call.root;
  begin(call, wait, data.bytes, 0, [&](int) { return small && source ? data : Span{}; });
  if (!small) {
    RowPlan plan(data, call.root, mesh_.rank(), mesh_.size());
    traffic_.run(plan, wait);
  } else if (!source) {
    fill(data, sent_by(call.root));
  }
}

// all_gather, where ranks may have parts of different sizes, and gather.
void TcpEngine::gather(const Call& call, const Wait& wait, bool here) {
  bool to_all = call.kind == Kind::AllGather;
  const Span& mine = call.in[0];
  size_t longest = to_all ? largest(call.out) : mine.bytes;
  bool small = longest <= small_;
  auto goes = [&](int r) { return to_all || r == call.root; };
  begin(call, wait, longest, to_all ? digest(call.out) : 0,
        [&](int r) { return small && goes(r) ? mine : Span{}; });
  if (!small) {
    std::vector<Span> in;
    for (int r = 0; r < mesh_.size(); ++r) in.push_back(goes(r) ? mine : Span{});
    direct(wait, in, here ? call.out : std::vector<Span>{});
  }
  for (int r = 0; here && r < mesh_.size(); ++r) {
    const Span& to = call.out[static_cast<size_t>(r)];
    if (r != mesh_.rank() && small) fill(to, sent_by(r));
    if (r == mesh_.rank() && to.data != mine.data) fill(to, mine.data);
  }
}

void TcpEngine::scatter(const Call& call, const Wait& wait) {
  const Span& out = call.out[0];
  bool small = out.bytes <= small_, source = mesh_.rank() == call.root;
  auto part_of = [&](int r) { return source ? call.in[static_cast<size_t>(r)] : Span{}; };
  begin(call, wait, out.bytes, 0, [&](int r) { return small ? part_of(r) : Span{}; });
  if (!small) {
    std::vector<Span> from(static_cast<size_t>(mesh_.size()));
    if (!source) from[static_cast<size_t>(call.root)] = out;
    direct(wait, call.in, from);
  }
  if (source) fill(out, part_of(mesh_.rank()).data);
  else if (small) fill(out, sent_by(call.root));
}

void TcpEngine::reduce_scatter(const Call& call, const Wait& wait) {
  size_t longest = largest(call.in);
  bool small = longest <= small_;
  auto in = [&](int r) { return call.in[static_cast<size_t>(r)]; };
  begin(call, wait, longest, digest(call.in), [&](int r) { return small ? in(r) : Span{}; });
  if (small) return join_small(call, in(mesh_.rank()), call.out[0]);
  JoinedParts parts;
  parts.blocks = (longest + kMostPart - 1) / kMostPart;
  parts.most = kMostPart;
  parts.dtype = call.dtype, parts.op = call.op;
  parts.raw = [&](size_t block, int r) { return part(in(r), block * kMostPart, kMostPart); };
  parts.joined = [&](size_t block, int) { return part(call.out[0], block * kMostPart, kMostPart); };
  parts.wants = [](int) { return false; };
  JoinPlan plan(parts, mesh_.rank(), mesh_.size(), scratch_);
  traffic_.run(plan, wait);
}

// First all ranks hear how many bytes go from each to each, and what each expects.
void TcpEngine::all_to_all(const Call& call, const Wait& wait) {
  auto ranks = static_cast<size_t>(mesh_.size());
  std::vector<uint64_t> row;
  for (auto& s : call.in) row.push_back(s.bytes);
  for (auto& s : call.out) row.push_back(s.bytes);
  Span mine{reinterpret_cast<char*>(row.data()), row.size() * sizeof(uint64_t)};
  begin(call, wait, 0, 0, [&](int) { return mine; });
  std::vector<uint64_t> sent(ranks * ranks), expected(ranks * ranks), theirs(row.size());
  for (size_t r = 0; r < ranks; ++r) {
    std::memcpy(theirs.data(), sent_by(static_cast<int>(r)), mine.bytes);
    for (size_t q = 0; q < ranks; ++q) {
      sent[r * ranks + q] = theirs[q];
      expected[q * ranks + r] = theirs[ranks + q];
    }
  }
  compare_sizes(sent, expected);
  direct(wait, call.in, call.out);
  auto rank = static_cast<size_t>(mesh_.rank());
  fill(call.out[rank], call.in[rank].data);
}

}  // namespace flambeau::distributed
