// Plans of large collectives (traffic.h): which pieces go where, and when they may.
#pragma once

#include <functional>

#include "distributed/engine.h"
#include "distributed/traffic.h"

namespace flambeau::distributed {

// One piece to each rank and one of each: in[r] goes to r, and what comes of r to out[r].
class DirectPlan final : public Plan {
 public:
  DirectPlan(const std::vector<Span>& in, const std::vector<Span>& out);
  Next send_next(int rank, Piece& piece) override { return next(in_, rank, piece); }
  Next receive_next(int rank, Piece& piece) override { return next(out_, rank, piece); }

 private:
  static Next next(std::vector<Piece>& pieces, int rank, Piece& piece);
  std::vector<Piece> in_, out_;
};

// From rank to rank in a row that begins with the root; each passes on what it has.
class RowPlan final : public Plan {
 public:
  RowPlan(const Span& data, int root, int rank, int size);
  Next send_next(int rank, Piece& piece) override;
  Next receive_next(int rank, Piece& piece) override;
  void received(int) override { ++have_; }

 private:
  Piece piece(size_t number) const;
  Span data_;
  int before_, behind_;  // -1: none
  size_t count_, have_ = 0, sent_ = 0, asked_ = 0;
};

// Sums in blocks, of which each rank joins one part: it gets the parts of others, and gives them
// the joined one where they want it. Between two ranks the parts of a block go before the joined
// part of the block that is kAhead before it, in both directions alike. Parts of others wait in
// scratch memory, which has room for kAhead blocks.
struct JoinedParts {
  size_t blocks = 0, most = 0;  // how many, and the most bytes of a part
  DType dtype = DType::UInt8;
  ReduceOp op = ReduceOp::Sum;
  std::function<Span(size_t block, int rank)> raw;     // this rank's values, of that rank's part
  // Where the joined part of that rank goes; no data where it is only passed on.
  std::function<Span(size_t block, int rank)> joined;
  std::function<bool(int rank)> wants;                 // whether that rank wants joined parts
};

class JoinPlan final : public Plan {
 public:
  JoinPlan(const JoinedParts& parts, int rank, int size, std::vector<char>& scratch);
  Next send_next(int rank, Piece& piece) override;
  Next receive_next(int rank, Piece& piece) override;
  void sent(int rank) override;
  void received(int rank) override;

 private:
  static constexpr size_t kAhead = 4;
  struct Progress {
    size_t raw = 0, joined = 0;              // pieces that were begun
    size_t whole_raw = 0, whole_joined = 0;  // and ended
    bool last_is_raw = false;
  };
  Next next(Progress& p, bool has_joined, bool& raw) const;
  char* scratch(size_t block, int rank) const;
  Span result(size_t block) const;
  bool can_join() const;
  void join_what_came();
  const JoinedParts& parts_;
  int rank_, size_;
  char* scratch_;
  size_t stride_, joined_ = 0;
  std::vector<Progress> out_, in_;
};

}  // namespace flambeau::distributed
