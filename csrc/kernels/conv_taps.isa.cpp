// The three maps of a convolution; see Note [Convolution without patches] in conv_taps.h.
#include "kernels/conv_taps.h"

#include <vector>

#include "core/parallel.h"
#include "kernels/providers/gemm_core.h"

namespace flambeau::kernels::FB_ISA {
using namespace tiles;
namespace {

// Planes of one channel: for every residue of the step that taps have (residues[a] of them per
// axis), for each of some images, an array of extent[] elements, element z of residue r being
// source position z * steps + r - low. Small images share their planes so that a run of positions
// is long enough.
struct Planes {
  int64_t images = 1;
  int64_t source[3], extent[3], steps[3], residues[3], low[3];
  int64_t plane() const { return extent[0] * extent[1] * extent[2]; }
  int64_t size() const { return plane() * images * residues[0] * residues[1] * residues[2]; }
  void share(int64_t batch) {
    images =
        std::clamp<int64_t>(2048 / std::max<int64_t>(1, plane()), 1, std::max<int64_t>(1, batch));
  }
  bool same_as_source() const {
    for (int a = 0; a < 3; ++a)
      if (steps[a] != 1 || low[a] || extent[a] != source[a]) return false;
    return images == 1;
  }
};

// Positions z of a row with 0 <= z * step + start < size.
struct Range {
  int64_t from, to;
};
Range inside(int64_t extent, int64_t step, int64_t start, int64_t size) {
  int64_t from = start < 0 ? (-start + step - 1) / step : 0;
  int64_t to = start < size ? (size - start + step - 1) / step : 0;
  from = std::min(from, extent);
  return {from, std::max(from, std::min(extent, to))};
}

// The planes of image n (of those that share them) from its source.
template <class T>
void fill_planes(const Planes& p, const T* src, int64_t n, T* dst) {
  const int64_t others = (p.images - 1) * p.plane();
  dst += n * p.plane();
  for (int64_t r0 = 0; r0 < p.residues[0]; ++r0)
    for (int64_t r1 = 0; r1 < p.residues[1]; ++r1)
      for (int64_t r2 = 0; r2 < p.residues[2]; ++r2, dst += others)
        for (int64_t z = 0; z < p.extent[0]; ++z) {
          const int64_t sz = z * p.steps[0] + r0 - p.low[0];
          for (int64_t y = 0; y < p.extent[1]; ++y, dst += p.extent[2]) {
            const int64_t sy = y * p.steps[1] + r1 - p.low[1];
            if (sz < 0 || sz >= p.source[0] || sy < 0 || sy >= p.source[1]) {
              std::fill_n(dst, p.extent[2], T(0));
              continue;
            }
            const int64_t start = r2 - p.low[2], step = p.steps[2];
            const Range in = inside(p.extent[2], step, start, p.source[2]);
            const T* row = src + (sz * p.source[1] + sy) * p.source[2] + start;
            for (int64_t x = 0; x < in.from; ++x) dst[x] = T(0);
            if (step == 1)
              for (int64_t x = in.from; x < in.to; ++x) dst[x] = row[x];
            else if (step == 2)
              for (int64_t x = in.from; x < in.to; ++x) dst[x] = row[2 * x];
            else
              for (int64_t x = in.from; x < in.to; ++x) dst[x] = row[x * step];
            for (int64_t x = in.to; x < p.extent[2]; ++x) dst[x] = T(0);
          }
        }
}

// R rows of outputs at 2 vectors of positions: b + offsets[p] is where step p reads.
template <class T, int R>
[[gnu::noinline]] void tap_tile(int64_t k, const T* a, const T* b, const int64_t* offsets, T* c,
                                int64_t ldc, int64_t columns, const Epilogue<T>& e, int64_t row) {
  constexpr int W = kLanes<T>;
  Vec<T> acc[R][2] = {};
  for (int64_t p = 0; p < k; ++p) {
    const T* from = b + offsets[p];
    const Vec<T> b0 = load<T>(from), b1 = load<T>(from + W);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      acc[i][0] += b0 * a[i];
      acc[i][1] += b1 * a[i];
    }
    a += R;
  }
  if (columns >= 2 * W) {
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const T shift = e.row_bias ? e.row_bias[row + i] : T(0);
      store<T>(c + i * ldc, acc[i][0] + shift);
      store<T>(c + i * ldc + W, acc[i][1] + shift);
    }
    return;
  }
  T out[R * 2 * W];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
    store<T>(out + 2 * i * W, acc[i][0]);
    store<T>(out + (2 * i + 1) * W, acc[i][1]);
  }
  finish_partial<T, T>(out, 2 * W, R, columns, c, ldc, e, row, 0);
}

template <class T>
using TapTile = void (*)(int64_t, const T*, const T*, const int64_t*, T*, int64_t, int64_t,
                         const Epilogue<T>&, int64_t);
template <class T, int... R>
TapTile<T> pick_tap_tile(int rows, std::integer_sequence<int, R...>) {
  static constexpr TapTile<T> fns[] = {&tap_tile<T, R + 1>...};
  return fns[rows - 1];
}
template <class T>
TapTile<T> tap_tile_for(int64_t rows) {
  return pick_tap_tile<T>(static_cast<int>(rows), std::make_integer_sequence<int, kRows>{});
}

// A grid of output positions over planes, and where its values go.
template <class T>
struct Grid {
  int64_t count[3];  // positions per axis
  int64_t pitch[2];  // of planes: elements per slice, per row
  int64_t first;     // offset of the destination of position (0, 0, 0)
  int64_t step[3];   // destination strides
  int64_t channel;   // destination stride between rows of the product
  int64_t image;     // destination stride between images
  int64_t plane;     // elements of planes per image
  int64_t length(int64_t images) const {
    return (images - 1) * plane + (count[0] - 1) * pitch[0] + (count[1] - 1) * pitch[1] + count[2];
  }
  bool dense() const {
    return pitch[1] == count[2] && pitch[0] == count[1] * count[2] && step[2] == 1 &&
           step[1] == count[2] && step[0] == count[1] * count[2];
  }
  // Writes positions [q0, q1) of one row of the product.
  void write(const T* from, int64_t q0, int64_t q1, T* to) const {
    int64_t n = q0 / plane, z = q0 % plane / pitch[0], y = q0 % pitch[0] / pitch[1],
            x = q0 % pitch[1];
    for (int64_t q = q0; q < q1;) {
      const int64_t run = std::min(q1 - q, pitch[1] - x);
      if (z < count[0] && y < count[1] && x < count[2]) {
        const int64_t some = std::min(run, count[2] - x);
        T* out = to + first + n * image + z * step[0] + y * step[1] + x * step[2];
        const T* v = from + (q - q0);
        if (step[2] == 1)
          for (int64_t i = 0; i < some; ++i) out[i] = v[i];
        else
          for (int64_t i = 0; i < some; ++i) out[i * step[2]] = v[i];
      }
      q += run, x = 0;
      if ((y + 1) * pitch[1] < pitch[0]) {
        ++y;
      } else {
        y = 0;
        if ((z + 1) * pitch[0] < plane)
          ++z;
        else
          ++n, z = 0;
      }
    }
  }
};

// The matrix of a product, packed in tiles of mr rows.
template <class T>
struct PackedRows {
  int64_t m, k, mr;
  Buffer<T> values;  // cached by the allocator: fresh pages would cost more than the packing
  // element(i, p) gives the matrix.
  template <class F>
  PackedRows(int64_t m, int64_t k, const F& element) : PackedRows(m, k) {
    tiles([&](int64_t i, int64_t rows, T* to) {
      for (int64_t p = 0; p < k; ++p)
        for (int64_t r = 0; r < rows; ++r) *to++ = element(i + r, p);
    });
  }
  // From a dense matrix.
  PackedRows(int64_t m, int64_t k, const T* dense) : PackedRows(m, k) {
    tiles([&](int64_t i, int64_t rows, T* to) {
      // All but the last columns of a tile may be overrun by a vector; those are written one by
      // one.
      const int64_t bulk = std::max<int64_t>(0, k - kLanes<T>);
      pack_transposed<T, T>(dense + i * k, k * static_cast<int64_t>(sizeof(T)), rows, bulk, rows,
                            to);
      for (int64_t p = bulk; p < k; ++p)
        for (int64_t r = 0; r < rows; ++r) to[p * rows + r] = dense[(i + r) * k + p];
    });
  }

 private:
  PackedRows(int64_t m, int64_t k)
      : m(m), k(k), mr(std::max<int64_t>(1, ceil_div(m, ceil_div(m, kRows)))), values(m * k) {}
  // Calls f(first row, rows, place) for all tiles.
  template <class F>
  void tiles(const F& f) {
    parallel_for(0, ceil_div(m, mr), std::max<int64_t>(1, kGrain / (mr * k + 1)),
                 [&](int64_t from, int64_t to) {
                   for (int64_t t = from; t < to; ++t)
                     f(t * mr, std::min(mr, m - t * mr), values.get() + t * mr * k);
                 });
  }
};

constexpr int64_t kBlock = 256;  // positions worked on while a tile of the matrix is in cache

// Positions [q0, q1), at most kBlock: all rows of the matrix.
template <class T>
void block_product(const PackedRows<T>& a, const T* planes, const int64_t* offsets,
                   const Grid<T>& grid, int64_t q0, int64_t q1, const T* bias, T* to) {
  constexpr int64_t NR = 2 * kLanes<T>;
  alignas(64) T scratch[kRows * kBlock];
  const bool direct = grid.dense() && q1 <= grid.length(1);
  Epilogue<T> e;
  e.row_bias = bias;
  for (int64_t i = 0; i < a.m; i += a.mr) {
    const int64_t rows = std::min(a.mr, a.m - i);
    const T* packed = a.values.get() + i * a.k;
    const auto tile = tap_tile_for<T>(rows);
    T* c = direct ? to + grid.first + i * grid.channel + q0 : scratch;
    const int64_t ldc = direct ? grid.channel : kBlock;
    for (int64_t q = q0; q < q1; q += NR)
      tile(a.k, packed, planes + q, offsets, c + (q - q0), ldc, direct ? q1 - q : NR, e, i);
    if (!direct)
      for (int64_t r = 0; r < rows; ++r)
        grid.write(scratch + r * kBlock, q0, q1, to + (i + r) * grid.channel);
  }
}

// One grid with its matrices (one per group) and offsets.
template <class T>
struct Phase {
  Grid<T> grid;
  std::vector<int64_t> offsets;
  std::vector<PackedRows<T>> rows;
};

// Runs all phases over a batch: planes of some images are made, then used.
template <class T>
void run_phases(const std::vector<Phase<T>>& phases, const Planes& planes, int64_t batch,
                int64_t groups, int64_t channels, const T* src, int64_t src_size, T* dst,
                int64_t dst_channels, int64_t dst_size, const T* bias) {
  const int64_t per_channel = planes.size(), all_channels = channels * groups,
                unit = per_channel * all_channels;
  const int64_t share = planes.images,
                units = ceil_div(batch, share);  // units: images that share planes
  const bool copied = !planes.same_as_source();
  constexpr int64_t kSlack = 4 * kLanes<T>;
  const int64_t at_once = !copied
                              ? units
                              : std::clamp<int64_t>((int64_t{1} << 21) / std::max<int64_t>(1, unit),
                                                    std::min<int64_t>(units, num_threads()), units);
  // Tiles read a little past the last plane: the source itself serves only as far as that stays
  // inside it.
  Buffer<T> buffer((copied ? at_once * unit : unit) + kSlack);
  for (int64_t u0 = 0; u0 < units; u0 += at_once) {
    const int64_t now = std::min(at_once, units - u0);
    const T* base = src + u0 * share * all_channels * src_size;
    if (copied) {
      const int64_t images = std::min(now * share, batch - u0 * share);
      parallel_for(0, images * all_channels,
                   std::max<int64_t>(1, kGrain * share / std::max<int64_t>(1, per_channel)),
                   [&](int64_t from, int64_t to) {
                     for (int64_t i = from; i < to; ++i) {
                       const int64_t n = i / all_channels, c = i % all_channels;
                       fill_planes<T>(planes, base + i * src_size, n % share,
                                      buffer.get() + (n / share * all_channels + c) * per_channel);
                     }
                   });
      std::fill_n(buffer.get() + now * unit, kSlack, T(0));
    } else {
      // The last image is copied to where reading past it is safe.
      std::memcpy(static_cast<void*>(buffer.get()), base + (now - 1) * unit, sizeof(T) * unit);
      std::fill_n(buffer.get() + unit, kSlack, T(0));
    }
    for (const Phase<T>& phase : phases) {
      const int64_t blocks = ceil_div(phase.grid.length(share), kBlock);
      const double work =
          static_cast<double>(phase.rows[0].m) * static_cast<double>(phase.rows[0].k + 1) * kBlock;
      parallel_for(0, now * groups * blocks, std::max<int64_t>(1, static_cast<int64_t>(1e6 / work)),
                   [&](int64_t from, int64_t to) {
                     for (int64_t t = from; t < to; ++t) {
                       const int64_t u = t / blocks / groups, g = t / blocks % groups,
                                     q0 = t % blocks * kBlock;
                       const int64_t first = (u0 + u) * share;
                       const int64_t length = phase.grid.length(std::min(share, batch - first));
                       if (q0 >= length) continue;
                       const T* from_planes = copied         ? buffer.get() + u * unit
                                              : u == now - 1 ? buffer.get()
                                                             : base + u * unit;
                       block_product<T>(phase.rows[g], from_planes + g * channels * per_channel,
                                        phase.offsets.data(), phase.grid, q0,
                                        std::min(length, q0 + kBlock),
                                        bias ? bias + g * dst_channels : nullptr,
                                        dst + (first * groups + g) * dst_channels * dst_size);
                     }
                   });
    }
  }
}

// Planes of the input, for the forward map and the gradient of the weight, and the offsets of
// (channel, tap).
Planes input_planes(const ConvGeometry& g) {
  Planes p;
  for (int a = 0; a < 3; ++a) {
    p.source[a] = g.in[a];
    p.steps[a] = g.stride[a];
    p.residues[a] = std::min(g.stride[a], (g.kernel[a] - 1) * g.dilation[a] + 1);
    p.low[a] = g.pad[a];
    p.extent[a] = g.out[a] + (g.kernel[a] - 1) * g.dilation[a] / g.stride[a];
  }
  p.share(g.batch);
  return p;
}

std::vector<int64_t> input_offsets(const ConvGeometry& g, const Planes& p) {
  std::vector<int64_t> out;
  out.reserve(g.ci * g.taps());
  for (int64_t c = 0; c < g.ci; ++c)
    for (int64_t i = 0; i < g.kernel[0]; ++i)
      for (int64_t j = 0; j < g.kernel[1]; ++j)
        for (int64_t k = 0; k < g.kernel[2]; ++k) {
          const int64_t t[3] = {i * g.dilation[0], j * g.dilation[1], k * g.dilation[2]};
          int64_t residue = 0, place = 0;
          for (int a = 0; a < 3; ++a) {
            residue = residue * p.residues[a] + t[a] % g.stride[a];
            place = place * p.extent[a] + t[a] / g.stride[a];
          }
          out.push_back(c * p.size() + residue * p.images * p.plane() + place);
        }
  return out;
}

template <class T>
void forward(const ConvGeometry& g, const T* x, const T* w, const T* bias, T* y) {
  const Planes planes = input_planes(g);
  const int64_t k = g.ci * g.taps(), size = g.out_size();
  std::vector<Phase<T>> phases(1);
  Phase<T>& phase = phases[0];
  phase.grid = {{g.out[0], g.out[1], g.out[2]},
                {planes.extent[1] * planes.extent[2], planes.extent[2]},
                0,
                {g.out[1] * g.out[2], g.out[2], 1},
                size,
                g.groups * g.co * size,
                planes.plane()};
  phase.offsets = input_offsets(g, planes);
  for (int64_t i = 0; i < g.groups; ++i) phase.rows.emplace_back(g.co, k, w + i * g.co * k);
  run_phases<T>(phases, planes, g.batch, g.groups, g.ci, x, g.in_size(), y, g.co, size, bias);
}

// Taps and positions of one residue r along one axis of the input's gradient.
struct AxisPhase {
  int64_t first, count;           // positions of the input: first + z * stride
  std::vector<int64_t> taps, at;  // kernel index, and where its gradient is for z = 0
};

std::vector<AxisPhase> axis_phases(const ConvGeometry& g, int a, Planes& planes) {
  std::vector<AxisPhase> out;
  int64_t low = 0;
  for (int64_t r = 0; r < g.stride[a]; ++r) {
    AxisPhase p;
    const int64_t z0 = std::max<int64_t>(0, ceil_div(g.pad[a] - r, g.stride[a]));
    p.first = z0 * g.stride[a] + r - g.pad[a];
    p.count = p.first < g.in[a] ? ceil_div(g.in[a] - p.first, g.stride[a]) : 0;
    if (p.count == 0) continue;
    for (int64_t t = 0; t < g.kernel[a]; ++t) {
      if (t * g.dilation[a] % g.stride[a] != r) continue;
      p.taps.push_back(t);
      p.at.push_back(z0 - (t * g.dilation[a] - r) / g.stride[a]);
      low = std::max(low, -p.at.back());
    }
    out.push_back(std::move(p));
  }
  planes.source[a] = g.out[a];
  planes.steps[a] = planes.residues[a] = 1;
  planes.low[a] = low;
  planes.extent[a] = 1;
  for (AxisPhase& p : out)
    for (int64_t& at : p.at) {
      at += low;
      planes.extent[a] = std::max(planes.extent[a], at + p.count);
    }
  for (AxisPhase& p : out) planes.extent[a] = std::max(planes.extent[a], p.count);
  return out;
}

template <class T>
void input_gradient(const ConvGeometry& g, const T* gy, const T* w, const T* bias, T* gx) {
  Planes planes;
  std::vector<AxisPhase> axes[3];
  for (int a = 0; a < 3; ++a) axes[a] = axis_phases(g, a, planes);
  planes.share(g.batch);
  const int64_t taps = g.taps(), size = g.in_size();
  std::vector<Phase<T>> phases;
  for (const AxisPhase& pz : axes[0])
    for (const AxisPhase& py : axes[1])
      for (const AxisPhase& px : axes[2]) {
        Phase<T>& phase = phases.emplace_back();
        phase.grid = {{pz.count, py.count, px.count},
                      {planes.extent[1] * planes.extent[2], planes.extent[2]},
                      (pz.first * g.in[1] + py.first) * g.in[2] + px.first,
                      {g.stride[0] * g.in[1] * g.in[2], g.stride[1] * g.in[2], g.stride[2]},
                      size,
                      g.groups * g.ci * size,
                      planes.plane()};
        std::vector<int64_t> tap;  // flat kernel index per step, within one channel
        for (int64_t c = 0; c < g.co; ++c)
          for (size_t i = 0; i < pz.taps.size(); ++i)
            for (size_t j = 0; j < py.taps.size(); ++j)
              for (size_t k = 0; k < px.taps.size(); ++k) {
                phase.offsets.push_back(
                    c * planes.size() +
                    (pz.at[i] * planes.extent[1] + py.at[j]) * planes.extent[2] + px.at[k]);
                tap.push_back(c * g.ci * taps +
                              (pz.taps[i] * g.kernel[1] + py.taps[j]) * g.kernel[2] + px.taps[k]);
              }
        for (int64_t i = 0; i < g.groups; ++i) {
          const T* wg = w + i * g.co * g.ci * taps;
          phase.rows.emplace_back(g.ci, static_cast<int64_t>(tap.size()),
                                  [&](int64_t r, int64_t p) { return wg[tap[p] + r * taps]; });
        }
      }
  run_phases<T>(phases, planes, g.batch, g.groups, g.co, gy, g.out_size(), gx, g.ci, size, bias);
}

// Gradient of the weight: c[p][co] += sum over positions of planes[offsets[p] + q] * gy[q][co].
template <class T, int R>
[[gnu::noinline]] void weight_tile(int64_t k, const T* a, const int64_t* offsets, const T* b, T* c,
                                   int64_t ldc) {
  constexpr int W = kLanes<T>;
  Vec<T> acc[R][2];
  const T* rows[R];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
    rows[i] = a + offsets[i];
    acc[i][0] = load<T>(c + i * ldc);
    acc[i][1] = load<T>(c + i * ldc + W);
  }
  for (int64_t q = 0; q < k; ++q) {
    const Vec<T> b0 = load<T>(b + q * 2 * W), b1 = load<T>(b + q * 2 * W + W);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const T x = rows[i][q];
      acc[i][0] += b0 * x;
      acc[i][1] += b1 * x;
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
    store<T>(c + i * ldc, acc[i][0]);
    store<T>(c + i * ldc + W, acc[i][1]);
  }
}
template <class T>
using WeightTile = void (*)(int64_t, const T*, const int64_t*, const T*, T*, int64_t);
template <class T, int... R>
WeightTile<T> pick_weight_tile(int rows, std::integer_sequence<int, R...>) {
  static constexpr WeightTile<T> fns[] = {&weight_tile<T, R + 1>...};
  return fns[rows - 1];
}

// One group of one channel each: sums of products of shifted rows of one image.
template <class T>
void depthwise_gradient(const ConvGeometry& g, const Planes& planes,
                        const std::vector<int64_t>& offsets, const T* gy, const T* x, T* sums) {
  constexpr int W = kLanes<T>;
  const int64_t pitch[2] = {planes.extent[1] * planes.extent[2], planes.extent[2]};
  for (size_t t = 0; t < offsets.size(); ++t) {
    Vec<T> s0{}, s1{}, s2{};
    T rest = 0;
    for (int64_t z = 0; z < g.out[0]; ++z)
      for (int64_t y = 0; y < g.out[1]; ++y) {
        const T* a = gy + (z * g.out[1] + y) * g.out[2];
        const T* b = x + offsets[t] + z * pitch[0] + y * pitch[1];
        int64_t i = 0;
        for (; i + 2 * W <= g.out[2]; i += 2 * W) {
          s0 += load<T>(a + i) * load<T>(b + i);
          s1 += load<T>(a + i + W) * load<T>(b + i + W);
        }
        for (; i + W <= g.out[2]; i += W) s2 += load<T>(a + i) * load<T>(b + i);
        for (; i < g.out[2]; ++i) rest += a[i] * b[i];
      }
    sums[t] += tiles::lane_sum<T>(s0 + s1 + s2) + rest;
  }
}

// What a thread needs to sum one unit of images for one group.
template <class T>
struct WeightSum {
  static constexpr int64_t NR = 2 * kLanes<T>, kSteps = 384;
  const ConvGeometry& g;
  const Planes& planes;
  const std::vector<int64_t>& offsets;
  int64_t pitch[2], length, k, panels, ldc, mr;
  bool depthwise;
  Buffer<T> source, wide, panel;

  WeightSum(const ConvGeometry& g, const Planes& planes, const std::vector<int64_t>& offsets,
            bool depthwise)
      : g(g),
        planes(planes),
        offsets(offsets),
        pitch{planes.extent[1] * planes.extent[2], planes.extent[2]},
        length(planes.images * planes.plane()),
        k(g.ci * g.taps()),
        panels(ceil_div(g.co, NR)),
        ldc(panels * NR),
        mr(std::max<int64_t>(1, ceil_div(k, ceil_div(k, kRows)))),
        depthwise(depthwise),
        source(g.ci * planes.size() + length + NR),
        wide(depthwise ? 1 : g.co * length),
        panel(kSteps * NR) {
    std::fill_n(source.get(), g.ci * planes.size() + length + NR, T(0));
    std::fill_n(wide.get(), depthwise ? 1 : g.co * length, T(0));  // stays zero between rows
  }

  // The gradient of channel c of image n at the planes' pitch.
  void widen(const T* grad, int64_t n, int64_t c) {
    T* row = wide.get() + c * length + n * planes.plane();
    for (int64_t z = 0; z < g.out[0]; ++z)
      for (int64_t y = 0; y < g.out[1]; ++y, grad += g.out[2])
        for (int64_t j = 0; j < g.out[2]; ++j) row[z * pitch[0] + y * pitch[1] + j] = grad[j];
  }

  void add(const T* gy, const T* x, int64_t first, int64_t images, int64_t group, T* sums) {
    for (int64_t n = 0; n < images; ++n) {
      const int64_t at = (first + n) * g.groups + group;
      for (int64_t c = 0; c < g.ci; ++c)
        fill_planes<T>(planes, x + (at * g.ci + c) * g.in_size(), n,
                       source.get() + c * planes.size());
      const T* grad = gy + at * g.co * g.out_size();
      if (depthwise)
        depthwise_gradient<T>(g, planes, offsets, grad, source.get() + n * planes.plane(), sums);
      else
        for (int64_t c = 0; c < g.co; ++c) widen(grad + c * g.out_size(), n, c);
    }
    if (depthwise) return;
    const int64_t end = (images - 1) * planes.plane() + (g.out[0] - 1) * pitch[0] +
                        (g.out[1] - 1) * pitch[1] + g.out[2];
    for (int64_t q = 0; q < end; q += kSteps) {
      const int64_t steps = std::min(kSteps, end - q);
      for (int64_t j = 0; j < panels; ++j) {
        const int64_t columns = std::min(NR, g.co - j * NR);
        if (columns < NR) std::fill_n(panel.get(), steps * NR, T(0));
        pack_transposed<T, T>(wide.get() + j * NR * length + q,
                              length * static_cast<int64_t>(sizeof(T)), columns, steps, NR,
                              panel.get());
        for (int64_t p = 0; p < k; p += mr)
          pick_weight_tile<T>(static_cast<int>(std::min(mr, k - p)),
                              std::make_integer_sequence<int, kRows>{})(
              steps, source.get() + q, offsets.data() + p, panel.get(), sums + p * ldc + j * NR,
              ldc);
      }
    }
  }
};

template <class T>
void weight_gradient(const ConvGeometry& g, const T* gy, const T* x, T* gw) {
  const Planes planes = input_planes(g);
  const std::vector<int64_t> offsets = input_offsets(g, planes);
  const int64_t k = g.ci * g.taps(), share = planes.images, units = ceil_div(g.batch, share);
  const bool depthwise = g.co == 1 && g.ci == 1;
  const int64_t ldc = depthwise ? 1 : round_up(g.co, WeightSum<T>::NR), per_group = k * ldc;
  // Work is shared out by groups when there are many, else by images with one sum per thread.
  const bool by_groups = g.groups >= num_threads();
  const int64_t parts = by_groups || in_parallel() ? 1 : std::min<int64_t>(num_threads(), units);
  const int64_t sums_size = g.groups * per_group, shares = by_groups ? g.groups : parts;
  Buffer<T> sums(sums_size * parts);
  std::fill_n(sums.get(), sums_size * parts, T(0));
  parallel_for(0, shares, 1, [&](int64_t from, int64_t to) {
    WeightSum<T> sum(g, planes, offsets, depthwise);
    for (int64_t s = from; s < to; ++s) {
      const int64_t u0 = by_groups ? 0 : units * s / parts,
                    u1 = by_groups ? units : units * (s + 1) / parts;
      const int64_t g0 = by_groups ? s : 0, g1 = by_groups ? s + 1 : g.groups;
      T* mine = sums.get() + (by_groups ? 0 : sums_size * s);
      for (int64_t u = u0; u < u1; ++u)
        for (int64_t i = g0; i < g1; ++i)
          sum.add(gy, x, u * share, std::min(share, g.batch - u * share), i, mine + i * per_group);
    }
  });
  parallel_for(0, g.groups * g.co, std::max<int64_t>(1, kGrain / k), [&](int64_t from, int64_t to) {
    for (int64_t c = from; c < to; ++c)
      for (int64_t p = 0; p < k; ++p) {
        T total = 0;
        for (int64_t t = 0; t < parts; ++t)
          total += sums.get()[t * sums_size + c / g.co * per_group + p * ldc + c % g.co];
        gw[c * k + p] = total;
      }
  });
}

template <class F>
void by_type(DType d, const F& f) {
  if (d == DType::Float32) return f(float());
  if (d == DType::Float64) return f(double());
  f(uint64_t());
}

}  // namespace

void conv_forward(DType d, const ConvGeometry& g, const void* x, const void* w, const void* bias,
                  void* y) {
  by_type(d, [&]<class T>(T) {
    forward<T>(g, static_cast<const T*>(x), static_cast<const T*>(w), static_cast<const T*>(bias),
               static_cast<T*>(y));
  });
}

void conv_input(DType d, const ConvGeometry& g, const void* gy, const void* w, const void* bias,
                void* gx) {
  by_type(d, [&]<class T>(T) {
    input_gradient<T>(g, static_cast<const T*>(gy), static_cast<const T*>(w),
                      static_cast<const T*>(bias), static_cast<T*>(gx));
  });
}

void conv_weight(DType d, const ConvGeometry& g, const void* gy, const void* x, void* gw) {
  by_type(d, [&]<class T>(T) {
    weight_gradient<T>(g, static_cast<const T*>(gy), static_cast<const T*>(x), static_cast<T*>(gw));
  });
}

}  // namespace flambeau::kernels::FB_ISA
