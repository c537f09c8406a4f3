// Eigenvalues and eigenvectors of general matrices without LAPACK, in complex double whatever the
// element type: Hessenberg form, shifted QR steps, substitution. Source: Golub and Van Loan, Matrix
// Computations (4th ed.), 7.4 to 7.6.
#include <numeric>

#include "kernels/providers/lapack_builtin_tools.h"

namespace flambeau::kernels::lapack::builtin {
namespace {

using Z = std::complex<double>;
constexpr double kEps = std::numeric_limits<double>::epsilon();

using Square = Matrix<Z>;
Square identity(int n) {
  Square out(n, n);
  for (int i = 0; i < n; ++i) out(i, i) = 1;
  return out;
}
template <class T>
Square load(const T* a, int n) {
  Square out(n, n);
  std::copy_n(a, out.a.size(), out.a.data());
  return out;
}

// y = (I - tau v v^H) y, v[0] taken as 1.
void reflect(const Z* v, Z tau, Z* y, int n) {
  Z sum = y[0];
  for (int i = 1; i < n; ++i) sum += std::conj(v[i]) * y[i];
  sum *= tau;
  y[0] -= sum;
  for (int i = 1; i < n; ++i) y[i] -= sum * v[i];
}

// A = q h q^H with h upper Hessenberg.
void hessenberg(Square& h, Square& q) {
  const int n = h.n;
  for (int k = 0; k + 2 < n; ++k) {
    std::vector<Z> v(h.column(k) + k + 1, h.column(k) + n);
    const Z tau = reflector(v.data(), n - k - 1);
    const Z beta = v[0];
    v[0] = 1;
    for (int j = k + 1; j < n; ++j)
      reflect(v.data(), std::conj(tau), h.column(j) + k + 1, n - k - 1);
    auto right = [&](Square& x) {  // x (I - tau v v^H)
      for (int i = 0; i < n; ++i) {
        Z sum = 0;
        for (int j = k + 1; j < n; ++j) sum += x(i, j) * v[j - k - 1];
        sum *= tau;
        for (int j = k + 1; j < n; ++j) x(i, j) -= sum * std::conj(v[j - k - 1]);
      }
    };
    right(h), right(q);
    h(k + 1, k) = beta;
    for (int i = k + 2; i < n; ++i) h(i, k) = 0;
  }
}

Z wilkinson(const Square& h, int hi) {
  const Z a = h(hi - 1, hi - 1), b = h(hi - 1, hi), c = h(hi, hi - 1), d = h(hi, hi);
  const Z half = (a - d) * 0.5, root = std::sqrt(half * half + b * c);
  const Z below = std::abs(half + root) > std::abs(half - root) ? half + root : half - root;
  return below == Z(0) ? d : d - b * c / below;
}

// One QR step on rows and columns [lo, hi] of the Hessenberg h, carried over the whole Schur form
// and into q.
void qr_step(Square& h, Square& q, int lo, int hi, Z shift) {
  const int n = h.n;
  std::vector<double> cs(hi - lo);
  std::vector<Z> sn(hi - lo);
  for (int i = lo; i <= hi; ++i) h(i, i) -= shift;
  for (int k = lo; k < hi; ++k) {
    const Z f = h(k, k), g = h(k + 1, k);
    const double r = std::hypot(std::abs(f), std::abs(g)), size = std::abs(f);
    const Z unit = size == 0 ? Z(1) : f / size;
    const double c = r == 0 ? 1 : size / r;
    const Z s = r == 0 ? Z(0) : unit * std::conj(g) / r;
    cs[k - lo] = c, sn[k - lo] = s;
    for (int j = k; j < n; ++j) {
      const Z x = h(k, j), y = h(k + 1, j);
      h(k, j) = c * x + s * y;
      h(k + 1, j) = c * y - std::conj(s) * x;
    }
  }
  for (int k = lo; k < hi; ++k) {
    const double c = cs[k - lo];
    const Z s = sn[k - lo];
    auto right = [&](Square& x, int rows) {
      for (int i = 0; i < rows; ++i) {
        const Z a = x(i, k), b = x(i, k + 1);
        x(i, k) = c * a + std::conj(s) * b;
        x(i, k + 1) = c * b - s * a;
      }
    };
    right(h, std::min(k + 2, hi + 1)), right(q, n);
  }
  for (int i = lo; i <= hi; ++i) h(i, i) += shift;
}

// h becomes upper triangular; 0, or the position that did not converge.
int schur(Square& h, Square& q) {
  int hi = h.n - 1, tries = 0;
  while (hi > 0) {
    int lo = hi;
    for (; lo > 0; --lo)
      if (size1(h(lo, lo - 1)) <= kEps * (size1(h(lo, lo)) + size1(h(lo - 1, lo - 1)))) {
        h(lo, lo - 1) = 0;
        break;
      }
    if (lo == hi) {
      --hi, tries = 0;
      continue;
    }
    if (++tries > 60) return hi + 1;
    Z shift = wilkinson(h, hi);
    if (tries % 10 == 0) shift = size1(h(hi, hi - 1)) + (hi > 1 ? size1(h(hi - 1, hi - 2)) : 0);
    qr_step(h, q, lo, hi, shift);
  }
  return 0;
}

// Eigenvector k of the triangular h, taken back by q; of length 1, its largest entry real.
void eigenvector(const Square& h, const Square& q, int k, double norm, Z* out) {
  const int n = h.n;
  std::vector<Z> x(k + 1);
  x[k] = 1;
  for (int i = k - 1; i >= 0; --i) {
    Z sum = 0;
    for (int j = i + 1; j <= k; ++j) sum += h(i, j) * x[j];
    Z gap = h(i, i) - h(k, k);
    if (size1(gap) < kEps * norm) gap = std::max(kEps * norm, std::numeric_limits<double>::min());
    x[i] = -sum / gap;
    if (double big = size1(x[i]); big > 1e100)
      for (Z& z : x) z /= big;
  }
  for (int i = 0; i < n; ++i) {
    out[i] = 0;
    for (int j = 0; j <= k; ++j) out[i] += q(i, j) * x[j];
  }
  const double length = norm2(out, n);
  const Z big = *std::max_element(out, out + n, [](Z a, Z b) { return std::abs(a) < std::abs(b); });
  const Z turn = std::conj(big) / std::abs(big) / length;
  for (int i = 0; i < n; ++i) out[i] *= turn;
}

}  // namespace

template <class T>
int geev(bool vectors, int n, T* a, std::complex<Real<T>>* w, std::complex<Real<T>>* v) {
  using C = std::complex<Real<T>>;
  Square h = load(a, n), q = identity(n);
  const double norm = norm2(h.a.data(), n * n);
  hessenberg(h, q);
  if (const int failed = schur(h, q)) return failed;
  std::vector<Z> values(n), x(n);
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  for (int i = 0; i < n; ++i) values[i] = h(i, i);
  if constexpr (std::is_floating_point_v<T>) {  // pairs side by side, the one above the real axis
                                                // first
    for (Z& z : values)
      if (std::fabs(z.imag()) <= 8 * kEps * norm) z = z.real();
    for (int i = 0; i + 1 < n; ++i) {
      const Z z = values[order[i]];
      if (z.imag() == 0) continue;
      auto mate = std::min_element(order.begin() + i + 1, order.end(), [&](int p, int r) {
        return std::abs(values[p] - std::conj(z)) < std::abs(values[r] - std::conj(z));
      });
      values[*mate] = std::conj(z);
      std::rotate(order.begin() + i + 1, mate, mate + 1);
      if (z.imag() < 0) std::swap(order[i], order[i + 1]);
      ++i;
    }
  }
  for (int j = 0; j < n; ++j) {
    w[j] = C(values[order[j]]);
    if (!vectors) continue;
    eigenvector(h, q, order[j], norm, x.data());
    for (int i = 0; i < n; ++i) v[static_cast<size_t>(j) * n + i] = C(x[i]);
    if (std::is_floating_point_v<T> && values[order[j]].imag() < 0 &&
        j > 0)  // exactly the mate's conjugate
      for (int i = 0; i < n; ++i)
        v[static_cast<size_t>(j) * n + i] = std::conj(v[static_cast<size_t>(j - 1) * n + i]);
  }
  return 0;
}

#define FB_INSTANTIATE(T) \
  template int geev<T>(bool, int, T*, std::complex<Real<T>>*, std::complex<Real<T>>*);
FB_INSTANTIATE(float)
FB_INSTANTIATE(double)
FB_INSTANTIATE(complex64)
FB_INSTANTIATE(complex128)

}  // namespace flambeau::kernels::lapack::builtin
