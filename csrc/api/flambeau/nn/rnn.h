// Recurrent networks: RNN, LSTM, GRU.
#pragma once

#include "flambeau/nn/layers.h"
#include "flambeau/nn/utils.h"

namespace flambeau::nn {

// What the three have in common. Input is (L, N, input_size), (L, input_size), or (N, L, …) with
// batch_first; states are (layers · directions, N, hidden_size), without N if the input has none.
struct RNNOptionsBase {
  RNNOptionsBase(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  int64_t input_size_, hidden_size_, num_layers_ = 1, proj_size_ = 0;
  bool bias_ = true, batch_first_ = false, bidirectional_ = false;
  double dropout_ = 0;
};

#define FB_RNN_OPTIONS(Name)            \
  using RNNOptionsBase::RNNOptionsBase; \
  Name& input_size(int64_t x) {         \
    return input_size_ = x, *this;      \
  }                                     \
  Name& hidden_size(int64_t x) {        \
    return hidden_size_ = x, *this;     \
  }                                     \
  Name& num_layers(int64_t x) {         \
    return num_layers_ = x, *this;      \
  }                                     \
  Name& bias(bool x) {                  \
    return bias_ = x, *this;            \
  }                                     \
  Name& batch_first(bool x) {           \
    return batch_first_ = x, *this;     \
  }                                     \
  Name& dropout(double x) {             \
    return dropout_ = x, *this;         \
  }                                     \
  Name& bidirectional(bool x) {         \
    return bidirectional_ = x, *this;   \
  }                                     \
  int64_t input_size() const {          \
    return input_size_;                 \
  }                                     \
  int64_t hidden_size() const {         \
    return hidden_size_;                \
  }                                     \
  int64_t num_layers() const {          \
    return num_layers_;                 \
  }                                     \
  bool bias() const {                   \
    return bias_;                       \
  }                                     \
  bool batch_first() const {            \
    return batch_first_;                \
  }                                     \
  double dropout() const {              \
    return dropout_;                    \
  }                                     \
  bool bidirectional() const {          \
    return bidirectional_;              \
  }

struct RNNOptions : RNNOptionsBase {
  FB_RNN_OPTIONS(RNNOptions)
  // torch::kTanh or torch::kReLU
  RNNOptions& nonlinearity(const Text& x) { return nonlinearity_ = x, *this; }
  const Text& nonlinearity() const { return nonlinearity_; }

 private:
  Text nonlinearity_ = kTanh;
};
struct LSTMOptions : RNNOptionsBase {
  FB_RNN_OPTIONS(LSTMOptions)
  LSTMOptions& proj_size(int64_t x) { return proj_size_ = x, *this; }
  int64_t proj_size() const { return proj_size_; }
};
struct GRUOptions : RNNOptionsBase {
  FB_RNN_OPTIONS(GRUOptions)
};
#undef FB_RNN_OPTIONS

// The weights of a recurrent network, and what reads them.
class RNNWeights {
 public:
  // Error(Value) for options that make no network.
  void make(Module& module, const RNNOptionsBase& o, int64_t gates);
  std::vector<Tensor> all(const Module& module) const;
  // Input and states with a batch; checks their shapes.
  Tensor batched(const Tensor& input, std::vector<Tensor*> states, const RNNOptionsBase& o,
                 const char* name) const;
  // The states of a packed sequence, in the order of its sequences; zeros where there were none.
  void packed(const utils::rnn::PackedSequence& input, std::vector<Tensor*> states,
              const RNNOptionsBase& o) const;
  static Tensor unbatched(const Tensor& output, std::vector<Tensor*> states, bool had_batch,
                          const RNNOptionsBase& o);
  static void print(std::ostream& out, const RNNOptionsBase& o, const char* name);

 private:
  std::vector<std::string> names_;
};

struct RNNImpl : Cloneable<RNNImpl> {
  RNNImpl(int64_t input_size, int64_t hidden_size) : RNNImpl(RNNOptions(input_size, hidden_size)) {}
  explicit RNNImpl(RNNOptions options_);
  void reset() override;
  void reset_parameters();
  void flatten_parameters() {}
  std::tuple<Tensor, Tensor> forward(const Tensor& input, Tensor hx = {});
  std::tuple<utils::rnn::PackedSequence, Tensor> forward_with_packed_input(
      const utils::rnn::PackedSequence& packed_input, Tensor hx = {});
  void pretty_print(std::ostream& out) const override;
  std::vector<Tensor> all_weights() const { return weights_.all(*this); }
  RNNOptions options;

 private:
  RNNWeights weights_;
};
TORCH_MODULE(RNN);

struct GRUImpl : Cloneable<GRUImpl> {
  GRUImpl(int64_t input_size, int64_t hidden_size) : GRUImpl(GRUOptions(input_size, hidden_size)) {}
  explicit GRUImpl(GRUOptions options_);
  void reset() override;
  void reset_parameters();
  void flatten_parameters() {}
  std::tuple<Tensor, Tensor> forward(const Tensor& input, Tensor hx = {});
  std::tuple<utils::rnn::PackedSequence, Tensor> forward_with_packed_input(
      const utils::rnn::PackedSequence& packed_input, Tensor hx = {});
  void pretty_print(std::ostream& out) const override;
  std::vector<Tensor> all_weights() const { return weights_.all(*this); }
  GRUOptions options;

 private:
  RNNWeights weights_;
};
TORCH_MODULE(GRU);

struct LSTMImpl : Cloneable<LSTMImpl> {
  LSTMImpl(int64_t input_size, int64_t hidden_size)
      : LSTMImpl(LSTMOptions(input_size, hidden_size)) {}
  explicit LSTMImpl(LSTMOptions options_);
  void reset() override;
  void reset_parameters();
  void flatten_parameters() {}
  std::tuple<Tensor, std::tuple<Tensor, Tensor>> forward(
      const Tensor& input, std::optional<std::tuple<Tensor, Tensor>> hx = std::nullopt);
  std::tuple<utils::rnn::PackedSequence, std::tuple<Tensor, Tensor>> forward_with_packed_input(
      const utils::rnn::PackedSequence& packed_input,
      std::optional<std::tuple<Tensor, Tensor>> hx = std::nullopt);
  void pretty_print(std::ostream& out) const override;
  std::vector<Tensor> all_weights() const { return weights_.all(*this); }
  LSTMOptions options;

 private:
  RNNWeights weights_;
};
TORCH_MODULE(LSTM);

}  // namespace flambeau::nn
