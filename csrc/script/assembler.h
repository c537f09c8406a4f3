// Registers and instructions of one function while it is lowered: which values are other names of
// others, where each is used last, which of them may share a register. Knows no node by its target
// but those that name a value again.
#pragma once

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "script/code.h"
#include "script/constants.h"
#include "script/text.h"

namespace flambeau::script {

// Why a function is not lowered.
struct Unsupported {
  std::string why;
};

// Values of such a type hold memory that is worth giving back.
inline bool holds_memory(const Type& t) {
  return t.optional || !(t.base == "int" || t.base == "float" || t.base == "bool" ||
                         t.base == "None" || t.base == "DType" || t.base == "Device");
}

class Assembler {
 protected:
  Assembler(const Function& f, Code& out)
      : f_(f), code_(out), facts_(f.values.size()), registers_(f.values.size(), -1) {}

  // -- what is known of values

  struct Facts {
    Arg root;  // what the value is another name of: itself, another value or a constant
    int depth = 0;
    size_t defined = 0;  // by which node of its block
    size_t last = 0;     // the node of its block that uses it last, or one beyond: what it gives
    bool nested = false;  // inside of that node's blocks
    bool shared = false;  // its register is that of another value, which is read later
    uint32_t uses = 0;
  };
  Arg root_of(const Arg& a) const { return a.is_value() ? facts_[a.index].root : a; }

  void define(uint32_t v, int depth, size_t at) {
    Facts& x = facts_[v];
    x.root.kind = Arg::Kind::Value;
    x.root.index = v;
    x.depth = depth;
    x.defined = at;
    x.last = at;
  }
  void use(const Arg& a, int depth) {
    for (const Arg& item : a.items) use(item, depth);
    if (!a.is_value()) return;
    Arg r = facts_[a.index].root;
    if (!r.is_value()) return;
    Facts& x = facts_[r.index];
    ++x.uses;
    size_t at = places_[static_cast<size_t>(x.depth)];
    bool nested = depth > x.depth;
    x.nested = at == x.last && x.uses > 1 ? x.nested || nested : nested;
    x.last = at;
  }

  static bool is_alias(const Node& n) {
    if (n.outs.size() != 1 || n.args.size() != 1) return false;
    return n.target == "core.same" || n.target == "core.unwrap" || n.target == "core.number";
  }

  void scan(const Block& b, int depth) {
    places_.resize(static_cast<size_t>(depth) + 1);
    for (uint32_t v : b.inputs) define(v, depth, 0);
    for (size_t i = 0; i < b.nodes.size(); ++i) {
      const Node& n = b.nodes[i];
      places_[static_cast<size_t>(depth)] = i;
      if (is_alias(n)) {
        define(n.outs[0], depth, i);
        facts_[n.outs[0]].root = root_of(n.args[0]);
        continue;
      }
      for (const Arg& a : n.args) use(a, depth);
      for (const Block& inner : n.blocks) scan(inner, depth + 1);
      if (n.blocks.size() == 2)  // a test and what it is a test for have the same registers
        for (uint32_t v : n.blocks[0].inputs) facts_[v].shared = true;
      places_.resize(static_cast<size_t>(depth) + 1);
      for (uint32_t v : n.outs) define(v, depth, i);
    }
    places_[static_cast<size_t>(depth)] = b.nodes.size();
    for (const Arg& a : b.outputs) use(a, depth);
  }


  Register fresh() {
    if (count_ > kRegisters) throw Unsupported{"it has too many values"};
    tenants_.emplace_back();
    return static_cast<Register>(count_++);
  }
  // Where a node puts a value.
  Register place(uint32_t v) {
    if (registers_[v] < 0) settle(v, fresh());
    return static_cast<Register>(registers_[v]);
  }
  // The value is a constant from here on, which nobody writes to.
  void fix(uint32_t v, Register constant) { registers_[v] = constant; }
  bool has_register(uint32_t v) const {
    return registers_[v] >= 0 && !(registers_[v] & kConstant);
  }
  void settle(uint32_t v, Register r) {
    registers_[v] = r;
    tenants_[r].push_back(v);
  }

  Register constant(Value x) {
    for (size_t i = 0; i < code_.constants.size(); ++i)
      if (code_.constants[i].same_as(x) && !x.is<double>()) return as_constant(i);
    code_.constants.push_back(std::move(x));
    return as_constant(code_.constants.size() - 1);
  }
  static Register as_constant(size_t i) {
    if (i > kRegisters) throw Unsupported{"it has too many constants"};
    return static_cast<Register>(i | kConstant);
  }

  Register read(const Arg& a) {
    Arg r = root_of(a);
    if (!r.is_value()) {
      if (r.kind == Arg::Kind::Str) {
        auto [it, is_new] = strings_.emplace(r.text, Register{});
        if (is_new) it->second = constant(Value(r.text));
        return it->second;
      }
      return constant(constant_of(r));
    }
    if (registers_[r.index] < 0) throw Unsupported{"a value has no place"};
    return static_cast<Register>(registers_[r.index]);
  }
  Value constant_of(const Arg& a) {
    std::optional<Value> x = script::constant(a);
    if (!x) throw Unsupported{"a constant " + show(a, &f_)};
    return *std::move(x);
  }
  // The argument of a call, marked if the value is used no more.
  bool dies(const Arg& a, int depth, size_t at) const {
    Arg r = root_of(a);
    if (!r.is_value()) return false;
    const Facts& x = facts_[r.index];
    return x.depth == depth && x.last == at && !x.nested && !x.shared &&
           holds_memory(f_.values[r.index].type);
  }

  Instruction& emit(Op op) {
    Instruction i;
    i.op = op;
    code_.instructions.push_back(i);
    code_.lines.push_back(line_);
    return code_.instructions.back();
  }
  size_t here() const { return code_.instructions.size(); }
  size_t jump(Op op, Register a = 0, Register b = 0) {
    Instruction& i = emit(op);
    i.a = a;
    i.b = b;
    return here() - 1;
  }
  void land(size_t jump) { land(jump, here()); }
  void land(size_t jump, size_t target) {
    Instruction& i = code_.instructions[jump];
    if (i.op == Op::Next || i.op == Op::NextBack)
      i.number = target;
    else
      i.target = static_cast<uint32_t>(target);
  }

  // The operands of a call: results, then arguments.
  Instruction& call(Op op, const std::vector<Register>& results,
                    const std::vector<Register>& args) {
    if (results.size() > 255 || args.size() > 255) throw Unsupported{"a call with many arguments"};
    auto at = static_cast<uint32_t>(code_.operands.size());
    code_.operands.insert(code_.operands.end(), results.begin(), results.end());
    code_.operands.insert(code_.operands.end(), args.begin(), args.end());
    Instruction& i = emit(op);
    i.results = static_cast<uint8_t>(results.size());
    i.count = static_cast<uint8_t>(args.size());
    i.operands = at;
    for (size_t k = results.size(); k < results.size() + args.size(); ++k) {
      Register& r = code_.operands[at + k];
      if (r & kConstant) continue;
      // What a result is put into is not emptied after that.
      if (std::find(results.begin(), results.end(), r & kRegisters) != results.end())
        r &= kRegisters;
      i.drops |= (r & kLast) != 0;
    }
    return i;
  }
  void mark_last(std::vector<Register>& args, const std::vector<Arg>& given, int depth, size_t at) {
    for (size_t k = 0; k < args.size(); ++k) {
      bool later = false;
      for (size_t j = k + 1; j < args.size(); ++j) later |= args[j] == args[k];
      if (!later && !(args[k] & kConstant) && dies(given[k], depth, at)) args[k] |= kLast;
    }
  }

  std::vector<Register> arguments(const std::vector<Arg>& given, int depth, size_t at) {
    std::vector<Register> out;
    for (const Arg& a : given) out.push_back(read(a));
    mark_last(out, given, depth, at);
    return out;
  }
  std::vector<Register> results(const Node& n) {
    std::vector<Register> out;
    for (uint32_t v : n.outs) out.push_back(place(v));
    return out;
  }

  struct Transfer {
    Register to, from;
    bool last;
  };
  // All at once: what one of them reads, none has written before.
  void transfer(std::vector<Transfer> moves) {
    // What stays where it is must not be taken from there by another move of it.
    std::unordered_set<Register> stays;
    for (const Transfer& m : moves)
      if (m.to == m.from) stays.insert(m.from);
    if (!stays.empty())
      for (Transfer& m : moves) m.last = m.last && !stays.contains(m.from);
    std::erase_if(moves, [](const Transfer& m) { return m.to == m.from; });
    if (moves.size() > 1000) throw Unsupported{"it carries too many values"};
    while (!moves.empty()) {
      size_t k = 0;
      auto read_by_others = [&](size_t at) {
        for (size_t j = 0; j < moves.size(); ++j)
          if (j != at && moves[j].from == moves[at].to) return true;
        return false;
      };
      while (k < moves.size() && read_by_others(k)) ++k;
      if (k == moves.size()) {  // a circle
        Register spare = fresh();
        jump(Op::Move, spare, moves[0].from);
        moves[0] = {moves[0].to, spare, true};
        continue;
      }
      Transfer m = moves[k];
      moves.erase(moves.begin() + static_cast<int64_t>(k));
      bool again = false;
      for (const Transfer& o : moves) again |= o.from == m.from;
      jump(m.last && !again && !(m.from & kConstant) ? Op::Take : Op::Move, m.to, m.from);
    }
  }

  // Values of this block that the blocks of a node were the last to use.
  void drop_dead(const Node& n, int depth, size_t at) {
    if (n.blocks.empty()) return;
    std::vector<uint32_t> seen;
    collect_uses(n, depth, at, seen);
    for (uint32_t v : seen) {
      Instruction& d = emit(Op::Drop);
      d.a = static_cast<Register>(registers_[v]);
    }
  }
  void collect_uses(const Node& n, int depth, size_t at, std::vector<uint32_t>& seen) {
    auto note = [&](const Arg& a, auto&& self) -> void {
      for (const Arg& item : a.items) self(item, self);
      Arg r = root_of(a);
      if (!r.is_value()) return;
      const Facts& x = facts_[r.index];
      if (x.depth != depth || x.last != at || !x.nested || x.shared) return;
      if (!has_register(r.index)) return;
      if (!holds_memory(f_.values[r.index].type)) return;
      // A register that goes on as another value is not emptied.
      if (shared(r.index)) return;
      if (std::find(seen.begin(), seen.end(), r.index) == seen.end()) seen.push_back(r.index);
    };
    auto walk = [&](const Node& m, auto&& self) -> void {
      for (const Arg& a : m.args) note(a, note);
      for (const Block& b : m.blocks) {
        for (const Node& inner : b.nodes) self(inner, self);
        for (const Arg& a : b.outputs) note(a, note);
      }
    };
    walk(n, walk);
  }
  bool shared(uint32_t v) const { return tenants_[static_cast<size_t>(registers_[v])].size() > 1; }
  void drop_unused(const Node& n) {
    for (uint32_t v : n.outs)
      if (facts_[v].uses == 0 && has_register(v) && holds_memory(f_.values[v].type) &&
          !shared(v)) {
        Instruction& d = emit(Op::Drop);
        d.a = static_cast<Register>(registers_[v]);
      }
  }

  // Lets what a block gives be made where it goes, where nobody reads the old value after that.
  void aim(const Block& b, int depth, const std::vector<Register>& given) {
    if (b.ended() || b.nodes.size() > 2000) return;
    for (size_t k = 0; k < given.size() && k < b.outputs.size(); ++k) {
      if (!b.outputs[k].is_value()) continue;
      Arg r = root_of(b.outputs[k]);
      if (!r.is_value() || r.index != b.outputs[k].index) continue;
      const Facts& x = facts_[r.index];
      if (x.depth != depth || x.uses != 1 || registers_[r.index] >= 0) continue;
      if (std::find(b.inputs.begin(), b.inputs.end(), r.index) != b.inputs.end()) continue;
      const Node& n = b.nodes[x.defined];
      if (is_alias(n)) continue;
      // A loop reads its lists, and its blocks what they see, after it has begun to write.
      bool inside_too = !n.blocks.empty() && n.target != "if";
      bool free = true;
      for (uint32_t v : tenants_[given[k]])
        free = free && !used_after(b, x.defined, v) &&
               !(inside_too && (used_within(n, v) || uses(n.args[1], v)));
      if (free) settle(r.index, given[k]);
    }
  }
  bool uses(const Arg& a, uint32_t v) const {
    for (const Arg& item : a.items)
      if (uses(item, v)) return true;
    Arg r = root_of(a);
    return r.is_value() && r.index == v;
  }
  bool used_within(const Node& n, uint32_t v) const {
    for (const Block& b : n.blocks)
      if (used_after(b, static_cast<size_t>(-1), v)) return true;
    return false;
  }
  bool used_after(const Block& b, size_t at, uint32_t v) const {
    for (size_t i = at + 1; i < b.nodes.size(); ++i) {
      for (const Arg& a : b.nodes[i].args)
        if (uses(a, v)) return true;
      if (used_within(b.nodes[i], v)) return true;
    }
    for (const Arg& a : b.outputs)
      if (uses(a, v)) return true;
    return false;
  }

  const Function& f_;
  Code& code_;
  std::vector<Facts> facts_;
  std::vector<int32_t> registers_;
  uint32_t count_ = 0;
  int32_t line_ = 0;

 private:
  std::vector<size_t> places_;
  std::vector<std::vector<uint32_t>> tenants_;  // values that have lain in a register
  std::unordered_map<std::string, Register> strings_;
};

}  // namespace flambeau::script
