// Recurrent layers on tensors: states, dtypes and the gradient of the weight around rnn_steps.h.
#include <vector>

#include "gen/kernels.h"
#include "kernels/copy.h"
#include "kernels/providers/blas.h"
#include "kernels/rnn_steps.h"

namespace flambeau::kernels {
namespace {

Tensor working(const Tensor& x, DType d) {
  return contiguous(to_dtype(x, d));
}

// A dense tensor that f fills, copied to `out` if it is another.
struct Target {
  Tensor out, dense;
  Target(const Tensor& out, DType d)
      : out(out), dense(out.dtype() == d && out.is_contiguous() ? out : empty(out.sizes(), d)) {}
  void* data() const { return dense.data_ptr(); }
  void finish() const {
    if (!dense.is_same(out)) copy(out, dense);
  }
};

RnnCall base_call(DType d, const Tensor& h0, const Ints& sizes, int64_t mode, bool reverse) {
  RnnCall c{};
  c.dtype = d, c.mode = mode, c.reverse = reverse;
  c.steps = static_cast<int64_t>(sizes.size()), c.batch = h0.sizes()[0], c.hidden = h0.sizes()[1];
  c.batch_sizes = sizes.data();
  return c;
}

}  // namespace

void rnn_layer(Tensor& y, Tensor& hn, Tensor& cn, Tensor& saved, const Tensor& x, const Tensor& h0,
               const OptTensor& c0, const Tensor& w, const OptTensor& b, const Ints& sizes,
               int64_t mode, bool reverse) {
  const DType d = opmath(x.dtype());
  const Tensor xs = working(x, d), ws = working(w, d);
  Tensor bs;
  if (b) bs = working(*b, d);
  Target out(y, d), h(hn, d), c(cn, d);
  copy(h.dense, h0);
  if (c0) copy(c.dense, *c0);
  RnnForward call{};
  static_cast<RnnCall&>(call) = base_call(d, h0, sizes, mode, reverse);
  call.x = xs.data_ptr(), call.h = h.data(), call.c = c0 ? c.data() : nullptr;
  call.w = ws.data_ptr(), call.b = b ? bs.data_ptr() : nullptr;
  call.y = out.data(), call.saved = saved.data_ptr();
  if (h0.numel()) FB_ISA_DISPATCH(rnn_forward)(call);
  out.finish(), h.finish(), c.finish();
}

void rnn_layer_backward(Tensor& gx, Tensor& gh0, Tensor& gc0, Tensor& gw, Tensor& gb,
                        const Tensor& gy, const Tensor& ghn, const Tensor& gcn, const Tensor& y,
                        const Tensor& saved, const Tensor& h0, const OptTensor& c0, const Tensor& w,
                        const Ints& sizes, int64_t mode, bool reverse) {
  const DType d = opmath(y.dtype());
  const int64_t rows = y.sizes()[0], hidden = h0.sizes()[1], width = rnn_gates(mode) * hidden;
  if (h0.numel() == 0 || rows == 0) {
    for (Tensor* t : {&gx, &gw, &gb}) fill_zero(*t);
    copy(gh0, ghn);
    if (c0) copy(gc0, gcn);
    return;
  }
  const Tensor ys = working(y, d), gys = working(gy, d), hs = working(h0, d), ws = working(w, d);
  Tensor cs;
  if (c0) cs = working(*c0, d);
  Target x(gx, d), gh(gh0, d), gc(gc0, d), weight(gw, d), bias(gb, d);
  copy(gh.dense, ghn);
  if (c0) copy(gc.dense, gcn);
  const Tensor gates = mode == kGru ? empty({rows, width}, d) : x.dense,
               previous = empty({rows, hidden}, d);
  RnnBackward call{};
  static_cast<RnnCall&>(call) = base_call(d, h0, sizes, mode, reverse);
  call.w = ws.data_ptr(), call.y = ys.data_ptr(), call.saved = saved.data_ptr();
  call.gy = gys.data_ptr(), call.h0 = hs.data_ptr(), call.c0 = c0 ? cs.data_ptr() : nullptr;
  call.gx = x.data(), call.gh_gates = gates.data_ptr(), call.previous = previous.data_ptr();
  call.gh = gh.data(), call.gc = c0 ? gc.data() : nullptr;
  FB_ISA_DISPATCH(rnn_backward)(call);
  // gw = gates^T previous, gb = gates^T 1.
  gemm({d,
        width,
        hidden,
        rows,
        {gates.data_ptr(), 1, width},
        {previous.data_ptr(), hidden, 1},
        weight.data(),
        hidden});
  Tensor ones = empty({rows}, d);
  fill(ones, Scalar(1));
  gemm({d, width, 1, rows, {gates.data_ptr(), 1, width}, {ones.data_ptr(), 1, 1}, bias.data(), 1});
  x.finish(), gh.finish(), weight.finish(), bias.finish();
  if (c0) gc.finish();
}

}  // namespace flambeau::kernels
