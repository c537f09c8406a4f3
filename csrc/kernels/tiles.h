// Tiles of a loop nest: which block of the two fastest dims is walked at a time, and the parallel
// walk over them. Shared by copies and pointwise kernels. Knows no element type.
#pragma once

#include "core/parallel.h"
#include "kernels/strided.h"

namespace flambeau::kernels {

struct Tiles {
  int64_t rows, cols;  // of a full tile
  int64_t across, down,
      outer;  // how many tiles along dim 0, along dim 1, and positions of the other dims
  int64_t count() const { return across * down * outer; }
};

// A tile has at most `limit` elements. `square`: some operand runs along dim 1, so both sides
// should be long.
inline Tiles make_tiles(const LoopNest& nest, int64_t limit, bool square) {
  int64_t n0 = nest.sizes[0], n1 = nest.ndim > 1 ? nest.sizes[1] : 1;
  Tiles t;
  t.cols = std::min(
      n0, square && n1 > 1 ? std::max<int64_t>(64, limit / std::min<int64_t>(n1, 32)) : limit);
  t.rows = std::clamp<int64_t>(limit / std::max<int64_t>(t.cols, 1), 1, n1);
  t.across = (n0 + t.cols - 1) / t.cols;
  t.down = (n1 + t.rows - 1) / t.rows;
  t.outer = 1;
  for (int d = 2; d < nest.ndim; ++d) t.outer *= nest.sizes[d];
  return t;
}

// Does an operand run along dim 1 rather than dim 0?
inline bool runs_across(const LoopNest& nest) {
  if (nest.ndim < 2) return false;
  for (int k = 0; k < nest.operands; ++k) {
    int64_t s0 = nest.strides[k][0], s1 = nest.strides[k][1];
    if (s1 != 0 && s1 < s0) return true;
  }
  return false;
}

struct Tile {
  int64_t rows, cols;
  int64_t offsets[kMaxOperands];  // bytes
};

// Calls f(tile) for the tiles [from, to).
template <class F>
void walk_tiles(const LoopNest& nest, const Tiles& t, int64_t from, int64_t to, const F& f) {
  Tile tile;
  int64_t outer_base[kMaxOperands], outer = -1;
  for (int64_t i = from; i < to; ++i) {
    int64_t rest = i / t.across, x = i - rest * t.across;
    int64_t o = rest / t.down, y = rest - o * t.down;
    if (o != outer) {
      outer = o;
      for (int k = 0; k < nest.operands; ++k) outer_base[k] = nest.offset(k, 2, o);
    }
    int64_t c = x * t.cols, r = y * t.rows;
    tile.cols = std::min(t.cols, nest.sizes[0] - c);
    tile.rows = nest.ndim > 1 ? std::min(t.rows, nest.sizes[1] - r) : 1;
    for (int k = 0; k < nest.operands; ++k)
      tile.offsets[k] =
          outer_base[k] + c * nest.strides[k][0] + (nest.ndim > 1 ? r * nest.strides[k][1] : 0);
    f(tile);
  }
}

}  // namespace flambeau::kernels
