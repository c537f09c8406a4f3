// Kernels of flambeau/ops/embedding.py: rows looked up, summed in bags, and gradients added up by
// row. Every index is checked before its row is read. Gradients are split between threads by rows
// of the table, so that no two threads add to one row and the order of additions does not depend on
// the number of threads.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/parallel.h"
#include "gen/kernels.h"
#include "kernels/copy.h"

namespace flambeau::kernels {
namespace {

Tensor dense(const Tensor& t, DType d) {
  return contiguous(to_dtype(t, d));
}

template <class F>
void visit_compute(DType d, F&& f) {
  switch (d) {
    case DType::Float64:
      return f.template operator()<double>();
    case DType::Complex64:
      return f.template operator()<complex64>();
    case DType::Complex128:
      return f.template operator()<complex128>();
    default:
      return f.template operator()<float>();
  }
}
template <class F>
void visit_real(DType d, F&& f) {
  if (d == DType::Float64)
    f.template operator()<double>();
  else
    f.template operator()<float>();
}

struct Target {
  Tensor out, work;
  Target(const Tensor& o, DType d)
      : out(o), work(o.dtype() == d && o.is_contiguous() ? o : empty(o.sizes(), d)) {}
  void finish() {
    if (!work.is_same(out)) copy(out, work);
  }
};

int64_t rows_per_thread(int64_t width) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(width, 1));
}

void check_rows(const int64_t* index, int64_t n, int64_t rows) {
  for (int64_t i = 0; i < n; ++i)
    FB_CHECK_INDEX(index[i] >= 0 && index[i] < rows, "index out of range in self");
}

std::vector<int64_t> frequencies(const int64_t* index, int64_t n, int64_t rows) {
  std::vector<int64_t> count(rows);
  for (int64_t i = 0; i < n; ++i) ++count[index[i]];
  return count;
}

// out[v] = sum of the terms of row v. `add(from, to, out)` adds the terms of the rows [from, to) to
// zeroed memory.
template <class T, class F>
void accumulate_rows(T* out, int64_t rows, int64_t width, int64_t terms, const F& add) {
  int64_t work = std::max<int64_t>(1, rows) * width + terms * width;
  int64_t grain = std::max<int64_t>(1, rows * kGrain / std::max<int64_t>(1, work));
  parallel_for(0, rows, grain, [&](int64_t from, int64_t to) {
    std::fill(out + from * width, out + to * width, T(0));
    add(from, to);
  });
}

}  // namespace

// embedding
// ---------------------------------------------------------------------------------------------------------------

void embedding(Tensor& out, const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
  Tensor table = contiguous(weight), at = dense(indices, DType::Int64);
  int64_t width = weight.size(1), bytes = width * weight.itemsize(), n = at.numel();
  const int64_t* index = at.data<int64_t>();
  check_rows(index, n, weight.size(0));
  const char* from = static_cast<const char*>(table.data_ptr());
  char* to = static_cast<char*>(out.data_ptr());
  bool stream = n * bytes > streaming_threshold() && bytes % 64 == 0;
  parallel_for(0, n, rows_per_thread(width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (i + 4 < end) __builtin_prefetch(from + index[i + 4] * bytes);
      if (stream)
        stream_bytes(to + i * bytes, from + index[i] * bytes, bytes);
      else
        std::memcpy(to + i * bytes, from + index[i] * bytes, bytes);
    }
  });
}

void embedding_dense_backward(Tensor& out, const Tensor& grad, const Tensor& indices, int64_t rows,
                              int64_t padding, bool by_frequency) {
  Tensor at = dense(indices, DType::Int64);
  int64_t width = out.size(1), n = at.numel();
  const int64_t* index = at.data<int64_t>();
  check_rows(index, n, rows);
  std::vector<int64_t> count;
  if (by_frequency) count = frequencies(index, n, rows);
  visit_compute(opmath(out.dtype()), [&]<class T>() {
    Tensor g = dense(grad, dtype_of<T>);
    Target result(out, dtype_of<T>);
    const T* gp = g.data<T>();
    T* to = result.work.data<T>();
    accumulate_rows(to, rows, width, n, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < n; ++i) {
        int64_t v = index[i];
        if (v < begin || v >= end || v == padding) continue;
        const T* row = gp + i * width;
        T* sum = to + v * width;
        if (by_frequency) {
          auto scale =
              decltype(std::real(T()))(1) / static_cast<decltype(std::real(T()))>(count[v]);
          for (int64_t j = 0; j < width; ++j) sum[j] += row[j] * scale;
        } else {
#pragma omp simd
          for (int64_t j = 0; j < width; ++j) sum[j] += row[j];
        }
      }
    });
    result.finish();
  });
}

void embedding_renorm_(const Tensor& weight, const Tensor& indices, double max_norm,
                       double norm_type) {
  Tensor at = dense(indices, DType::Int64);
  std::vector<int64_t> rows(at.data<int64_t>(), at.data<int64_t>() + at.numel());
  check_rows(rows.data(), at.numel(), weight.size(0));
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  int64_t width = weight.size(1);
  Tensor buffer = empty({width}, DType::Float64);
  double* x = buffer.data<double>();
  for (int64_t v : rows) {
    Tensor row =
        alias(weight, {width}, {weight.strides()[1]}, weight.offset() + v * weight.strides()[0]);
    copy(buffer, row);
    double norm = 0;
    for (int64_t j = 0; j < width; ++j) {
      double a = std::abs(x[j]);
      if (std::isinf(norm_type))
        norm = std::max(norm, a);
      else
        norm += norm_type == 2   ? a * a
                : norm_type == 1 ? a
                : norm_type == 0 ? a != 0
                                 : std::pow(a, norm_type);
    }
    if (!std::isinf(norm_type) && norm_type != 0)
      norm = norm_type == 2 ? std::sqrt(norm) : std::pow(norm, 1 / norm_type);
    if (!(norm > max_norm)) continue;
    double scale = max_norm / (norm + 1e-7);
    for (int64_t j = 0; j < width; ++j) x[j] *= scale;
    copy(row, buffer);
  }
}

// embedding_bag
// -----------------------------------------------------------------------------------------------------------

namespace {

// Which indices belong to which bag, checked.
struct Bags {
  Tensor indices, offsets;
  const int64_t *index, *offset;
  int64_t n, count, padding;
  Bags(const Tensor& i, const Tensor& o, int64_t rows, bool include_last, int64_t pad)
      : indices(dense(i, DType::Int64)),
        offsets(dense(o, DType::Int64)),
        index(indices.data<int64_t>()),
        offset(offsets.data<int64_t>()),
        n(indices.numel()),
        count(offsets.numel() - include_last),
        padding(pad < 0 && pad != -1 ? pad + rows : pad) {
    if (offsets.numel()) {
      FB_CHECK(offset[0] == 0,
               "embedding_bag: offsets[0] has to be 0, i.e., the first sequence in the mini-batch "
               "has to "
               "start from position 0. However, got ",
               offset[0]);
      int64_t last = offset[offsets.numel() - 1];
      FB_CHECK(last <= n, "embedding_bag: offsets[-1] can not be greater than input's length ", n,
               " but got offsets[-1] of ", last);
    }
    for (int64_t b = 1; b < offsets.numel(); ++b)
      FB_CHECK(offset[b] >= offset[b - 1], "embedding_bag: offsets must not decrease, but offsets[",
               b, "] is ", offset[b], " after ", offset[b - 1]);
    for (int64_t k = 0; k < n; ++k)
      FB_CHECK(index[k] >= 0 && index[k] < rows, "embedding_bag: Index ", k,
               " of input takes value ", index[k], " which is not in the valid range [0, ", rows,
               ")");
  }
  int64_t begin(int64_t b) const { return offset[b]; }
  int64_t end(int64_t b) const { return b + 1 < offsets.numel() ? offset[b + 1] : n; }
  int64_t used(int64_t b) const {
    int64_t total = 0;
    for (int64_t k = begin(b); k < end(b); ++k) total += index[k] != padding;
    return total;
  }
};

template <class T>
void bag_sum(const Bags& bags, int64_t b, const T* table, const T* scale, int64_t width, bool mean,
             T* to) {
  std::fill_n(to, width, T(0));
  for (int64_t k = bags.begin(b); k < bags.end(b); ++k) {
    if (bags.index[k] == bags.padding) continue;
    const T* row = table + bags.index[k] * width;
    T by = scale ? scale[k] : T(1);
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) to[j] += row[j] * by;
  }
  int64_t used = mean ? bags.used(b) : 1;
  if (used > 1)
    for (int64_t j = 0; j < width; ++j) to[j] /= static_cast<T>(used);
}

template <class T>
void bag_max(const Bags& bags, int64_t b, const T* table, int64_t width, T* to, int64_t* from) {
  std::fill_n(to, width, T(0));
  std::fill_n(from, width, int64_t(-1));
  bool first = true;
  for (int64_t k = bags.begin(b); k < bags.end(b); ++k) {
    int64_t v = bags.index[k];
    if (v == bags.padding) continue;
    for (int64_t j = 0; j < width; ++j) {
      T x = table[v * width + j];
      if (first || x > to[j]) to[j] = x, from[j] = v;
    }
    first = false;
  }
}

}  // namespace

void embedding_bag(Tensor& out, Tensor& maximum_indices, const Tensor& weight,
                   const Tensor& indices, const Tensor& offsets, bool, int64_t mode, bool,
                   const OptTensor& per_sample_weights, bool include_last, int64_t padding) {
  Bags bags(indices, offsets, weight.size(0), include_last, padding);
  int64_t width = weight.size(1);
  int64_t per_bag = width * (bags.n / std::max<int64_t>(1, bags.count) + 1);
  visit_real(opmath(weight.dtype()), [&]<class T>() {
    Tensor table = dense(weight, dtype_of<T>), scale;
    if (per_sample_weights) scale = dense(*per_sample_weights, dtype_of<T>);
    Target result(out, dtype_of<T>);
    parallel_for(0, bags.count, rows_per_thread(per_bag), [&](int64_t from, int64_t to) {
      for (int64_t b = from; b < to; ++b) {
        T* y = result.work.data<T>() + b * width;
        if (mode == 2)
          bag_max(bags, b, table.data<T>(), width, y, maximum_indices.data<int64_t>() + b * width);
        else
          bag_sum(bags, b, table.data<T>(), scale.defined() ? scale.data<T>() : nullptr, width,
                  mode == 1, y);
      }
    });
    result.finish();
  });
}

void embedding_bag_backward(Tensor& out, const Tensor& grad, const Tensor& indices,
                            const Tensor& offsets, int64_t rows, bool by_frequency, int64_t mode,
                            const OptTensor& per_sample_weights, bool include_last, int64_t padding,
                            const Tensor& maximum_indices) {
  Bags bags(indices, offsets, rows, include_last, padding);
  int64_t width = out.size(1);
  std::vector<int64_t> count;
  if (by_frequency) count = frequencies(bags.index, bags.n, rows);
  visit_real(opmath(out.dtype()), [&]<class T>() {
    Tensor g = dense(grad, dtype_of<T>), scale;
    if (per_sample_weights) scale = dense(*per_sample_weights, dtype_of<T>);
    Target result(out, dtype_of<T>);
    const T* gp = g.data<T>();
    T* to = result.work.data<T>();
    accumulate_rows(to, rows, width, bags.n, [&](int64_t from, int64_t until) {
      for (int64_t b = 0; b < bags.count; ++b) {
        const T* row = gp + b * width;
        if (mode == 2) {
          const int64_t* source = maximum_indices.data<int64_t>() + b * width;
          for (int64_t j = 0; j < width; ++j)
            if (source[j] >= from && source[j] < until) to[source[j] * width + j] += row[j];
          continue;
        }
        T share = mode == 1 ? T(1) / static_cast<T>(std::max<int64_t>(1, bags.used(b))) : T(1);
        for (int64_t k = bags.begin(b); k < bags.end(b); ++k) {
          int64_t v = bags.index[k];
          if (v < from || v >= until || v == bags.padding) continue;
          T by = share * (scale.defined() ? scale.data<T>()[k] : T(1));
          if (by_frequency) by /= static_cast<T>(count[v]);
#pragma omp simd
          for (int64_t j = 0; j < width; ++j) to[v * width + j] += row[j] * by;
        }
      }
    });
    result.finish();
  });
}

void embedding_bag_samples_backward(Tensor& out, const Tensor& grad, const Tensor& weight,
                                    const Tensor& indices, const Tensor& offsets, bool include_last,
                                    int64_t padding) {
  Bags bags(indices, offsets, weight.size(0), include_last, padding);
  int64_t width = weight.size(1);
  visit_real(opmath(out.dtype()), [&]<class T>() {
    Tensor g = dense(grad, dtype_of<T>), table = dense(weight, dtype_of<T>);
    Target result(out, dtype_of<T>);
    std::fill_n(result.work.data<T>(), bags.n, T(0));
    parallel_for(0, bags.count, rows_per_thread(width), [&](int64_t from, int64_t to) {
      for (int64_t b = from; b < to; ++b)
        for (int64_t k = bags.begin(b); k < bags.end(b); ++k) {
          if (bags.index[k] == bags.padding) continue;
          const T *x = g.data<T>() + b * width, *w = table.data<T>() + bags.index[k] * width;
          T sum = 0;
#pragma omp simd reduction(+ : sum)
          for (int64_t j = 0; j < width; ++j) sum += x[j] * w[j];
          result.work.data<T>()[k] = sum;
        }
    });
    result.finish();
  });
}

}  // namespace flambeau::kernels
