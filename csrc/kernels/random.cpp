// Random kernels. Each draws under the generator's lock, in the order in which elements lie in
// memory (for dense tensors) or in logical order. Transforms: Matsumoto & Nishimura 1998 (mt19937),
// Box & Muller 1958, inversion.
#include <cmath>
#include <limits>
#include <memory>

#include "core/parallel.h"
#include "gen/kernels.h"
#include "kernels/copy.h"
#include "kernels/random_bits.h"
#include "kernels/random_draws.h"

namespace flambeau::kernels {
namespace {

// Words from the engine, in bulk.
void draw(Mt19937& e, uint32_t* out, int64_t n) {
  auto twist = FB_ISA_DISPATCH(mt_twist);
  auto temper = FB_ISA_DISPATCH(mt_temper);
  while (n > 0) {
    if (e.left == 1) {
      twist(e.state);
      e.left = 625;
      e.next = 0;
    }
    int64_t k = std::min<int64_t>(n, e.left - 1);
    temper(e.state + e.next, out, k);
    e.next += static_cast<int>(k);
    e.left -= static_cast<int>(k);
    out += k;
    n -= k;
  }
}

// The tensor as one dense run in memory order, to be filled by f(data, n); others go through a
// dense copy.
template <class F>
void fill_dense(const Tensor& self, const F& f) {
  if (self.numel() == 0) return;
  if (self.is_dense()) return f(self);
  Tensor dense = empty(self.sizes(), self.dtype());
  f(dense);
  copy(self, dense);
}

constexpr int64_t kRun = 4096;

// f(words, i, m) for runs of elements i .. i + m - 1, of W words each, that fit in the first-level
// cache. All runs but the last are whole groups of 16.
template <int W, class F>
void draw_runs(GeneratorImpl& g, int64_t n, const F& f) {
  uint32_t words[kRun * W];
  for (int64_t i = 0; i < n; i += kRun) {
    int64_t m = std::min(kRun, n - i);
    draw(g.engine, words, m * W);
    f(static_cast<const uint32_t*>(words), i, m);
  }
}

// out[i] = f(W words).
template <class T, int W, class F>
void fill_from_words(const Tensor& t, GeneratorImpl& g, const F& f) {
  T* data = t.data<T>();
  draw_runs<W>(g, t.numel(), [&](const uint32_t* words, int64_t i, int64_t m) {
    for (int64_t j = 0; j < m; ++j) data[i + j] = static_cast<T>(f(words + j * W));
  });
}

// One double per element, from two words each, whatever the dtype.
template <class F>
void fill_from_double(const Tensor& self, const OptGenerator& generator, const F& f) {
  GeneratorImpl& g = generator_or_default(generator);
  std::lock_guard guard(g.mutex);
  fill_dense(self, [&](const Tensor& t) {
    visit(t.dtype(), [&]<class T>() {
      fill_from_words<T, 2>(t, g, [&](const uint32_t* w) -> T {
        double x = f(uniform53(w[0], w[1]));
        if constexpr (is_truth<T>)
          return x != 0;
        else if constexpr (std::is_same_v<T, double>)
          return x;
        else if constexpr (std::is_integral_v<T>)
          return static_cast<T>(static_cast<int64_t>(x));
        else
          return T(static_cast<float>(x));
      });
    });
  });
}

// Uniform numbers in [from, to). Half precision rounds those of single precision, and what that
// takes to `to` becomes `from` again.
template <class T>
void uniform_fill(const Tensor& t, GeneratorImpl& g, double from, double to) {
  T* data = t.data<T>();
  if constexpr (std::is_same_v<T, double>) {
    auto fill = FB_ISA_DISPATCH(uniform_doubles);
    draw_runs<2>(g, t.numel(), [&](const uint32_t* words, int64_t i, int64_t m) {
      fill(words, data + i, m, from, to);
    });
  } else {
    const T low = T(static_cast<float>(from)), high = T(static_cast<float>(to));
    auto fill = FB_ISA_DISPATCH(uniform_floats);
    draw_runs<1>(g, t.numel(), [&](const uint32_t* words, int64_t i, int64_t m) {
      if constexpr (std::is_same_v<T, float>) {
        fill(words, data + i, m, low, high);
      } else {
        float drawn[kRun];
        fill(words, drawn, m, low, high);
        for (int64_t j = 0; j < m; ++j) {
          T x = T(drawn[j]);
          data[i + j] = x == high ? low : x;
        }
      }
    });
  }
}

// Box-Muller over groups of 16 places: uniform numbers first, then pairs (i, i + 8).
void normal_group(double* d, double mean, double std) {
  for (int i = 0; i < 8; ++i) {
    double u1 = 1.0 - d[i], u2 = d[i + 8];
    double radius = std::sqrt(-2.0 * std::log(u1)), theta = kTwoPi * u2;
    d[i] = std::fma(radius * std::cos(theta), std, mean);
    d[i + 8] = std::fma(radius * std::sin(theta), std, mean);
  }
}

// Normal numbers for the whole groups among n places; those behind them are left uniform. Floats
// are transformed where they were drawn: another core would take longer to fetch them than that
// takes (0.6 ns each; doubles take twenty times as long).
void normal_places(float* data, int64_t n, GeneratorImpl& g, double mean, double std) {
  auto uniform = FB_ISA_DISPATCH(uniform_floats);
  auto normal = FB_ISA_DISPATCH(normal_groups);
  draw_runs<1>(g, n, [&](const uint32_t* words, int64_t i, int64_t m) {
    uniform(words, data + i, m, 0, 1);
    normal(data + i, m / 16, static_cast<float>(mean), static_cast<float>(std));
  });
}
void normal_places(double* data, int64_t n, GeneratorImpl& g, double mean, double std) {
  auto uniform = FB_ISA_DISPATCH(uniform_doubles);
  draw_runs<2>(g, n, [&](const uint32_t* words, int64_t i, int64_t m) {
    uniform(words, data + i, m, 0, 1);
  });
  parallel_for(0, n / 16, kGrain / 64, [&](int64_t a, int64_t b) {
    for (int64_t i = a; i < b; ++i) normal_group(data + 16 * i, mean, std);
  });
}

template <class T>
void normal_fill(const Tensor& t, GeneratorImpl& g, double mean, double std) {
  int64_t n = t.numel();
  // Half precision rounds what single precision gives, and draws for whole groups alone.
  constexpr bool half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
  using Draw = std::conditional_t<half, float, T>;
  auto fill = [&](int64_t from, int64_t count) {
    Tensor places = alias(t, {count}, {1}, t.offset() + from);
    Tensor drawn = half ? empty({count}, DType::Float32) : places;
    normal_places(drawn.data<Draw>(), count, g, mean, std);
    if constexpr (half) copy(places, drawn);
  };
  fill(0, half ? n / 16 * 16 : n);
  if (n % 16 != 0) fill(n - 16, 16);  // the last 16 places are drawn anew
}

void check_floating(const Tensor& t, const char* op) {
  FB_CHECK_IMPL(t.is_floating_point(), op, " not implemented for '", scalar_type_name(t.dtype()),
                "'");
}

}  // namespace

void uniform_(const Tensor& self, double from, double to, const OptGenerator& generator) {
  if (self.is_complex()) {  // both parts
    Ints sizes = self.sizes(), strides = self.strides();
    for (int64_t& s : strides) s *= 2;
    sizes.push_back(2), strides.push_back(1);
    return uniform_(alias_as(self, to_real(self.dtype()), sizes, strides, 2 * self.offset()), from,
                    to, generator);
  }
  GeneratorImpl& g = generator_or_default(generator);
  std::lock_guard guard(g.mutex);
  fill_dense(self, [&](const Tensor& t) {
    visit(t.dtype(), [&]<class T>() {
      if constexpr (!is_whole<T> && !std::is_same_v<T, complex64> && !std::is_same_v<T, complex128>)
        uniform_fill<T>(t, g, from, to);
    });
  });
}

void normal_(const Tensor& self, double mean, double std, const OptGenerator& generator) {
  if (self.is_complex()) {  // real and imaginary part with half of the variance each
    Tensor parts = empty(
        [&] {
          Ints s = self.sizes();
          s.push_back(2);
          return s;
        }(),
        to_real(self.dtype()));
    normal_(parts, 0, std * std::sqrt(0.5), generator);
    Tensor dense = alias_as(parts, self.dtype(), self.sizes(), contiguous_strides(self.sizes()), 0);
    copy(self, dense);
    return;
  }
  check_floating(self, "\"normal_kernel_cpu\"");
  GeneratorImpl& g = generator_or_default(generator);
  std::lock_guard guard(g.mutex);
  if (self.numel() >= 16 && self.is_contiguous()) {
    visit(self.dtype(), [&]<class T>() {
      if constexpr (!is_whole<T> && !std::is_same_v<T, complex64> && !std::is_same_v<T, complex128>)
        normal_fill<T>(self, g, mean, std);
    });
    return;
  }
  fill_dense(self, [&](const Tensor& t) {
    visit(t.dtype(), [&]<class T>() {
      if constexpr (!is_whole<T> && !std::is_same_v<T, complex64> && !std::is_same_v<T, complex128>)
        for (int64_t i = 0; i < t.numel(); ++i) {
          double x = std::fma(normal_double(g), std, mean);
          if constexpr (std::is_same_v<T, double>)
            t.data<T>()[i] = x;
          else
            t.data<T>()[i] = T(static_cast<float>(x));
        }
    });
  });
}

namespace {
template <class F>
void fill_whole(const Tensor& self, const OptGenerator& generator, bool wide, const F& f) {
  GeneratorImpl& g = generator_or_default(generator);
  std::lock_guard guard(g.mutex);
  fill_dense(self, [&](const Tensor& t) {
    visit(t.dtype(), [&]<class T>() {
      if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
        fail(ErrorKind::NotImplemented, "\"random_kernel_cpu\" not implemented for '",
             scalar_type_name(t.dtype()), "'");
      } else {
        auto cast = [&](uint64_t x) -> T {
          auto v = f(x);
          if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
            return T(static_cast<float>(v));
          else
            return static_cast<T>(v);
        };
        if (wide)
          fill_from_words<T, 2>(t, g, [&](const uint32_t* w) {
            return cast(static_cast<uint64_t>(w[0]) << 32 | w[1]);
          });
        else
          fill_from_words<T, 1>(t, g, [&](const uint32_t* w) { return cast(*w); });
      }
    });
  });
}

void from_to(const Tensor& self, int64_t from, uint64_t range, const OptGenerator& generator) {
  auto at = [=](uint64_t x) {
    return static_cast<int64_t>((range ? x % range : x) + static_cast<uint64_t>(from));
  };
  // From 2^28 on a short word would favour some numbers by 6 % and more.
  fill_whole(self, generator, range == 0 || range >= (uint64_t{1} << 28), at);
}

// Largest whole number up to which a dtype holds every one.
int64_t whole_limit(DType d) {
  switch (d) {
    case DType::Bool:
      return 1;
    case DType::Float16:
      return 1 << 11;
    case DType::BFloat16:
      return 1 << 8;
    case DType::Float32:
      return 1 << 24;
    case DType::Float64:
      return int64_t{1} << 53;
    case DType::UInt64:
      return INT64_MAX;
    case DType::Complex64:
    case DType::Complex128:
      return 0;  // refused where numbers are drawn
    default:
      return is_signed(d) ? static_cast<int64_t>((uint64_t{1} << (8 * itemsize(d) - 1)) - 1)
                          : static_cast<int64_t>((uint64_t{1} << (8 * itemsize(d))) - 1);
  }
}

void check_bounds(const Tensor& self, int64_t from, int64_t last) {
  DType d = self.dtype();
  if (!is_integral(d, true)) return;
  int64_t top = whole_limit(d), bottom = is_signed(d) ? -top - 1 : 0;
  FB_CHECK(from >= bottom && from <= top, "from is out of bounds for ", d);
  FB_CHECK(last >= bottom && last <= top, "to - 1 is out of bounds for ", d);
}
}  // namespace

void random_(const Tensor& self, const OptGenerator& generator) {
  uint64_t range = static_cast<uint64_t>(whole_limit(self.dtype())) + 1;
  bool wide = self.dtype() == DType::Float64 || self.dtype() == DType::Int64 ||
              self.dtype() == DType::UInt64;
  fill_whole(self, generator, wide, [=](uint64_t x) { return static_cast<int64_t>(x % range); });
}

void random_to_(const Tensor& self, int64_t to, const OptGenerator& generator) {
  check_bounds(self, 0, to - 1);
  from_to(self, 0, static_cast<uint64_t>(to), generator);
}

void random_from_to_(const Tensor& self, int64_t from, std::optional<int64_t> to,
                     const OptGenerator& generator) {
  if (to) {
    check_bounds(self, from, *to - 1);
    return from_to(self, from, static_cast<uint64_t>(*to) - static_cast<uint64_t>(from), generator);
  }
  int64_t last = whole_limit(self.dtype());
  check_bounds(self, from, last);
  from_to(self, from, static_cast<uint64_t>(last) - static_cast<uint64_t>(from) + 1, generator);
}

void bernoulli_(const Tensor& self, double p, const OptGenerator& generator) {
  fill_from_double(self, generator, [=](double u) { return u < p ? 1.0 : 0.0; });
}

void bernoulli_tensor_(const Tensor& self, const Tensor& p, const OptGenerator& generator) {
  Tensor probability =
      empty(self.sizes(), p.dtype() == DType::Float64 ? DType::Float64 : DType::Float32);
  copy(probability, p);
  Tensor dense = self.is_contiguous() ? self : empty(self.sizes(), self.dtype());
  GeneratorImpl& g = generator_or_default(generator);
  std::lock_guard guard(g.mutex);
  auto check = [](double x) {
    FB_CHECK(x >= 0 && x <= 1, "Expected p_in >= 0 && p_in <= 1 to be true, but got ", x);
  };
  for (int64_t i = 0; i < dense.numel(); ++i)
    probability.dtype() == DType::Float64 ? check(probability.data<double>()[i])
                                          : check(probability.data<float>()[i]);
  visit(dense.dtype(), [&]<class T>() {
    T* data = dense.data<T>();
    int64_t i = 0;
    auto one = [](bool hit) -> T {
      if constexpr (is_whole<T>)
        return hit;
      else
        return T(hit ? 1.0f : 0.0f);
    };
    if (probability.dtype() == DType::Float64) {
      const double* q = probability.data<double>();
      fill_from_words<T, 2>(dense, g,
                            [&](const uint32_t* w) { return one(uniform53(w[0], w[1]) < q[i++]); });
    } else {
      const float* q = probability.data<float>();
      fill_from_words<T, 1>(dense, g,
                            [&](const uint32_t* w) { return one(uniform24(*w) < q[i++]); });
    }
    (void)data;
  });
  if (!dense.is_same(self)) copy(self, dense);
}

void exponential_(const Tensor& self, double lambd, const OptGenerator& generator) {
  fill_from_double(self, generator, [=](double u) { return -1.0 / lambd * std::log1p(-u); });
}

void geometric_(const Tensor& self, double p, const OptGenerator& generator) {
  FB_CHECK_IMPL(!self.is_complex() && self.dtype() != DType::Bool,
                "\"geometric_cpu\" not implemented for '", scalar_type_name(self.dtype()), "'");
  fill_from_double(self, generator,
                   [=](double u) { return std::ceil(std::log(u) / std::log1p(-p)); });
}

void log_normal_(const Tensor& self, double mean, double std, const OptGenerator& generator) {
  GeneratorImpl& g = generator_or_default(generator);
  std::lock_guard guard(g.mutex);
  fill_dense(self, [&](const Tensor& t) {
    visit(t.dtype(), [&]<class T>() {
      if constexpr (std::is_same_v<T, double>)
        for (int64_t i = 0; i < t.numel(); ++i)
          t.data<T>()[i] = std::exp(std::fma(normal_double(g), std, mean));
      else if constexpr (!is_whole<T> && !std::is_same_v<T, complex64> &&
                         !std::is_same_v<T, complex128>)
        for (int64_t i = 0; i < t.numel(); ++i)
          t.data<T>()[i] = T(static_cast<float>(std::exp(std::fma(normal_double(g), std, mean))));
    });
  });
}

void cauchy_(const Tensor& self, double median, double sigma, const OptGenerator& generator) {
  constexpr double eps = 2.220446049250313e-16;
  fill_from_double(self, generator, [=](double u) {
    u = u > 1.0 - eps ? 1.0 - eps : u < eps ? eps : u;
    return std::fma(sigma, std::tan(kTwoPi / 2 * (u - 0.5)), median);
  });
}

void randperm(Tensor& out, int64_t n, const OptGenerator& generator, std::optional<DType>,
              std::optional<Device>) {
  GeneratorImpl& g = generator_or_default(generator);
  std::lock_guard guard(g.mutex);
  auto order = std::make_unique<int64_t[]>(n);
  for (int64_t i = 0; i < n; ++i) order[i] = i;
  bool wide = n >= (int64_t{1} << 32) / 20;
  for (int64_t i = 0; i + 1 < n; ++i) {
    uint64_t x = wide ? g.random64() : g.random();
    std::swap(order[i], order[i + static_cast<int64_t>(x % static_cast<uint64_t>(n - i))]);
  }
  Tensor line = Tensor(empty({n}, DType::Int64));
  std::copy(order.get(), order.get() + n, line.data<int64_t>());
  copy(out, line);
}

namespace {
// The distribution function of n weights, summed in their own precision.
template <class T>
void distribution_function(const T* weights, int64_t n, std::vector<T>& sums) {
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    FB_CHECK(weights[i] >= 0,
             "invalid multinomial distribution (encountering probability entry < 0)");
    FB_CHECK(weights[i] < std::numeric_limits<T>::infinity(),
             "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
    sums[i] = sum += weights[i];
  }
  FB_CHECK(sum > 0, "invalid multinomial distribution (sum of probabilities <= 0)");
  for (T& s : sums) s /= sum;
  sums[n - 1] = 1;
}
}  // namespace

void multinomial_with_replacement(Tensor& out, const Tensor& input, int64_t samples,
                                  const OptGenerator& generator) {
  GeneratorImpl& g = generator_or_default(generator);
  std::lock_guard guard(g.mutex);
  auto run = [&]<class T>(DType d) {
    Tensor weights = contiguous(to_dtype(input, d));
    int64_t n = input.size(-1), rows = weights.numel() / std::max<int64_t>(n, 1);
    std::vector<T> sums(n);
    for (int64_t r = 0; r < rows; ++r) {
      distribution_function(weights.data<T>() + r * n, n, sums);
      for (int64_t k = 0; k < samples; ++k)
        out.data<int64_t>()[r * samples + k] =
            std::lower_bound(sums.begin(), sums.end(), next_uniform53(g)) - sums.begin();
    }
  };
  if (input.dtype() == DType::Float64)
    run.operator()<double>(DType::Float64);
  else
    run.operator()<float>(DType::Float32);
}

void dropout(Tensor& out, Tensor& mask, const Tensor& input, double p,
             const OptGenerator& generator) {
  GeneratorImpl& g = generator_or_default(generator);
  std::lock_guard guard(g.mutex);
  Tensor x = input;  // as the results lie: numbers are drawn in the order of memory
  if (input.strides() != out.strides()) {
    x = empty_strided(out.sizes(), out.strides(), out.dtype());
    copy(x, input);
  }
  int64_t n = x.numel();
  // u < 1 - p for u = k / 2**53 is k < ceil((1 - p) * 2**53)
  uint64_t bound = static_cast<uint64_t>(std::ceil((1.0 - p) * 0x1p53));
  auto* on = mask.data<uint8_t>();
  auto fill = FB_ISA_DISPATCH(bernoulli_bytes);
  draw_runs<2>(g, n,
               [&](const uint32_t* words, int64_t i, int64_t m) { fill(words, on + i, m, bound); });
  double scale = 1.0 / (1.0 - p);
  visit(x.dtype(), [&]<class T>() {
    const T* in = x.data<T>();
    T* o = out.data<T>();
    parallel_for(0, n, kGrain, [&](int64_t a, int64_t b) {
      if constexpr (std::is_same_v<T, double>) {
        for (int64_t i = a; i < b; ++i) o[i] = on[i] ? in[i] * scale : in[i] * 0.0;
      } else if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
        for (int64_t i = a; i < b; ++i)
          o[i] = in[i] * static_cast<typename T::value_type>(on[i] ? scale : 0.0);
      } else if constexpr (is_whole<T>) {
        fail(ErrorKind::Runtime, "dropout: result type Float can't be cast to ",
             scalar_type_name(x.dtype()));
      } else {
        float keep = T(1.0f / static_cast<float>(1.0 - p));
        for (int64_t i = a; i < b; ++i) o[i] = T(static_cast<float>(in[i]) * (on[i] ? keep : 0.0f));
      }
    });
  });
}

}  // namespace flambeau::kernels
