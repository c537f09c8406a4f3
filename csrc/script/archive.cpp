#include "script/archive.h"

#include "files/checkpoint.h"
#include "files/json.h"
#include "script/custom_state.h"
#include "script/lower.h"
#include "script/text.h"

namespace flambeau::script {

using files::Data;

namespace {

// Makes the objects of a file, each when it is first asked for.
class Objects {
 public:
  Objects(const Unit& unit, const Data& described)
      : unit_(unit), described_(described.expect(Data::Kind::List, "a list of objects")) {}

  Value module(int64_t number) {
    if (auto found = made_.find(number); found != made_.end()) return found->second;
    const Data& given = open(number);
    FB_CHECK_VALUE(!given.find("library"), "the module ", given.find("library")->text,
                   " of the file runs in Python alone");
    const std::string& name = text(given.at("class"));
    const Class* c = unit_.find_class(name);
    FB_CHECK_VALUE(c && c->kind == "module", "'", name, "' is no module of the file");
    Value made = make_box<Object>(*c);
    Object& o = object_of(made);
    for (const char* table : {"parameters", "buffers"})
      each(given.at(table), [&](const std::string& n, const Data& x) {
        FB_CHECK_VALUE(x.is(Data::Kind::Tensor) || x.is(Data::Kind::None), n, " is no tensor");
        if (c->attribute(n)) o.at(n) = x.is(Data::Kind::Tensor) ? Value(x.tensor) : Value();
      });
    each(given.at("attributes"), [&](const std::string& n, const Data& x) {
      const Attribute* a = c->attribute(n);
      FB_CHECK_VALUE(a, name, " has no attribute ", n);
      o.at(n) = value(x, a->type);
    });
    each(given.at("children"), [&](const std::string& n, const Data& x) {
      FB_CHECK_VALUE(c->has_child(n) || c->attribute(n), name, " has no child ", n);
      if (x.is(Data::Kind::None)) return;
      o.at(n) = module(x.expect(Data::Kind::Integer, "the number of a module").integer);
    });
    if (c->attribute("training"))
      o.at("training") =
          Value(given.at("training").expect(Data::Kind::Bool, "a truth value").integer != 0);
    if (const Data* names = given.find("transient"))
      for (const Data* x : names->items) transient[&o].push_back(text(*x));
    open_.erase(number);
    return made_[number] = made;
  }

  std::map<const Object*, std::vector<std::string>> transient;

 private:
  static const std::string& text(const Data& d) {
    return d.expect(Data::Kind::Text, "a name").text;
  }
  template <class F>
  static void each(const Data& dict, F f) {
    dict.expect(Data::Kind::Dict, "a dict");
    for (size_t i = 0; i + 1 < dict.items.size(); i += 2)
      f(text(*dict.items[i]), *dict.items[i + 1]);
  }

  const Data& open(int64_t number) {
    FB_CHECK_VALUE(number >= 0 && number < static_cast<int64_t>(described_.items.size()),
                   "there is no object ", number);
    FB_CHECK_VALUE(open_.emplace(number, true).second, "a module contains itself");
    FB_CHECK_VALUE(open_.size() < 500, "modules are nested too deep");
    return *described_.items[static_cast<size_t>(number)];
  }

  // What a value is where the type does not say it.
  static Value plain(const Data& d) {
    switch (d.kind) {
      case Data::Kind::None:
        return {};
      case Data::Kind::Bool:
        return Value(d.integer != 0);
      case Data::Kind::Integer:
        return Value(d.integer);
      case Data::Kind::Real:
        return Value(d.real);
      case Data::Kind::Complex:
        return Value(complex128(d.real, d.imaginary));
      case Data::Kind::Text:
        return Value(d.text);
      case Data::Kind::Tensor:
        return Value(d.tensor);
      case Data::Kind::DType:
        return Value(d.dtype);
      case Data::Kind::Device:
        return Value(d.device);
      default:
        fail(ErrorKind::Value, "a value of the file is of a kind that is not read without Python");
    }
  }

  template <class T, class F>
  static Value typed_list(const Data& d, F f) {
    T out;
    for (const Data* x : d.items) out.push_back(f(*x));
    return Value(std::move(out));
  }

  Value value(const Data& d, const Type& t, int depth = 0) {
    FB_CHECK_VALUE(depth < 200, "values are nested too deep");
    if (d.is(Data::Kind::None)) {
      FB_CHECK_VALUE(t.optional || t.base == "None" || t.base == "Any", "None for a ", show(t));
      return {};
    }
    if (const Class* c = unit_.find_class(t.base)) return of_class(d, *c, depth);
    if (d.find("object")) return of_class(d, class_of(d), depth);
    if (t.base == "Tuple") {
      FB_CHECK_VALUE(d.items.size() == t.items.size(), "a tuple of ", d.items.size(), " for a ",
                     show(t));
      Values xs;
      for (size_t i = 0; i < t.items.size(); ++i)
        xs.push_back(value(*d.items[i], t.items[i], depth + 1));
      return make_box<Tuple>(std::move(xs));
    }
    if (t.is_list()) return list(d, t, depth);
    if (t.base == "Dict") {
      Value made = make_box<Dict>();
      auto& dict = expect_box<Dict>(made);
      for (const Data* pair : d.at("pairs").expect(Data::Kind::List, "pairs").items) {
        FB_CHECK_VALUE(pair->items.size() == 2, "a pair of ", pair->items.size());
        dict.set(value(*pair->items[0], t.items.at(0), depth + 1),
                 value(*pair->items[1], t.items.at(1), depth + 1));
      }
      return made;
    }
    if (t.base == "float" && d.is(Data::Kind::Integer))
      return Value(static_cast<double>(d.integer));
    Value made = plain(d);
    FB_CHECK_VALUE(holds(made, t), "a ", kind_name(made), " for a ", show(t));
    return made;
  }

  Value list(const Data& d, const Type& t, int depth) {
    d.expect(Data::Kind::List, "a list");
    const Type e = t.element();
    if (e.is("int"))
      return typed_list<Ints>(
          d, [](const Data& x) { return x.expect(Data::Kind::Integer, "a whole number").integer; });
    if (e.is("float"))
      return typed_list<std::vector<double>>(d, [](const Data& x) {
        return x.is(Data::Kind::Integer) ? static_cast<double>(x.integer)
                                         : x.expect(Data::Kind::Real, "a number").real;
      });
    if (e.is("bool"))
      return typed_list<std::vector<bool>>(d, [](const Data& x) {
        return x.expect(Data::Kind::Bool, "a truth value").integer != 0;
      });
    if (e.is("Tensor"))
      return typed_list<Tensors>(
          d, [](const Data& x) { return x.expect(Data::Kind::Tensor, "a tensor").tensor; });
    Values xs;
    for (const Data* x : d.items) xs.push_back(value(*x, e, depth + 1));
    return make_box<List>(std::move(xs));
  }

  const Class& class_of(const Data& d) {
    const int64_t n = d.at("object").expect(Data::Kind::Integer, "the number of an object").integer;
    FB_CHECK_VALUE(n >= 0 && n < static_cast<int64_t>(described_.items.size()),
                   "there is no object ", n);
    const std::string& name = text(described_.items[static_cast<size_t>(n)]->at("class"));
    const Class* c = unit_.find_class(name);
    FB_CHECK_VALUE(c, "there is no class ", name);
    return *c;
  }

  Value of_class(const Data& d, const Class& c, int depth) {
    FB_CHECK_VALUE(c.kind == "class" || c.kind == "tuple" || c.kind == "native", "values of class ", c.name, " (", c.kind,
                   ") are not read without Python");
    if (c.kind == "tuple") {
      FB_CHECK_VALUE(d.items.size() == c.attributes.size(), "a ", c.name, " of ", d.items.size(),
                     " fields");
      Values xs;
      for (size_t i = 0; i < c.attributes.size(); ++i)
        xs.push_back(value(*d.items[i], c.attributes[i].type, depth + 1));
      return make_box<Tuple>(std::move(xs), c.name);
    }
    const int64_t n = d.at("object").expect(Data::Kind::Integer, "the number of an object").integer;
    if (auto found = made_.find(n); found != made_.end()) return found->second;
    FB_CHECK_VALUE(&class_of(d) == &c, "an object of another class than ", c.name);
    if (c.kind == "native") {
      const CustomState state = custom_state(c.name);
      const Data& given = described_.items[static_cast<size_t>(n)]->at("state");
      return made_[n] = state.object(value(given, state.type, depth + 1));
    }
    Value made = made_[n] = make_box<Object>(c);
    each(described_.items[static_cast<size_t>(n)]->at("attributes"),
         [&](const std::string& name, const Data& x) {
           const Attribute* a = c.attribute(name);
           FB_CHECK_VALUE(a, c.name, " has no attribute ", name);
           object_of(made).at(name) = value(x, a->type, depth + 1);
         });
    return made;
  }

  const Unit& unit_;
  const Data& described_;
  std::map<int64_t, Value> made_;
  std::map<int64_t, bool> open_;
};

Loaded read_file(const files::Source& from) {
  const files::Json head = files::parse_json(files::read_entry(from, "format.json"));
  const files::Json* format = head.find("format");
  const files::Json* version = head.find("version");
  FB_CHECK_VALUE(format && format->text == "flambeau script", "format.json names another format");
  FB_CHECK_VALUE(version && version->integer == 1, "version ", version ? version->integer : 0,
                 " of the format is not known here");
  Unit unit = read(files::read_entry(from, "code.txt"));
  check(unit);
  const std::string state = files::read_entry(from, "state");
  const files::Tree tree = files::read_checkpoint(files::MemorySource(state.data(), state.size()));
  Loaded out;
  // Before the program takes the unit, which objects refer to: it does not move within it.
  out.program = lower(std::move(unit), nullptr);
  Objects objects(out.program->unit, tree.root->at("objects"));
  const Data& root = tree.root->at("root");
  if (const Data* function = root.find("function")) {
    out.function = function->expect(Data::Kind::Text, "a name").text;
    for (const Data* x : root.at("constants").items)
      out.constants.push_back(x->expect(Data::Kind::Tensor, "a tensor").tensor);
  } else {
    out.root = objects.module(root.at("module").expect(Data::Kind::Integer, "a number").integer);
    out.transient = std::move(objects.transient);
  }
  return out;
}

}  // namespace

Object& object_of(const Value& module) {
  auto* o = dynamic_cast<Object*>(box_of<Instance>(module));
  FB_CHECK_TYPE(o, "expected a module, got ", kind_name(module));
  return *o;
}

const Code& runnable(const Program& program, const std::string& function) {
  if (const Code* found = program.find(function)) return *found;
  for (size_t i = 0; i < program.unit.functions.size(); ++i)
    if (program.unit.functions[i].name == function)
      fail(ErrorKind::Runtime, function, " runs in Python alone: ",
           i < program.reasons.size() ? program.reasons[i] : std::string());
  fail(ErrorKind::Runtime, "there is no function ", function);
}

Loaded load(const files::Source& from) {
  try {
    return read_file(from);
  } catch (const Error& e) {
    throw Error(ErrorKind::Runtime, std::string("jit::load: ") + e.what());
  }
}

}  // namespace flambeau::script
