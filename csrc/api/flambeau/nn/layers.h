// Layers: the options, modules and holders of flambeau::nn, and the functions that take options.
#pragma once

#include "flambeau/nn/containers.h"
#include "flambeau/nn/init.h"

namespace flambeau::nn {

// The padding of a convolution: sizes, or torch::kSame, torch::kValid.
template <size_t D>
class ConvPadding {
 public:
  ConvPadding(int64_t x) : sizes_(x) {}
  ConvPadding(std::initializer_list<int64_t> xs) : sizes_(xs) {}
  ConvPadding(const std::vector<int64_t>& xs) : sizes_(xs) {}
  ConvPadding(ExpandingArray<D> xs) : sizes_(xs) {}
  ConvPadding(Word w) : ConvPadding(Text(w)) {}
  ConvPadding(Text text) : sizes_(0), text_(std::move(text)) {
    FB_CHECK_VALUE(text_.str() == "same" || text_.str() == "valid", "Invalid padding string '",
                   text_.str(), "', should be one of 'same', 'valid'");
  }
  bool is_text() const { return !text_.str().empty(); }
  const std::string& text() const { return text_.str(); }
  Ints sizes() const { return IntArrayRef(sizes_).ints(); }
  // Before and behind each dim, the last first, as functional::pad wants them.
  Ints around(const ExpandingArray<D>& kernel, const ExpandingArray<D>& dilation) const {
    Ints out;
    for (size_t d = D; d-- > 0;) {
      const int64_t all = dilation[d] * (kernel[d] - 1);
      const bool same = text_.str() == "same";
      out.push_back(is_text() ? (same ? all / 2 : 0) : sizes_[d]);
      out.push_back(is_text() ? (same ? all - all / 2 : 0) : sizes_[d]);
    }
    return out;
  }

 private:
  ExpandingArray<D> sizes_;
  Text text_;
};

}  // namespace flambeau::nn

#include "gen/api/modules.h"
