#include "distributed/engine.h"

#include <stdexcept>

namespace flambeau::kernels {

void join_values(distributed::ReduceOp op, DType dtype, void* out, const void* const* inputs,
                 int ranks, size_t n) {
  FB_ISA_DISPATCH(join_ranks)
  (static_cast<int>(op), static_cast<int>(dtype), out, inputs, ranks, static_cast<int64_t>(n));
}

}  // namespace flambeau::kernels

namespace flambeau::distributed {

const char* const kKindNames[] = {"nothing", "all_reduce",     "broadcast",  "reduce",
                                  "all_gather", "gather",      "scatter",    "reduce_scatter",
                                  "all_to_all", "barrier",     "monitored_barrier"};

namespace {

const char* const kOpNames[] = {"SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"};

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

bool joins(Kind kind) {
  return kind == Kind::AllReduce || kind == Kind::Reduce || kind == Kind::ReduceScatter;
}

}  // namespace

std::string doing_text(uint64_t doing) {
  if (!doing) return "it has called no collective of the group";
  return (doing & 1 ? "it is in " : "it ended ") + std::string(kKindNames[(doing >> 1) & 255]) +
         ", collective " + std::to_string(doing >> 9);
}

uint64_t digest(const std::vector<Span>& spans) {  // FNV-1a over sizes
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

void Engine::run(const Call& call) {
  const char* name = kKindNames[static_cast<int>(call.kind)];
  if (!broken_.empty())
    throw Fault(FaultKind::Backend, std::string(name) + " (group '" + link_.group() +
                                        "'): the group failed before: " + broken_);
  ++number_;
  uint64_t doing = uint64_t{number_} << 9 | uint64_t(call.kind) << 1;
  link_.set_doing(doing | 1);
  try {
    perform(call);
  } catch (const Fault& f) {
    broken_ = f.what();
    link_.leave(RankState::GaveUp, broken_);
    throw;
  } catch (const std::invalid_argument& disagreement) {
    link_.set_doing(doing);
    throw Fault(FaultKind::Backend, disagreement.what());
  } catch (...) {
    broken_ = std::string(name) + " was interrupted";
    link_.leave(RankState::GaveUp, broken_);
    throw;
  }
  link_.set_doing(doing);
}

Record Engine::record(const Call& call, uint64_t bytes, uint64_t layout) const {
  return {number_, static_cast<uint8_t>(call.kind), static_cast<uint8_t>(call.dtype),
          static_cast<uint8_t>(joins(call.kind) ? call.op : ReduceOp::Sum), 0, call.root, 0, bytes,
          layout};
}

void Engine::compare(const Record* const* records) const {
  int ranks = link_.size();
  bool same = true, equal = true;
  for (int r = 1; r < ranks; ++r)
    same = same && std::memcmp(records[0], records[r], sizeof(Record)) == 0;
  if (same) return;
  std::string text = "the ranks of group '" + link_.group() + "' call different collectives: ";
  for (int r = 1; r < ranks; ++r)
    equal = equal && described(*records[0]) == described(*records[r]);
  for (int r = 0; r < ranks; ++r)
    text += (r ? "; rank " : "rank ") + std::to_string(r) + " " + described(*records[r]);
  if (equal) text += ", with other sizes of the parts";
  throw std::invalid_argument(text);
}

void Engine::compare_sizes(const std::vector<uint64_t>& sent,
                           const std::vector<uint64_t>& expected) const {
  auto ranks = static_cast<size_t>(link_.size());
  for (size_t i = 0; i < sent.size(); ++i)
    if (sent[i] != expected[i])
      throw std::invalid_argument(
          "all_to_all (group '" + link_.group() + "'): rank " + std::to_string(i / ranks) +
          " sends " + std::to_string(sent[i]) + " bytes to rank " + std::to_string(i % ranks) +
          ", which expects " + std::to_string(expected[i]));
}

}  // namespace flambeau::distributed
