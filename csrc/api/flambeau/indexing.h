// Keys of Tensor::index and index_put_: whole numbers, slices, None, "...", truths, tensors.
#pragma once

#include <limits>
#include <optional>
#include <string_view>

#include "core/tensor.h"

namespace flambeau::indexing {

struct EllipsisIndexType {};
inline constexpr EllipsisIndexType Ellipsis{};
inline constexpr std::nullopt_t None = std::nullopt;

// start:stop:step; what is None is left out.
class Slice {
 public:
  Slice(std::optional<int64_t> start = std::nullopt, std::optional<int64_t> stop = std::nullopt,
        std::optional<int64_t> step = std::nullopt)
      : start_(start.value_or(0)),
        stop_(stop.value_or(std::numeric_limits<int64_t>::max())),
        step_(step.value_or(1)) {}
  int64_t start() const noexcept { return start_; }
  int64_t stop() const noexcept { return stop_; }
  int64_t step() const noexcept { return step_; }

 private:
  int64_t start_, stop_, step_;
};

// One part of a key.
class TensorIndex {
 public:
  enum class Kind : uint8_t { None, Ellipsis, Integer, Boolean, Slice, Tensor };

  TensorIndex(std::nullopt_t) : kind_(Kind::None) {}
  TensorIndex(EllipsisIndexType) : kind_(Kind::Ellipsis) {}
  TensorIndex(const char* text) : kind_(Kind::Ellipsis) {
    FB_CHECK_VALUE(std::string_view(text) == "...",
                   "index: expected \"...\" as the only text of a key, got \"", text, "\"");
  }
  // bool, and no number that happens to be 0 or 1
  template <class T>
  requires(std::is_integral_v<T>) TensorIndex(T i)
      : kind_(std::is_same_v<T, bool> ? Kind::Boolean : Kind::Integer),
        integer_(static_cast<int64_t>(i)) {}
  TensorIndex(Slice s) : kind_(Kind::Slice), slice_(s) {}
  TensorIndex(Tensor t) : kind_(Kind::Tensor), tensor_(std::move(t)) {
    FB_CHECK(tensor_.defined(), "index: a tensor of the key is undefined");
  }

  Kind kind() const noexcept { return kind_; }
  bool is_none() const noexcept { return kind_ == Kind::None; }
  bool is_ellipsis() const noexcept { return kind_ == Kind::Ellipsis; }
  bool is_integer() const noexcept { return kind_ == Kind::Integer; }
  bool is_boolean() const noexcept { return kind_ == Kind::Boolean; }
  bool is_slice() const noexcept { return kind_ == Kind::Slice; }
  bool is_tensor() const noexcept { return kind_ == Kind::Tensor; }
  int64_t integer() const noexcept { return integer_; }
  bool boolean() const noexcept { return integer_ != 0; }
  const Slice& slice() const noexcept { return slice_; }
  const Tensor& tensor() const noexcept { return tensor_; }

 private:
  Kind kind_;
  int64_t integer_ = 0;
  Slice slice_;
  Tensor tensor_;
};

}  // namespace flambeau::indexing
