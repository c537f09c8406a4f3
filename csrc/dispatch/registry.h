// Operations that are added while a program runs, by `library` of Python or by a program in C++:
//
//   const OpDesc& op = add_op("space::scale(Tensor x, float by) -> Tensor",
//                             KernelFor::CPU, {scale, nullptr});
//   static void scale(const OpDesc&, void* context, const Value* const* args, Value* results);
//
// Such an operation is a descriptor as those of the table are: `find_op("space::scale")` finds it,
// and whoever calls, differentiates, batches or compiles descriptors needs to know no more. This
// file owns what a call of one does, see Note [Calls of added operations].
//
// Note [Calls of added operations]
// The first of these that applies:
//   1. autocast is on and there is a kernel for it: it runs, with autocast off;
//   2. there is an autograd kernel and calls are not below autograd: it runs. It records what it
//      wants to and calls the operation again under `BelowAutograd`. With `when_recording` it is
//      left out where no argument requires gradients;
//   3. something intercepts calls (vmap, forward mode): it gets this one, and asks for the rules;
//   4. the kernel of the arguments' device, else the one for any device, runs; where its results
//      have no history of their own, gradients that come back to them raise;
//   5. the composite kernel runs as the code of the caller would, in the place of 3 and 4.
// What the schema says is written to has a new version afterwards.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "dispatch/op.h"
#include "dispatch/schema.h"

namespace flambeau {

// The name of a class of C++ (script/custom.h) in schemas begins so.
inline constexpr std::string_view kCustomClasses = "__torch__.torch.classes.";

// What runs an operation, and what it needs to know. The context lives as long as a call runs.
struct OpKernel {
  using Call = void (*)(const OpDesc& op, void* context, const Value* const* args, Value* results);
  Call call = nullptr;
  std::shared_ptr<void> context;
  bool when_recording = false;  // of autograd: only where an argument requires gradients
  bool opaque = false;          // what it does is not recorded, and its results are its own memory

  explicit operator bool() const noexcept { return call != nullptr; }
};

enum class KernelFor : uint8_t { CPU, CUDA, Meta, AnyDevice, Composite, Autograd, Autocast };
inline constexpr size_t kKernels = 7;

// Derivative and batching as OpDesc has them, by functions that know their context.
using AddedVjp = std::function<Tensors(const Values& args, const Tensors& cotangents,
                                       const Values& results, uint32_t wanted)>;
using AddedVmap = std::function<Values(const Values& args, uint32_t batched, int64_t batch)>;

// What an added operation has beside its descriptor, which refers to it. Neither moves or ends
// while the process lives: a call, a graph or a compiled program may hold it.
struct AddedOp {
  explicit AddedOp(Schema s);
  AddedOp(const AddedOp&) = delete;

  OpKernel kernel(KernelFor which) const;

  const Schema schema;
  const std::string uid, name;  // "space::scale.out", "space::scale"
  OpDesc desc;
  uint32_t written = 0;  // parameters that the schema says are written to

  // Under the lock.
  mutable std::mutex mutex;
  std::array<OpKernel, kKernels> kernels;
  std::shared_ptr<const AddedVjp> vjp;
  std::shared_ptr<const AddedVmap> vmap;
  std::atomic<bool> removed = false;

 private:
  std::vector<std::string> texts_;  // of defaults
  std::vector<ParamDesc> params_;
  std::vector<TypeDesc> returns_;
};

// Adds an operation without a kernel. Error(Runtime): the text is no schema, the name has no
// namespace or is taken, or values of some type cannot be passed to operations.
const OpDesc& add_op(std::string_view schema);
const OpDesc& add_op(Schema schema);
// The same, with a kernel.
const OpDesc& add_op(std::string_view schema, KernelFor which, OpKernel kernel);

// Gives an added operation a kernel or a rule, in the place of the one that it had; an empty one
// takes it away. A call that runs keeps what it began with.
void set_kernel(const OpDesc& op, KernelFor which, OpKernel kernel);
void set_vjp(const OpDesc& op, AddedVjp vjp);
void set_vmap(const OpDesc& op, AddedVmap vmap);

// Takes the name away: it can be added again, and calls of the old descriptor raise.
void remove_op(const OpDesc& op);
const OpDesc* find_added_op(std::string_view uid);
std::vector<const OpDesc*> added_ops();  // those with a name, sorted by it
uint64_t added_ops_version() noexcept;   // another one whenever a name came or went

// A type of a schema as operations take it; none where they cannot.
std::optional<TypeDesc> type_desc(const SchemaType& type);

// While one lives, calls of added operations go past their autograd kernels. It ends where
// something that intercepts calls hands on its own values, which have gradients of their own.
class BelowAutograd {
 public:
  BelowAutograd();
  ~BelowAutograd();
  BelowAutograd(const BelowAutograd&) = delete;
  static bool on() noexcept;

 private:
  const Interceptor* top_;
  bool before_;
};

}  // namespace flambeau
