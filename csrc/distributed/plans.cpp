#include "distributed/plans.h"

namespace flambeau::distributed {

namespace {

constexpr size_t kRowPiece = 256 * 1024;

Piece piece_of(const Span& s) {
  return {s.data, s.bytes};
}

}  // namespace

// Direct -------------------------------------------------------------------------------------

DirectPlan::DirectPlan(const std::vector<Span>& in, const std::vector<Span>& out) {
  for (auto& s : in) in_.push_back(piece_of(s));
  for (auto& s : out) out_.push_back(piece_of(s));
}

Next DirectPlan::next(std::vector<Piece>& pieces, int rank, Piece& piece) {
  auto r = static_cast<size_t>(rank);
  if (r >= pieces.size() || !pieces[r].bytes) return Next::None;
  piece = pieces[r];
  pieces[r] = {};
  return Next::Piece;
}

// Row ----------------------------------------------------------------------------------------

RowPlan::RowPlan(const Span& data, int root, int rank, int size)
    : data_(data),
      before_(rank == root ? -1 : (rank + size - 1) % size),
      behind_((rank + 1) % size == root ? -1 : (rank + 1) % size),
      count_((data.bytes + kRowPiece - 1) / kRowPiece) {
  if (before_ < 0) have_ = count_;
}

Piece RowPlan::piece(size_t number) const {
  return piece_of(part(data_, number * kRowPiece, kRowPiece));
}

Next RowPlan::send_next(int rank, Piece& out) {
  if (rank != behind_ || sent_ == count_) return Next::None;
  if (sent_ == have_) return Next::Later;
  out = piece(sent_++);
  return Next::Piece;
}

Next RowPlan::receive_next(int rank, Piece& out) {
  if (rank != before_ || asked_ == count_) return Next::None;
  out = piece(asked_++);
  return Next::Piece;
}

// Join ---------------------------------------------------------------------------------------

JoinPlan::JoinPlan(const JoinedParts& parts, int rank, int size, std::vector<char>& scratch)
    : parts_(parts),
      rank_(rank),
      size_(size),
      stride_((parts.most + 63) / 64 * 64),
      out_(static_cast<size_t>(size)),
      in_(static_cast<size_t>(size)) {
  size_t bytes = std::min(kAhead, parts.blocks) * static_cast<size_t>(size) * stride_;
  if (scratch.size() < bytes) scratch.resize(bytes);
  scratch_ = scratch.data();
}

char* JoinPlan::scratch(size_t block, int rank) const {
  size_t row = block % kAhead * static_cast<size_t>(size_);
  return scratch_ + (row + static_cast<size_t>(rank)) * stride_;
}

// Where this rank's joined part of a block is.
Span JoinPlan::result(size_t block) const {
  Span s = parts_.joined(block, rank_);
  return s.data ? s : Span{scratch(block, rank_), parts_.raw(block, rank_).bytes};
}

// Which kind comes next; both ends of a connection count the same.
Next JoinPlan::next(Progress& p, bool has_joined, bool& raw) const {
  size_t joined = has_joined ? p.joined : parts_.blocks;
  raw = p.raw < parts_.blocks && (!has_joined || p.raw < joined + kAhead);
  return raw || joined < parts_.blocks ? Next::Piece : Next::None;
}

Next JoinPlan::send_next(int rank, Piece& piece) {
  Progress& p = out_[static_cast<size_t>(rank)];
  bool raw = false;
  if (next(p, parts_.wants(rank), raw) == Next::None) return Next::None;
  p.last_is_raw = raw;
  if (raw) {
    piece = piece_of(parts_.raw(p.raw++, rank));
    return Next::Piece;
  }
  if (p.joined == joined_) return Next::Later;
  piece = piece_of(result(p.joined++));
  return Next::Piece;
}

Next JoinPlan::receive_next(int rank, Piece& piece) {
  Progress& p = in_[static_cast<size_t>(rank)];
  bool raw = false;
  if (next(p, parts_.wants(rank_), raw) == Next::None) return Next::None;
  p.last_is_raw = raw;
  if (!raw) {
    piece = piece_of(parts_.joined(p.joined++, rank));
    return Next::Piece;
  }
  if (p.raw >= joined_ + kAhead) return Next::Later;  // no room
  piece = {scratch(p.raw, rank), parts_.raw(p.raw, rank_).bytes};
  ++p.raw;
  return Next::Piece;
}

void JoinPlan::sent(int rank) {
  Progress& p = out_[static_cast<size_t>(rank)];
  ++(p.last_is_raw ? p.whole_raw : p.whole_joined);
  join_what_came();
}

void JoinPlan::received(int rank) {
  Progress& p = in_[static_cast<size_t>(rank)];
  ++(p.last_is_raw ? p.whole_raw : p.whole_joined);
  if (p.last_is_raw) join_what_came();
}

// Whether all parts of the next block are there, and its place in scratch memory is free again.
bool JoinPlan::can_join() const {
  bool passes_on = !parts_.joined(joined_, rank_).data;
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    auto i = static_cast<size_t>(r);
    if (in_[i].whole_raw <= joined_) return false;
    if (passes_on && parts_.wants(r) && out_[i].whole_joined + kAhead <= joined_) return false;
  }
  return true;
}

void JoinPlan::join_what_came() {
  for (; joined_ < parts_.blocks && can_join(); ++joined_) {
    Span mine = parts_.raw(joined_, rank_);
    if (!mine.bytes) continue;
    const void* inputs[kMostRanks];
    for (int r = 0; r < size_; ++r) inputs[r] = r == rank_ ? mine.data : scratch(joined_, r);
    kernels::join_values(parts_.op, parts_.dtype, result(joined_).data, inputs, size_,
                         mine.bytes / static_cast<size_t>(itemsize(parts_.dtype)));
  }
}

}  // namespace flambeau::distributed
