#include "script/run.h"

#include <array>
#include <exception>
#include <memory>
#include <utility>

#include "core/error.h"
#include "core/pylist.h"
#include "script/core_ops.h"
#include "script/future.h"

namespace flambeau::script {

namespace {

using Tag = ValueTag;

// Registers of the calls of a thread: chunks, in which those of one call lie together. What is free
// is None throughout, so that a call begins without writing.
class Stack {
 public:
  Value* take(size_t n) {
    if (static_cast<size_t>(end_ - top_) < n) [[unlikely]]
      grow(n);
    return std::exchange(top_, top_ + n);
  }
  void give_back(Value* registers, size_t n) noexcept {
    for (size_t i = 0; i < n; ++i) registers[i].clear();
    top_ = registers;
    if (registers == begin_ && used_ > 1) [[unlikely]]
      go_back();
  }
  int depth = 0;
  uint32_t turns = 0;  // until the next poll
  bool wake = false;   // a task is queued that no thread knows of yet
  std::vector<Passed> passed;

 private:
  struct Chunk {
    std::unique_ptr<Value[]> values;
    size_t size;
    Value* outer;  // the top of the chunk before, while this one is used
  };
  [[gnu::noinline]] void grow(size_t n) {
    if (used_ == chunks_.size() || chunks_[used_].size < n) {
      size_t size = std::max<size_t>(4096, n);
      chunks_.resize(used_);
      chunks_.push_back({std::make_unique<Value[]>(size), size, nullptr});
    }
    Chunk& c = chunks_[used_++];
    c.outer = top_;
    begin_ = top_ = c.values.get();
    end_ = begin_ + c.size;
  }
  [[gnu::noinline]] void go_back() noexcept {
    top_ = chunks_[--used_].outer;
    begin_ = chunks_[used_ - 1].values.get();
    end_ = begin_ + chunks_[used_ - 1].size;
  }

  Value *begin_ = nullptr, *top_ = nullptr, *end_ = nullptr;
  size_t used_ = 0;
  std::vector<Chunk> chunks_;
};
thread_local Stack thread_stack;
constexpr uint32_t kPoll = 1 << 17;

// As deep as Python goes.
constexpr int kDepth = 1000;

Value* open_frame(Stack& stack, const Code& code) {
  if (stack.depth >= kDepth) [[unlikely]]
    raise("RecursionError", "maximum recursion depth exceeded");
  Value* registers = stack.take(code.registers);
  ++stack.depth;
  return registers;
}
void close_frame(Stack& stack, const Code& code, Value* registers) noexcept {
  --stack.depth;
  stack.give_back(registers, code.registers);
}
// The registers of a call in a call.
struct Frame {
  Frame(Stack& s, const Code& c) : stack(s), code(c), registers(open_frame(s, c)) {}
  ~Frame() { close_frame(stack, code, registers); }
  Frame(const Frame&) = delete;
  Stack& stack;
  const Code& code;
  Value* const registers;
};

void execute(Stack& stack, const Code& code, Value* registers, Value* result);

// A context that was entered, and how it is left.
struct Entered {
  Context kind;
  bool grad = true;
  Value object;
  const Code* leave = nullptr;
};

void enter(std::vector<Entered>& open, const Instruction& k, const Value* const* args, size_t n,
           Host* host) {
  auto kind = static_cast<Context>(k.a);
  Entered e{kind, modes.grad, {}, nullptr};
  if (kind == Context::Object) {
    e.object = *args[0];
    e.leave = k.code;
  } else if (kind == Context::Host) {
    e.object = host->enter(static_cast<uint32_t>(k.number), args, n);
  } else if (kind != Context::Nothing) {
    modes.grad = kind == Context::SetGrad ? args[0]->get<bool>() : kind == Context::Grad;
  }
  open.push_back(std::move(e));
}

void leave(Stack& stack, std::vector<Entered>& open, Host* host) {
  Entered e = std::move(open.back());
  open.pop_back();
  if (e.kind == Context::Host) return host->leave(e.object);
  if (e.kind != Context::Object) {
    modes.grad = e.grad;
    return;
  }
  Frame frame(stack, *e.leave);
  frame.registers[0] = e.object;
  Value nothing;
  execute(stack, *e.leave, frame.registers, &nothing);
}

bool is_nothing(const Value& v) noexcept {
  if (const Tensor* t = v.get_if<Tensor>()) return !t->defined();
  return v.is_none();
}
[[gnu::noinline]] void refuse_nothing(const OpDesc& op, const Value* const* args) {
  for (size_t j = 0; j < op.params.size(); ++j) {
    const ParamDesc& p = op.params[j];
    FB_CHECK_TYPE(p.type.base != TypeBase::Tensor || p.type.optional || !is_nothing(*args[j]),
                  op.name, "(): argument '", p.name, "' must be Tensor, not None");
  }
}

[[gnu::noinline, gnu::cold]] void ask(Stack& stack) {
  stack.turns = 0;
  FB_CHECK(!stop_runs.load(std::memory_order_relaxed), "the program ends");
  if (poll) poll();
}

[[gnu::noinline, gnu::cold]] void wake_now(Stack& stack) {
  stack.wake = false;
  wake();
}

Instance& holder(const Value& v, const AttrRef& a) {
  if (auto* o = box_of<Instance>(v)) [[likely]]
    return *o;
  fail(ErrorKind::Type, "a ", kind_name(v), " has no attribute ", a.name);
}

// Whole-number arithmetic where a value is not the whole number that its type says.
[[gnu::noinline, gnu::cold]] void otherwise(CoreFunction f, const Value& a, const Value& b,
                                            Value* result) {
  const Value* args[] = {&a, &b};
  f(args, 2, result);
}
[[gnu::noinline, gnu::cold]] bool compared(Op op, const Value& a, const Value& b) {
  switch (op) {
    case Op::EqInt:
    case Op::EqFloat:
      return equal(a, b);
    case Op::NeInt:
      return !equal(a, b);
    case Op::LtInt:
    case Op::LtFloat:
      return less(a, b);
    default:
      return less(a, b) || equal(a, b);
  }
}

[[gnu::noinline]] void begin_range(Value* state, const Value* const* args) {
  int64_t start = args[0]->get<int64_t>(), stop = args[1]->get<int64_t>(),
          step = args[2]->get<int64_t>();
  FB_CHECK_VALUE(step != 0, "range() arg 3 must not be zero");
  uint64_t count = 0;
  if (step > 0 && start < stop)
    count = (static_cast<uint64_t>(stop) - static_cast<uint64_t>(start) - 1) /
                static_cast<uint64_t>(step) +
            1;
  else if (step < 0 && start > stop)
    count = (static_cast<uint64_t>(start) - static_cast<uint64_t>(stop) - 1) /
                (~static_cast<uint64_t>(step) + 1) +
            1;
  state[0].put(start);
  state[1].put(step);
  state[2].put(static_cast<int64_t>(count));  // more than fit are never reached
}

void execute(Stack& stack, const Code& code, Value* registers, Value* result) {
  const Value* const bases[2] = {registers, code.constants.data()};
  const Instruction* const first = code.instructions.data();
  const Register* const operands = code.operands.data();
  Host* const host = code.program->host.get();
  const Instruction* k = first;
  std::vector<Entered> open;
  const Value* args[256];

  auto at = [&](Register r) -> const Value& { return bases[r >> 15][r & 0x7FFF]; };
  auto operand = [&](Register r) -> const Value& { return bases[r >> 15][r & kRegisters]; };
  // The arguments of a call, gathered.
  auto gather = [&](const Instruction& i) {
    const Register* from = operands + i.operands + i.results;
    for (size_t j = 0; j < i.count; ++j) args[j] = &operand(from[j]);
  };
  // The same; true where one of them is nothing, which kernels take no tensor to be.
  auto gather_some = [&](const Instruction& i) {
    const Register* from = operands + i.operands + i.results;
    bool nothing = false;
    for (size_t j = 0; j < i.count; ++j) {
      args[j] = &operand(from[j]);
      nothing |= is_nothing(*args[j]);
    }
    return nothing;
  };
  auto drop = [&](const Instruction& i) {
    const Register* from = operands + i.operands + i.results;
    for (size_t j = 0; j < i.count; ++j)
      if ((from[j] & (kConstant | kLast)) == kLast) registers[from[j] & kRegisters].clear();
  };
  // Results of calls: one where it belongs, several by way of others.
  auto with_results = [&](const Instruction& i, auto f) {
    const Register* to = operands + i.operands;
    if (i.results == 1) return f(&registers[to[0]]);
    std::array<Value, 8> few;
    Values many;
    Value* made = few.data();
    if (i.results > few.size()) many.resize(i.results), made = many.data();
    f(made);
    for (size_t j = 0; j < i.results; ++j) registers[to[j]] = std::move(made[j]);
  };

  try {
    for (;;) {
      const Instruction& i = *k;
      switch (i.op) {
        case Op::Entry:
          if (stack.wake) [[unlikely]]
            wake_now(stack);
          if (gather_some(i)) [[unlikely]]
            refuse_nothing(*i.callee->op, args);
          if (i.results == 1) [[likely]]
            i.callee->call(*i.callee->op, args, &registers[operands[i.operands]]);
          else
            with_results(i, [&](Value* made) { i.callee->call(*i.callee->op, args, made); });
          if (i.drops) drop(i);
          ++k;
          break;
        case Op::Core:
          gather(i);
          if (i.results == 1) [[likely]]
            i.core(args, i.count, &registers[operands[i.operands]]);
          else
            with_results(i, [&](Value* made) { i.core(args, i.count, made); });
          if (i.drops) drop(i);
          ++k;
          break;
        case Op::Host:
          if (stack.wake) [[unlikely]]
            wake_now(stack);
          gather(i);
          with_results(i, [&](Value* made) {
            host->call(static_cast<uint32_t>(i.number), args, i.count, made);
          });
          if (i.drops) drop(i);
          ++k;
          break;
        case Op::Call: {
          if (stack.wake) [[unlikely]]
            wake_now(stack);
          const Register* from = operands + i.operands + 1;
          Frame frame(stack, *i.code);
          for (size_t j = 0; j < i.count; ++j) {
            if ((from[j] & (kConstant | kLast)) == kLast)
              frame.registers[j] = std::move(registers[from[j] & kRegisters]);
            else
              frame.registers[j] = operand(from[j]);
          }
          execute(stack, *i.code, frame.registers, &registers[operands[i.operands]]);
          ++k;
          break;
        }
        case Op::Tuple: {
          const Register* from = operands + i.operands + 1;
          Values items;
          items.reserve(i.count);
          for (size_t j = 0; j < i.count; ++j) items.push_back(operand(from[j]));
          if (i.drops) drop(i);
          registers[operands[i.operands]] = make_box<Tuple>(std::move(items));
          ++k;
          break;
        }
        case Op::Fork: {
          if (stack.wake) [[unlikely]]
            wake_now(stack);
          const Register* from = operands + i.operands + 1;
          Values given;
          given.reserve(i.count);
          for (size_t j = 0; j < i.count; ++j) given.push_back(operand(from[j]));
          auto task = Ref<Task>::adopt(
              new Task(code.program->shared_from_this(), i.a ? nullptr : i.code,
                         i.a ? static_cast<uint32_t>(i.number) : 0, std::move(given)));
          if (i.drops) drop(i);
          stack.wake = fork(task);
          registers[operands[i.operands]] = Value(Ref<ValueObject>(std::move(task)));
          ++k;
          break;
        }
        case Op::Wait:
        case Op::Done: {
          const Register* o = operands + i.operands;
          auto* task = box_of<Future>(operand(o[1]));
          if (!task) wrong_value("a Future", operand(o[1]));
          Value x = i.op == Op::Wait ? task->wait() : Value(task->done());
          if (i.drops) drop(i);
          registers[o[0]] = std::move(x);
          ++k;
          break;
        }
        case Op::GetAttr: {
          const Register* o = operands + i.operands;
          Value x = holder(operand(o[1]), *i.attribute).get(*i.attribute);
          if (i.drops) drop(i);
          registers[o[0]] = std::move(x);
          ++k;
          break;
        }
        case Op::SetAttr: {
          const Register* o = operands + i.operands;
          holder(operand(o[0]), *i.attribute).set(*i.attribute, operand(o[1]));
          if (i.drops) drop(i);
          ++k;
          break;
        }
        case Op::Enter:
          gather(i);
          enter(open, i, args, i.count, host);
          ++k;
          break;
        case Op::Leave:
          leave(stack, open, host);
          ++k;
          break;
        case Op::Return:
          if (i.a & kConstant)
            *result = at(i.a);
          else
            *result = std::move(registers[i.a]);
          return;
        case Op::Raise: {
          const Value& message = at(i.a);
          raise(*i.text, message.is<std::string>() ? message.get<std::string>() : to_text(message));
        }
        case Op::Jump:
          if (first + i.target <= k && ++stack.turns >= kPoll) [[unlikely]]
            ask(stack);
          k = first + i.target;
          break;
        case Op::Unless: {
          const Value& test = at(i.a);
          bool on = test.is<bool>() ? *test.get_if<bool>() : truth(test);
          k = on ? k + 1 : first + i.target;
          break;
        }
        case Op::When: {
          const Value& test = at(i.a);
          bool on = test.is<bool>() ? *test.get_if<bool>() : truth(test);
          k = on ? first + i.target : k + 1;
          break;
        }
        case Op::Append: {
          const Register* o = operands + i.operands;
          const Value &list = operand(o[0]), &x = operand(o[1]);
          auto* xs = list.shared_if<Ints>();
          const auto* item = x.get_if<int64_t>();
          if (xs && item) [[likely]]
            xs->push_back(*item);
          else
            list_insert(list, list_size(list), x);
          if (i.drops) drop(i);
          ++k;
          break;
        }
        case Op::Range:
          gather(i);
          begin_range(registers + i.a, args);
          ++k;
          break;
        case Op::Turn: {
          Value* state = registers + i.b;
          auto* left = state[2].get_if<int64_t>();
          if (*left == 0) {
            ++k;
            break;
          }
          if (++stack.turns >= kPoll) [[unlikely]]
            ask(stack);
          --*left;
          auto* next = state[0].get_if<int64_t>();
          registers[i.a].put(*next);
          *next = static_cast<int64_t>(static_cast<uint64_t>(*next) +
                                       static_cast<uint64_t>(*state[1].get_if<int64_t>()));
          k = first + i.target;
          break;
        }
        case Op::Begin: {
          const Value& list = at(i.b);
          registers[i.a].put(list.is_none() ? int64_t{0} : list_size(list));
          ++k;
          break;
        }
        case Op::Next: {
          int64_t* index = registers[i.c].get_if<int64_t>();
          const Value& list = at(i.b);
          if (*index >= list_size(list)) {
            k = first + i.number;
            break;
          }
          registers[i.a] = list_item(list, *index);
          *index += i.count;
          ++k;
          break;
        }
        case Op::NextBack: {
          int64_t* index = registers[i.c].get_if<int64_t>();
          const Value& list = at(i.b);
          if (*index <= 0 || *index > list_size(list)) {
            *index = 0;
            k = first + i.number;
            break;
          }
          registers[i.a] = list_item(list, --*index);
          ++k;
          break;
        }
        case Op::Move:
          registers[i.a] = at(i.b);
          ++k;
          break;
        case Op::Take:
          registers[i.a] = std::move(registers[i.b]);
          ++k;
          break;
        case Op::Drop:
          registers[i.a].clear();
          ++k;
          break;
        case Op::Truth:
          registers[i.a].put(truth(at(i.b)));
          ++k;
          break;
        case Op::Not:
          registers[i.a].put(!truth(at(i.b)));
          ++k;
          break;
        case Op::IsNone:
          registers[i.a].put(at(i.b).is_none());
          ++k;
          break;

#define ARITHMETIC(NAME, TYPE, EXPRESSION, FALLBACK)                     \
  case Op::NAME: {                                                       \
    const Value &p = at(i.b), &q = at(i.c);                              \
    if (const auto *x = p.get_if<TYPE>(), *y = q.get_if<TYPE>(); x && y) \
      [[likely]]                                                         \
      registers[i.a].put(EXPRESSION);                                    \
    else                                                                 \
      otherwise(FALLBACK, p, q, &registers[i.a]);                        \
    ++k;                                                                 \
    break;                                                               \
  }
          ARITHMETIC(AddInt, int64_t, py::plus(*x, *y), core_add)
          ARITHMETIC(SubInt, int64_t, py::minus(*x, *y), core_sub)
          ARITHMETIC(MulInt, int64_t, py::times(*x, *y), core_mul)
          ARITHMETIC(AndInt, int64_t, *x & *y, core_and)
          ARITHMETIC(OrInt, int64_t, *x | *y, core_or)
          ARITHMETIC(XorInt, int64_t, *x ^ *y, core_xor)
          ARITHMETIC(AddFloat, double, *x + *y, core_add)
          ARITHMETIC(SubFloat, double, *x - *y, core_sub)
          ARITHMETIC(MulFloat, double, *x * *y, core_mul)
#undef ARITHMETIC
        case Op::FloorDivInt:
        case Op::ModInt: {
          const Value &p = at(i.b), &q = at(i.c);
          const auto *x = p.get_if<int64_t>(), *y = q.get_if<int64_t>();
          if (x && y && *y > 0) [[likely]] {
            int64_t d = *x / *y, m = *x - d * *y;
            if (m < 0) --d, m += *y;
            registers[i.a].put(i.op == Op::ModInt ? m : d);
          } else {
            otherwise(i.op == Op::ModInt ? core_mod : core_floordiv, p, q, &registers[i.a]);
          }
          ++k;
          break;
        }

#define COMPARISON(NAME, TYPE, OPERATOR)                                 \
  case Op::NAME: {                                                       \
    const Value &p = at(i.b), &q = at(i.c);                              \
    if (const auto *x = p.get_if<TYPE>(), *y = q.get_if<TYPE>(); x && y) \
      [[likely]]                                                         \
      registers[i.a].put(*x OPERATOR * y);                               \
    else                                                                 \
      registers[i.a].put(compared(i.op, p, q));                          \
    ++k;                                                                 \
    break;                                                               \
  }
          COMPARISON(EqInt, int64_t, ==)
          COMPARISON(NeInt, int64_t, !=)
          COMPARISON(LtInt, int64_t, <)
          COMPARISON(LeInt, int64_t, <=)
          COMPARISON(EqFloat, double, ==)
          COMPARISON(LtFloat, double, <)
          COMPARISON(LeFloat, double, <=)
#undef COMPARISON

#define UNLESS(NAME, OPERATOR)                                                  \
  case Op::Unless##NAME: {                                                      \
    const Value &p = at(i.a), &q = at(i.b);                                     \
    bool on;                                                                    \
    if (const auto *x = p.get_if<int64_t>(), *y = q.get_if<int64_t>(); x && y)  \
      [[likely]]                                                                \
      on = *x OPERATOR * y;                                                     \
    else                                                                        \
      on = compared(Op::NAME, p, q);                                            \
    k = on ? k + 1 : first + i.target;                                          \
    break;                                                                      \
  }
          UNLESS(EqInt, ==)
          UNLESS(NeInt, !=)
          UNLESS(LtInt, <)
          UNLESS(LeInt, <=)
#undef UNLESS
        default:
          fail(ErrorKind::Runtime, "an instruction that the machine does not have");
      }
    }
  } catch (...) {
    stack.passed.push_back({code.source, code.lines[static_cast<size_t>(k - first)]});
    std::exception_ptr error = std::current_exception();
    while (!open.empty()) {
      try {
        leave(stack, open, host);
      } catch (...) {  // goes on instead
        error = std::current_exception();
      }
    }
    std::rethrow_exception(error);
  }
}

}  // namespace

void (*poll)() = nullptr;
std::atomic<bool> stop_runs = false;

Invocation::Invocation(const Code& code)
    : code_(code), registers_(open_frame(thread_stack, code)) {}

Invocation::~Invocation() {
  close_frame(thread_stack, code_, registers_);
}

Value Invocation::run() {
  Stack& stack = thread_stack;
  if (stack.depth == 1) stack.passed.clear();
  Value result;
  execute(stack, code_, registers_, &result);
  if (stack.wake && stack.depth == 1) wake_now(stack);
  return result;
}

std::vector<Passed> take_passed() {
  return std::exchange(thread_stack.passed, {});
}

void passed_through(const std::vector<Passed>& before) {
  auto& passed = thread_stack.passed;
  passed.insert(passed.end(), before.begin(), before.end());
}

Object::~Object() {
  if (Instance* o = outside()) Ref<Instance>::adopt(o);
}

void Object::go_out(Ref<Instance> o) noexcept {
  outside_.store(o.detach(), std::memory_order_release);
}

const Instance& Object::resolved() const noexcept {
  const Instance* o = outside();
  return o ? *o : *this;
}

bool Object::equal(const Instance& o) const {
  return outside() ? outside()->equal(o) : same(o);
}

bool Object::truth() const {
  return outside() ? outside()->truth() : true;
}

Value Object::get(const AttrRef& a) const {
  if (const Instance* o = outside()) [[unlikely]]
    return o->get(a);
  FB_CHECK_TYPE(a.owner == owner && a.slot < slots.size(), "an object of ", owner->name,
                " has no attribute ", a.name, " of ", a.owner->name);
  return slots[a.slot];
}

Value& Object::at(std::string_view name) {
  size_t i = owner->slot(name);
  FB_CHECK_AS(Attribute, i < slots.size(), owner->name, " has no attribute ", name);
  return slots[i];
}

void Object::set(const AttrRef& a, const Value& x) {
  if (Instance* o = outside()) [[unlikely]]
    return o->set(a, x);
  FB_CHECK_TYPE(a.owner == owner && a.slot < slots.size(), "an object of ", owner->name,
                " has no attribute ", a.name, " of ", a.owner->name);
  Value held = x;
  std::swap(slots[a.slot], held);
}

}  // namespace flambeau::script
