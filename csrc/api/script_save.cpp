// Module::save: the objects of a script as data, the reverse of script/archive.cpp.
#include <map>

#include "api/pickle_out.h"
#include "api/script_file.h"
#include "flambeau/serialize.h"
#include "script/custom_state.h"

namespace fs = flambeau::script;

namespace flambeau::jit {

namespace {

using Pairs = std::vector<std::pair<IValue, IValue>>;
using serialize::dict_of;
using serialize::list_of;

// Turns modules and values into data; each object once.
class Describer {
 public:
  Describer(const Loaded& file, api::Parameters& parameters)
      : file_(file), parameters_(parameters) {}

  int64_t module(const Value& self) {
    const fs::Object& o = fs::object_of(self);
    if (auto found = numbers_.find(&o); found != numbers_.end()) return found->second;
    const fs::Class& c = *o.owner;
    Pairs parameters, buffers, attributes, children;
    for (const std::string& name : c.children) {
      const Value& child = at(o, name);
      children.emplace_back(name, child.is_none() ? IValue() : IValue(module(child)));
    }
    IValue training(true);
    for (const fs::Attribute& a : c.attributes) {
      const Value& x = at(o, a.name);
      if (a.place == "_parameters") {
        if (const Tensor* p = x.get_if<Tensor>()) parameters_.insert(p->impl());
        parameters.emplace_back(a.name, x);
      } else if (a.place == "_buffers") {
        buffers.emplace_back(a.name, x);
      } else if (a.name == "training") {
        training = IValue(x);
      } else {
        const fs::Class* type = file_.program->unit.find_class(a.type.base);
        if (type && type->kind == "module")
          children.emplace_back(a.name, x.is_none() ? IValue() : IValue(module(x)));
        else
          attributes.emplace_back(a.name, value(x, a.type, c.name + "." + a.name, 0));
      }
    }
    std::vector<IValue> transient;
    if (auto found = file_.transient.find(&o); found != file_.transient.end())
      transient.assign(found->second.begin(), found->second.end());
    return add(&o, dict_of({{"parameters", dict_of(std::move(parameters))},
                            {"buffers", dict_of(std::move(buffers))},
                            {"children", dict_of(std::move(children))},
                            {"transient", list_of(std::move(transient))},
                            {"training", training},
                            {"class", c.name},
                            {"attributes", dict_of(std::move(attributes))}}));
  }
  IValue objects() const { return list_of(objects_); }

 private:
  static const Value& at(const fs::Object& o, const std::string& name) {
    return const_cast<fs::Object&>(o).at(name);
  }
  int64_t add(const fs::Box* o, IValue described) {
    const auto number = static_cast<int64_t>(objects_.size());
    numbers_.insert_or_assign(o, number);
    objects_.push_back(std::move(described));
    return number;
  }

  IValue value(const Value& x, const fs::Type& t, const std::string& where, int depth) {
    FB_CHECK_VALUE(depth < 200, "jit::save: ", where, " is nested too deep");
    if (x.is_none()) return {};
    const fs::Class* c = file_.program->unit.find_class(t.base);
    if (c && c->kind == "tuple") {
      std::vector<IValue> fields;
      const auto& items = fs::expect_box<fs::Tuple>(x).items;
      for (size_t i = 0; i < c->attributes.size(); ++i)
        fields.push_back(value(items.at(i), c->attributes[i].type, where, depth + 1));
      return list_of(std::move(fields));
    }
    if (auto* o = fs::box_of<fs::CustomObject>(x)) return custom(x, *o, where, depth);
    if (auto* o = dynamic_cast<const fs::Object*>(fs::box_of<fs::Instance>(x)))
      return object(*o, where, depth);
    if (t.base == "Tuple") {
      std::vector<IValue> items;
      const auto& xs = fs::expect_box<fs::Tuple>(x).items;
      for (size_t i = 0; i < xs.size(); ++i)
        items.push_back(value(xs[i], t.items.at(i), where, depth + 1));
      return list_of(std::move(items));
    }
    if (t.is_list()) {
      std::vector<IValue> items;
      const fs::Type element = t.element();
      for (int64_t i = 0; i < fs::list_size(x); ++i)
        items.push_back(value(fs::list_item(x, i), element, where, depth + 1));
      return list_of(std::move(items));
    }
    if (auto* pairs = fs::box_of<fs::Dict>(x)) {
      std::vector<IValue> items;
      pairs->each([&](const Value& key, const Value& item) {
        items.push_back(list_of({value(key, t.items.at(0), where, depth + 1),
                                 value(item, t.items.at(1), where, depth + 1)}));
      });
      return dict_of({{"pairs", list_of(std::move(items))}});
    }
    return IValue(x);
  }
  IValue custom(const Value& x, const fs::CustomObject& o, const std::string& where, int depth) {
    if (auto found = numbers_.find(&o); found != numbers_.end())
      return dict_of({{"object", found->second}});
    const fs::CustomState state = fs::custom_state(o.cls->full_name());
    const IValue described = value(state.of(x), state.type, where, depth + 1);
    return dict_of(
        {{"object", add(&o, dict_of({{"class", o.cls->full_name()}, {"state", described}}))}});
  }
  IValue object(const fs::Object& o, const std::string& where, int depth) {
    if (auto found = numbers_.find(&o); found != numbers_.end())
      return dict_of({{"object", found->second}});
    // Its number is known before its attributes are, which may name it.
    const int64_t number = add(&o, IValue());
    Pairs attributes;
    for (const fs::Attribute& a : o.owner->attributes)
      attributes.emplace_back(a.name, value(at(o, a.name), a.type, where, depth + 1));
    objects_[static_cast<size_t>(number)] =
        dict_of({{"class", o.owner->name}, {"attributes", dict_of(std::move(attributes))}});
    return dict_of({{"object", number}});
  }

  const Loaded& file_;
  api::Parameters& parameters_;
  std::map<const fs::Box*, int64_t> numbers_;
  std::vector<IValue> objects_;
};

void write(const Loaded& file, const Value& self, const std::string& function,
           const ExtraFilesMap& extra, const files::Sink& to) {
  api::Parameters parameters;
  Describer describer(file, parameters);
  IValue root;
  if (self.is_none()) {
    root = dict_of({{"function", function}, {"constants", IValue(Value(file.constants))}});
  } else {
    const int64_t number = describer.module(self);
    root = dict_of({{"module", number}});
  }
  std::string state;
  const IValue described = dict_of({{"objects", describer.objects()}, {"root", root}});
  api::write_checkpoint(
      described,
      [&](const void* data, size_t size) { state.append(static_cast<const char*>(data), size); },
      "archive", "jit::save", parameters);
  files::ZipWriter zip(to);
  for (const auto& [name, text] : file.texts) {
    if (name == "code.txt") {
      zip.add(name, text);
      zip.add("state", state);
    } else if (!name.starts_with("extra/") || !extra.count(name.substr(6))) {
      zip.add(name, text);
    }
  }
  for (const auto& [name, text] : extra) zip.add("extra/" + name, text);
  zip.close();
}

}  // namespace

void Module::save(const std::string& filename, const ExtraFilesMap& extra_files) const {
  FB_CHECK(defined(), "jit::save: the module was not loaded");
  files::write_file(filename, "jit::save", [&](const files::Sink& to) {
    write(*file_, self_, function_, extra_files, to);
  });
}
void Module::save(std::ostream& out, const ExtraFilesMap& extra_files) const {
  FB_CHECK(defined(), "jit::save: the module was not loaded");
  write(*file_, self_, function_, extra_files, [&](const void* data, size_t size) {
    out.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
    FB_CHECK(out.good(), "jit::save: cannot write to the stream");
  });
}

}  // namespace flambeau::jit
