#include "flambeau/nn/utils.h"

#include <cmath>

#include "gen/ops.h"

namespace flambeau::nn::utils {

static std::vector<Tensor> gradients(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> out;
  for (const Tensor& p : parameters)
    if (Tensor g = p.grad(); g.defined()) out.push_back(std::move(g));
  return out;
}

double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  const std::vector<Tensor> grads = gradients(parameters);
  NoGradGuard no_grad;
  std::vector<Tensor> norms;
  for (const Tensor& g : grads)
    if (g.numel() || norm_type != INFINITY) norms.push_back(ops::linalg_vector_norm(g, norm_type));
  if (norms.empty()) return 0.0;
  const Tensor total = ops::linalg_vector_norm(ops::stack(norms), norm_type);
  const double norm = total.item().to_double();
  FB_CHECK(!error_if_nonfinite || std::isfinite(norm), "The total norm of order ", norm_type,
           " for gradients from `parameters` is non-finite, so it cannot be clipped. To disable "
           "this error and scale the gradients by the non-finite norm anyway, set "
           "`error_if_nonfinite=false`");
  // As Python's: a division of the number by the tensor, in the tensor's dtype.
  const Tensor factor = (max_norm / (total + 1e-6)).clamp(std::nullopt, Scalar(1.0));
  ops::_foreach_mul_(grads, factor);
  return norm;
}
double clip_grad_norm_(std::initializer_list<Tensor> parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  return clip_grad_norm_(std::vector<Tensor>(parameters), max_norm, norm_type, error_if_nonfinite);
}
double clip_grad_norm_(const Tensor& parameter, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  return clip_grad_norm_(std::vector<Tensor>{parameter}, max_norm, norm_type, error_if_nonfinite);
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  NoGradGuard no_grad;
  for (const Tensor& g : gradients(parameters)) g.clamp_(Scalar(-clip_value), Scalar(clip_value));
}
void clip_grad_value_(std::initializer_list<Tensor> parameters, double clip_value) {
  clip_grad_value_(std::vector<Tensor>(parameters), clip_value);
}
void clip_grad_value_(const Tensor& parameter, double clip_value) {
  clip_grad_value_(std::vector<Tensor>{parameter}, clip_value);
}

Tensor parameters_to_vector(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> parts;
  for (const Tensor& p : parameters) parts.push_back(ops::reshape(p, Ints{-1}));
  return ops::cat(parts);
}
void vector_to_parameters(const Tensor& vec, const std::vector<Tensor>& parameters) {
  int64_t total = 0;
  for (const Tensor& p : parameters) total += p.numel();
  FB_CHECK(vec.dim() == 1 && vec.numel() == total,
           "vector_to_parameters: expected a vector of as many entries as the parameters have, ",
           total, ", got shape ", vec.sizes());
  int64_t from = 0;
  for (const Tensor& p : parameters) {
    p.set_data(vec.data().slice(0, from, from + p.numel()).view(p.sizes()));
    from += p.numel();
  }
}

namespace rnn {

PackedSequence::PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices,
                               Tensor unsorted_indices)
    : data_(std::move(data)),
      batch_sizes_(std::move(batch_sizes)),
      sorted_(std::move(sorted_indices)),
      unsorted_(unsorted_indices.defined() ? std::move(unsorted_indices)
                                           : invert_permutation(sorted_)) {}

PackedSequence PackedSequence::to(const TensorOptions& options) const {
  return PackedSequence(data_.to(options), batch_sizes_, sorted_, unsorted_);
}

Tensor invert_permutation(const Tensor& permutation) {
  if (!permutation.defined()) return {};
  return ops::argsort(permutation);
}

PackedSequence pack_padded_sequence(const Tensor& padded, const Tensor& given, bool batch_first,
                                    bool enforce_sorted) {
  FB_CHECK(given.dim() == 1, "'lengths' argument should be a 1D CPU int64 tensor, but got ",
           given.dim(), "D tensor");
  FB_CHECK(padded.dim() >= 2, "pack_padded_sequence: expected an input of two or more dimensions, ",
           "got ", padded.dim());
  const int64_t batch_dim = batch_first ? 0 : 1;
  Tensor input = padded, lengths = given.to(DType::Int64), order;
  FB_CHECK(input.numel(), "Cannot pack empty tensors.");
  FB_CHECK(lengths.numel() == input.size(batch_dim),
           "Expected `len(lengths)` to be equal to batch_size, but got ", lengths.numel(),
           " (batch_size=", input.size(batch_dim), ")");
  if (!enforce_sorted) {
    std::tie(lengths, order) = ops::sort(lengths, -1, true);
    input = ops::index_select(input, batch_dim, order);
  }
  lengths = lengths.contiguous();
  const int64_t* n = lengths.const_data_ptr<int64_t>();
  const int64_t batch = lengths.numel();
  for (int64_t i = 0; i < batch; ++i) {
    FB_CHECK(n[i] > 0,
             "Length of all samples has to be greater than 0, but found an element in "
             "'lengths' that is <= 0");
    FB_CHECK(
        i == 0 || n[i] <= n[i - 1],
        "`lengths` array must be sorted in decreasing order when `enforce_sorted` is true. You "
        "can pass `enforce_sorted=false` to pack_padded_sequence and/or pack_sequence to "
        "sidestep this requirement.");
  }
  const Tensor steps = batch_first ? ops::transpose(input, 0, 1) : input;
  FB_CHECK(n[0] <= steps.size(0), "pack_padded_sequence: the longest of lengths is ", n[0],
           ", but input has ", steps.size(0), " steps");
  std::vector<Tensor> parts;
  const Tensor sizes = ops::empty(Ints{n[0]}, DType::Int64);
  for (int64_t t = 0, running = batch; t < n[0]; ++t) {
    while (n[running - 1] <= t) --running;
    sizes.mutable_data_ptr<int64_t>()[t] = running;
    parts.push_back(steps.select(0, t).slice(0, 0, running));
  }
  return PackedSequence(ops::cat(parts), sizes, order);
}

std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first,
                                               double padding_value,
                                               std::optional<int64_t> total_length) {
  const Tensor sizes = sequence.batch_sizes().contiguous(), data = sequence.data();
  const int64_t* n = sizes.const_data_ptr<int64_t>();
  const int64_t longest = sizes.numel(), batch = longest ? n[0] : 0;
  const int64_t total = total_length.value_or(longest);
  FB_CHECK_VALUE(total >= longest,
                 "Expected total_length to be at least the length of the longest sequence in "
                 "input, but got total_length=",
                 total, " and max sequence length being ", longest);
  std::vector<Tensor> rows;
  Tensor lengths = ops::zeros(Ints{batch}, DType::Int64);
  int64_t from = 0;
  auto filled = [&](int64_t count) {
    Ints shape(data.sizes());
    shape[0] = count;
    return ops::full(shape, Scalar(padding_value), data.dtype());
  };
  for (int64_t t = 0; t < total; ++t) {
    const int64_t running = t < longest ? n[t] : 0;
    std::vector<Tensor> parts;
    if (running) parts.push_back(data.slice(0, from, from + running));
    if (running < batch) parts.push_back(filled(batch - running));
    rows.push_back(parts.size() == 1 ? parts[0] : ops::cat(parts));
    from += running;
    for (int64_t i = 0; i < running; ++i) ++lengths.mutable_data_ptr<int64_t>()[i];
  }
  Tensor padded = ops::stack(rows, batch_first ? 1 : 0);
  if (const Tensor& unsorted = sequence.unsorted_indices(); unsorted.defined()) {
    padded = ops::index_select(padded, batch_first ? 0 : 1, unsorted);
    lengths = ops::index_select(lengths, 0, unsorted);
  }
  return {padded, lengths};
}

Tensor pad_sequence(TensorList sequences, bool batch_first, double padding_value,
                    const Text& padding_side) {
  FB_CHECK(!sequences.empty(), "pad_sequence: expected a non-empty list of Tensors");
  const std::string& side = padding_side.str();
  FB_CHECK(side == "left" || side == "right",
           "Expected padding_side to be one of left or right, but got ", side, ".");
  int64_t longest = 0;
  for (const Tensor& x : sequences) longest = std::max(longest, x.size(0));
  std::vector<Tensor> rows;
  for (const Tensor& x : sequences) {
    Ints shape(x.sizes());
    Ints wanted(sequences[0].sizes());
    wanted[0] = shape[0];
    FB_CHECK(shape == wanted, "pad_sequence: sequences must agree in all sizes but the first, got ",
             sequences[0].sizes(), " and ", x.sizes());
    shape[0] = longest - shape[0];
    const Tensor gap = ops::full(shape, Scalar(padding_value), x.dtype());
    rows.push_back(ops::cat(side == "right" ? Tensors{x, gap} : Tensors{gap, x}));
  }
  return ops::stack(rows, batch_first ? 0 : 1);
}

PackedSequence pack_sequence(TensorList sequences, bool enforce_sorted) {
  const Tensor lengths = ops::empty(Ints{static_cast<int64_t>(sequences.size())}, DType::Int64);
  for (size_t i = 0; i < sequences.size(); ++i)
    lengths.mutable_data_ptr<int64_t>()[i] = sequences[i].size(0);
  return pack_padded_sequence(pad_sequence(sequences), lengths, false, enforce_sorted);
}

}  // namespace rnn
}  // namespace flambeau::nn::utils
