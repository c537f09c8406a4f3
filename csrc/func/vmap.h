// vmap: one call of a function stands for a batch of calls. Inside a level, a tensor that differs
// between the calls is a wrapper (kWrapper): it shows the shape of one sample and stands for a
// value that has the batch in dim 0. The level is an interceptor that turns each operation on
// wrappers into one operation on values. See Note [Levels] and docs/design/vmap.md.
//
// Note [Levels]
// A level sees the wrappers of its own level alone; to the ones around it, its values are ordinary
// tensors. Gradients are recorded where the tensors are that want them: by a level, for its
// wrappers (a gradient was asked for inside the level), and below, for its values (asked for
// outside). So levels of gradients need no interceptor of their own, whatever the nesting.
#pragma once

#include "autograd/meta.h"
#include "dispatch/op.h"

namespace flambeau::func {

enum class Randomness : uint8_t { Error, Different, Same };

class Level final : public Interceptor {
 public:
  Level(int64_t batch, Randomness randomness);
  ~Level() override;
  Values call(const OpDesc& op, Values args) override;

  const int64_t id;     // never used twice
  const int64_t depth;  // 1 for the outermost
  const int64_t batch;
  const Randomness randomness;
  Level* around = nullptr;  // the next level of the thread
  bool foreign = false;  // something recorded here depends on values that want gradients themselves

  // The wrapper's value; nothing for tensors that are none of this level's.
  const Wrapped* wrapped(const Tensor& x) const noexcept;
  bool is_batched(const Tensor& x) const noexcept;
  Tensor wrap(const Tensor& value, bool batched) const;
  const Tensor& value(const Tensor& x) const noexcept;  // x itself when it is not wrapped here
  // Makes x, none of the level's, a wrapper of it until the level ends. See Note [Adopted tensors].
  void adopt(const Tensor& x);

 private:
  Values compute(const OpDesc& op, Values& args, uint32_t batched);
  Values random(const OpDesc& op, Values& args, uint32_t batched);
  std::vector<Tensor> adopted_;
  size_t most_adopted_ = 16;  // beyond which those that nobody uses any more are let go
};

// The levels of this thread. Entering and leaving nest.
Level& enter_level(int64_t batch, Randomness randomness);
void leave_level(const Level& level);
Level* innermost_level() noexcept;  // null outside vmap
// Takes the innermost level, which must be on top of all transforms, out of the way and puts it
// back.
Level& suspend_level();
void resume_level(Level& level);

// The tensor as a wrapper of the level, its dim `dim` becoming the batch.
Tensor add_batch(const Level& level, const Tensor& x, int64_t dim);
// The value with the batch in dim `dim`, repeated when the tensor does not depend on the sample.
Tensor remove_batch(const Level& level, const Tensor& x, int64_t dim);
// A wrapper of the level that is the same for all samples: what is recorded of it is the level's.
Tensor lift(const Level& level, const Tensor& x);
// Does x, or a value that it stands for at any depth, want gradients?
bool wants_gradients(const Tensor& x) noexcept;

// Note [Samples without dims]
// Operations that take the number of a dim take 0 and -1 of a tensor that has none, as if it had
// one of size 1. Behind a batch it must have that dim. What the shape of the results is then
// follows from the operation, so it is asked on a sample without data.
struct Lift {
  Lift(const Level& level, const OpDesc& op, const Values& args);
  void restore(Values& results) const;  // the shapes that results have without the dims of size 1
  bool lifted = false;
  std::vector<Ints> shapes;
};

// Rules (func/batching.cpp): from wrappers, or from their values (those in `batched` have the batch
// in front), to values of the results.
Values batch_pointwise(const Level& level, const OpDesc& op, const Values& args);
Values batch_derived(const Level& level, const OpDesc& op, const Values& args);
Values batch_loop(const OpDesc& op, const Values& values, uint32_t batched, int64_t batch,
                  GeneratorImpl* same_from);
// Records a call on wrappers of the level (func/recording.cpp).
// The node is made before the call, which may change what it keeps; null: nothing is recorded.
Ref<Node> begin_record(Level& level, const OpDesc& op, const Values& args);
void end_record(const Ref<Node>& node, const OpDesc& op, const Values& results);

// f on every tensor of the value, with lists flattened and holes left out.
template <class V, class F>
void for_each_tensor(V& v, F f) {
  if (auto* x = v.template get_if<Tensor>()) {
    if (x->defined()) f(*x);
  } else if (auto* xs = v.template get_if<Tensors>()) {
    for (auto& t : *xs)
      if (t.defined()) f(t);
  } else if (auto* os = v.template get_if<OptTensors>()) {
    for (auto& o : *os)
      if (o && o->defined()) f(*o);
  }
}

// Installed by the binding: a UserWarning.
extern void (*warn)(const std::string& message);

}  // namespace flambeau::func
