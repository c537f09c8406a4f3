// One run of a program, see program.h.
#include "autograd/inline_vector.h"
#include "autograd/node.h"
#include "gen/ops.h"
#include "profiler/events.h"
#include "runtime/program.h"

namespace flambeau::runtime {

class Run {
 public:
  Run(const Program& p, std::span<Input> inputs, Numbers& numbers) : p_(p), numbers_(numbers) {
    if (!p.sizes_.empty()) p.sizes_.evaluate(inputs, numbers);
    pointers_.resize(p.buffers_.size(), nullptr);
    memory_.reserve(static_cast<uint32_t>(p.buffers_.size()));
    for (size_t i = 0; i < p.buffers_.size(); ++i) memory_.emplace_back();
    for (size_t i = 0; i < inputs.size(); ++i) take(inputs[i], i);
  }

  void step(const Program::Step& s) {
    switch (s.kind) {
      case Program::Step::Allocate:
        allocate(s.buffer);
        break;
      case Program::Step::Take:
        hand_on(s.other, s.buffer);
        break;
      case Program::Step::Free:
        drop(s.buffer);
        break;
      case Program::Step::Nest:
        p_.run_nest(s, pointers_.data(), numbers_.data());
        break;
      case Program::Step::Entry:
        call(p_.calls_[static_cast<size_t>(s.number)]);
        break;
      case Program::Step::Change:
        change(memory_[s.buffer].tensor());
        break;
    }
  }

  // The tensor of a view of a buffer.
  Tensor tensor(const Program::View& v) {
    if (v.buffer == Program::kNone) return {};
    Memory& m = memory_[v.buffer];
    if (v.whole && !m.storage && m.tensor().defined()) return m.tensor();
    const Geometry& g = v.geometry.in(numbers_, room_);
    if (m.storage) return tensor_over(g, m.storage, 0);
    const Tensor& whole = m.tensor();
    FB_CHECK(whole.defined(), "a program: buffer ", v.buffer, " is read where it is not there");
    if (!g.offset && g.is_of(whole)) return whole;
    int64_t first = whole.offset() + g.offset;
    if (g.dtype != whole.dtype()) return alias_as(whole, g.dtype, g.sizes, g.strides, first);
    return alias(whole, g.sizes, g.strides, first);
  }

 private:
  // One of both: memory that is the program's, a tensor that came from elsewhere.
  struct Memory {
    Ref<Storage> storage;
    Value value{Tensor()};  // a tensor, which entries read where it lies
    const Tensor& tensor() const { return value.get<Tensor>(); }  // there is always one
  };

  // The tensor of a view where it lies; null if it has to be made.
  const Value* lying(const Program::View& v) {
    if (v.buffer == Program::kNone) return nullptr;
    const Memory& m = memory_[v.buffer];
    if (m.storage || !m.tensor().defined()) return nullptr;
    if (v.whole) return &m.value;
    const Geometry& g = v.geometry.in(numbers_, room_);
    return !g.offset && g.is_of(m.tensor()) ? &m.value : nullptr;
  }

  void take(Input& x, size_t i) {
    uint32_t b = p_.inputs_[i];
    if (b == Program::kNone) {
      FB_CHECK_TYPE(!x.tensor.defined(), "compiled function: expected a number as input ", i,
                    ", got a tensor");
      return;
    }
    FB_CHECK_TYPE(x.tensor.defined(), "compiled function: expected a tensor as input ", i,
                  ", got a number");
    const Geometry& g = p_.buffers_[b].geometry.in(numbers_, room_);
    const Tensor& t = x.tensor;
    FB_CHECK(g.is_laid_out_as(t), "compiled function: expected input ", i, " of ", g,
             ", got shape ", t.sizes(), ", strides ", t.strides(), ", dtype ",
             dtype_name(t.dtype()));
    FB_CHECK(t.device().type() == DeviceType::CPU, "compiled function: expected input ", i,
             " on the cpu, got one on ", t.device());
    FB_CHECK_IMPL(!t.has_flag(kWrapper) && !is_dual(t), "compiled function: input ", i,
                  " is batched, or has a tangent; transform the function before it is compiled");
    pointers_[b] = t.data_ptr();
    memory_[b].value = std::move(x.tensor);
  }

  void allocate(uint32_t b) {
    const Program::Buffer& buffer = p_.buffers_[b];
    int64_t extent = buffer.extent;
    if (extent < 0) extent = buffer.geometry.in(numbers_, room_).extent();
    memory_[b].storage = Storage::make(extent * itemsize(buffer.geometry.dtype));
    pointers_[b] = memory_[b].storage->data();
  }

  // Memory of a buffer that nothing needs any more, for another of the same size.
  void hand_on(uint32_t from, uint32_t to) {
    Memory& m = memory_[from];
    if (!m.storage || m.storage->use_count() != 1) {  // an entry kept it
      drop(from);
      allocate(to);
      return;
    }
    memory_[to].storage = std::move(m.storage);
    pointers_[to] = std::exchange(pointers_[from], nullptr);
  }

  void drop(uint32_t b) {
    Memory& m = memory_[b];
    m.storage = {};
    m.value.get<Tensor>() = Tensor();
    pointers_[b] = nullptr;
  }

  // Before a nest writes to an input: what an operation in place does.
  static void change(const Tensor& x) {
    check_inplace(x, false, "compiled function");
    x.bump_version();
  }

  void call(const Program::Call& c) {
    SmallVector<const Value*, 16> args(c.places.begin(), c.places.end());
    InlineVector<Value, 6> varying;  // what args points to stays where it is
    varying.reserve(static_cast<uint32_t>(c.arguments.size()));
    for (const Program::Argument& a : c.arguments) {
      bool plain = a.kind == Program::Argument::OneView && c.changed.empty();
      const Value* found = plain ? lying(a.views[0]) : nullptr;
      if (!found) found = &varying.emplace_back(value(a, c.op->params[a.parameter]));
      args[a.parameter] = found;
    }
    for (const Program::Call::Changed& x : c.changed) {
      Tensor& t = varying[x.argument].get<Tensor>();
      if (!x.last_use || !is_ours(t)) t = copied(t);
    }
    if (c.direct) {
      Memory& m = memory_[c.outs[0]];
      c.function(*c.op, args.data(), &m.value);
      const Geometry& g = p_.buffers_[c.outs[0]].geometry.in(numbers_, room_);
      Tensor& made = m.value.get<Tensor>();
      if (!made.defined() || !g.is_of(made)) [[unlikely]]
        lay_out(made, g, c.op->uid);
      pointers_[c.outs[0]] = made.data_ptr();
      return;
    }
    InlineVector<Value, 4> results;
    for (size_t i = 0; i < c.op->returns.size(); ++i) results.emplace_back();
    c.function(*c.op, args.data(), results.begin());
    if (c.outs.empty()) return;  // the argument has changed
    size_t given = 0;
    auto define_next = [&](Tensor&& t) {
      if (given < c.outs.size()) define(c.outs[given], std::move(t), c.op->uid);
      ++given;
    };
    if (c.spread)
      for (Tensor& t : results[0].get<Tensors>()) define_next(std::move(t));
    else
      for (Value& v : results) define_next(std::move(v.get<Tensor>()));
    if (c.gives_changed)
      for (const Program::Call::Changed& x : c.changed)
        define_next(std::move(varying[x.argument].get<Tensor>()));
    FB_CHECK(given == c.outs.size(), "compiled function: ", c.op->uid, " gave ", given,
             " results, expected ", c.outs.size());
  }

  // A result has the geometry that the program was made for; if it has not, a view or a copy does.
  void define(uint32_t b, Tensor&& result, const char* op) {
    const Geometry& g = p_.buffers_[b].geometry.in(numbers_, room_);
    if (!result.defined() || !g.is_of(result)) [[unlikely]]
      lay_out(result, g, op);
    pointers_[b] = result.data_ptr();
    memory_[b].value = std::move(result);
  }

  static void lay_out(Tensor& result, const Geometry& g, const char* op) {
    FB_CHECK(result.defined() && result.dtype() == g.dtype && result.sizes() == g.sizes,
             "compiled function: expected ", op, " to give ", g, ", got ",
             result.defined()
                 ? concat("shape ", result.sizes(), ", dtype ", dtype_name(result.dtype()))
                 : "nothing");
    if (g.is_laid_out_as(result)) {
      result = alias(result, g.sizes, g.strides, result.offset());
      return;
    }
    Tensor laid = empty_strided(g.sizes, g.strides, g.dtype);
    ops::copy_(laid, result);
    result = std::move(laid);
  }

  // Does nothing but the argument and its buffer hold this memory?
  static bool is_ours(const Tensor& x) {
    uint32_t tensors = x->use_count(), storages = x.storage()->use_count();
    return (tensors == 1 && storages == 2) || (tensors == 2 && storages == 1);
  }

  static Tensor copied(const Tensor& x) {
    Tensor made = empty_strided(x.sizes(), x.strides(), x.dtype());
    return ops::copy_(made, x);
  }

  Value value(const Program::Argument& a, const ParamDesc& p);
  Value views(const Program::Argument& a, const ParamDesc& p);
  Value number(int64_t n, const ParamDesc& p);

  const Program& p_;
  Numbers& numbers_;
  SmallVector<void*, 16> pointers_;
  InlineVector<Memory, 8> memory_;
  Geometry room_;
};

Value Run::value(const Program::Argument& a, const ParamDesc& p) {
  switch (a.kind) {
    case Program::Argument::OneView:
      return tensor(a.views[0]);
    case Program::Argument::Views:
      return views(a, p);
    case Program::Argument::Integer:
      return number(numbers_[static_cast<size_t>(a.number)], p);
    case Program::Argument::Integers:
      return a.integers.in(numbers_, room_).sizes;
    default: {
      double x = a.formula[0].evaluate({numbers_.data(), numbers_.size()});
      if (p.type.base == TypeBase::Tensor) return wrapped_number(x);
      return p.type.base == TypeBase::Number ? Value(Scalar(x)) : Value(x);
    }
  }
}

Value Run::views(const Program::Argument& a, const ParamDesc& p) {
  if (p.type.base != TypeBase::OptTensors) {
    Tensors out;
    for (const Program::View& v : a.views) out.push_back(tensor(v));
    return out;
  }
  OptTensors out;
  for (const Program::View& v : a.views) {
    Tensor t = tensor(v);
    out.push_back(t.defined() ? OptTensor(std::move(t)) : std::nullopt);
  }
  return out;
}

Value Run::number(int64_t n, const ParamDesc& p) {
  switch (p.type.base) {
    case TypeBase::Tensor:
      return wrapped_number(Scalar(n));
    case TypeBase::Number:
      return Scalar(n);
    case TypeBase::Float:
      return static_cast<double>(n);
    case TypeBase::Ints:
      return Ints{n};
    default:
      return n;
  }
}

// An event of the profile that is open, if one is.
static profiler::Place event_of(profiler::Kind kind, std::string_view name) {
  return profiler::is_open() ? profiler::open(kind, name) : profiler::Place{};
}

Tensors Program::run(std::span<Input> inputs, Numbers& numbers) const {
  FB_CHECK_TYPE(inputs.size() == arity(), "compiled function: expected ", arity(), " inputs, got ",
                inputs.size());
  std::vector<Input> all;
  if (!attached_.empty()) {
    all.assign(std::make_move_iterator(inputs.begin()), std::make_move_iterator(inputs.end()));
    all.insert(all.end(), attached_.begin(), attached_.end());
    inputs = all;
  }
  NoGradGuard no_grad;
  NoAutocastGuard no_autocast;
  CpuFactories on_cpu;
  profiler::Scope event(event_of(profiler::Kind::Program, "CompiledFunction"));
  Run run(*this, inputs, numbers);
  for (const Step& s : steps_) {
    if (profiler::is_open() && s.kind == Step::Nest) [[unlikely]] {
      // The number is the nest's in the generated source.
      profiler::Scope nest(event_of(profiler::Kind::Step, concat("compiled::nest_", s.number)));
      run.step(s);
    } else {
      run.step(s);
    }
  }
  Tensors out;
  out.reserve(results_.size());
  for (const View& v : results_) out.push_back(run.tensor(v));
  return out;
}

}  // namespace flambeau::runtime
