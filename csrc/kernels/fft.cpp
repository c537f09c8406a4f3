// Fourier transforms of tensors: plans, which lines go together, long lines in two halves, real
// lines as complex ones of half the length. The work on a block of lines is fft.isa.cpp's. Plans
// are kept in a small cache.
#include "kernels/fft.h"

#include "gen/kernels.h"

#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>

#include "core/allocator.h"
#include "core/parallel.h"
#include "kernels/copy.h"

namespace flambeau::kernels {
namespace {

constexpr int64_t kLargestRadix = 31;  // larger primes go the way of Bluestein
constexpr int64_t kLongLine =
    16384;  // a block of such lines leaves the caches: one by one, in two halves
constexpr int64_t kFineRows = 32;

struct Buffer {
  explicit Buffer(size_t bytes) : bytes(bytes), data(allocate(bytes)) {}
  ~Buffer() { deallocate(data, bytes); }
  Buffer(const Buffer&) = delete;
  size_t bytes;
  void* data;
};
template <class T>
struct Values : Buffer {
  explicit Values(int64_t n) : Buffer(static_cast<size_t>(n) * sizeof(T)) {}
  T* get() { return static_cast<T*>(data); }
};

// exp(-2 pi i k / n)
complex128 root(int64_t k, int64_t n) {
  const double angle = -2 * M_PI * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}
template <class T>
void put(std::vector<T>& to, complex128 z) {
  to.push_back(static_cast<T>(z.real()));
  to.push_back(static_cast<T>(z.imag()));
}

std::vector<int> factors(int64_t n) {
  std::vector<int> out;
  int twos = 0;
  while (n % 2 == 0) n /= 2, ++twos;
  if (twos % 3 == 1 && twos > 1)
    out = {4, 4}, twos -= 4;
  else if (twos % 3 == 1)
    out = {2}, twos = 0;
  else if (twos % 3 == 2)
    out = {4}, twos -= 2;
  out.insert(out.begin(), twos / 3, 8);
  for (int p = 3; p <= kLargestRadix; p += 2)
    while (n % p == 0) n /= p, out.push_back(p);
  if (n > 1) out.push_back(0);  // what remains has a large prime
  return out;
}
bool smooth(int64_t n) {
  const std::vector<int> f = factors(n);
  return f.empty() || f.back() != 0;
}

template <class T>
struct Plan {
  FftPlan<T> view;
  std::vector<int> radices;
  std::vector<T> twiddles, chirp, kernel, halves;
  std::shared_ptr<Plan> padded;
  // The two halves of a long line, and the factors between them.
  std::shared_ptr<Plan> first, second;
  std::vector<T> coarse, fine;
  int64_t twist_row = 0;
};
template <class T>
using PlanRef = std::shared_ptr<Plan<T>>;

template <class T>
void plan_stages(Plan<T>& plan) {
  int64_t length = plan.view.n;
  plan.radices = factors(length);
  for (int r : plan.radices) {
    const int64_t m = length / r;
    const bool any = r != 2 && r != 3 && r != 4 && r != 5 && r != 8;
    for (int k = 0; any && k < r; ++k) put(plan.twiddles, root(k, r));
    for (int64_t p = 0; p < m; ++p)
      for (int k = 1; k < r; ++k) put(plan.twiddles, root(p * k, length));
    length = m;
  }
  plan.view.radices = plan.radices.data();
  plan.view.stages = static_cast<int>(plan.radices.size());
  plan.view.twiddles = plan.twiddles.data();
}

template <class T>
void run_block(const FftPlan<T>& plan, const FftBlock<T>& b) {
  if constexpr (sizeof(T) == 4)
    FB_ISA_DISPATCH(fft_block_f32)(plan, b);
  else
    FB_ISA_DISPATCH(fft_block_f64)(plan, b);
}
template <class T>
int lanes() {
  return FB_ISA_DISPATCH(fft_lanes)(sizeof(T) == 8);
}
template <class T>
int64_t scratch_size(const FftPlan<T>& plan) {
  return 4 * lanes<T>() * ((plan.padded ? plan.padded->n : plan.n) + 1);
}

// Plans
// ------------------------------------------------------------------------------------------------------------

enum class Form { Block, Long };

template <class T>
PlanRef<T> plan_for(int64_t n, Form form);

template <class T>
void plan_bluestein(Plan<T>& plan, Form form) {
  const int64_t n = plan.view.n;
  int64_t padded = 1;
  while (padded < 2 * n - 1) padded *= 2;
  plan.padded = plan_for<T>(padded, Form::Block);
  std::vector<complex128> chirp(n);
  for (int64_t k = 0; k < n; ++k) {
    chirp[k] = root(static_cast<int64_t>(static_cast<unsigned __int128>(k) * k % (2 * n)), 2 * n);
    put(plan.chirp, chirp[k]);
  }
  // The transform of the conjugated chirp, in double, by the plan of that length.
  std::vector<complex128> c(padded);
  for (int64_t k = 0; k < n; ++k) c[k] = c[(padded - k) % padded] = std::conj(chirp[k]);
  PlanRef<double> exact = plan_for<double>(padded, Form::Block);
  Values<double> scratch(scratch_size(exact->view));
  const int64_t at = 0;
  double* data = reinterpret_cast<double*>(c.data());
  run_block<double>(exact->view, {FftKind::Complex, false, 1.0 / static_cast<double>(padded), 1,
                                  data, &at, 1, data, &at, 1, nullptr, nullptr, 0, scratch.get()});
  for (complex128 z : c) put(plan.kernel, z);
  plan.view.padded = &plan.padded->view;
  plan.view.chirp = plan.chirp.data();
  plan.view.kernel = plan.kernel.data();
  if (form == Form::Long) plan.padded = plan_for<T>(padded, Form::Long);
}

// Divisor of a smooth n that is nearest to its root, preferably a multiple of a block's lines.
int64_t half_of(int64_t n) {
  int64_t best = 1;
  const double root_n = std::sqrt(static_cast<double>(n));
  auto cost = [&](int64_t d) { return std::fabs(std::log(static_cast<double>(d) / root_n)); };
  for (int64_t d = 2; d * d <= n; ++d)
    if (n % d == 0)
      for (int64_t e : {d, n / d})
        if (cost(e) < cost(best)) best = e;
  return best;
}

template <class T>
void plan_halves(Plan<T>& plan) {
  const int64_t n = plan.view.n, n1 = half_of(n), n2 = n / n1;
  plan.first = plan_for<T>(n1, Form::Block);
  plan.second = plan_for<T>(n2, Form::Block);
  plan.twist_row = (n2 + 15) / 16 * 16 + 16;
  auto rows = [&](std::vector<T>& to, int64_t count, int64_t step) {
    to.resize(count * 2 * plan.twist_row);
    for (int64_t r = 0; r < count; ++r)
      for (int64_t j = 0; j < n2; ++j) {
        const complex128 w = root(r * step * j % n, n);
        to[(2 * r) * plan.twist_row + j] = static_cast<T>(w.real());
        to[(2 * r + 1) * plan.twist_row + j] = static_cast<T>(w.imag());
      }
  };
  rows(plan.coarse, (n1 + kFineRows - 1) / kFineRows, kFineRows);
  rows(plan.fine, std::min(n1, kFineRows), 1);
}

template <class T>
PlanRef<T> plan_for(int64_t n, Form form) {
  static std::recursive_mutex lock;
  static std::map<std::pair<int64_t, Form>, PlanRef<T>> kept;
  std::lock_guard guard(lock);
  PlanRef<T>& slot = kept[{n, form}];
  if (slot) return slot;
  auto plan = std::make_shared<Plan<T>>();
  plan->view.n = n;
  if (!smooth(n))
    plan_bluestein(*plan, form);
  else if (form == Form::Long)
    plan_halves(*plan);
  else
    plan_stages(*plan);
  for (int64_t k = 0; k <= n; ++k) put(plan->halves, root(k, 2 * n));
  plan->view.halves = plan->halves.data();
  if (kept.size() > 48) kept.clear();
  return kept[{n, form}] = plan;
}

// Lines
// ------------------------------------------------------------------------------------------------------------

// Where the lines of a transform lie; strides and places in elements, as FftBlock says.
template <class T>
struct Lines {
  const T* in;
  const int64_t* in_at;
  int64_t in_step;
  T* out;
  const int64_t* out_at;
  int64_t out_step;
  int64_t count;
};

template <class T>
struct Twist {
  const T* coarse = nullptr;
  const T* fine = nullptr;
  int64_t row = 0;
};

template <class T>
void run_lines(const Plan<T>& plan, FftKind kind, bool inverse, T scale, const Lines<T>& l,
               Twist<T> twist = {}) {
  const int width = lanes<T>();
  const int64_t blocks = (l.count + width - 1) / width;
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, plan.view.n * width));
  parallel_for(0, blocks, grain, [&](int64_t from, int64_t to) {
    Values<T> scratch(scratch_size(plan.view));
    for (int64_t i = from; i < to; ++i) {
      const int64_t j = i * width;
      const int count = static_cast<int>(std::min<int64_t>(width, l.count - j));
      run_block<T>(plan.view, {kind, inverse, scale, count, l.in, l.in_at + j, l.in_step, l.out,
                               l.out_at + j, l.out_step, twist.coarse ? twist.coarse + j : nullptr,
                               twist.coarse ? twist.fine + j : nullptr, twist.row, scratch.get()});
    }
  });
}

std::vector<int64_t> spaced(int64_t n, int64_t step) {
  std::vector<int64_t> out(n);
  for (int64_t i = 0; i < n; ++i) out[i] = i * step;
  return out;
}

// One long dense line of complex numbers; in and out may be the same.
template <class T>
void long_line(const Plan<T>& plan, bool inverse, T scale, const T* in, T* out) {
  const int64_t n = plan.view.n;
  if (plan.first) {
    const int64_t n1 = plan.first->view.n, n2 = plan.second->view.n;
    Values<T> between(2 * n);
    const std::vector<int64_t> columns = spaced(std::max(n1, n2), 1), rows = spaced(n1, n2);
    run_lines<T>(*plan.first, FftKind::Complex, inverse, T(1),
                 {in, columns.data(), n2, between.get(), columns.data(), n2, n2},
                 {plan.coarse.data(), plan.fine.data(), plan.twist_row});
    run_lines<T>(*plan.second, FftKind::Complex, inverse, scale,
                 {between.get(), rows.data(), 1, out, columns.data(), n1, n1});
    return;
  }
  // Bluestein; the inverse is the conjugate of the transform of the conjugate.
  const int64_t padded = plan.padded->view.n;
  Values<T> place(2 * padded);
  auto* x = reinterpret_cast<std::complex<T>*>(place.get());
  const auto* a = reinterpret_cast<const std::complex<T>*>(in);
  const auto* chirp = reinterpret_cast<const std::complex<T>*>(plan.chirp.data());
  const auto* kernel = reinterpret_cast<const std::complex<T>*>(plan.kernel.data());
  auto* result = reinterpret_cast<std::complex<T>*>(out);
  for (int64_t k = 0; k < n; ++k) x[k] = (inverse ? std::conj(a[k]) : a[k]) * chirp[k];
  std::fill(x + n, x + padded, std::complex<T>(0));
  long_line<T>(*plan.padded, false, T(1), place.get(), place.get());
  for (int64_t k = 0; k < padded; ++k) x[k] *= kernel[k];
  long_line<T>(*plan.padded, true, T(1), place.get(), place.get());
  for (int64_t k = 0; k < n; ++k) {
    const std::complex<T> z = x[k] * chirp[k] * scale;
    result[k] = inverse ? std::conj(z) : z;
  }
}

template <class T>
void gather(const T* in, int64_t step, int64_t n, T* out) {
  for (int64_t k = 0; k < n; ++k) out[k] = in[k * step];
}

// Long lines of any kind, one after the other, over dense places. `n` is the length of the real or
// complex line.
template <class T>
void long_lines(FftKind kind, bool inverse, T scale, int64_t n, const Lines<T>& l) {
  using Z = std::complex<T>;
  const bool halved = kind == FftKind::RealEven || kind == FftKind::HermitianEven;
  const int64_t length = halved ? n / 2 : n;
  const PlanRef<T> plan = plan_for<T>(length, Form::Long);
  const T* halves = plan->view.halves;
  Values<Z> place(length + 1), other(length + 1);
  T* x = reinterpret_cast<T*>(place.get());
  T* y = reinterpret_cast<T*>(other.get());
  auto spread = [](const Z* from, int64_t count, Z* to, int64_t step) {
    for (int64_t k = 0; k < count; ++k) to[k * step] = from[k];
  };
  for (int64_t i = 0; i < l.count; ++i) {
    const Z* in = reinterpret_cast<const Z*>(l.in) + l.in_at[i];
    Z* out = reinterpret_cast<Z*>(l.out) + l.out_at[i];
    const T* real_in = l.in + l.in_at[i];
    T* real_out = l.out + l.out_at[i];
    T* dense_out = l.out_step == 1 ? reinterpret_cast<T*>(out) : y;
    switch (kind) {
      case FftKind::Complex: {
        const T* from = reinterpret_cast<const T*>(in);
        if (l.in_step != 1) gather(in, l.in_step, n, place.get()), from = x;
        long_line(*plan, inverse, scale, from, dense_out);
        if (dense_out == y) spread(other.get(), n, out, l.out_step);
        break;
      }
      case FftKind::RealEven: {
        long_line(*plan, inverse, T(1), reinterpret_cast<const T*>(in), x);
        parallel_for(0, length / 2 + 1, 16384, [&](int64_t from, int64_t to) {
          if constexpr (sizeof(T) == 4)
            FB_ISA_DISPATCH(fft_unpack_f32)(dense_out, x, halves, length, scale, from, to);
          else
            FB_ISA_DISPATCH(fft_unpack_f64)(dense_out, x, halves, length, scale, from, to);
        });
        if (dense_out == y) spread(other.get(), length + 1, out, l.out_step);
        break;
      }
      case FftKind::HermitianEven: {
        const T* from = reinterpret_cast<const T*>(in);
        if (l.in_step != 1) gather(in, l.in_step, length + 1, other.get()), from = y;
        parallel_for(0, length / 2 + 1, 16384, [&](int64_t a, int64_t b) {
          if constexpr (sizeof(T) == 4)
            FB_ISA_DISPATCH(fft_pack_f32)(x, from, halves, length, a, b);
          else
            FB_ISA_DISPATCH(fft_pack_f64)(x, from, halves, length, a, b);
        });
        long_line(*plan, inverse, scale, x, reinterpret_cast<T*>(out));
        break;
      }
      case FftKind::RealOdd: {
        for (int64_t k = 0; k < n; ++k) place.get()[k] = real_in[k * l.in_step];
        long_line(*plan, inverse, scale, x, x);
        spread(place.get(), n / 2 + 1, out, l.out_step);
        break;
      }
      case FftKind::HermitianOdd: {
        gather(in, l.in_step, n / 2 + 1, place.get());
        place.get()[0].imag(0);
        for (int64_t k = 1; 2 * k < n; ++k) place.get()[n - k] = std::conj(place.get()[k]);
        long_line(*plan, inverse, scale, x, x);
        for (int64_t k = 0; k < n; ++k) real_out[k * l.out_step] = place.get()[k].real();
      }
    }
  }
}

template <class T>
void transform(FftKind kind, bool inverse, double scale, int64_t n, const Lines<T>& l) {
  const bool halved = kind == FftKind::RealEven || kind == FftKind::HermitianEven;
  const int64_t length = halved ? n / 2 : n;
  const bool regular = smooth(length);
  // Two halves need a length with a divisor near its root.
  const bool divides = !regular || half_of(length) >= 8;
  const bool few = regular && l.count * 2 <= lanes<T>() && length >= 256;
  if (divides && (few || length * (regular ? 1 : 3) > kLongLine))
    return long_lines<T>(kind, inverse, static_cast<T>(scale), n, l);
  run_lines<T>(*plan_for<T>(length, Form::Block), kind, inverse, static_cast<T>(scale), l);
}

// Tensors
// ----------------------------------------------------------------------------------------------------------

// The dims other than `dim`, those with large strides in `by` first.
std::vector<int64_t> other_dims(const Tensor& by, int64_t dim) {
  std::vector<int64_t> out;
  for (int64_t d = 0; d < by.dim(); ++d)
    if (d != dim) out.push_back(d);
  std::stable_sort(out.begin(), out.end(),
                   [&](int64_t a, int64_t b) { return by.strides()[a] > by.strides()[b]; });
  return out;
}
std::vector<int64_t> places(const Tensor& x, const std::vector<int64_t>& dims) {
  std::vector<int64_t> out{0}, next;
  for (int64_t d : dims) {
    next.clear();
    next.reserve(out.size() * x.sizes()[d]);
    for (int64_t base : out)
      for (int64_t i = 0; i < x.sizes()[d]; ++i) next.push_back(base + i * x.strides()[d]);
    out.swap(next);
  }
  return out;
}

template <class T>
void pass(FftKind kind, bool inverse, double scale, int64_t n, const Tensor& out, const Tensor& in,
          int64_t dim) {
  if (out.numel() == 0) return;
  const std::vector<int64_t> dims = other_dims(out, dim);
  std::vector<int64_t> from = places(in, dims), to = places(out, dims);
  if (kind == FftKind::RealEven)
    for (int64_t& at : from) at /= 2;
  if (kind == FftKind::HermitianEven)
    for (int64_t& at : to) at /= 2;
  transform<T>(kind, inverse, scale, n,
               {static_cast<const T*>(in.data_ptr()), from.data(), in.strides()[dim],
                static_cast<T*>(out.data_ptr()), to.data(), out.strides()[dim],
                static_cast<int64_t>(from.size())});
}

template <class F>
void visit_precision(DType d, F&& f) {
  switch (to_real(d)) {
    case DType::Float32:
      return f.template operator()<float>();
    case DType::Float64:
      return f.template operator()<double>();
    default:
      fail(ErrorKind::Runtime, "fft: Unsupported dtype ", scalar_type_name(d));
  }
}

// A tensor of x's shape whose lines along `dim` are dense, with the values of x if they are wanted.
Tensor with_dense_lines(const Tensor& x, int64_t dim, bool values) {
  Ints sizes = x.sizes();
  std::swap(sizes[dim], sizes[sizes.size() - 1]);
  Ints strides = contiguous_strides(sizes);
  std::swap(strides[dim], strides[strides.size() - 1]);
  Tensor out = empty_strided(x.sizes(), strides, x.dtype());
  if (values) copy(out, x);
  return out;
}
// Can pairs of reals along dim be taken as complex numbers?
bool pairs_along(const Tensor& x, int64_t dim) {
  if (x.strides()[dim] != 1) return false;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d != dim && x.sizes()[d] > 1 && x.strides()[d] % 2) return false;
  return true;
}

}  // namespace

void fft_c2c(Tensor& result, const Tensor& input, const Ints& dims, double scale, bool forward) {
  if (result.numel() == 0) return;
  visit_precision(input.dtype(), [&]<class T>() {
    const Tensor* from = &input;
    for (size_t i = dims.size(); i-- > 0; from = &result)
      pass<T>(FftKind::Complex, !forward, i + 1 == dims.size() ? scale : 1.0, input.size(dims[i]),
              result, *from, wrap_dim(dims[i], input.dim()));
    if (dims.empty()) copy(result, input);
  });
}

void fft_r2c(Tensor& result, const Tensor& input, const Ints& dims, double scale) {
  if (result.numel() == 0) return;
  const int64_t last = wrap_dim(dims[dims.size() - 1], input.dim()), n = input.size(last);
  visit_precision(input.dtype(), [&]<class T>() {
    const bool even = n % 2 == 0;
    const Tensor in =
        even && !pairs_along(input, last) ? with_dense_lines(input, last, true) : input;
    pass<T>(even ? FftKind::RealEven : FftKind::RealOdd, false, scale, n, result, in, last);
    for (size_t i = dims.size() - 1; i-- > 0;)
      pass<T>(FftKind::Complex, false, 1.0, input.size(dims[i]), result, result,
              wrap_dim(dims[i], input.dim()));
  });
}

void fft_c2r(Tensor& result, const Tensor& input, const Ints& dims, int64_t n, double scale) {
  if (result.numel() == 0) return;
  const int64_t last = wrap_dim(dims[dims.size() - 1], input.dim());
  visit_precision(input.dtype(), [&]<class T>() {
    Tensor in = input;
    if (dims.size() > 1) {
      in = with_dense_lines(input, last, false);
      Ints others = dims;
      others.resize(dims.size() - 1);
      fft_c2c(in, input, others, 1.0, false);
    }
    const bool even = n % 2 == 0;
    const Tensor out =
        even && !pairs_along(result, last) ? with_dense_lines(result, last, false) : result;
    pass<T>(even ? FftKind::HermitianEven : FftKind::HermitianOdd, true, scale, n, out, in, last);
    if (!out.is_same(result)) copy(result, out);
  });
}

}  // namespace flambeau::kernels
