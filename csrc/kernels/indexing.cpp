#include "gen/kernels.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "core/parallel.h"
#include "kernels/copy.h"
#include "kernels/move.h"
#include "kernels/selection.h"
#include "kernels/walk.h"

namespace flambeau::kernels {
namespace {

Tensor as_long(const Tensor& index) {
  return contiguous(to_dtype(index, DType::Int64));
}

bool same_geometry(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides();
}

// out becomes a copy of input, unless the call is in place.
void start_from(Tensor& out, const Tensor& input) {
  if (!out.is_same(input) &&
      !(out.shares_storage(input) && same_geometry(out, input) && out.offset() == input.offset()))
    copy(out, input);
}

template <class T>
T plus(T a, T b) {
  if constexpr (is_truth<T>)
    return a || b;
  else
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
}
template <class T>
T times(T a, T b) {
  if constexpr (is_truth<T>)
    return a && b;
  else
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
}
template <class T>
constexpr bool is_cplx = std::is_same_v<T, complex64> || std::is_same_v<T, complex128>;

// Places (in elements of self, relative to the block) that k broadcast index tensors name; checked.
std::vector<int64_t> places(const Tensor& self, const Tensors& indices, int64_t start) {
  int64_t m = indices[0].numel();
  std::vector<int64_t> out(m, 0);
  for (size_t k = 0; k < indices.size(); ++k) {
    Tensor index = as_long(indices[k]);
    const int64_t* at = index.data<int64_t>();
    int64_t n = self.sizes()[start + k], stride = self.strides()[start + k];
    for (int64_t i = 0; i < m; ++i) {
      int64_t j = at[i];
      FB_CHECK_INDEX(j >= -n && j < n, "index ", j, " is out of bounds for dimension ", start + k,
                     " with size ", n);
      out[i] += (j < 0 ? j + n : j) * stride;
    }
  }
  return out;
}

// The trailing dims of x from `from` on, as one dense run of elements? Then its length, else 0.
int64_t dense_run(const Tensor& x, size_t from) {
  int64_t step = 1;
  for (size_t d = x.sizes().size(); d-- > from;) {
    if (x.sizes()[d] != 1 && x.strides()[d] != step) return 0;
    step *= x.sizes()[d];
  }
  return step;
}

struct Block {  // the three groups of dims of index_block: before, the indexed block, after
  std::vector<int64_t> before, at, after;
  int64_t run;  // length of a dense trailing run, or 0
};

Block block_of(const Tensor& self, const Tensors& indices, int64_t start) {
  size_t tail = start + indices.size();
  int64_t run = dense_run(self, tail);
  return {offsets(self.sizes(), self.strides(), 0, start), places(self, indices, start),
          run ? std::vector<int64_t>{}
              : offsets(self.sizes(), self.strides(), tail, self.sizes().size()),
          run};
}

// Runs f(pointer into self, linear position in the result) for every element run; parallel over the
// indices when `parallel`.
template <class U, class F>
void each_run(const Block& b, bool parallel, const F& f) {
  int64_t m = static_cast<int64_t>(b.at.size()),
          run = b.run ? b.run : static_cast<int64_t>(b.after.size());
  int64_t total = static_cast<int64_t>(b.before.size()) * m;
  auto body = [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) f(b.before[i / m] + b.at[i % m], i * run, run);
  };
  if (!m || !run) return;
  if (parallel)
    parallel_for(0, total, std::max<int64_t>(1, kGrain / run), body);
  else
    body(0, total);
}

// Note [Sums at indices]
// Many values may fall on one place, and a half type stops growing at 256 or 2048 ones: places are
// added up in the wider type and rounded once. A result of the size of what is added is widened as a
// whole; of a large one only the places that are named, each once (`Places`).
bool widens(const Tensor& out) {
  return opmath(out.dtype()) != out.dtype();
}
bool widens_whole(const Tensor& out, int64_t added) {
  return added >= out.numel() / 8;
}
Tensor widened(const Tensor& t) {
  return contiguous(to_dtype(t, opmath(t.dtype())));
}

// Distinct places in order, and which of them each of the given ones is.
struct Places {
  std::vector<int64_t> distinct;
  Tensor which;

  explicit Places(const std::vector<int64_t>& all)
      : distinct(all), which(empty({static_cast<int64_t>(all.size())}, DType::Int64)) {
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    int64_t* w = which.data<int64_t>();
    for (size_t i = 0; i < all.size(); ++i)
      w[i] = std::lower_bound(distinct.begin(), distinct.end(), all[i]) - distinct.begin();
  }
  int64_t count() const { return static_cast<int64_t>(distinct.size()); }
};

// f(the named places of out as a line of the wider type, which of them each addend goes to); what f
// leaves there is put back.
template <class F>
void on_widened_places(const Tensor& out, const std::vector<int64_t>& all, const F& f) {
  const Places at(all);
  Tensor line = empty({at.count()}, out.dtype());
  visit_bytes(out.dtype(), [&]<class U>() {
    for (int64_t i = 0; i < at.count(); ++i) line.data<U>()[i] = out.data<U>()[at.distinct[i]];
  });
  Tensor wide = widened(line);
  f(wide, at.which);
  copy(line, wide);
  visit_bytes(out.dtype(), [&]<class U>() {
    for (int64_t i = 0; i < at.count(); ++i) out.data<U>()[at.distinct[i]] = line.data<U>()[i];
  });
}

}  // namespace

void index_block(Tensor& out, const Tensor& self, const Tensors& indices, int64_t start) {
  if (out.numel() == 0) {
    places(self, indices, start);
    return;
  }
  Block b = block_of(self, indices, start);
  Tensor dense = out.is_contiguous() ? out : empty(out.sizes(), out.dtype());
  visit_bytes(self.dtype(), [&]<class U>() {
    const U* in = self.data<U>();
    U* o = dense.data<U>();
    if (b.run == 1) {
      int64_t m = static_cast<int64_t>(b.at.size());
      parallel_for(0, static_cast<int64_t>(b.before.size()) * m, kGrain,
                   [&](int64_t from, int64_t to) {
                     for (int64_t i = from; i < to; ++i) o[i] = in[b.before[i / m] + b.at[i % m]];
                   });
    } else if (b.run) {
      each_run<U>(b, true, [&](int64_t at, int64_t pos, int64_t run) {
        std::memcpy(static_cast<void*>(o + pos), in + at, run * sizeof(U));
      });
    } else {
      each_run<U>(b, true, [&](int64_t at, int64_t pos, int64_t run) {
        for (int64_t j = 0; j < run; ++j) o[pos + j] = in[at + b.after[j]];
      });
    }
  });
  if (!dense.is_same(out)) copy(out, dense);
}

namespace {

// self at the block += values, which are of the wider type and dense (Note [Sums at indices]).
void add_widened(const Tensor& self, const Tensors& indices, int64_t start, const Tensor& values) {
  if (widens_whole(self, values.numel())) {
    Tensor wide = widened(self), out = self;
    index_block_put_(wide, indices, start, values, true);
    return copy(out, wide);
  }
  const Block b = block_of(self, indices, start);
  const Places at(b.at);
  const int64_t outer = static_cast<int64_t>(b.before.size()), m = at.which.numel(),
                run = values.numel() / (outer * m);
  visit(self.dtype(), [&]<class T>() {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      T* o = self.data<T>();
      const float* v = values.data<float>();
      const int64_t* which = at.which.data<int64_t>();
      auto each = [&](int64_t i, float* sum, const auto& f) {
        for (int64_t k = 0; k < at.count(); ++k)
          for (int64_t j = 0; j < run; ++j)
            f(o[b.before[i] + at.distinct[k] + (b.run ? j : b.after[j])], sum[k * run + j]);
      };
      parallel_for(0, outer, std::max<int64_t>(1, kGrain / (m * run)), [&](int64_t a, int64_t z) {
        std::vector<float> sum(at.count() * run);
        for (int64_t i = a; i < z; ++i) {
          each(i, sum.data(), [](T& place, float& x) { x = static_cast<float>(place); });
          for (int64_t k = 0; k < m; ++k)
            for (int64_t j = 0; j < run; ++j)
              sum[which[k] * run + j] += v[(i * m + k) * run + j];
          each(i, sum.data(), [](T& place, float& x) { place = T(x); });
        }
      });
    }
  });
}

}  // namespace

void index_block_put_(const Tensor& self, const Tensors& indices, int64_t start,
                      const Tensor& values, bool accumulate) {
  if (accumulate && widens(self) && values.numel() > 0)
    return add_widened(self, indices, start, widened(values));
  Block b = block_of(self, indices, start);
  if (values.numel() == 0) return;
  bool one = true;  // a single value, expanded
  for (int64_t d = 0; d < values.dim(); ++d)
    one &= values.sizes()[d] == 1 || values.strides()[d] == 0;
  // What is written may be read for another place: then it is read first.
  Tensor source = values.shares_storage(self) ? clone(values, MemoryFormat::Contiguous)
                  : one                       ? values
                                              : contiguous(values);
  one &= !values.shares_storage(self);
  auto put = [&]<class T>(auto&& combine) {
    T* o = self.data<T>();
    const T* v = source.data<T>();
    each_run<T>(b, false, [&](int64_t at, int64_t pos, int64_t run) {
      for (int64_t j = 0; j < run; ++j) {
        T& place = o[at + (b.run ? j : b.after[j])];
        place = combine(place, one ? *v : v[pos + j]);
      }
    });
  };
  if (accumulate)
    visit(self.dtype(), [&]<class T>() { put.template operator()<T>(plus<T>); });
  else
    visit_bytes(self.dtype(),
                [&]<class U>() { put.template operator()<U>([](U, U y) { return y; }); });
}

// gather and scatter
// ---------------------------------------------------------------------------------------------------

namespace {

// The positions of `index` as seen from tensors a and b, of which a is addressed through the index
// along dim: A x N x B of them. All indices are checked first, so nothing is half done when one is
// refused.
struct IndexWalk {
  Tensor index;
  std::vector<int64_t> a0, a1, b0, b1;  // offsets before dim and after it
  int64_t A = 0, N = 0, B = 0, da = 0, db = 0, limit = 0;

  IndexWalk(const Tensor& a, const Tensor& b, int64_t dim, const Tensor& given, const char* op)
      : index(as_long(given)) {
    if (index.numel() == 0) return;
    if (index.shares_storage(a) ||
        index.shares_storage(b))  // writing must not change what was checked
      index = clone(index, MemoryFormat::Contiguous);
    int64_t d = wrap_dim(dim, index.dim());
    Ints sizes = index.sizes().empty() ? Ints{1} : index.sizes();
    Ints sa = a.sizes().empty() ? Ints{1} : a.strides(),
         sb = b.sizes().empty() ? Ints{1} : b.strides();
    limit = a.sizes().empty() ? 1 : a.sizes()[d];
    check(op, d);
    size_t n = sizes.size();
    a0 = offsets(sizes, sa, 0, d), b0 = offsets(sizes, sb, 0, d);
    a1 = offsets(sizes, sa, d + 1, n), b1 = offsets(sizes, sb, d + 1, n);
    A = static_cast<int64_t>(a0.size()), N = sizes[d], B = static_cast<int64_t>(a1.size());
    da = sa[d], db = sb[d];
  }

  // Calls f(i, from, to) for shares of the positions: those of row i with a place in [from, to)
  // after dim. Shares are independent, and split over threads.
  template <class F>
  void shares(const F& f) const {
    if (A > 1 || B == 1)
      parallel_for(0, A, std::max<int64_t>(1, kGrain / 4 / (N * B)), [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) f(i, 0, B);
      });
    else if (A == 1)
      parallel_for(0, B, std::max<int64_t>(16, kGrain / 4 / N),
                   [&](int64_t from, int64_t to) { f(0, from, to); });
  }

  // f(offset in a, offset in b) for every position, in order.
  template <class F>
  void each_pair(const F& f) const {
    const int64_t* at = index.data<int64_t>();
    for (int64_t i = 0; i < A; ++i)
      for (int64_t j = 0; j < N; ++j)
        for (int64_t k = 0; k < B; ++k)
          f(a0[i] + *at++ * da + a1[k], b0[i] + j * db + b1[k]);
  }

 private:
  void check(const char* op, int64_t dim) const {
    const int64_t* at = index.data<int64_t>();
    parallel_for(0, index.numel(), kGrain, [&](int64_t from, int64_t to) {
      int64_t bad = FB_ISA_DISPATCH(first_outside)(at + from, to - from, limit);
      if (bad < 0) return;
      fail(ErrorKind::Runtime, op, "(): index ", at[from + bad], " is out of bounds for dimension ",
           dim, " with size ", limit);
    });
  }
};

// f(offset in a, offset in b) for every position.
template <class F>
void each_indexed(const IndexWalk& w, const F& f) {
  const int64_t* at = w.index.data<int64_t>();
  w.shares([&](int64_t i, int64_t from, int64_t to) {
    if (w.B == 1) {
      const int64_t* row = at + i * w.N;
      int64_t pa = w.a0[i] + w.a1[0], pb = w.b0[i] + w.b1[0];
      for (int64_t j = 0; j < w.N; ++j) f(pa + row[j] * w.da, pb + j * w.db);
      return;
    }
    for (int64_t j = 0; j < w.N; ++j) {
      const int64_t* row = at + (i * w.N + j) * w.B;
      for (int64_t k = from; k < to; ++k)
        f(w.a0[i] + row[k] * w.da + w.a1[k], w.b0[i] + j * w.db + w.b1[k]);
    }
  });
}

// f(offsets in a, offsets in b, how many) for runs of positions: for what exists for many types and
// ways to combine, and should be compiled quickly.
using Runs = std::function<void(const int64_t*, const int64_t*, int64_t)>;
void each_run_of_places(const IndexWalk& w, const Runs& f) {
  const int64_t* at = w.index.data<int64_t>();
  w.shares([&](int64_t i, int64_t from, int64_t to) {
    constexpr int64_t kRun = 512;
    int64_t x[kRun], y[kRun], n = 0;
    for (int64_t j = 0; j < w.N; ++j)
      for (int64_t k = from; k < to; ++k) {
        x[n] = w.a0[i] + at[(i * w.N + j) * w.B + k] * w.da + w.a1[k];
        y[n] = w.b0[i] + j * w.db + w.b1[k];
        if (++n == kRun) f(x, y, std::exchange(n, 0));
      }
    if (n) f(x, y, n);
  });
}

// Lines of `out` (dense along dim, nothing behind it) from those of `in`; large results past the
// caches. False: the layout is another one.
bool gather_lines(const IndexWalk& x, const Tensor& out, const Tensor& in) {
  if (x.index.numel() == 0) return true;
  if (x.B != 1 || x.db != 1) return false;
  constexpr int64_t kBlock = 1024;
  const int64_t size = in.itemsize(), *at = x.index.data<int64_t>();
  const bool streamed = x.A * x.N * size > streaming_threshold() && !out.shares_storage(in);
  auto read = FB_ISA_DISPATCH(gather_line);
  auto put = FB_ISA_DISPATCH(stream);
  parallel_for(0, x.A, std::max<int64_t>(1, kGrain / 4 / x.N), [&](int64_t from, int64_t to) {
    alignas(64) char block[kBlock * 16];
    for (int64_t i = from; i < to; ++i) {
      IndexedLine line{in.data<char>() + x.a0[i] * size, x.da, x.limit};
      char* o = out.data<char>() + x.b0[i] * size;
      for (int64_t j = 0; j < x.N; j += kBlock) {
        int64_t n = std::min(kBlock, x.N - j);
        read(int(size), line, at + i * x.N + j, n, streamed ? block : o + j * size);
        if (streamed) put(o + j * size, block, n * size, {});
      }
    }
    if (streamed) stream_fence();
  });
  return true;
}

}  // namespace

void gather(Tensor& out, const Tensor& input, int64_t dim, const Tensor& index, bool) {
  IndexWalk w(input, out, dim, index, "gather");
  if (gather_lines(w, out, input)) return;
  visit_bytes(input.dtype(), [&]<class U>() {
    const U* in = input.data<U>();
    U* o = out.data<U>();
    each_indexed(w, [=](int64_t x, int64_t y) { o[y] = in[x]; });
  });
}

void scatter(Tensor& out, const Tensor& input, int64_t dim, const Tensor& index,
             const Tensor& src) {
  IndexWalk w(out, src, dim, index, "scatter");
  start_from(out, input);
  visit_bytes(out.dtype(), [&]<class U>() {
    U* o = out.data<U>();
    const U* s = src.data<U>();
    each_indexed(w, [=](int64_t x, int64_t y) { o[x] = s[y]; });
  });
}

void scatter_value(Tensor& out, const Tensor& input, int64_t dim, const Tensor& index,
                   const Scalar& value) {
  Tensor one = scalar_tensor(value, out.dtype());
  scatter(out, input, dim, index, alias(one, index.sizes(), Ints(index.sizes().size()), one.offset()));
}

void scatter_add(Tensor& out, const Tensor& input, int64_t dim, const Tensor& index,
                 const Tensor& src) {
  if (widens(out)) {
    if (!widens_whole(out, index.numel()))
      return scatter_reduce(out, input, dim, index, src, "sum", true);
    Tensor wide = widened(input);
    scatter_add(wide, wide, dim, index, widened(src));
    return copy(out, wide);
  }
  IndexWalk w(out, src, dim, index, "scatter_add");
  start_from(out, input);
  visit(out.dtype(), [&]<class T>() {
    T* o = out.data<T>();
    const T* s = src.data<T>();
    each_indexed(w, [=](int64_t x, int64_t y) { o[x] = plus(o[x], s[y]); });
  });
}

namespace {

// scatter_reduce of few entries into a large `out` of a half type (Note [Sums at indices]).
void scatter_few(const Tensor& out, const IndexWalk& w, const Tensor& src,
                 const std::string& reduce, bool include_self) {
  std::vector<int64_t> to, from;
  w.each_pair([&](int64_t x, int64_t y) { to.push_back(x), from.push_back(y); });
  Tensor added = empty({static_cast<int64_t>(from.size())}, src.dtype());
  visit_bytes(src.dtype(), [&]<class U>() {
    for (size_t i = 0; i < from.size(); ++i) added.data<U>()[i] = src.data<U>()[from[i]];
  });
  on_widened_places(out, to, [&](Tensor& wide, const Tensor& which) {
    scatter_reduce(wide, wide, 0, which, widened(added), reduce, include_self);
  });
}

}  // namespace

void scatter_reduce(Tensor& out, const Tensor& input, int64_t dim, const Tensor& index,
                    const Tensor& src, const std::string& reduce, bool include_self) {
  FB_CHECK(!out.is_complex() || reduce == "sum" || reduce == "prod" || reduce == "mean",
           "scatter_reduce: amax and amin are not implemented for complex dtypes");
  const bool sums = reduce != "amax" && reduce != "amin";
  if (sums && widens(out) && widens_whole(out, index.numel())) {
    Tensor wide = widened(input);
    scatter_reduce(wide, wide, dim, index, widened(src), reduce, include_self);
    return copy(out, wide);
  }
  IndexWalk w(out, src, dim, index, "scatter_reduce");
  start_from(out, input);
  if (sums && widens(out)) return scatter_few(out, w, src, reduce, include_self);
  Tensor count = reduce == "mean" ? empty(out.sizes(), DType::Int64) : Tensor();
  if (count) fill(count, Scalar(include_self ? 1 : 0));
  auto each = [&](const Runs& f) { each_run_of_places(w, f); };
  visit(out.dtype(), [&]<class T>() {
    T* o = out.data<T>();
    const T* s = src.data<T>();
    if (!include_self) {
      T first = T(0);
      if (reduce == "prod") first = T(1);
      if constexpr (!is_cplx<T>) {
        using L = std::numeric_limits<T>;
        if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
          if (reduce == "amax") first = T(-INFINITY);
          if (reduce == "amin") first = T(INFINITY);
        } else {
          if (reduce == "amax") first = L::has_infinity ? T(-L::infinity()) : T(L::lowest());
          if (reduce == "amin") first = T(L::has_infinity ? L::infinity() : L::max());
        }
      }
      each([=](const int64_t* x, const int64_t*, int64_t n) {
        for (int64_t i = 0; i < n; ++i) o[x[i]] = first;
      });
    }
    auto run = [&](auto combine) {
      each([=](const int64_t* x, const int64_t* y, int64_t n) {
        for (int64_t i = 0; i < n; ++i) o[x[i]] = combine(o[x[i]], s[y[i]]);
      });
    };
    if (reduce == "sum" || reduce == "mean")
      run(plus<T>);
    else if (reduce == "prod")
      run(times<T>);
    else if constexpr (!is_cplx<T>) {
      if (reduce == "amax")
        run([](T a, T b) { return b > a || b != b ? b : a; });
      else
        run([](T a, T b) { return b < a || b != b ? b : a; });
    }
    if (count) {
      Tensor dense = contiguous(out);
      int64_t* c = count.data<int64_t>();
      each_run_of_places(IndexWalk(count, src, dim, index, "scatter_reduce"),
                         [=](const int64_t* x, const int64_t*, int64_t n) {
                           for (int64_t i = 0; i < n; ++i) ++c[x[i]];
                         });
      T* v = dense.data<T>();
      for (int64_t i = 0; i < dense.numel(); ++i) {
        int64_t k = std::max<int64_t>(c[i], 1);
        if constexpr (is_truth<T>)
          (void)k;
        else if constexpr (std::is_integral_v<T>) {
          T q = static_cast<T>(v[i] / static_cast<T>(k));
          if constexpr (std::is_signed_v<T>) q -= (v[i] % static_cast<T>(k) != 0) && (v[i] < 0);
          v[i] = q;
        } else if constexpr (is_cplx<T>)
          v[i] /= static_cast<typename T::value_type>(k);
        else
          v[i] = T(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(v[i]) /
                   k);
      }
      if (!dense.is_same(out)) copy(out, dense);
    }
  });
}

// One index along one dim
// ----------------------------------------------------------------------------------------------

namespace {
std::vector<int64_t> checked_index(const Tensor& index, int64_t limit, const char* op, int64_t dim,
                                   bool negative = false) {
  Tensor idx = as_long(index);
  const int64_t* at = idx.data<int64_t>();
  std::vector<int64_t> out(at, at + idx.numel());
  for (int64_t& x : out) {
    const bool inside = x < limit && x >= (negative ? -limit : 0);
    FB_CHECK_INDEX(inside || dim >= 0, "index out of range in self: ", op, "() got ", x,
                   " for size ", limit);
    FB_CHECK_INDEX(inside, "index out of range in self: ", op, "_(): index ", x,
                   " is out of bounds for dimension ", dim, " with size ", limit);
    if (x < 0) x += limit;
  }
  return out;
}

// The slices `entry` along dim of t, as an alias of one dim less (or of a 0-d tensor).
Tensor slice_at(const Tensor& t, int64_t dim, int64_t entry) {
  if (t.dim() == 0) return t;
  Ints sizes = t.sizes(), strides = t.strides();
  int64_t offset = t.offset() + entry * strides[dim];
  sizes.erase(sizes.begin() + dim);
  strides.erase(strides.begin() + dim);
  return alias(t, sizes, strides, offset);
}
}  // namespace

void index_select(Tensor& out, const Tensor& input, int64_t dim, const Tensor& index) {
  int64_t d = wrap_dim(dim, input.dim());
  auto at = checked_index(index, input.dim() ? input.sizes()[d] : 1, "index_select", -1);
  if (out.numel() == 0) return;
  if (input.dim() == 0) return copy(out, input);
  int64_t run = dense_run(input, d + 1), m = static_cast<int64_t>(at.size());
  if (run && out.is_contiguous()) {
    auto before = offsets(input.sizes(), input.strides(), 0, d);
    int64_t stride = input.strides()[d], rows = static_cast<int64_t>(before.size()) * m;
    visit_bytes(input.dtype(), [&]<class U>() {
      const U* in = input.data<U>();
      U* o = out.data<U>();
      parallel_for(0, rows, std::max<int64_t>(1, kGrain / run), [&](int64_t a, int64_t b) {
        for (int64_t r = a; r < b; ++r) {
          const U* from = in + before[r / m] + at[r % m] * stride;
          if (run == 1)
            o[r] = *from;
          else
            std::memcpy(static_cast<void*>(o + r * run), from, run * sizeof(U));
        }
      });
    });
    return;
  }
  for (int64_t i = 0; i < m; ++i) {
    Tensor to = slice_at(out, d, i);
    copy(to, slice_at(input, d, at[i]));
  }
}

void index_add(Tensor& out, const Tensor& input, int64_t dim, const Tensor& index,
               const Tensor& source, const Scalar& alpha) {
  int64_t d = wrap_dim(dim, out.dim());
  auto at = checked_index(index, out.dim() ? out.sizes()[d] : 1, "index_add", d);
  if (widens(out) && source.numel() > 0) {
    Tensor addends = widened(source);
    if (!widens_whole(out, source.numel()) && out.dim()) {
      start_from(out, input);
      float *x = addends.data<float>(), scale = alpha.to<float>();
      for (int64_t i = 0; scale != 1 && i < addends.numel(); ++i) x[i] *= scale;
      return add_widened(out, {index}, d, addends);
    }
    Tensor wide = widened(input);
    index_add(wide, wide, dim, index, addends, alpha);
    return copy(out, wide);
  }
  start_from(out, input);
  if (source.numel() == 0) return;
  Around o(out, d);
  Tensor src = contiguous(source);
  int64_t m = static_cast<int64_t>(at.size()), B = static_cast<int64_t>(o.after.size());
  visit(out.dtype(), [&]<class T>() {
    T* p = out.data<T>();
    const T* s = src.data<T>();
    T scale = alpha.to<T>();
    bool plain = alpha.equal(1);
    auto unit = [&](int64_t i, int64_t from, int64_t to) {
      for (int64_t j = 0; j < m; ++j) {
        T* row = p + o.before[i] + at[j] * o.stride;
        const T* x = s + (i * m + j) * B;
        for (int64_t k = from; k < to; ++k)
          row[o.after[k]] = plus(row[o.after[k]], plain ? x[k] : times(scale, x[k]));
      }
    };
    int64_t A = static_cast<int64_t>(o.before.size());
    if (A > 1)
      parallel_for(0, A, std::max<int64_t>(1, kGrain / 4 / (m * B)), [&](int64_t a, int64_t b) {
        for (int64_t i = a; i < b; ++i) unit(i, 0, B);
      });
    else
      parallel_for(0, B, std::max<int64_t>(16, kGrain / 4 / m),
                   [&](int64_t a, int64_t b) { unit(0, a, b); });
  });
}

void index_copy(Tensor& out, const Tensor& input, int64_t dim, const Tensor& index,
                const Tensor& source) {
  int64_t d = wrap_dim(dim, out.dim());
  checked_index(index, out.dim() ? out.sizes()[d] : 1, "index_copy", d);
  start_from(out, input);
  if (out.dim() == 0)
    copy(out, alias(source, {}, {}, source.offset()));
  else
    index_block_put_(out, {index}, d, source, false);
}

void index_fill(Tensor& out, const Tensor& input, int64_t dim, const Tensor& index,
                const Scalar& value) {
  int64_t d = wrap_dim(dim, out.dim());
  auto at = checked_index(index, out.dim() ? out.sizes()[d] : 1, "index_fill", d, true);
  start_from(out, input);
  for (int64_t x : at) {
    Tensor to = slice_at(out, d, x);
    fill(to, value);
  }
}

void index_fill_tensor(Tensor& out, const Tensor& input, int64_t dim, const Tensor& index,
                       const Tensor& value) {
  index_fill(out, input, dim, index, value.item());
}

// The flattened tensor
// ---------------------------------------------------------------------------------------------

namespace {
std::vector<int64_t> flat_places(const Tensor& t, const Tensor& index, const char* op) {
  Tensor idx = as_long(index);
  const int64_t* at = idx.data<int64_t>();
  int64_t n = t.numel();
  std::vector<int64_t> out(idx.numel());
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t x = at[i];
    FB_CHECK_INDEX(x >= -n && x < n, op, "(): out of range: tried to access index ", x,
                   " on a tensor of ", n, " elements.");
    int64_t rest = x < 0 ? x + n : x, place = 0;
    if (t.is_contiguous())
      place = rest;
    else
      for (size_t d = t.sizes().size(); d-- > 0;) {
        place += rest % t.sizes()[d] * t.strides()[d];
        rest /= t.sizes()[d];
      }
    out[i] = place;
  }
  return out;
}
}  // namespace

void take(Tensor& out, const Tensor& input, const Tensor& index) {
  auto at = flat_places(input, index, "take");
  if (at.empty()) return;
  Tensor dense = out.is_contiguous() ? out : empty(out.sizes(), out.dtype());
  visit_bytes(input.dtype(), [&]<class U>() {
    for (size_t i = 0; i < at.size(); ++i) dense.data<U>()[i] = input.data<U>()[at[i]];
  });
  if (!dense.is_same(out)) copy(out, dense);
}

void put(Tensor& out, const Tensor& input, const Tensor& index, const Tensor& source,
         bool accumulate) {
  if (accumulate && widens(out) && widens_whole(out, source.numel())) {
    Tensor wide = widened(input);
    put(wide, wide, index, widened(source), true);
    return copy(out, wide);
  }
  auto at = flat_places(out, index, "put_");
  start_from(out, input);
  Tensor s = contiguous(source);
  if (accumulate && widens(out) && !at.empty())
    return on_widened_places(out, at, [&](Tensor& wide, const Tensor& which) {
      scatter_add(wide, wide, 0, which, widened(alias(s, which.sizes(), {1}, s.offset())));
    });
  auto run = [&]<class T>(auto&& combine) {
    T* o = out.data<T>();
    const T* x = s.data<T>();
    for (size_t i = 0; i < at.size(); ++i) o[at[i]] = combine(o[at[i]], x[i]);
  };
  if (accumulate)
    visit(out.dtype(), [&]<class T>() { run.template operator()<T>(plus<T>); });
  else
    visit_bytes(out.dtype(),
                [&]<class U>() { run.template operator()<U>([](U, U y) { return y; }); });
}

}  // namespace flambeau::kernels
