// Triangular factorisations of batches of matrices, and what is solved with them: Cholesky, LU,
// inverses, determinants. Layout is linalg_batch.h's matter, one matrix at a time is LAPACK's;
// autograd is above.
#include "gen/kernels.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/linalg_batch.h"
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

// Sets what lies strictly above (or below) the diagonal to zero.
template <class T>
void clear_triangle(T* a, int64_t n, bool above) {
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = above ? 0 : j + 1; i < (above ? j : n); ++i) a[j * n + i] = T(0);
}

// The factors of every matrix of `a`, in place. Infos (and the pivots, which count from 1) are
// LAPACK's.
void factor(const Tensor& a, int* pivots, int* infos) {
  const int m = small(a.size(-2), "lu"), n = small(a.size(-1), "lu");
  const int64_t k = std::min(m, n);
  visit_inexact(a.dtype(), "lu", [&]<class T>() {
    each_matrix(batch_of(a), k, [&](int64_t i) {
      infos[i] = k ? lapack::getrf<T>(m, n, a.data<T>() + i * m * n, pivots + i * k) : 0;
    });
  });
}

// Sign of the permutation that pivots describe.
int parity(const int* pivots, int64_t n) {
  int sign = 1;
  for (int64_t i = 0; i < n; ++i)
    if (pivots[i] != i + 1) sign = -sign;
  return sign;
}

// x = op(LU)^-1 b for a batch, in place in b. `trans` is N, T or C.
void substitute(const Tensor& lu, const int* pivots, const Tensor& b, char trans) {
  const int n = small(lu.size(-1), "lu_solve"), rhs = small(b.size(-1), "lu_solve");
  if (n == 0 || rhs == 0) return;
  visit_inexact(lu.dtype(), "lu_solve", [&]<class T>() {
    each_matrix(batch_of(b), n, [&](int64_t i) {
      lapack::getrs<T>(trans, n, rhs, lu.data<T>() + i * n * n, pivots + i * n,
                       b.data<T>() + i * n * rhs);
    });
  });
}

Ints batch_sizes(const Tensor& x, int64_t tail = 2) {
  Ints out = x.sizes();
  out.resize(out.size() - tail);
  return out;
}

Tensor turned(const Tensor& x) {  // the transposes
  Ints sizes = x.sizes(), strides = x.strides();
  std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
  return alias(x, sizes, strides, x.offset());
}

// A batch of int32 vectors, dense, broadcast to `batch`.
Tensor dense_pivots(const Tensor& pivots, const Ints& batch) {
  Ints sizes = batch;
  sizes.push_back(pivots.size(-1));
  if (pivots.is_contiguous() && pivots.sizes() == sizes) return pivots;
  Tensor out = empty(sizes, DType::Int32);
  copy(out, pivots);
  return out;
}

void check_pivots(const Tensor& pivots, int64_t n) {
  const int* p = pivots.data<int>();
  for (int64_t i = 0; i < pivots.numel(); ++i)
    FB_CHECK(p[i] >= 1 && p[i] <= n,
             "lu_solve: pivots passed to lu_solve must be greater or equal to 1 and smaller or "
             "equal to LU.size(-2), got ",
             p[i], " of ", n, " rows");
}

}  // namespace

// Names which matrix failed, and how; the entries pass infos here.
void linalg_check_errors(Tensor&, const Tensor& infos, const std::string& name, bool is_matrix) {
  Tensor dense = contiguous(to_dtype(infos, DType::Int32));
  const int* info = dense.data<int>();
  int64_t i = 0;
  while (i < dense.numel() && info[i] == 0) ++i;
  if (i == dense.numel()) return;
  const std::string where =
      is_matrix ? concat(name, ": ") : concat(name, ": (Batch element ", i, "): ");
  const int code = info[i];
  auto has = [&](const char* s) { return name.find(s) != std::string::npos; };
  FB_CHECK(code > 0, where, "argument ", -code, " has an illegal value");
  if (has("inv"))
    fail(ErrorKind::LinAlg, where, "The diagonal element ", code,
         " is zero, the inversion could not be completed because the input matrix is singular.");
  if (has("cholesky"))
    fail(ErrorKind::LinAlg, where,
         "The factorization could not be completed because the input is not "
         "positive-definite (the leading minor of order ",
         code, " is not positive-definite).");
  if (has("svd"))
    fail(ErrorKind::LinAlg, where,
         "The algorithm failed to converge because the input matrix is ill-conditioned or has "
         "too many repeated singular values (error code: ",
         code, ").");
  if (has("eig") || has("syevd"))
    fail(ErrorKind::LinAlg, where,
         "The algorithm failed to converge because the input matrix is ill-conditioned or has "
         "too many repeated eigenvalues (error code: ",
         code, ").");
  if (has("lstsq"))
    fail(ErrorKind::LinAlg, where,
         "The least squares solution could not be computed because the input matrix does not "
         "have full rank (error code: ",
         code, ").");
  if (has("lu_factor"))
    fail(ErrorKind::Runtime, where, "U[", code, ",", code,
         "] is zero and using it on lu_solve would result in a division "
         "by zero. If you still want to perform the factorization, consider calling linalg.lu(A, "
         "pivot) or "
         "linalg.lu_factor_ex(A, pivot)");
  fail(ErrorKind::LinAlg, where, "The solver failed because the input matrix is singular.");
}

bool linalg_use_builtin(bool on) {
  return lapack::use_builtin(on);
}

void linalg_cholesky_ex(Tensor& L, Tensor& info, const Tensor& A, bool upper, bool check_errors) {
  Tensor work = columns_of(L), infos = dense_of(info);
  copy(work, A);
  const int n = small(A.size(-1), "linalg.cholesky");
  visit_inexact(A.dtype(), "linalg.cholesky", [&]<class T>() {
    T* a = work.data<T>();
    each_matrix(batch_of(A), n, [&](int64_t i) {
      infos.data<int>()[i] = n ? lapack::potrf<T>(upper, n, a + i * n * n) : 0;
      clear_triangle(a + i * n * n, n, !upper);
    });
  });
  settle(L, work), settle(info, infos);
  if (check_errors) linalg_check_errors(info, info, "linalg.cholesky_ex", A.dim() == 2);
}

void cholesky_solve(Tensor& result, const Tensor& B, const Tensor& L, bool upper) {
  Tensor work = columns_of(result);
  copy(work, B);
  Tensor factors = columns_read(L, batch_sizes(result));
  const int n = small(L.size(-1), "cholesky_solve"), rhs = small(B.size(-1), "cholesky_solve");
  visit_inexact(B.dtype(), "cholesky_solve", [&]<class T>() {
    if (n == 0 || rhs == 0) return;
    each_matrix(batch_of(result), n, [&](int64_t i) {
      const T* l = factors.data<T>() + i * n * n;
      T* b = work.data<T>() + i * n * rhs;
      lapack::trtrs<T>(upper, upper ? 'C' : 'N', false, n, rhs, l, b);
      lapack::trtrs<T>(upper, upper ? 'N' : 'C', false, n, rhs, l, b);
    });
  });
  settle(result, work);
}

void linalg_lu_factor_ex(Tensor& LU, Tensor& pivots, Tensor& info, const Tensor& A, bool,
                         bool check_errors) {
  Tensor work = columns_of(LU), p = dense_of(pivots), infos = dense_of(info);
  copy(work, A);
  factor(work, p.data<int>(), infos.data<int>());
  settle(LU, work), settle(pivots, p), settle(info, infos);
  if (check_errors) linalg_check_errors(info, info, "torch.linalg.lu_factor_ex", A.dim() == 2);
}

// Row i of the product P x is row permutation[i] of x.
void pivots_to_permutation(Tensor& result, const Tensor& pivots, int64_t n) {
  Tensor p = contiguous(pivots), out = dense_of(result);
  const int64_t k = p.size(-1), batch = batch_of(p, 1);
  const int* given = p.data<int>();
  for (int64_t i = 0; i < batch; ++i) {
    int64_t* order = out.data<int64_t>() + i * n;
    std::iota(order, order + n, 0);
    for (int64_t j = 0; j < k; ++j) {
      const int64_t with = given[i * k + j] - int64_t{1};
      FB_CHECK(with >= 0 && with < n, "lu_unpack: pivots must be between 1 and ", n, ", got ",
               with + 1);
      std::swap(order[j], order[with]);
    }
  }
  settle(result, out);
}

void linalg_lu_solve(Tensor& result, const Tensor& LU, const Tensor& pivots, const Tensor& B,
                     bool left, bool adjoint) {
  // X A = B is A^T X^T = B^T; the rows of B are the columns of its transpose.
  const Tensor target = left ? result : turned(result);
  Tensor work = columns_of(target);
  copy(work, left ? B : turned(B));
  const Ints batch = batch_sizes(target);
  Tensor lu = columns_read(LU, batch), p = dense_pivots(pivots, batch);
  check_pivots(p, LU.size(-1));
  if (left) {
    substitute(lu, p.data<int>(), work, adjoint ? 'C' : 'N');
  } else if (!adjoint || !LU.is_complex()) {
    substitute(lu, p.data<int>(), work, adjoint ? 'N' : 'T');
  } else {  // (A^H)^T = conj(A): conjugate on both sides
    visit_inexact(LU.dtype(), "lu_solve", [&]<class T>() {
      T* x = work.data<T>();
      for (int64_t i = 0; i < work.numel(); ++i) x[i] = conj_of(x[i]);
      substitute(lu, p.data<int>(), work, 'N');
      for (int64_t i = 0; i < work.numel(); ++i) x[i] = conj_of(x[i]);
    });
  }
  settle(target, work);
}

void linalg_inv_ex(Tensor& inverse, Tensor& info, const Tensor& A, bool check_errors) {
  Tensor work = columns_of(inverse), infos = dense_of(info), lu = column_copy(A);
  const int n = small(A.size(-1), "linalg.inv");
  const int64_t batch = batch_of(A);
  std::vector<int> pivots(batch * n);
  factor(lu, pivots.data(), infos.data<int>());
  visit_inexact(A.dtype(), "linalg.inv", [&]<class T>() {
    each_matrix(batch, n, [&](int64_t i) {
      lapack::inverse<T>(n, lu.data<T>() + i * n * n, pivots.data() + i * n,
                         work.data<T>() + i * n * n);
    });
  });
  settle(inverse, work), settle(info, infos);
  if (check_errors) linalg_check_errors(info, info, "linalg.inv_ex", A.dim() == 2);
}

// Determinants from the factors, with the factors.
void linalg_det(Tensor& result, Tensor& LU, Tensor& pivots, const Tensor& A) {
  Tensor work = columns_of(LU), p = dense_of(pivots), out = dense_of(result);
  copy(work, A);
  const int64_t n = A.size(-1), batch = batch_of(A);
  std::vector<int> infos(batch);
  factor(work, p.data<int>(), infos.data());
  visit_inexact(A.dtype(), "linalg.det", [&]<class T>() {
    for (int64_t i = 0; i < batch; ++i) {
      T product(static_cast<lapack::Real<T>>(parity(p.data<int>() + i * n, n)));
      for (int64_t j = 0; j < n; ++j) product *= work.data<T>()[i * n * n + j * n + j];
      out.data<T>()[i] = product;
    }
  });
  settle(LU, work), settle(pivots, p), settle(result, out);
}

void linalg_slogdet(Tensor& sign, Tensor& logabsdet, Tensor& LU, Tensor& pivots, const Tensor& A) {
  Tensor work = columns_of(LU), p = dense_of(pivots), s = dense_of(sign), l = dense_of(logabsdet);
  copy(work, A);
  const int64_t n = A.size(-1), batch = batch_of(A);
  std::vector<int> infos(batch);
  factor(work, p.data<int>(), infos.data());
  visit_inexact(A.dtype(), "linalg.slogdet", [&]<class T>() {
    using R = lapack::Real<T>;
    for (int64_t i = 0; i < batch; ++i) {
      T unit(static_cast<R>(parity(p.data<int>() + i * n, n)));
      R sum = 0;
      for (int64_t j = 0; j < n; ++j) {
        const T x = work.data<T>()[i * n * n + j * n + j];
        const R size = std::abs(x);
        unit *= size == R(0) ? T(0) : x / size;
        sum += std::log(size);
      }
      s.data<T>()[i] = unit;
      l.data<R>()[i] = sum;
    }
  });
  settle(LU, work), settle(pivots, p), settle(sign, s), settle(logabsdet, l);
}

// Conjugated cofactors: the derivative of the determinant, also of singular matrices. With A = U S
// V^H they are det(U) det(V)^* times U diag(product of the other singular values) V^H, all
// conjugated into place.
void linalg_cofactor(Tensor& result, const Tensor& A) {
  Tensor out = columns_of(result), work = column_copy(A);
  const int n = small(A.size(-1), "linalg.det");
  visit_inexact(A.dtype(), "linalg.det", [&]<class T>() {
    using R = lapack::Real<T>;
    each_matrix(batch_of(A), n, [&](int64_t b) {
      const int64_t nn = int64_t{n} * n;
      std::vector<T> u(nn), v(nn), scratch(nn);
      std::vector<R> s(n), others(n);
      std::vector<int> pivots(n);
      T* c = out.data<T>() + b * nn;
      if (lapack::gesdd<T>('S', n, n, work.data<T>() + b * nn, s.data(), u.data(), n, v.data(),
                           n)) {
        std::fill_n(c, nn, T(std::numeric_limits<R>::quiet_NaN()));
        return;
      }
      auto det = [&](const std::vector<T>& q) {
        scratch = q;
        lapack::getrf<T>(n, n, scratch.data(), pivots.data());
        T d(static_cast<R>(parity(pivots.data(), n)));
        for (int64_t j = 0; j < n; ++j) d *= scratch[j * n + j];
        return d;
      };
      const T unit = conj_of(det(u) * det(v));
      for (int k = 0; k < n; ++k) {
        others[k] = 1;
        for (int j = 0; j < n; ++j)
          if (j != k) others[k] *= s[j];
      }
      for (int j = 0; j < n; ++j)
        for (int i = 0; i < n; ++i) {
          T sum(0);
          for (int k = 0; k < n; ++k)
            sum += u[k * int64_t{n} + i] * others[k] * v[j * int64_t{n} + k];
          c[j * int64_t{n} + i] = unit * sum;
        }
    });
  });
  settle(result, out);
}

// A X = B by LU; the factors are kept for the derivative. B and the result are batches of matrices
// here.
void linalg_solve_ex(Tensor& result, Tensor& LU, Tensor& pivots, Tensor& info, const Tensor& A,
                     const Tensor& B, bool left, bool) {
  Tensor work = columns_of(LU), p = dense_of(pivots), infos = dense_of(info);
  copy(work, A);
  factor(work, p.data<int>(), infos.data<int>());
  settle(LU, work), settle(pivots, p), settle(info, infos);
  linalg_lu_solve(result, work, p, B, left, false);
}

void linalg_solve_triangular(Tensor& result, const Tensor& A, const Tensor& B, bool upper,
                             bool left, bool unitriangular) {
  const Tensor target = left ? result : turned(result);
  Tensor work = columns_of(target);
  copy(work, left ? B : turned(B));
  Tensor a = columns_read(A, batch_sizes(result));
  const int n = small(A.size(-1), "linalg.solve_triangular"),
            rhs = small(work.size(-1), "linalg.solve_triangular");
  visit_inexact(A.dtype(), "linalg.solve_triangular", [&]<class T>() {
    if (n == 0 || rhs == 0) return;
    each_matrix(batch_of(result), n, [&](int64_t i) {
      lapack::trtrs<T>(upper, left ? 'N' : 'T', unitriangular, n, rhs, a.data<T>() + i * n * n,
                       work.data<T>() + i * int64_t{n} * rhs);
    });
  });
  settle(target, work);
}

}  // namespace flambeau::kernels
