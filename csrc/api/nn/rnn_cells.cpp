#include "flambeau/nn/rnn_cells.h"

#include "api/nn/layers.h"

namespace flambeau::nn {

void RNNCellWeights::make(Module& module, int64_t input_size, int64_t hidden_size, bool bias,
                          int64_t gates) {
  FB_CHECK_VALUE(input_size > 0, "input_size must be greater than zero");
  FB_CHECK_VALUE(hidden_size > 0, "hidden_size must be greater than zero");
  const int64_t rows = gates * hidden_size;
  weight_ih = module.register_parameter("weight_ih", ops::empty(Ints{rows, input_size}));
  weight_hh = module.register_parameter("weight_hh", ops::empty(Ints{rows, hidden_size}));
  bias_ih = module.register_parameter("bias_ih", bias ? ops::empty(Ints{rows}) : Tensor());
  bias_hh = module.register_parameter("bias_hh", bias ? ops::empty(Ints{rows}) : Tensor());
  draw(hidden_size);
}
void RNNCellWeights::draw(int64_t hidden_size) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(hidden_size));
  for (const Tensor& w : {weight_ih, weight_hh, bias_ih, bias_hh})
    if (w.defined()) init::uniform_(w, -bound, bound);
}

namespace {

template <class O>
void print(std::ostream& out, const char* name, const O& o, const std::string& more = {}) {
  out << name << '(' << o.input_size() << ", " << o.hidden_size()
      << (o.bias() ? "" : ", bias=False") << more << ')';
}

void check_dims(const Tensor& x, const char* cell, const char* what) {
  FB_CHECK_VALUE(x.dim() == 1 || x.dim() == 2, cell, ": Expected ", what, " to be 1D or 2D, got ",
                 x.dim(), "D instead");
}

// One step of a cell whose state is one tensor.
template <class F>
Tensor step(const char* cell, const Tensor& given_input, const std::optional<Tensor>& hx,
            int64_t hidden_size, F run) {
  check_dims(given_input, cell, "input");
  const bool batched = given_input.dim() == 2;
  const Tensor input = batched ? given_input : ops::unsqueeze(given_input, 0);
  Tensor state;
  if (hx && hx->defined()) {
    check_dims(*hx, cell, "hidden");
    state = batched ? *hx : ops::unsqueeze(*hx, 0);
  } else {
    state = ops::zeros(Ints{input.size(0), hidden_size}, input.dtype());
  }
  state = run(input, state);
  return batched ? state : ops::squeeze(state, Ints{0});
}

}  // namespace

void RNNCellImpl::reset() {
  make(*this, options.input_size(), options.hidden_size(), options.bias(), 1);
}
void GRUCellImpl::reset() {
  make(*this, options.input_size(), options.hidden_size(), options.bias(), 3);
}
void LSTMCellImpl::reset() {
  make(*this, options.input_size(), options.hidden_size(), options.bias(), 4);
}
void RNNCellImpl::pretty_print(std::ostream& out) const {
  const std::string& f = options.nonlinearity().str();
  print(out, "RNNCell", options, f == "tanh" ? "" : ", nonlinearity=" + f);
}
void GRUCellImpl::pretty_print(std::ostream& out) const {
  print(out, "GRUCell", options);
}
void LSTMCellImpl::pretty_print(std::ostream& out) const {
  print(out, "LSTMCell", options);
}

Tensor RNNCellImpl::forward(const Tensor& input, std::optional<Tensor> hx) {
  const std::string& f = options.nonlinearity().str();
  FB_CHECK(f == "tanh" || f == "relu", "Unknown nonlinearity: ", f);
  return step("RNNCell", input, hx, options.hidden_size(), [&](const Tensor& x, const Tensor& h) {
    auto run = f == "tanh" ? ops::rnn_tanh_cell : ops::rnn_relu_cell;
    return run(x, h, weight_ih, weight_hh, given(bias_ih), given(bias_hh));
  });
}
Tensor GRUCellImpl::forward(const Tensor& input, std::optional<Tensor> hx) {
  return step("GRUCell", input, hx, options.hidden_size(), [&](const Tensor& x, const Tensor& h) {
    return ops::gru_cell(x, h, weight_ih, weight_hh, given(bias_ih), given(bias_hh));
  });
}
std::tuple<Tensor, Tensor> LSTMCellImpl::forward(const Tensor& given_input,
                                                 std::optional<std::tuple<Tensor, Tensor>> hx) {
  check_dims(given_input, "LSTMCell", "input");
  const bool batched = given_input.dim() == 2;
  const Tensor input = batched ? given_input : ops::unsqueeze(given_input, 0);
  Tensor h, c;
  if (hx) {
    std::tie(h, c) = *hx;
    check_dims(h, "LSTMCell", "hx[0]");
    check_dims(c, "LSTMCell", "hx[1]");
    if (!batched) h = ops::unsqueeze(h, 0), c = ops::unsqueeze(c, 0);
  } else {
    h = c = ops::zeros(Ints{input.size(0), options.hidden_size()}, input.dtype());
  }
  auto [h1, c1] =
      ops::lstm_cell(input, {h, c}, weight_ih, weight_hh, given(bias_ih), given(bias_hh));
  if (batched) return {h1, c1};
  return {ops::squeeze(h1, Ints{0}), ops::squeeze(c1, Ints{0})};
}

}  // namespace flambeau::nn
