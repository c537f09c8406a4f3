#include "kernels/pointwise.h"

#include <algorithm>
#include <cstring>

#include "core/allocator.h"
#include "core/devices.h"
#include "core/promotion.h"
#include "kernels/copy.h"
#include "kernels/move.h"
#include "kernels/tiles.h"

namespace flambeau::kernels {
namespace {

constexpr DType kComputeDType[] = {DType::Float32,   DType::Float64, DType::Int64,
                                   DType::UInt64,    DType::Bool,    DType::Complex64,
                                   DType::Complex128};
constexpr int kMaxInputs = 6, kMaxOutputs = 4;

Compute compute_type(const PointwiseKernel& k, DType d) {
  auto has = [&](Compute c) { return k.builds[0]->loops[int(c)] != nullptr; };
  switch (d) {
    case DType::Float64:
      return Compute::Float64;
    case DType::Complex64:
      return Compute::Complex64;
    case DType::Complex128:
      return Compute::Complex128;
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32:
      return Compute::Float32;
    case DType::UInt64:
      return has(Compute::UInt64) ? Compute::UInt64 : Compute::Int64;
    case DType::Bool:
      return has(Compute::Bool) ? Compute::Bool : Compute::Int64;
    default:
      return Compute::Int64;
  }
}

DType result_dtype(Result r, DType computed) {
  switch (r) {
    case Result::Bool:
      return DType::Bool;
    case Result::Real:
      return to_real(computed);
    case Result::Complex:
      return to_complex(computed);
    case Result::Int32:
      return DType::Int32;
    case Result::Int64:
      return DType::Int64;
    default:
      return computed;
  }
}

int class_bit(DType d) {
  return is_complex(d)          ? kComplexes
         : is_floating_point(d) ? kFloats
         : d == DType::Bool     ? kBools
                                : kInts;
}

// Numbers alone give a number, in full precision as they are: rules for derivatives compute with
// them before they meet a tensor.
bool are_numbers(const PointwiseKernel& k, const Tensor* const* inputs) {
  return std::all_of(inputs, inputs + k.inputs,
                     [](const Tensor* x) { return x->is_wrapped_number(); });
}

DType promoted(const PointwiseKernel& k, const Tensor* const* inputs) {
  ResultType type;
  for (int i = 0; i < k.inputs; ++i)
    if (!(k.conditions >> i & 1)) {
      type.add(*inputs[i]);
      if (k.promote == Promote::First) break;
    }
  DType d = type.get();
  if (k.promote == Promote::Float && is_integral(d, true)) d = default_dtype();
  if (are_numbers(k, inputs))
    d = is_complex(d) ? DType::Complex128 : is_floating_point(d) ? DType::Float64 : d;
  FB_CHECK_IMPL(k.classes & class_bit(d), '"', k.name, "\" not implemented for '",
                scalar_type_name(d), "'");
  return d;
}

// Dtype in which the loop reads or writes an operand; uint64 goes through int64 loops unconverted.
DType operand_dtype(DType actual, DType wanted) {
  return actual == DType::UInt64 && wanted == DType::Int64 ? DType::UInt64 : wanted;
}

// The walk
// ------------------------------------------------------------------------------------------------------------

struct Operand {
  char* data;
  const int64_t* strides;   // of the nest
  int64_t item, loop_item;  // bytes of an element in memory, and as the loop sees it
  ConvertFn convert;        // null: same dtype
  bool direct;              // the loop works on the tensor's memory, row by row
  bool fixed;               // direct, but one number per row: for LoopTable::fixed
  bool streamed;
  char* buffer;
  // What the buffer holds, to not gather the same operand again.
  const char* held = nullptr;
  int64_t held_rows = 0, held_cols = 0;
};

struct Job {
  const LoopNest& nest;
  Loop loop;
  RowsLoop fixed;  // where the last input is one number per row and there is such a loop
  const Param* params;
  int inputs, outputs;
  Operand operands[kMaxInputs + kMaxOutputs];  // outputs behind inputs
  int64_t grain;
  bool stream = false;

  Operand& output(int i) { return operands[inputs + i]; }
  int count() const { return inputs + outputs; }
};

void gather(Operand& o, char* at, const Tile& t, int64_t row_stride, char* raw) {
  auto move = FB_ISA_DISPATCH(move_tile);
  int64_t col_stride = o.strides[0];
  bool constant = col_stride == 0 && (t.rows == 1 || row_stride == 0);
  if (o.held == at && ((o.held_rows == t.rows && o.held_cols == t.cols) ||
                       (constant && t.rows * t.cols <= o.held_rows * o.held_cols)))
    return;
  int64_t n = t.rows * t.cols;
  bool dense = col_stride == o.item && (t.rows == 1 || row_stride == t.cols * o.item);
  if (!o.convert) {
    move(int(o.item), {at, row_stride, col_stride}, {o.buffer, t.cols * o.item, o.item}, t.rows,
         t.cols);
  } else if (dense) {
    o.convert(at, o.buffer, n);
  } else if (constant) {
    o.convert(at, raw, 1);
    move(int(o.loop_item), {raw, 0, 0}, {o.buffer, t.cols * o.loop_item, o.loop_item}, t.rows,
         t.cols);
  } else {
    move(int(o.item), {at, row_stride, col_stride}, {raw, t.cols * o.item, o.item}, t.rows, t.cols);
    o.convert(raw, o.buffer, n);
  }
  o.held = at, o.held_rows = t.rows, o.held_cols = t.cols;
}

void scatter(const Operand& o, char* at, const Tile& t, int64_t row_stride, char* raw,
             const Ahead& ahead) {
  const char* from = o.buffer;
  if (o.convert) {
    bool dense =
        !o.streamed && o.strides[0] == o.item && (t.rows == 1 || row_stride == t.cols * o.item);
    o.convert(o.buffer, dense ? at : raw, t.rows * t.cols);
    if (dense) return;
    from = raw;
  }
  if (o.streamed) {
    auto put = FB_ISA_DISPATCH(stream);
    for (int64_t r = 0; r < t.rows; ++r)
      put(at + r * row_stride, from + r * t.cols * o.item, t.cols * o.item, ahead.part(r, t.rows));
  } else {
    FB_ISA_DISPATCH(move_tile)
    (int(o.item), {const_cast<char*>(from), t.cols * o.item, o.item},
     {at, row_stride, o.strides[0]}, t.rows, t.cols);
  }
}

void run_tile(Job& job, const Tile& t, char* raw) {
  const void* in[kMaxInputs];
  void* out[kMaxOutputs];
  char* at[kMaxInputs + kMaxOutputs];
  int64_t step[kMaxInputs + kMaxOutputs];  // bytes from row to row as the loop sees them
  bool joined = true;                      // rows follow each other everywhere: one call does
  bool matrix = job.nest.ndim > 1;
  for (int k = 0; k < job.count(); ++k) {
    Operand& o = job.operands[k];
    int64_t row = matrix ? o.strides[1] : 0;
    at[k] = o.data + t.offsets[k];
    step[k] = o.direct ? row : t.cols * o.loop_item;
    joined = joined && (t.rows == 1 || step[k] == (o.fixed ? 0 : t.cols * o.loop_item));
    if (o.direct) continue;
    if (k < job.inputs) gather(o, at[k], t, row, raw);
  }
  auto base = [&](int k) { return job.operands[k].direct ? at[k] : job.operands[k].buffer; };
  int64_t calls = joined ? 1 : t.rows, n = joined ? t.rows * t.cols : t.cols;
  auto point = [&](int64_t r) {
    for (int k = 0; k < job.inputs; ++k) in[k] = base(k) + r * step[k];
    for (int k = 0; k < job.outputs; ++k) out[k] = base(job.inputs + k) + r * step[job.inputs + k];
  };
  if (job.fixed) {
    point(0);
    job.fixed(calls, n, in, out, step, job.params);
  } else {
    for (int64_t r = 0; r < calls; ++r) {
      point(r);
      job.loop(n, in, out, job.params);
    }
  }
  Ahead ahead;  // the next tile most often lies behind this one
  for (int k = 0; k < job.inputs && job.stream; ++k) {
    const Operand& o = job.operands[k];
    int64_t bytes = t.rows * t.cols * o.item;
    if (o.strides[0] == o.item) ahead.add(at[k] + bytes, bytes);
  }
  for (int k = job.inputs; k < job.count(); ++k)
    if (!job.operands[k].direct)
      scatter(job.operands[k], at[k], t, matrix ? job.operands[k].strides[1] : 0, raw, ahead);
}

// One run over everything: each thread calls the loop once.
void run_flat(Job& job) {
  static constexpr int64_t kNowhere[kMaxInputs + kMaxOutputs] = {};  // there is one row
  constexpr int64_t kUnit = 64;
  parallel_for(0, (job.nest.numel + kUnit - 1) / kUnit, std::max<int64_t>(1, job.grain / kUnit),
               [&](int64_t first, int64_t last) {
                 const void* in[kMaxInputs];
                 void* out[kMaxOutputs];
                 int64_t begin = first * kUnit, n = std::min(job.nest.numel, last * kUnit) - begin;
                 for (int k = 0; k < job.inputs; ++k)
                   in[k] = job.operands[k].data + begin * job.operands[k].strides[0];
                 for (int k = 0; k < job.outputs; ++k)
                   out[k] = job.output(k).data + begin * job.output(k).strides[0];
                 if (job.fixed)
                   job.fixed(1, n, in, out, kNowhere, job.params);
                 else
                   job.loop(n, in, out, job.params);
               });
}

void run(Job& job) {
  const LoopNest& nest = job.nest;
  int64_t widest = 4;
  for (int k = 0; k < job.count(); ++k)
    widest = std::max({widest, job.operands[k].item, job.operands[k].loop_item});
  int64_t limit = widest <= 4 ? 2048 : widest <= 8 ? 1024 : 512;
  Tiles tiles = make_tiles(nest, limit, runs_across(nest));
  bool flat = nest.ndim == 1, short_rows = nest.ndim > 1 && tiles.cols < 32;
  int buffers = 0;
  if (job.fixed) {
    Operand& last = job.operands[job.inputs - 1];
    last.fixed = !short_rows && !last.convert && last.strides[0] == 0;
    if (!last.fixed) job.fixed = nullptr;
  }
  for (int k = 0; k < job.count(); ++k) {
    Operand& o = job.operands[k];
    bool unit = o.strides[0] == o.item;
    bool joined = nest.ndim == 1 || o.strides[1] == tiles.cols * o.item;
    o.streamed = job.stream && k >= job.inputs && unit && tiles.cols * o.item >= 128;
    o.direct = o.fixed || (!o.convert && unit && !o.streamed && (!short_rows || joined));
    flat = flat && o.direct;
    buffers += !o.direct;
  }
  if (flat) return run_flat(job);
  int64_t per_tile = tiles.rows * tiles.cols;
  int64_t grain = std::max<int64_t>(1, job.grain / std::max<int64_t>(per_tile, 1));
  int64_t room = (per_tile * widest + 63) / 64 * 64 + 64;
  parallel_for(0, tiles.count(), grain, [&](int64_t first, int64_t last) {
    Job mine = job;
    struct Scratch {
      size_t bytes;
      char* p;
      explicit Scratch(size_t b) : bytes(b), p(static_cast<char*>(allocate(b))) {}
      ~Scratch() { deallocate(p, bytes); }
    } scratch((buffers + 1) * room);
    char* next = scratch.p + room;
    for (int k = 0; k < mine.count(); ++k)
      if (!mine.operands[k].direct) {
        mine.operands[k].buffer = next;
        next += room;
      }
    walk_tiles(nest, tiles, first, last, [&](const Tile& t) { run_tile(mine, t, scratch.p); });
    if (mine.stream) stream_fence();
  });
}

// Inputs as their loop may read them: whole numbers beside a half format are taken to that first.
struct Narrowed {
  const Tensor* inputs[kMaxInputs];
  Tensor made[kMaxInputs];
  Narrowed(const PointwiseKernel& k, DType computed, const Tensor* const* given) {
    for (int i = 0; i < k.inputs; ++i) {
      const Tensor& x = *given[i];
      const bool wide = is_integral(x.dtype(), false) && x.itemsize() > 1 && x.dim() > 0;
      inputs[i] = &x;
      if (!wide || !is_reduced_float(computed) || k.conditions >> i & 1 || !on_cpu(x)) continue;
      made[i] = to_dtype(x, computed);
      inputs[i] = &made[i];
    }
  }
};

// Sets up the job over tensors whose shapes and dtypes are settled; the nest has the inputs, then
// the outputs.
void apply(const PointwiseKernel& k, DType computed, LoopNest& nest, const Tensor* const* inputs,
           const Tensor* outputs, Params params) {
  if (nest.numel == 0) return;
  nest.merge();
  Compute c = compute_type(k, computed);
  std::vector<Param> rounded;
  if (k.rounded && is_reduced_float(computed)) {
    rounded = params;
    for (int i = 0; i < k.params; ++i)
      if (k.rounded >> i & 1) rounded[i] = held(computed, rounded[i].re);
  }
  const LoopTable& loops = *k.builds[isa_index];
  Job job{nest,
          loops.loops[int(c)],
          c == Compute::Float32 ? loops.fixed : nullptr,
          rounded.empty() ? params.begin() : rounded.data(),
          k.inputs,
          k.outputs,
          {},
          0};
  FB_CHECK_IMPL(job.loop, '"', k.name, "\" not implemented for '", scalar_type_name(computed), "'");
  if (!on_cpu(outputs[0])) return;
  job.grain = std::max<int64_t>(4096, 4 * kGrain / (3 + k.cost));
  DType cd = kComputeDType[int(c)];
  auto fill = [&](Operand& o, const Tensor& t, DType wanted, int at, bool reading) {
    DType d = operand_dtype(t.dtype(), wanted);
    o.data = static_cast<char*>(t.data_ptr());
    o.strides = nest.strides[at];
    o.item = t.itemsize();
    o.loop_item = itemsize(d);
    o.convert = d == t.dtype() ? nullptr
                : reading      ? FB_ISA_DISPATCH(converter)(int(t.dtype()), int(d))
                               : FB_ISA_DISPATCH(converter)(int(d), int(t.dtype()));
  };
  int64_t written = 0;
  bool aliased = false;
  // What is one number is converted once, to what the computed dtype holds of it.
  const bool half = is_reduced_float(computed);
  alignas(16) char numbers[kMaxInputs][16];
  for (int i = 0; i < k.inputs; ++i) {
    const Tensor& x = *inputs[i];
    Operand& o = job.operands[i];
    const bool condition = k.conditions >> i & 1, exact = k.exact >> i & 1 && x.dim() == 0;
    fill(o, x, condition ? DType::Bool : cd, i, true);
    const bool narrowed =
        !condition && x.dtype() != computed && (is_integral(computed, true) || (half && !exact));
    if (x.numel() != 1 || !(o.convert || narrowed)) continue;
    if (narrowed) {
      alignas(16) char narrow[16];
      convert(x.dtype(), o.data, computed, narrow, 1);
      convert(computed, narrow, operand_dtype(computed, cd), numbers[i], 1);
    } else {
      o.convert(o.data, numbers[i], 1);
    }
    o.data = numbers[i], o.item = o.loop_item, o.convert = nullptr;
  }
  for (int i = 0; i < k.outputs; ++i) {
    fill(job.output(i), outputs[i], result_dtype(k.results[i], cd), k.inputs + i, false);
    written += outputs[i].numel() * outputs[i].itemsize();
    for (int j = 0; j < k.inputs; ++j) aliased |= outputs[i].shares_storage(*inputs[j]);
  }
  job.stream = written > streaming_threshold() && !aliased;
  run(job);
}

// Results
// -------------------------------------------------------------------------------------------------------------

// Strides that PyTorch would give a new result; empty: row-major.
Ints result_strides(const Tensor* const* inputs, int count, const Ints& shape,
                    const LoopNest& nest) {
  bool same = true, contiguous = true, last2 = true, last3 = true, equal = true;
  for (int i = 0; i < count; ++i) {
    const Tensor& x = *inputs[i];
    same = same && x.sizes() == shape;
    contiguous = contiguous && x.is_contiguous();
    equal = equal && x.strides() == inputs[0]->strides();
  }
  if (contiguous && same) return {};
  if (same) {
    for (int i = 0; i < count; ++i) {
      last2 = last2 && inputs[i]->is_contiguous(MemoryFormat::ChannelsLast);
      last3 = last3 && inputs[i]->is_contiguous(MemoryFormat::ChannelsLast3d);
    }
    if (last2) return format_strides(shape, MemoryFormat::ChannelsLast);
    if (last3) return format_strides(shape, MemoryFormat::ChannelsLast3d);
    if (equal && inputs[0]->is_dense()) return inputs[0]->strides();
  }
  return nest.dense_strides();
}

// Compared by hand: for a few numbers a call of memcmp costs more than they do.
inline bool same_sizes(const Tensor& a, const Tensor& b) {
  if (a.is_same(b)) return true;
  const Ints &x = a.sizes(), &y = b.sizes();
  if (x.size() != y.size()) return false;
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i] != y[i]) return false;
  return true;
}

// May the result for `lead` be written straight to `into`, which inputs may be but not overlap?
bool fits_into(const Tensor& into, const Tensor& lead, DType result, const Tensor* const* inputs,
               int count) {
  if (into.dtype() != result || !into.is_contiguous() || !same_sizes(into, lead)) return false;
  for (int i = 0; i < count; ++i)
    if (!inputs[i]->is_same(into) && inputs[i]->shares_storage(into)) return false;
  return true;
}

// The common small case: dense inputs of one shape and dtype, and numbers. False: not that.
// `into`: the only result goes there.
bool call_simple(const PointwiseKernel& k, const Tensor* const* inputs, Params params,
                 Tensor* results, const Tensor* into = nullptr) {
  const Tensor* lead = nullptr;
  for (int i = 0; i < k.inputs && !lead; ++i)
    if (inputs[i]->dim() > 0) lead = inputs[i];
  if (!lead) lead = inputs[0];
  if (!on_cpu(*lead) || k.conditions || lead->is_wrapped_number()) return false;
  DType d = lead->dtype();
  int64_t n = lead->numel();
  int c = d == DType::Float32   ? int(Compute::Float32)
          : d == DType::Float64 ? int(Compute::Float64)
          : d == DType::Int64   ? int(Compute::Int64)
                                : -1;
  if (c < 0 || n > 4096 || (c == int(Compute::Int64) && k.promote == Promote::Float)) return false;
  Loop loop = k.builds[isa_index]->loops[c];
  if (!loop || !(k.classes & class_bit(d))) return false;
  if (into &&
      (!on_cpu(*into) || !fits_into(*into, *lead, result_dtype(k.results[0], d), inputs, k.inputs)))
    return false;
  constexpr int64_t kRoom = 512;
  alignas(64) char numbers[2][kRoom * 8];
  int used = 0;
  const void* in[kMaxInputs];
  for (int i = 0; i < k.inputs; ++i) {
    const Tensor& x = *inputs[i];
    if (!on_cpu(x)) return false;
    if (x.dim() == 0 && lead->dim() > 0) {
      bool fits = x.dtype() == d || (is_floating_point(d) ? !x.is_complex() : x.is_integral(true));
      if (!fits || used == 2 || n > kRoom || x.dtype() == DType::UInt64) return false;
      char* to = numbers[used++];
      int64_t size = itemsize(d);
      if (x.dtype() == d)
        std::memcpy(to, x.data_ptr(), size);
      else
        convert(x.dtype(), x.data_ptr(), d, to, 1);
      FB_ISA_DISPATCH(move_tile)(int(size), {to, 0, 0}, {to, 0, size}, 1, n);
      in[i] = to;
    } else {
      if (x.dtype() != d || !x.is_contiguous() || !same_sizes(x, *lead) || x.is_wrapped_number())
        return false;
      in[i] = x.data_ptr();
    }
  }
  // The result's strides follow lead's; a new tensor may have others where a size is 1.
  if (used && lead->strides() != contiguous_strides(lead->sizes())) return false;
  void* out[kMaxOutputs];
  if (into) {
    out[0] = into->data_ptr();
  } else {
    for (int i = 0; i < k.outputs; ++i) {
      results[i] = empty(lead->sizes(), result_dtype(k.results[i], d));
      out[i] = results[i].data_ptr();
    }
  }
  loop(n, in, out, params.begin());
  return true;
}

// Where the operation takes place; `outs`: results that are there already.
Device device_for(const PointwiseKernel& k, const Tensor* const* inputs, const Tensor* outs) {
  CommonDevice device;
  for (int i = 0; i < k.inputs; ++i) device.read(*inputs[i]);
  if (outs)
    for (int i = 0; i < k.outputs; ++i) device.write(outs[i]);
  return device.get();
}

void call_general(const PointwiseKernel& k, const Tensor* const* inputs, Params params,
                  Tensor* results) {
  DType computed = promoted(k, inputs);
  Device device = device_for(k, inputs, nullptr);
  Ints shape = broadcast_all(inputs, k.inputs);
  LoopNest nest(shape);
  Narrowed in(k, computed, inputs);
  for (int i = 0; i < k.inputs; ++i) nest.add(*in.inputs[i]);
  nest.order();
  Ints strides = result_strides(inputs, k.inputs, shape, nest);
  for (int i = 0; i < k.outputs; ++i) {
    DType d = result_dtype(k.results[i], computed);
    results[i] = strides.empty() ? empty(shape, d, MemoryFormat::Contiguous, device)
                                 : empty_strided(shape, strides, d, device);
    nest.add(results[i]);
  }
  apply(k, computed, nest, in.inputs, results, params);
  if (are_numbers(k, inputs))
    for (int i = 0; i < k.outputs; ++i) results[i].set_flag(kWrappedNumber);
}

void check_overlaps(const Tensor& out, const Tensor* const* inputs, int count) {
  FB_CHECK(!has_internal_overlap(out),
           "unsupported operation: more than one element of the written-to tensor refers to a "
           "single memory location. "
           "Please clone() the tensor before performing the operation.");
  for (int i = 0; i < count; ++i) FB_CHECK(overlap(out, *inputs[i]) != Overlap::Partial, kOverlap);
}

void check_result(DType d, const Tensor& out) {
  FB_CHECK(can_cast(d, out.dtype()), "result type ", scalar_type_name(d),
           " can't be cast to the desired output type ", scalar_type_name(out.dtype()));
}

// Whether a loop will refuse a zero among its divisors in the middle of its work (2**32 is one
// beside int32): then memory that somebody holds is written to when the result is there.
bool will_refuse(const PointwiseKernel& k, const Tensor* const* inputs) {
  if (!k.divides) return false;
  const DType computed = promoted(k, inputs);
  const Tensor& last = *inputs[k.inputs - 1];
  if (!is_integral(computed) || !on_cpu(last)) return false;
  Tensor x = contiguous(to_dtype(to_dtype(last, computed), DType::Int64));
  const int64_t* p = x.data<int64_t>();
  return std::find(p, p + x.numel(), 0) != p + x.numel();
}

// Whether a tensor of out= would show what the loop computed beyond the dtype of the result, which
// wraps or rounds: loops of small integers and halves compute in wider types.
bool holds_more(const PointwiseKernel& k, DType computed, const Tensor* const* outs) {
  const DType loop = kComputeDType[int(compute_type(k, computed))];
  for (int i = 0; i < k.outputs; ++i) {
    const DType result = result_dtype(k.results[i], computed);
    if (outs[i]->dtype() != result && result_dtype(k.results[i], loop) != result) return true;
  }
  return false;
}

// Writes into tensors of the right shape.
void write_into(const PointwiseKernel& k, DType computed, const Ints& shape,
                const Tensor* const* inputs, Params params, const Tensor* outs) {
  device_for(k, inputs, outs);
  LoopNest nest(shape);
  Narrowed in(k, computed, inputs);
  for (int i = 0; i < k.inputs; ++i) nest.add(*in.inputs[i]);
  for (int i = 0; i < k.outputs; ++i) nest.add(outs[i]);
  nest.order();
  apply(k, computed, nest, in.inputs, outs, params);
}

}  // namespace

Tensor pointwise_call(const PointwiseKernel& k, Inputs inputs, Params params) {
  Tensor results[kMaxOutputs];
  if (!call_simple(k, inputs.begin(), params, results))
    call_general(k, inputs.begin(), params, results);
  return std::move(results[0]);
}

void pointwise_many(const PointwiseKernel& k, Inputs inputs, Params params, Tensor* results) {
  if (!call_simple(k, inputs.begin(), params, results))
    call_general(k, inputs.begin(), params, results);
}

void pointwise_inplace(const PointwiseKernel& k, const Tensor& self, Inputs inputs,
                       Params params) {
  const Tensor* const* in = inputs.begin();
  if (will_refuse(k, in)) {
    Tensor result = pointwise_call(k, inputs, params);
    check_result(result.dtype(), self);
    FB_CHECK(result.sizes() == self.sizes(), "output with shape ", self.sizes(),
             " doesn't match the broadcast shape ", result.sizes());
    check_overlaps(self, in, k.inputs);
    copy(self, result);
    self.bump_version();
    return;
  }
  if (call_simple(k, in, params, nullptr, &self)) {
    self.bump_version();
    return;
  }
  DType computed = promoted(k, in);
  check_result(result_dtype(k.results[0], computed), self);
  Ints shape = broadcast_all(in, k.inputs);
  FB_CHECK(shape == self.sizes(), "output with shape ", self.sizes(),
           " doesn't match the broadcast shape ", shape);
  check_overlaps(self, in, k.inputs);
  write_into(k, computed, shape, in, params, &self);
  self.bump_version();
}

void pointwise_out(const PointwiseKernel& k, Inputs inputs, Params params,
                   std::initializer_list<const Tensor*> outs) {
  const Tensor* const* in = inputs.begin();
  DType computed = promoted(k, in);
  Ints shape = broadcast_all(in, k.inputs);
  Device device = device_for(k, in, nullptr);
  Tensor targets[kMaxOutputs], results[kMaxOutputs];
  int i = 0;
  for (const Tensor* out : outs) {
    check_result(result_dtype(k.results[i], computed), *out);
    check_out_device(device, *out);
    bool resized = out->sizes() != shape;
    for (int j = 0; j < k.inputs && resized; ++j) FB_CHECK(!out->shares_storage(*in[j]), kOverlap);
    if (!resized) check_overlaps(*out, in, k.inputs);
    targets[i++] = *out;
  }
  const bool apart = will_refuse(k, in) || holds_more(k, computed, outs.begin());
  if (apart) pointwise_many(k, inputs, params, results);
  for (int j = 0; j < k.outputs; ++j) resize_output(targets[j], shape, k.name);
  if (apart)
    for (int j = 0; j < k.outputs; ++j) copy(targets[j], results[j]);
  else
    write_into(k, computed, shape, in, params, targets);
  for (int j = 0; j < k.outputs; ++j) targets[j].bump_version();
}

}  // namespace flambeau::kernels
