// The header of a safetensors file: eight bytes with its length, JSON, the tensors' bytes.
// Invariant of what is read: the tensors' ranges lie inside the data, follow one another without
// gaps, and each has exactly the bytes that its shape and type need.
// Source: the format's description at github.com/huggingface/safetensors.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/small_vector.h"

namespace flambeau::files {

struct SafeTensor {
  std::string name, dtype;
  std::vector<int64_t> shape;
  int64_t start, stop;  // bytes, from the first after the header
};

struct SafeHeader {
  std::vector<SafeTensor> tensors;  // in the order of their bytes
  std::optional<std::vector<std::pair<std::string, std::string>>> metadata;
};

// What a header says of `size` bytes of data that follow it; Error(Value) where it is malformed.
SafeHeader read_safetensors_header(std::string_view header, uint64_t size);

}  // namespace flambeau::files
