#include "distributed/gloo_engine.h"

#include <unistd.h>

#include <numeric>

namespace flambeau::distributed {

namespace {

// Data of a collective that all ranks send with its head, to each other rank, in all.
constexpr size_t kMostInHeads = 1024 * 1024;
constexpr size_t kMostPart = size_t{4} << 20;  // of a sum at once: it stays in the caches
constexpr uint64_t kLongestAddress = 4096;

uint64_t total(const std::vector<uint64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});
}

std::vector<uint64_t> sizes_of(const std::vector<Span>& spans) {
  std::vector<uint64_t> out;
  for (auto& s : spans) out.push_back(s.bytes);
  return out;
}

// Whether the spans lie one after another.
bool adjacent(const std::vector<Span>& spans) {
  for (size_t i = 1; i < spans.size(); ++i)
    if (spans[i].data != spans[i - 1].data + spans[i - 1].bytes) return false;
  return !spans.empty();
}

}  // namespace

// Memory that nothing is written to before it is used.
struct GlooEngine::Bytes {
  explicit Bytes(size_t n) : data(new char[n ? n : 1]) {}
  std::unique_ptr<char[]> data;
  char* get() const { return data.get(); }
};

struct GlooEngine::Run {
  static_assert(sizeof(Record) <= kRecord);
  const Call& call;
  Deadline deadline{call.timeout};
  uint32_t tag = 0;
  const char* name() const { return kKindNames[static_cast<int>(call.kind)]; }
  int64_t left() const { return std::max<int64_t>(1, deadline.left().count()); }
};

GlooEngine::GlooEngine(Mesh& mesh, const GlooLibrary& library)
    : Engine(mesh), mesh_(mesh), library_(library), owner_(::getpid()) {
  auto ranks = static_cast<size_t>(mesh.size());
  small_ = kMostInHeads / std::max<size_t>(1, ranks - 1) / 64 * 64;
}

GlooEngine::~GlooEngine() {
  mesh_.when_broken(nullptr);
  // A forked child has no thread of Gloo's, for which this would wait.
  if (handle_ && owner_ == ::getpid()) library_.free(handle_);
}

void GlooEngine::begin(Milliseconds timeout) {
  Deadline deadline(timeout);
  char error[kGlooErrorBytes] = {};
  std::string what = "making group '" + mesh_.group() + "': Gloo: ";
  handle_ = library_.make(mesh_.rank(), mesh_.size(), mesh_.host().c_str(), timeout.count(), error);
  if (!handle_) throw Fault(FaultKind::Backend, what + error);
  std::vector<std::string> mine(static_cast<size_t>(mesh_.size()));
  for (int r = 0; r < mesh_.size(); ++r) {
    if (r == mesh_.rank()) continue;
    std::string address(kLongestAddress, 0);
    address.resize(library_.address(handle_, r, address.data(), address.size()));
    mine[static_cast<size_t>(r)] = std::move(address);
  }
  auto theirs = mesh_.exchange(mine, deadline);
  for (int r = 0; r < mesh_.size(); ++r) {
    if (r == mesh_.rank()) continue;
    const std::string& address = theirs[static_cast<size_t>(r)];
    if (!library_.connect(handle_, r, address.data(), address.size(), error))
      throw Fault(FaultKind::Backend, what + "no connection to rank " + std::to_string(r) + ": " +
                                          error + mesh_.all_trouble(Milliseconds(0)));
  }
  mesh_.when_broken([this] {
    if (busy_) library_.abort(handle_);
  });
}

void GlooEngine::interrupt(const std::string& why) {
  {
    std::lock_guard lock(why_mutex_);
    if (interrupted_.empty()) interrupted_ = why;
  }
  mesh_.leave(RankState::GaveUp, why);  // its thread aborts what is under way
}

void GlooEngine::checked(const Run& run, bool good, const char* error) {
  if (good) return;
  busy_ = false;
  std::string name = std::string(run.name()) + " (group '" + mesh_.group() + "')";
  auto fail = [&](const std::string& text) { throw Fault(FaultKind::Backend, name + text); };
  {
    std::lock_guard lock(why_mutex_);
    if (!interrupted_.empty()) fail(": " + interrupted_);
  }
  if (mesh_.closing()) fail(": the group was destroyed meanwhile");
  bool late = run.deadline.passed();
  std::string trouble = mesh_.all_trouble(Milliseconds(late ? 0 : 1000));
  if (!trouble.empty()) fail(trouble);
  if (late) fail(": timed out after " + seconds_text(run.call.timeout) + mesh_.missing(number_));
  fail(": Gloo: " + std::string(error));
}

void GlooEngine::perform(const Call& call) {
  Run run{call};
  busy_ = true;
  struct Idle {
    std::atomic<bool>& busy;
    ~Idle() { busy = false; }
  } idle{busy_};
  // Nothing begins that is known not to end.
  if (std::string trouble = mesh_.all_trouble(Milliseconds(0)); !trouble.empty())
    checked(run, false, "");
  bool at_root = mesh_.rank() == call.root;
  switch (call.kind) {
    case Kind::AllReduce: return join(run, true);
    case Kind::Reduce: return join(run, at_root);
    case Kind::Broadcast: return broadcast(run);
    case Kind::AllGather: return gather_all(run);
    case Kind::Gather: return gather(run);
    case Kind::Scatter: return scatter(run);
    case Kind::ReduceScatter: return reduce_scatter(run);
    case Kind::AllToAll: return exchange(run);
    case Kind::Barrier:
    case Kind::MonitoredBarrier: begin(run, 0, 0, 0, [](int, char*) {}); return;
    case Kind::Nothing: return;
  }
}

// Pieces of Gloo -----------------------------------------------------------------------------

void GlooEngine::all_to_all(Run& run, char* in, const std::vector<uint64_t>& in_bytes, char* out,
                            const std::vector<uint64_t>& out_bytes) {
  char error[kGlooErrorBytes] = {};
  checked(run,
          library_.all_to_all(handle_, in, in_bytes.data(), out, out_bytes.data(), run.tag++,
                              run.left(), error),
          error);
}

void GlooEngine::all_gather(Run& run, const Span& in, char* out,
                            const std::vector<uint64_t>& out_bytes) {
  char error[kGlooErrorBytes] = {};
  checked(run,
          library_.all_gather(handle_, in.data, in.bytes, out, out_bytes.data(), run.tag++,
                              run.left(), error),
          error);
}

// Heads of all ranks, compared. `fill(r, to)` writes the data that goes to rank r with it.
template <class Fill>
void GlooEngine::begin(Run& run, uint64_t bytes, uint64_t layout, size_t data, Fill fill) {
  Record mine = record(run.call, bytes, layout);
  std::string head(kRecord + data, 0);
  std::memcpy(head.data(), &mine, sizeof mine);
  for (int r = 0; r < mesh_.size(); ++r) {
    fill(r, head.data() + kRecord);
    if (r != mesh_.rank()) mesh_.send_head(r, head.data(), head.size());
    else own_ = head;
  }
  checked(run, mesh_.take_heads(heads_, run.deadline), "");
  heads_[static_cast<size_t>(mesh_.rank())].swap(own_);
  const Record* records[kMostRanks];
  for (int r = 0; r < mesh_.size(); ++r) {
    auto& each = heads_[static_cast<size_t>(r)];
    if (each.size() < kRecord) checked(run, false, "a head without a record");
    records[r] = reinterpret_cast<const Record*>(each.data());
  }
  compare(records);
}

// Collectives --------------------------------------------------------------------------------

// all_reduce and reduce: `here` where the result is wanted.
void GlooEngine::join(Run& run, bool here) {
  const Span& data = run.call.in[0];
  size_t item = static_cast<size_t>(itemsize(run.call.dtype));
  bool small = data.bytes <= small_;
  begin(run, data.bytes, 0, small ? data.bytes : 0, [&](int, char* to) {
    if (small) copy(to, data);
  });
  if (!small) {
    for (size_t at = 0; at < data.bytes; at += kMostPart)
      join_part(run, part(data, at, kMostPart), here);
  } else if (here && data.bytes) {
    const void* inputs[kMostRanks];
    for (int r = 0; r < mesh_.size(); ++r) inputs[r] = sent_by(r);
    kernels::join_values(run.call.op, run.call.dtype, data.data, inputs, mesh_.size(),
                         data.bytes / item);
  }
}

// Each rank joins one part of the values; then all, or the root, get the parts of the others.
void GlooEngine::join_part(Run& run, const Span& data, bool here) {
  auto ranks = static_cast<size_t>(mesh_.size()), rank = static_cast<size_t>(mesh_.rank());
  size_t item = static_cast<size_t>(itemsize(run.call.dtype)), items = data.bytes / item;
  std::vector<uint64_t> parts(ranks);
  for (size_t r = 0; r < ranks; ++r)
    parts[r] = (items * (r + 1) / ranks - items * r / ranks) * item;
  size_t mine = parts[rank];
  if (scratch_.size() < ranks * mine) scratch_.resize(ranks * mine);
  char* all = scratch_.data();
  all_to_all(run, data.data, parts, all, std::vector<uint64_t>(ranks, mine));
  const void* inputs[kMostRanks];
  for (size_t r = 0; r < ranks; ++r) inputs[r] = all + r * mine;
  kernels::join_values(run.call.op, run.call.dtype, all, inputs, mesh_.size(), mine / item);
  Span joined{all, mine};
  if (run.call.kind == Kind::AllReduce) return all_gather(run, joined, data.data, parts);
  auto root = static_cast<size_t>(run.call.root);
  std::vector<uint64_t> sent(ranks, 0), none(ranks, 0);
  sent[root] = mine;
  all_to_all(run, joined.data, sent, here ? data.data : all, here ? parts : none);
}

void GlooEngine::broadcast(Run& run) {
  const Span& data = run.call.in[0];
  bool small = data.bytes <= small_, source = mesh_.rank() == run.call.root;
  begin(run, data.bytes, 0, small && source ? data.bytes : 0, [&](int, char* to) {
    if (small && source) copy(to, data);
  });
  if (small) {
    if (!source) fill(data, sent_by(run.call.root));
    return;
  }
  char error[kGlooErrorBytes] = {};
  checked(run,
          library_.broadcast(handle_, data.data, data.bytes, run.call.root, run.tag++, run.left(),
                             error),
          error);
}

void GlooEngine::gather_all(Run& run) {
  const Call& call = run.call;
  size_t longest = largest(call.out);
  bool small = longest <= small_;
  size_t with = small ? call.in[0].bytes : 0;
  begin(run, longest, digest(call.out), with, [&](int, char* to) {
    if (small) copy(to, call.in[0]);
  });
  if (small) {
    for (int r = 0; r < mesh_.size(); ++r)
      fill(call.out[static_cast<size_t>(r)], sent_by(r));
    return;
  }
  auto sizes = sizes_of(call.out);
  // Gloo copies this rank's part to its place, which may be where it is.
  if (adjacent(call.out) && call.in[0].data != call.out[static_cast<size_t>(mesh_.rank())].data)
    return all_gather(run, call.in[0], call.out[0].data, sizes);
  Bytes all(total(sizes));
  all_gather(run, call.in[0], all.get(), sizes);
  const char* from = all.get();
  for (auto& s : call.out) fill(s, from), from += s.bytes;
}

void GlooEngine::gather(Run& run) {
  const Call& call = run.call;
  const Span& in = call.in[0];
  bool small = in.bytes <= small_, here = mesh_.rank() == call.root;
  begin(run, in.bytes, 0, small ? in.bytes : 0, [&](int, char* to) {
    if (small) copy(to, in);
  });
  if (small) {
    for (size_t r = 0; here && r < call.out.size(); ++r)
      fill(call.out[r], sent_by(static_cast<int>(r)));
    return;
  }
  Bytes all(here ? in.bytes * static_cast<size_t>(mesh_.size()) : 0);
  char error[kGlooErrorBytes] = {};
  checked(run,
          library_.gather(handle_, in.data, in.bytes, all.get(), call.root, run.tag++, run.left(),
                          error),
          error);
  const char* from = all.get();
  if (here)
    for (auto& s : call.out) fill(s, from), from += in.bytes;
}

void GlooEngine::scatter(Run& run) {
  const Call& call = run.call;
  const Span& out = call.out[0];
  bool small = out.bytes <= small_, source = !call.in.empty();
  begin(run, out.bytes, 0, small && source ? out.bytes : 0, [&](int r, char* to) {
    if (small && source) copy(to, call.in[static_cast<size_t>(r)]);
  });
  if (small) return fill(out, sent_by(call.root));
  std::vector<char*> parts;
  for (auto& s : call.in) parts.push_back(s.data);
  char error[kGlooErrorBytes] = {};
  checked(run,
          library_.scatter(handle_, parts.data(), out.bytes, out.data, call.root, run.tag++,
                           run.left(), error),
          error);
}

void GlooEngine::reduce_scatter(Run& run) {
  const Call& call = run.call;
  auto ranks = static_cast<size_t>(mesh_.size());
  size_t item = static_cast<size_t>(itemsize(call.dtype));
  const Span& out = call.out[0];
  size_t longest = largest(call.in);
  bool small = longest <= small_;
  begin(run, longest, digest(call.in), small ? longest : 0, [&](int r, char* to) {
    if (small) copy(to, call.in[static_cast<size_t>(r)]);
  });
  const void* inputs[kMostRanks];
  Bytes all(small ? 0 : ranks * out.bytes);
  if (!small) {
    auto sizes = sizes_of(call.in);
    bool dense = adjacent(call.in);
    Bytes sent(dense ? 0 : total(sizes));
    char* to = sent.get();
    if (!dense)
      for (auto& s : call.in) copy(to, s), to += s.bytes;
    all_to_all(run, dense ? call.in[0].data : sent.get(), sizes, all.get(),
               std::vector<uint64_t>(ranks, out.bytes));
  }
  for (size_t r = 0; r < ranks; ++r)
    inputs[r] = small ? sent_by(static_cast<int>(r)) : all.get() + r * out.bytes;
  if (out.bytes)
    kernels::join_values(call.op, call.dtype, out.data, inputs, mesh_.size(), out.bytes / item);
}

// all_to_all: first all ranks hear how many bytes go from each to each, and what each expects.
void GlooEngine::exchange(Run& run) {
  const Call& call = run.call;
  auto ranks = static_cast<size_t>(mesh_.size());
  std::vector<uint64_t> in = sizes_of(call.in), out = sizes_of(call.out), row = in;
  row.insert(row.end(), out.begin(), out.end());
  size_t bytes = row.size() * sizeof(uint64_t);
  begin(run, 0, 0, bytes, [&](int, char* to) { std::memcpy(to, row.data(), bytes); });
  std::vector<uint64_t> rows(ranks * row.size());
  for (size_t r = 0; r < ranks; ++r)
    std::memcpy(&rows[r * row.size()], sent_by(static_cast<int>(r)), bytes);
  std::vector<uint64_t> sent(ranks * ranks), expected(ranks * ranks);
  for (size_t r = 0; r < ranks; ++r)
    for (size_t q = 0; q < ranks; ++q) {
      sent[r * ranks + q] = rows[r * row.size() + q];
      expected[q * ranks + r] = rows[r * row.size() + ranks + q];
    }
  compare_sizes(sent, expected);
  if (!total(sent)) return;
  bool dense_in = adjacent(call.in), dense_out = adjacent(call.out);
  Bytes from(dense_in ? 0 : total(in)), to(dense_out ? 0 : total(out));
  char* at = from.get();
  if (!dense_in)
    for (auto& s : call.in) copy(at, s), at += s.bytes;
  all_to_all(run, dense_in ? call.in[0].data : from.get(), in,
             dense_out ? call.out[0].data : to.get(), out);
  at = to.get();
  if (!dense_out)
    for (auto& s : call.out) fill(s, at), at += s.bytes;
}

}  // namespace flambeau::distributed
