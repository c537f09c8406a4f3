// Kernels of flambeau/ops/indexing_masked.py that count true entries: what a mask keeps, where it
// spreads, where entries are not zero. Loops of one thread: kernels/selection.h.
#include <algorithm>

#include "core/parallel.h"
#include "gen/kernels.h"
#include "kernels/copy.h"
#include "kernels/selection.h"

namespace flambeau::kernels {
namespace {

Tensor expanded(const Tensor& x, const Ints& shape) {  // broadcast alias
  Ints strides(shape.size());
  size_t lead = shape.size() - x.sizes().size();
  for (size_t i = 0; i < x.sizes().size(); ++i)
    strides[lead + i] = x.sizes()[i] == 1 ? 0 : x.strides()[i];
  return alias(x, shape, strides, x.offset());
}

// A contiguous mask cut into blocks, and how many entries are true before each: every block's part
// of what the mask packs is known before threads write it.
struct MaskBlocks {
  static constexpr int64_t kBlock = 1 << 14;
  const uint8_t* on;
  int64_t n, blocks = (n + kBlock - 1) / kBlock;
  std::vector<int64_t> first = std::vector<int64_t>(blocks + 1, 0);

  explicit MaskBlocks(const Tensor& mask) : on(mask.data<uint8_t>()), n(mask.numel()) {
    parallel_for(0, blocks, 8, [&](int64_t a, int64_t b) {
      for (int64_t i = a; i < b; ++i)
        first[i + 1] = FB_ISA_DISPATCH(count_true)(on + i * kBlock, length(i));
    });
    for (int64_t i = 0; i < blocks; ++i) first[i + 1] += first[i];
  }
  int64_t length(int64_t i) const { return std::min(kBlock, n - i * kBlock); }
  int64_t total() const { return first[blocks]; }

  // f(start of a block, its length, true entries before it, true entries in it), over threads.
  template <class F>
  void each(const F& f) const {
    parallel_for(0, blocks, 2, [&](int64_t a, int64_t b) {
      for (int64_t i = a; i < b; ++i) f(i * kBlock, length(i), first[i], first[i + 1] - first[i]);
    });
  }
};
}  // namespace

Tensor masked_select(const Tensor& input, const Tensor& mask) {
  Ints shape = broadcast_shapes(input.sizes(), mask.sizes());
  Tensor x = contiguous(expanded(input, shape)), m = contiguous(expanded(mask, shape));
  MaskBlocks b(m);
  Tensor out = empty({b.total()}, input.dtype());
  const int64_t size = input.itemsize();
  const char* in = x.data<char>();
  char* o = out.data<char>();
  b.each([&](int64_t from, int64_t n, int64_t before, int64_t kept) {
    FB_ISA_DISPATCH(pack_masked)
    (int(size), in + from * size, b.on + from, n, o + before * size, kept);
  });
  return out;
}

void masked_scatter(Tensor& out, const Tensor& input, const Tensor& mask, const Tensor& source) {
  Tensor m = contiguous(expanded(mask, out.sizes())), s = contiguous(source);
  MaskBlocks b(m);
  FB_CHECK(
      b.total() <= s.numel(),
      "masked_scatter: expected self and source to have same dtypes and source to hold at least ",
      b.total(), " elements (one for each true entry of mask), got ", s.numel());
  if (!out.is_same(input)) copy(out, expanded(input, out.sizes()));
  if (out.numel() == 0) return;
  Tensor dense = contiguous(out);
  const int64_t size = out.itemsize();
  const char* x = s.data<char>();
  char* o = dense.data<char>();
  b.each([&](int64_t at, int64_t n, int64_t before, int64_t) {
    FB_ISA_DISPATCH(spread_masked)(int(size), x + before * size, b.on + at, n, o + at * size);
  });
  if (!dense.is_same(out)) copy(out, dense);
}

Tensor nonzero(const Tensor& input) {
  Tensor mask = contiguous(to_dtype(input, DType::Bool));
  const int64_t rank = mask.dim();
  MaskBlocks b(mask);
  const int64_t count = b.total();
  // Laid out column by column, so that each dim's places are contiguous.
  Tensor out = empty_strided({count, rank}, {1, std::max<int64_t>(count, 1)}, DType::Int64);
  if (rank == 0) return out;
  int64_t* o = out.data<int64_t>();
  b.each([&](int64_t from, int64_t n, int64_t before, int64_t kept) {
    int64_t* at = o + (rank - 1) * count + before;
    FB_ISA_DISPATCH(true_places)(b.on + from, n, from, at, kept);
    for (int64_t d = rank - 1; d > 0; --d, at -= count)
      FB_ISA_DISPATCH(split_places)(at, at - count, kept, mask.sizes()[d]);
  });
  return out;
}

}  // namespace flambeau::kernels
