#include "flambeau/nn/containers.h"

#include <cxxabi.h>
#include <charconv>
#include <set>
#include <sstream>

namespace flambeau {
template class OrderedDict<std::string, Tensor>;
template class OrderedDict<std::string, std::shared_ptr<nn::Module>>;
}  // namespace flambeau

namespace flambeau::nn {

Module::Module() : Module(std::string()) {}
Module::Module(std::string name)
    : parameters_("Parameter"),
      buffers_("Buffer"),
      children_("Submodule"),
      name_(std::move(name)) {}
Module::Module(const Module&) = default;
Module& Module::operator=(const Module&) = default;
Module::~Module() = default;

std::shared_ptr<Module> owned(Module* fresh) {
  return std::shared_ptr<Module>(fresh);
}
void fail_empty_holder() {
  fail(ErrorKind::Runtime, "Accessing empty ModuleHolder");
}

const std::string& Module::name() const {
  if (!name_.empty()) return name_;
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status), std::free);
  name_ = text ? text.get() : typeid(*this).name();
  if (size_t at = name_.rfind("::");
      at != std::string::npos && name_.find('<') == std::string::npos)
    name_ = name_.substr(at + 2);
  if (name_.ends_with("Impl")) name_.resize(name_.size() - 4);
  return name_;
}

void Module::collect(const std::string& prefix, bool recurse, bool buffers,
                     OrderedDict<std::string, Tensor>& out) const {
  for (const auto& item : buffers ? buffers_ : parameters_)
    if (item.value().defined()) out.insert(prefix + item.key(), item.value());
  if (!recurse) return;
  for (const auto& child : children_)
    child.value()->collect(prefix + child.key() + ".", true, buffers, out);
}

// A parameter that several modules share counts once, under its first name.
static OrderedDict<std::string, Tensor> distinct(const OrderedDict<std::string, Tensor>& all) {
  OrderedDict<std::string, Tensor> out;
  std::set<TensorImpl*> seen;
  for (const auto& item : all)
    if (seen.insert(item.value().impl()).second) out.insert(item.key(), item.value());
  return out;
}

OrderedDict<std::string, Tensor> Module::named_parameters(bool recurse) const {
  OrderedDict<std::string, Tensor> out;
  collect("", recurse, false, out);
  return distinct(out);
}
OrderedDict<std::string, Tensor> Module::named_buffers(bool recurse) const {
  OrderedDict<std::string, Tensor> out;
  collect("", recurse, true, out);
  return distinct(out);
}
std::vector<Tensor> Module::parameters(bool recurse) const {
  return named_parameters(recurse).values();
}
std::vector<Tensor> Module::buffers(bool recurse) const {
  return named_buffers(recurse).values();
}

OrderedDict<std::string, std::shared_ptr<Module>> Module::named_modules(
    const std::string& name_prefix, bool include_self) const {
  OrderedDict<std::string, std::shared_ptr<Module>> out;
  if (include_self) {
    auto self = std::const_pointer_cast<Module>(weak_from_this().lock());
    FB_CHECK(self, name(), ": modules() needs a module that a shared_ptr or a holder owns");
    out.insert(name_prefix, self);
  }
  for (const auto& child : children_) {
    const std::string prefix = name_prefix.empty() ? child.key() : name_prefix + "." + child.key();
    out.update(child.value()->named_modules(prefix, true));
  }
  return out;
}
std::vector<std::shared_ptr<Module>> Module::modules(bool include_self) const {
  return named_modules("", include_self).values();
}

void Module::apply(const ModuleApplyFunction& function) {
  function(*this);
  for (auto& child : children_) child.value()->apply(function);
}
void Module::apply(const NamedModuleApplyFunction& function, const std::string& name_prefix) {
  function(name_prefix, *this);
  for (auto& child : children_)
    child.value()->apply(function,
                         name_prefix.empty() ? child.key() : name_prefix + "." + child.key());
}

void Module::train(bool on) {
  for (auto& child : children_) child.value()->train(on);
  training_ = on;
}

void Module::zero_grad(bool set_to_none) {
  for (const Tensor& p : parameters()) {
    Tensor& grad = p.mutable_grad();
    if (!grad.defined()) continue;
    if (set_to_none)
      grad.reset();
    else
      grad.detach_().zero_();
  }
}

template <class F>
void Module::change(const F& f) {
  for (auto& child : children_) child.value()->change(f);
  for (auto& item : parameters_)
    if (item.value().defined()) item.value().set_data(f(item.value().data()));
  for (auto& item : buffers_)
    if (item.value().defined()) item.value().set_data(f(item.value().data()));
}
void Module::to(Device device, DType dtype, bool) {
  change([&](const Tensor& x) {
    return x.is_floating_point() || x.is_complex() ? x.to(device, dtype) : x.to(device, x.dtype());
  });
}
void Module::to(DType dtype, bool) {
  change(
      [&](const Tensor& x) { return x.is_floating_point() || x.is_complex() ? x.to(dtype) : x; });
}
void Module::to(Device device, bool) {
  change([&](const Tensor& x) { return x.to(device, x.dtype()); });
}

std::shared_ptr<Module> Module::clone(const std::optional<Device>&) const {
  fail(ErrorKind::NotImplemented, "clone() has not been implemented for ", name(),
       ". Subclass torch::nn::Cloneable<", name(),
       "> instead of torch::nn::Module to inherit the ability to clone.");
}

// While it lives, what is drawn leaves the generator as it was.
struct DrawsNothing {
  Tensor state = default_generator()->get_state();
  DrawsNothing() = default;
  DrawsNothing(const DrawsNothing&) = delete;
  ~DrawsNothing() { default_generator()->set_state(state); }
};
std::shared_ptr<Module> Module::cloned(Module* (*copied)(const Module&), void (*reset)(Module&),
                                       const std::optional<Device>& device) const {
  NoGradGuard no_grad;
  DrawsNothing draws_nothing;
  std::shared_ptr<Module> copy(copied(*this));
  copy->parameters_.clear();
  copy->buffers_.clear();
  copy->children_.clear();
  reset(*copy);
  copy->copy_from(*this, device);
  return copy;
}

static Tensor copied(const Tensor& x, const std::optional<Device>& device) {
  Tensor out = x.data().clone();
  return device ? out.to(*device, out.dtype()) : out;
}
void Module::copy_from(const Module& other, const std::optional<Device>& device) {
  FB_CHECK(parameters_.size() == other.parameters_.size() &&
               buffers_.size() == other.buffers_.size() &&
               children_.size() == other.children_.size(),
           "The cloned module does not have the same number of parameters, buffers or submodules "
           "as the original module after calling reset(). Are you sure you called "
           "register_parameter() inside reset() and not the constructor?");
  for (const auto& item : other.parameters_)
    if (item.value().defined()) parameters_[item.key()].set_data(copied(item.value(), device));
  for (const auto& item : other.buffers_)
    if (item.value().defined()) buffers_[item.key()].set_data(copied(item.value(), device));
  for (const auto& item : other.children_) children_[item.key()]->copy_from(*item.value(), device);
}

Tensor& Module::register_parameter(std::string name, Tensor tensor, bool requires_grad) {
  FB_CHECK(!name.empty() && name.find('.') == std::string::npos,
           "register_parameter: a name is not empty and has no dot, got '", name, "'");
  if (tensor.defined()) tensor.requires_grad_(requires_grad);
  return parameters_.insert(std::move(name), std::move(tensor));
}
Tensor& Module::register_buffer(std::string name, Tensor tensor) {
  FB_CHECK(!name.empty() && name.find('.') == std::string::npos,
           "register_buffer: a name is not empty and has no dot, got '", name, "'");
  return buffers_.insert(std::move(name), std::move(tensor));
}
void Module::add_child(std::string name, std::shared_ptr<Module> module, bool replace) {
  FB_CHECK(!name.empty() && name.find('.') == std::string::npos,
           "register_module: a name is not empty and has no dot, got '", name, "'");
  FB_CHECK(module, "register_module: the module '", name, "' is empty");
  if (replace)
    children_[name] = std::move(module);
  else
    children_.insert(std::move(name), std::move(module));
}

void Module::pretty_print(std::ostream& out) const {
  out << name() << "()";
}

static void print(std::ostream& out, const Module& module, const std::string& margin) {
  std::ostringstream own;
  module.pretty_print(own);
  std::string text = own.str();
  const auto children = module.named_children();
  if (children.is_empty()) {
    out << text;
    return;
  }
  text.resize(text.ends_with(")") ? text.size() - 1 : text.size());
  const size_t open = std::min(text.find('('), text.size() - 1) + 1;
  out << text.substr(0, open) << '\n';
  if (open < text.size()) out << margin << "  " << text.substr(open) << '\n';
  // Equal neighbours of a list are shown once, with their number.
  const bool list = dynamic_cast<const ModuleListImpl*>(&module) != nullptr;
  const auto shown_child = [&](size_t i) {
    std::ostringstream shown;
    print(shown, *children[i].value(), margin + "  ");
    return shown.str();
  };
  for (size_t i = 0; i < children.size();) {
    const std::string one = shown_child(i);
    size_t n = 1;
    while (list && i + n < children.size() && shown_child(i + n) == one) ++n;
    out << margin << "  (" << children[i].key();
    if (n > 1)
      out << '-' << children[i + n - 1].key() << "): " << n << " x ";
    else
      out << "): ";
    out << one << '\n';
    i += n;
  }
  out << margin << ')';
}
std::ostream& operator<<(std::ostream& out, const Module& module) {
  print(out, module, "");
  return out;
}

std::string shown(bool x) {
  return x ? "True" : "False";
}
std::string shown(int64_t x) {
  return std::to_string(x);
}
std::string shown(double x) {
  if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
  if (std::isnan(x)) return "nan";
  char text[32];
  const double size = std::abs(x);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  auto [end, error] =
      std::to_chars(text, text + sizeof text, x,
                    plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string out(text, end);
  return plain && out.find('.') == std::string::npos ? out + ".0" : out;
}
std::string shown(const std::string& x) {
  return x;
}
std::string shown(const std::vector<int64_t>& xs) {
  std::string out = "(";
  for (size_t i = 0; i < xs.size(); ++i) out += (i ? ", " : "") + std::to_string(xs[i]);
  return out + (xs.size() == 1 ? ",)" : ")");
}

}  // namespace flambeau::nn
