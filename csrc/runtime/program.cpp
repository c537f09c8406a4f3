// See program.h. Reads the description; run.cpp runs it.
#include "runtime/program.h"

#include <algorithm>

namespace flambeau::runtime {

Program::Program(const Tree& spec, std::vector<Input> attached, LibraryFunction nests)
    : nests_(std::move(nests)), sizes_(spec[0]), attached_(std::move(attached)) {
  for (const Tree& b : spec[1].items()) {
    Buffer made{Geometry(b, sizes_.count())};
    if (made.geometry.fixed()) made.extent = made.geometry.extent();
    buffers_.push_back(std::move(made));
  }
  changed_.resize(buffers_.size());
  for (const Tree& b : spec[2].items()) inputs_.push_back(b.is_none() ? kNone : buffer(b));
  FB_CHECK_VALUE(attached_.size() <= inputs_.size(), "a program: more tensors than inputs");
  for (const Tree& s : spec[3].items()) steps_.push_back(step(s));
  for (const Tree& v : spec[4].items()) results_.push_back(view(v));
}

uint32_t Program::buffer(const Tree& index) const {
  return static_cast<uint32_t>(index.integer_below(buffers_.size(), "buffer"));
}

Program::View Program::view(const Tree& spec) const {  // (buffer, geometry), or None
  if (spec.is_none()) return {kNone, {}};
  View v{buffer(spec[0]), Geometry(spec[1], sizes_.count())};
  const Geometry& b = buffers_[v.buffer].geometry;
  const bool given = std::find(inputs_.begin(), inputs_.end(), v.buffer) != inputs_.end();
  v.whole = !given && b.fixed() && v.geometry.fixed() && !v.geometry.offset && !b.offset &&
            b.dtype == v.geometry.dtype && b.sizes == v.geometry.sizes &&
            b.strides == v.geometry.strides;
  return v;
}

// (kind, buffer, other), (kind, nest, checks) or (kind, ...) of a call
Program::Step Program::step(const Tree& spec) {
  Step s{static_cast<StepKind>(spec[0].integer_below(kStepKinds, "kind of step"))};
  switch (s.kind) {
    case Step::Nest:
      FB_CHECK_VALUE(nests_, "a program: a nest, but no library");
      s.number = spec[1].integer();
      for (const Tree& check : spec[2].items())  // (error is an IndexError, text)
        s.checks.push_back(
            {check[0].truth() ? ErrorKind::Index : ErrorKind::Runtime, check[1].text()});
      break;
    case Step::Entry:
      s.number = static_cast<int64_t>(calls_.size());
      calls_.push_back(call(spec));
      if (const Call& c = calls_.back(); c.outs.empty()) changed_[changed_by(c)] = true;
      break;
    case Step::Take:
      s.other = buffer(spec[2]);
      [[fallthrough]];
    default:
      s.buffer = buffer(spec[1]);
      if (s.kind == Step::Change) changed_[s.buffer] = true;
  }
  return s;
}

void Program::raise(const Step& s, const Fault& fault) {
  const Check& check = s.checks.at(static_cast<size_t>(fault[0] - 1));
  std::string text = check.text;
  const std::pair<std::string_view, int64_t> found[] = {{"{index}", fault[1]},
                                                        {"{size}", fault[2]}};
  for (auto [name, value] : found)
    if (size_t at = text.find(name); at != std::string::npos)
      text.replace(at, name.size(), std::to_string(value));
  fail(check.kind, text);
}

// The buffer that a call without results changes.
uint32_t Program::changed_by(const Call& c) {
  FB_CHECK_VALUE(!c.arguments.empty() && c.arguments[0].parameter == 0 &&
                     c.arguments[0].kind == Argument::OneView &&
                     c.arguments[0].views[0].buffer != kNone &&
                     (c.op->mutates || c.function != c.op->call),
                 "a program: ", c.op->uid, " gives nothing");
  return c.arguments[0].views[0].buffer;
}

// (kind, uid, arguments, outs, parameters that it changes, are these results too, is the result a
// list, parameters that it changes whose memory nothing needs afterwards)
Program::Call Program::call(const Tree& spec) const {
  const auto [op, function] = find_callee(spec[1].text());
  FB_CHECK_VALUE(op, "a program: the table has no entry ", spec[1].text());
  Call c;
  c.op = op;
  c.function = function;
  const Tree& args = spec[2];
  const size_t count = args.size();
  FB_CHECK_TYPE(count == c.op->params.size(), "a program: ", c.op->uid, " has ",
                c.op->params.size(), " parameters, got ", count);
  for (size_t i = 0; i < count; ++i) {
    Value constant;
    Argument a = argument(*c.op, i, args[i], constant);
    c.constants.push_back(std::move(constant));
    if (a.kind != Argument::Constant) c.arguments.push_back(std::move(a));
  }
  for (const Tree& b : spec[3].items()) c.outs.push_back(buffer(b));
  for (const Tree& i : spec[4].items()) {
    const auto k = static_cast<uint32_t>(i.integer_below(count, "parameter"));
    auto at = std::find_if(c.arguments.begin(), c.arguments.end(),
                           [&](const Argument& a) { return a.parameter == k; });
    FB_CHECK_VALUE(at != c.arguments.end() && at->kind == Argument::OneView,
                   "a program: ", c.op->uid, " changes parameter ", k, ", which is no buffer");
    c.changed.push_back({k, static_cast<uint32_t>(at - c.arguments.begin()), false});
  }
  if (spec.size() > 7)
    for (const Tree& i : spec[7].items())
      for (Call::Changed& x : c.changed) x.last_use |= x.parameter == i.integer();
  for (const Value& v : c.constants) c.places.push_back(&v);
  c.gives_changed = spec[5].truth();
  c.spread = spec[6].truth();
  auto reads = [&](uint32_t b) {
    for (const Argument& a : c.arguments)
      for (const View& v : a.views)
        if (v.buffer == b) return true;
    return false;
  };
  c.direct = c.op->returns.size() == 1 && c.op->returns[0].base == TypeBase::Tensor && !c.spread &&
             !c.gives_changed && c.outs.size() == 1 && !reads(c.outs[0]);
  return c;
}

// (0, constant), (1, view), (2, views), (3, number), (4, numbers), (5, formula)
Program::Argument Program::argument(const OpDesc& op, size_t i, const Tree& spec,
                                    Value& constant) const {
  const int64_t kind = spec[0].integer_below(kArgumentKinds, "kind of argument");
  Argument a{static_cast<ArgumentKind>(kind), static_cast<uint32_t>(i), {}, {}, 0, {}};
  const Tree& value = spec[1];
  switch (a.kind) {
    case Argument::Constant:
      constant = value_of(op.params[i], value);
      break;
    case Argument::OneView:
      a.views.push_back(view(value));
      break;
    case Argument::Views:
      for (const Tree& v : value.items()) a.views.push_back(view(v));
      break;
    case Argument::Integer:
      a.number = value.integer_below(sizes_.count(), "number");
      break;
    case Argument::Integers:
      a.integers = Geometry(value, sizes_.count());
      break;
    case Argument::Float:
      a.formula.emplace_back(value);
      FB_CHECK_VALUE(a.formula[0].highest() < static_cast<int64_t>(sizes_.count()),
                     "a program: there is no number ", a.formula[0].highest());
      break;
  }
  return a;
}

}  // namespace flambeau::runtime
