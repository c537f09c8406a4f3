#include "flambeau/nn/rnn.h"

#include "gen/ops.h"

namespace flambeau::nn {

using utils::rnn::PackedSequence;

void RNNWeights::make(Module& module, const RNNOptionsBase& o, int64_t gates) {
  FB_CHECK_VALUE(o.input_size_ > 0, "input_size must be greater than zero");
  FB_CHECK_VALUE(o.hidden_size_ > 0, "hidden_size must be greater than zero");
  FB_CHECK_VALUE(o.num_layers_ > 0, "num_layers must be greater than zero");
  FB_CHECK_VALUE(o.dropout_ >= 0 && o.dropout_ <= 1,
                 "dropout should be a number in range [0, 1] representing the probability of an "
                 "element being zeroed");
  FB_CHECK_VALUE(o.proj_size_ >= 0 && o.proj_size_ < o.hidden_size_,
                 "proj_size has to be at least zero and smaller than hidden_size, got ",
                 o.proj_size_);
  names_.clear();
  const int64_t state = o.proj_size_ ? o.proj_size_ : o.hidden_size_;
  const int64_t rows = gates * o.hidden_size_, directions = o.bidirectional_ ? 2 : 1;
  auto add = [&](const std::string& name, const Ints& sizes) {
    module.register_parameter(name, ops::empty(sizes));
    names_.push_back(name);
  };
  for (int64_t layer = 0; layer < o.num_layers_; ++layer) {
    for (int64_t d = 0; d < directions; ++d) {
      const std::string suffix = "_l" + std::to_string(layer) + (d ? "_reverse" : "");
      add("weight_ih" + suffix, {rows, layer ? state * directions : o.input_size_});
      add("weight_hh" + suffix, {rows, state});
      if (o.bias_) {
        add("bias_ih" + suffix, {rows});
        add("bias_hh" + suffix, {rows});
      }
      if (o.proj_size_) add("weight_hr" + suffix, {o.proj_size_, o.hidden_size_});
    }
  }
}

std::vector<Tensor> RNNWeights::all(const Module& module) const {
  const auto found = module.named_parameters(false);
  std::vector<Tensor> out;
  for (const std::string& name : names_) out.push_back(found[name]);
  return out;
}

Tensor RNNWeights::batched(const Tensor& given, std::vector<Tensor*> states,
                           const RNNOptionsBase& o, const char* name) const {
  FB_CHECK_VALUE(given.dim() == 2 || given.dim() == 3, name,
                 ": Expected input to be 2D or 3D, got ", given.dim(), "D instead");
  const bool batch = given.dim() == 3;
  const int64_t at = o.batch_first_ ? 0 : 1;
  const Tensor input = batch ? given : ops::unsqueeze(given, at);
  FB_CHECK(input.size(-1) == o.input_size_, "input.size(-1) must be equal to input_size. Expected ",
           o.input_size_, ", got ", input.size(-1));
  const int64_t layers = o.num_layers_ * (o.bidirectional_ ? 2 : 1);
  bool first = true;
  for (Tensor* x : states) {
    // Of an LSTM with projections the hidden state is smaller than that of the cell.
    const int64_t size = first && o.proj_size_ ? o.proj_size_ : o.hidden_size_;
    first = false;
    const Ints wanted{layers, input.size(at), size};
    if (!x->defined()) {
      *x = ops::zeros(wanted, input.dtype());
      continue;
    }
    FB_CHECK(x->dim() == given.dim(), "For ", batch ? "batched 3-D" : "unbatched 2-D",
             " input, hx should also be ", given.dim(), "-D but got ", x->dim(), "-D tensor");
    if (!batch) *x = ops::unsqueeze(*x, 1);
    FB_CHECK(x->sizes() == wanted, "Expected hidden size ", wanted, ", got ", x->sizes());
  }
  return input;
}

void RNNWeights::packed(const PackedSequence& input, std::vector<Tensor*> states,
                        const RNNOptionsBase& o) const {
  FB_CHECK(input.data().defined() && input.data().dim() == 2 && input.batch_sizes().numel(),
           "forward_with_packed_input: expected a packed sequence of steps (., input_size)");
  FB_CHECK(input.data().size(1) == o.input_size_,
           "input.size(-1) must be equal to input_size. Expected ", o.input_size_, ", got ",
           input.data().size(1));
  const int64_t batch = input.batch_sizes().select(0, 0).item().to_int();
  const int64_t layers = o.num_layers_ * (o.bidirectional_ ? 2 : 1);
  bool first = true;
  for (Tensor* x : states) {
    const int64_t size = first && o.proj_size_ ? o.proj_size_ : o.hidden_size_;
    first = false;
    const Ints wanted{layers, batch, size};
    if (!x->defined()) {
      *x = ops::zeros(wanted, input.data().dtype());
      continue;
    }
    FB_CHECK(x->sizes() == wanted, "Expected hidden size ", wanted, ", got ", x->sizes());
    if (const Tensor& order = input.sorted_indices(); order.defined())
      *x = ops::index_select(*x, 1, order);
  }
}

Tensor RNNWeights::unbatched(const Tensor& output, std::vector<Tensor*> states, bool had_batch,
                             const RNNOptionsBase& o) {
  if (had_batch) return output;
  for (Tensor* x : states) *x = ops::squeeze(*x, Ints{1});
  return ops::squeeze(output, Ints{o.batch_first_ ? 0 : 1});
}

void RNNWeights::print(std::ostream& out, const RNNOptionsBase& o, const char* name) {
  out << name << '(' << o.input_size_ << ", " << o.hidden_size_;
  if (o.proj_size_) out << ", proj_size=" << o.proj_size_;
  if (o.num_layers_ != 1) out << ", num_layers=" << o.num_layers_;
  if (!o.bias_) out << ", bias=False";
  if (o.batch_first_) out << ", batch_first=True";
  if (o.dropout_ != 0) out << ", dropout=" << shown(o.dropout_);
  if (o.bidirectional_) out << ", bidirectional=True";
  out << ')';
}

static void draw(const Module& module, const RNNOptionsBase& o) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(o.hidden_size_));
  for (const Tensor& w : module.parameters()) init::uniform_(w, -bound, bound);
}

#define FB_RNN(Name, gates)                                                       \
  Name##Impl::Name##Impl(Name##Options options_) : options(std::move(options_)) { \
    reset();                                                                      \
  }                                                                               \
  void Name##Impl::reset() {                                                      \
    weights_.make(*this, options, gates);                                         \
    reset_parameters();                                                           \
  }                                                                               \
  void Name##Impl::reset_parameters() {                                           \
    draw(*this, options);                                                         \
  }                                                                               \
  void Name##Impl::pretty_print(std::ostream& out) const {                        \
    RNNWeights::print(out, options, #Name);                                       \
  }
FB_RNN(RNN, 1)
FB_RNN(GRU, 3)
FB_RNN(LSTM, 4)
#undef FB_RNN

std::tuple<Tensor, Tensor> RNNImpl::forward(const Tensor& given, Tensor hx) {
  const std::string& f = options.nonlinearity().str();
  FB_CHECK_VALUE(f == "tanh" || f == "relu", "Unknown nonlinearity '", f,
                 "'. Select from 'tanh' or 'relu'.");
  const Tensor input = weights_.batched(given, {&hx}, options, "RNN");
  auto run = [&](auto... args) {
    return f == "tanh" ? ops::rnn_tanh(args...) : ops::rnn_relu(args...);
  };
  auto [out, last] =
      run(input, hx, all_weights(), options.bias(), options.num_layers(), options.dropout(),
          is_training(), options.bidirectional(), options.batch_first());
  Tensor result = RNNWeights::unbatched(out, {&last}, given.dim() == 3, options);
  return {result, last};
}

std::tuple<Tensor, Tensor> GRUImpl::forward(const Tensor& given, Tensor hx) {
  const Tensor input = weights_.batched(given, {&hx}, options, "GRU");
  auto [out, last] =
      ops::gru(input, hx, all_weights(), options.bias(), options.num_layers(), options.dropout(),
               is_training(), options.bidirectional(), options.batch_first());
  Tensor result = RNNWeights::unbatched(out, {&last}, given.dim() == 3, options);
  return {result, last};
}

std::tuple<Tensor, std::tuple<Tensor, Tensor>> LSTMImpl::forward(
    const Tensor& given, std::optional<std::tuple<Tensor, Tensor>> hx) {
  Tensor h, c;
  if (hx) std::tie(h, c) = *hx;
  const Tensor input = weights_.batched(given, {&h, &c}, options, "LSTM");
  auto [out, h1, c1] =
      ops::lstm(input, {h, c}, all_weights(), options.bias(), options.num_layers(),
                options.dropout(), is_training(), options.bidirectional(), options.batch_first());
  Tensor result = RNNWeights::unbatched(out, {&h1, &c1}, given.dim() == 3, options);
  return {result, {h1, c1}};
}

// What packed forms give: the outputs with the order of the input, states in the order before it.
static PackedSequence like(const PackedSequence& input, const Tensor& data) {
  return PackedSequence(data, input.batch_sizes(), input.sorted_indices(),
                        input.unsorted_indices());
}
static Tensor unsorted(const PackedSequence& input, const Tensor& state) {
  const Tensor& order = input.unsorted_indices();
  return order.defined() ? ops::index_select(state, 1, order) : state;
}

std::tuple<PackedSequence, Tensor> RNNImpl::forward_with_packed_input(const PackedSequence& input,
                                                                      Tensor hx) {
  const std::string& f = options.nonlinearity().str();
  FB_CHECK_VALUE(f == "tanh" || f == "relu", "Unknown nonlinearity '", f,
                 "'. Select from 'tanh' or 'relu'.");
  weights_.packed(input, {&hx}, options);
  auto run = [&](auto... args) {
    return f == "tanh" ? ops::rnn_tanh(args...) : ops::rnn_relu(args...);
  };
  auto [out, last] =
      run(input.data(), input.batch_sizes(), hx, all_weights(), options.bias(),
          options.num_layers(), options.dropout(), is_training(), options.bidirectional());
  return {like(input, out), unsorted(input, last)};
}

std::tuple<PackedSequence, Tensor> GRUImpl::forward_with_packed_input(const PackedSequence& input,
                                                                      Tensor hx) {
  weights_.packed(input, {&hx}, options);
  auto [out, last] =
      ops::gru(input.data(), input.batch_sizes(), hx, all_weights(), options.bias(),
               options.num_layers(), options.dropout(), is_training(), options.bidirectional());
  return {like(input, out), unsorted(input, last)};
}

std::tuple<PackedSequence, std::tuple<Tensor, Tensor>> LSTMImpl::forward_with_packed_input(
    const PackedSequence& input, std::optional<std::tuple<Tensor, Tensor>> hx) {
  Tensor h, c;
  if (hx) std::tie(h, c) = *hx;
  weights_.packed(input, {&h, &c}, options);
  auto [out, h1, c1] =
      ops::lstm(input.data(), input.batch_sizes(), {h, c}, all_weights(), options.bias(),
                options.num_layers(), options.dropout(), is_training(), options.bidirectional());
  return {like(input, out), {unsorted(input, h1), unsorted(input, c1)}};
}

}  // namespace flambeau::nn
