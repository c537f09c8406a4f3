#include "flambeau/library.h"

#include <map>
#include <mutex>

namespace flambeau {

namespace {

KernelFor place_of(DispatchKey key) {
  switch (key) {
    case DispatchKey::CPU:
      return KernelFor::CPU;
    case DispatchKey::CUDA:
      return KernelFor::CUDA;
    case DispatchKey::Meta:
      return KernelFor::Meta;
    case DispatchKey::Autograd:
    case DispatchKey::AutogradCPU:
    case DispatchKey::AutogradCUDA:
      return KernelFor::Autograd;
    case DispatchKey::Autocast:
    case DispatchKey::AutocastCPU:
      return KernelFor::Autocast;
    case DispatchKey::CompositeExplicitAutograd:
      return KernelFor::AnyDevice;
    case DispatchKey::CompositeImplicitAutograd:
    case DispatchKey::CatchAll:
      break;
  }
  return KernelFor::Composite;
}

// Kernels whose operation is not defined yet: blocks of several files run in any order.
std::mutex waiting_mutex;
std::multimap<std::string, std::pair<KernelFor, OpKernel>>& waiting() {
  static auto* all = new std::multimap<std::string, std::pair<KernelFor, OpKernel>>();
  return *all;
}

std::string& errors() {
  static auto* all = new std::string();
  return *all;
}

void give(const std::string& uid, KernelFor place, OpKernel kernel) {
  std::lock_guard guard(waiting_mutex);
  if (const OpDesc* op = find_added_op(uid))
    set_kernel(*op, place, std::move(kernel));
  else
    waiting().emplace(uid, std::pair(place, std::move(kernel)));
}

void define(const std::string& schema) {
  const OpDesc& op = add_op(schema);
  const std::string uid = schema.substr(0, schema.find('('));
  std::lock_guard guard(waiting_mutex);
  auto [from, to] = waiting().equal_range(uid);
  for (auto at = from; at != to; ++at) set_kernel(op, at->second.first, at->second.second);
  waiting().erase(from, to);
}

}  // namespace

std::string Library::qualified(const std::string& name) const {
  const size_t colons = name.substr(0, name.find('(')).find("::");
  if (colons == std::string::npos) return space_ + "::" + name;
  FB_CHECK(name.substr(0, colons) == space_, "TORCH_LIBRARY(", space_,
           "): expected a name of this "
           "namespace, got ",
           name);
  return name;
}

Library& Library::def(const std::string& schema) {
  FB_CHECK(schema.find('(') != std::string::npos, "Library.def: expected a schema, such as \"",
           schema, "(Tensor x) -> Tensor\", or a function beside the name, got \"", schema, "\"");
  define(qualified(schema));
  return *this;
}

Library& Library::def(const std::string& schema, CppFunction f) {
  const std::string whole = qualified(schema);
  const size_t open = whole.find('(');
  const std::string uid = whole.substr(0, open);
  define(open == std::string::npos ? whole + f.schema() : whole);
  give(uid, place_of(f.key.value_or(DispatchKey::CompositeImplicitAutograd)), f.kernel());
  return *this;
}

Library& Library::impl(const std::string& name, CppFunction f) {
  const DispatchKey key = f.key ? *f.key : key_.value_or(DispatchKey::CompositeImplicitAutograd);
  give(qualified(name), place_of(key), f.kernel());
  return *this;
}

Library& Library::fallback(CppFunction) {
  fail(ErrorKind::NotImplemented,
       "Library.fallback: kernels for all operations at once are not "
       "supported; give each its own by impl");
}

LibraryInit::LibraryInit(void (*block)(Library&), const char* space,
                         std::optional<DispatchKey> key) {
  // An exception here, while a library is loaded, would end the process.
  try {
    Library library(space, key);
    block(library);
  } catch (const std::exception& e) {
    const std::string text = std::string("TORCH_LIBRARY(") + space + "): " + e.what();
    if (!release_python_object) std::cerr << text << '\n';  // a program without Python
    std::lock_guard guard(waiting_mutex);
    errors() += (errors().empty() ? "" : "\n") + text;
  }
}

std::string take_library_errors() {
  std::lock_guard guard(waiting_mutex);
  return std::exchange(errors(), "");
}

RegisterOperators& RegisterOperators::op(const std::string& schema, CppFunction f) {
  const size_t colons = schema.find("::");
  FB_CHECK(colons != std::string::npos,
           "RegisterOperators: expected a name with its namespace, "
           "such as \"space::name\", got \"",
           schema, "\"");
  Library(schema.substr(0, colons), std::nullopt).def(schema, std::move(f));
  return *this;
}

AutoDispatchBelowAutograd::AutoDispatchBelowAutograd()
    : below_(std::make_shared<BelowAutograd>()) {}
AutoDispatchBelowAutograd::~AutoDispatchBelowAutograd() = default;

void OperatorHandle::expect(size_t args, size_t results) const {
  FB_CHECK_TYPE(args == op_->params.size() && results == op_->returns.size(), op_->uid,
                ": expected a signature of ", op_->params.size(), " arguments and ",
                op_->returns.size(), " results, got one of ", args, " and ", results);
}
Dispatcher& Dispatcher::singleton() {
  static Dispatcher one;
  return one;
}
std::optional<OperatorHandle> Dispatcher::findSchema(const std::string& name,
                                                     const std::string& overload) const {
  std::string uid = overload.empty() ? name : name + "." + overload;
  if (uid.starts_with("aten::")) uid = uid.substr(6);
  const OpDesc* op = find_op(uid);
  return op ? std::optional<OperatorHandle>(*op) : std::nullopt;
}
OperatorHandle Dispatcher::findSchemaOrThrow(const char* name, const char* overload) const {
  auto found = findSchema(name, overload);
  FB_CHECK(found, "Could not find schema for ", name, ".", overload,
           "; operations of a program are added by TORCH_LIBRARY");
  return *found;
}

}  // namespace flambeau
