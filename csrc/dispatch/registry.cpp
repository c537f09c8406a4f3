#include "dispatch/registry.h"

#include <algorithm>
#include <deque>
#include <map>
#include <shared_mutex>

#include "autograd/node.h"
#include "core/error.h"
#include "profiler/events.h"

namespace flambeau {

namespace {

// Is code below autograd, and what intercepted calls when it came to be?
struct Below {
  bool on = false;
  const Interceptor* top = nullptr;
};
thread_local constinit Below below;

}  // namespace

BelowAutograd::BelowAutograd() : top_(below.top), before_(below.on) {
  below = {true, modes.top};
}
BelowAutograd::~BelowAutograd() {
  below = {before_, top_};
}
bool BelowAutograd::on() noexcept {
  return below.on && below.top == modes.top;
}

// Descriptors
// -----------------------------------------------------------------------------------------------

std::optional<TypeDesc> type_desc(const SchemaType& t) {
  using Form = SchemaType::Form;
  if (t.form == Form::Optional) {
    auto inner = type_desc(t.items[0]);
    if (inner) inner->optional = true;
    return inner;
  }
  if (t.form == Form::Tuple || t.form == Form::Dict) {
    for (const SchemaType& item : t.items)
      if (!type_desc(item)) return std::nullopt;
    return TypeDesc{TypeBase::Object};
  }
  if (t.form == Form::List) {
    const SchemaType& item = t.items[0];
    TypeDesc out{TypeBase::Tensors};
    out.length = static_cast<uint8_t>(t.length);
    if (item.is("Tensor")) return TypeDesc{TypeBase::Tensors};
    if (item.form == Form::Optional && item.items[0].is("Tensor"))
      return TypeDesc{TypeBase::OptTensors};
    if (item.is("int") || item.is("SymInt"))
      out.base = TypeBase::Ints;
    else if (item.is("float") || item.is("SymFloat"))
      out.base = TypeBase::Floats;
    else if (item.is("bool"))
      out.base = TypeBase::Bools;
    else if (item.is("Scalar"))
      out.base = TypeBase::Numbers;
    else if (type_desc(item))
      return TypeDesc{TypeBase::Object};
    else
      return std::nullopt;
    return out;
  }
  static constexpr std::pair<const char*, TypeBase> names[] = {
      {"Tensor", TypeBase::Tensor},     {"int", TypeBase::Int},
      {"SymInt", TypeBase::Int},        {"float", TypeBase::Float},
      {"SymFloat", TypeBase::Float},    {"bool", TypeBase::Bool},
      {"SymBool", TypeBase::Bool},      {"str", TypeBase::Str},
      {"Scalar", TypeBase::Number},     {"complex", TypeBase::Number},
      {"ScalarType", TypeBase::DType},  {"Device", TypeBase::Device},
      {"Layout", TypeBase::Layout},     {"MemoryFormat", TypeBase::MemoryFormat},
      {"Generator", TypeBase::Generator}};
  for (auto& [name, base] : names)
    if (t.is(name)) return TypeDesc{base};
  if (t.is("Any") || (t.form == Form::Name && t.name.starts_with(kCustomClasses)))
    return TypeDesc{TypeBase::Object};
  return std::nullopt;
}

namespace {

constexpr size_t kMostParameters = 32;  // masks of OpDesc have that many bits

TypeDesc described(const Schema& s, const SchemaArgument& a, const char* what) {
  auto out = type_desc(a.type);
  FB_CHECK(out, s.full_name(), ": expected ", what,
           " of types Tensor, int, float, bool, str, Scalar, ScalarType, Device, Layout, "
           "MemoryFormat, Generator, Any, classes of torch::class_, their optionals, lists, tuples "
           "and dicts, got ",
           to_text(a.type), a.name.empty() ? "" : " ", a.name);
  return *out;
}

// Calls
// -----------------------------------------------------------------------------------------------

template <class F>
void for_each_tensor(const Value& v, F f) {
  if (auto* x = v.get_if<Tensor>()) {
    if (x->defined()) f(*x);
  } else if (auto* xs = v.get_if<Tensors>()) {
    for (const Tensor& t : *xs)
      if (t.defined()) f(t);
  } else if (auto* os = v.get_if<OptTensors>()) {
    for (const OptTensor& o : *os)
      if (o && o->defined()) f(*o);
  } else if (auto* held = v.object()) {
    held->visit([](void* data, const Value& x) { for_each_tensor(x, *static_cast<F*>(data)); }, &f);
  }
}

// Device of the first tensor, or the one that the call names.
DeviceType device_of(const OpDesc& op, const Value* const* args) {
  std::optional<DeviceType> found;
  for (size_t i = 0; i < op.params.size() && !found; ++i)
    for_each_tensor(*args[i], [&](const Tensor& t) {
      if (!found) found = t.device().type();
    });
  for (size_t i = 0; i < op.params.size() && !found; ++i)
    if (auto* d = args[i]->get_if<Device>()) found = d->type();
  return found.value_or(modes.device.type());
}

const char* name_of(DeviceType t) {
  return t == DeviceType::CPU ? "CPU" : t == DeviceType::CUDA ? "CUDA" : "Meta";
}

[[noreturn]] void no_kernel(const AddedOp& a, DeviceType device) {
  static constexpr const char* names[] = {"CPU",       "CUDA",     "Meta",    "any device",
                                          "composite", "Autograd", "Autocast"};
  std::string have;
  for (size_t i = 0; i < kKernels; ++i)
    if (a.kernel(static_cast<KernelFor>(i)))
      have += (have.empty() ? "" : ", ") + std::string(names[i]);
  fail(ErrorKind::NotImplemented, "Could not run '", a.uid, "' with arguments from the '",
       name_of(device), "' backend: it has ", have.empty() ? "no kernel" : "kernels for ", have,
       device == DeviceType::Meta ? "; register_fake gives what a call without data returns" : "");
}

bool wants_gradients(const OpDesc& op, const Value* const* args) {
  if (!modes.grad) return false;
  bool any = false;
  for (size_t i = 0; i < op.params.size(); ++i)
    for_each_tensor(*args[i], [&](const Tensor& t) { any = any || requires_grad(t); });
  return any;
}

// The history of results whose kernel recorded nothing.
class NoFormula final : public Node {
 public:
  explicit NoFormula(const AddedOp& op) : op_(op) {}
  const char* name() const override { return "NoFormula"; }
  Tensors apply(Tensors&&) override {
    fail(ErrorKind::Runtime, "Trying to backward through ", op_.uid,
         " but no autograd formula was registered. Please use register_autograd to add one.");
  }

 private:
  const AddedOp& op_;
};

bool is_argument(const AddedOp& a, const Value* const* args, const Tensor& t) {
  bool found = false;
  for (size_t i = 0; i < a.desc.params.size(); ++i)
    for_each_tensor(*args[i], [&](const Tensor& x) { found = found || x.is_same(t); });
  return found;
}

// Where results are nothing but arguments, there is nothing that a kernel would have to tell.
bool gives_arguments(const AddedOp& a, const Value* const* args, Value* results) {
  for (size_t k = 0; k < a.schema.returns.size(); ++k) {
    const SchemaArgument& r = a.schema.returns[k];
    size_t i = 0;
    while (i < a.schema.arguments.size() && !(a.schema.arguments[i].is_written() && r.alias &&
                                              a.schema.arguments[i].alias == r.alias))
      ++i;
    if (i == a.schema.arguments.size()) return false;
    results[k] = *args[i];
  }
  return true;
}

// Results of an opaque kernel lie in no memory that the call was given, unless the schema says so.
void check_own_memory(const AddedOp& a, const Value* const* args, const Value* results) {
  std::vector<const void*> seen;
  auto see = [&](const Tensor& t) { seen.push_back(t.storage().get()); };
  for (size_t i = 0; i < a.desc.params.size(); ++i) for_each_tensor(*args[i], see);
  for (size_t k = 0; k < a.desc.returns.size(); ++k)
    for_each_tensor(results[k], [&](const Tensor& t) {
      if (a.schema.returns[k].alias) {
        FB_CHECK(is_argument(a, args, t), a.uid,
                 ": expected the argument that it writes to as result ", k, ", got another tensor");
        return;
      }
      bool shared =
          t.numel() && std::find(seen.begin(), seen.end(), t.storage().get()) != seen.end();
      FB_CHECK(!shared, a.uid, ": expected results with memory of their own, got one (result ", k,
               ") that is an input, a view of one or of another result; return a clone of it");
      see(t);
    });
}

void run_kernel(const AddedOp& a, const OpKernel& kernel, const Value* const* args,
                Value* results) {
  const OpDesc& op = a.desc;
  {
    ModeGuard recording(&Modes::grad, modes.grad && !kernel.opaque);
    kernel.call(op, kernel.context.get(), args, results);
  }
  if (kernel.opaque) check_own_memory(a, args, results);
  for (size_t i = 0; i < op.params.size(); ++i)
    if (a.written >> i & 1)
      for_each_tensor(*args[i], [](const Tensor& t) { t.bump_version(); });
  if (op.returns.empty() || BelowAutograd::on() || !wants_gradients(op, args)) return;
  Ref<Node> node;
  for (size_t k = 0; k < op.returns.size(); ++k)
    for_each_tensor(results[k], [&](const Tensor& t) {
      if (requires_grad(t) || !is_inexact(t.dtype()) || is_argument(a, args, t)) return;
      if (!node) {
        node = Ref<Node>::adopt(new NoFormula(a));
        for (size_t i = 0; i < op.params.size(); ++i)
          for_each_tensor(*args[i], [&](const Tensor& x) { node->add_next(x); });
      }
      set_history(t, node);
    });
}

void run_added(const OpDesc& op, const Value* const* args, Value* results) {
  const AddedOp& a = *op.added;
  FB_CHECK(!a.removed, a.uid, ": the library that defined the operator is gone");
  if (autocast_enabled()) {
    if (OpKernel k = a.kernel(KernelFor::Autocast)) {
      NoAutocastGuard off;
      return k.call(op, k.context.get(), args, results);
    }
  }
  if (!BelowAutograd::on()) {
    OpKernel k = a.kernel(KernelFor::Autograd);
    bool runs = k && (!k.when_recording || wants_gradients(op, args));
    if (runs && (!intercepted() || !op.vjp)) return k.call(op, k.context.get(), args, results);
  }
  DeviceType device = device_of(op, args);
  OpKernel kernel = a.kernel(device == DeviceType::CPU    ? KernelFor::CPU
                             : device == DeviceType::CUDA ? KernelFor::CUDA
                                                          : KernelFor::Meta);
  if (!kernel) kernel = a.kernel(KernelFor::AnyDevice);
  if (kernel.opaque && device == DeviceType::Meta) kernel = {};  // it looks at data
  if (!kernel) {
    if (OpKernel k = a.kernel(KernelFor::Composite))
      return k.call(op, k.context.get(), args, results);
    if (device == DeviceType::Meta && gives_arguments(a, args, results)) return;
    no_kernel(a, device);
  }
  if (!intercepted()) return run_kernel(a, kernel, args, results);
  Values given;
  for (size_t i = 0; i < op.params.size(); ++i) given.push_back(*args[i]);
  Values out = dispatch_boxed(op, std::move(given));
  FB_CHECK(out.size() == op.returns.size(), a.uid, ": expected ", op.returns.size(),
           " results, got ", out.size());
  std::move(out.begin(), out.end(), results);
}

void call_added(const OpDesc& op, const Value* const* args, Value* results) {
  if (profiler::on()) [[unlikely]] {
    profiler::Scope event(profiler::open(op, op.added->name, args));
    return run_added(op, args, results);
  }
  run_added(op, args, results);
}

Tensors added_vjp(const OpDesc& op, const Values& args, const Tensors& cotangents,
                  const Values& results, uint32_t wanted) {
  std::shared_ptr<const AddedVjp> rule;
  {
    std::lock_guard guard(op.added->mutex);
    rule = op.added->vjp;
  }
  FB_CHECK(rule, op.uid, ": its derivative was taken away");
  return (*rule)(args, cotangents, results, wanted);
}

Values added_vmap(const OpDesc& op, const Values& args, uint32_t batched, int64_t batch) {
  std::shared_ptr<const AddedVmap> rule;
  {
    std::lock_guard guard(op.added->mutex);
    rule = op.added->vmap;
  }
  FB_CHECK(rule, op.uid, ": its batching rule was taken away");
  return (*rule)(args, batched, batch);
}

// All that were added, and those with a name. Neither is destroyed: threads may outlive both.
struct Registry {
  std::shared_mutex mutex;
  std::deque<AddedOp> all;
  std::map<std::string, AddedOp*, std::less<>> named;
  std::atomic<uint64_t> version = 0;
};
Registry& registry() {
  static auto* r = new Registry;
  return *r;
}

AddedOp& added(const OpDesc& op) {
  FB_CHECK(op.added, op.uid, ": expected an operation that was added, got one of the table");
  return *op.added;
}

}  // namespace

AddedOp::AddedOp(Schema s) : schema(std::move(s)), uid(schema.full_name()), name(schema.name) {
  FB_CHECK(schema.arguments.size() <= kMostParameters, uid, ": expected at most ",
           kMostParameters, " parameters, got ", schema.arguments.size());
  FB_CHECK(!schema.more_arguments && !schema.more_returns, uid,
           ": expected a known number of arguments and results, got '...'");
  texts_.reserve(schema.arguments.size());
  for (const SchemaArgument& a : schema.arguments) {
    if (a.is_written()) written |= 1u << params_.size();
    if (a.value) texts_.push_back(default_text(a.type, *a.value));
    params_.push_back({a.name.c_str(), described(schema, a, "arguments"),
                       a.value ? texts_.back().c_str() : nullptr, a.kwonly});
  }
  for (const SchemaArgument& r : schema.returns)
    returns_.push_back(described(schema, r, "results"));
  desc.name = name.c_str();
  desc.uid = uid.c_str();
  desc.kind = OpKind::Structured;
  desc.params = params_;
  desc.returns = returns_;
  desc.call = call_added;
  desc.updates = written;
  desc.added = this;
}

OpKernel AddedOp::kernel(KernelFor which) const {
  std::lock_guard guard(mutex);
  return kernels[static_cast<size_t>(which)];
}

const OpDesc& add_op(Schema schema) {
  FB_CHECK(!schema.space().empty(), schema.name,
           ": expected a name with a namespace, \"space::name\"");
  Registry& r = registry();
  std::lock_guard guard(r.mutex);
  std::string uid = schema.full_name();
  FB_CHECK(!r.named.contains(uid), uid, ": there is an operator of that name already");
  AddedOp& made = r.all.emplace_back(std::move(schema));
  r.named.emplace(made.uid, &made);
  ++r.version;
  return made.desc;
}

const OpDesc& add_op(std::string_view schema) {
  return add_op(parse_schema(schema));
}

const OpDesc& add_op(std::string_view schema, KernelFor which, OpKernel kernel) {
  const OpDesc& op = add_op(schema);
  set_kernel(op, which, std::move(kernel));
  return op;
}

void set_kernel(const OpDesc& op, KernelFor which, OpKernel kernel) {
  AddedOp& a = added(op);
  std::lock_guard guard(a.mutex);  // what goes away is let go of after it
  std::swap(a.kernels[static_cast<size_t>(which)], kernel);
}

void set_vjp(const OpDesc& op, AddedVjp vjp) {
  AddedOp& a = added(op);
  auto rule = vjp ? std::make_shared<const AddedVjp>(std::move(vjp)) : nullptr;
  std::lock_guard guard(a.mutex);
  std::swap(a.vjp, rule);
  a.desc.vjp = a.vjp ? added_vjp : nullptr;
  a.desc.keeps = a.vjp ? ~a.written : 0;
  a.desc.keeps_results = a.vjp ? ~0u : 0;
}

void set_vmap(const OpDesc& op, AddedVmap vmap) {
  AddedOp& a = added(op);
  auto rule = vmap ? std::make_shared<const AddedVmap>(std::move(vmap)) : nullptr;
  std::lock_guard guard(a.mutex);
  std::swap(a.vmap, rule);
  a.desc.vmap = a.vmap ? added_vmap : nullptr;
}

void remove_op(const OpDesc& op) {
  AddedOp& a = added(op);
  {
    Registry& r = registry();
    std::lock_guard guard(r.mutex);
    auto at = r.named.find(a.uid);
    if (at != r.named.end() && at->second == &a) r.named.erase(at);
    ++r.version;
  }
  std::array<OpKernel, kKernels> gone;
  std::lock_guard guard(a.mutex);
  a.removed = true;
  std::swap(a.kernels, gone);
}

const OpDesc* find_added_op(std::string_view uid) {
  Registry& r = registry();
  std::shared_lock guard(r.mutex);
  auto at = r.named.find(uid);
  return at == r.named.end() ? nullptr : &at->second->desc;
}

uint64_t added_ops_version() noexcept {
  return registry().version;
}

std::vector<const OpDesc*> added_ops() {
  Registry& r = registry();
  std::shared_lock guard(r.mutex);
  std::vector<const OpDesc*> out;
  for (auto& [uid, op] : r.named) out.push_back(&op->desc);
  return out;
}

}  // namespace flambeau
