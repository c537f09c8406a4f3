// Kernels of flambeau/ops/softmax.py. A tensor is seen as outer x n x inner around its dim: rows
// when inner is 1, blocks of columns when it is wide, lines gathered one by one between. Half
// formats are computed in float, row by row.
#include <cmath>
#include <vector>

#include "core/parallel.h"
#include "gen/kernels.h"
#include "kernels/copy.h"
#include "kernels/softmax_rows.h"

namespace flambeau::kernels {
namespace {

constexpr int64_t kNarrow = 16;   // fewer columns than this are gathered line by line
constexpr int64_t kWork = 16384;  // elements worth a thread

struct Shape {
  int64_t outer = 1, n = 1, inner = 1;
  Shape(const Tensor& x, int64_t dim) {
    if (x.dim() == 0) return;
    dim = wrap_dim(dim, x.dim());
    for (int64_t d = 0; d < x.dim(); ++d) (d < dim ? outer : d == dim ? n : inner) *= x.sizes()[d];
  }
};

// One line of a tensor as values of T: where it lies when it can be used directly, else a converted
// copy.
template <class T>
struct Reader {
  Tensor x;
  int64_t n, inner;
  bool direct;
  std::vector<T> buffer;
  Reader(const Tensor& t, const Shape& s)
      : x(t), n(s.n), inner(s.inner), direct(inner == 1 && t.dtype() == dtype_of<T>) {
    if (!direct) buffer.resize(n);
  }
  const T* line(int64_t i) {
    int64_t at = i / inner * n * inner + i % inner;
    if (direct) return x.data<T>() + at;
    const char* p = static_cast<const char*>(x.data_ptr()) + at * x.itemsize();
    if (inner == 1)
      convert(x.dtype(), p, dtype_of<T>, buffer.data(), n);
    else
      for (int64_t k = 0; k < n; ++k)
        convert(x.dtype(), p + k * inner * x.itemsize(), dtype_of<T>, &buffer[k], 1);
    return buffer.data();
  }
};

template <class T>
struct Writer {
  Tensor y;
  int64_t n, inner;
  bool direct;
  std::vector<T> buffer;
  Writer(const Tensor& t, const Shape& s)
      : y(t), n(s.n), inner(s.inner), direct(inner == 1 && t.dtype() == dtype_of<T>) {
    if (!direct) buffer.resize(n);
  }
  T* line(int64_t i) { return direct ? y.data<T>() + i * n : buffer.data(); }
  void finish(int64_t i) {
    if (direct) return;
    char* p = static_cast<char*>(y.data_ptr()) + (i / inner * n * inner + i % inner) * y.itemsize();
    if (inner == 1)
      convert(dtype_of<T>, buffer.data(), y.dtype(), p, n);
    else
      for (int64_t k = 0; k < n; ++k)
        convert(dtype_of<T>, &buffer[k], y.dtype(), p + k * inner * y.itemsize(), 1);
  }
};

template <class F>
void visit_compute(DType d, F&& f) {
  if (d == DType::Float64)
    f.template operator()<double>();
  else
    f.template operator()<float>();
}

bool streamed(const Tensor& y) {
  return y.numel() * y.itemsize() > streaming_threshold();
}

template <class F>
void for_lines(const Shape& s, const F& f) {
  parallel_for(0, s.outer * s.inner, std::max<int64_t>(1, kWork / std::max<int64_t>(s.n, 1)), f);
}

// f(offset, columns) for blocks of columns: `offset` is that of the block's first element.
template <class F>
void for_columns(const Shape& s, const F& f) {
  int64_t width = kColumns;
  if (s.outer < num_threads() && s.outer * s.n * s.inner > 2 * kWork) {
    int64_t parts = (num_threads() + s.outer - 1) / s.outer;
    width = std::min(width, ((s.inner + parts - 1) / parts + 63) / 64 * 64);
  }
  int64_t blocks = (s.inner + width - 1) / width;
  int64_t grain =
      std::max<int64_t>(1, kWork / std::max<int64_t>(1, s.n * std::min(width, s.inner)));
  parallel_for(0, s.outer * blocks, grain, [&](int64_t from, int64_t to) {
    for (int64_t b = from; b < to; ++b) {
      int64_t j = b % blocks * width;
      f(b / blocks * s.n * s.inner + j, std::min(width, s.inner - j));
    }
  });
}

// A contiguous tensor of dtype d with the values of x; for results one to compute into.
Tensor dense(const Tensor& x, DType d) {
  return contiguous(to_dtype(x, d));
}
struct Target {
  Tensor out, work;
  Target(const Tensor& o, DType d)
      : out(o), work(o.dtype() == d && o.is_contiguous() ? o : empty(o.sizes(), d)) {}
  void finish() {
    if (!work.is_same(out)) copy(out, work);
  }
};

template <class T>
void forward_lines(const Tensor& out, const Tensor& x, const Shape& s, bool log) {
  auto& fn = softmax_fns<T>();
  bool stream = streamed(out);
  for_lines(s, [&](int64_t from, int64_t to) {
    Reader<T> in(x, s);
    Writer<T> y(out, s);
    std::vector<T> work(stream && !log ? s.n : 0);
    for (int64_t i = from; i < to; ++i) {
      const T* row = in.line(i);
      T* to_row = y.line(i);
      if (log) {
        T m;
        double sum;
        fn.row_stats(row, s.n, &m, &sum);
        fn.shift(row, to_row, s.n, m, std::log(static_cast<T>(sum)), stream && y.direct);
      } else {
        fn.softmax(row, stream && y.direct ? work.data() : to_row, to_row, s.n, stream && y.direct);
      }
      y.finish(i);
    }
  });
}

template <class T>
void forward_columns(const Tensor& out, const Tensor& input, const Shape& s, bool log) {
  auto& fn = softmax_fns<T>();
  Tensor x = dense(input, dtype_of<T>);
  Target y(out, dtype_of<T>);
  bool stream = streamed(y.work);
  for_columns(s, [&](int64_t at, int64_t w) {
    T largest[kColumns], sum[kColumns];
    const T* from = x.data<T>() + at;
    T* to = y.work.data<T>() + at;
    fn.column_stats(from, s.inner, s.n, w, largest, sum);
    for (int64_t j = 0; j < w; ++j) sum[j] = log ? std::log(sum[j]) : 1 / sum[j];
    (log ? fn.column_shift : fn.column_softmax)(from, to, s.inner, s.n, w, largest, sum, stream);
  });
  y.finish();
}

void forward(const Tensor& out, const Tensor& input, int64_t dim, bool log) {
  Shape s(input, dim);
  if (out.numel() == 0) return;
  DType d = opmath(out.dtype());
  visit_compute(d, [&]<class T>() {
    // The input takes the dtype asked for first, as if by to().
    Tensor x = contiguous(
        input.dtype() == out.dtype() || out.dtype() == d ? input : to_dtype(input, out.dtype()));
    if (s.inner < kNarrow)
      forward_lines<T>(out, x, s, log);
    else
      forward_columns<T>(out, x, s, log);
  });
}

template <class T>
void backward_lines(const Tensor& out, const Tensor& grad, const Tensor& output, const Shape& s,
                    bool log) {
  auto& fn = softmax_fns<T>();
  bool stream = streamed(out);
  for_lines(s, [&](int64_t from, int64_t to) {
    Reader<T> g(grad, s), y(output, s);
    Writer<T> x(out, s);
    for (int64_t i = from; i < to; ++i) {
      const T *gp = g.line(i), *yp = y.line(i);
      if (log)
        fn.log_softmax_backward(gp, yp, x.line(i), s.n, static_cast<T>(fn.row_sum(gp, s.n)),
                                stream && x.direct);
      else
        fn.softmax_backward(gp, yp, x.line(i), s.n, static_cast<T>(fn.row_dot(gp, yp, s.n)),
                            stream && x.direct);
      x.finish(i);
    }
  });
}

template <class T>
void backward_columns(const Tensor& out, const Tensor& grad, const Tensor& output, const Shape& s,
                      bool log) {
  auto& fn = softmax_fns<T>();
  Tensor g = dense(grad, dtype_of<T>), y = dense(output, dtype_of<T>);
  Target x(out, dtype_of<T>);
  bool stream = streamed(x.work);
  for_columns(s, [&](int64_t at, int64_t w) {
    T sum[kColumns];
    const T *gp = g.data<T>() + at, *yp = y.data<T>() + at;
    T* to = x.work.data<T>() + at;
    if (log) {
      fn.column_sum(gp, s.inner, s.n, w, sum);
      fn.column_log_softmax_backward(gp, yp, to, s.inner, s.n, w, sum, stream);
    } else {
      fn.column_dot(gp, yp, s.inner, s.n, w, sum);
      fn.column_softmax_backward(gp, yp, to, s.inner, s.n, w, sum, stream);
    }
  });
  x.finish();
}

void backward(const Tensor& out, const Tensor& grad, const Tensor& output, int64_t dim, bool log) {
  Shape s(output, dim);
  if (out.numel() == 0) return;
  visit_compute(opmath(output.dtype()), [&]<class T>() {
    Tensor g = contiguous(grad), y = contiguous(output);
    if (s.inner < kNarrow)
      backward_lines<T>(out, g, y, s, log);
    else
      backward_columns<T>(out, g, y, s, log);
  });
}

}  // namespace

void softmax(Tensor& out, const Tensor& input, int64_t dim, std::optional<DType>) {
  forward(out, input, dim, false);
}
void log_softmax(Tensor& out, const Tensor& input, int64_t dim, std::optional<DType>) {
  forward(out, input, dim, true);
}

void softmax_backward(Tensor& out, const Tensor& grad, const Tensor& output, int64_t dim, DType) {
  backward(out, grad, output, dim, false);
}
void log_softmax_backward(Tensor& out, const Tensor& grad, const Tensor& output, int64_t dim,
                          DType) {
  backward(out, grad, output, dim, true);
}

}  // namespace flambeau::kernels
