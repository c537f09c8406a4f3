// What scripts ask of tensors besides the table: items and slices, sizes, attributes.
#include <algorithm>

#include "core/error.h"
#include "gen/ops.h"
#include "script/core_ops.h"
#include "script/core_table.h"
#include "script/values.h"

namespace flambeau::script {

namespace {

using Args = const Value* const*;

const Tensor& tensor(const Value& v) {
  return defined_tensor(v);
}
int64_t dims_of(const Value& part) {
  return part.is_none() || box_of<Ellipsis>(part) ? 0 : 1;
}
int64_t index_of(const Value& v, int64_t otherwise) {
  if (v.is_none()) return otherwise;
  if (!v.is<Tensor>()) return v.get<int64_t>();
  const Tensor& t = tensor(v);
  FB_CHECK_TYPE(t.numel() == 1 && t.is_integral(),
                "only integer tensors of a single element can be converted to an index");
  return t.item().to_int();
}

// The views that parts other than tensors are.
Tensor view_of(const Tensor& x, std::span<const Value* const> parts) {
  int64_t given = 0, ndim = x.dim();
  for (const Value* p : parts) given += dims_of(*p);
  if (ndim == 0 && given > 0 && parts.size() == 1 && parts[0]->is<int64_t>())
    fail(ErrorKind::Index,
         "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in "
         "C++ to convert a 0-dim tensor to a number");
  FB_CHECK_INDEX(given <= ndim, "too many indices for tensor of dimension ", ndim);
  Tensor out = x;
  int64_t dim = 0, dropped = 0;
  bool changed = false, open = true;
  for (const Value* p : parts) {
    if (p->is_none()) {
      out = ops::unsqueeze(out, dim++);
      --dropped;
      changed = true;
    } else if (box_of<Ellipsis>(*p)) {
      if (std::exchange(open, false)) dim += ndim - given;
    } else if (auto* s = box_of<Slice>(*p)) {
      int64_t n = out.sizes()[dim], step = index_of(s->step, 1);
      FB_CHECK_VALUE(step > 0, "step must be greater than zero");
      auto clamp = [n](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
      int64_t start = clamp(index_of(s->start, 0));
      int64_t stop = std::max(start, clamp(index_of(s->stop, n)));
      if (start != 0 || stop != n || step != 1) {
        out = ops::slice(out, dim, start, stop, step);
        changed = true;
      }
      ++dim;
    } else {
      int64_t i = index_of(*p, 0), n = out.sizes()[dim];
      FB_CHECK_INDEX(i >= -n && i < n, "index ", i, " is out of bounds for dimension ",
                     dim + std::max<int64_t>(dropped, 0), " with size ", n);
      out = ops::select(out, dim, i);
      ++dropped;
      changed = true;
    }
  }
  return changed ? out : ops::alias(x);
}

void get_item(Args a, size_t n, Value* out) {
  *out = Value(script::get_item(tensor(*a[0]), {a + 1, n - 1}));
}

void size(Args a, size_t, Value* out) {
  *out = Value(tensor(*a[0]).sizes());
}
void size_of(Args a, size_t, Value* out) {
  const Tensor& x = tensor(*a[0]);
  *out = Value(x.sizes()[wrap_dim(a[1]->get<int64_t>(), x.dim())]);
}
void dim(Args a, size_t, Value* out) {
  *out = Value(int64_t{tensor(*a[0]).dim()});
}
void numel(Args a, size_t, Value* out) {
  *out = Value(tensor(*a[0]).numel());
}
void item(Args a, size_t, Value* out) {
  *out = Value(tensor(*a[0]).item());
}
void is_floating_point(Args a, size_t, Value* out) {
  out->put(tensor(*a[0]).is_floating_point());
}
void dtype(Args a, size_t, Value* out) {
  out->put(tensor(*a[0]).dtype());
}
void device(Args a, size_t, Value* out) {
  out->put(tensor(*a[0]).device());
}
void opttensors(Args a, size_t, Value* out) {
  OptTensors xs;
  for (int64_t i = 0, n = list_size(*a[0]); i < n; ++i) {
    Value x = list_item(*a[0], i);
    xs.push_back(x.is_none() ? OptTensor() : OptTensor(tensor(x)));
  }
  *out = Value(std::move(xs));
}

constexpr CoreRow kRows[] = {
    {"get_item", "ti", get_item}, {"get_item", "tS", get_item}, {"get_item", "t0", get_item},
    {"get_item", "tE", get_item}, {"get_item", "tvv", get_item}, {"get_item", "tvvv", get_item},
    {"get_item", "tvvvv", get_item}, {"attr_shape", "t", size}, {"attr_ndim", "t", dim},
    {"attr_dtype", "t", dtype}, {"attr_device", "t", device}, {"opttensors", "l", opttensors},
    {"lib.Tensor.size", "t", size}, {"lib.Tensor.size_1", "ti", size_of},
    {"lib.Tensor.dim", "t", dim}, {"lib.Tensor.ndimension", "t", dim},
    {"lib.Tensor.numel", "t", numel}, {"lib.numel", "t", numel},
    {"lib.Tensor.nelement", "t", numel}, {"lib.Tensor.item", "t", item},
    {"lib.Tensor.is_floating_point", "t", is_floating_point},
    {"lib.is_floating_point", "t", is_floating_point},
};

}  // namespace

std::span<const CoreRow> tensor_rows() {
  return kRows;
}

Tensor get_item(const Tensor& x, std::span<const Value* const> parts) {
  return view_of(x, parts);
}

}  // namespace flambeau::script
