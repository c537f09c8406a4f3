// Calls, attributes and arithmetic to instructions, see lowerer.h.
#include "core/error.h"
#include "gen/ops.h"
#include "script/constants.h"
#include "script/lowerer.h"

namespace flambeau::script {

void Lowerer::node(const Block& b, const Node& n, int depth, size_t at, size_t place) {
  const std::string& t = n.target;
  if (t == "if") return if_node(n, depth, at);
  if (t == "loop") return loop_node(n, depth, at);
  if (t == "collect") return collect_node(n, depth, at);
  if (t == "with") return with_node(n, depth, at, place);
  if (t == "return") {
    Register r = n.args.empty() ? constant(Value()) : read(n.args[0]);
    leave_to(0);
    emit(Op::Return).a = r;
    return;
  }
  if (t == "raise") {
    Register r = read(n.args[1]);
    program_.texts.push_back(std::make_unique<std::string>(n.args[0].text));
    Instruction& i = emit(Op::Raise);
    i.a = r;
    i.text = program_.texts.back().get();
    return;
  }
  if (t == "break" || t == "continue") return jump_out(n, depth, at);
  if (t.starts_with("fn.")) return call_node(n, depth, at);
  if (t.starts_with("core.")) {
    if (core_node(b, n, depth, at)) return;
  } else if (t.starts_with("lib.")) {
    if (t == "lib.nn.functional.tanh" || t == "lib.nn.functional.sigmoid")
      return entry_node(n, t.substr(18), depth, at);
    if (language(n, t, depth, at)) return;
  } else if (!t.starts_with("host.")) {
    return entry_node(n, t, depth, at);
  }
  host_node(n, depth, at, place);
}

void Lowerer::host_node(const Node& n, int depth, size_t at, size_t place) {
  for (const Arg& a : n.args)
    for (const Arg& item : a.items)
      if (item.is_value()) throw Unsupported{n.target + " takes what is not a value"};
  std::optional<uint32_t> number =
      maker_ && n.blocks.empty() ? maker_->node(f_, place, n) : std::nullopt;
  if (!number) throw Unsupported{n.target};
  std::vector<Arg> given;  // the host knows the constants
  for (const Arg& a : n.args)
    if (a.is_value()) given.push_back(a);
  std::vector<Register> args = arguments(given, depth, at);
  bool forks = n.target == "core.fork";
  Instruction& i = call(forks ? Op::Fork : Op::Host, results(n), args);
  i.number = *number;
  i.a = forks;
}

void Lowerer::entry_node(const Node& n, std::string_view uid, int depth, size_t at) {
  Callee found = find_callee(uid);
  std::vector<Register> args;
  for (size_t k = 0; k < n.args.size(); ++k) {
    const Arg& a = n.args[k];
    const TypeDesc& type = found.op->params[k].type;
    Arg r = root_of(a);
    if (r.kind == Arg::Kind::Tuple || is_plain_number(r)) {
      args.push_back(constant(parameter(type, r)));
    } else if (type.base == TypeBase::Tensor && a.is_value() && is_number(type_of(a))) {
      args.push_back(fresh());
      call(Op::Core, {args.back()}, {read(a)}).core = find_core("core.wrap", "n").function;
    } else {
      args.push_back(read(a));
    }
  }
  mark_last(args, n.args, depth, at);
  size_t given = found.op->returns.size();
  std::vector<Register> made = results(n);
  bool first = given == 0 && made.size() == 1;  // the argument it changes
  bool packed = given > 1 && made.size() == 1;
  if (first) {
    Register to = made[0];
    made.clear();
    for (Register& r : args)
      if (!(r & kConstant)) r &= kRegisters;
    call(Op::Entry, made, args).callee = keep(found);
    jump(Op::Move, to, args[0] & static_cast<Register>(~kLast));
    return;
  }
  if (packed) {
    Register to = made[0];
    made.clear();
    for (size_t k = 0; k < given; ++k) made.push_back(fresh());
    call(Op::Entry, made, args).callee = keep(found);
    std::vector<Register> parts = made;
    for (Register& r : parts) r |= kLast;
    call(Op::Tuple, {to}, parts);
  } else {
    while (made.size() < given) made.push_back(fresh());
    size_t unused = n.outs.size();
    call(Op::Entry, made, args).callee = keep(found);
    for (size_t k = unused; k < made.size(); ++k) emit(Op::Drop).a = made[k];
  }
}

Value Lowerer::parameter(const TypeDesc& t, const Arg& a) {
  if (a.kind == Arg::Kind::Tuple) {
    if (t.base != TypeBase::Ints) throw Unsupported{"a constant " + show(a, &f_)};
    Ints xs;
    for (const Arg& item : a.items) {
      if (item.kind != Arg::Kind::Int) throw Unsupported{"a constant " + show(a, &f_)};
      xs.push_back(item.whole);
    }
    return Value(std::move(xs));
  }
  Value x = constant_of(a);
  if (t.base == TypeBase::Float && !x.is<double>()) return Value(x.number().to_double());
  if (t.base == TypeBase::Tensor) return Value(wrapped_number(x.number()));
  return x;
}

const Callee* Lowerer::keep(const Callee& c) {
  for (auto& k : program_.callees)
    if (k->op == c.op && k->call == c.call) return k.get();
  program_.callees.push_back(std::make_unique<Callee>(c));
  return program_.callees.back().get();
}

void Lowerer::call_node(const Node& n, int depth, size_t at) {
  size_t callee = index_.at(std::string_view(n.target).substr(3));
  calls_.push_back(callee);
  std::vector<Register> made = results(n);
  bool unused = made.empty();
  if (unused) made.push_back(fresh());
  Instruction& i = call(Op::Call, made, arguments(n.args, depth, at));
  i.code = program_.codes[callee].get();
  if (unused) emit(Op::Drop).a = made[0];
}

bool Lowerer::fork_node(const Node& n, int depth, size_t at) {
  if (n.outs.size() != 1 || !f_.values[n.outs[0]].type.is("Future")) throw Unsupported{n.target};
  std::string_view what = n.args[0].text;
  std::vector<Arg> given(n.args.begin() + 1, n.args.end());
  code_.lasts = true;
  if (!what.starts_with("fn.")) return false;
  auto found = index_.find(what.substr(3));
  if (found == index_.end() ||
      program_.unit.functions[found->second].body.inputs.size() != given.size())
    throw Unsupported{"fork of " + n.args[0].text};
  calls_.push_back(found->second);
  call(Op::Fork, results(n), arguments(given, depth, at)).code =
      program_.codes[found->second].get();
  return true;
}

Type Lowerer::type_of(const Arg& a) const {
  switch (a.kind) {
    case Arg::Kind::Value: {
      // What a value is another name of may say more: a constant, or what is not None.
      return f_.values[a.index].type;
    }
    case Arg::Kind::Bool:
      return {"bool", false, 0, {}};
    case Arg::Kind::Int:
      return {"int", false, 0, {}};
    case Arg::Kind::Float:
      return {"float", false, 0, {}};
    case Arg::Kind::Complex:
      return {"complex", false, 0, {}};
    case Arg::Kind::Str:
      return {"str", false, 0, {}};
    case Arg::Kind::Device:
      return {"Device", false, 0, {}};
    case Arg::Kind::Name:
      return {"DType", false, 0, {}};
    case Arg::Kind::None:
      return {"None", false, 0, {}};
    default:
      return {"Constant", false, 0, {}};
  }
}

std::string Lowerer::letters(const Node& n) const {
  std::string out;
  for (const Arg& a : n.args) out += letter(type_of(a), program_.unit);
  return out;
}

bool Lowerer::language(const Node& n, std::string_view name, int depth, size_t at) {
  CoreEntry found = find_core(name, letters(n), !maker_);
  if (!found.function) return false;
  std::vector<Register> args = arguments(n.args, depth, at);
  if (found.makes_list) {
    if (n.outs.size() != 1 || !f_.values[n.outs[0]].type.is_list()) return false;
    args.push_back(constant(Value(static_cast<int64_t>(list_kind(f_.values[n.outs[0]].type)))));
  }
  std::vector<Register> made = results(n);
  if (made.empty()) made.push_back(fresh());
  bool unused = n.outs.empty();
  call(Op::Core, made, args).core = found.function;
  if (unused) emit(Op::Drop).a = made[0];
  return true;
}

bool Lowerer::core_node(const Block& b, const Node& n, int depth, size_t at) {
  std::string_view name = std::string_view(n.target).substr(5);
  if (n.outs.size() == 1 && n.args.size() == 2 && arithmetic(b, n, name, at)) return true;
  if (n.outs.size() == 1 && n.args.size() == 1) {
    if (name == "not") {
      if (is_next_test(b, n, at))
        test_ = {n.outs[0], Op::Not, read(n.args[0]), 0};
      else
        jump(Op::Not, place(n.outs[0]), read(n.args[0]));
      return true;
    }
    if (name == "is_none") return jump(Op::IsNone, place(n.outs[0]), read(n.args[0])), true;
  }
  if (name == "entered") {
    if (entered_ < 0 || n.outs.size() != 1) throw Unsupported{n.target};
    jump(Op::Move, place(n.outs[0]), static_cast<Register>(entered_));
    return true;
  }
  if (n.args.empty() && n.outs.size() == 1)
    if (std::optional<Value> x = named_constant(name)) {
      jump(Op::Move, place(n.outs[0]), constant(*x));
      return true;
    }
  if (name == "wrap" && n.args.size() == 1) {
    Arg r = root_of(n.args[0]);
    if (is_plain_number(r) && n.outs.size() == 1) {
      Value x = constant_of(r);
      Register c = constant(Value(wrapped_number(x.number())));
      if (has_register(n.outs[0]))
        jump(Op::Move, place(n.outs[0]), c);
      else
        fix(n.outs[0], c);
      return true;
    }
  }
  if (name == "getattr" || name == "setattr") return attribute(n, name == "setattr", depth, at);
  if (name == "unpack") return unpack(n, depth, at);
  if (name == "tuple") {
    if (n.outs.size() != 1) return false;
    call(Op::Tuple, results(n), arguments(n.args, depth, at));
    return true;
  }
  if (name == "isinstance" && n.args.size() == 2 && n.args[1].kind == Arg::Kind::Str) {
    if (std::optional<Value> types = type_list(n.args[1].text)) {
      std::vector<Register> args = arguments({n.args[0]}, depth, at);
      args.push_back(constant(*std::move(types)));
      std::vector<Register> made = results(n);
      if (made.size() == 1) return call(Op::Core, made, args).core = core_isinstance, true;
    }
  }
  if (name == "format" && !n.args.empty() && n.outs.size() == 1 &&
      (n.args[0].kind == Arg::Kind::Str ? is_plain_format(n.args[0].text, n.args.size() - 1)
                                        : !maker_) &&
      (!maker_ || letters(n).find_first_not_of("ifbs") == std::string::npos)) {
    call(Op::Core, results(n), arguments(n.args, depth, at)).core = core_format;
    return true;
  }
  if (name == "new") return make_object(n);
  if (name == "make_tuple") return make_named(n, depth, at);
  if (name == "fork") return fork_node(n, depth, at);
  if ((name == "wait" || name == "future_done") && n.args.size() == 1 && n.outs.size() < 2 &&
      type_of(n.args[0]).is("Future")) {
    std::vector<Register> made = results(n);
    if (made.empty()) made.push_back(fresh());
    call(name == "wait" ? Op::Wait : Op::Done, made, arguments(n.args, depth, at));
    code_.lasts = true;
    return true;
  }
  if (name == "lookup" && n.args.size() == 2 && n.outs.size() == 1 && letters(n)[0] == 'd' &&
      at + 1 < b.nodes.size() && b.nodes[at + 1].target == "core.append" &&
      b.nodes[at + 1].args.size() == 2 && b.nodes[at + 1].args[0].is_value() &&
      b.nodes[at + 1].args[0].index == n.outs[0] && facts_[n.outs[0]].uses == 1) {
    found_ = arguments(n.args, depth, at);  // d[k].append(x) in one
    return true;
  }
  if (name == "append" && !found_.empty() && n.outs.empty() && letters(n)[0] == 'l') {
    std::vector<Register> args = std::exchange(found_, {});
    args.push_back(arguments({n.args[1]}, depth, at)[0]);
    Register nothing = fresh();
    call(Op::Core, {nothing}, args).core = core_append_at;
    return true;
  }
  if (name == "append" && letters(n) == "li" && n.outs.empty()) {
    call(Op::Append, {}, arguments(n.args, depth, at));
    return true;
  }
  return language(n, n.target, depth, at);
}

bool Lowerer::arithmetic(const Block& b, const Node& n, std::string_view name, size_t at) {
  struct Row {
    std::string_view name;
    Op ints, floats;
    bool swapped;
  };
  constexpr Op none = Op::Jump;
  static constexpr Row rows[] = {
      {"add", Op::AddInt, Op::AddFloat, false}, {"sub", Op::SubInt, Op::SubFloat, false},
      {"mul", Op::MulInt, Op::MulFloat, false}, {"floordiv", Op::FloorDivInt, none, false},
      {"mod", Op::ModInt, none, false},         {"and_", Op::AndInt, none, false},
      {"or_", Op::OrInt, none, false},          {"xor", Op::XorInt, none, false},
      {"eq", Op::EqInt, Op::EqFloat, false},    {"ne", Op::NeInt, none, false},
      {"lt", Op::LtInt, Op::LtFloat, false},    {"le", Op::LeInt, Op::LeFloat, false},
      {"gt", Op::LtInt, Op::LtFloat, true},     {"ge", Op::LeInt, Op::LeFloat, true}};
  Type x = type_of(n.args[0]), y = type_of(n.args[1]);
  bool ints = x.is("int") && y.is("int"), floats = x.is("float") && y.is("float");
  if (!ints && !floats) return false;
  for (const Row& row : rows) {
    if (row.name != name) continue;
    Op op = ints ? row.ints : row.floats;
    if (op == none) return false;
    Register p = read(n.args[0]), q = read(n.args[1]);
    if (row.swapped) std::swap(p, q);
    // A test that only the next node asks for is a part of its jump.
    if (ints && op >= Op::EqInt && op <= Op::LeInt && is_next_test(b, n, at)) {
      test_ = {n.outs[0], op, p, q};
      return true;
    }
    Instruction& i = emit(op);
    i.a = place(n.outs[0]);
    i.b = p;
    i.c = q;
    return true;
  }
  return false;
}

bool Lowerer::is_next_test(const Block& b, const Node& n, size_t at) const {
  return at + 1 < b.nodes.size() && b.nodes[at + 1].target == "if" && facts_[n.outs[0]].uses == 1 &&
         b.nodes[at + 1].args[0].is_value() && b.nodes[at + 1].args[0].index == n.outs[0];
}

bool Lowerer::attribute(const Node& n, bool sets, int depth, size_t at) {
  const Class* c = n.args.empty() ? nullptr : class_of(n.args[0]);
  if (!c || n.args.size() != (sets ? 3 : 2) || n.args[1].kind != Arg::Kind::Str) return false;
  const std::string& name = n.args[1].text;
  auto ref = std::make_unique<AttrRef>();
  ref->name = name;
  const Attribute* a = c->attribute(name);
  if (c->kind == "tuple" && a && !sets && n.outs.size() == 1) {
    auto k = static_cast<int64_t>(a - c->attributes.data());
    std::vector<Register> args = arguments({n.args[0]}, depth, at);
    args.push_back(constant(Value(k)));
    call(Op::Core, results(n), args).core = find_core("core.part", "pi").function;
    return true;
  }
  bool child = !a && c->has_child(name) && !sets && n.outs.size() == 1;
  if (!a && !child) throw Unsupported{c->name + " has no attribute " + name};
  ref->owner = c;
  ref->place = child ? "_modules" : a->place;
  ref->type = child ? f_.values[n.outs[0]].type : a->type;
  ref->slot = static_cast<uint32_t>(c->slot(name));
  // Without an owner all objects are the machine's.
  if (maker_ && !maker_->attribute(*ref) && c->kind != "class")
    throw Unsupported{"attribute " + name + " of " + c->name};
  program_.attributes.push_back(std::move(ref));
  std::vector<Arg> given{n.args[0]};
  if (sets) given.push_back(n.args[2]);
  if (n.outs.size() != (sets ? 0 : 1)) return false;
  Op op = sets ? Op::SetAttr : Op::GetAttr;
  Instruction& i = call(op, results(n), arguments(given, depth, at));
  i.attribute = program_.attributes.back().get();
  return true;
}

bool Lowerer::make_object(const Node& n) {
  const Class* c = n.args.size() == 1 && n.args[0].kind == Arg::Kind::Str
                       ? program_.unit.find_class(n.args[0].text)
                       : nullptr;
  if (!c || c->kind != "class" || n.outs.size() != 1) return false;
  call(Op::Core, results(n), {constant(make_box<Object>(*c))}).core = core_new_object;
  return true;
}

bool Lowerer::make_named(const Node& n, int depth, size_t at) {
  if (n.args.empty() || n.args[0].kind != Arg::Kind::Str || n.outs.size() != 1) return false;
  const Class* c = program_.unit.find_class(n.args[0].text);
  if (!c || c->kind != "tuple" || n.args.size() != c->attributes.size() + 1) return false;
  call(Op::Core, results(n), arguments(n.args, depth, at)).core = core_named_tuple;
  return true;
}

std::optional<Value> Lowerer::type_list(std::string_view text) const {
  std::vector<Type> types;
  for (;;) {
    size_t cut = text.find(" or ");
    types.push_back(read_type(text.substr(0, cut)));
    if (maker_ && names_class(types.back())) return std::nullopt;
    if (cut == text.npos) return make_box<Types>(std::move(types));
    text.remove_prefix(cut + 4);
  }
}

bool Lowerer::unpack(const Node& n, int depth, size_t at) {
  if (n.args.size() != 1 || n.outs.empty()) return false;
  char c = letter(type_of(n.args[0]), program_.unit);
  if (c != 'l' && c != 'p') return false;
  std::vector<Register> args = arguments(n.args, depth, at);
  args.push_back(constant(Value(static_cast<int64_t>(n.outs.size()))));
  call(Op::Core, results(n), args).core = core_unpack;
  return true;
}

}  // namespace flambeau::script
