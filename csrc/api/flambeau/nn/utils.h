// What training asks of many parameters at once, and sequences of several lengths as one tensor.
#pragma once

#include "flambeau/flambeau.h"

namespace flambeau::nn::utils {

// Scales the gradients of `parameters` so that their norm of order `norm_type`, taken together, is
// at most `max_norm`; gives the norm that they had. Parameters without a gradient are passed over.
double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                       double norm_type = 2.0, bool error_if_nonfinite = false);
double clip_grad_norm_(std::initializer_list<Tensor> parameters, double max_norm,
                       double norm_type = 2.0, bool error_if_nonfinite = false);
double clip_grad_norm_(const Tensor& parameter, double max_norm, double norm_type = 2.0,
                       bool error_if_nonfinite = false);
// Moves every entry of the gradients into [-clip_value, clip_value].
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);
void clip_grad_value_(std::initializer_list<Tensor> parameters, double clip_value);
void clip_grad_value_(const Tensor& parameter, double clip_value);

// All entries as one tensor of one dimension, and back: parameters become parts of it.
Tensor parameters_to_vector(const std::vector<Tensor>& parameters);
void vector_to_parameters(const Tensor& vec, const std::vector<Tensor>& parameters);

namespace rnn {

// Step 0 of all sequences, then step 1, and so on; the longest sequence is the first.
class PackedSequence {
 public:
  PackedSequence() = default;
  explicit PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices = {},
                          Tensor unsorted_indices = {});
  const Tensor& data() const noexcept { return data_; }
  const Tensor& batch_sizes() const noexcept { return batch_sizes_; }
  const Tensor& sorted_indices() const noexcept { return sorted_; }
  const Tensor& unsorted_indices() const noexcept { return unsorted_; }
  PackedSequence to(const TensorOptions& options) const;
  bool is_cuda() const noexcept { return data_.is_cuda(); }

 private:
  Tensor data_, batch_sizes_, sorted_, unsorted_;
};

// The permutation that undoes another; undefined of an undefined one.
Tensor invert_permutation(const Tensor& permutation);
// input: (T, B, *), or (B, T, *) with batch_first; lengths: (B) of int64. Error(Runtime) where they
// do not fit, or do not fall and enforce_sorted.
PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths,
                                    bool batch_first = false, bool enforce_sorted = true);
// The padded sequences and their lengths, in the order before packing.
std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence,
                                               bool batch_first = false, double padding_value = 0.0,
                                               std::optional<int64_t> total_length = std::nullopt);
// Sequences (L_i, *) as (T, B, *), or (B, T, *) with batch_first.
Tensor pad_sequence(TensorList sequences, bool batch_first = false, double padding_value = 0,
                    const Text& padding_side = "right");
PackedSequence pack_sequence(TensorList sequences, bool enforce_sorted = true);

}  // namespace rnn
}  // namespace flambeau::nn::utils
