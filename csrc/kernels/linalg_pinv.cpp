// Pseudo-inverses by singular values, or by eigenvalues where the matrix is Hermitian.
#include "gen/kernels.h"

#include <cmath>

#include "kernels/linalg_batch.h"
#include "kernels/providers/blas.h"
#include "kernels/providers/lapack.h"

namespace flambeau::kernels {
namespace {

template <class T>
T conj_of(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x;
  else
    return std::conj(x);
}

// Tolerances, one for each matrix.
Tensor spread(const Tensor& tolerance, const Ints& batch) {
  Tensor out = empty(batch, tolerance.dtype());
  copy(out, tolerance);
  return out;
}

}  // namespace

void linalg_pinv(Tensor& result, const Tensor& input, const Tensor& atol, const Tensor& rtol,
                 bool hermitian) {
  if (result.numel() == 0) return;
  Tensor work = column_copy(input), out = dense_of(result);
  Ints batch_sizes = input.sizes();
  batch_sizes.resize(batch_sizes.size() - 2);
  Tensor absolute = spread(atol, batch_sizes), relative = spread(rtol, batch_sizes);
  const int m = small(input.size(-2), "linalg.pinv"), n = small(input.size(-1), "linalg.pinv"),
            k = std::min(m, n);
  FB_CHECK(!hermitian || m == n, "linalg.pinv: A must be batches of square matrices, but they are ",
           m, " by ", n, " matrices");
  std::vector<int> infos(batch_of(input));
  visit_inexact(input.dtype(), "linalg.pinv", [&]<class T>() {
    using R = lapack::Real<T>;
    each_matrix(batch_of(input), k, [&](int64_t b) {
      T* a = work.data<T>() + b * int64_t{m} * n;
      std::vector<R> s(k);
      std::vector<T> u, vt;
      if (hermitian) {
        if (lapack::heevd<T>(true, false, n, a, s.data())) infos[b] = lapack::kNotFinite;
        u.assign(a, a + int64_t{n} * n);
        vt.resize(u.size());
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < n; ++j) vt[j * n + i] = conj_of(u[i * n + j]);
      } else {
        u.resize(size_t(m) * k), vt.resize(size_t(k) * n);
        infos[b] = lapack::gesdd<T>('S', m, n, a, s.data(), u.data(), m, vt.data(), k);
      }
      R largest = 0;
      for (R x : s) largest = std::max(largest, std::abs(x));
      const R limit = std::max(absolute.data<R>()[b], relative.data<R>()[b] * largest);
      // vt^H diag(1 / s) u^H: the transpose of conj(u) diag(1 / s) conj(vt).
      for (int64_t i = 0; i < k; ++i) {
        const R scale = std::abs(s[i]) > limit ? 1 / s[i] : R(0);
        for (int64_t j = 0; j < m; ++j) u[i * m + j] = conj_of(u[i * m + j]) * scale;
      }
      for (T& x : vt) x = conj_of(x);
      Gemm g{input.dtype(),
             n,
             m,
             k,
             {vt.data(), k, 1},
             {u.data(), m, 1},
             out.data<T>() + b * int64_t{n} * m,
             m};
      gemm(g);
    });
  });
  lapack::check_finite(infos, hermitian ? "linalg.eigh" : "linalg.svd", input.dim() == 2);
  settle(result, out);
}

}  // namespace flambeau::kernels
