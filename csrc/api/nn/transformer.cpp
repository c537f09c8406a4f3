// The Transformer: layers, stacks of copies of one layer, and the whole model.
#include "api/nn/layers.h"
#include "flambeau/nn/attention.h"

namespace flambeau::nn {

TransformerActivation::TransformerActivation(Word word) {
  const std::string name = Text(word).str();
  FB_CHECK(name == "relu" || name == "gelu", "activation should be relu/gelu, not ", name);
  if (name == "relu")
    function_ = [](const Tensor& x) { return ops::relu(x); };
  else
    function_ = [](const Tensor& x) { return ops::gelu(x, "none"); };
}

namespace {

// A boolean mask as one to be added: minus infinity where it was true.
Tensor float_mask(const Tensor& mask, DType dtype) {
  if (!mask.defined() || mask.dtype() != DType::Bool) return mask;
  return ops::masked_fill(ops::zeros(mask.sizes(), dtype), mask, wrapped_number(-INFINITY));
}

// Whether the mask is the causal one: as said, or, if nobody says, as found by comparison.
bool is_causal_mask(const Tensor& mask, std::optional<bool> said, int64_t size) {
  if (said || !mask.defined()) return said.value_or(false);
  if (mask.dim() != 2 || mask.size(0) != size || mask.size(1) != size) return false;
  NoGradGuard no_grad;
  Tensor causal = ops::triu(ops::ones(Ints{size, size}, DType::Bool), 1);
  if (mask.dtype() != DType::Bool) causal = float_mask(causal, mask.dtype());
  return ops::equal(mask, causal);
}

template <class L>
Tensor feed_forward(L& layer, const Tensor& x) {
  return layer.linear2(layer.dropout(layer.options.activation()(layer.linear1(x))));
}
// A residual block, normalised before or after.
template <class F>
Tensor around(bool norm_first, LayerNorm& norm, const Tensor& x, F block) {
  return norm_first ? ops::add(x, block(norm(x))) : norm(ops::add(x, block(x)));
}
Tensor attend(MultiheadAttention& attention, const Tensor& x, const Tensor& memory,
              const Tensor& mask, const Tensor& padding, bool is_causal) {
  return std::get<0>(attention(x, memory, memory, padding, false, mask, true, is_causal));
}

template <class O>
MultiheadAttention attention_of(const O& o) {
  return MultiheadAttention(MultiheadAttentionOptions(o.d_model(), o.nhead())
                                .dropout(o.dropout())
                                .batch_first(o.batch_first()));
}
// What a stack has besides its layers.
template <class S, class L>
void fill(S& stack, const L& layer) {
  FB_CHECK_VALUE(layer, "a stack of layers needs a layer, got an empty one");
  FB_CHECK_VALUE(stack.options.num_layers() >= 0, "num_layers must not be negative, got ",
                 stack.options.num_layers());
  stack.layers = stack.register_module("layers", ModuleList());
  for (int64_t i = 0; i < stack.options.num_layers(); ++i) stack.layers->push_back(layer->clone());
  // A clone of the stack has a norm of its own.
  stack.norm = stack.norm.is_empty() ? stack.options.norm() : stack.norm.clone();
  if (!stack.norm.is_empty()) stack.register_module("norm", stack.norm.ptr());
}
int64_t length_of(const Tensor& x, bool batch_first) {
  FB_CHECK(x.dim() == 2 || x.dim() == 3, "expected an input of 2 or 3 dims, got ", x.dim());
  return x.size(batch_first && x.dim() == 3 ? 1 : 0);
}

}  // namespace

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(TransformerEncoderLayerOptions options_)
    : options(std::move(options_)) {
  reset();
}
void TransformerEncoderLayerImpl::reset() {
  const auto& o = options;
  const auto norm = LayerNormOptions({o.d_model()}).eps(o.layer_norm_eps());
  self_attn = register_module("self_attn", attention_of(o));
  linear1 = register_module("linear1", Linear(o.d_model(), o.dim_feedforward()));
  dropout = register_module("dropout", Dropout(o.dropout()));
  linear2 = register_module("linear2", Linear(o.dim_feedforward(), o.d_model()));
  norm1 = register_module("norm1", LayerNorm(norm));
  norm2 = register_module("norm2", LayerNorm(norm));
  dropout1 = register_module("dropout1", Dropout(o.dropout()));
  dropout2 = register_module("dropout2", Dropout(o.dropout()));
}
Tensor TransformerEncoderLayerImpl::forward(const Tensor& src, const Tensor& src_mask,
                                            const Tensor& src_key_padding_mask, bool is_causal) {
  const Tensor padding = float_mask(src_key_padding_mask, src.dtype());
  const Tensor mask = float_mask(src_mask, src.dtype());
  const Tensor x = around(options.norm_first(), norm1, src, [&](const Tensor& y) {
    return dropout1(attend(self_attn, y, y, mask, padding, is_causal));
  });
  return around(options.norm_first(), norm2, x,
                [&](const Tensor& y) { return dropout2(feed_forward(*this, y)); });
}

TransformerDecoderLayerImpl::TransformerDecoderLayerImpl(TransformerDecoderLayerOptions options_)
    : options(std::move(options_)) {
  reset();
}
void TransformerDecoderLayerImpl::reset() {
  const auto& o = options;
  const auto norm = LayerNormOptions({o.d_model()}).eps(o.layer_norm_eps());
  self_attn = register_module("self_attn", attention_of(o));
  multihead_attn = register_module("multihead_attn", attention_of(o));
  linear1 = register_module("linear1", Linear(o.d_model(), o.dim_feedforward()));
  dropout = register_module("dropout", Dropout(o.dropout()));
  linear2 = register_module("linear2", Linear(o.dim_feedforward(), o.d_model()));
  norm1 = register_module("norm1", LayerNorm(norm));
  norm2 = register_module("norm2", LayerNorm(norm));
  norm3 = register_module("norm3", LayerNorm(norm));
  dropout1 = register_module("dropout1", Dropout(o.dropout()));
  dropout2 = register_module("dropout2", Dropout(o.dropout()));
  dropout3 = register_module("dropout3", Dropout(o.dropout()));
}
Tensor TransformerDecoderLayerImpl::forward(const Tensor& tgt, const Tensor& memory,
                                            const Tensor& tgt_mask, const Tensor& memory_mask,
                                            const Tensor& tgt_key_padding_mask,
                                            const Tensor& memory_key_padding_mask,
                                            bool tgt_is_causal, bool memory_is_causal) {
  const bool first = options.norm_first();
  Tensor x = around(first, norm1, tgt, [&](const Tensor& y) {
    return dropout1(attend(self_attn, y, y, tgt_mask, tgt_key_padding_mask, tgt_is_causal));
  });
  x = around(first, norm2, x, [&](const Tensor& y) {
    return dropout2(
        attend(multihead_attn, y, memory, memory_mask, memory_key_padding_mask, memory_is_causal));
  });
  return around(first, norm3, x, [&](const Tensor& y) { return dropout3(feed_forward(*this, y)); });
}

TransformerEncoderImpl::TransformerEncoderImpl(TransformerEncoderOptions options_)
    : options(std::move(options_)) {
  reset();
}
void TransformerEncoderImpl::reset() {
  fill(*this, options.encoder_layer());
}
Tensor TransformerEncoderImpl::forward(const Tensor& src, const Tensor& src_mask,
                                       const Tensor& src_key_padding_mask,
                                       std::optional<bool> is_causal) {
  const Tensor padding = float_mask(src_key_padding_mask, src.dtype());
  const Tensor mask = float_mask(src_mask, src.dtype());
  const int64_t length = length_of(src, options.encoder_layer()->options.batch_first());
  const bool causal = is_causal_mask(mask, is_causal, length);
  Tensor out = src;
  for (const auto& layer : *layers)
    out = layer->as<TransformerEncoderLayer>()->forward(out, mask, padding, causal);
  return norm.is_empty() ? out : norm.forward(out);
}

TransformerDecoderImpl::TransformerDecoderImpl(TransformerDecoderOptions options_)
    : options(std::move(options_)) {
  reset();
}
void TransformerDecoderImpl::reset() {
  fill(*this, options.decoder_layer());
}
Tensor TransformerDecoderImpl::forward(const Tensor& tgt, const Tensor& memory,
                                       const Tensor& tgt_mask, const Tensor& memory_mask,
                                       const Tensor& tgt_key_padding_mask,
                                       const Tensor& memory_key_padding_mask,
                                       std::optional<bool> tgt_is_causal,
                                       std::optional<bool> memory_is_causal) {
  const int64_t length = length_of(tgt, options.decoder_layer()->options.batch_first());
  const bool causal = is_causal_mask(tgt_mask, tgt_is_causal, length);
  Tensor out = tgt;
  for (const auto& layer : *layers)
    out = layer->as<TransformerDecoderLayer>()->forward(
        out, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, causal,
        memory_is_causal.value_or(false));
  return norm.is_empty() ? out : norm.forward(out);
}

TransformerImpl::TransformerImpl(TransformerOptions options_) : options(std::move(options_)) {
  reset();
}
template <class L, class O>
static L transformer_layer(const O& o) {
  using Options = std::decay_t<decltype(std::declval<L>()->options)>;
  return L(Options(o.d_model(), o.nhead())
               .dim_feedforward(o.dim_feedforward())
               .dropout(o.dropout())
               .activation(o.activation())
               .layer_norm_eps(o.layer_norm_eps())
               .batch_first(o.batch_first())
               .norm_first(o.norm_first()));
}
void TransformerImpl::reset() {
  const auto& o = options;
  const auto norm = LayerNormOptions({o.d_model()}).eps(o.layer_norm_eps());
  if (!encoder.is_empty()) {
    encoder = encoder.clone();  // that of a clone
  } else if (!o.custom_encoder().is_empty()) {
    encoder = o.custom_encoder();
  } else {
    const auto layer = transformer_layer<TransformerEncoderLayer>(o);
    encoder = AnyModule(TransformerEncoder(
        TransformerEncoderOptions(layer, o.num_encoder_layers()).norm(AnyModule(LayerNorm(norm)))));
  }
  register_module("encoder", encoder.ptr());
  if (!decoder.is_empty()) {
    decoder = decoder.clone();
  } else if (!o.custom_decoder().is_empty()) {
    decoder = o.custom_decoder();
  } else {
    const auto layer = transformer_layer<TransformerDecoderLayer>(o);
    decoder = AnyModule(TransformerDecoder(
        TransformerDecoderOptions(layer, o.num_decoder_layers()).norm(AnyModule(LayerNorm(norm)))));
  }
  register_module("decoder", decoder.ptr());
  reset_parameters();
}
void TransformerImpl::reset_parameters() {
  for (const Tensor& p : parameters())
    if (p.dim() > 1) init::xavier_uniform_(p);
}
Tensor TransformerImpl::forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask,
                                const Tensor& tgt_mask, const Tensor& memory_mask,
                                const Tensor& src_key_padding_mask,
                                const Tensor& tgt_key_padding_mask,
                                const Tensor& memory_key_padding_mask) {
  FB_CHECK(src.dim() == tgt.dim() && (src.dim() == 2 || src.dim() == 3),
           "src and tgt should have 2 or 3 dimensions each, but got ", src.dim(), " and ",
           tgt.dim());
  const int64_t at = options.batch_first() ? 0 : 1;
  FB_CHECK(src.dim() == 2 || src.size(at) == tgt.size(at),
           "the batch number of src and tgt must be equal");
  FB_CHECK(src.size(-1) == options.d_model() && tgt.size(-1) == options.d_model(),
           "the feature number of src and tgt must be equal to d_model");
  const Tensor memory = encoder.forward(src, src_mask, src_key_padding_mask);
  return decoder.forward(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                         memory_key_padding_mask);
}
Tensor TransformerImpl::generate_square_subsequent_mask(int64_t sz) {
  FB_CHECK_VALUE(sz >= 0, "Input size must be non-negative to generate a valid square mask, got ",
                 sz);
  return ops::triu(ops::full(Ints{sz, sz}, Scalar(-INFINITY), DType::Float32), 1);
}

}  // namespace flambeau::nn
