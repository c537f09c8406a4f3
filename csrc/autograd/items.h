// x[key] and x[key] = value below Python: a key is read once, from left to right, as a sequence of
// parts. Numbers, slices, None and ... become views, and index tensors are collected by the
// dimension they stand for, for ops::index. Python's keys and those of C++ are read into this.
//
// Note [Views in one step]
// Several views of one key (x[1:3, ::2]) need no operation each when nothing is recorded: their
// geometry is worked out here and one alias is made, marked as a view of x. Otherwise each is a
// call of the table's operation.
#pragma once

#include "core/tensor.h"

namespace flambeau {

// The result of the views of a key so far.
class ViewBuilder {
 public:
  explicit ViewBuilder(const Tensor& x);
  int64_t ndim() const { return static_cast<int64_t>(sizes().size()); }
  int64_t size(int64_t d) const { return sizes()[d]; }
  // Masks that are no tensors yet (lists, arrays) turn out to cover more dims than were counted.
  void need(int64_t d) const {
    FB_CHECK_INDEX(d < ndim(), "too many indices for tensor of dimension ", base_.dim());
  }
  void select(int64_t d, int64_t i);
  void slice(int64_t d, int64_t start, int64_t stop, int64_t step);  // already within [0, size]
  void unsqueeze(int64_t d);
  // The view; x itself when nothing was asked for and `same_allowed`.
  Tensor finish(bool same_allowed);

 private:
  const Ints& sizes() const { return stepwise_ ? current_.sizes() : sizes_; }
  int64_t dim_shown(int64_t d) const { return d + (dropped_ > 0 ? dropped_ : 0); }

  const Tensor& base_;
  bool stepwise_, changed_ = false;
  int64_t dropped_ = 0;  // dims of x that are gone, for messages
  Tensor current_;
  Ints sizes_, strides_;
  int64_t offset_ = 0;
};

// Does an index tensor stand for as many dims as it has?
inline bool is_mask(const Tensor& t) {
  return t.dtype() == DType::Bool || t.dtype() == DType::UInt8;
}

// Which dim of the view each part of a key is about, part after part.
class KeyPlaces {
 public:
  // Before the parts: how many dims the tensor has, and for how many the parts stand together.
  // `number`: the key is one whole number. Error(Index) when there are fewer.
  void begin(int64_t ndim, int64_t given, bool number);
  int64_t dim() const noexcept { return dim_; }
  int64_t next() noexcept { return dim_++; }  // of a slice, a None: the dim, which is then behind
  void ellipsis() noexcept {
    dim_ += left_over_;
    left_over_ = 0;
  }
  // Of an index tensor that stands for so many dims: the place among ops::index's. Masks of several
  // dims take one: ops::index counts their dims itself.
  int64_t slot(int64_t covered) noexcept {
    const int64_t at = dim_ - extra_;
    dim_ += covered;
    extra_ += covered - 1;
    return at;
  }

 private:
  int64_t dim_ = 0, left_over_ = 0, extra_ = 0;
};

// One key applied to one tensor, part after part.
class Indexer {
 public:
  explicit Indexer(const Tensor& x) : x_(x), views_(x) {}

  // See KeyPlaces::begin.
  void begin(int64_t given, bool number) { places_.begin(x_.dim(), given, number); }
  void select(int64_t i) { views_.select(places_.dim(), i); }
  // As Python unpacked it; negative ends count from the end, all are cut to the dim.
  void slice(int64_t start, int64_t stop, int64_t step);
  void none() { views_.unsqueeze(places_.next()); }
  void ellipsis() { places_.ellipsis(); }
  void truth(bool on);
  void tensor(const Tensor& t);

  bool advanced() const { return !indices_.empty(); }
  Tensor view(bool same_allowed) { return views_.finish(same_allowed || advanced()); }
  const OptTensors& indices() const { return indices_; }

 private:
  void at(int64_t slot, const Tensor& t);

  const Tensor& x_;
  ViewBuilder views_;
  OptTensors indices_;
  KeyPlaces places_;
};

// x[key] = value, once the key is read. Leading dims of size 1 of the value do not count:
// x[0:2] = ones(1, 1, 1, 3) works. A number becomes an entry of x's dtype, in half formats an
// infinity where it is too large.
void assign(const Tensor& x, Indexer& key, const Tensor& value);
void assign(const Tensor& x, Indexer& key, const Scalar& value);

}  // namespace flambeau
