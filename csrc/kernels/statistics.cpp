// Histograms: counts of points in the boxes of a grid whose edges may be uneven.
#include <algorithm>

#include "gen/kernels.h"
#include "kernels/copy.h"

namespace flambeau::kernels {
namespace {

// Which bin x falls into; -1: none. Edges are ascending, the last bin has both its edges.
template <class T>
int64_t bin_of(T x, const T* edges, int64_t bins) {
  if (!(x >= edges[0] && x <= edges[bins])) return -1;
  return std::min<int64_t>(std::upper_bound(edges, edges + bins + 1, x) - edges - 1, bins - 1);
}

template <class T>
void count(const Tensor& rows, const Tensors& edges, const Tensor* weight, double* counts) {
  int64_t n = rows.size(0), axes = static_cast<int64_t>(edges.size());
  const T* x = rows.data<T>();
  for (int64_t i = 0; i < n; ++i, x += axes) {
    int64_t place = 0;
    for (int64_t d = 0; d < axes && place >= 0; ++d) {
      int64_t bins = edges[d].numel() - 1, bin = bin_of(x[d], edges[d].data<T>(), bins);
      place = bin < 0 ? -1 : place * bins + bin;
    }
    if (place >= 0) counts[place] += weight ? static_cast<double>(weight->data<T>()[i]) : 1.0;
  }
}

}  // namespace

Tensor count_in_bins(const Tensor& input, const Tensors& edges, const OptTensor& weight) {
  Tensor rows = contiguous(input);
  Tensors dense;
  Ints shape;
  for (const Tensor& e : edges) {
    dense.push_back(contiguous(e));
    shape.push_back(e.numel() - 1);
  }
  Tensor counts = empty(shape, DType::Float64);
  fill_zero(counts);
  Tensor w = weight ? contiguous(*weight) : Tensor();
  const Tensor* weights = weight ? &w : nullptr;
  if (rows.dtype() == DType::Float32)
    count<float>(rows, dense, weights, counts.data<double>());
  else
    count<double>(rows, dense, weights, counts.data<double>());
  return to_dtype(counts, rows.dtype());
}

}  // namespace flambeau::kernels
