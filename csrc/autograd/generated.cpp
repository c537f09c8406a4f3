#include "autograd/generated.h"

#include "autograd/change_watch.h"
#include "autograd/forward_mode.h"
#include "autograd/grad_ops.h"
#include "autograd/meta.h"
#include "gen/ops.h"
#include "kernels/copy.h"

namespace flambeau {

Need need_of(const Node& node, size_t from, size_t count) {
  Need need{false, static_cast<uint32_t>(count)};
  for (size_t i = 0; i < count && !need.wanted; ++i) need.wanted = node.needs(from + i);
  return need;
}

bool none_defined(const Tensors& grads) {
  return std::none_of(grads.begin(), grads.end(), [](const Tensor& g) { return g.defined(); });
}

Tensor cotangent(const Node& node, const Tensors& grads, size_t i) {
  if (i < grads.size() && grads[i].defined()) return grads[i];
  const OutputMeta& meta = node.outputs.at(i);
  return ops::zeros(meta.sizes, meta.dtype, meta.device);
}

Tensor cotangent_like(const Tensor& grad, const Tensor& result) {
  return grad.defined() ? grad : grad_ops::zeros_for(result);
}

Tensor tangent_like(const Tensor& tangent, const Tensor& x) {
  return cotangent_like(tangent, x);
}

SavedList save_list(const Tensors& xs) {
  SavedList out;
  out.reserve(xs.size());
  for (const Tensor& x : xs) out.emplace_back(x, false);
  return out;
}

SavedList save_list(const OptTensors& xs) {
  SavedList out;
  out.reserve(xs.size());
  for (const OptTensor& x : xs) out.emplace_back(x, false);
  return out;
}

OptTensor unpack_optional(const SavedTensor& saved, const Node& owner) {
  Tensor x = saved.unpack(owner);
  return x.defined() ? OptTensor(std::move(x)) : std::nullopt;
}

Tensors unpack_list(const SavedList& saved, const Node& owner) {
  Tensors out;
  out.reserve(saved.size());
  for (const SavedTensor& s : saved) out.push_back(s.unpack(owner));
  return out;
}

OptTensors unpack_optional_list(const SavedList& saved, const Node& owner) {
  OptTensors out;
  out.reserve(saved.size());
  for (const SavedTensor& s : saved) out.push_back(unpack_optional(s, owner));
  return out;
}

void reset_list(SavedList& saved) {
  for (SavedTensor& s : saved) s.reset();
}

Tensors shapes_of(const Tensors& xs) {
  static const Ref<Storage> nowhere =
      empty({0}, DType::UInt8, MemoryFormat::Contiguous, {DeviceType::Meta})->storage;
  Tensors out;
  out.reserve(xs.size());
  for (const Tensor& x : xs) {
    Tensor& made = out.emplace_back(Ref<TensorImpl>::adopt(TensorImpl::make()));
    made->dtype = x.dtype();
    made->sizes = x.sizes();
    made->strides = x.strides();
    made->storage = nowhere;
    made->refresh();
  }
  return out;
}

static void check_castable(DType from, DType to, const char* op) {
  FB_CHECK(can_cast(from, to), op, ": result type ", scalar_type_name(from),
           " can't be cast to the desired output type ", scalar_type_name(to));
}

Tensor copied(const Tensor& x) {
  return ops::clone(x);
}

Tensor assign_inplace(const Tensor& self, const Tensor& result, const char* op) {
  check_castable(result.dtype(), self.dtype(), op);
  FB_CHECK(result.sizes() == self.sizes(), op, ": output with shape ", self.sizes(),
           " doesn't match the broadcast shape ", result.sizes());
  return ops::copy_(self, result);
}

void check_inplace(const Tensors& xs, const char* op) {
  for (const Tensor& x : xs) {
    bool recorded = needs_grad(x);
    check_inplace(x, recorded, op);
    FB_CHECK(!recorded, op,
             ": a tensor that requires grad is changed without being recorded; use no_grad()");
  }
}

void bump_versions(const Tensors& xs) {
  for (const Tensor& x : xs) x.bump_version();
}

void before_updates(const OptTensors& xs, const char* op) {
  for (const OptTensor& x : xs)
    if (x && x->defined()) before_change(*x, op);
}

static bool alike(const Tensor& a, const Tensor& b) {
  if (a.is_same(b)) return true;
  return a.dtype() == b.dtype() && b.is_contiguous() && a.sizes() == b.sizes() && !needs_grad(b) &&
         !b.has_flag(kWrapper) && b.device() == a.device() &&
         (!a.shares_storage(b) || a.offset() == b.offset());
}

bool alike(const Tensors& a, const Tensors& b, const Tensors& c) {
  if (intercepted()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const Tensor& x = a[i];
    if (!x.is_floating_point() || !x.is_contiguous() || needs_grad(x) || x.has_flag(kWrapper))
      return false;
    if (x.device().type() != DeviceType::CPU || !alike(x, b[i]) || !alike(x, c[i])) return false;
  }
  return true;
}

bool differentiated() noexcept {
  return modes.grad || (modes.forward_grad && dual_level() >= 0);
}

bool is_differentiated(const Tensor& x) {
  for (const Tensor* t = &x;; t = &(*t)->autograd->wrapped->value) {
    if ((modes.grad && requires_grad(*t)) || (modes.forward_grad && is_dual(*t))) return true;
    if (!t->has_flag(kWrapper)) return false;
  }
}

bool any_dual(const Tensor& x) noexcept {
  return x.defined() && modes.forward_grad && has_tangent(x);
}
bool any_dual(const OptTensor& x) noexcept {
  return x && any_dual(*x);
}
bool any_dual(const Tensors& xs) noexcept {
  return std::any_of(xs.begin(), xs.end(), [](const Tensor& x) { return any_dual(x); });
}
bool any_dual(const OptTensors& xs) noexcept {
  return std::any_of(xs.begin(), xs.end(), [](const OptTensor& x) { return any_dual(x); });
}

[[gnu::noinline]] static void refuse_duals(const Tensor& out, bool inputs, const char* op) {
  FB_CHECK_IMPL(!inputs && !any_dual(out), op,
                "(): functions with out=... arguments don't support forward mode, but one of the "
                "arguments has a tangent; call it without out=");
}

void check_out(const Tensor& out, bool inputs_need_grad, const char* op, bool duals) {
  if (intercepted()) [[unlikely]]
    refuse_duals(out, duals, op);
  FB_CHECK(!inputs_need_grad && !needs_grad(out), op,
           "(): functions with out=... arguments don't support automatic differentiation, but one "
           "of the "
           "arguments requires grad.");
  FB_CHECK(out.is_contiguous() || !has_internal_overlap(out), op,
           "(): unsupported operation: more than one element of the written-to tensor refers to a "
           "single memory location. Please clone() the tensor before performing the operation.");
}

void check_apart(const Tensor& out, const Ints& sizes, const Tensor& input, const char* op) {
  if (!out.shares_storage(input)) return;
  FB_CHECK(out.sizes() == sizes && overlap(out, input) == Overlap::None, op,
           "(): ", kernels::kOverlap);
}
void check_apart(const Tensor& out, const Ints& sizes, const Tensors& inputs, const char* op) {
  for (const Tensor& x : inputs) check_apart(out, sizes, x, op);
}

bool writes_directly(const Tensor& out, const Tensor& like) {
  return out.dtype() == like.dtype() && out.sizes() == like.sizes() &&
         out.strides() == like.strides() && out.device() == like.device();
}

bool may_overlap(const Tensor& out, const Tensor& x) {
  return x.defined() && out.shares_storage(x);
}
bool may_overlap(const Tensor& out, const OptTensor& x) {
  return x && may_overlap(out, *x);
}
bool may_overlap(const Tensor& out, const Tensors& xs) {
  return std::any_of(xs.begin(), xs.end(), [&](const Tensor& x) { return may_overlap(out, x); });
}
bool may_overlap(const Tensor& out, const OptTensors& xs) {
  return std::any_of(xs.begin(), xs.end(), [&](const OptTensor& x) { return may_overlap(out, x); });
}

// The element's type in C++, as messages about out= have it.
static const char* cpp_type_name(DType d) {
  constexpr const char* names[] = {"bool",
                                   "unsigned char",
                                   "signed char",
                                   "short int",
                                   "int",
                                   "long int",
                                   "uint16_t",
                                   "uint32_t",
                                   "uint64_t",
                                   "c10::Half",
                                   "c10::BFloat16",
                                   "float",
                                   "double",
                                   "c10::complex<float>",
                                   "c10::complex<double>"};
  static_assert(std::size(names) == kDTypes);
  return names[static_cast<int>(d)];
}

void check_out_dtype(const Tensor& out, DType result, std::optional<DType> also) {
  FB_CHECK(out.dtype() == result || (also && out.dtype() == *also),
           "Expected out tensor to have dtype ", cpp_type_name(result), ", but got ",
           cpp_type_name(out.dtype()), " instead");
}

void check_assignable(const Tensor& out, const Tensor& result, const char* op) {
  check_castable(result.dtype(), out.dtype(), op);
  check_out_device(result.device(), out);
  int64_t wanted = (out.offset() + result.numel()) * out.itemsize();
  FB_CHECK(out.sizes() == result.sizes() || wanted <= out.storage()->nbytes() ||
               out.storage()->resizable(),
           op, "(): Trying to resize storage that is not resizable: out has shape ", out.sizes(),
           ", the result ", result.sizes());
}

Tensor in_shape_of(const Tensor& out, const Tensor& result) {
  bool fits = out.numel() == result.numel() && out.sizes() != result.sizes();
  return fits ? ops::view(result, out.sizes()) : result;
}

void assign_out(const Tensor& out, const Tensor& result, const char* op, bool told) {
  if (out.is_same(result)) {
    out.bump_version();
    return;
  }
  check_assignable(out, result, op);
  if (told)
    resize_output(out, result.sizes(), op);
  else
    resize(out, result.sizes());
  NoGradGuard no_grad;
  ops::copy_(out, result);
}

Tensor underivable(const Tensor& g, const char* op) {
  bool readable = on_cpu(g) && !g.has_flag(kWrapper);
  if (readable && !truth(ops::any(g), true)) return g;
  fail(ErrorKind::NotImplemented, "the derivative for '", op, "' is not implemented");
}

Tensor sum_to(const Tensor& x, const Ints& shape) {
  if (x.sizes() == shape) return x;
  Ints dims;
  int64_t lead = x.dim() - static_cast<int64_t>(shape.size());
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (d < lead || (shape[d - lead] == 1 && x.sizes()[d] != 1)) dims.push_back(d);
  }
  Tensor y = dims.empty() ? x : ops::sum(x, dims, /*keepdim=*/true);
  return lead > 0 ? ops::view(y, shape) : y;
}

}  // namespace flambeau
