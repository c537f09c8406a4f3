#include "script/lower.h"

#include <unordered_map>

#include "core/error.h"
#include "script/constants.h"
#include "script/lowerer.h"

namespace flambeau::script {

void Lowerer::run() {
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

void Lowerer::block(const Block& b, int depth, const std::vector<Register>& given) {
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

namespace {

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
