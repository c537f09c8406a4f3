// Attention on tensors: dtypes and layouts for attention_blocks.h. Half formats compute in float:
// converted by blocks in the forward pass, as a whole in the backward pass. Bfloat16 stays what it
// is where the machine has tiles for it.
#include <algorithm>

#include "gen/kernels.h"
#include "kernels/attention_blocks.h"
#include "kernels/copy.h"
#include "kernels/providers/gemm.h"

namespace flambeau::kernels {
namespace {

// x in the computing dtype, with a dense last dimension.
Tensor usable(const Tensor& x, DType d) {
  Tensor y = to_dtype(x, d);
  return y.sizes()[3] <= 1 || y.strides()[3] == 1 ? y : contiguous(y);
}
AttentionOperand operand(const Tensor& x) {
  return {x.data_ptr(), x.strides()[0], x.strides()[1], x.strides()[2]};
}

// Are heads multiplied by tiles? Narrower ones would leave most of a tile empty.
bool are_tiled(const Tensor& query, const Tensor& value) {
  return query.dtype() == DType::BFloat16 && has_amx() &&
         std::min(query.sizes()[3], value.sizes()[3]) >= kTileLanes;
}

struct Prepared {
  AttentionCall call;
  Tensor q, k, v, mask;
  Prepared(const Tensor& query, const Tensor& key, const Tensor& value, const OptTensor& attn_mask,
           bool causal, double scale, DType stored)
      : q(usable(query, stored)), k(usable(key, stored)), v(usable(value, stored)) {
    call.dtype = opmath(query.dtype()), call.stored = stored;
    call.tiled = are_tiled(query, value);
    call.batch = q.sizes()[0], call.heads = q.sizes()[1], call.kv_heads = k.sizes()[1];
    call.queries = q.sizes()[2], call.keys = k.sizes()[2], call.dim = q.sizes()[3],
    call.value_dim = v.sizes()[3];
    call.q = operand(q), call.k = operand(k), call.v = operand(v);
    call.causal = causal, call.scale = scale;
    if (!attn_mask) return;
    call.mask_is_bool = attn_mask->dtype() == DType::Bool;
    mask = call.mask_is_bool ? *attn_mask : to_dtype(*attn_mask, call.dtype);
    call.mask = mask.data_ptr();
    // Aligned at the last dimension; absent and single dimensions repeat.
    for (int64_t i = 0; i < mask.dim(); ++i)
      call.mask_stride[4 - mask.dim() + i] = mask.sizes()[i] == 1 ? 0 : mask.strides()[i];
  }
};

}  // namespace

void attention_fused(Tensor& out, Tensor& lse, const Tensor& query, const Tensor& key,
                     const Tensor& value, const OptTensor& mask, bool causal, double scale) {
  if (out.numel() == 0) return;
  Prepared p(query, key, value, mask, causal, scale, query.dtype());
  const bool direct = out.dtype() == p.call.stored && out.strides()[3] == 1;
  Tensor to = direct ? out : empty(out.sizes(), p.call.stored);
  p.call.out = operand(to);
  p.call.lse = lse.data_ptr();
  FB_ISA_DISPATCH(attention_forward)(p.call);
  if (!direct) copy(out, to);
}

void attention_fused_backward(Tensor& gq, Tensor& gk, Tensor& gv, const Tensor& grad,
                              const Tensor& query, const Tensor& key, const Tensor& value,
                              const OptTensor& mask, const Tensor& out, const Tensor& lse,
                              bool causal, double scale) {
  if (grad.numel() == 0 || key.numel() == 0) {
    for (Tensor* t : {&gq, &gk, &gv}) fill_zero(*t);
    return;
  }
  const DType stored = are_tiled(query, value) ? query.dtype() : opmath(query.dtype());
  Prepared p(query, key, value, mask, causal, scale, stored);
  const DType d = p.call.dtype;
  const Tensor go = usable(grad, stored), o = usable(out, stored), sums = contiguous(lse);
  AttentionGradCall c{p.call, {}, {}, {}, {}};
  auto target = [&](Tensor& t) {
    return t.dtype() == d && t.strides()[3] == 1 ? t : empty(t.sizes(), d);
  };
  Tensor q = target(gq), k = target(gk), v = target(gv);
  c.out = operand(o), c.go = operand(go), c.gq = operand(q), c.gk = operand(k), c.gv = operand(v);
  c.lse = sums.data_ptr();
  FB_ISA_DISPATCH(attention_backward)(c);
  if (!q.is_same(gq)) copy(gq, q);
  if (!k.is_same(gk)) copy(gk, k);
  if (!v.is_same(gv)) copy(gv, v);
}

}  // namespace flambeau::kernels
