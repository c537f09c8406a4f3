#include "script/lower.h"

#include <unordered_map>

#include "core/error.h"
#include "gen/ops.h"
#include "script/assembler.h"
#include "script/constants.h"
#include "script/core_ops.h"
#include "script/run.h"
#include "script/text.h"

namespace flambeau::script {

namespace {

class Lowerer : Assembler {
 public:
  using Index = std::unordered_map<std::string_view, size_t>;
  Lowerer(Program& p, const Function& f, const Index& index, HostMaker* maker, Code& out,
          std::vector<size_t>& calls)
      : Assembler(f, out), program_(p), index_(index), maker_(maker), calls_(calls) {}

  void run() {
    code_.source = &f_;
    code_.program = &program_;
    code_.params = static_cast<uint32_t>(f_.body.inputs.size());
    scan(f_.body, 0);
    for (uint32_t v : f_.body.inputs) settle(v, fresh());
    block(f_.body, 0, {});
    if (!f_.body.ended()) {
      leave_to(0);
      Instruction& r = emit(Op::Return);
      r.a = constant(Value());
    }
    code_.registers = count_;
  }

 private:
  // -- blocks ---

  struct Loop {
    std::vector<Register> carried;
    std::vector<size_t> breaks, continues;
    size_t open;  // contexts that are entered around it
  };

  // Lowers the nodes, and moves what the block gives to `given`.
  void block(const Block& b, int depth, const std::vector<Register>& given) {
    for (size_t i = 0; i < b.nodes.size(); ++i) {
      const Node& n = b.nodes[i];
      size_t place = place_++;
      if (n.line > 0) line_ = static_cast<int32_t>(n.line);
      if (!is_alias(n)) {
        bool plain = !n.grad;
        if (plain) enter_no_grad();
        node(b, n, depth, i, place);
        if (plain) leave_one();
        drop_dead(n, depth, i);
        drop_unused(n);
      }
    }
    if (b.ended()) return;
    if (given.size() != b.outputs.size()) return;
    std::vector<Transfer> moves;
    for (size_t k = 0; k < given.size(); ++k)
      moves.push_back({given[k], read(b.outputs[k]), dies(b.outputs[k], depth, b.nodes.size())});
    transfer(std::move(moves));
  }

  // -- nodes ---

  void node(const Block& b, const Node& n, int depth, size_t at, size_t place) {
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

  void host_node(const Node& n, int depth, size_t at, size_t place) {
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

  void entry_node(const Node& n, std::string_view uid, int depth, size_t at) {
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
  static bool is_number(const Type& t) {
    return t.is("int") || t.is("float") || t.is("bool") || t.is("Number") || t.is("complex");
  }
  static bool is_plain_number(const Arg& a) {
    return a.kind == Arg::Kind::Int || a.kind == Arg::Kind::Float || a.kind == Arg::Kind::Bool;
  }
  // A constant as the parameter of an entry has it.
  Value parameter(const TypeDesc& t, const Arg& a) {
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
  const Callee* keep(const Callee& c) {
    for (auto& k : program_.callees)
      if (k->op == c.op && k->call == c.call) return k.get();
    program_.callees.push_back(std::make_unique<Callee>(c));
    return program_.callees.back().get();
  }
  void call_node(const Node& n, int depth, size_t at) {
    size_t callee = index_.at(std::string_view(n.target).substr(3));
    calls_.push_back(callee);
    std::vector<Register> made = results(n);
    bool unused = made.empty();
    if (unused) made.push_back(fresh());
    Instruction& i = call(Op::Call, made, arguments(n.args, depth, at));
    i.code = program_.codes[callee].get();
    if (unused) emit(Op::Drop).a = made[0];
  }

  // What a task runs; what the host runs goes the way of its nodes.
  bool fork_node(const Node& n, int depth, size_t at) {
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

  Type type_of(const Arg& a) const {
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
  std::string letters(const Node& n) const {
    std::string out;
    for (const Arg& a : n.args) out += letter(type_of(a), program_.unit);
    return out;
  }

  // A function of the language for these types; false where there is none.
  bool language(const Node& n, std::string_view name, int depth, size_t at) {
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

  bool core_node(const Block& b, const Node& n, int depth, size_t at) {
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
        (n.args[0].kind == Arg::Kind::Str
             ? is_plain_format(n.args[0].text, n.args.size() - 1)
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

  bool arithmetic(const Block& b, const Node& n, std::string_view name, size_t at) {
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

  bool is_next_test(const Block& b, const Node& n, size_t at) const {
    return at + 1 < b.nodes.size() && b.nodes[at + 1].target == "if" &&
           facts_[n.outs[0]].uses == 1 && b.nodes[at + 1].args[0].is_value() &&
           b.nodes[at + 1].args[0].index == n.outs[0];
  }

  const Class* class_of(const Arg& a) const {
    return a.is_value() ? program_.unit.find_class(f_.values[a.index].type.base) : nullptr;
  }

  bool attribute(const Node& n, bool sets, int depth, size_t at) {
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
    if (c->kind != "class" && maker_ && !maker_->attribute(*ref))
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

  bool make_object(const Node& n) {
    const Class* c = n.args.size() == 1 && n.args[0].kind == Arg::Kind::Str
                         ? program_.unit.find_class(n.args[0].text)
                         : nullptr;
    if (!c || c->kind != "class" || n.outs.size() != 1) return false;
    call(Op::Core, results(n), {constant(make_box<Object>(*c))}).core = core_new_object;
    return true;
  }

  bool make_named(const Node& n, int depth, size_t at) {
    if (n.args.empty() || n.args[0].kind != Arg::Kind::Str || n.outs.size() != 1) return false;
    const Class* c = program_.unit.find_class(n.args[0].text);
    if (!c || c->kind != "tuple" || n.args.size() != c->attributes.size() + 1) return false;
    call(Op::Core, results(n), arguments(n.args, depth, at)).core = core_named_tuple;
    return true;
  }

  // The types of a text `A or B`, where no object of the owner's is asked for.
  std::optional<Value> type_list(std::string_view text) const {
    std::vector<Type> types;
    for (;;) {
      size_t cut = text.find(" or ");
      types.push_back(read_type(text.substr(0, cut)));
      if (maker_ && names_class(types.back())) return std::nullopt;
      if (cut == text.npos) return make_box<Types>(std::move(types));
      text.remove_prefix(cut + 4);
    }
  }
  static bool names_class(const Type& t) {
    for (const Type& item : t.items)
      if (names_class(item)) return true;
    return t.base.find('.') != t.base.npos;
  }

  bool unpack(const Node& n, int depth, size_t at) {
    if (n.args.size() != 1 || n.outs.empty()) return false;
    char c = letter(type_of(n.args[0]), program_.unit);
    if (c != 'l' && c != 'p') return false;
    std::vector<Register> args = arguments(n.args, depth, at);
    args.push_back(constant(Value(static_cast<int64_t>(n.outs.size()))));
    call(Op::Core, results(n), args).core = core_unpack;
    return true;
  }

  // -- control ---

  // The jumps to take where the test does not hold.
  size_t unless(const Arg& test) {
    if (test.is_value() && test_ && test_->value == test.index) {
      if (test_->op == Op::Not) {
        size_t at = jump(Op::When, test_->a);
        test_.reset();
        return at;
      }
      Op op = static_cast<Op>(static_cast<int>(Op::UnlessEqInt) + static_cast<int>(test_->op) -
                              static_cast<int>(Op::EqInt));
      size_t at = jump(op, test_->a, test_->b);
      test_.reset();
      return at;
    }
    return jump(Op::Unless, read(test));
  }

  void if_node(const Node& n, int depth, size_t) {
    std::vector<Register> outs;
    for (uint32_t v : n.outs) outs.push_back(place(v));
    size_t otherwise = unless(n.args[0]);
    const Block &then = n.blocks[0], &other = n.blocks[1];
    aim(then, depth + 1, outs);
    block(then, depth + 1, outs);
    bool empty = other.nodes.empty() && other.outputs.empty();
    if (empty) return land(otherwise);
    size_t done = then.ended() ? 0 : jump(Op::Jump);
    land(otherwise);
    aim(other, depth + 1, outs);
    block(other, depth + 1, outs);
    if (!then.ended()) land(done);
  }

  // Registers for what a loop carries, with the first values in them.
  std::vector<Register> carry(const Node& n, int depth, size_t at) {
    const Block& body = n.blocks.back();
    const std::vector<Arg>& first = n.args[2].items;
    size_t items = body.inputs.size() - first.size();
    std::vector<Register> out;
    std::vector<Transfer> moves;
    for (size_t k = 0; k < first.size(); ++k) {
      Register r = place(n.outs[k]);  // perhaps where an outer loop wants it
      settle(body.inputs[items + k], r);
      out.push_back(r);
      bool last = dies(first[k], depth, at);
      for (const Arg& list : n.args[1].items) last = last && !uses(list, root_of(first[k]).index);
      moves.push_back({r, read(first[k]), last});
    }
    transfer(std::move(moves));
    return out;
  }

  void loop_node(const Node& n, int depth, size_t at) {
    code_.lasts = true;
    const std::string& kind = n.args[0].text;
    const std::vector<Arg>& over = n.args[1].items;
    const Block& body = n.blocks.back();
    if (kind == "while") {
      Loop loop{carry(n, depth, at), {}, {}, open_.size()};
      const Block& test = n.blocks[0];
      for (size_t k = 0; k < test.inputs.size(); ++k) settle(test.inputs[k], loop.carried[k]);
      size_t head = here();
      Register verdict = fresh();
      loops_.push_back(std::move(loop));
      block(test, depth + 1, {verdict});
      size_t exit = test.ended() ? 0 : jump(Op::Unless, verdict);
      turn(body, depth, loops_.back().carried);
      finish(head, test.ended() ? std::vector<size_t>{} : std::vector<size_t>{exit}, head);
      return;
    }
    // What it runs over comes before what it carries.
    Iteration it = iterate(kind, over, depth, at);
    Loop loop{carry(n, depth, at), {}, {}, open_.size()};
    loops_.push_back(std::move(loop));
    if (kind == "range") {
      size_t first = jump(Op::Jump);
      size_t start = here();
      settle(body.inputs[0], it.items[0]);
      turn(body, depth, loops_.back().carried);
      size_t tail = here();
      land(first);
      size_t turn_at = jump(Op::Turn, it.items[0], it.state);
      land(turn_at, start);
      finish(tail, {}, static_cast<size_t>(-1));
      return;
    }
    size_t head = here();
    std::vector<size_t> exits = advance(it, body.inputs);
    turn(body, depth, loops_.back().carried);
    finish(head, exits, head);
    drop_lists(over, depth, at);
  }
  void drop_lists(const std::vector<Arg>& over, int depth, size_t at) {
    for (const Arg& a : over) {
      Arg r = root_of(a);
      if (r.is_value() && dies(a, depth, at) && has_register(r.index) && !shared(r.index))
        emit(Op::Drop).a = static_cast<Register>(registers_[r.index]);
    }
  }

  void turn(const Block& body, int depth, const std::vector<Register>& carried) {
    std::vector<Register> to = carried;
    aim(body, depth + 1, to);
    block(body, depth + 1, to);
  }
  // Ends the loop on top: `again` is where a turn begins, or nothing where it falls through.
  void finish(size_t next, const std::vector<size_t>& exits, size_t again) {
    if (again != static_cast<size_t>(-1)) land(jump(Op::Jump), again);
    Loop loop = std::move(loops_.back());
    loops_.pop_back();
    for (size_t j : exits) land(j);
    for (size_t j : loop.continues) land(j, next);
    for (size_t j : loop.breaks) land(j);
  }

  void jump_out(const Node& n, int depth, size_t at) {
    if (loops_.empty()) throw Unsupported{n.target + " outside of a loop"};
    std::vector<Transfer> moves;
    for (size_t k = 0; k < n.args.size(); ++k)
      moves.push_back({loops_.back().carried[k], read(n.args[k]), dies(n.args[k], depth, at)});
    transfer(std::move(moves));
    leave_to(loops_.back().open);
    size_t j = jump(Op::Jump);
    (n.target == "break" ? loops_.back().breaks : loops_.back().continues).push_back(j);
  }

  struct Iteration {
    std::string kind;
    std::vector<Register> lists, items;
    Register state = 0;  // an index, or the first of three registers of a range
  };

  Iteration iterate(const std::string& kind, const std::vector<Arg>& over, int depth, size_t at) {
    Iteration it{kind, {}, {}, 0};
    if (kind == "range") {
      it.items.push_back(fresh());
      it.state = fresh();
      fresh(), fresh();
      Instruction& i = call(Op::Range, {}, arguments(over, depth, at));
      i.a = it.state;
      return it;
    }
    for (const Arg& a : over) {
      char c = letter(type_of(a), program_.unit);
      bool number = kind == "enumerate" && &a != &over[0];
      if (number ? c != 'i' : c != 'l' && c != 'p' && c != 's')
        throw Unsupported{"a loop over this"};
      if (c == 's') {
        it.lists.push_back(fresh());
        call(Op::Core, {it.lists.back()}, {read(a)}).core = core_characters;
      } else {
        it.lists.push_back(read(a));
      }
    }
    it.state = fresh();
    Instruction& i = emit(Op::Begin);
    i.a = it.state;
    i.b = kind == "reversed" ? it.lists[0] : constant(Value());
    return it;
  }
  // The items of the next turn; the jumps at the end.
  std::vector<size_t> advance(Iteration& it, const std::vector<uint32_t>& items) {
    std::vector<size_t> exits;
    size_t lists = it.kind == "enumerate" ? 1 : it.lists.size();
    for (size_t k = 0; k < lists; ++k) {
      uint32_t item = items[it.kind == "enumerate" ? 1 : k];
      exits.push_back(jump(it.kind == "reversed" ? Op::NextBack : Op::Next, place(item),
                           it.lists[k]));
      code_.instructions.back().c = it.state;
      code_.instructions.back().count = k + 1 == lists;  // the last one moves on
    }
    if (it.kind == "enumerate") {
      // The index has moved on already.
      Instruction& i = emit(Op::SubInt);
      i.a = place(items[0]);
      i.b = it.state;
      i.c = constant(Value(int64_t{1}));
      if (it.lists.size() == 2) {
        Instruction& j = emit(Op::AddInt);
        j.a = place(items[0]);
        j.b = place(items[0]);
        j.c = it.lists[1];
      }
    }
    return exits;
  }

  void collect_node(const Node& n, int depth, size_t at) {
    code_.lasts = true;
    const Type& type = f_.values[n.outs[0]].type;
    if (!type.is_list()) throw Unsupported{"collect makes no list"};
    Iteration it = iterate(n.args[0].text, n.args[1].items, depth, at);
    Register made = fresh();
    call(Op::Core, {made}, {constant(Value(static_cast<int64_t>(list_kind(type))))}).core =
        core_empty_list;
    for (size_t k = 0; k < n.blocks[0].inputs.size(); ++k) {
      Register item = it.kind == "range" ? it.items[0] : fresh();
      for (const Block& b : n.blocks) settle(b.inputs[k], item);
    }
    size_t first = it.kind == "range" ? jump(Op::Jump) : 0;
    size_t start = here();
    std::vector<size_t> exits;
    if (it.kind != "range") exits = advance(it, n.blocks[0].inputs);
    size_t skip = 0;
    if (n.blocks.size() == 2) {
      Register verdict = fresh();
      block(n.blocks[0], depth + 1, {verdict});
      skip = jump(Op::Unless, verdict);
    }
    Register item = fresh(), nothing = fresh();
    block(n.blocks.back(), depth + 1, {item});
    call(Op::Core, {nothing}, {made, static_cast<Register>(item | kLast)}).core = core_append;
    if (n.blocks.size() == 2) land(skip);
    if (it.kind == "range") {
      land(first);
      size_t turn_at = jump(Op::Turn, it.items[0], it.state);
      land(turn_at, start);
    } else {
      land(jump(Op::Jump), start);
    }
    for (size_t j : exits) land(j);
    jump(Op::Take, place(n.outs[0]), made);
    if (it.kind != "range") drop_lists(n.args[1].items, depth, at);
  }

  // -- with ---

  void enter_no_grad() {
    call(Op::Enter, {}, {}).a = static_cast<Register>(Context::NoGrad);
    open_.push_back(Context::NoGrad);
  }
  void leave_one() {
    emit(Op::Leave);
    open_.pop_back();
  }
  // Leaves contexts until so many are open, which stay open for what follows in the text.
  void leave_to(size_t n) {
    for (size_t k = open_.size(); k > n; --k) emit(Op::Leave);
  }

  void with_node(const Node& n, int depth, size_t at, size_t place_of_node) {
    const std::string& kind = n.args[0].text;
    std::vector<Arg> given = n.args[1].items;
    auto outer = entered_;
    entered_ = -1;
    if (kind == "object") {
      enter_object(given, depth, at);
    } else {
      bool named = !given.empty() && given[0].kind == Arg::Kind::Str && given[0].text.empty();
      Context c = kind == "no_grad"            ? Context::NoGrad
                  : kind == "enable_grad"      ? Context::Grad
                  : kind == "set_grad_enabled" ? Context::SetGrad
                                               : Context::Host;
      size_t expected = c == Context::SetGrad ? 2 : 1;
      if (c == Context::Host || !named || given.size() != expected) {
        if (!maker_ && kind == "record_function") {  // nobody records
          Instruction& i = call(Op::Enter, {}, {});
          i.a = static_cast<Register>(Context::Nothing);
          open_.push_back(Context::Nothing);
          return with_block(n, depth, outer);
        }
        std::optional<uint32_t> number =
            maker_ ? maker_->context(f_, place_of_node, n) : std::nullopt;
        if (!number) throw Unsupported{"with " + kind};
        std::vector<Arg> values;
        for (const Arg& a : given)
          if (a.is_value()) values.push_back(a);
        Instruction& i = call(Op::Enter, {}, arguments(values, -1, at));
        i.a = static_cast<Register>(Context::Host);
        i.number = *number;
        open_.push_back(Context::Host);
      } else {
        given.erase(given.begin());
        call(Op::Enter, {}, arguments(given, -1, at)).a = static_cast<Register>(c);
        open_.push_back(c);
      }
    }
    with_block(n, depth, outer);
  }
  void with_block(const Node& n, int depth, int32_t outer) {
    std::vector<Register> outs;
    for (uint32_t v : n.outs) outs.push_back(place(v));
    block(n.blocks[0], depth + 1, outs);
    if (!n.blocks[0].ended()) emit(Op::Leave);
    open_.pop_back();
    entered_ = outer;
  }

  void enter_object(const std::vector<Arg>& given, int, size_t at) {
    const Class* c = given.size() == 1 ? class_of(given[0]) : nullptr;
    const std::string* enter = c ? c->method("__enter__") : nullptr;
    const std::string* leave = c ? c->method("__exit__") : nullptr;
    if (!enter || !leave) throw Unsupported{"with an object"};
    size_t in = index_.at(*enter), out = index_.at(*leave);
    if (program_.unit.functions[in].body.inputs.size() != 1 ||
        program_.unit.functions[out].body.inputs.size() != 4)
      throw Unsupported{"with an object"};
    calls_.push_back(in);
    calls_.push_back(out);
    std::vector<Register> object = arguments(given, -1, at);
    Register got = fresh();
    call(Op::Call, {got}, object).code = program_.codes[in].get();
    Instruction& i = call(Op::Enter, {}, object);
    i.a = static_cast<Register>(Context::Object);
    i.code = program_.codes[out].get();
    open_.push_back(Context::Object);
    entered_ = got;
  }

  struct Test {
    uint32_t value;
    Op op;
    Register a, b;
  };

  Program& program_;
  const Index& index_;
  HostMaker* maker_;
  std::vector<size_t>& calls_;
  std::vector<Loop> loops_;
  std::vector<Context> open_;
  std::optional<Test> test_;
  std::vector<Register> found_;  // the dict and the key of a look-up that the next node is part of
  size_t place_ = 0;
  int32_t entered_ = -1;
};

// What calls something that may take long may, and so may what calls itself.
void find_long(Program& p, const std::vector<std::vector<size_t>>& callers) {
  std::vector<size_t> open(callers.size()), ready;  // calls of functions not yet looked at
  for (auto& from : callers)
    for (size_t c : from) ++open[c];
  for (size_t i = 0; i < open.size(); ++i)
    if (open[i] == 0) ready.push_back(i);
  while (!ready.empty()) {
    size_t i = ready.back();
    ready.pop_back();
    for (size_t c : callers[i]) {
      p.codes[c]->lasts |= p.codes[i]->lasts;
      if (--open[c] == 0) ready.push_back(c);
    }
  }
  for (size_t i = 0; i < open.size(); ++i) p.codes[i]->lasts |= open[i] > 0;
}

}  // namespace

std::shared_ptr<Program> lower(Unit unit, HostMaker* maker) {
  auto program = std::make_shared<Program>();
  Program& p = *program;
  p.unit = std::move(unit);
  size_t n = p.unit.functions.size();
  Lowerer::Index index;
  for (size_t i = 0; i < n; ++i) {
    index.emplace(p.unit.functions[i].name, i);
    p.codes.push_back(std::make_unique<Code>());
  }
  p.reasons.resize(n);
  std::vector<std::vector<size_t>> callers(n);
  for (size_t i = 0; i < n; ++i) {
    std::vector<size_t> calls;
    try {
      Lowerer(p, p.unit.functions[i], index, maker, *p.codes[i], calls).run();
    } catch (const Unsupported& u) {
      p.reasons[i] = u.why;
    }
    for (size_t c : calls) callers[c].push_back(i);
  }
  find_long(p, callers);
  std::vector<size_t> left;
  for (size_t i = 0; i < n; ++i)
    if (!p.reasons[i].empty()) left.push_back(i);
  while (!left.empty()) {
    size_t i = left.back();
    left.pop_back();
    for (size_t c : callers[i]) {
      if (!p.reasons[c].empty()) continue;
      p.reasons[c] = "it calls " + p.unit.functions[i].name + ": " + p.reasons[i];
      left.push_back(c);
    }
  }
  return program;
}

const Code* Program::find(std::string_view name) const {
  for (size_t i = 0; i < codes.size(); ++i)
    if (unit.functions[i].name == name) return reasons[i].empty() ? codes[i].get() : nullptr;
  return nullptr;
}

}  // namespace flambeau::script
