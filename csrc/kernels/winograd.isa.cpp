// See Note [Winograd] in winograd.h. Planes are brought, some rows of 16 channels at a time, to a
// small array with its channels last and its padding in place; transforms run over channels. The
// transformed numbers lie in blocks of [tile][32 channels], so that a product reads both operands
// at constant distances.
#include "kernels/winograd.h"

#include <atomic>
#include <cstring>

#include "core/parallel.h"
#include "kernels/providers/gemm_core.h"

namespace flambeau::kernels::FB_ISA {
using namespace tiles;
namespace {

using Lanes = Vec<float>;
constexpr int64_t W = kLanes<float>;
constexpr int64_t kBlock = kWinogradBlock, kPart = 16;
constexpr int64_t kApart = 80;  // keeps the 16 arrays of a transform off the same sets of a cache
constexpr int64_t kTiles = 112;  // of a block, about: what is transformed at once

// Scratch memory. Large ones have sizes in common, so that the allocator's blocks are shared.
Buffer<float> scratch(int64_t n) {
  constexpr int64_t kStep = int64_t{1} << 20;
  return Buffer<float>(n < kStep ? n : round_up(n, kStep));
}

// Products ------------------------------------------------------------------------------------

// c[R][32] (+)= a b over `steps` at most 32: b and c have rows of 32, and so has a, where rows of
// the product are rows (else columns).
template <int R, bool kColumns>
[[gnu::noinline]] void product_tile(int64_t steps, const float* a, const float* b, float* c,
                                    bool add, const float* a_next, const float* b_next) {
#pragma GCC unroll 1
  for (int64_t v = 0; v < kBlock; v += 2 * W) {
    Lanes acc[R][2] = {};
    const float *ap = a, *bp = b + v;
    auto step = [&]() __attribute__((always_inline)) {
      const Lanes b0 = load<float>(bp), b1 = load<float>(bp + W);
#pragma GCC unroll 16
      for (int i = 0; i < R; ++i) {
        const float x = ap[kColumns ? i : i * kBlock];
        acc[i][0] += x * b0;
        acc[i][1] += x * b1;
      }
      ap += kColumns ? kBlock : 1;
      bp += kBlock;
    };
    int64_t p = 0;
    if (a_next) {
#pragma GCC unroll 2
      for (; p < 2 * R; ++p) {
        __builtin_prefetch(a_next + p * 16);
        step();
      }
#pragma GCC unroll 2
      for (; p < steps; ++p) {
        __builtin_prefetch(b_next + (p - 2 * R) * 16);
        step();
      }
    }
#pragma GCC unroll 2
    for (; p < steps; ++p) step();
    float* to = c + v;
    if (add) {
#pragma GCC unroll 16
      for (int i = 0; i < R; ++i) {
        acc[i][0] += load<float>(to + i * kBlock);
        acc[i][1] += load<float>(to + i * kBlock + W);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      store<float>(to + i * kBlock, acc[i][0]);
      store<float>(to + i * kBlock + W, acc[i][1]);
    }
  }
}

using ProductTile = void (*)(int64_t, const float*, const float*, float*, bool, const float*,
                             const float*);
template <bool kColumns, int... R>
ProductTile pick_product(int64_t rows, std::integer_sequence<int, R...>) {
  static constexpr ProductTile all[] = {&product_tile<R + 1, kColumns>...};
  return all[rows - 1];
}
// All rows of a product, in tiles of about equal height.
template <bool kColumns>
void product_rows(int64_t rows, int64_t steps, const float* a, const float* b, float* c,
                  bool add, const float* a_next = nullptr, const float* b_next = nullptr) {
  const int64_t parts = ceil_div(rows, kRows);
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t from = rows * part / parts, to = rows * (part + 1) / parts;
    pick_product<kColumns>(to - from, std::make_integer_sequence<int, kRows>{})(
        steps, a + from * (kColumns ? 1 : kBlock), b, c + from * kBlock, add,
        a_next ? a_next + from * kBlock : nullptr, b_next + kBlock * kBlock * part / parts);
  }
}

// Planes --------------------------------------------------------------------------------------

template <class T>
struct Planes {
  T* data;
  int64_t channels, rows, columns;
  bool last;
  // The element of a channel where a row begins, and the distance to the next position.
  T* at(int64_t n, int64_t channel, int64_t row) const {
    const int64_t place = row * columns;
    return data + n * channels * rows * columns +
           (last ? place * channels + channel : channel * rows * columns + place);
  }
  int64_t plane() const { return rows * columns; }
};

// Calls f(first, W or fewer) for runs of positions; the last one goes back to be a whole vector.
template <class F>
void each_vector(int64_t n, const F& f) {
  for (int64_t i = 0; i < n; i += W) {
    if (i + W <= n)
      f(i, W);
    else if (n >= W)
      f(n - W, W);
    else
      f(i, n);
  }
}

// `rows` rows from row y0 on, of 16 channels, each with `left` zeros before it and zeros to
// `columns`; rows outside of the plane are zeros.
void gather(const Planes<const float>& p, int64_t n, int64_t channel, int64_t y0, int64_t rows,
            int64_t left, int64_t columns, float* to) {
  const int64_t first = std::clamp<int64_t>(-y0, 0, rows);
  const int64_t end = std::clamp<int64_t>(p.rows - y0, first, rows);
  const int64_t row = columns * kPart, right = columns - left - p.columns;
  std::fill_n(to, first * row, 0.0f);
  std::fill_n(to + end * row, (rows - end) * row, 0.0f);
  for (int64_t r = first; r < end; ++r) {
    std::fill_n(to + r * row, left * kPart, 0.0f);
    std::fill_n(to + (r + 1) * row - right * kPart, right * kPart, 0.0f);
  }
  if (first == end) return;
  const float* from = p.at(n, channel, y0 + first);
  float* inside = to + first * row + left * kPart;
  if (p.last) {
    for (int64_t r = first; r < end; ++r, inside += row)
      for (int64_t q = 0; q < p.columns; ++q, from += p.channels)
#pragma GCC unroll 4
        for (int64_t l = 0; l < kPart; l += W)
          store<float>(inside + q * kPart + l, load<float>(from + l));
    return;
  }
  each_vector((end - first) * p.columns, [&](int64_t i, int64_t some) {
    for (int64_t l = 0; l < kPart; l += W) {
      Lanes v[W];
      for (int64_t c = 0; c < W; ++c) {
        const float* source = from + (l + c) * p.plane() + i;
        if (some == W) {
          v[c] = load<float>(source);
        } else {
          v[c] = Lanes{};
          std::memcpy(&v[c], source, static_cast<size_t>(some) * sizeof(float));
        }
      }
      transpose<float>(v);
      int64_t q = i % p.columns;
      float* place = inside + i / p.columns * row + q * kPart + l;
      for (int64_t e = 0; e < some; ++e) {
        store<float>(place, v[e]);
        place += kPart;
        if (++q == p.columns) q = 0, place += row - p.columns * kPart;
      }
    }
  });
}

// The other way, for `rows` dense rows of 16 channels in row-major planes.
void scatter(const Planes<float>& p, int64_t n, int64_t channel, int64_t y0, int64_t rows,
             const float* from) {
  float* to = p.at(n, channel, y0);
  each_vector(rows * p.columns, [&](int64_t i, int64_t some) {
    for (int64_t l = 0; l < kPart; l += W) {
      Lanes v[W] = {};
      for (int64_t e = 0; e < some; ++e) v[e] = load<float>(from + (i + e) * kPart + l);
      transpose<float>(v);
      for (int64_t c = 0; c < W; ++c) {
        float* target = to + (l + c) * p.plane() + i;
        if (some == W)
          store<float>(target, v[c]);
        else
          std::memcpy(target, &v[c], static_cast<size_t>(some) * sizeof(float));
      }
    }
  });
}

// Transforms ----------------------------------------------------------------------------------

// Tiles of 4 x 4, two apart, to 16 numbers each: B^T d B.
void tiles_of_input(const float* d, int64_t rows, int64_t across, float* v, int64_t apart) {
  const int64_t row = (2 * across + 2) * kPart;
  for (int64_t l = 0; l < kPart; l += W)
    for (int64_t i = 0; i < rows; ++i) {
      const float* from = d + 2 * i * row + l;
      float* to = v + i * across * kBlock + l;
      Lanes t[4][4];  // [number][column]
      auto column = [&](int c) __attribute__((always_inline)) {
        const Lanes d0 = load<float>(from), d1 = load<float>(from + row),
                    d2 = load<float>(from + 2 * row), d3 = load<float>(from + 3 * row);
        t[0][c] = d0 - d2, t[1][c] = d1 + d2, t[2][c] = d2 - d1, t[3][c] = d1 - d3;
        from += kPart;
      };
      column(0), column(1);
      for (int64_t j = 0; j < across; ++j, to += kBlock) {
        column(2), column(3);
#pragma GCC unroll 4
        for (int a = 0; a < 4; ++a) {
          float* at = to + 4 * a * apart;
          store<float>(at, t[a][0] - t[a][2]);
          store<float>(at + apart, t[a][1] + t[a][2]);
          store<float>(at + 2 * apart, t[a][2] - t[a][1]);
          store<float>(at + 3 * apart, t[a][1] - t[a][3]);
          t[a][0] = t[a][2], t[a][1] = t[a][3];
        }
      }
    }
}

// Tiles of 2 x 2 to 16 numbers: A g A^T.
void tiles_of_gradient(const float* g, int64_t rows, int64_t across, float* v, int64_t apart) {
  const int64_t row = 2 * across * kPart;
  for (int64_t l = 0; l < kPart; l += W)
    for (int64_t i = 0; i < rows; ++i) {
      const float* from = g + 2 * i * row + l;
      float* to = v + i * across * kBlock + l;
      for (int64_t j = 0; j < across; ++j, to += kBlock, from += 2 * kPart) {
        Lanes t[4][2];
#pragma GCC unroll 2
        for (int c = 0; c < 2; ++c) {
          const Lanes a = load<float>(from + c * kPart), b = load<float>(from + row + c * kPart);
          t[0][c] = a, t[1][c] = a + b, t[2][c] = a - b, t[3][c] = -b;
        }
#pragma GCC unroll 4
        for (int a = 0; a < 4; ++a) {
          float* at = to + 4 * a * apart;
          store<float>(at, t[a][0]);
          store<float>(at + apart, t[a][0] + t[a][1]);
          store<float>(at + 2 * apart, t[a][0] - t[a][1]);
          store<float>(at + 3 * apart, -t[a][1]);
        }
      }
    }
}

// 16 sums to 2 x 2 results, A^T m A, plus a bias; `put(i, j, lanes)` takes them. Returns zeros
// unless a result is not finite.
template <class Put>
[[gnu::always_inline]] inline Lanes results_of_sums(const float* m, int64_t apart, Lanes bias,
                                                    const Put& put) {
  Lanes t[2][4], seen{};
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const float* at = m + c * apart;
    const Lanes m0 = load<float>(at), m1 = load<float>(at + 4 * apart),
                m2 = load<float>(at + 8 * apart), m3 = load<float>(at + 12 * apart);
    t[0][c] = m0 + m1 + m2, t[1][c] = m1 - m2 - m3;
  }
#pragma GCC unroll 2
  for (int a = 0; a < 2; ++a) {
    const Lanes y0 = t[a][0] + t[a][1] + t[a][2] + bias, y1 = t[a][1] - t[a][2] - t[a][3] + bias;
    put(a, 0, y0), put(a, 1, y1);
    seen += y0 * 0.0f + y1 * 0.0f;
  }
  return seen;
}

bool all_zero(Lanes v) {
  bool zero = true;
  for (int64_t i = 0; i < W; ++i) zero = zero && v[i] == 0.0f;
  return zero;
}

// Windows to 16 numbers each, G g G^T: u[number][output block][input channel][32 outputs]. This is
// for one block of outputs and one of inputs.
void window_block(const WinogradCall& call, const float* w, int64_t o0, int64_t i0, float* u,
                  int64_t apart) {
  constexpr int64_t kSize = sizeof(float);
  alignas(64) float taps[(kBlock * 9 + 7) * kBlock];  // [input][tap][output], and what is overrun
  const float* from = w + o0 * call.w_out + i0 * call.w_in;
  if (call.w_in == 9) {
    pack_transposed<float, float>(from, call.w_out * kSize, kBlock, 9 * kBlock, kBlock, taps);
  } else if (call.w_out == 9) {
    // Whole vectors, of which the next window overwrites what is too much; not behind the array.
    for (int64_t i = 0; i < kBlock; ++i) {
      const bool last = i0 + i + 1 == call.ci && o0 + kBlock == call.co;
      pack_transposed<float, float>(from + i * call.w_in, 9 * kSize, kBlock, last ? 9 : 16, kBlock,
                                    taps + i * 9 * kBlock);
    }
  } else if (call.w_in == 1) {
    for (int64_t t = 0; t < 9; ++t)
      pack_transposed<float, float>(from + t * call.w_tap, call.w_out * kSize, kBlock, kBlock,
                                    9 * kBlock, taps + t * kBlock);
  } else {
    for (int64_t i = 0; i < kBlock; ++i)
      for (int64_t t = 0; t < 9; ++t)
        std::memcpy(taps + (i * 9 + t) * kBlock, from + i * call.w_in + t * call.w_tap,
                    kBlock * kSize);
  }
  for (int64_t i = 0; i < kBlock; ++i)
    for (int64_t l = 0; l < kBlock; l += W) {
      Lanes t[4][3];
#pragma GCC unroll 3
      for (int64_t c = 0; c < 3; ++c) {
        auto tap = [&](int64_t r) __attribute__((always_inline)) {
          const int64_t at = 3 * r + c;
          return load<float>(taps + (i * 9 + (call.turned ? 8 - at : at)) * kBlock + l);
        };
        const Lanes g0 = tap(0), g1 = tap(1), g2 = tap(2), sum = g0 + g2;
        t[0][c] = g0, t[1][c] = (sum + g1) * 0.5f, t[2][c] = (sum - g1) * 0.5f, t[3][c] = g2;
      }
#pragma GCC unroll 4
      for (int a = 0; a < 4; ++a) {
        float* at = u + i * kBlock + l + 4 * a * apart;
        const Lanes sum = t[a][0] + t[a][2];
        store<float>(at, t[a][0]);
        store<float>(at + apart, (sum + t[a][1]) * 0.5f);
        store<float>(at + 2 * apart, (sum - t[a][1]) * 0.5f);
        store<float>(at + 3 * apart, t[a][2]);
      }
    }
}

// The transpose of that, G^T u G, for one block of outputs and one of inputs.
bool weight_block(const WinogradCall& call, const float* u, int64_t apart, int64_t o0, int64_t i0,
                  float* gw) {
  alignas(64) float taps[kBlock * 9 * kBlock];
  Lanes seen{};
  for (int64_t i = 0; i < kBlock; ++i)
    for (int64_t l = 0; l < kBlock; l += W) {
      Lanes t[3][4];
#pragma GCC unroll 4
      for (int c = 0; c < 4; ++c) {
        const float* at = u + i * kBlock + l + c * apart;
        const Lanes u0 = load<float>(at), u1 = load<float>(at + 4 * apart),
                    u2 = load<float>(at + 8 * apart), u3 = load<float>(at + 12 * apart);
        const Lanes half = (u1 + u2) * 0.5f;
        t[0][c] = u0 + half, t[1][c] = (u1 - u2) * 0.5f, t[2][c] = half + u3;
      }
#pragma GCC unroll 3
      for (int a = 0; a < 3; ++a) {
        float* at = taps + (i * 9 + 3 * a) * kBlock + l;
        const Lanes half = (t[a][1] + t[a][2]) * 0.5f;
        const Lanes w0 = t[a][0] + half, w1 = (t[a][1] - t[a][2]) * 0.5f, w2 = half + t[a][3];
        store<float>(at, w0), store<float>(at + kBlock, w1), store<float>(at + 2 * kBlock, w2);
        seen += w0 * 0.0f + w1 * 0.0f + w2 * 0.0f;
      }
    }
  float* to = gw + o0 * call.w_out + i0 * call.w_in;
  constexpr int64_t kSize = sizeof(float);
  if (call.w_in == 9) {
    pack_transposed<float, float>(taps, kBlock * kSize, 9 * kBlock, kBlock, call.w_out, to);
  } else {
    for (int64_t t = 0; t < 9; ++t)
      pack_transposed<float, float>(taps + t * kBlock, 9 * kBlock * kSize, kBlock, kBlock,
                                    call.w_out, to + t * call.w_tap);
  }
  return all_zero(seen);
}

// Blocks of tiles -----------------------------------------------------------------------------

// The tiles of a convolution, in rows; a block is some rows, across images.
struct Tiling {
  explicit Tiling(const WinogradCall& call)
      : down((call.out[0] + 1) / 2),
        across((call.out[1] + 1) / 2),
        rows(call.batch * down),
        block_rows(std::clamp<int64_t>(most_tiles(call) / across, 1, rows)) {}
  // Enough that reading the windows' numbers for each block takes less than the tiles' own.
  static int64_t most_tiles(const WinogradCall& call) {
    return std::max(kTiles, call.ci * call.co / (call.ci + call.co));
  }
  void share(int64_t threads) {  // into blocks that threads get equally many of
    const int64_t blocks = round_up(ceil_div(rows, block_rows), threads);
    block_rows = ceil_div(rows, blocks);
  }
  int64_t blocks() const { return ceil_div(rows, block_rows); }
  int64_t tiles() const { return block_rows * across; }
  // f(image, first row of tiles, rows, first tile of the block) for the parts of a block that are
  // of one image; returns the number of tiles.
  template <class F>
  int64_t each_run(int64_t block, const F& f) const {
    const int64_t from = block * block_rows, to = std::min(rows, from + block_rows);
    for (int64_t g = from; g < to;) {
      const int64_t n = g / down, i = g % down, r = std::min(to - g, down - i);
      f(n, i, r, (g - from) * across);
      g += r;
    }
    return (to - from) * across;
  }
  int64_t down, across, rows, block_rows;
};

// v[number][channel block][tile][32] of the channels [from, to) of a block's inputs.
int64_t transform_input(const WinogradCall& call, const Tiling& tiling, const float* x,
                        int64_t block, int64_t from, int64_t to, float* staged, float* v,
                        int64_t apart) {
  const Planes<const float> planes{x, call.ci, call.in[0], call.in[1], call.x_last};
  return tiling.each_run(block, [&](int64_t n, int64_t i, int64_t r, int64_t tile) {
    for (int64_t c = from; c < to; c += kPart) {
      gather(planes, n, c, 2 * i - call.pad[0], 2 * r + 2, call.pad[1], 2 * tiling.across + 2,
             staged);
      const int64_t inner = c - from;
      tiles_of_input(staged, r, tiling.across,
                     v + (inner / kBlock * tiling.tiles() + tile) * kBlock + inner % kBlock,
                     apart);
    }
  });
}

int64_t staged_size(const Tiling& tiling) {
  return (2 * tiling.block_rows + 2) * (2 * tiling.across + 2) * kPart;
}

// Where the results of a block go.
struct Results {
  const WinogradCall& call;
  Planes<float> planes;
  const float* bias;

  // From the sums m[number][output block][tile][32] of the channels [from, to). False when a result
  // is not finite.
  bool write(const Tiling& tiling, int64_t block, int64_t from, int64_t to, const float* m,
             int64_t apart, float* staged) const {
    Lanes seen{};
    tiling.each_run(block, [&](int64_t n, int64_t i, int64_t r, int64_t tile) {
      for (int64_t c = from; c < to; c += kPart) {
        const int64_t inner = c - from;
        const float* sums =
            m + (inner / kBlock * tiling.tiles() + tile) * kBlock + inner % kBlock;
        seen += write_part(tiling, n, 2 * i, r, c, sums, apart, staged);
      }
    });
    return all_zero(seen);
  }

 private:
  // 16 channels of some rows of tiles of one image.
  Lanes write_part(const Tiling& tiling, int64_t n, int64_t y0, int64_t r, int64_t c,
                   const float* m, int64_t apart, float* staged) const {
    const int64_t rows = std::min(2 * r, planes.rows - y0);
    float* to = planes.last ? planes.at(n, c, y0) : staged;
    const int64_t step = planes.last ? planes.channels : kPart, row = planes.columns * step;
    Lanes seen{};
    for (int64_t l = 0; l < kPart; l += W) {
      const Lanes shift = bias ? load<float>(bias + c + l) : Lanes{};
      for (int64_t a = 0; a < r; ++a)
        for (int64_t b = 0; b < tiling.across; ++b)
          seen += results_of_sums(
              m + (a * tiling.across + b) * kBlock + l, apart, shift,
              [&](int64_t p, int64_t q, Lanes v) __attribute__((always_inline)) {
                if (2 * a + p < rows && 2 * b + q < planes.columns)
                  store<float>(to + (2 * a + p) * row + (2 * b + q) * step + l, v);
              });
    }
    if (!planes.last) scatter(planes, n, c, y0, rows, staged);
    return seen;
  }
};

// Sums of one block of outputs over all inputs, for one of the 16 numbers: m = v u. Of so many
// tiles at a time that sums and what they are made of stay in the first-level cache.
void sum_over_inputs(int64_t count, int64_t tiles, int64_t inputs, const float* v, const float* u,
                     float* m) {
  const int64_t chunks = ceil_div(count, kTiles);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int64_t from = count * chunk / chunks, some = count * (chunk + 1) / chunks - from;
    const float *a = v + from * kBlock, *b = u;
    for (int64_t i = 0; i < inputs; ++i, a += tiles * kBlock, b += kBlock * kBlock)
      product_rows<false>(some, kBlock, a, b, m + from * kBlock, i != 0, a + tiles * kBlock,
                          b + kBlock * kBlock);
  }
}

// Few tiles, in one block: threads share the outputs, 32 by 32, whose windows stay in the cache.
bool product_of_few(const Tiling& tiling, const Results& results, const float* x, const float* w) {
  const WinogradCall& call = results.call;
  const int64_t inputs = call.ci / kBlock, outputs = call.co / kBlock, tiles = tiling.tiles();
  const int64_t v_apart = tiles * call.ci + kApart, m_apart = tiles * kBlock + kApart,
                u_apart = call.ci * kBlock + kApart;
  std::atomic<bool> finite{true};
  parallel_for(0, outputs, 1, [&](int64_t from, int64_t to) {
    const Buffer<float> v = scratch(16 * v_apart), m = scratch(16 * m_apart),
                        u = scratch(16 * u_apart), staged = scratch(staged_size(tiling));
    transform_input(call, tiling, x, 0, 0, call.ci, staged.get(), v.get(), v_apart);
    for (int64_t o = from; o < to; ++o) {
      for (int64_t i = 0; i < call.ci; i += kBlock)
        window_block(call, w, o * kBlock, i, u.get() + i * kBlock, u_apart);
      for (int64_t number = 0; number < 16; ++number)
        sum_over_inputs(tiles, tiles, inputs, v.get() + number * v_apart,
                        u.get() + number * u_apart, m.get() + number * m_apart);
      if (!results.write(tiling, 0, o * kBlock, (o + 1) * kBlock, m.get(), m_apart, staged.get()))
        finite = false;
    }
  });
  return finite;
}

// Many tiles: threads share the blocks.
bool product_of_many(const Tiling& tiling, const Results& results, const float* x,
                     const float* w) {
  const WinogradCall& call = results.call;
  const int64_t inputs = call.ci / kBlock, outputs = call.co / kBlock, tiles = tiling.tiles();
  const int64_t v_apart = tiles * call.ci + kApart, m_apart = tiles * call.co + kApart,
                u_apart = outputs * call.ci * kBlock + kApart;
  const Buffer<float> u = scratch(16 * u_apart);
  parallel_for(0, inputs * outputs, 2, [&](int64_t from, int64_t to) {
    for (int64_t b = from; b < to; ++b) {
      const int64_t o = b / inputs, i = b % inputs * kBlock;
      window_block(call, w, o * kBlock, i, u.get() + (o * call.ci + i) * kBlock, u_apart);
    }
  });
  std::atomic<bool> finite{true};
  parallel_for(0, tiling.blocks(), 1, [&](int64_t from, int64_t to) {
    const Buffer<float> v = scratch(16 * v_apart), m = scratch(16 * m_apart),
                        staged = scratch(staged_size(tiling));
    for (int64_t block = from; block < to; ++block) {
      const int64_t count =
          transform_input(call, tiling, x, block, 0, call.ci, staged.get(), v.get(), v_apart);
      for (int64_t number = 0; number < 16; ++number)
        for (int64_t o = 0; o < outputs; ++o)
          sum_over_inputs(count, tiles, inputs, v.get() + number * v_apart,
                          u.get() + number * u_apart + o * call.ci * kBlock,
                          m.get() + number * m_apart + o * tiles * kBlock);
      if (!results.write(tiling, block, 0, call.co, m.get(), m_apart, staged.get()))
        finite = false;
    }
  });
  return finite;
}

}  // namespace

bool winograd_product(const WinogradCall& call, const float* x, const float* w, const float* bias,
                      float* y) {
  const int64_t threads = in_parallel() ? 1 : num_threads();
  Tiling tiling(call);
  const int64_t all = tiling.rows * tiling.across;
  const Results to{call, {y, call.co, call.out[0], call.out[1], call.y_last}, bias};
  if (all <= (threads == 1 ? 2 * kTiles : std::min(2 * kTiles, threads * kTiles / 2))) {
    tiling.block_rows = tiling.rows;
    return product_of_few(tiling, to, x, w);
  }
  tiling.share(threads);
  return product_of_many(tiling, to, x, w);
}

bool winograd_weight(const WinogradCall& call, const float* gy, const float* x, float* gw) {
  const int64_t threads = in_parallel() ? 1 : num_threads();
  const int64_t inputs = call.ci / kBlock, outputs = call.co / kBlock;
  Tiling tiling(call);
  tiling.share(1);
  const int64_t tiles = tiling.tiles();
  // Threads share the weight: some blocks of outputs by some of inputs each, whose operands they
  // transform for themselves. So no thread waits, and sums do not depend on their number.
  const int64_t o_parts = std::min(threads, outputs),
                i_parts = std::min(inputs, std::max<int64_t>(1, threads / o_parts));
  const Planes<const float> gradient{gy, call.co, call.out[0], call.out[1], call.y_last};
  std::atomic<bool> finite{true};
  parallel_for(0, o_parts * i_parts, 1, [&](int64_t from, int64_t to) {
    const int64_t o_share = ceil_div(outputs, o_parts), i_share = ceil_div(inputs, i_parts);
    const int64_t v_apart = tiles * i_share * kBlock + kApart,
                  g_apart = tiles * o_share * kBlock + kApart,
                  u_apart = o_share * i_share * kBlock * kBlock + kApart;
    const Buffer<float> v = scratch(16 * v_apart), g = scratch(16 * g_apart),
                        u = scratch(16 * u_apart), staged = scratch(staged_size(tiling));
    for (int64_t item = from; item < to; ++item) {
      const int64_t op = item / i_parts, ip = item % i_parts;
      const int64_t o0 = outputs * op / o_parts, o1 = outputs * (op + 1) / o_parts,
                    i0 = inputs * ip / i_parts, i1 = inputs * (ip + 1) / i_parts;
      for (int64_t block = 0; block < tiling.blocks(); ++block) {
        const int64_t count = transform_input(call, tiling, x, block, i0 * kBlock, i1 * kBlock,
                                              staged.get(), v.get(), v_apart);
        tiling.each_run(block, [&](int64_t n, int64_t i, int64_t r, int64_t tile) {
          for (int64_t c = 0; c < (o1 - o0) * kBlock; c += kPart) {
            gather(gradient, n, o0 * kBlock + c, 2 * i, 2 * r, 0, 2 * tiling.across, staged.get());
            tiles_of_gradient(staged.get(), r, tiling.across,
                              g.get() + (c / kBlock * tiles + tile) * kBlock + c % kBlock,
                              g_apart);
          }
        });
        for (int64_t number = 0; number < 16; ++number)
          for (int64_t o = 0; o < o1 - o0; ++o)
            for (int64_t i = 0; i < i1 - i0; ++i)
              for (int64_t t = 0; t < count; t += kBlock)
                product_rows<true>(
                    kBlock, std::min(kBlock, count - t),
                    v.get() + number * v_apart + (i * tiles + t) * kBlock,
                    g.get() + number * g_apart + (o * tiles + t) * kBlock,
                    u.get() + number * u_apart + (o * i_share + i) * kBlock * kBlock,
                    block + t != 0);
      }
      for (int64_t o = o0; o < o1; ++o)
        for (int64_t i = i0; i < i1; ++i)
          if (!weight_block(call, u.get() + ((o - o0) * i_share + i - i0) * kBlock * kBlock,
                            u_apart, o * kBlock, i * kBlock, gw))
            finite = false;
    }
  });
  return finite;
}

}  // namespace flambeau::kernels::FB_ISA
