// Norms of vectors over any dims: one pass, in lanes of the element's precision joined in double.
#include "gen/kernels.h"

#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "kernels/copy.h"
#include "kernels/norm_chunk.h"

namespace flambeau::kernels {
namespace {

template <class T>
struct Parts {
  using Real = T;
};
template <>
struct Parts<Half> {
  using Real = float;
};
template <>
struct Parts<BFloat16> {
  using Real = float;
};
template <class R>
struct Parts<std::complex<R>> {
  using Real = R;
};

template <class T>
auto size_of(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fabs(x);
  else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return std::fabs(static_cast<float>(x));
  else
    return std::abs(x);
}
template <class T>
auto square_of(T x) {
  if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
    return x.real() * x.real() + x.imag() * x.imag();
  } else {
    const typename Parts<T>::Real r = x;
    return r * r;
  }
}

// The kinds of norm: what an element adds, how two parts are joined, what is made of the total.
struct Count {
  static constexpr double kInit = 0;
  template <class A, class T>
  A step(A a, T x) const {
    return a + (x == T(0) ? A(0) : A(1));
  }
  template <class A>
  A join(A a, A b) const {
    return a + b;
  }
  double finish(double a) const { return a; }
};
struct Sum {
  static constexpr NormPart kPart = NormPart::Sum;
  static constexpr double kInit = 0;
  template <class A, class T>
  A step(A a, T x) const {
    return a + size_of(x);
  }
  template <class A>
  A join(A a, A b) const {
    return a + b;
  }
  double finish(double a) const { return a; }
};
struct Squares {
  static constexpr NormPart kPart = NormPart::Squares;
  static constexpr double kInit = 0;
  template <class A, class T>
  A step(A a, T x) const {
    return a + square_of(x);
  }
  template <class A>
  A join(A a, A b) const {
    return a + b;
  }
  double finish(double a) const { return std::sqrt(a); }
};
struct Largest {
  static constexpr NormPart kPart = NormPart::Largest;
  static constexpr double kInit = 0;
  template <class A>
  A join(A a, A b) const {
    return b > a || b != b ? b : a;
  }
  template <class A, class T>
  A step(A a, T x) const {
    return join<A>(a, size_of(x));
  }
  double finish(double a) const { return a; }
};
struct Least {
  static constexpr NormPart kPart = NormPart::Least;
  static constexpr double kInit = std::numeric_limits<double>::infinity();
  template <class A>
  A join(A a, A b) const {
    return b < a || b != b ? b : a;
  }
  template <class A, class T>
  A step(A a, T x) const {
    return join<A>(a, size_of(x));
  }
  double finish(double a) const { return a; }
};
struct Powers {
  static constexpr double kInit = 0;
  double p;
  template <class A, class T>
  A step(A a, T x) const {
    return a + static_cast<A>(std::pow(size_of(x), static_cast<A>(p)));
  }
  template <class A>
  A join(A a, A b) const {
    return a + b;
  }
  double finish(double a) const { return std::pow(a, 1 / p); }
};

constexpr int64_t kChunk =
    8192;  // elements that one accumulator in the element's precision may take
constexpr int kLanes = 16;

template <class T, class K>
double chunk(const T* x, int64_t n, const K& kind) {
  if constexpr (requires { K::kPart; }) {
    if constexpr (std::is_same_v<T, float>) return FB_ISA_DISPATCH(norm_chunk_f32)(x, n, K::kPart);
    if constexpr (std::is_same_v<T, double>) return FB_ISA_DISPATCH(norm_chunk_f64)(x, n, K::kPart);
    if constexpr (std::is_same_v<K, Squares>) {  // the parts of complex numbers are numbers to be
                                                 // squared
      if constexpr (std::is_same_v<T, complex64>)
        return FB_ISA_DISPATCH(norm_chunk_f32)(reinterpret_cast<const float*>(x), 2 * n, K::kPart);
      if constexpr (std::is_same_v<T, complex128>)
        return FB_ISA_DISPATCH(norm_chunk_f64)(reinterpret_cast<const double*>(x), 2 * n, K::kPart);
    }
  }
  using A = typename Parts<T>::Real;
  A lanes[kLanes];
  for (A& a : lanes) a = static_cast<A>(K::kInit);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int j = 0; j < kLanes; ++j) lanes[j] = kind.step(lanes[j], x[i + j]);
  for (int j = 0; i < n; ++i, ++j) lanes[j] = kind.step(lanes[j], x[i]);
  double total = K::kInit;
  for (A a : lanes) total = kind.join(total, static_cast<double>(a));
  return total;
}

// Rows of n elements, one norm each.
template <class T, class K>
void rows(typename Parts<T>::Real* out, const T* x, int64_t count, int64_t n, const K& kind) {
  using R = typename Parts<T>::Real;
  const int64_t chunks = std::max<int64_t>(1, (n + kChunk - 1) / kChunk);
  if (chunks == 1 || count >= 2 * num_threads()) {
    parallel_for(0, count, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, n)),
                 [&](int64_t from, int64_t to) {
                   for (int64_t r = from; r < to; ++r) {
                     double total = K::kInit;
                     for (int64_t c = 0; c < n; c += kChunk)
                       total =
                           kind.join(total, chunk(x + r * n + c, std::min(kChunk, n - c), kind));
                     out[r] = static_cast<R>(kind.finish(total));
                   }
                 });
    return;
  }
  std::vector<double> parts(chunks);
  for (int64_t r = 0; r < count; ++r) {
    parallel_for(0, chunks, kGrain / kChunk, [&](int64_t from, int64_t to) {
      for (int64_t c = from; c < to; ++c)
        parts[c] = chunk(x + r * n + c * kChunk, std::min(kChunk, n - c * kChunk), kind);
    });
    double total = K::kInit;
    for (double p : parts) total = kind.join(total, p);
    out[r] = static_cast<R>(kind.finish(total));
  }
}

// `outer` blocks of n rows of `inner` elements: the norms of the columns of each block.
template <class T, class K>
void columns(typename Parts<T>::Real* out, const T* x, int64_t outer, int64_t n, int64_t inner,
             const K& kind) {
  using A = typename Parts<T>::Real;
  constexpr int64_t kWidth = 512;
  const int64_t blocks = (inner + kWidth - 1) / kWidth;
  const int64_t grain =
      std::max<int64_t>(1, kGrain / std::max<int64_t>(1, n * std::min(inner, kWidth)));
  parallel_for(0, outer * blocks, grain, [&](int64_t from, int64_t to) {
    A part[kWidth];
    double total[kWidth];
    for (int64_t t = from; t < to; ++t) {
      const int64_t o = t / blocks, at = t % blocks * kWidth, width = std::min(kWidth, inner - at);
      std::fill_n(total, width, K::kInit);
      for (int64_t first = 0; first < n; first += 1024) {
        std::fill_n(part, width, static_cast<A>(K::kInit));
        for (int64_t i = first; i < std::min(n, first + 1024); ++i) {
          const T* row = x + (o * n + i) * inner + at;
          for (int64_t j = 0; j < width; ++j) part[j] = kind.step(part[j], row[j]);
        }
        for (int64_t j = 0; j < width; ++j)
          total[j] = kind.join(total[j], static_cast<double>(part[j]));
      }
      for (int64_t j = 0; j < width; ++j)
        out[o * inner + at + j] = static_cast<A>(kind.finish(total[j]));
    }
  });
}

// A tensor laid out as outer x n x inner around the reduced dims, which are one dense block of
// dims.
struct Blocks {
  Tensor x;
  int64_t outer = 1, n = 1, inner = 1;
};

Blocks arrange(const Tensor& x, const std::vector<bool>& reduced) {
  const int64_t nd = x.dim();
  int64_t first = 0, last = nd;
  while (first < nd && !reduced[first]) ++first;
  while (last > first && !reduced[last - 1]) --last;
  bool block = true, all = true;
  for (int64_t d = first; d < last; ++d) block &= reduced[d];
  for (int64_t d = 0; d < nd; ++d) all &= reduced[d];
  Blocks b;
  if (all && x.is_dense()) {  // the order of elements does not matter
    b.x = x, b.n = x.numel();
    return b;
  }
  if (block && x.is_contiguous()) {
    b.x = x;
    for (int64_t d = 0; d < nd; ++d)
      (d < first ? b.outer : d < last ? b.n : b.inner) *= x.sizes()[d];
    return b;
  }
  Ints sizes, strides;
  for (int pass = 0; pass < 2; ++pass)
    for (int64_t d = 0; d < nd; ++d)
      if (reduced[d] == (pass == 1)) {
        sizes.push_back(x.sizes()[d]), strides.push_back(x.strides()[d]);
        (pass ? b.n : b.outer) *= x.sizes()[d];
      }
  b.x = contiguous(alias(x, sizes, strides, x.offset()));
  return b;
}

template <class T, class K>
void run(const Tensor& out, const Blocks& b, const K& kind) {
  using R = typename Parts<T>::Real;
  if (b.inner == 1)
    rows(out.data<R>(), b.x.data<T>(), b.outer, b.n, kind);
  else
    columns(out.data<R>(), b.x.data<T>(), b.outer, b.n, b.inner, kind);
}

}  // namespace

void vector_norm(Tensor& result, const Tensor& input, double order, const Ints& dims, bool) {
  if (result.numel() == 0) return;
  std::vector<bool> reduced(input.dim(), dims.empty());
  if (input.dim() > 0)
    for (int64_t d : dims) reduced[wrap_dim(d, input.dim())] = true;
  const Blocks b = arrange(input, reduced);
  const DType kind = opmath(to_real(input.dtype()));
  const bool direct = result.is_contiguous() && result.dtype() == kind;
  Tensor out = direct ? result : empty(result.sizes(), kind);
  auto each = [&]<class T>() {
    if (order == 0)
      run<T>(out, b, Count{});
    else if (order == 1)
      run<T>(out, b, Sum{});
    else if (order == 2)
      run<T>(out, b, Squares{});
    else if (std::isinf(order) && order > 0)
      run<T>(out, b, Largest{});
    else if (std::isinf(order))
      run<T>(out, b, Least{});
    else
      run<T>(out, b, Powers{order});
  };
  switch (input.dtype()) {
    case DType::Float16:
      each.template operator()<Half>();
      break;
    case DType::BFloat16:
      each.template operator()<BFloat16>();
      break;
    case DType::Float32:
      each.template operator()<float>();
      break;
    case DType::Float64:
      each.template operator()<double>();
      break;
    case DType::Complex64:
      each.template operator()<complex64>();
      break;
    case DType::Complex128:
      each.template operator()<complex128>();
      break;
    default:
      fail(ErrorKind::Runtime, "linalg.vector_norm: expected floating point or complex, got ",
           input.dtype());
  }
  if (!direct) copy(result, out);
}

}  // namespace flambeau::kernels
