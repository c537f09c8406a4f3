// Shapes and strides: pure functions of integers, declared in tensor.h.
#include <numeric>

#include "core/tensor.h"

namespace flambeau {

Ints contiguous_strides(const Ints& sizes) {
  Ints strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

Ints format_strides(const Ints& sizes, MemoryFormat format) {
  size_t n = sizes.size();
  if (format != MemoryFormat::ChannelsLast && format != MemoryFormat::ChannelsLast3d)
    return contiguous_strides(sizes);
  size_t want = format == MemoryFormat::ChannelsLast ? 4 : 5;
  FB_CHECK(n == want, "memory_format: required rank ", want, " tensor to use ",
           want == 4 ? "channels_last" : "channels_last_3d", " format, got rank ", n);
  Ints strides(n);
  int64_t step = 1;
  auto place = [&](size_t i) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  };
  place(1);
  for (size_t i = n; i-- > 2;) place(i);
  place(0);
  return strides;
}

int64_t checked_numel(const Ints& sizes, const char* op) {
  int64_t n = 1;
  bool empty = false;
  for (int64_t s : sizes) {
    FB_CHECK(s >= 0, op, ": expected non-negative sizes, got negative dimension ", s, " in ",
             sizes);
    if (s == 0)
      empty = true;
    else
      FB_CHECK(!__builtin_mul_overflow(n, s, &n), op, ": the number of elements of shape ", sizes,
               " overflows");
  }
  FB_CHECK(n <= INT64_MAX / 16, op, ": shape ", sizes, " is too large");
  return empty ? 0 : n;
}

Ints broadcast_shapes(const Ints& a, const Ints& b) {
  const Ints &longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
  Ints out = longer;
  size_t shift = longer.size() - shorter.size();
  for (size_t i = shorter.size(); i-- > 0;) {
    int64_t x = longer[shift + i], y = shorter[i];
    if (x == y || y == 1) continue;
    FB_CHECK(x == 1, "The size of tensor a (", a.size() >= b.size() ? x : y,
             ") must match the size of tensor b (", a.size() >= b.size() ? y : x,
             ") at non-singleton dimension ", shift + i);
    out[shift + i] = y;
  }
  return out;
}

int64_t wrap_dim(int64_t dim, int64_t ndim) {
  int64_t n = std::max<int64_t>(ndim, 1);
  FB_CHECK_INDEX(dim >= -n && dim < n, "Dimension out of range (expected to be in range of [", -n,
                 ", ", n - 1, "], but got ", dim, ")");
  return dim < 0 ? dim + n : dim;
}

Ints wrap_dims(const Ints& dims, int64_t ndim) {
  Ints out;
  uint64_t seen = 0;
  for (int64_t d : dims) {
    int64_t w = wrap_dim(d, ndim);
    FB_CHECK(w >= 64 || !(seen >> w & 1), "dim ", w, " appears multiple times in the list of dims");
    if (w < 64) seen |= uint64_t{1} << w;
    out.push_back(w);
  }
  return out;
}

Ints infer_sizes(const Ints& sizes, int64_t numel) {
  Ints out = sizes;
  int64_t known = 1, hole = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1) {
      FB_CHECK(hole < 0, "only one dimension can be inferred");
      hole = static_cast<int64_t>(i);
    } else {
      FB_CHECK(sizes[i] >= 0, "invalid shape dimension ", sizes[i]);
      FB_CHECK(!__builtin_mul_overflow(known, sizes[i], &known), "shape ", sizes, " overflows");
    }
  }
  bool fits = hole < 0 ? known == numel : known > 0 && numel % known == 0;
  if (hole >= 0 && known == 0 && numel == 0)
    fail(ErrorKind::Runtime, "cannot reshape tensor of 0 elements into shape ", sizes,
         " because the unspecified dimension size -1 can be any value and is ambiguous");
  FB_CHECK(fits, "shape '", sizes, "' is invalid for input of size ", numel);
  if (hole >= 0) out[hole] = numel / known;
  return out;
}

// Walks both shapes from the right, chunk by chunk: a chunk is a run of old dims that are
// contiguous among themselves, and new dims must fill whole chunks.
std::optional<Ints> view_strides(const Ints& sizes, const Ints& strides, const Ints& new_sizes) {
  int64_t numel = 1;
  for (int64_t s : sizes) numel *= s;
  if (numel == 0) return sizes == new_sizes ? strides : contiguous_strides(new_sizes);
  if (sizes.empty()) return Ints(new_sizes.size(), 1);
  Ints out(new_sizes.size());
  int64_t v = static_cast<int64_t>(new_sizes.size()) - 1;
  int64_t base = strides.back(), chunk = 1, filled = 1;
  for (int64_t d = static_cast<int64_t>(sizes.size()) - 1; d >= 0; --d) {
    chunk *= sizes[d];
    bool ends = d == 0 || (sizes[d - 1] != 1 && strides[d - 1] != chunk * base);
    if (!ends) continue;
    while (v >= 0 && (filled < chunk || new_sizes[v] == 1)) {
      out[v] = filled * base;
      filled *= new_sizes[v];
      --v;
    }
    if (filled != chunk) return {};
    if (d > 0) {
      base = strides[d - 1];
      chunk = filled = 1;
    }
  }
  if (v != -1) return {};
  return out;
}

}  // namespace flambeau
