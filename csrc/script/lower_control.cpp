// Branches, loops, comprehensions and contexts to instructions, see lowerer.h.
#include "core/error.h"
#include "gen/ops.h"
#include "script/constants.h"
#include "script/lowerer.h"

namespace flambeau::script {

size_t Lowerer::unless(const Arg& test) {
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

void Lowerer::if_node(const Node& n, int depth, size_t) {
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

std::vector<Register> Lowerer::carry(const Node& n, int depth, size_t at) {
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

void Lowerer::loop_node(const Node& n, int depth, size_t at) {
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

void Lowerer::drop_lists(const std::vector<Arg>& over, int depth, size_t at) {
  for (const Arg& a : over) {
    Arg r = root_of(a);
    if (r.is_value() && dies(a, depth, at) && has_register(r.index) && !shared(r.index))
      emit(Op::Drop).a = static_cast<Register>(registers_[r.index]);
  }
}

void Lowerer::turn(const Block& body, int depth, const std::vector<Register>& carried) {
  std::vector<Register> to = carried;
  aim(body, depth + 1, to);
  block(body, depth + 1, to);
}

void Lowerer::finish(size_t next, const std::vector<size_t>& exits, size_t again) {
  if (again != static_cast<size_t>(-1)) land(jump(Op::Jump), again);
  Loop loop = std::move(loops_.back());
  loops_.pop_back();
  for (size_t j : exits) land(j);
  for (size_t j : loop.continues) land(j, next);
  for (size_t j : loop.breaks) land(j);
}

void Lowerer::jump_out(const Node& n, int depth, size_t at) {
  if (loops_.empty()) throw Unsupported{n.target + " outside of a loop"};
  std::vector<Transfer> moves;
  for (size_t k = 0; k < n.args.size(); ++k)
    moves.push_back({loops_.back().carried[k], read(n.args[k]), dies(n.args[k], depth, at)});
  transfer(std::move(moves));
  leave_to(loops_.back().open);
  size_t j = jump(Op::Jump);
  (n.target == "break" ? loops_.back().breaks : loops_.back().continues).push_back(j);
}

Lowerer::Iteration Lowerer::iterate(const std::string& kind, const std::vector<Arg>& over,
                                    int depth, size_t at) {
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
    if (number ? c != 'i' : c != 'l' && c != 'p' && c != 's') throw Unsupported{"a loop over this"};
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

std::vector<size_t> Lowerer::advance(Iteration& it, const std::vector<uint32_t>& items) {
  std::vector<size_t> exits;
  size_t lists = it.kind == "enumerate" ? 1 : it.lists.size();
  for (size_t k = 0; k < lists; ++k) {
    uint32_t item = items[it.kind == "enumerate" ? 1 : k];
    exits.push_back(
        jump(it.kind == "reversed" ? Op::NextBack : Op::Next, place(item), it.lists[k]));
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

void Lowerer::collect_node(const Node& n, int depth, size_t at) {
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

void Lowerer::enter_no_grad() {
  call(Op::Enter, {}, {}).a = static_cast<Register>(Context::NoGrad);
  open_.push_back(Context::NoGrad);
}

void Lowerer::leave_one() {
  emit(Op::Leave);
  open_.pop_back();
}

void Lowerer::with_node(const Node& n, int depth, size_t at, size_t place_of_node) {
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

void Lowerer::with_block(const Node& n, int depth, int32_t outer) {
  std::vector<Register> outs;
  for (uint32_t v : n.outs) outs.push_back(place(v));
  block(n.blocks[0], depth + 1, outs);
  if (!n.blocks[0].ended()) emit(Op::Leave);
  open_.pop_back();
  entered_ = outer;
}

void Lowerer::enter_object(const std::vector<Arg>& given, int, size_t at) {
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

}  // namespace flambeau::script
