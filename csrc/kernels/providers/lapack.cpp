#include "kernels/providers/lapack.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "core/parallel.h"
#include "kernels/providers/lapack_builtin.h"

namespace flambeau::kernels::lapack {
namespace {

struct Library {
  void* handle = nullptr;
  const char* prefix = "";
};

// The wheel's library, whose names have a prefix, where the build saw it or where the loader finds
// it; else the system's, which has none.
Library open_library() {
  struct Candidate {
    const char *path, *prefix;
  };
  static constexpr Candidate candidates[] = {
#ifdef FB_OPENBLAS_LIBRARY
      {FB_OPENBLAS_LIBRARY, "scipy_"},
      {"libscipy_openblas.so", "scipy_"},
      {"libopenblas.so.0", ""},
#endif
      {nullptr, nullptr}};
  for (const Candidate* c = candidates; c->path; ++c) {
    Library out{dlopen(c->path, RTLD_NOW | RTLD_LOCAL), c->prefix};
    auto name = [&](const char* stem) { return c->prefix + std::string(stem); };
    if (!out.handle || !dlsym(out.handle, name("zgesdd_").c_str())) continue;
    using Set = void (*)(int);
    if (auto* set =
            reinterpret_cast<Set>(dlsym(out.handle, name("openblas_set_num_threads").c_str())))
      set(num_threads());
    return out;
  }
  return {};
}
const Library& library() {
  static const Library opened = open_library();
  return opened;
}
std::atomic<bool> builtin_wanted = false;

// The routine `stem` for T: prefix + one of s d c z + stem + _.
template <class T>
constexpr char letter = std::is_same_v<T, float>       ? 's'
                        : std::is_same_v<T, double>    ? 'd'
                        : std::is_same_v<T, complex64> ? 'c'
                                                       : 'z';
template <class T>
constexpr bool cplx = !std::is_floating_point_v<T>;

template <class F>
F* routine(const std::string& name) {
  auto* f = reinterpret_cast<F*>(dlsym(library().handle, (library().prefix + name + "_").c_str()));
  FB_CHECK(f, "linalg: OpenBLAS lacks ", name);
  return f;
}
template <class T, class F>
F* routine_of(const char* stem) {
  return routine<F>(letter<T> + std::string(stem));
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
  static auto* f = routine_of<T, void(const char*, const int*, T*, const int*, int*)>("potrf");
  char uplo = upper ? 'U' : 'L';
  int info = 0, lda = std::max(1, n);
  f(&uplo, &n, a, &lda, &info);
  return info;
}

template <class T>
int getrf(int m, int n, T* a, int* pivots) {
  if (!available()) return builtin::getrf(m, n, a, pivots);
  static auto* f = routine_of<T, void(const int*, const int*, T*, const int*, int*, int*)>("getrf");
  int info = 0, lda = std::max(1, m);
  f(&m, &n, a, &lda, pivots, &info);
  return info;
}

template <class T>
int getrs(char trans, int n, int rhs, const T* lu, const int* pivots, T* b) {
  if (!available()) return builtin::getrs(trans, n, rhs, lu, pivots, b);
  static auto* f = routine_of<T, void(const char*, const int*, const int*, const T*, const int*,
                                      const int*, T*, const int*, int*)>("getrs");
  int info = 0, ld = std::max(1, n);
  f(&trans, &n, &rhs, lu, &ld, pivots, b, &ld, &info);
  return info;
}

template <class T>
int trtrs(bool upper, char trans, bool unit, int n, int rhs, const T* a, T* b) {
  if (!available()) return builtin::trtrs(upper, trans, unit, n, rhs, a, b);
  // trsm, not trtrs: a zero on the diagonal gives inf, not a refusal.
  static auto* f =
      routine_of<T, void(const char*, const char*, const char*, const char*, const int*, const int*,
                         const T*, const T*, const int*, T*, const int*)>("trsm");
  char side = 'L', uplo = upper ? 'U' : 'L', diag = unit ? 'U' : 'N';
  int ld = std::max(1, n);
  T one(1);
  f(&side, &uplo, &trans, &diag, &n, &rhs, &one, a, &ld, b, &ld);
  return 0;
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
  int ldc = std::max(1, m);
  return with_workspace<T>([&](T* work, const int* size, int* info) {
    f(&side, &trans, &m, &n, &k, a, &lda, tau, c, &ldc, work, size, info);
  });
}

template <class T>
int heevd(bool vectors, bool upper, int n, T* a, Real<T>* w) {
  if (!available()) return builtin::heevd(vectors, upper, n, a, w);
  using R = Real<T>;
  char job = vectors ? 'V' : 'N', uplo = upper ? 'U' : 'L';
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

template <class T>
int gesdd(char job, int m, int n, T* a, Real<T>* s, T* u, int ldu, T* vt, int ldvt) {
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
