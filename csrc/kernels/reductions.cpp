// Kernels of flambeau/ops/reduction.py over the driver of reduce.h: which loop, computed in which
// type.
#include "gen/kernels.h"
#include "kernels/copy.h"
#include "kernels/reduce.h"

namespace flambeau::kernels {
namespace {

Ints list(const std::optional<Ints>& dim) {
  return dim ? *dim : Ints();
}

// Sums and products convert to the result's type first; half formats are summed in float32.
void reduce_as(Reduction op, Tensor& out, const Tensor& input, const Ints& dims, bool keepdim) {
  bool widens = input.dtype() == out.dtype() ||
                (is_integral(input.dtype(), true) && out.dtype() == DType::Int64) ||
                (is_floating_point(input.dtype()) && is_floating_point(out.dtype()) &&
                 out.itemsize() >= input.itemsize());
  reduce(op, out.dtype(), widens ? input : to_dtype(input, out.dtype()), dims, keepdim, 0, out);
}

void logical(Reduction op, Tensor& out, const Tensor& input, const std::optional<Ints>& dim,
             bool keepdim) {
  if (dim && dim->empty() && input.dim() > 0)
    copy(out, to_dtype(input, DType::Bool));  // over no dim: each entry
  else
    reduce(op, DType::Bool, input, list(dim), keepdim, 0, out);
}

// Places (and the values there) along one dim, or in the whole tensor read row by row.
void positions(Reduction op, const Tensor& input, std::optional<int64_t> dim, bool keepdim,
               const Tensor& values, const Tensor& places) {
  if (dim)
    reduce(op, input.dtype(), input, {*dim}, keepdim, 0, values, places);
  else
    reduce(op, input.dtype(), contiguous(input), {}, keepdim, 0, values, places);
}

}  // namespace

void sum(Tensor& out, const Tensor& input, const std::optional<Ints>& dim, bool keepdim,
         std::optional<DType>) {
  reduce_as(Reduction::Sum, out, input, list(dim), keepdim);
}
void mean(Tensor& out, const Tensor& input, const std::optional<Ints>& dim, bool keepdim,
          std::optional<DType>) {
  reduce_as(Reduction::Mean, out, input, list(dim), keepdim);
}
void prod(Tensor& out, const Tensor& input, std::optional<DType>) {
  reduce_as(Reduction::Prod, out, input, {}, false);
}
void prod(Tensor& out, const Tensor& input, int64_t dim, bool keepdim, std::optional<DType>) {
  reduce_as(Reduction::Prod, out, input, {dim}, keepdim);
}

void any(Tensor& out, const Tensor& input, const std::optional<Ints>& dim, bool keepdim) {
  logical(Reduction::Any, out, input, dim, keepdim);
}
void all(Tensor& out, const Tensor& input, const std::optional<Ints>& dim, bool keepdim) {
  logical(Reduction::All, out, input, dim, keepdim);
}

void amax(Tensor& out, const Tensor& input, const Ints& dim, bool keepdim) {
  reduce(Reduction::Max, input.dtype(), input, dim, keepdim, 0, out);
}
void amin(Tensor& out, const Tensor& input, const Ints& dim, bool keepdim) {
  reduce(Reduction::Min, input.dtype(), input, dim, keepdim, 0, out);
}

void argmax(Tensor& out, const Tensor& input, std::optional<int64_t> dim, bool keepdim) {
  positions(Reduction::ArgMax, input, dim, keepdim, empty(out.sizes(), input.dtype()), out);
}
void argmin(Tensor& out, const Tensor& input, std::optional<int64_t> dim, bool keepdim) {
  positions(Reduction::ArgMin, input, dim, keepdim, empty(out.sizes(), input.dtype()), out);
}

void max_with_place(Tensor& values, Tensor& places, const Tensor& input, int64_t dim,
                    bool keepdim) {
  positions(Reduction::ArgMax, input, dim, keepdim, values, places);
}
void min_with_place(Tensor& values, Tensor& places, const Tensor& input, int64_t dim,
                    bool keepdim) {
  positions(Reduction::ArgMin, input, dim, keepdim, values, places);
}

void nansum(Tensor& out, const Tensor& input, const std::optional<Ints>& dim, bool keepdim,
            std::optional<DType>) {
  bool has_nan = is_floating_point(out.dtype());
  reduce_as(has_nan ? Reduction::NanSum : Reduction::Sum, out, input, list(dim), keepdim);
}
void count_nonzero(Tensor& out, const Tensor& input, const std::optional<Ints>& dim) {
  reduce(Reduction::Count, DType::Bool, input, list(dim), false, 0, out);
}

void var_mean(Tensor& var, Tensor& mean, const Tensor& input, const std::optional<Ints>& dim,
              double correction, bool keepdim) {
  reduce(Reduction::Moments, input.dtype(), input, list(dim), keepdim, correction, var, mean);
}
void std_mean(Tensor& std, Tensor& mean, const Tensor& input, const std::optional<Ints>& dim,
              double correction, bool keepdim) {
  reduce(Reduction::Deviation, input.dtype(), input, list(dim), keepdim, correction, std, mean);
}
void logsumexp(Tensor& out, const Tensor& input, const Ints& dim, bool keepdim) {
  reduce(Reduction::LogSumExp, input.dtype(), input, dim, keepdim, 0, out);
}

}  // namespace flambeau::kernels
