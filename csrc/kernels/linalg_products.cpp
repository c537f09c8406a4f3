// Cross products, matrix exponentials and symmetric indefinite factorisations of batches.
// Sources: Higham, SIAM J. Matrix Anal. 26 (2005), scaling and squaring with Pade approximants;
// Bunch and Kaufman, Math. Comp. 31 (1977), in the packing of LAPACK's sytrf (lower triangle).
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
template <class T>
double size1(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fabs(x);
  else
    return std::fabs(x.real()) + std::fabs(x.imag());
}

// x broadcast to `sizes`, dense, with `dim` outermost: three planes.
Tensor planes(const Tensor& x, const Ints& sizes, int64_t dim) {
  Ints moved = sizes;
  moved.erase(moved.begin() + dim);
  moved.insert(moved.begin(), 3);
  Tensor out = empty(moved, x.dtype());
  Ints back = contiguous_strides(moved);
  const int64_t outer = back[0];
  back.erase(back.begin());
  back.insert(back.begin() + dim, outer);
  copy(alias(out, sizes, back, 0), x);
  return out;
}

// Matrices by rows in double precision; c = a b.
template <class T>
struct Square {
  int n;
  std::vector<T> a;
  explicit Square(int n) : n(n), a(static_cast<size_t>(n) * n) {}
};
template <class T>
Square<T> operator*(const Square<T>& x, const Square<T>& y) {
  Square<T> out(x.n);
  gemm({dtype_of<T>, x.n, x.n, x.n, {x.a.data(), x.n, 1}, {y.a.data(), x.n, 1}, out.a.data(), x.n});
  return out;
}

// exp of one matrix by the Pade approximant of degree 13.
template <class T>
bool exponential(Square<T>& x) {
  constexpr double b[] = {64764752532480000,
                          32382376266240000,
                          7771770303897600,
                          1187353796428800,
                          129060195264000,
                          10559470521600,
                          670442572800,
                          33522128640,
                          1323241920,
                          40840800,
                          960960,
                          16380,
                          182,
                          1};
  const int n = x.n;
  double norm = 0;
  for (int i = 0; i < n; ++i) {
    double row = 0;
    for (int j = 0; j < n; ++j) row += std::abs(x.a[static_cast<size_t>(i) * n + j]);
    if (!(row <= norm)) norm = row;
  }
  if (!std::isfinite(norm)) return false;
  const int squarings = norm > 5.371920351148152 ? std::ilogb(norm / 5.371920351148152) + 1 : 0;
  for (T& v : x.a) v *= std::ldexp(1.0, -squarings);
  const Square<T> x2 = x * x, x4 = x2 * x2, x6 = x2 * x4;
  auto combine = [&](double c6, double c4, double c2, double c0) {
    Square<T> out(n);
    for (size_t i = 0; i < out.a.size(); ++i) out.a[i] = c6 * x6.a[i] + c4 * x4.a[i] + c2 * x2.a[i];
    for (int i = 0; i < n; ++i) out.a[static_cast<size_t>(i) * (n + 1)] += c0;
    return out;
  };
  auto plus = [](Square<T> p, const Square<T>& q) {
    for (size_t i = 0; i < p.a.size(); ++i) p.a[i] += q.a[i];
    return p;
  };
  const Square<T> u =
      x * plus(x6 * combine(b[13], b[11], b[9], 0), combine(b[7], b[5], b[3], b[1]));
  const Square<T> v = plus(x6 * combine(b[12], b[10], b[8], 0), combine(b[6], b[4], b[2], b[0]));
  // (v - u) e = v + u; by columns this solves the transposed system, whose solution is the
  // transpose of e by columns.
  Square<T> left(n);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      const size_t at = static_cast<size_t>(i) * n + j, to = static_cast<size_t>(j) * n + i;
      left.a[to] = v.a[at] - u.a[at];
      x.a[to] = v.a[at] + u.a[at];
    }
  std::vector<int> pivots(n);
  lapack::getrf<T>(n, n, left.a.data(), pivots.data());
  lapack::getrs<T>('N', n, n, left.a.data(), pivots.data(), x.a.data());
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < i; ++j)
      std::swap(x.a[static_cast<size_t>(i) * n + j], x.a[static_cast<size_t>(j) * n + i]);
  for (int i = 0; i < squarings; ++i) x = x * x;
  return true;
}

// One symmetric or Hermitian matrix by columns, only its lower triangle given and kept.
template <class T>
struct Symmetric {
  T* a;
  int n;
  bool hermitian;
  T& operator()(int i, int j) const { return a[static_cast<size_t>(j) * n + i]; }
  T mirror(T x) const { return hermitian ? conj_of(x) : x; }
  T get(int i, int j) const { return i >= j ? (*this)(i, j) : mirror((*this)(j, i)); }
};

// Exchanges p and q (p < q) in what is left to factor, from column `from` on.
template <class T>
void exchange(const Symmetric<T>& m, int from, int p, int q) {
  for (int i = q + 1; i < m.n; ++i) std::swap(m(i, p), m(i, q));
  for (int i = p + 1; i < q; ++i) {
    const T x = m.mirror(m(i, p));
    m(i, p) = m.mirror(m(q, i));
    m(q, i) = x;
  }
  m(q, p) = m.mirror(m(q, p));
  std::swap(m(p, p), m(q, q));
  for (int j = from; j < p; ++j) std::swap(m(p, j), m(q, j));
}

// Solves [[p, mirror(q)], [q, r]] (x, y) = (x, y).
template <class T>
void solve_pair(T p, T q, T mirrored, T r, T& x, T& y) {
  const T det = p * r - q * mirrored, u = x, v = y;
  x = (r * u - mirrored * v) / det;
  y = (p * v - q * u) / det;
}

template <class T>
int bunch_kaufman(const Symmetric<T>& m, int* pivots) {
  const double alpha = (1 + std::sqrt(17.0)) / 8;
  int info = 0;
  for (int k = 0; k < m.n;) {
    auto diagonal = [&](int i) {
      return m.hermitian ? std::fabs(std::real(m(i, i))) : size1(m(i, i));
    };
    int largest = k, with = k, step = 1;
    double column = 0;
    for (int i = k + 1; i < m.n; ++i)
      if (size1(m(i, k)) > column) column = size1(m(i, k)), largest = i;
    const double here = diagonal(k);
    if (std::max(here, column) == 0) {
      if (!info) info = k + 1;
    } else if (here < alpha * column) {
      double row = 0;
      for (int j = k; j < m.n; ++j)
        if (j != largest) row = std::max(row, size1(m.get(largest, j)));
      if (here >= alpha * column * (column / row))
        with = k;
      else if (diagonal(largest) >= alpha * row)
        with = largest;
      else
        with = largest, step = 2;
    }
    const int last = k + step - 1;
    if (with != last) exchange(m, k, last, with);
    if (m.hermitian) m(k, k) = std::real(m(k, k));
    if (step == 1) {
      const T d = m(k, k);
      if (d != T(0))
        for (int j = k + 1; j < m.n; ++j) {
          const T l = m(j, k) / d;
          for (int i = j; i < m.n; ++i) m(i, j) -= m(i, k) * m.mirror(l);
        }
      for (int i = k + 1; d != T(0) && i < m.n; ++i) m(i, k) /= d;
      pivots[k] = with + 1;
    } else {
      if (m.hermitian) m(last, last) = std::real(m(last, last));
      const T p = m(k, k), q = m(last, k), r = m(last, last);
      std::vector<T> u(m.n), v(m.n);
      for (int i = k + 2; i < m.n; ++i) {  // the row of L: (a_ik, a_i,k+1) D^-1
        u[i] = m(i, k), v[i] = m(i, last);
        solve_pair(p, m.mirror(q), q, r, u[i], v[i]);
      }
      for (int j = k + 2; j < m.n; ++j)
        for (int i = j; i < m.n; ++i)
          m(i, j) -= m(i, k) * m.mirror(u[j]) + m(i, last) * m.mirror(v[j]);
      for (int i = k + 2; i < m.n; ++i) m(i, k) = u[i], m(i, last) = v[i];
      pivots[k] = pivots[last] = -(with + 1);
    }
    k += step;
  }
  return info;
}

template <class T>
void solve_factored(const Symmetric<T>& m, const int* pivots, T* b) {
  const int n = m.n;
  for (int k = 0; k < n;) {
    const int step = pivots[k] > 0 ? 1 : 2, last = k + step - 1;
    std::swap(b[last], b[std::abs(pivots[k]) - 1]);
    for (int i = k + step; i < n; ++i)
      for (int j = k; j <= last; ++j) b[i] -= m(i, j) * b[j];
    if (step == 1)
      b[k] /= m(k, k);
    else
      solve_pair(m(k, k), m(last, k), m.mirror(m(last, k)), m(last, last), b[k], b[last]);
    k += step;
  }
  for (int k = n - 1; k >= 0;) {
    const int step = pivots[k] > 0 ? 1 : 2, first = k - step + 1;
    for (int j = first; j <= k; ++j)
      for (int i = k + 1; i < n; ++i) b[j] -= m.mirror(m(i, j)) * b[i];
    std::swap(b[k], b[std::abs(pivots[k]) - 1]);
    k -= step;
  }
}

}  // namespace

void linalg_cross(Tensor& result, const Tensor& input, const Tensor& other, int64_t dim) {
  if (result.numel() == 0) return;
  const int64_t d = wrap_dim(dim, result.dim()), n = result.numel() / 3;
  Tensor a = planes(input, result.sizes(), d), b = planes(other, result.sizes(), d),
         out = empty(a.sizes(), a.dtype());
  visit(result.dtype(), [&]<class T>() {
    if constexpr (!is_truth<T>) {
      using W = Wrapping<T>;
      const T *x = a.data<T>(), *y = b.data<T>();
      parallel_for(0, n, kGrain, [&](int64_t from, int64_t to) {
        for (int k = 0; k < 3; ++k) {
          const int64_t p = (k + 1) % 3 * n, q = (k + 2) % 3 * n;
          for (int64_t i = from; i < to; ++i)
            out.data<T>()[k * n + i] =
                static_cast<T>(static_cast<W>(x[p + i]) * static_cast<W>(y[q + i]) -
                               static_cast<W>(x[q + i]) * static_cast<W>(y[p + i]));
        }
      });
    }
  });
  Ints strides = contiguous_strides(out.sizes());
  const int64_t outer = strides[0];
  strides.erase(strides.begin());
  strides.insert(strides.begin() + d, outer);
  copy(result, alias(out, result.sizes(), strides, 0));
}

void linalg_matrix_exp(Tensor& result, const Tensor& A) {
  const int n = small(A.size(-1), "linalg.matrix_exp");
  if (result.numel() == 0) return;
  const DType kind = A.is_complex() ? DType::Complex128 : DType::Float64;
  Tensor work = contiguous(to_dtype(A, kind));
  if (work.is_same(A)) work = clone(A, MemoryFormat::Contiguous);
  auto run = [&]<class T>() {
    each_matrix(batch_of(A), n, [&](int64_t b) {
      Square<T> x(n);
      T* at = work.data<T>() + b * int64_t{n} * n;
      std::copy_n(at, x.a.size(), x.a.begin());
      if (!exponential(x)) std::fill(x.a.begin(), x.a.end(), T(std::nan("")));
      std::copy(x.a.begin(), x.a.end(), at);
    });
  };
  if (A.is_complex())
    run.template operator()<complex128>();
  else
    run.template operator()<double>();
  copy(result, work);
}

void linalg_ldl_factor_ex(Tensor& LD, Tensor& pivots, Tensor& info, const Tensor& input,
                          bool hermitian, bool check_errors) {
  Tensor work = columns_of(LD), p = dense_of(pivots), infos = dense_of(info);
  copy(work, input);
  const int n = small(input.size(-1), "linalg.ldl_factor");
  visit_inexact(input.dtype(), "linalg.ldl_factor", [&]<class T>() {
    each_matrix(batch_of(input), n, [&](int64_t i) {
      const Symmetric<T> m{work.data<T>() + i * int64_t{n} * n, n, hermitian && input.is_complex()};
      infos.data<int>()[i] = bunch_kaufman(m, p.data<int>() + i * n);
      for (int j = 0; j < n; ++j)
        for (int k = 0; k < j; ++k) m(k, j) = T(0);
    });
  });
  settle(LD, work), settle(pivots, p), settle(info, infos);
  if (check_errors) linalg_check_errors(info, info, "torch.linalg.ldl_factor_ex", input.dim() == 2);
}

void linalg_ldl_solve(Tensor& result, const Tensor& LD, const Tensor& pivots, const Tensor& B,
                      bool hermitian) {
  Tensor work = columns_of(result);
  copy(work, B);
  Ints batch = result.sizes();
  batch.resize(batch.size() - 2);
  Tensor factors = columns_read(LD, batch);
  Ints sizes = batch;
  sizes.push_back(LD.size(-1));
  Tensor p = empty(sizes, DType::Int32);
  copy(p, pivots);
  const int n = small(LD.size(-1), "linalg.ldl_solve"), rhs = small(B.size(-1), "linalg.ldl_solve");
  // Pairs of equal negative pivots, all in range: what bunch_kaufman makes.
  const int* all = p.data<int>();
  for (int64_t i = 0; i < p.numel(); ++i) {
    const bool pair = all[i] < 0;
    FB_CHECK(
        all[i] != 0 && std::abs(all[i]) <= n && (!pair || (i % n + 1 < n && all[i + 1] == all[i])),
        "torch.linalg.ldl_solve: pivots are not those of linalg.ldl_factor");
    i += pair;
  }
  visit_inexact(LD.dtype(), "linalg.ldl_solve", [&]<class T>() {
    each_matrix(batch_of(result), n, [&](int64_t i) {
      const Symmetric<T> m{factors.data<T>() + i * int64_t{n} * n, n, hermitian && LD.is_complex()};
      for (int j = 0; j < rhs; ++j)
        solve_factored(m, all + i * n, work.data<T>() + (i * rhs + j) * n);
    });
  });
  settle(result, work);
}

}  // namespace flambeau::kernels
