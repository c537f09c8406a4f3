// The text of a tensor's values, which is PyTorch's to the character: Python's repr and C++'s <<
// show it. Sizes, dtype and history around it are their matter.
#pragma once

#include <optional>
#include <string>

#include "core/tensor.h"

namespace flambeau {

struct PrintOptions {
  int64_t precision = 4;           // digits behind the point
  double threshold = 1000;         // tensors with more elements are shortened
  int64_t edgeitems = 3;           // elements shown at either end of a shortened dim
  int64_t linewidth = 80;          // columns of a line
  std::optional<bool> scientific;  // none: the values decide
};

// Nested brackets; lines after the first begin in column `indent`. Not for meta tensors and
// wrappers, which have no values.
std::string values_text(const Tensor& x, int64_t indent, const PrintOptions& options);
// What Python prints of a plain tensor: tensor([1., 2.], dtype=torch.float64, requires_grad=True).
std::string tensor_text(const Tensor& x, const PrintOptions& options);

}  // namespace flambeau
