// The machine: runs code over registers. Everything it does to tensors goes through descriptors of
// operations, so that autograd, vmap and autocast see what they see of any call.
#pragma once

#include <atomic>

#include "script/code.h"
#include "script/errors.h"
#include "script/values.h"

namespace flambeau::script {

// An object of a class of the unit, a module too where Python has none: an attribute or a child to
// a slot. Once it has gone out to whoever owns the program, it stands for what it is there.
class Object final : public Instance {
 public:
  explicit Object(const Class& c) : owner(&c), slots(c.slots()) {}
  ~Object() override;
  Value get(const AttrRef& a) const override;
  void set(const AttrRef& a, const Value& x) override;
  const Instance& resolved() const noexcept override;
  bool equal(const Instance& o) const override;
  bool truth() const override;
  Value& at(std::string_view name);  // for whoever makes it; an AttributeError where it has none
  Value& at(size_t slot) noexcept { return slots[slot]; }
  Instance* outside() const noexcept { return outside_.load(std::memory_order_acquire); }
  void go_out(Ref<Instance> o) noexcept;  // once
  const Class* const owner;

 private:
  Values slots;
  std::atomic<Instance*> outside_{nullptr};
};

// One call of a function: its arguments are assigned, then it runs. What that throws has left the
// function and its line, and those of its callers, for `take_passed`.
class Invocation {
 public:
  explicit Invocation(const Code& code);
  ~Invocation();
  Invocation(const Invocation&) = delete;
  Value& operator[](size_t parameter) noexcept { return registers_[parameter]; }
  Value run();

 private:
  const Code& code_;
  Value* registers_;
};

// Asked every hundred thousand turns or so whether to go on: what it throws ends the run. Whoever
// can be interrupted sets it; null until then.
extern void (*poll)();

extern std::atomic<bool> stop_runs;  // every run ends with an error before long

// Where the last error of this thread passed through, innermost first; empty once it is taken.
struct Passed {
  const Function* function;
  int64_t line;
};
std::vector<Passed> take_passed();
void passed_through(const std::vector<Passed>& before);  // an error that comes from another thread

// Types that a value is asked for.
struct Types final : Box {
  static constexpr Kind kKind = Kind::Types;
  explicit Types(std::vector<Type> ts) : Box(kKind), types(std::move(ts)) {}
  const std::vector<Type> types;
};
bool holds(const Value& v, const Type& t);  // with all that it holds

// Functions of the language that code refers to.
void core_isinstance(const Value* const* args, size_t n, Value* results);
void core_format(const Value* const* args, size_t n, Value* results);
// A format whose fields are arguments in order, nothing of them; `count` of them are there.
bool is_plain_format(std::string_view text, size_t count);
void core_new_object(const Value* const* args, size_t n, Value* results);
void core_named_tuple(const Value* const* args, size_t n, Value* results);
void core_unpack(const Value* const* args, size_t n, Value* results);
void core_empty_list(const Value* const* args, size_t n, Value* results);
void core_append_at(const Value* const* args, size_t n, Value* results);
void core_append(const Value* const* args, size_t n, Value* results);
void core_characters(const Value* const* args, size_t n, Value* results);

}  // namespace flambeau::script
