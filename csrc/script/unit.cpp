#include "script/unit.h"

#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "dispatch/op.h"

namespace flambeau::script {

namespace {

constexpr std::pair<std::string_view, std::string_view> kElements[] = {
    {"Ints", "int"},       {"Floats", "float"},   {"Bools", "bool"},
    {"Numbers", "Number"}, {"Tensors", "Tensor"}, {"OptTensors", "Tensor"}};

bool one_of(std::string_view x, std::initializer_list<std::string_view> names) {
  for (auto n : names)
    if (x == n) return true;
  return false;
}
bool leaves(const Node& n) {
  return one_of(n.target, {"return", "break", "continue", "raise"});
}

// One function held to its rules.
class Checker {
 public:
  using Functions = std::unordered_map<std::string_view, const Function*>;
  Checker(const Functions& functions, const Function& f)
      : functions_(functions), f_(f), known_(f.values.size()) {}

  void run() {
    for (auto& [i, d] : f_.defaults) require(i < f_.body.inputs.size(), "no such parameter");
    block(f_.body, nullptr, 0);
  }

 private:
  struct Loop {
    size_t carried;
  };

  template <class... Parts>
  void require(bool ok, const Parts&... parts) const {
    FB_CHECK_VALUE(ok, "script: ", f_.name, ", line ", line_, ": ", parts...);
  }
  void used(const Arg& a) const {
    if (a.is_value())
      require(known_[a.index], "%", f_.values[a.index].id, " is not defined here");
    for (const Arg& item : a.items) used(item);
  }
  void define(uint32_t v) { known_[v] = true; }

  void block(const Block& b, const Loop* loop, size_t results) {
    std::vector<uint32_t> here = b.inputs;
    for (uint32_t v : b.inputs) define(v);
    for (const Node& n : b.nodes) {
      if (n.line > 0) line_ = n.line;
      require(!leaves(n) || &n == &b.nodes.back(), n.target, " ends its block");
      node(n, loop);
      for (uint32_t v : n.outs) define(v), here.push_back(v);
    }
    for (const Arg& a : b.outputs) used(a);
    require(b.ended() ? b.outputs.empty() : b.outputs.size() == results, "a block gives ",
            b.outputs.size(), " values, expected ", results);
    for (uint32_t v : here) known_[v] = false;
  }

  void node(const Node& n, const Loop* loop) {
    for (const Arg& a : n.args) used(a);
    const std::string& t = n.target;
    size_t blocks = 0;
    if (t == "if") {
      require(n.args.size() == 1 && n.blocks.size() == 2, "if has a test and two blocks");
      for (const Block& b : n.blocks) {
        require(b.inputs.empty(), "blocks of an if take nothing");
        block(b, loop, n.outs.size());
      }
      blocks = 2;
    } else if (t == "loop") {
      loop_node(n);
      blocks = n.blocks.size();
    } else if (t == "collect") {
      collect(n);
      blocks = n.blocks.size();
    } else if (t == "with") {
      require(n.args.size() == 2 && n.args[0].kind == Arg::Kind::Str &&
                  n.args[1].kind == Arg::Kind::Tuple && n.blocks.size() == 1 &&
                  n.blocks[0].inputs.empty(),
              "with has a kind, operands and a block");
      block(n.blocks[0], loop, n.outs.size());
      blocks = 1;
    } else if (t == "return") {
      require(n.args.size() <= 1, "return gives one value");
    } else if (t == "break" || t == "continue") {
      require(loop, t, " outside of a loop");
      size_t expected = loop->carried;
      require(n.args.size() == expected, t, " gives ", n.args.size(), " values, expected ",
              expected);
    } else if (t == "raise") {
      require(n.args.size() == 2 && n.args[0].kind == Arg::Kind::Str,
              "raise has a class and a message");
    } else if (t.starts_with("fn.")) {
      call(n, std::string_view(t).substr(3));
    } else if (t == "core.fork") {
      require(!n.args.empty() && n.args[0].kind == Arg::Kind::Str, "fork names what it runs");
    } else if (!t.starts_with("core.") && !t.starts_with("lib.") && !t.starts_with("host.")) {
      entry(n);
    }
    require(n.blocks.size() == blocks, t, " has no blocks");
    require(!leaves(n) || n.outs.empty(), t, " gives nothing");
  }

  size_t items_of(const Node& n) const {
    require(n.args.size() >= 2 && n.args[0].kind == Arg::Kind::Str &&
                n.args[1].kind == Arg::Kind::Tuple,
            n.target, " has a kind and what it runs over");
    const std::string& kind = n.args[0].text;
    size_t lists = n.args[1].items.size();
    if (kind == "while") return require(lists == 0, "while runs over nothing"), 0;
    if (kind == "range") return require(lists == 3, "range has three numbers"), 1;
    if (kind == "list" || kind == "reversed") return require(lists == 1, kind, " has one list"), 1;
    if (kind == "enumerate") return require(lists == 1 || lists == 2, "enumerate has one list"), 2;
    require(kind == "zip" && lists > 0, "a loop over '", kind, "'");
    return lists;
  }

  void loop_node(const Node& n) {
    size_t items = items_of(n);
    require(n.args.size() == 3 && n.args[2].kind == Arg::Kind::Tuple, "a loop carries values");
    size_t carried = n.args[2].items.size();
    bool is_while = n.args[0].text == "while";
    require(n.blocks.size() == (is_while ? 2 : 1), "a loop has ", is_while ? 2 : 1, " blocks");
    Loop inner{carried};
    require(n.outs.size() == carried, "a loop gives what it carries");
    if (is_while) {
      require(n.blocks[0].inputs.size() == carried, "a test takes what the loop carries");
      block(n.blocks[0], nullptr, 1);
    }
    const Block& body = n.blocks.back();
    require(body.inputs.size() == items + carried, "a turn takes its items and what is carried");
    block(body, &inner, carried);
  }

  void collect(const Node& n) {
    size_t items = items_of(n);
    require(n.args.size() == 2 && n.args[0].text != "while" && n.outs.size() == 1 &&
                (n.blocks.size() == 1 || n.blocks.size() == 2),
            "collect makes one list of one or two blocks");
    for (const Block& b : n.blocks) {
      require(b.inputs.size() == items, "a block of collect takes the items");
      block(b, nullptr, 1);
      require(!b.ended(), "a block of collect gives a value");
    }
  }

  void call(const Node& n, std::string_view name) const {
    auto found = functions_.find(name);
    require(found != functions_.end(), "there is no function ", name);
    size_t expected = found->second->body.inputs.size();
    require(n.args.size() == expected, name, " takes ", expected, " arguments, got ",
            n.args.size());
    require(n.outs.size() <= 1, name, " gives one value");
  }

  void entry(const Node& n) const {
    Callee found = find_callee(n.target);
    require(found.op, "there is no operation ", n.target);
    require(n.args.size() == found.op->params.size(), n.target, " takes ",
            found.op->params.size(), " arguments, got ", n.args.size());
    size_t results = found.op->returns.size();
    require(n.outs.size() == results || n.outs.empty() ||
                (n.outs.size() == 1 && (results > 1 || found.op->mutates)),
            n.target, " gives ", results, " values, not ", n.outs.size());
  }

  const Functions& functions_;
  const Function& f_;
  std::vector<bool> known_;
  int64_t line_ = 0;
};

}  // namespace

bool Type::is_list() const {
  if (base == "List") return items.size() == 1;
  for (auto& [list, item] : kElements)
    if (base == list) return true;
  return false;
}

Type Type::element() const {
  if (base == "List" && items.size() == 1) return items[0];
  for (auto& [list, item] : kElements)
    if (base == list) return Type{std::string(item), base == "OptTensors", 0, {}};
  fail(ErrorKind::Value, "script: ", base, " is no list");
}

bool Block::ended() const {
  return !nodes.empty() && leaves(nodes.back());
}

const Attribute* Class::attribute(std::string_view n) const {
  for (const Attribute& a : attributes)
    if (a.name == n) return &a;
  return nullptr;
}

bool Class::has_child(std::string_view n) const {
  for (const std::string& c : children)
    if (c == n) return true;
  return false;
}

size_t Class::slot(std::string_view n) const {
  if (const Attribute* a = attribute(n)) return static_cast<size_t>(a - attributes.data());
  size_t i = 0;
  while (i < children.size() && children[i] != n) ++i;
  return attributes.size() + i;
}

const std::string* Class::method(std::string_view n) const {
  for (auto& [name, function] : methods)
    if (name == n) return &function;
  return nullptr;
}

const Class* Unit::find_class(std::string_view name) const {
  for (const Class& c : classes)
    if (c.name == name) return &c;
  return nullptr;
}

void check(const Unit& unit) {
  std::unordered_set<std::string_view> classes;
  for (const Class& c : unit.classes)
    FB_CHECK_VALUE(classes.insert(c.name).second, "script: ", c.name, " stands twice");
  Checker::Functions functions;
  for (const Function& f : unit.functions)
    FB_CHECK_VALUE(functions.emplace(f.name, &f).second, "script: ", f.name, " stands twice");
  for (const Class& c : unit.classes)
    for (auto& [n, f] : c.methods)
      FB_CHECK_VALUE(functions.contains(f), "script: ", c.name, " names a function ", f,
                     " that is not there");
  for (const Function& f : unit.functions) Checker(functions, f).run();
}

}  // namespace flambeau::script
