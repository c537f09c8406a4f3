// Attention and the Transformer (Vaswani et al., 2017): MultiheadAttention, layers, stacks of them,
// and the whole model. Shapes are (L, N, E), (N, L, E) with batch_first, or (L, E).
#pragma once

#include "flambeau/nn/layers.h"

namespace flambeau::nn {

struct MultiheadAttentionOptions {
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads) {}
  TORCH_ARG(int64_t, embed_dim);
  TORCH_ARG(int64_t, num_heads);
  TORCH_ARG(double, dropout) = 0;
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(bool, add_bias_kv) = false;
  TORCH_ARG(bool, add_zero_attn) = false;
  TORCH_ARG(std::optional<int64_t>, kdim);  // none: embed_dim
  TORCH_ARG(std::optional<int64_t>, vdim);
  TORCH_ARG(bool, batch_first) = false;
};

struct MultiheadAttentionImpl : Cloneable<MultiheadAttentionImpl> {
  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads)
      : MultiheadAttentionImpl(MultiheadAttentionOptions(embed_dim, num_heads)) {}
  explicit MultiheadAttentionImpl(MultiheadAttentionOptions options_);
  void reset() override;
  void _reset_parameters();
  // The result and the weights, which are undefined unless they are asked for. True, or minus
  // infinity, of a mask hides a key: key_padding_mask is (N, S), attn_mask (L, S) or
  // (N * heads, L, S). `is_causal` says that attn_mask is the causal one.
  std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const Tensor& key_padding_mask = {}, bool need_weights = true,
                                     const Tensor& attn_mask = {}, bool average_attn_weights = true,
                                     bool is_causal = false);
  MultiheadAttentionOptions options;
  Tensor in_proj_weight, in_proj_bias, bias_k, bias_v;
  Tensor q_proj_weight, k_proj_weight, v_proj_weight;
  Linear out_proj{nullptr};
  int64_t head_dim = 0;
};
TORCH_MODULE(MultiheadAttention);

namespace functional {
struct MultiheadAttentionForwardFuncOptions {
  MultiheadAttentionForwardFuncOptions(int64_t embed_dim_to_check, int64_t num_heads,
                                       Tensor in_proj_weight, Tensor in_proj_bias, Tensor bias_k,
                                       Tensor bias_v, bool add_zero_attn, double dropout_p,
                                       Tensor out_proj_weight, Tensor out_proj_bias)
      : embed_dim_to_check_(embed_dim_to_check),
        num_heads_(num_heads),
        in_proj_weight_(std::move(in_proj_weight)),
        in_proj_bias_(std::move(in_proj_bias)),
        bias_k_(std::move(bias_k)),
        bias_v_(std::move(bias_v)),
        add_zero_attn_(add_zero_attn),
        dropout_p_(dropout_p),
        out_proj_weight_(std::move(out_proj_weight)),
        out_proj_bias_(std::move(out_proj_bias)) {}
  TORCH_ARG(int64_t, embed_dim_to_check);
  TORCH_ARG(int64_t, num_heads);
  TORCH_ARG(Tensor, in_proj_weight);
  TORCH_ARG(Tensor, in_proj_bias);
  TORCH_ARG(Tensor, bias_k);
  TORCH_ARG(Tensor, bias_v);
  TORCH_ARG(bool, add_zero_attn);
  TORCH_ARG(double, dropout_p);
  TORCH_ARG(Tensor, out_proj_weight);
  TORCH_ARG(Tensor, out_proj_bias);
  TORCH_ARG(bool, training) = true;
  TORCH_ARG(Tensor, key_padding_mask);
  TORCH_ARG(bool, need_weights) = true;
  TORCH_ARG(Tensor, attn_mask);
  TORCH_ARG(bool, use_separate_proj_weight) = false;
  TORCH_ARG(Tensor, q_proj_weight);
  TORCH_ARG(Tensor, k_proj_weight);
  TORCH_ARG(Tensor, v_proj_weight);
  TORCH_ARG(Tensor, static_k);
  TORCH_ARG(Tensor, static_v);
  TORCH_ARG(bool, average_attn_weights) = true;
  TORCH_ARG(bool, is_causal) = false;
};
std::tuple<Tensor, Tensor> multi_head_attention_forward(
    const Tensor& query, const Tensor& key, const Tensor& value,
    const MultiheadAttentionForwardFuncOptions& options);
}  // namespace functional

// torch::kReLU, torch::kGELU, or a function of a tensor.
class TransformerActivation {
 public:
  TransformerActivation(Word word);
  template <class F>
  requires(std::is_invocable_r_v<Tensor, F&, const Tensor&>) TransformerActivation(F f)
      : function_(std::move(f)) {}
  Tensor operator()(const Tensor& x) const { return function_(x); }

 private:
  std::function<Tensor(const Tensor&)> function_;
};

// What the options of both kinds of layer have.
#define FB_TRANSFORMER_LAYER_OPTIONS(Name)                                     \
  struct Name {                                                                \
    Name(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {} \
    TORCH_ARG(int64_t, d_model);                                               \
    TORCH_ARG(int64_t, nhead);                                                 \
    TORCH_ARG(int64_t, dim_feedforward) = 2048;                                \
    TORCH_ARG(double, dropout) = 0.1;                                          \
    TORCH_ARG(TransformerActivation, activation) = kReLU;                      \
    TORCH_ARG(double, layer_norm_eps) = 1e-5;                                  \
    TORCH_ARG(bool, batch_first) = false;                                      \
    TORCH_ARG(bool, norm_first) = false;                                       \
  }
FB_TRANSFORMER_LAYER_OPTIONS(TransformerEncoderLayerOptions);
FB_TRANSFORMER_LAYER_OPTIONS(TransformerDecoderLayerOptions);
#undef FB_TRANSFORMER_LAYER_OPTIONS

struct TransformerEncoderLayerImpl : Cloneable<TransformerEncoderLayerImpl> {
  TransformerEncoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerEncoderLayerImpl(TransformerEncoderLayerOptions(d_model, nhead)) {}
  explicit TransformerEncoderLayerImpl(TransformerEncoderLayerOptions options_);
  void reset() override;
  Tensor forward(const Tensor& src, const Tensor& src_mask = {},
                 const Tensor& src_key_padding_mask = {}, bool is_causal = false);
  TransformerEncoderLayerOptions options;
  MultiheadAttention self_attn{nullptr};
  Linear linear1{nullptr}, linear2{nullptr};
  Dropout dropout{nullptr}, dropout1{nullptr}, dropout2{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr};
};
TORCH_MODULE(TransformerEncoderLayer);

struct TransformerDecoderLayerImpl : Cloneable<TransformerDecoderLayerImpl> {
  TransformerDecoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerDecoderLayerImpl(TransformerDecoderLayerOptions(d_model, nhead)) {}
  explicit TransformerDecoderLayerImpl(TransformerDecoderLayerOptions options_);
  void reset() override;
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {}, bool tgt_is_causal = false,
                 bool memory_is_causal = false);
  TransformerDecoderLayerOptions options;
  MultiheadAttention self_attn{nullptr}, multihead_attn{nullptr};
  Linear linear1{nullptr}, linear2{nullptr};
  Dropout dropout{nullptr}, dropout1{nullptr}, dropout2{nullptr}, dropout3{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr}, norm3{nullptr};
};
TORCH_MODULE(TransformerDecoderLayer);

struct TransformerEncoderOptions {
  TransformerEncoderOptions(TransformerEncoderLayer encoder_layer, int64_t num_layers)
      : encoder_layer_(std::move(encoder_layer)), num_layers_(num_layers) {}
  TransformerEncoderOptions(const TransformerEncoderLayerOptions& options, int64_t num_layers)
      : TransformerEncoderOptions(TransformerEncoderLayer(options), num_layers) {}
  TORCH_ARG(TransformerEncoderLayer, encoder_layer) = nullptr;  // copied for each
  TORCH_ARG(int64_t, num_layers);
  TORCH_ARG(AnyModule, norm);  // at the end
};
struct TransformerEncoderImpl : Cloneable<TransformerEncoderImpl> {
  TransformerEncoderImpl(TransformerEncoderLayer encoder_layer, int64_t num_layers)
      : TransformerEncoderImpl(TransformerEncoderOptions(std::move(encoder_layer), num_layers)) {}
  explicit TransformerEncoderImpl(TransformerEncoderOptions options_);
  void reset() override;
  // `is_causal`, none: the mask is compared with the causal one.
  Tensor forward(const Tensor& src, const Tensor& src_mask = {},
                 const Tensor& src_key_padding_mask = {},
                 std::optional<bool> is_causal = std::nullopt);
  TransformerEncoderOptions options;
  ModuleList layers{nullptr};
  AnyModule norm;
};
TORCH_MODULE(TransformerEncoder);

struct TransformerDecoderOptions {
  TransformerDecoderOptions(TransformerDecoderLayer decoder_layer, int64_t num_layers)
      : decoder_layer_(std::move(decoder_layer)), num_layers_(num_layers) {}
  TransformerDecoderOptions(const TransformerDecoderLayerOptions& options, int64_t num_layers)
      : TransformerDecoderOptions(TransformerDecoderLayer(options), num_layers) {}
  TORCH_ARG(TransformerDecoderLayer, decoder_layer) = nullptr;
  TORCH_ARG(int64_t, num_layers);
  TORCH_ARG(AnyModule, norm);
};
struct TransformerDecoderImpl : Cloneable<TransformerDecoderImpl> {
  TransformerDecoderImpl(TransformerDecoderLayer decoder_layer, int64_t num_layers)
      : TransformerDecoderImpl(TransformerDecoderOptions(std::move(decoder_layer), num_layers)) {}
  explicit TransformerDecoderImpl(TransformerDecoderOptions options_);
  void reset() override;
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {},
                 std::optional<bool> tgt_is_causal = std::nullopt,
                 std::optional<bool> memory_is_causal = std::nullopt);
  TransformerDecoderOptions options;
  ModuleList layers{nullptr};
  AnyModule norm;
};
TORCH_MODULE(TransformerDecoder);

struct TransformerOptions {
  TransformerOptions() = default;
  TransformerOptions(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}
  TransformerOptions(int64_t d_model, int64_t nhead, int64_t num_encoder_layers,
                     int64_t num_decoder_layers)
      : d_model_(d_model),
        nhead_(nhead),
        num_encoder_layers_(num_encoder_layers),
        num_decoder_layers_(num_decoder_layers) {}
  TORCH_ARG(int64_t, d_model) = 512;
  TORCH_ARG(int64_t, nhead) = 8;
  TORCH_ARG(int64_t, num_encoder_layers) = 6;
  TORCH_ARG(int64_t, num_decoder_layers) = 6;
  TORCH_ARG(int64_t, dim_feedforward) = 2048;
  TORCH_ARG(double, dropout) = 0.1;
  TORCH_ARG(TransformerActivation, activation) = kReLU;
  TORCH_ARG(AnyModule, custom_encoder);  // in place of the stack
  TORCH_ARG(AnyModule, custom_decoder);
  TORCH_ARG(double, layer_norm_eps) = 1e-5;
  TORCH_ARG(bool, batch_first) = false;
  TORCH_ARG(bool, norm_first) = false;
};
struct TransformerImpl : Cloneable<TransformerImpl> {
  explicit TransformerImpl(TransformerOptions options_ = {});
  TransformerImpl(int64_t d_model, int64_t nhead)
      : TransformerImpl(TransformerOptions(d_model, nhead)) {}
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask = {},
                 const Tensor& tgt_mask = {}, const Tensor& memory_mask = {},
                 const Tensor& src_key_padding_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {});
  // Zero on and below the diagonal, minus infinity above.
  static Tensor generate_square_subsequent_mask(int64_t sz);
  TransformerOptions options;
  AnyModule encoder, decoder;
};
TORCH_MODULE(Transformer);

}  // namespace flambeau::nn
