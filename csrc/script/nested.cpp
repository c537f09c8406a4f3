// torch.tensor in scripts: numbers, and lists of them in lists, as a tensor. The same rules as for
// Python's data (csrc/python/from_data.cpp): the shape from the first item of each level, the dtype
// by promotion over all, then one pass that stores them.
#include "autograd/meta.h"
#include "core/promotion.h"
#include "core/stored.h"
#include "gen/ops.h"
#include "script/core_ops.h"
#include "script/core_table.h"
#include "script/values.h"

namespace flambeau::script {
namespace {

constexpr size_t kMaxDims = 64;

bool is_number(const Value& v) {
  return v.is<bool>() || v.is<int64_t>() || v.is<double>() || v.is<complex128>();
}

bool is_sequence(const Value& v) {
  return is_list(v) || box_of<Tuple>(v);
}

Ints shape_of(const Value& data) {
  Ints sizes;
  for (Value level = data; is_sequence(level);) {
    const int64_t n = list_size(level);
    sizes.push_back(n);
    FB_CHECK_VALUE(sizes.size() <= kMaxDims, "tensor: too many dimensions");
    if (n == 0) break;
    level = list_item(level, 0);
  }
  return sizes;
}

DType dtype_of_item(const Value& v) {
  if (v.is<bool>()) return DType::Bool;
  if (v.is<int64_t>()) return DType::Int64;
  if (v.is<double>()) return default_dtype();
  if (v.is<complex128>()) return to_complex(default_dtype());
  if (v.is<Tensor>()) return defined_tensor(v).dtype();
  return v.number().dtype();  // an error: it is none
}

void infer(const Value& v, std::optional<DType>& found) {
  if (!is_sequence(v)) {
    const DType d = dtype_of_item(v);
    found = found ? promote(*found, d) : d;
    return;
  }
  for (int64_t i = 0, n = list_size(v); i < n; ++i) infer(list_item(v, i), found);
}

Scalar number_of(const Value& v) {
  if (is_number(v)) return v.number();
  if (!v.is<Tensor>()) dtype_of_item(v);  // says what it is
  const Tensor& t = defined_tensor(v);
  FB_CHECK_VALUE(t.numel() == 1,
                 "only one element tensors can be converted to Python scalars, got shape ",
                 t.sizes());
  return t.item();
}

template <class T>
T* fill(T* p, const Value& v, const Ints& sizes, size_t level) {
  if (level == sizes.size()) {
    FB_CHECK_VALUE(!is_sequence(v), "expected sequence of length ",
                   sizes.empty() ? 0 : sizes.back(), " at dim ", level, " (got ", list_size(v),
                   ")");
    *p = stored<T>(number_of(v));
    return p + 1;
  }
  FB_CHECK_TYPE(is_sequence(v), "not a sequence");
  const int64_t n = list_size(v);
  FB_CHECK_VALUE(n == sizes[level], "expected sequence of length ", sizes[level], " at dim ", level,
                 " (got ", n, ")");
  for (int64_t i = 0; i < n; ++i) p = fill(p, list_item(v, i), sizes, level + 1);
  return p;
}

Tensor of_data(const Value& data, std::optional<DType> dtype) {
  if (data.is<Tensor>()) {
    const Tensor& t = defined_tensor(data);
    return detach(ops::to(t, dtype.value_or(t.dtype()), true, {}, {}));
  }
  const Ints sizes = shape_of(data);
  if (!dtype) {
    infer(data, dtype);
    if (!dtype) dtype = default_dtype();
  }
  Tensor out = ops::empty(sizes, *dtype);
  Tensor room = out.numel() ? out : ops::empty({0}, *dtype);  // without items: is it well formed?
  visit(*dtype, [&]<class T>() { fill(static_cast<T*>(room.data_ptr()), data, sizes, 0); });
  return out;
}

// tensor(data, dtype, device, requires_grad)
void tensor_of(const Value* const* a, size_t, Value* out) {
  std::optional<DType> dtype;
  if (!a[1]->is_none()) dtype = a[1]->get<DType>();
  Tensor made = of_data(*a[0], dtype);
  if (!a[2]->is_none()) {
    const auto* named = a[2]->get_if<std::string>();
    made = ops::to(made, {}, false, {}, named ? Device(*named) : a[2]->get<Device>());
  }
  if (!a[3]->is_none() && a[3]->get<bool>()) set_requires_grad(made, true);
  *out = Value(std::move(made));
}

constexpr CoreRow kRows[] = {{"tensor", "****", tensor_of}};

}  // namespace

std::span<const CoreRow> data_rows() {
  return kRows;
}

}  // namespace flambeau::script
