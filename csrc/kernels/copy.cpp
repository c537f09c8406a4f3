#include "kernels/copy.h"

#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/devices.h"
#include "kernels/move.h"
#include "kernels/tiles.h"

namespace flambeau::kernels {

const char* const kOverlap =
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
    "single memory location. Please clone() the tensor before performing the operation.";
namespace {

constexpr int64_t kTile = 2048;           // elements of a tile
constexpr int64_t kBytesGrain = 1 << 17;  // bytes worth a thread

bool wants_streaming(const Tensor& dst, const Tensor& src) {
  return dst.numel() * dst.itemsize() > streaming_threshold() && !dst.shares_storage(src);
}

// Elements of one dtype from one layout to another, both dense over the nest's only dim.
void copy_run(const LoopNest& nest, const Tensor& dst, const Tensor& src, bool streaming) {
  auto* to = static_cast<char*>(dst.data_ptr());
  auto* from = static_cast<const char*>(src.data_ptr());
  int64_t a = dst.itemsize(), b = src.itemsize();
  auto run = FB_ISA_DISPATCH(converter)(int(src.dtype()), int(dst.dtype()));
  auto put = FB_ISA_DISPATCH(stream);
  parallel_for(0, (nest.numel + kTile - 1) / kTile, std::max<int64_t>(1, kBytesGrain / (kTile * a)),
               [&](int64_t first, int64_t last) {
                 int64_t begin = first * kTile, end = std::min(nest.numel, last * kTile);
                 if (!streaming) return run(from + begin * b, to + begin * a, end - begin);
                 alignas(64) char block[kTile * 16];
                 for (int64_t i = begin; i < end; i += kTile) {
                   int64_t n = std::min(kTile, end - i);
                   run(from + i * b, block, n);
                   put(to + i * a, block, n * a, {});
                 }
                 stream_fence();
               });
}

void copy_tiles(const LoopNest& nest, const Tensor& dst, const Tensor& src, bool streaming) {
  auto* to = static_cast<char*>(dst.data_ptr());
  auto* from = static_cast<char*>(src.data_ptr());
  int64_t a = dst.itemsize(), b = src.itemsize();
  bool same = dst.dtype() == src.dtype();
  const int64_t *sd = nest.strides[0], *ss = nest.strides[1];
  int64_t dr = nest.ndim > 1 ? sd[1] : 0, sr = nest.ndim > 1 ? ss[1] : 0;
  bool dense_rows = sd[0] == a;
  Tiles tiles = make_tiles(nest, kTile, runs_across(nest));
  auto run = FB_ISA_DISPATCH(converter)(int(src.dtype()), int(dst.dtype()));
  auto move = FB_ISA_DISPATCH(move_tile);
  auto put = FB_ISA_DISPATCH(stream);
  streaming = streaming && dense_rows && tiles.cols * a >= 128;
  int64_t grain = std::max<int64_t>(1, kBytesGrain / (tiles.rows * tiles.cols * a));
  parallel_for(0, tiles.count(), grain, [&](int64_t first, int64_t last) {
    alignas(64) char raw[kTile * 16], converted[kTile * 16];
    walk_tiles(nest, tiles, first, last, [&](const Tile& t) {
      Lattice out{to + t.offsets[0], dr, sd[0]}, in{from + t.offsets[1], sr, ss[0]};
      if (same && !streaming) return move(int(a), in, out, t.rows, t.cols);
      bool dense_source = ss[0] == b && (t.rows == 1 || sr == t.cols * b);
      if (!dense_source) {
        move(int(b), in, {raw, t.cols * b, b}, t.rows, t.cols);
        in.data = raw;
      }
      char* ready = in.data;
      if (!same) {
        run(in.data, converted, t.rows * t.cols);
        ready = converted;
      }
      if (streaming)
        for (int64_t r = 0; r < t.rows; ++r)
          put(out.data + r * dr, ready + r * t.cols * a, t.cols * a, {});
      else
        move(int(a), {ready, t.cols * a, a}, out, t.rows, t.cols);
    });
    if (streaming) stream_fence();
  });
}

// The number as bytes of a dtype; Error(Runtime) when it cannot hold it.
void number_bytes(const Scalar& value, DType dtype, void* out) {
  visit(dtype, [&]<class T>() {
    T x = value.to<T>();
    std::memcpy(out, &x, sizeof x);
  });
}

void fill_dense(char* to, const char* pattern16, int64_t bytes) {
  auto put = FB_ISA_DISPATCH(fill_value);
  constexpr int64_t kUnit = 4096;
  parallel_for(0, (bytes + kUnit - 1) / kUnit, kBytesGrain / kUnit,
               [&](int64_t first, int64_t last) {
                 int64_t begin = first * kUnit, end = std::min(bytes, last * kUnit);
                 put(to + begin, pattern16, end - begin);
               });
}

}  // namespace

// Few threads are held up by their own buffers of lines, not by the bus, and a store past the
// caches keeps such a buffer for longer: with two, exp of 16 M floats takes 12.5 ms so and 7
// without. On many it spares the bus the reading of what is overwritten.
int64_t streaming_threshold() {
  constexpr int kMany = 8;
  if (num_threads() < kMany) return std::numeric_limits<int64_t>::max();
  static const int64_t bytes = [] {
#if defined(_SC_LEVEL3_CACHE_SIZE)
    int64_t cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
#else
    int64_t cache = 0;
#endif
    return (cache > 0 ? cache : int64_t{32} << 20) / 2;
  }();
  return bytes;
}

void copy(const Tensor& dst, const Tensor& src) {
  if (dst.is_same(src) || dst.numel() == 0) {
    if (src.sizes() != dst.sizes()) broadcast_shapes(dst.sizes(), src.sizes());
    return;
  }
  if (src.sizes() != dst.sizes())
    FB_CHECK(broadcast_shapes(dst.sizes(), src.sizes()) == dst.sizes(), "copy_: output with shape ",
             dst.sizes(), " doesn't match the broadcast shape ",
             broadcast_shapes(dst.sizes(), src.sizes()));
  if (!on_cpu(dst)) return;
  if (!on_cpu(src)) fail_off_cpu({src});
  if (overlap(dst, src) == Overlap::Partial) return copy(dst, clone(src, MemoryFormat::Contiguous));
  LoopNest nest(dst.sizes());
  nest.add(dst);
  nest.add(src);
  nest.order();
  nest.merge();
  bool streaming = wants_streaming(dst, src);
  bool runs = nest.ndim == 1 && nest.strides[0][0] == dst.itemsize() &&
              nest.strides[1][0] == src.itemsize();
  if (runs && dst.dtype() == src.dtype())
    copy_bytes(dst.data_ptr(), src.data_ptr(), nest.numel * dst.itemsize());
  else if (runs)
    copy_run(nest, dst, src, streaming);
  else
    copy_tiles(nest, dst, src, streaming);
}

void fill(const Tensor& x, const Scalar& value) {
  alignas(16) char pattern[16];
  number_bytes(value, x.dtype(), pattern);
  int64_t size = x.itemsize();
  for (int64_t i = size; i < 16; i += size) std::memcpy(pattern + i, pattern, size);
  if (x.numel() == 0 || !on_cpu(x)) return;
  if (x.is_dense()) return fill_dense(static_cast<char*>(x.data_ptr()), pattern, x.numel() * size);
  Tensor one = empty({}, x.dtype());
  std::memcpy(one.data_ptr(), pattern, size);
  copy(x, one);
}

void fill_zero(const Tensor& x) {
  if (!on_cpu(x)) return;
  if (x.is_dense())
    zero_bytes(x.data_ptr(), x.numel() * x.itemsize());
  else
    fill(x, 0);
}

Tensor contiguous(const Tensor& x, MemoryFormat format) {
  if (format == MemoryFormat::Preserve || x.is_contiguous(format)) return x;
  return clone(x, format);
}

Tensor to_dtype(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor out = empty_like(x, dtype);
  copy(out, x);
  return out;
}

Tensor clone(const Tensor& x, MemoryFormat format) {
  Tensor out = empty_like(x, {}, format);
  copy(out, x);
  return out;
}

double held(DType dtype, double x) {
  alignas(16) char narrow[16];
  convert(DType::Float64, &x, dtype, narrow, 1);
  convert(dtype, narrow, DType::Float64, &x, 1);
  return x;
}

void convert(DType from, const void* src, DType to, void* dst, int64_t n) {
  FB_ISA_DISPATCH(converter)(int(from), int(to))(src, dst, n);
}

void copy_bytes(void* dst, const void* src, int64_t bytes) {
  if (bytes <= kBytesGrain) {
    std::memcpy(dst, src, bytes);
    return;
  }
  auto put = FB_ISA_DISPATCH(stream);
  bool streaming = bytes > streaming_threshold();
  constexpr int64_t kUnit = 4096;
  parallel_for(0, (bytes + kUnit - 1) / kUnit, kBytesGrain / kUnit,
               [&](int64_t first, int64_t last) {
                 int64_t begin = first * kUnit, n = std::min(bytes, last * kUnit) - begin;
                 auto* to = static_cast<char*>(dst) + begin;
                 auto* from = static_cast<const char*>(src) + begin;
                 if (streaming) {
                   put(to, from, n, {});
                   stream_fence();
                 } else {
                   std::memcpy(to, from, n);
                 }
               });
}

void zero_bytes(void* dst, int64_t bytes) {
  if (bytes <= kBytesGrain) {
    std::memset(dst, 0, bytes);
    return;
  }
  const char zeros[16] = {};
  fill_dense(static_cast<char*>(dst), zeros, bytes);
}

void stream_bytes(void* dst, const void* src, int64_t bytes) {
  FB_ISA_DISPATCH(stream)(dst, src, bytes, {});
  stream_fence();
}

}  // namespace flambeau::kernels
