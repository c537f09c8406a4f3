// Attention: the arithmetic of Python's multi_head_attention_forward, step by step.
#include "flambeau/nn/attention.h"

#include "api/nn/layers.h"

namespace flambeau::nn {

namespace {

// A mask as numbers to add to scores; True of a boolean one forbids.
Tensor as_addend(const Tensor& mask, const char* name, DType dtype) {
  if (!mask.defined()) return mask;
  if (mask.dtype() == DType::Bool)
    return ops::masked_fill(ops::zeros(mask.sizes(), dtype), mask, wrapped_number(-INFINITY));
  FB_CHECK(mask.is_floating_point(), "only bool and floating types of ", name,
           " are supported, got ", mask.dtype());
  return mask;
}

struct Projected {
  Tensor q, k, v;
};
Projected project(const Tensor& query, const Tensor& key, const Tensor& value,
                  const functional::MultiheadAttentionForwardFuncOptions& o) {
  Tensor wq, wk, wv;
  if (!o.use_separate_proj_weight()) {
    if (key.is_same(value) && query.is_same(key)) {
      auto parts =
          ops::chunk(ops::linear(query, o.in_proj_weight(), given(o.in_proj_bias())), 3, -1);
      return {parts[0], parts[1], parts[2]};
    }
    auto parts = ops::chunk(o.in_proj_weight(), 3, 0);
    wq = parts[0], wk = parts[1], wv = parts[2];
  } else {
    wq = o.q_proj_weight(), wk = o.k_proj_weight(), wv = o.v_proj_weight();
  }
  Tensor bq, bk, bv;
  if (o.in_proj_bias().defined()) {
    auto parts = ops::chunk(o.in_proj_bias(), 3, 0);
    bq = parts[0], bk = parts[1], bv = parts[2];
  }
  return {ops::linear(query, wq, given(bq)), ops::linear(key, wk, given(bk)),
          ops::linear(value, wv, given(bv))};
}

Tensor check_mask(const Tensor& mask, int64_t length, int64_t source, int64_t heads) {
  if (mask.dim() == 2) {
    FB_CHECK(mask.size(0) == length && mask.size(1) == source, "The shape of the 2D attn_mask is ",
             mask.sizes(), ", but should be (", length, ", ", source, ").");
    return ops::unsqueeze(mask, 0);
  }
  FB_CHECK(mask.dim() == 3, "attn_mask's dimension ", mask.dim(), " is not supported");
  FB_CHECK(mask.size(0) == heads && mask.size(1) == length && mask.size(2) == source,
           "The shape of the 3D attn_mask is ", mask.sizes(), ", but should be (", heads, ", ",
           length, ", ", source, ").");
  return mask;
}

// One more key, which is seen.
Tensor one_more(const Tensor& mask) {
  return mask.defined() ? ops::constant_pad_nd(mask, Ints{0, 1}, Scalar(int64_t{0})) : mask;
}

// (S, N, E) as (N * heads, S, head), or the tensor given instead of it.
Tensor in_heads(const Tensor& x, const Tensor& instead, int64_t count, int64_t head,
                const char* name) {
  if (!instead.defined())
    return ops::transpose(ops::reshape(x, Ints{x.size(0), count, head}), 0, 1);
  FB_CHECK(instead.size(0) == count && instead.size(2) == head, "expecting static_", name,
           " of sizes (", count, ", *, ", head, "), but got ", instead.sizes());
  return instead;
}

}  // namespace

namespace functional {

std::tuple<Tensor, Tensor> multi_head_attention_forward(
    const Tensor& query_, const Tensor& key_, const Tensor& value_,
    const MultiheadAttentionForwardFuncOptions& o) {
  Tensor query = query_, key = key_, value = value_;
  Tensor key_padding = o.key_padding_mask();
  FB_CHECK(query.dim() == 2 || query.dim() == 3,
           "query should be unbatched 2D or batched 3D tensor but received ", query.dim(),
           "-D query tensor");
  const bool batched = query.dim() == 3;
  const char* kind = batched ? "batched 3-D" : "unbatched 2-D";
  FB_CHECK(key.dim() == query.dim() && value.dim() == query.dim(), "For ", kind,
           " `query`, expected `key` and `value` to be ", query.dim(), "-D but found ", key.dim(),
           "-D and ", value.dim(), "-D tensors respectively");
  FB_CHECK(!key_padding.defined() || key_padding.dim() == query.dim() - 1, "For ", kind,
           " `query`, expected `key_padding_mask` to be undefined or ", query.dim() - 1,
           "-D but found ", key_padding.dim(), "-D tensor instead");
  FB_CHECK(!o.is_causal() || o.attn_mask().defined(),
           "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
           "method `generate_square_subsequent_mask` to create this mask.");
  if (!batched) {
    const bool one_key = key.is_same(value), one_query = query.is_same(key);
    query = ops::unsqueeze(query, 1);
    key = one_query ? query : ops::unsqueeze(key, 1);
    value = one_key ? key : ops::unsqueeze(value, 1);
    if (key_padding.defined()) key_padding = ops::unsqueeze(key_padding, 0);
  }
  const int64_t length = query.size(0), batch = query.size(1), size = query.size(2);
  int64_t source = key.size(0);
  const int64_t heads = o.num_heads();
  FB_CHECK(size == o.embed_dim_to_check(), "was expecting embedding dimension of ",
           o.embed_dim_to_check(), ", but got ", size);
  FB_CHECK(heads > 0 && size % heads == 0, "embed_dim ", size, " not divisible by num_heads ",
           heads);
  const int64_t head = size / heads;
  if (o.use_separate_proj_weight()) {
    FB_CHECK(key.size(0) == value.size(0) && key.size(1) == value.size(1),
             "key's sequence and batch dims ", key.sizes(), " do not match value's ",
             value.sizes());
    FB_CHECK(
        o.q_proj_weight().defined() && o.k_proj_weight().defined() && o.v_proj_weight().defined(),
        "use_separate_proj_weight is true but one of the weights is undefined");
  } else {
    FB_CHECK(key.sizes() == value.sizes(), "key shape ", key.sizes(),
             " does not match value shape ", value.sizes());
    FB_CHECK(o.in_proj_weight().defined(),
             "use_separate_proj_weight is false but in_proj_weight is undefined");
  }
  auto [q, k, v] = project(query, key, value, o);
  const bool causal = o.is_causal() && !key_padding.defined() && !o.need_weights();
  Tensor mask;
  if (o.attn_mask().defined()) {
    mask = check_mask(o.attn_mask(), length, source, batch * heads);
    mask = causal ? Tensor() : as_addend(mask, "attn_mask", q.dtype());
  }
  Tensor padding = as_addend(key_padding, "key_padding_mask", q.dtype());
  FB_CHECK(o.bias_k().defined() == o.bias_v().defined(),
           "bias_k and bias_v must both be given or both be undefined");
  if (o.bias_k().defined()) {
    FB_CHECK(!o.static_k().defined() && !o.static_v().defined(),
             "bias cannot be added to static key or value.");
    k = ops::cat({k, ops::repeat(o.bias_k(), Ints{1, batch, 1})}, 0);
    v = ops::cat({v, ops::repeat(o.bias_v(), Ints{1, batch, 1})}, 0);
    mask = one_more(mask);
    padding = one_more(padding);
  }
  q = ops::transpose(ops::reshape(q, Ints{length, batch * heads, head}), 0, 1);
  k = in_heads(k, o.static_k(), batch * heads, head, "k");
  v = in_heads(v, o.static_v(), batch * heads, head, "v");
  if (o.add_zero_attn()) {
    const Tensor zeros = ops::zeros(Ints{batch * heads, 1, head}, k.dtype());
    k = ops::cat({k, zeros}, 1);
    v = ops::cat({v, zeros}, 1);
    mask = one_more(mask);
    padding = one_more(padding);
  }
  source = k.size(1);
  if (padding.defined()) {
    FB_CHECK(padding.size(0) == batch && padding.size(1) == source,
             "expecting key_padding_mask shape of (", batch, ", ", source, "), but got ",
             padding.sizes());
    Tensor wide = ops::expand(ops::reshape(padding, Ints{batch, 1, 1, source}),
                              Ints{batch, heads, 1, source});
    wide = ops::reshape(wide, Ints{batch * heads, 1, source});
    mask = mask.defined() ? ops::add(mask, wide) : wide;
  }
  const double drop = o.training() ? o.dropout_p() : 0.0;
  Tensor p, out;
  if (o.need_weights()) {
    const double scale = 1.0 / std::sqrt(static_cast<double>(head));
    const Tensor scores = ops::bmm(ops::mul(q, wrapped_number(scale)), ops::transpose(k, 1, 2));
    if (!mask.defined()) {
      p = ops::softmax(scores, -1);
    } else {
      // A query that sees no key weighs nothing, as in scaled_dot_product_attention.
      const Tensor blind = ops::all(ops::eq(mask, wrapped_number(-INFINITY)), Ints{-1}, true);
      p = ops::softmax(ops::masked_fill(ops::add(scores, mask), blind, wrapped_number(0.0)), -1);
      p = ops::masked_fill(p, blind, wrapped_number(0.0));
    }
    if (drop > 0) p = ops::dropout(p, drop, true, false);
    out = ops::reshape(ops::transpose(ops::bmm(p, v), 0, 1), Ints{length * batch, size});
    p = ops::reshape(p, Ints{batch, heads, length, source});
    if (o.average_attn_weights()) p = ops::mean(p, Ints{1});
  } else {
    if (mask.defined())
      mask = mask.size(0) == 1 ? ops::unsqueeze(mask, 0)
                               : ops::reshape(mask, Ints{batch, heads, mask.size(1), source});
    const Ints asked{batch, heads, length, head}, known{batch, heads, source, head};
    out = ops::scaled_dot_product_attention(ops::reshape(q, asked), ops::reshape(k, known),
                                            ops::reshape(v, known), given(mask), drop, causal);
    out = ops::reshape(ops::permute(out, Ints{2, 0, 1, 3}), Ints{length * batch, size});
  }
  out = ops::linear(out, o.out_proj_weight(), given(o.out_proj_bias()));
  out = ops::reshape(out, Ints{length, batch, o.out_proj_weight().size(0)});
  if (batched) return {out, p};
  return {ops::squeeze(out, Ints{1}), p.defined() ? ops::squeeze(p, Ints{0}) : p};
}

}  // namespace functional

namespace {

// As Python's is called.
struct NonDynamicallyQuantizableLinearImpl : LinearImpl {
  using LinearImpl::LinearImpl;
};

}  // namespace

MultiheadAttentionImpl::MultiheadAttentionImpl(MultiheadAttentionOptions options_)
    : options(std::move(options_)) {
  reset();
}
void MultiheadAttentionImpl::reset() {
  const int64_t e = options.embed_dim();
  FB_CHECK_VALUE(e > 0 && options.num_heads() > 0,
                 "embed_dim and num_heads must be greater than 0, got embed_dim=", e,
                 " and num_heads=", options.num_heads(), " instead");
  head_dim = e / options.num_heads();
  FB_CHECK(head_dim * options.num_heads() == e, "embed_dim must be divisible by num_heads");
  const int64_t kdim = options.kdim().value_or(e), vdim = options.vdim().value_or(e);
  const bool together = kdim == e && vdim == e;
  auto weight = [this](const char* name, bool there, const Ints& sizes) {
    return register_parameter(name, there ? ops::empty(sizes) : Tensor());
  };
  if (together) in_proj_weight = weight("in_proj_weight", true, {3 * e, e});
  q_proj_weight = weight("q_proj_weight", !together, {e, e});
  k_proj_weight = weight("k_proj_weight", !together, {e, kdim});
  v_proj_weight = weight("v_proj_weight", !together, {e, vdim});
  if (!together) in_proj_weight = weight("in_proj_weight", false, {});
  in_proj_bias = weight("in_proj_bias", options.bias(), {3 * e});
  out_proj =
      Linear(std::shared_ptr<LinearImpl>(std::make_shared<NonDynamicallyQuantizableLinearImpl>(
          LinearOptions(e, e).bias(options.bias()))));
  register_module("out_proj", out_proj);
  bias_k = weight("bias_k", options.add_bias_kv(), {1, 1, e});
  bias_v = weight("bias_v", options.add_bias_kv(), {1, 1, e});
  _reset_parameters();
}
void MultiheadAttentionImpl::_reset_parameters() {
  for (const Tensor& w : {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight})
    if (w.defined()) init::xavier_uniform_(w);
  if (in_proj_bias.defined()) {
    init::constant_(in_proj_bias, 0.0);
    init::constant_(out_proj->bias, 0.0);
  }
  for (const Tensor& b : {bias_k, bias_v})
    if (b.defined()) init::xavier_normal_(b);
}

std::tuple<Tensor, Tensor> MultiheadAttentionImpl::forward(
    const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& key_padding_mask,
    bool need_weights, const Tensor& attn_mask, bool average_attn_weights, bool is_causal) {
  const bool swap = options.batch_first() && query.dim() == 3;
  Tensor q = query, k = key, v = value;
  if (swap) {
    // Tensors that are one stay one.
    q = ops::transpose(query, 1, 0);
    k = key.is_same(query) ? q : ops::transpose(key, 1, 0);
    v = value.is_same(key) ? k : ops::transpose(value, 1, 0);
  }
  auto [result, weights] = functional::multi_head_attention_forward(
      q, k, v,
      functional::MultiheadAttentionForwardFuncOptions(
          options.embed_dim(), options.num_heads(), in_proj_weight, in_proj_bias, bias_k, bias_v,
          options.add_zero_attn(), options.dropout(), out_proj->weight, out_proj->bias)
          .training(is_training())
          .key_padding_mask(key_padding_mask)
          .need_weights(need_weights)
          .attn_mask(attn_mask)
          .use_separate_proj_weight(!in_proj_weight.defined())
          .q_proj_weight(q_proj_weight)
          .k_proj_weight(k_proj_weight)
          .v_proj_weight(v_proj_weight)
          .average_attn_weights(average_attn_weights)
          .is_causal(is_causal));
  return {swap ? ops::transpose(result, 1, 0) : result, weights};
}

}  // namespace flambeau::nn
