#include "flambeau/script.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <sstream>

#include "api/script_file.h"
#include "files/checkpoint.h"
#include "files/zip.h"
#include "script/text.h"

// `jit::script` is a name of programs for other things.
namespace fs = flambeau::script;

namespace flambeau {

// Values of scripts that operations do not know.

bool IValue::isTuple() const {
  return fs::box_of<fs::Tuple>(*this) != nullptr;
}
bool IValue::isList() const {
  return fs::is_list(*this) && !isTuple();
}
bool IValue::isGenericDict() const {
  return fs::box_of<fs::Dict>(*this) != nullptr;
}
std::shared_ptr<IValueTuple> IValue::toTuple() const {
  // Of one layout: an IValue is a Value with other methods.
  const Values& items = fs::expect_box<fs::Tuple>(*this).items;
  auto out = std::make_shared<IValueTuple>();
  out->elements_.owner_ = *this;
  out->elements_.data_ = static_cast<const IValue*>(items.data());
  out->elements_.size_ = items.size();
  return out;
}
std::vector<IValue> IValueElements::vec() const {
  return {begin(), end()};
}
IValue IValue::of_tuple(std::vector<IValue> xs) {
  return IValue(fs::make_box<fs::Tuple>(Values(xs.begin(), xs.end())));
}
IValue IValue::of_list(const std::vector<IValue>& xs) {
  return IValue(fs::make_box<fs::List>(Values(xs.begin(), xs.end())));
}
IValue IValue::of_pairs(std::vector<std::pair<IValue, IValue>> xs) {
  Value out = fs::make_box<fs::Dict>();
  for (auto& [key, x] : xs) fs::expect_box<fs::Dict>(out).set(key, std::move(x));
  return IValue(out);
}
size_t DictKey<IValue>::hash(const IValue& key) {
  return fs::hash_of(key);
}
bool DictKey<IValue>::same(const IValue& a, const IValue& b) {
  return fs::equal(a, b);
}
bool IValue::isObject() const {
  return fs::box_of<fs::Instance>(*this) != nullptr;
}
std::string IValue::tagKind() const {
  if (isNone()) return "None";
  if (isTensor()) return "Tensor";
  if (isInt()) return "Int";
  if (isDouble()) return "Double";
  if (isBool()) return "Bool";
  if (isComplexDouble()) return "ComplexDouble";
  if (isString()) return "String";
  if (isDevice()) return "Device";
  if (isTuple()) return "Tuple";
  if (isGenericDict()) return "GenericDict";
  if (isObject()) return "Object";
  if (isList()) return "GenericList";
  return fs::kind_name(*this);
}
std::vector<IValue> IValue::toListRef() const {
  FB_CHECK_TYPE(isList(), "expected a list, got ", fs::kind_name(*this));
  std::vector<IValue> out;
  for (int64_t i = 0; i < fs::list_size(*this); ++i) out.push_back(IValue(fs::list_item(*this, i)));
  return out;
}
GenericDict IValue::toGenericDict() const {
  GenericDict out;
  fs::expect_box<fs::Dict>(*this).each(
      [&](const Value& key, const Value& x) { out.insert(IValue(key), IValue(x)); });
  return out;
}
// Values of scripts print themselves; tensors, and what holds them, print here.
static void show(std::ostream& out, const Value& x, int depth) {
  const auto parts = [&](const char* open, int64_t n, auto item, const char* close) {
    out << open;
    for (int64_t i = 0; i < n; ++i) {
      if (i) out << ", ";
      item(i);
    }
    out << close;
  };
  if (depth > 100) {
    out << "...";
  } else if (auto* tensor = x.get_if<Tensor>()) {
    out << *tensor;
  } else if (auto* dict = fs::box_of<fs::Dict>(x)) {
    bool first = true;
    out << '{';
    dict->each([&](const Value& key, const Value& value) {
      out << (std::exchange(first, false) ? "" : ", ");
      show(out, key, depth + 1);
      out << ": ";
      show(out, value, depth + 1);
    });
    out << '}';
  } else if (fs::box_of<fs::List>(x) || fs::box_of<fs::Tuple>(x) || x.is<Tensors>()) {
    const bool list = fs::box_of<fs::Tuple>(x) == nullptr;
    const int64_t n = fs::list_size(x);
    parts(
        list ? "[" : "(", n, [&](int64_t i) { show(out, fs::list_item(x, i), depth + 1); },
        list     ? "]"
        : n == 1 ? ",)"
                 : ")");
  } else if (auto* z = x.get_if<complex128>()) {
    out << '(' << z->real() << std::showpos << z->imag() << std::noshowpos << "j)";
  } else if (auto* dtype = x.get_if<DType>()) {
    out << "torch." << dtype_name(*dtype);
  } else if (auto* device = x.get_if<Device>()) {
    out << *device;
  } else {
    out << fs::repr(x);
  }
}
std::ostream& operator<<(std::ostream& out, const IValue& x) {
  if (x.isString()) return out << x.toStringRef();
  show(out, x, 0);
  return out;
}

namespace jit {

namespace {

// The file of an object is that of its class: what attributes hold knows no more.
std::mutex files_mutex;
std::map<const fs::Class*, std::weak_ptr<const Loaded>>& files_of_classes() {
  static auto* all = new std::map<const fs::Class*, std::weak_ptr<const Loaded>>();
  return *all;
}

fs::Object& object(const Value& self) {
  return fs::object_of(self);
}
const fs::Class& class_of(const Value& self) {
  return *object(self).owner;
}

IValue default_of(const fs::Function& f, uint32_t parameter) {
  const auto found = f.defaults.find(f.body.inputs[parameter]);
  FB_CHECK_TYPE(found != f.defaults.end() && found->second.value, f.name,
                "() missing required argument: '", f.values[f.body.inputs[parameter]].name, "'");
  using Kind = fs::Arg::Kind;
  const fs::Arg& a = *found->second.value;
  switch (a.kind) {
    case Kind::None:
      return {};
    case Kind::Bool:
      return IValue(a.whole != 0);
    case Kind::Int:
      return IValue(a.whole);
    case Kind::Float:
      return IValue(a.real);
    case Kind::Str:
      return IValue(a.text);
    default:
      fail(ErrorKind::NotImplemented, f.name, "(): give the argument '",
           f.values[f.body.inputs[parameter]].name, "', its default is not read without Python");
  }
}

Module placed(Module module, std::optional<Device> device) {
  if (device) module.to(*device);
  return module;
}

}  // namespace

IValue Method::operator()(std::vector<IValue> args) const {
  const fs::Code& code = fs::runnable(*file_->program, function_);
  const fs::Function& f = *code.source;
  if (!self_.is_none()) args.insert(args.begin(), IValue(self_));
  const size_t constants = file_->function == function_ ? file_->constants.size() : 0;
  FB_CHECK_TYPE(args.size() + constants <= code.params, f.name, "() expected at most ",
                code.params - constants - !self_.is_none(), " arguments, got ",
                args.size() - !self_.is_none());
  for (size_t i = args.size(); i < code.params - constants; ++i)
    args.push_back(default_of(f, static_cast<uint32_t>(i)));
  for (size_t i = 0; i < constants; ++i) args.push_back(IValue(file_->constants[i]));
  fs::Invocation run(code);
  for (size_t i = 0; i < args.size(); ++i) {
    const fs::IrValue& p = f.values[f.body.inputs[i]];
    FB_CHECK_TYPE(i == 0 || fs::holds(args[i], p.type), f.name, "(): argument '", p.name,
                  "' must be ", fs::show(p.type), ", not ", fs::kind_name(args[i]));
    run[i] = std::move(args[i]);
  }
  try {
    return IValue(run.run());
  } catch (const Error& e) {
    std::string text = e.what();
    for (const fs::Passed& p : fs::take_passed())
      text += "\n  in " + p.function->name +
              (p.function->file.empty() ? "" : ", " + p.function->file) + ", line " +
              std::to_string(p.line);
    throw Error(e.kind, text);
  }
}

bool Module::has_method(const std::string& name) const {
  if (self_.is_none()) return name == "forward" && !function_.empty();
  return class_of(self_).method(name) != nullptr;
}

Method Module::get_method(const std::string& name) const {
  FB_CHECK(defined(), "the module was not loaded");
  FB_CHECK_AS(Attribute, has_method(name), type_name(), " has no method '", name, "'");
  Method m;
  m.file_ = file_;
  m.self_ = self_;
  m.name_ = name;
  m.function_ = self_.is_none() ? function_ : *class_of(self_).method(name);
  return m;
}

std::string Module::type_name() const {
  return self_.is_none() ? function_ : class_of(self_).name;
}

bool Module::hasattr(const std::string& name) const {
  if (self_.is_none()) return false;
  const fs::Class& c = class_of(self_);
  return c.slot(name) < c.slots();
}
IValue Module::attr(const std::string& name) const {
  FB_CHECK_AS(Attribute, hasattr(name), type_name(), " has no attribute '", name, "'");
  return IValue(object(self_).at(name));
}
IValue Module::attr(const std::string& name, IValue otherwise) const {
  return hasattr(name) ? attr(name) : otherwise;
}
void Module::setattr(const std::string& name, const IValue& value) const {
  const fs::Attribute* a = hasattr(name) ? class_of(self_).attribute(name) : nullptr;
  FB_CHECK_AS(Attribute, a, type_name(), " has no attribute '", name, "'");
  FB_CHECK_TYPE(fs::holds(value, a->type), type_name(), ".", name, " must be ", fs::show(a->type),
                ", not ", fs::kind_name(value));
  object(self_).at(name) = value;
}

Module Module::child(const std::string& name) const {
  const IValue found = attr(name);
  FB_CHECK_AS(Attribute, class_of(self_).has_child(name) || fs::box_of<fs::Instance>(found),
              type_name(), ".", name, " is no module");
  return {file_, found};
}
std::vector<Method> Module::get_methods() const {
  std::vector<Method> out;
  if (self_.is_none()) {
    if (has_method("forward")) out.push_back(get_method("forward"));
    return out;
  }
  for (const auto& [name, function] : class_of(self_).methods) out.push_back(get_method(name));
  return out;
}
Module Module::deepcopy(std::optional<Device> device) const {
  FB_CHECK(defined(), "the module was not loaded");
  std::stringstream file;
  save(file);
  return jit::load(file, device);
}
std::vector<NameModule> Module::named_children() const {
  std::vector<NameModule> out;
  if (self_.is_none()) return out;
  for (const std::string& name : class_of(self_).children)
    if (!object(self_).at(name).is_none()) out.push_back({name, {file_, object(self_).at(name)}});
  return out;
}
std::vector<Module> Module::children() const {
  std::vector<Module> out;
  for (auto& c : named_children()) out.push_back(std::move(c.value));
  return out;
}

void Module::tensors(const std::string& prefix, const char* place, bool recurse,
                     std::vector<NameTensor>& out) const {
  if (self_.is_none()) return;
  for (const fs::Attribute& a : class_of(self_).attributes) {
    if (a.place != place) continue;
    const Tensor* x = std::as_const(object(self_).at(a.name)).get_if<Tensor>();
    if (!x || !x->defined()) continue;
    const bool seen = std::any_of(out.begin(), out.end(),
                                  [&](const NameTensor& t) { return t.value.is_same(*x); });
    if (!seen) out.push_back({prefix + a.name, *x});
  }
  if (recurse)
    for (const auto& c : named_children()) c.value.tensors(prefix + c.name + ".", place, true, out);
}
std::vector<NameTensor> Module::named_parameters(bool recurse) const {
  std::vector<NameTensor> out;
  tensors("", "_parameters", recurse, out);
  return out;
}
std::vector<NameTensor> Module::named_buffers(bool recurse) const {
  std::vector<NameTensor> out;
  tensors("", "_buffers", recurse, out);
  return out;
}
std::vector<Tensor> Module::parameters(bool recurse) const {
  std::vector<Tensor> out;
  for (auto& t : named_parameters(recurse)) out.push_back(std::move(t.value));
  return out;
}
std::vector<Tensor> Module::buffers(bool recurse) const {
  std::vector<Tensor> out;
  for (auto& t : named_buffers(recurse)) out.push_back(std::move(t.value));
  return out;
}

void Module::train(bool on) const {
  if (hasattr("training")) object(self_).at("training") = Value(on);
  for (const auto& c : children()) c.train(on);
}
bool Module::is_training() const {
  return hasattr("training") && object(self_).at("training").get<bool>();
}
void Module::zero_grad() const {
  for (const Tensor& p : parameters()) p.mutable_grad().reset();
}
template <class F>
void Module::change(const F& f) const {
  for (auto& list : {named_parameters(), named_buffers()})
    for (const auto& t : list) t.value.set_data(f(t.value.data()));
}
void Module::to(Device device) const {
  change([&](const Tensor& x) { return x.to(device, x.dtype()); });
}
void Module::to(DType dtype) const {
  change([&](const Tensor& x) { return x.is_floating_point() ? x.to(dtype) : x; });
}
void Module::to(Device device, DType dtype) const {
  to(device);
  to(dtype);
}

}  // namespace jit

jit::Module IValue::toModule() const {
  auto* instance = fs::box_of<fs::Instance>(*this);
  FB_CHECK_TYPE(instance, "expected a module, got ", fs::kind_name(*this));
  std::lock_guard guard(jit::files_mutex);
  const auto& all = jit::files_of_classes();
  const auto found = all.find(&jit::class_of(*this));
  auto file = found == all.end() ? nullptr : found->second.lock();
  FB_CHECK(file, "toModule: the file of the module is no longer loaded");
  return jit::Module(std::move(file), *this);
}

namespace jit {

Module Loaded::read(const files::Source& from, std::optional<Device> device, ExtraFilesMap* extra) {
  auto file = std::make_shared<Loaded>();
  static_cast<fs::Loaded&>(*file) = fs::load(from);
  for (const char* name : {"format.json", "code.txt"})
    file->texts.emplace_back(name, files::read_entry(from, name));
  for (const files::Entry& e : files::read_directory(from)) {
    if (!e.name.starts_with("extra/")) continue;
    file->texts.emplace_back(e.name, files::read_entry(from, e.name));
    if (!extra) continue;
    if (auto wanted = extra->find(e.name.substr(6)); wanted != extra->end())
      wanted->second = file->texts.back().second;
  }
  {
    std::lock_guard guard(files_mutex);
    auto& all = files_of_classes();
    std::erase_if(all, [](const auto& entry) { return entry.second.expired(); });
    for (const fs::Class& c : file->program->unit.classes) all[&c] = file;
  }
  Value self = file->root;
  std::string function = file->function;
  return placed(Module(std::move(file), std::move(self), std::move(function)), device);
}

static Module from_path(const std::string& filename, std::optional<Device> device,
                        ExtraFilesMap* extra) {
  const int descriptor = ::open(filename.c_str(), O_RDONLY | O_CLOEXEC);
  FB_CHECK(descriptor >= 0, "jit::load: cannot open ", filename, ": ", std::strerror(errno));
  struct Close {
    int descriptor;
    ~Close() { ::close(descriptor); }
  } close{descriptor};
  return Loaded::read(files::FileSource(descriptor), device, extra);
}
static Module from_stream(std::istream& in, std::optional<Device> device, ExtraFilesMap* extra) {
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return Loaded::read(files::MemorySource(bytes.data(), bytes.size()), device, extra);
}
Module load(const std::string& filename, std::optional<Device> device) {
  return from_path(filename, device, nullptr);
}
Module load(const std::string& filename, std::optional<Device> device, ExtraFilesMap& extra_files) {
  return from_path(filename, device, &extra_files);
}
Module load(std::istream& in, std::optional<Device> device) {
  return from_stream(in, device, nullptr);
}
Module load(std::istream& in, std::optional<Device> device, ExtraFilesMap& extra_files) {
  return from_stream(in, device, &extra_files);
}

}  // namespace jit
}  // namespace flambeau
