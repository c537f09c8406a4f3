// LAPACK out of OpenBLAS. It runs in one thread: its own threads and ours wait for work by turning,
// so together they take the cores from each other (512 x 512 by Cholesky: 2.2 ms in one thread, 6.6
// in two). Large matrices are shared out over our threads here, by columns that do not meet.
#include "kernels/providers/lapack.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "kernels/providers/lapack_blocks.h"
#include "kernels/providers/lapack_builtin.h"
#include "kernels/providers/lapack_library.h"

namespace flambeau::kernels::lapack {
namespace {

std::atomic<bool> builtin_wanted = false;

// The routine `stem` for T: prefix + one of s d c z + stem + _.
template <class T>
constexpr char letter = std::is_same_v<T, float>       ? 's'
                        : std::is_same_v<T, double>    ? 'd'
                        : std::is_same_v<T, complex64> ? 'c'
                                                       : 'z';
template <class F>
F* routine(const std::string& name) {
  auto* f = reinterpret_cast<F*>(library().symbol(name + "_"));
  FB_CHECK(f, "linalg: OpenBLAS lacks ", name);
  return f;
}
template <class T, class F>
F* routine_of(const char* stem) {
  return routine<F>(letter<T> + std::string(stem));
}

// b = op(a)^-1 b (side L) or b op(a)^-1 (side R) for a triangle a.
template <class T>
void solve_triangle(char side, char uplo, char trans, char diag, int m, int n, const T* a, int lda,
                    T* b, int ldb) {
  // trsm, not trtrs: a zero on the diagonal gives inf, not a refusal.
  static auto* f =
      routine_of<T, void(const char*, const char*, const char*, const char*, const int*, const int*,
                         const T*, const T*, const int*, T*, const int*)>("trsm");
  T one(1);
  f(&side, &uplo, &trans, &diag, &m, &n, &one, a, &lda, b, &ldb);
}

// What lapack_blocks.h needs of a maker.
struct Blas {
  // c -= op(a) op(b)
  template <class T>
  static void subtract(char ta, char tb, int m, int n, int k, const T* a, int lda, const T* b,
                       int ldb, T* c, int ldc) {
    static auto* f =
        routine_of<T, void(const char*, const char*, const int*, const int*, const int*, const T*,
                           const T*, const int*, const T*, const int*, const T*, T*, const int*)>(
            "gemm");
    T minus(-1), one(1);
    f(&ta, &tb, &m, &n, &k, &minus, a, &lda, b, &ldb, &one, c, &ldc);
  }
  // Exchanges rows [from, to) of n columns with those that `pivots` (from 1) name, from the first
  // to the last or back.
  template <class T>
  static void swap_rows(int n, T* a, int lda, int from, int to, const int* pivots, bool back) {
    static auto* f = routine_of<T, void(const int*, T*, const int*, const int*, const int*,
                                        const int*, const int*)>("laswp");
    int first = from + 1, step = back ? -1 : 1;
    f(&n, a, &lda, &first, &to, pivots, &step);
  }
};

template <class T>
int factor_panel(int m, int n, T* a, int lda, int* pivots) {
  static auto* f = routine_of<T, void(const int*, const int*, T*, const int*, int*, int*)>("getrf");
  int info = 0;
  f(&m, &n, a, &lda, pivots, &info);
  return info;
}

// LU from the left to the right: a panel of columns is factored, every thread brings its share of
// the columns behind it up to date (Golub & Van Loan 2013, 3.2.11).
template <class T>
int getrf_by_blocks(int m, int n, T* a, int* pivots) {
  int info = 0;
  const int steps = std::min(m, n);
  for (int j = 0; j < steps; j += kBlock) {
    const int width = std::min(kBlock, steps - j), next = j + width, rest = n - next;
    T* panel = column(a, m, j) + j;
    const int failed = factor_panel<T>(m - j, width, panel, m, pivots + j);
    if (failed > 0 && info == 0) info = failed + j;
    for (int i = j; i < next; ++i) pivots[i] += j;
    if (j > 0) Blas::swap_rows<T>(j, a, m, j, next, pivots, false);
    const auto update = [&](int from, int to) {
      T* c = column(a, m, next + from);
      Blas::swap_rows<T>(to - from, c, m, j, next, pivots, false);
      solve_by_halves<Blas, T>('L', 'N', 'U', width, to - from, panel, m, c + j, m);
      if (next < m)
        Blas::subtract<T>('N', 'N', m - next, to - from, width, panel + width, m, c + j, m,
                          c + next, m);
    };
    shared_out(rest, static_cast<double>(width) * (m - j), update);
  }
  return info;
}

template <class T>
int factor_positive(char uplo, int n, T* a, int lda) {
  static auto* f = routine_of<T, void(const char*, const int*, T*, const int*, int*)>("potrf");
  int info = 0;
  f(&uplo, &n, a, &lda, &info);
  return info;
}

// Cholesky in the same way. Of a triangle threads take pairs of block columns, a short one and a
// long one; what lies in the other triangle of the blocks on the diagonal is lost.
template <class T>
int potrf_by_blocks(bool upper, int n, T* a) {
  const char uplo = upper ? 'U' : 'L';
  for (int j = 0; j < n; j += kBlock) {
    const int width = std::min(kBlock, n - j), next = j + width, rest = n - next;
    T* corner = column(a, n, j) + j;
    if (const int failed = factor_positive<T>(uplo, width, corner, n)) return failed + j;
    T* beside = upper ? column(a, n, next) + j : corner + width;
    shared_out(rest, static_cast<double>(width) * width / 2, [&](int from, int to) {
      if (upper)
        solve_triangle<T>('L', 'U', 'C', 'N', width, to - from, corner, n, column(beside, n, from),
                          n);
      else
        solve_triangle<T>('R', 'L', 'C', 'N', to - from, width, corner, n, beside + from, n);
    });
    const int blocks = (rest + kBlock - 1) / kBlock;
    const auto update = [&](int block) {
      const int at = block * kBlock, columns = std::min(kBlock, rest - at);
      T* c = column(a, n, next + at) + next;
      if (upper)
        Blas::subtract<T>('C', 'N', at + columns, columns, width, beside, n, column(beside, n, at),
                          n, c, n);
      else
        Blas::subtract<T>('N', 'C', rest - at, columns, width, beside + at, n, beside + at, n,
                          c + at, n);
    };
    parallel_for(0, (blocks + 1) / 2, 1, [&](int64_t from, int64_t to) {
      for (int i = static_cast<int>(from); i < to; ++i) {
        update(i);
        if (blocks - 1 - i != i) update(blocks - 1 - i);
      }
    });
  }
  return 0;
}

// Asks a routine for its workspace (lwork = -1), then calls it.
template <class T, class Call>
int with_workspace(const Call& call) {
  T size{};
  int query = -1, info = 0;
  call(&size, &query, &info);
  if (info) return info;
  int n = std::max(1, static_cast<int>(std::real(std::complex<double>(size))));
  std::vector<T> work(n);
  call(work.data(), &n, &info);
  return info;
}

}  // namespace

bool available() {
  return !builtin_wanted && library().handle;
}
bool use_builtin(bool on) {
  return builtin_wanted.exchange(on);
}

template <class T>
int potrf(bool upper, int n, T* a) {
  if (!available()) return builtin::potrf(upper, n, a);
  if (in_blocks(n)) return potrf_by_blocks(upper, n, a);
  return factor_positive(upper ? 'U' : 'L', n, a, std::max(1, n));
}

template <class T>
int getrf(int m, int n, T* a, int* pivots) {
  if (!available()) return builtin::getrf(m, n, a, pivots);
  if (in_blocks(std::min(m, n))) return getrf_by_blocks(m, n, a, pivots);
  return factor_panel(m, n, a, std::max(1, m), pivots);
}

template <class T>
int getrs(char trans, int n, int rhs, const T* lu, const int* pivots, T* b) {
  if (!available()) return builtin::getrs(trans, n, rhs, lu, pivots, b);
  return solve_factored<Blas>(trans, n, rhs, lu, pivots, b), 0;
}

template <class T>
void inverse(int n, const T* lu, const int* pivots, T* x) {
  if (!available()) return builtin::inverse(n, lu, pivots, x);
  invert_factored<Blas>(n, lu, pivots, x);
}

template <class T>
int trtrs(bool upper, char trans, bool unit, int n, int rhs, const T* a, T* b) {
  if (!available()) return builtin::trtrs(upper, trans, unit, n, rhs, a, b);
  return solve_columns<Blas>(upper ? 'U' : 'L', trans, unit ? 'U' : 'N', n, rhs, a, b), 0;
}

template <class T>
int geqrf(int m, int n, T* a, T* tau) {
  if (!available()) return builtin::geqrf(m, n, a, tau);
  static auto* f =
      routine_of<T, void(const int*, const int*, T*, const int*, T*, T*, const int*, int*)>(
          "geqrf");
  int lda = std::max(1, m);
  return with_workspace<T>(
      [&](T* work, const int* size, int* info) { f(&m, &n, a, &lda, tau, work, size, info); });
}

template <class T>
int orgqr(int m, int n, int k, T* a, const T* tau) {
  if (!available()) return builtin::orgqr(m, n, k, a, tau);
  static auto* f = routine_of<T, void(const int*, const int*, const int*, T*, const int*, const T*,
                                      T*, const int*, int*)>(cplx<T> ? "ungqr" : "orgqr");
  int lda = std::max(1, m);
  return with_workspace<T>(
      [&](T* work, const int* size, int* info) { f(&m, &n, &k, a, &lda, tau, work, size, info); });
}

template <class T>
int ormqr(bool left, char trans, int m, int n, int k, const T* a, int lda, const T* tau, T* c) {
  if (!available()) return builtin::ormqr(left, trans, m, n, k, a, lda, tau, c);
  static auto* f =
      routine_of<T, void(const char*, const char*, const int*, const int*, const int*, const T*,
                         const int*, const T*, T*, const int*, T*, const int*, int*)>(
          cplx<T> ? "unmqr" : "ormqr");
  char side = left ? 'L' : 'R';
  const int ldc = std::max(1, m);
  shared_out(left ? n : m, 2.0 * k * (left ? m : n), [&](int from, int to) {
    const int rows = left ? m : to - from, columns = left ? to - from : n;
    T* part = left ? column(c, m, from) : c + from;
    with_workspace<T>([&](T* work, const int* size, int* info) {
      f(&side, &trans, &rows, &columns, &k, a, &lda, tau, part, &ldc, work, size, info);
    });
  });
  return 0;
}

// Eigenvalues w and eigenvectors of the tridiagonal matrix with diagonal w.
template <class R>
int tridiagonal_vectors(int n, R* w, R* off, R* z) {
  static auto* f = routine_of<R, void(const char*, const int*, R*, R*, R*, const int*, R*,
                                      const int*, int*, const int*, int*)>("stedc");
  char whole = 'I';
  int size = 1 + 4 * n + n * n, isize = 3 + 5 * n, info = 0;
  std::vector<R> work(size);
  std::vector<int> iwork(isize);
  f(&whole, &n, w, off, z, &n, work.data(), &size, iwork.data(), &isize, &info);
  return info;
}

// Products of such numbers are numbers: heevd scales other matrices.
template <class T>
bool moderate(char uplo, int n, const T* a) {
  constexpr double high = std::is_same_v<Real<T>, float> ? 1e15 : 1e145;
  double most = 0;
  for (int j = 0; j < n; ++j)
    for (int i = uplo == 'U' ? 0 : j; i < (uplo == 'U' ? j + 1 : n); ++i) {
      const double size = std::abs(column(a, n, j)[i]);
      if (!(size <= high)) return false;
      most = std::max(most, size);
    }
  return most >= 1 / high;
}

template <class T>
std::vector<T> as_vector(std::vector<Real<T>>&& x) {
  if constexpr (cplx<T>)
    return {x.begin(), x.end()};
  else
    return std::move(x);
}

// Eigenvectors of a Hermitian matrix: to tridiagonal form, its eigenvectors by division, and these
// back (all of which LAPACK's heevd does), the last step shared out by columns.
template <class T>
int heevd_by_columns(bool upper, int n, T* a, Real<T>* w) {
  using R = Real<T>;
  using Sides = void(const char*, const int*, T*, const int*, R*, R*, T*, T*, const int*, int*);
  static auto* reduce = routine_of<T, Sides>(cplx<T> ? "hetrd" : "sytrd");
  char uplo = 'U';  // which OpenBLAS reduces in four fifths of the time that the other takes
  if (!upper)
    for (int j = 0; j < n; ++j)
      for (int i = j + 1; i < n; ++i) column(a, n, i)[j] = conjugate(column(a, n, j)[i]);
  std::vector<R> off(n);
  std::vector<T> tau(n);
  int info = with_workspace<T>([&](T* work, const int* size, int* result) {
    reduce(&uplo, &n, a, &n, w, off.data(), tau.data(), work, size, result);
  });
  if (info) return info;
  std::vector<R> vectors(static_cast<size_t>(n) * n);
  info = tridiagonal_vectors<R>(n, w, off.data(), vectors.data());
  if (info) return info;
  std::vector<T> z = as_vector<T>(std::move(vectors));
  static auto* back =
      routine_of<T, void(const char*, const char*, const char*, const int*, const int*, const T*,
                         const int*, const T*, T*, const int*, T*, const int*, int*)>(
          cplx<T> ? "unmtr" : "ormtr");
  shared_out(n, static_cast<double>(n) * n, [&](int from, int to) {
    char side = 'L', no = 'N';
    int columns = to - from;
    with_workspace<T>([&](T* work, const int* size, int* result) {
      back(&side, &uplo, &no, &n, &columns, a, &n, tau.data(), column(z.data(), n, from), &n, work,
           size, result);
    });
  });
  std::copy(z.begin(), z.end(), a);
  return 0;
}

template <class T>
int heevd(bool vectors, bool upper, int n, T* a, Real<T>* w) {
  if (!available()) return builtin::heevd(vectors, upper, n, a, w);
  using R = Real<T>;
  char job = vectors ? 'V' : 'N', uplo = upper ? 'U' : 'L';
  if (vectors && in_blocks(n) && moderate(uplo, n, a)) return heevd_by_columns(upper, n, a, w);
  int lda = std::max(1, n), info = 0, query = -1, isize = 0;
  T size{};
  R rsize = 0;
  auto run = [&](T* work, int* lwork, R* rwork, int* lrwork, int* iwork, int* liwork) {
    if constexpr (cplx<T>) {
      static auto* f =
          routine_of<T, void(const char*, const char*, const int*, T*, const int*, R*, T*,
                             const int*, R*, const int*, int*, const int*, int*)>("heevd");
      f(&job, &uplo, &n, a, &lda, w, work, lwork, rwork, lrwork, iwork, liwork, &info);
    } else {
      static auto* f = routine_of<T, void(const char*, const char*, const int*, T*, const int*, R*,
                                          T*, const int*, int*, const int*, int*)>("syevd");
      f(&job, &uplo, &n, a, &lda, w, work, lwork, iwork, liwork, &info);
      (void)rwork, (void)lrwork;
    }
  };
  int q1 = query, q2 = query, q3 = query;
  run(&size, &q1, &rsize, &q2, &isize, &q3);
  if (info) return info;
  int lwork = std::max(1, static_cast<int>(std::real(std::complex<double>(size)))),
      lrwork = std::max(1, static_cast<int>(rsize));
  int liwork = std::max(1, isize);
  std::vector<T> work(lwork);
  std::vector<R> rwork(lrwork);
  std::vector<int> iwork(liwork);
  run(work.data(), &lwork, rwork.data(), &lrwork, iwork.data(), &liwork);
  return info;
}

void check_finite(const std::vector<int>& infos, const char* op, bool is_matrix) {
  const auto bad = std::find(infos.begin(), infos.end(), kNotFinite);
  if (bad == infos.end()) return;
  const std::string where = is_matrix ? "" : concat("(Batch element ", bad - infos.begin(), "): ");
  fail(ErrorKind::LinAlg, op, ": ", where,
       "The algorithm failed to converge because the input matrix contained non-finite values.");
}

template <class T>
int gesdd(char job, int m, int n, T* a, Real<T>* s, T* u, int ldu, T* vt, int ldvt) {
  if (!all_finite(a, int64_t{m} * n)) return kNotFinite;
  if (!available()) return builtin::gesdd(job, m, n, a, s, u, ldu, vt, ldvt);
  using R = Real<T>;
  int lda = std::max(1, m), small = std::min(m, n), large = std::max(m, n);
  std::vector<int> iwork(8 * std::max(1, small));
  if constexpr (cplx<T>) {
    static auto* f =
        routine_of<T, void(const char*, const int*, const int*, T*, const int*, R*, T*, const int*,
                           T*, const int*, T*, const int*, R*, int*, int*)>("gesdd");
    size_t rsize = job == 'N' ? 7 * size_t(small)
                              : size_t(small) * std::max(5 * small + 7, 2 * large + 2 * small + 1);
    std::vector<R> rwork(std::max<size_t>(1, rsize));
    return with_workspace<T>([&](T* work, const int* size, int* info) {
      f(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, size, rwork.data(), iwork.data(), info);
    });
  } else {
    static auto* f =
        routine_of<T, void(const char*, const int*, const int*, T*, const int*, R*, T*, const int*,
                           T*, const int*, T*, const int*, int*, int*)>("gesdd");
    return with_workspace<T>([&](T* work, const int* size, int* info) {
      f(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, size, iwork.data(), info);
    });
  }
}

template <class T>
int geev(bool vectors, int n, T* a, std::complex<Real<T>>* w, std::complex<Real<T>>* v) {
  if (!available()) return builtin::geev(vectors, n, a, w, v);
  using R = Real<T>;
  char no = 'N', job = vectors ? 'V' : 'N';
  int ld = std::max(1, n), one = 1;
  if constexpr (cplx<T>) {
    static auto* f =
        routine_of<T, void(const char*, const char*, const int*, T*, const int*, T*, T*, const int*,
                           T*, const int*, T*, const int*, R*, int*)>("geev");
    std::vector<R> rwork(2 * ld);
    T dummy{};
    return with_workspace<T>([&](T* work, const int* size, int* info) {
      f(&no, &job, &n, a, &ld, w, &dummy, &one, vectors ? v : &dummy, &ld, work, size, rwork.data(),
        info);
    });
  } else {
    static auto* f =
        routine_of<T, void(const char*, const char*, const int*, T*, const int*, R*, R*, T*,
                           const int*, T*, const int*, T*, const int*, int*)>("geev");
    std::vector<R> re(ld), im(ld);
    std::vector<T> pairs(vectors ? size_t(ld) * ld : 1);
    T dummy{};
    int info = with_workspace<T>([&](T* work, const int* size, int* result) {
      f(&no, &job, &n, a, &ld, re.data(), im.data(), &dummy, &one, pairs.data(), &ld, work, size,
        result);
    });
    for (int j = 0; j < n; ++j) w[j] = {re[j], im[j]};
    for (int j = 0; vectors && j < n; ++j) {  // conjugate pairs lie as (real, imaginary) columns
      bool pair = im[j] != 0 && j + 1 < n;
      for (int i = 0; i < n; ++i) {
        R x = pairs[size_t(j) * n + i], y = pair ? pairs[size_t(j + 1) * n + i] : 0;
        v[size_t(j) * n + i] = {x, y};
        if (pair) v[size_t(j + 1) * n + i] = {x, -y};
      }
      j += pair;
    }
    return info;
  }
}

template <class T>
int gels(int driver, int m, int n, int rhs, T* a, T* b, Real<T> rcond, int* rank, Real<T>* s) {
  if (driver >= 2 && !all_finite(a, int64_t{m} * n)) return kNotFinite;
  if (!available()) return builtin::gels(driver, m, n, rhs, a, b, rcond, rank, s);
  using R = Real<T>;
  int lda = std::max(1, m), ldb = std::max({1, m, n}), small = std::max(1, std::min(m, n));
  if (driver == 0) {  // gels
    static auto* f = routine_of<T, void(const char*, const int*, const int*, const int*, T*,
                                        const int*, T*, const int*, T*, const int*, int*)>("gels");
    char no = 'N';
    *rank = small;
    return with_workspace<T>([&](T* work, const int* size, int* info) {
      f(&no, &m, &n, &rhs, a, &lda, b, &ldb, work, size, info);
    });
  }
  std::vector<R> rwork(std::max<size_t>(
      64, size_t(40) * small + 2 * n + size_t(50) * rhs * 25 + 26 * 26 + 16 * size_t(small) * 25));
  if (driver == 1) {  // gelsy
    std::vector<int> order(std::max(1, n), 0);
    if constexpr (cplx<T>) {
      static auto* f =
          routine_of<T, void(const int*, const int*, const int*, T*, const int*, T*, const int*,
                             int*, const R*, int*, T*, const int*, R*, int*)>("gelsy");
      return with_workspace<T>([&](T* work, const int* size, int* info) {
        f(&m, &n, &rhs, a, &lda, b, &ldb, order.data(), &rcond, rank, work, size, rwork.data(),
          info);
      });
    } else {
      static auto* f =
          routine_of<T, void(const int*, const int*, const int*, T*, const int*, T*, const int*,
                             int*, const R*, int*, T*, const int*, int*)>("gelsy");
      return with_workspace<T>([&](T* work, const int* size, int* info) {
        f(&m, &n, &rhs, a, &lda, b, &ldb, order.data(), &rcond, rank, work, size, info);
      });
    }
  }
  std::vector<int> iwork(std::max(64, 3 * small * 32 + 11 * small));
  auto call = [&](T* work, const int* size, int* info) {
    if constexpr (cplx<T>) {
      if (driver == 2) {
        static auto* f =
            routine_of<T, void(const int*, const int*, const int*, T*, const int*, T*, const int*,
                               R*, const R*, int*, T*, const int*, R*, int*, int*)>("gelsd");
        f(&m, &n, &rhs, a, &lda, b, &ldb, s, &rcond, rank, work, size, rwork.data(), iwork.data(),
          info);
      } else {
        static auto* f =
            routine_of<T, void(const int*, const int*, const int*, T*, const int*, T*, const int*,
                               R*, const R*, int*, T*, const int*, R*, int*)>("gelss");
        f(&m, &n, &rhs, a, &lda, b, &ldb, s, &rcond, rank, work, size, rwork.data(), info);
      }
    } else {
      if (driver == 2) {
        static auto* f =
            routine_of<T, void(const int*, const int*, const int*, T*, const int*, T*, const int*,
                               R*, const R*, int*, T*, const int*, int*, int*)>("gelsd");
        f(&m, &n, &rhs, a, &lda, b, &ldb, s, &rcond, rank, work, size, iwork.data(), info);
      } else {
        static auto* f =
            routine_of<T, void(const int*, const int*, const int*, T*, const int*, T*, const int*,
                               R*, const R*, int*, T*, const int*, int*)>("gelss");
        f(&m, &n, &rhs, a, &lda, b, &ldb, s, &rcond, rank, work, size, info);
      }
    }
  };
  return with_workspace<T>(call);
}

#define FB_INSTANTIATE(T)                                                              \
  template int potrf<T>(bool, int, T*);                                                \
  template int getrf<T>(int, int, T*, int*);                                           \
  template int getrs<T>(char, int, int, const T*, const int*, T*);                     \
  template void inverse<T>(int, const T*, const int*, T*);                             \
  template int trtrs<T>(bool, char, bool, int, int, const T*, T*);                     \
  template int geqrf<T>(int, int, T*, T*);                                             \
  template int orgqr<T>(int, int, int, T*, const T*);                                  \
  template int ormqr<T>(bool, char, int, int, int, const T*, int, const T*, T*);       \
  template int heevd<T>(bool, bool, int, T*, Real<T>*);                                \
  template int gesdd<T>(char, int, int, T*, Real<T>*, T*, int, T*, int);               \
  template int geev<T>(bool, int, T*, std::complex<Real<T>>*, std::complex<Real<T>>*); \
  template int gels<T>(int, int, int, int, T*, T*, Real<T>, int*, Real<T>*);
FB_INSTANTIATE(float)
FB_INSTANTIATE(double)
FB_INSTANTIATE(complex64)
FB_INSTANTIATE(complex128)

}  // namespace flambeau::kernels::lapack
