// Orthogonal factorisations: QR, eigenvalues, singular values, least squares.
#include "gen/kernels.h"

#include <cmath>

#include "kernels/linalg_batch.h"
#include "kernels/providers/blas.h"
#include "kernels/providers/lapack.h"

namespace flambeau::kernels {
namespace {

// Raises what LAPACK reported for the matrices of a batch.
void check(const std::vector<int>& infos, const char* name, bool is_matrix) {
  Tensor info = empty({static_cast<int64_t>(infos.size())}, DType::Int32);
  std::copy(infos.begin(), infos.end(), info.data<int>());
  linalg_check_errors(info, info, name, is_matrix);
}

// The leading rows of each matrix of `from`, into `to`; both column by column, `to` with at most as
// many rows.
template <class T>
void copy_top(const T* from, int64_t from_rows, T* to, int64_t to_rows, int64_t columns,
              bool upper) {
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < to_rows; ++i)
      to[j * to_rows + i] = upper && i > j ? T(0) : from[j * from_rows + i];
}

}  // namespace

void geqrf(Tensor& a, Tensor& tau, const Tensor& input) {
  Tensor work = columns_of(a), t = dense_of(tau);
  copy(work, input);
  const int m = small(input.size(-2), "geqrf"), n = small(input.size(-1), "geqrf");
  const int64_t k = std::min(m, n);
  visit_inexact(input.dtype(), "geqrf", [&]<class T>() {
    each_matrix(k ? batch_of(input) : 0, k, [&](int64_t i) {
      lapack::geqrf<T>(m, n, work.data<T>() + i * int64_t{m} * n, t.data<T>() + i * k);
    });
  });
  settle(a, work), settle(tau, t);
}

// Q has as many columns as its place; mode "r" gives an empty one.
void linalg_qr(Tensor& Q, Tensor& R, const Tensor& A, const std::string& mode) {
  Tensor work = column_copy(A), r = columns_of(R);
  const int m = small(A.size(-2), "linalg.qr"), n = small(A.size(-1), "linalg.qr");
  const int k = std::min(m, n);
  const int64_t batch = batch_of(A), rows = R.size(-2);
  const bool with_q = mode != "r";
  Tensor q = with_q ? columns_of(Q) : Q;
  const int columns = with_q ? small(Q.size(-1), "linalg.qr") : 0;
  visit_inexact(A.dtype(), "linalg.qr", [&]<class T>() {
    each_matrix(batch, k, [&](int64_t i) {
      std::vector<T> tau(std::max(1, k));
      T* a = work.data<T>() + i * int64_t{m} * n;
      if (k) lapack::geqrf<T>(m, n, a, tau.data());
      copy_top(a, m, r.data<T>() + i * rows * n, rows, n, true);
      if (!with_q || columns == 0) return;
      T* to = q.data<T>() + i * int64_t{m} * columns;
      std::fill_n(to, int64_t{m} * columns, T(0));
      if (k == 0) {
        for (int j = 0; j < columns; ++j) to[j * int64_t{m} + j] = T(1);
        return;
      }
      std::copy_n(a, int64_t{m} * std::min(n, columns), to);
      lapack::orgqr<T>(m, columns, std::min(k, columns), to, tau.data());
    });
  });
  settle(R, r);
  if (with_q) settle(Q, q);
}

void linalg_householder_product(Tensor& result, const Tensor& input, const Tensor& tau) {
  Tensor work = columns_of(result), t = contiguous(tau);
  copy(work, input);
  const int m = small(input.size(-2), "householder_product"),
            n = small(input.size(-1), "householder_product");
  const int k = small(tau.size(-1), "householder_product");
  visit_inexact(input.dtype(), "householder_product", [&]<class T>() {
    if (n == 0) return;
    each_matrix(batch_of(input), n, [&](int64_t i) {
      T* a = work.data<T>() + i * int64_t{m} * n;
      lapack::orgqr<T>(m, n, k, a, t.data<T>() + i * k);
    });
  });
  settle(result, work);
}

void ormqr(Tensor& result, const Tensor& input, const Tensor& tau, const Tensor& other, bool left,
           bool transpose) {
  Tensor work = columns_of(result), a = column_copy(input), t = contiguous(tau);
  copy(work, other);
  const int m = small(other.size(-2), "ormqr"), n = small(other.size(-1), "ormqr"),
            k = small(tau.size(-1), "ormqr");
  const int64_t size = input.size(-2) * input.size(-1);
  const int lda = std::max(1, small(input.size(-2), "ormqr"));
  visit_inexact(input.dtype(), "ormqr", [&]<class T>() {
    if (m == 0 || n == 0 || k == 0) return;
    const char trans = !transpose ? 'N' : input.is_complex() ? 'C' : 'T';
    each_matrix(batch_of(other), std::max(m, n), [&](int64_t i) {
      lapack::ormqr<T>(left, trans, m, n, k, a.data<T>() + i * size, lda, t.data<T>() + i * k,
                       work.data<T>() + i * int64_t{m} * n);
    });
  });
  settle(result, work);
}

void linalg_eigh(Tensor& L, Tensor& V, const Tensor& A, bool upper, bool vectors) {
  Tensor work =
      vectors ? columns_of(V) : empty_strided(A.sizes(), column_strides(A.sizes()), A.dtype());
  Tensor w = dense_of(L);
  copy(work, A);
  const int n = small(A.size(-1), "linalg.eigh");
  const int64_t batch = batch_of(A);
  std::vector<int> infos(batch);
  visit_inexact(A.dtype(), "linalg.eigh", [&]<class T>() {
    using R = lapack::Real<T>;
    each_matrix(n ? batch : 0, n, [&](int64_t i) {
      infos[i] = lapack::heevd<T>(vectors, upper, n, work.data<T>() + i * int64_t{n} * n,
                                  w.data<R>() + i * n);
    });
  });
  check(infos, "linalg.eigh", A.dim() == 2);
  settle(L, w);
  if (vectors) settle(V, work);
}

void linalg_svd(Tensor& U, Tensor& S, Tensor& Vh, const Tensor& A, bool full_matrices,
                bool vectors) {
  Tensor work = column_copy(A), u = vectors ? columns_of(U) : U, v = vectors ? columns_of(Vh) : Vh,
         s = dense_of(S);
  const int m = small(A.size(-2), "linalg.svd"), n = small(A.size(-1), "linalg.svd");
  const int k = std::min(m, n);
  const int columns = full_matrices ? m : k, rows = full_matrices ? n : k;
  const int64_t batch = batch_of(A);
  std::vector<int> infos(batch);
  visit_inexact(A.dtype(), "linalg.svd", [&]<class T>() {
    using R = lapack::Real<T>;
    if (k == 0) {  // bases of nothing: unit matrices
      for (int64_t i = 0; vectors && i < batch; ++i) {
        T* x = u.numel() ? u.data<T>() + i * int64_t{m} * columns : nullptr;
        for (int64_t j = 0; x && j < int64_t{m} * columns; ++j) x[j] = T(j % (m + 1) == 0 ? 1 : 0);
        T* y = v.numel() ? v.data<T>() + i * int64_t{rows} * n : nullptr;
        for (int64_t j = 0; y && j < int64_t{rows} * n; ++j) y[j] = T(j % (rows + 1) == 0 ? 1 : 0);
      }
      return;
    }
    T none{};
    each_matrix(batch, k, [&](int64_t i) {
      T* a = work.data<T>() + i * int64_t{m} * n;
      infos[i] = lapack::gesdd<T>(
          !vectors        ? 'N'
          : full_matrices ? 'A'
                          : 'S',
          m, n, a, s.data<R>() + i * k, vectors ? u.data<T>() + i * int64_t{m} * columns : &none,
          std::max(1, m), vectors ? v.data<T>() + i * int64_t{rows} * n : &none, std::max(1, rows));
    });
  });
  lapack::check_finite(infos, "linalg.svd", A.dim() == 2);
  check(infos, "linalg.svd", A.dim() == 2);
  settle(S, s);
  if (vectors) settle(U, u), settle(Vh, v);
}

void linalg_eig(Tensor& L, Tensor& V, const Tensor& A, bool vectors) {
  Tensor work = column_copy(A), w = dense_of(L), v = vectors ? columns_of(V) : V;
  const int n = small(A.size(-1), "linalg.eig");
  const int64_t batch = batch_of(A);
  std::vector<int> infos(batch);
  visit_inexact(A.dtype(), "linalg.eig", [&]<class T>() {
    using C = std::complex<lapack::Real<T>>;
    FB_CHECK(lapack::all_finite(work.data<T>(), work.numel()),
             "torch.linalg.eig: input tensor should not contain infs or NaNs.");
    each_matrix(n ? batch : 0, n, [&](int64_t i) {
      infos[i] =
          lapack::geev<T>(vectors, n, work.data<T>() + i * int64_t{n} * n, w.data<C>() + i * n,
                          vectors ? v.data<C>() + i * int64_t{n} * n : nullptr);
    });
  });
  check(infos, "linalg.eig", A.dim() == 2);
  settle(L, w);
  if (vectors) settle(V, v);
}

// Solutions, ranks and singular values as the driver (0 gels, 1 gelsy, 2 gelsd, 3 gelss) gives
// them. `input` and `other` are batches of matrices; residuals are the entries' matter.
void linalg_lstsq(Tensor& solution, Tensor& rank, Tensor& singular_values, const Tensor& input,
                  const Tensor& other, double rcond, int64_t driver) {
  const int m = small(input.size(-2), "linalg.lstsq"), n = small(input.size(-1), "linalg.lstsq");
  const int rhs = small(other.size(-1), "linalg.lstsq"), ldb = std::max({1, m, n}),
            k = std::min(m, n);
  Ints batch_sizes = solution.sizes();
  batch_sizes.resize(batch_sizes.size() - 2);
  Tensor a = column_copy(input, input.dtype(), batch_sizes),
         b = column_copy(other, other.dtype(), batch_sizes);
  Tensor x = columns_of(solution), ranks = dense_of(rank), s = dense_of(singular_values);
  const int64_t batch = batch_of(solution);
  std::vector<int> infos(batch);
  visit_inexact(input.dtype(), "linalg.lstsq", [&]<class T>() {
    using R = lapack::Real<T>;
    if (rhs == 0 || k == 0) {
      std::fill_n(x.data<T>(), x.numel(), T(0));
      std::fill_n(ranks.data<int64_t>(), ranks.numel(), 0);
      return;
    }
    each_matrix(batch, std::max(m, n), [&](int64_t i) {
      std::vector<T> place(static_cast<size_t>(ldb) * rhs);
      std::vector<R> values(k);
      const T* given = b.data<T>() + i * int64_t{m} * rhs;
      for (int j = 0; j < rhs; ++j)
        std::copy_n(given + j * int64_t{m}, m, place.data() + j * size_t(ldb));
      int found = 0;
      infos[i] =
          lapack::gels<T>(static_cast<int>(driver), m, n, rhs, a.data<T>() + i * int64_t{m} * n,
                          place.data(), static_cast<R>(rcond), &found, values.data());
      copy_top(place.data(), ldb, x.data<T>() + i * int64_t{n} * rhs, n, rhs, false);
      if (ranks.numel()) ranks.data<int64_t>()[i] = found;
      if (s.numel()) std::copy_n(values.data(), k, s.data<R>() + i * k);
    });
  });
  lapack::check_finite(infos, "torch.linalg.lstsq", input.dim() == 2);
  check(infos, "torch.linalg.lstsq", input.dim() == 2);
  settle(solution, x), settle(rank, ranks), settle(singular_values, s);
}

}  // namespace flambeau::kernels
