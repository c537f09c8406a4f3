// What scripts ask of tensors besides the table: items and slices, sizes, attributes.
#include "autograd/items.h"
#include "autograd/node.h"
#include "core/error.h"
#include "core/small_vector.h"
#include "dispatch/modes.h"
#include "gen/ops.h"
#include "script/core_ops.h"
#include "script/core_table.h"
#include "script/values.h"

namespace flambeau::script {

namespace {

using Args = const Value* const*;
using Parts = std::span<const Value* const>;

const Tensor& tensor(const Value& v) {
  return defined_tensor(v);
}
int64_t dims_of(const Value& part) {
  if (part.is_none() || part.is<bool>() || box_of<Ellipsis>(part)) return 0;
  if (!part.is<Tensor>()) return 1;
  const Tensor& t = tensor(part);
  return is_mask(t) ? t.dim() : 1;
}
int64_t index_of(const Value& v, int64_t otherwise) {
  if (v.is_none()) return otherwise;
  if (!v.is<Tensor>()) return v.get<int64_t>();
  const Tensor& t = tensor(v);
  FB_CHECK_TYPE(t.numel() == 1 && t.is_integral(),
                "only integer tensors of a single element can be converted to an index");
  return t.item().to_int();
}

// Reads the parts of a key into what applies them.
void read_key(Indexer& key, Parts parts) {
  int64_t given = 0;
  for (const Value* p : parts) given += dims_of(*p);
  key.begin(given, parts.size() == 1 && parts[0]->is<int64_t>());
  for (const Value* p : parts) {
    if (p->is_none()) {
      key.none();
    } else if (const bool* on = p->get_if<bool>()) {
      key.truth(*on);
    } else if (p->is<Tensor>()) {
      key.tensor(tensor(*p));
    } else if (box_of<Ellipsis>(*p)) {
      key.ellipsis();
    } else if (auto* s = box_of<Slice>(*p)) {
      int64_t step = index_of(s->step, 1);
      key.slice(index_of(s->start, step < 0 ? INT64_MAX : 0),
                index_of(s->stop, step < 0 ? INT64_MIN : INT64_MAX), step);
    } else {
      key.select(index_of(*p, 0));
    }
  }
}

void get_item(Args a, size_t n, Value* out) {
  Tensor made = script::get_item(tensor(*a[0]), {a + 1, n - 1});
  *out = Value(std::move(made));
}
void set_item(Args a, size_t n, Value* out) {
  script::set_item(tensor(*a[0]), {a + 2, n - 2}, *a[1]);
  out->clear();
}
// x[key] += y and its kin: what the operation gives is put back.
void update_item(Args a, size_t n, Value* out) {
  const Tensor& x = tensor(*a[0]);
  Parts key{a + 3, n - 3};
  Callee change = find_callee(a[1]->get<std::string>());
  FB_CHECK_VALUE(change.op && change.op->params.size() >= 2, "x[key]: there is no operation ",
                 a[1]->get<std::string>());
  Values given(change.op->params.size());
  given[0] = Value(script::get_item(x, key));
  given[1] = a[2]->is<Tensor>() ? Value(tensor(*a[2])) : Value(wrapped_number(a[2]->number()));
  for (size_t i = 2; i < given.size(); ++i)
    if (change.op->params[i].type.base == TypeBase::Number) given[i] = Value(int64_t{1});  // alpha
  SmallVector<const Value*, 4> places;
  for (const Value& v : given) places.push_back(&v);
  Value made;
  change.call(*change.op, places.data(), &made);
  script::set_item(x, key, made);
  out->clear();
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
void is_autocast_enabled(Args a, size_t, Value* out) {
  out->put(a[0]->get<std::string>() == "cpu" && autocast_enabled());
}
// x.to(...): what becomes of it is the table's; copies that are asked not to wait are made at once.
std::optional<MemoryFormat> format_of(const Value& v) {
  if (v.is_none()) return std::nullopt;
  return v.get<MemoryFormat>();
}
std::optional<DType> dtype_of(const Value& v) {
  if (v.is_none()) return std::nullopt;
  return v.get<DType>();
}
std::optional<Device> device_of(const Value& v) {
  if (v.is_none()) return std::nullopt;
  return v.get<Device>();
}
void to_dtype(Args a, size_t, Value* out) {
  *out = Value(ops::to(tensor(*a[0]), a[1]->get<DType>(), truth(*a[3]), {}, {}));
}
void to_other(Args a, size_t, Value* out) {
  const Tensor& other = tensor(*a[1]);
  *out = Value(ops::to(tensor(*a[0]), other.dtype(), truth(*a[3]), {}, other.device()));
}
void to_device(Args a, size_t, Value* out) {
  *out = Value(ops::to(tensor(*a[0]), dtype_of(*a[2]), truth(*a[4]), {}, a[1]->get<Device>()));
}
void to_options(Args a, size_t, Value* out) {
  *out = Value(ops::to(tensor(*a[0]), dtype_of(*a[1]), truth(*a[4]), format_of(*a[5]),
                       device_of(*a[2])));
}
void as_named(Args a, size_t, Value* out) {
  *out = Value(ops::to(tensor(*a[0]), a[1]->get<DType>(), false, {}, {}));
}
template <DType dtype>
void as_dtype(Args a, size_t, Value* out) {
  *out = Value(ops::to(tensor(*a[0]), dtype, false, {}, {}));
}
void type_as(Args a, size_t, Value* out) {
  const Tensor& other = tensor(*a[1]);
  *out = Value(ops::to(tensor(*a[0]), other.dtype(), false, {}, other.device()));
}
void is_contiguous(Args a, size_t, Value* out) {
  out->put(tensor(*a[0]).is_contiguous());
}
void is_contiguous_as(Args a, size_t, Value* out) {
  out->put(tensor(*a[0]).is_contiguous(a[1]->get<MemoryFormat>()));
}
void dtype(Args a, size_t, Value* out) {
  out->put(tensor(*a[0]).dtype());
}
void is_floating_dtype(Args a, size_t, Value* out) {
  out->put(flambeau::is_floating_point(a[0]->get<DType>()));
}
void asks_grad(Args a, size_t, Value* out) {
  out->put(requires_grad(tensor(*a[0])));
}
void device_type(Args a, size_t, Value* out) {
  Device d = a[0]->get<Device>();
  *out = Value(std::string(d.is_cpu() ? "cpu" : d.is_cuda() ? "cuda" : "meta"));
}
void device_index(Args a, size_t, Value* out) {
  int64_t i = a[0]->get<Device>().index();
  if (i < 0) return out->clear();
  out->put(i);
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
    {"get_item", "tv", get_item}, {"get_item", "tvv", get_item}, {"get_item", "tvvv", get_item},
    {"get_item", "tvvvv", get_item}, {"get_item", "tvvvvv", get_item},
    {"set_item", "tyv", set_item}, {"set_item", "tyvv", set_item}, {"set_item", "tyvvv", set_item},
    {"set_item", "tyvvvv", set_item}, {"update_item", "tsyv", update_item},
    {"update_item", "tsyvv", update_item}, {"update_item", "tsyvvv", update_item},
    {"update_item", "tsyvvvv", update_item},
    {"attr_shape", "t", size}, {"attr_ndim", "t", dim},
    {"attr_dtype", "t", dtype}, {"attr_device", "t", device}, {"attr_type", "V", device_type},
    {"attr_index", "V", device_index}, {"attr_is_floating_point", "D", is_floating_dtype},
    {"attr_requires_grad", "t", asks_grad}, {"opttensors", "l", opttensors},
    {"lib.Tensor.size", "t", size}, {"lib.Tensor.size_1", "ti", size_of},
    {"lib.Tensor.dim", "t", dim}, {"lib.Tensor.ndimension", "t", dim},
    {"lib.Tensor.numel", "t", numel}, {"lib.numel", "t", numel},
    {"lib.Tensor.nelement", "t", numel}, {"lib.Tensor.item", "t", item},
    {"lib.Tensor.is_floating_point", "t", is_floating_point},
    {"lib.is_floating_point", "t", is_floating_point},
    {"lib.is_autocast_enabled", "s", is_autocast_enabled},
    {"lib.Tensor.to", "ttbb", to_other}, {"lib.Tensor.to_1", "tDbb", to_dtype},
    {"lib.Tensor.to_2", "tV*bb", to_device}, {"lib.Tensor.to_4", "t**bb*", to_options},
    {"lib.Tensor.type", "tD", as_named}, {"lib.Tensor.type_as", "tt", type_as},
    {"lib.Tensor.float", "t", as_dtype<DType::Float32>},
    {"lib.Tensor.double", "t", as_dtype<DType::Float64>},
    {"lib.Tensor.half", "t", as_dtype<DType::Float16>},
    {"lib.Tensor.bfloat16", "t", as_dtype<DType::BFloat16>},
    {"lib.Tensor.int", "t", as_dtype<DType::Int32>},
    {"lib.Tensor.long", "t", as_dtype<DType::Int64>},
    {"lib.Tensor.bool", "t", as_dtype<DType::Bool>},
    {"lib.Tensor.is_contiguous", "t", is_contiguous},
    {"lib.Tensor.is_contiguous_1", "t*", is_contiguous_as},
};

}  // namespace

std::span<const CoreRow> tensor_rows() {
  return kRows;
}

Tensor get_item(const Tensor& x, std::span<const Value* const> parts) {
  Indexer key(x);
  read_key(key, parts);
  Tensor view = key.view(false);
  return key.advanced() ? ops::index(view, key.indices()) : view;
}

void set_item(const Tensor& x, std::span<const Value* const> parts, const Value& value) {
  Indexer key(x);
  read_key(key, parts);
  if (value.is<Tensor>())
    assign(x, key, tensor(value));
  else
    assign(x, key, value.number());
}

}  // namespace flambeau::script
