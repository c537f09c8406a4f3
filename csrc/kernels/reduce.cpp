#include "kernels/reduce.h"

#include <cstring>

#include "core/allocator.h"
#include "core/parallel.h"
#include "core/promotion.h"
#include "kernels/copy.h"
#include "kernels/move.h"
#include "kernels/pointwise.h"
#include "kernels/strided.h"

namespace flambeau::kernels {
namespace {

constexpr DType kResultDType[] = {DType::Float32, DType::Float64,   DType::Int64,     DType::UInt64,
                                  DType::Bool,    DType::Complex64, DType::Complex128};
constexpr int64_t kChunk = 2048;       // elements gathered at a time
constexpr int64_t kSegment = 1 << 15;  // elements of a long run that one thread takes at a time
constexpr int64_t kColumns = 2048, kGatheredColumns = 256, kRows = 256;
constexpr int64_t kBatch = 256;  // results finished at a time
// Elements worth a thread: most reductions are cheap, a region of threads costs what 100,000
// elements do.
int64_t work_of(Reduction op) {
  bool heavy = op == Reduction::LogSumExp || op == Reduction::NormP || op >= Reduction::Moments;
  return heavy ? kGrain : 4 * kGrain;
}

int compute_index(Reduction op, DType d) {
  if (op == Reduction::All || op == Reduction::Any || op == Reduction::Count)
    return int(Compute::Bool);
  switch (d) {
    case DType::Float64:
      return int(Compute::Float64);
    case DType::Complex64:
      return int(Compute::Complex64);
    case DType::Complex128:
      return int(Compute::Complex128);
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32:
      return int(Compute::Float32);
    case DType::UInt64:
      return int(Compute::UInt64);
    default:
      return int(Compute::Int64);
  }
}

// Aligned memory for a scope.
struct Scratch {
  size_t bytes;
  char* p;
  explicit Scratch(size_t b) : bytes(b), p(static_cast<char*>(allocate(b))) {}
  ~Scratch() { deallocate(p, bytes); }
  Scratch(const Scratch&) = delete;
};

// A group of dims of the nest, fastest first.
struct Dims {
  int n = 0;
  int at[kMaxDims];
  int64_t count(const LoopNest& nest, int from) const {
    int64_t total = 1;
    for (int i = from; i < n; ++i) total *= nest.sizes[at[i]];
    return total;
  }
  // Bytes from the start to position `index` of the dims behind `from`, for operand k.
  int64_t offset(const LoopNest& nest, int k, int from, int64_t index) const {
    int64_t total = 0;
    for (int i = from; i < n && index; ++i) {
      int64_t size = nest.sizes[at[i]], next = index / size;
      total += (index - next * size) * nest.strides[k][at[i]];
      index = next;
    }
    return total;
  }
};

struct Output {
  char* data = nullptr;
  DType dtype = DType::Float32, loop_dtype = DType::Float32;
};

class Reducer {
 public:
  Reducer(Reduction op, DType computed, const Tensor& x, const LoopNest& nest, double p,
          int outputs)
      : loops_(FB_ISA_DISPATCH(reduce_loops)(int(op), compute_index(op, computed))),
        nest_(nest),
        p_(p),
        outputs_(outputs),
        data_(static_cast<char*>(x.data_ptr())),
        item_(x.itemsize()),
        work_(work_of(op)) {
    DType wanted = kResultDType[compute_index(op, computed)];
    loop_item_ = itemsize(wanted);
    if (x.dtype() != wanted) convert_ = FB_ISA_DISPATCH(converter)(int(x.dtype()), int(wanted));
    for (int d = 0; d < nest.ndim; ++d) {
      Dims& group = nest.strides[1][d] ? kept_ : reduced_;
      group.at[group.n++] = d;
    }
    count_ = reduced_.count(nest, 0);
  }
  bool defined() const { return loops_.runs; }
  void set_output(int i, const Tensor& t) {
    out_[i] = {static_cast<char*>(t.data_ptr()), t.dtype(),
               kResultDType[i ? loops_.result2 : loops_.result]};
  }
  void operator()() {
    if (nest_.numel == 0)
      empty();
    else if (kept_.n == 0 || (reduced_.n > 0 && reduced_.at[0] == 0 && nest_.sizes[0] >= 16))
      by_runs();
    else
      by_columns();
  }

 private:
  // Runs: the fastest dim is reduced
  // --------------------------------------------------------------------------------

  void by_runs() {
    int64_t length = nest_.sizes[0], kept = kept_.count(nest_, 0);
    int64_t segments = (length + kSegment - 1) / kSegment,
            units = segments * reduced_.count(nest_, 1);
    if (kept < num_threads() && units > 1 && count_ >= 2 * work_) {
      for (int64_t k = 0; k < kept; ++k) shared_run(k, units);
      return;
    }
    bool direct = !convert_ && nest_.strides[0][0] == item_;
    bool simple = units == 1 && (direct || length <= kChunk);
    int64_t grain = std::max<int64_t>(1, work_ / std::max<int64_t>(count_, 1));
    parallel_for(0, kept, grain, [&](int64_t from, int64_t to) {
      Scratch acc(std::min(kBatch, to - from) * loops_.acc_size), buffer(scratch_bytes());
      for (int64_t first = from; first < to; first += kBatch) {
        int64_t n = std::min(kBatch, to - first);
        loops_.init(acc.p, n);
        if (simple) {
          for_spans(first, n, [&](int64_t i, int64_t m, int64_t at) {
            char* x = data_ + kept_.offset(nest_, 0, 0, at);
            whole_runs(acc.p + i * loops_.acc_size, x, m, length, direct, buffer.p);
          });
        } else {
          for (int64_t i = 0; i < n; ++i)
            units_of(first + i, 0, units, acc.p + i * loops_.acc_size, buffer.p);
        }
        write_results(acc.p, first, n);
      }
    });
  }

  // The runs of m neighbouring results, gathered many at a time where they are not read in place.
  void whole_runs(char* acc, char* x, int64_t m, int64_t length, bool direct, char* buffer) {
    int64_t stride = kept_.n ? nest_.strides[0][kept_.at[0]] : 0;
    if (direct) return loops_.runs(acc, x, stride, m, length, 0, p_);
    int64_t step = kChunk / length;
    for (int64_t i = 0; i < m; i += step) {
      int64_t rows = std::min(step, m - i);
      const void* tile =
          gathered({x + i * stride, stride, nest_.strides[0][0]}, rows, length, buffer);
      loops_.runs(acc + i * loops_.acc_size, tile, length * loop_item_, rows, length, 0, p_);
    }
  }

  // Cuts the results [first, first + n) where the fastest kept dim ends: f(offset in them, how
  // many, which is the first).
  template <class F>
  void for_spans(int64_t first, int64_t n, const F& f) {
    int64_t size = kept_.n ? nest_.sizes[kept_.at[0]] : 1;
    for (int64_t i = 0; i < n;) {
      int64_t m = std::min(n - i, size - (first + i) % size);
      f(i, m, first + i);
      i += m;
    }
  }

  // One result, its elements shared out among the threads.
  void shared_run(int64_t kept, int64_t units) {
    int64_t parts = std::min({units, int64_t{num_threads()}, count_ / work_});
    Scratch acc(parts * loops_.acc_size);
    loops_.init(acc.p, parts);
    parallel_for(0, parts, 1, [&](int64_t from, int64_t to) {
      Scratch buffer(scratch_bytes());
      for (int64_t part = from; part < to; ++part)
        units_of(kept, part * units / parts, (part + 1) * units / parts,
                 acc.p + part * loops_.acc_size, buffer.p);
    });
    for (int64_t part = 1; part < parts; ++part)
      loops_.combine(acc.p, acc.p + part * loops_.acc_size, 1);
    write_results(acc.p, kept, 1);
  }

  void units_of(int64_t kept, int64_t from, int64_t to, char* acc, char* buffer) {
    int64_t length = nest_.sizes[0], stride = nest_.strides[0][0];
    int64_t segments = (length + kSegment - 1) / kSegment;
    char* start = data_ + kept_.offset(nest_, 0, 0, kept);
    for (int64_t u = from; u < to; ++u) {
      int64_t position = u / segments, begin = (u - position * segments) * kSegment;
      int64_t n = std::min(kSegment, length - begin);
      char* x = start + reduced_.offset(nest_, 0, 1, position) + begin * stride;
      int64_t base = position * length + begin;
      if (!convert_ && stride == item_) {
        loops_.runs(acc, x, 0, 1, n, base, p_);
        continue;
      }
      for (int64_t i = 0; i < n; i += kChunk) {
        int64_t m = std::min(kChunk, n - i);
        loops_.runs(acc, gathered({x + i * stride, 0, stride}, 1, m, buffer), 0, 1, m, base + i,
                    p_);
      }
    }
  }

  // Columns: the fastest dim (or the only long one) is kept
  // ----------------------------------------------------------

  void by_columns() {
    int64_t width = nest_.sizes[kept_.at[0]], outer = kept_.count(nest_, 1);
    bool direct = !convert_ && nest_.strides[0][kept_.at[0]] == item_;
    int64_t most = direct ? kColumns : kGatheredColumns, blocks = (width + most - 1) / most,
            tasks = outer * blocks;
    int64_t height = reduced_.n ? nest_.sizes[reduced_.at[0]] : 1;
    int64_t row_blocks = (height + kRows - 1) / kRows,
            units = row_blocks * reduced_.count(nest_, 1);
    if (tasks < num_threads() && units > 1 && nest_.numel >= 2 * work_) {
      for (int64_t t = 0; t < tasks; ++t)
        shared_columns(t, blocks, most, width, height, row_blocks, units);
      return;
    }
    int64_t grain = std::max<int64_t>(1, work_ * tasks / std::max<int64_t>(nest_.numel, 1));
    parallel_for(0, tasks, grain, [&](int64_t from, int64_t to) {
      Scratch acc(std::min(most, width) * loops_.acc_size), buffer(scratch_bytes());
      for (int64_t t = from; t < to; ++t) {
        int64_t c = (t % blocks) * most, n = std::min(most, width - c);
        loops_.init(acc.p, n);
        column_units(t / blocks, c, n, height, row_blocks, 0, units, acc.p, buffer.p);
        write_results(acc.p, t / blocks * width + c, n);
      }
    });
  }

  void shared_columns(int64_t t, int64_t blocks, int64_t most, int64_t width, int64_t height,
                      int64_t row_blocks, int64_t units) {
    int64_t c = (t % blocks) * most, n = std::min(most, width - c);
    int64_t parts = std::min<int64_t>(units, num_threads()), each = n * loops_.acc_size;
    Scratch acc(parts * each);
    loops_.init(acc.p, parts * n);
    parallel_for(0, parts, 1, [&](int64_t from, int64_t to) {
      Scratch buffer(scratch_bytes());
      for (int64_t part = from; part < to; ++part)
        column_units(t / blocks, c, n, height, row_blocks, part * units / parts,
                     (part + 1) * units / parts, acc.p + part * each, buffer.p);
    });
    for (int64_t part = 1; part < parts; ++part) loops_.combine(acc.p, acc.p + part * each, n);
    write_results(acc.p, t / blocks * width + c, n);
  }

  void column_units(int64_t outer, int64_t column, int64_t cols, int64_t height, int64_t row_blocks,
                    int64_t from, int64_t to, char* acc, char* buffer) {
    int64_t col_stride = nest_.strides[0][kept_.at[0]];
    int64_t row_stride = reduced_.n ? nest_.strides[0][reduced_.at[0]] : 0;
    char* start = data_ + kept_.offset(nest_, 0, 1, outer) + column * col_stride;
    bool direct = !convert_ && col_stride == item_;
    int64_t step = direct ? kRows : std::max<int64_t>(1, kChunk / cols);
    for (int64_t u = from; u < to; ++u) {
      int64_t position = u / row_blocks, first = (u - position * row_blocks) * kRows;
      int64_t last = std::min(height, first + kRows);
      char* x = start + reduced_.offset(nest_, 0, 1, position);
      for (int64_t r = first; r < last; r += step) {
        int64_t m = std::min(step, last - r), base = position * height + r;
        char* tile = x + r * row_stride;
        if (direct)
          loops_.rows(acc, tile, row_stride, m, cols, base, p_);
        else
          loops_.rows(acc, gathered({tile, row_stride, col_stride}, m, cols, buffer),
                      cols * loop_item_, m, cols, base, p_);
      }
    }
  }

  // Helpers
  // ------------------------------------------------------------------------------------------------------------

  // Room for a gathered tile before and after conversion; none where tiles are read in place.
  size_t scratch_bytes() const { return kChunk * (loop_item_ + item_); }

  // The tile, dense and in the loop's type.
  const void* gathered(Lattice from, int64_t rows, int64_t cols, char* buffer) {
    char* raw = buffer + kChunk * loop_item_;
    bool dense = from.col == item_ && (rows == 1 || from.row == cols * item_);
    if (!dense) {
      FB_ISA_DISPATCH(move_tile)(int(item_), from, {raw, cols * item_, item_}, rows, cols);
      from.data = raw;
    }
    if (!convert_) return from.data;
    convert_(from.data, buffer, rows * cols);
    return buffer;
  }

  // Finishes the accumulators of the results [first, first + n) and writes them, in the dtypes of
  // the outputs.
  void write_results(const char* acc, int64_t first, int64_t n) {
    alignas(64) char loop[2][kBatch * 16], converted[kBatch * 16];
    for (int64_t done = 0; done < n; done += kBatch) {
      int64_t batch = std::min(kBatch, n - done);
      loops_.finish(acc + done * loops_.acc_size, batch, count_, p_, loop[0], loop[1]);
      for (int k = 0; k < outputs_; ++k) {
        int64_t size = itemsize(out_[k].dtype);
        convert(out_[k].loop_dtype, loop[k], out_[k].dtype, converted, batch);
        for_spans(first + done, batch, [&](int64_t i, int64_t m, int64_t at) {
          char* to = out_[k].data + kept_.offset(nest_, 1 + k, 0, at);
          int64_t stride = kept_.n ? nest_.strides[1 + k][kept_.at[0]] : size;
          auto move = FB_ISA_DISPATCH(move_tile);
          if (stride == size)
            std::memcpy(to, converted + i * size, m * size);
          else
            move(int(size), {converted + i * size, 0, size}, {to, 0, stride}, 1, m);
        });
      }
    }
  }

  // No element at all: every result is that of a fresh accumulator.
  void empty() {
    int64_t kept = kept_.count(nest_, 0);
    Scratch acc(loops_.acc_size);
    loops_.init(acc.p, 1);
    for (int64_t k = 0; k < kept; ++k) write_results(acc.p, k, 1);
  }

  const ReduceLoops& loops_;
  const LoopNest& nest_;
  double p_;
  int outputs_;
  char* data_;
  int64_t item_, loop_item_;
  ConvertFn convert_ = nullptr;
  Dims kept_, reduced_;
  int64_t count_ = 1, work_;
  Output out_[2];
};

// Strides of a result over all dims of x: 0 where reduced.
Ints spread(const Tensor& out, const Tensor& x, uint64_t mask, bool keepdim) {
  Ints strides(x.dim());
  int64_t at = 0;
  for (int64_t d = 0; d < x.dim(); ++d) {
    bool gone = mask >> d & 1;
    strides[d] = gone ? 0 : out.strides()[keepdim ? d : at];
    at += !gone;
  }
  return strides;
}

uint64_t dim_mask(const Ints& dims, int64_t ndim) {
  if (dims.empty()) return ~uint64_t{0};
  uint64_t mask = 0;
  for (int64_t d : wrap_dims(dims, ndim)) mask |= uint64_t{1} << d;
  return mask;
}

}  // namespace

void reduce(Reduction op, DType computed, const Tensor& x, const Ints& dims, bool keepdim, double p,
            const Tensor& out, const Tensor& out2) {
  LoopNest nest(x.sizes());
  uint64_t mask = dim_mask(dims, x.dim());
  nest.add(x);
  Ints strides = spread(out, x, mask, keepdim);
  nest.add(x.sizes(), strides, out.itemsize());
  if (out2.defined()) nest.add(x.sizes(), spread(out2, x, mask, keepdim), out2.itemsize());
  // Kept dims of size 1 tell nothing; without elements the order is of no account.
  nest.order();
  if (nest.numel > 0) nest.merge();
  Reducer run(op, computed, x, nest, p, out2.defined() ? 2 : 1);
  FB_CHECK_IMPL(run.defined(), "reduction not implemented for '", scalar_type_name(computed), "'");
  run.set_output(0, out);
  if (out2.defined()) run.set_output(1, out2);
  run();
}

Tensor sum_to(const Tensor& x, const Ints& shape) {
  if (x.sizes() == shape) return x;
  int64_t lead = x.dim() - static_cast<int64_t>(shape.size());
  FB_CHECK(lead >= 0, "sum_to: expected a shape of at most ", x.dim(), " dimensions, got ", shape);
  Ints dims, kept(x.dim(), 1);
  for (int64_t d = 0; d < x.dim(); ++d) {
    int64_t want = d < lead ? 1 : shape[d - lead];
    FB_CHECK(d < lead || want == x.sizes()[d] || want == 1, "sum_to: shape ", x.sizes(),
             " is no broadcast of ", shape);
    if (d < lead || (want == 1 && x.sizes()[d] != 1))
      dims.push_back(d);
    else
      kept[d] = x.sizes()[d];
  }
  if (dims.empty()) return x;
  Tensor out = empty(kept, x.dtype());
  reduce(Reduction::Sum, x.dtype(), x, dims, true, 0, out);
  return alias(out, shape, contiguous_strides(shape), 0);
}

}  // namespace flambeau::kernels
