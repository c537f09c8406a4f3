// One step of recurrent networks: RNNCell, GRUCell, LSTMCell. Input is (N, input_size) or
// (input_size), states (N, hidden_size) or (hidden_size).
#pragma once

#include "flambeau/nn/layers.h"

namespace flambeau::nn {

// What the three have in common.
struct RNNCellWeights {
  // Error(Value) for sizes that make no cell.
  void make(Module& module, int64_t input_size, int64_t hidden_size, bool bias, int64_t gates);
  void draw(int64_t hidden_size);
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
};

#define FB_CELL(Name, More)                                                                 \
  struct Name##Options {                                                                    \
    Name##Options(int64_t input_size, int64_t hidden_size)                                  \
        : input_size_(input_size), hidden_size_(hidden_size) {}                             \
    TORCH_ARG(int64_t, input_size);                                                         \
    TORCH_ARG(int64_t, hidden_size);                                                        \
    TORCH_ARG(bool, bias) = true;                                                           \
    More                                                                                    \
  };                                                                                        \
  struct Name##Impl : Cloneable<Name##Impl>, RNNCellWeights {                               \
    Name##Impl(int64_t input_size, int64_t hidden_size)                                     \
        : Name##Impl(Name##Options(input_size, hidden_size)) {}                             \
    explicit Name##Impl(Name##Options options_) : options(std::move(options_)) { reset(); } \
    void reset() override;                                                                  \
    void reset_parameters() { draw(options.hidden_size()); }                                \
    void pretty_print(std::ostream& out) const override;                                    \
    Name##Options options;                                                                  \
    using State = std::conditional_t<std::is_same_v<Name##Options, struct LSTMCellOptions>, \
                                     std::tuple<Tensor, Tensor>, Tensor>;                   \
    State forward(const Tensor& input, std::optional<State> hx = std::nullopt);             \
  };                                                                                        \
  TORCH_MODULE(Name)

FB_CELL(RNNCell, TORCH_ARG(Text, nonlinearity) = kTanh;);  // torch::kTanh or torch::kReLU
FB_CELL(GRUCell, );
FB_CELL(LSTMCell, );
#undef FB_CELL

}  // namespace flambeau::nn
