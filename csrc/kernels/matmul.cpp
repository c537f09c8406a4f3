#include "gen/kernels.h"

#include "core/parallel.h"
#include "kernels/copy.h"
#include "kernels/providers/blas.h"

namespace flambeau::kernels {
namespace {

MatrixRef matrix(const Tensor& x, int64_t rows, int64_t columns) {
  return {x.data_ptr(), x.strides()[rows], x.strides()[columns]};
}

// A product can be written there: rows or columns are dense and no two elements share memory.
bool writable(const Tensor& out, int64_t rows, int64_t columns) {
  const int64_t m = out.sizes()[rows], n = out.sizes()[columns];
  const int64_t rs = out.strides()[rows], cs = out.strides()[columns];
  return (cs == 1 && rs >= n) || (rs == 1 && cs >= m) || out.is_contiguous();
}

// Runs f on out, or on a dense stand-in that is copied to it.
template <class F>
void into(Tensor& out, bool direct, const F& f) {
  if (direct) return f(out);
  Tensor dense = empty(out.sizes(), out.dtype());
  f(dense);
  copy(out, dense);
}

Gemm product_of(const Tensor& out, const Tensor& a, const Tensor& b) {
  const int64_t d = out.dim() - 2;
  const MatrixRef c = matrix(out, d, d + 1);
  return {out.dtype(),
          out.sizes()[d],
          out.sizes()[d + 1],
          a.sizes()[d + 1],
          matrix(a, d, d + 1),
          matrix(b, d, d + 1),
          out.data_ptr(),
          c.rs,
          c.cs};
}

void run_bmm(const Tensor& out, const Tensor& a, const Tensor& b, double alpha, double beta) {
  Gemm g = product_of(out, a, b);
  g.alpha = alpha, g.beta = beta;
  gemm_batch(g, out.sizes()[0], a.strides()[0], b.strides()[0], out.strides()[0]);
}

// The epilogue's factors are doubles: enough for floating point, and for integers when nothing is
// scaled.
bool simple_factors(DType d, const Scalar& beta, const Scalar& alpha) {
  if (is_integral(d, true)) return alpha.equal(1) && (beta.equal(0) || beta.equal(1));
  return !alpha.is_complex() && !beta.is_complex();
}

// out = beta * out + alpha * product, with factors of any kind; both dense.
void combine(const Tensor& out, const Tensor& product, const Scalar& beta, const Scalar& alpha) {
  visit(out.dtype(), [&]<class T>() {
    using A = std::conditional_t<
        is_whole<T>, uint64_t,
        std::conditional_t<std::is_convertible_v<T, float> && sizeof(T) == 2, float, T>>;
    T* c = out.data<T>();
    const T* p = product.data<T>();
    const A b = beta.to<A>(), a = alpha.to<A>();
    const bool read = !beta.equal(0);
    for (int64_t i = 0; i < out.numel(); ++i) {
      A v = a * static_cast<A>(p[i]);
      if (read) v += b * static_cast<A>(c[i]);
      c[i] = static_cast<T>(v);
    }
  });
}

// out = beta * input + alpha * product, where run(out, alpha, beta, bias) makes products.
template <class F>
void accumulate(Tensor& out, bool direct, const Tensor& input, const Scalar& beta,
                const Scalar& alpha, const F& run) {
  const DType d = out.dtype();
  if (!simple_factors(d, beta, alpha)) {
    Tensor product = empty(out.sizes(), d), sum = empty(out.sizes(), d);
    run(product, 1.0, 0.0, nullptr);
    if (!beta.equal(0)) copy(sum, input);
    combine(sum, product, beta, alpha);
    return copy(out, sum);
  }
  into(out, direct, [&](const Tensor& to) {
    if (beta.equal(0)) return run(to, alpha.to_double(), 0.0, nullptr);
    const bool row =
        input.dim() >= 1 && input.dim() <= 2 && input.numel() == out.sizes()[out.dim() - 1] &&
        input.sizes()[input.dim() - 1] == input.numel() && out.dim() == 2 && out.sizes()[0] != 1;
    if (row && beta.equal(1) && input.dtype() == d) {
      Tensor bias = contiguous(input);
      return run(to, alpha.to_double(), 0.0, bias.data_ptr());
    }
    copy(to, input);
    run(to, alpha.to_double(), beta.to_double(), nullptr);
  });
}

// The matrix (1 x n or n x 1) that a vector is.
Tensor as_row(const Tensor& v) {
  return alias(v, {1, v.numel()}, {1, v.strides()[0]}, v.offset());
}
Tensor as_column(const Tensor& v) {
  return alias(v, {v.numel(), 1}, {v.strides()[0], 1}, v.offset());
}

}  // namespace

void mm(Tensor& out, const Tensor& input, const Tensor& mat2) {
  into(out, writable(out, 0, 1), [&](const Tensor& to) { gemm(product_of(to, input, mat2)); });
}

void bmm(Tensor& out, const Tensor& input, const Tensor& mat2) {
  if (out.numel() == 0) return;
  into(out, writable(out, 1, 2), [&](const Tensor& to) { run_bmm(to, input, mat2, 1, 0); });
}

void mv(Tensor& out, const Tensor& input, const Tensor& vec) {
  Tensor to = as_column(out);
  mm(to, input, as_column(vec));
}

void dot(Tensor& out, const Tensor& input, const Tensor& tensor) {
  constexpr int64_t kChunk = 1 << 16;
  const int64_t n = input.numel(), chunks = n ? (n + kChunk - 1) / kChunk : 1;
  Tensor parts = empty({chunks, 1}, out.dtype());
  const Tensor a = as_row(input), b = as_column(tensor);
  const int64_t size = out.itemsize();
  parallel_for(0, chunks, 2, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      Gemm g{out.dtype(),
             1,
             1,
             std::min(kChunk, n - i * kChunk),
             matrix(a, 0, 1),
             matrix(b, 0, 1),
             parts.data<char>() + i * size,
             1};
      g.a.data = a.data<char>() + i * kChunk * a.strides()[1] * size;
      g.b.data = b.data<char>() + i * kChunk * b.strides()[0] * size;
      gemm_single(g);
    }
  });
  if (chunks == 1) return copy(out, alias(parts, {}, {}, 0));
  Tensor ones = empty({1, chunks}, out.dtype());
  fill(ones, Scalar(1));
  gemm_single(
      {out.dtype(), 1, 1, chunks, matrix(ones, 0, 1), matrix(parts, 0, 1), out.data_ptr(), 1});
}

void addmm(Tensor& out, const Tensor& input, const Tensor& mat1, const Tensor& mat2,
           const Scalar& beta, const Scalar& alpha) {
  accumulate(out, writable(out, 0, 1), input, beta, alpha,
             [&](const Tensor& to, double scale, double keep, const void* bias) {
               Gemm g = product_of(to, mat1, mat2);
               g.alpha = scale, g.beta = keep, g.bias = bias;
               gemm(g);
             });
}

void addmv(Tensor& out, const Tensor& input, const Tensor& mat, const Tensor& vec,
           const Scalar& beta, const Scalar& alpha) {
  Tensor to = as_column(out);
  Tensor start = input.dim() == 0 ? alias(input, {1, 1}, {1, 1}, input.offset()) : as_column(input);
  addmm(to, start, mat, as_column(vec), beta, alpha);
}

void addr(Tensor& out, const Tensor& input, const Tensor& vec1, const Tensor& vec2,
          const Scalar& beta, const Scalar& alpha) {
  addmm(out, input, as_column(vec1), as_row(vec2), beta, alpha);
}

void baddbmm(Tensor& out, const Tensor& input, const Tensor& batch1, const Tensor& batch2,
             const Scalar& beta, const Scalar& alpha) {
  if (out.numel() == 0) return;
  accumulate(out, writable(out, 1, 2), input, beta, alpha,
             [&](const Tensor& to, double scale, double keep, const void*) {
               run_bmm(to, batch1, batch2, scale, keep);
             });
}

void addbmm(Tensor& out, const Tensor& input, const Tensor& batch1, const Tensor& batch2,
            const Scalar& beta, const Scalar& alpha) {
  const int64_t batch = batch1.sizes()[0];
  accumulate(
      out, writable(out, 0, 1), input, beta, alpha,
      [&](const Tensor& to, double scale, double keep, const void* bias) {
        Gemm g{to.dtype(),           to.sizes()[0],
               to.sizes()[1],        batch ? batch1.sizes()[2] : 0,
               matrix(batch1, 1, 2), matrix(batch2, 1, 2),
               to.data_ptr(),        to.strides()[0],
               to.strides()[1]};
        g.alpha = scale, g.beta = keep, g.bias = bias;
        for (int64_t i = 0; i < std::max<int64_t>(1, batch); ++i) {
          gemm(g);
          g.beta = 1, g.bias = nullptr;
          g.a.data = static_cast<const char*>(g.a.data) + batch1.strides()[0] * to.itemsize();
          g.b.data = static_cast<const char*>(g.b.data) + batch2.strides()[0] * to.itemsize();
        }
      });
}

void outer(Tensor& out, const Tensor& input, const Tensor& vec2) {
  Tensor right = contiguous(vec2);
  into(out, out.is_contiguous(), [&](const Tensor& to) {
    visit(out.dtype(), [&]<class T>() {
      const int64_t m = input.numel(), n = right.numel(), step = input.strides()[0];
      const T* a = input.data<T>();
      const T* b = right.data<T>();
      parallel_for(0, m, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, n)),
                   [&](int64_t from, int64_t end) {
                     for (int64_t i = from; i < end; ++i) {
                       T* c = to.data<T>() + i * n;
                       const auto x = static_cast<Wrapping<T>>(a[i * step]);
                       for (int64_t j = 0; j < n; ++j)
                         c[j] = static_cast<T>(x * static_cast<Wrapping<T>>(b[j]));
                     }
                   });
    });
  });
}

void linear_product(Tensor& out, const Tensor& input, const Tensor& weight, const OptTensor& bias) {
  const int64_t k = weight.sizes()[1], n = weight.sizes()[0], m = n ? out.numel() / n : 0;
  if (out.numel() == 0) return;
  // The leading dims as one, without a copy where their strides allow it.
  auto flat = [](const Tensor& x, int64_t rows, int64_t columns) -> std::optional<Tensor> {
    auto strides = view_strides(x.sizes(), x.strides(), {rows, columns});
    if (!strides) return {};
    return alias(x, {rows, columns}, *strides, x.offset());
  };
  std::optional<Tensor> a = flat(input, m, k);
  if (!a) a = flat(contiguous(input), m, k);
  std::optional<Tensor> to = flat(out, m, n);
  const bool direct = to && writable(*to, 0, 1);
  Tensor c = direct ? *to : empty({m, n}, out.dtype());
  Gemm g{out.dtype(),
         m,
         n,
         k,
         matrix(*a, 0, 1),
         {weight.data_ptr(), weight.strides()[1], weight.strides()[0]},
         c.data_ptr(),
         c.strides()[0],
         c.strides()[1]};
  Tensor shift;
  if (bias) {
    shift = contiguous(*bias);
    g.bias = shift.data_ptr();
  }
  gemm(g);
  if (!direct) copy(out, alias(c, out.sizes(), contiguous_strides(out.sizes()), 0));
}

}  // namespace flambeau::kernels
