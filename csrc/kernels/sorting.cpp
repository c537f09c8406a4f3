#include "gen/kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "core/parallel.h"
#include "kernels/copy.h"
#include "kernels/radix.h"
#include "kernels/selection.h"
#include "kernels/walk.h"

namespace flambeau::kernels {
namespace {

// Calls f.operator()<T>() for ordered types; complex ones are refused by the entries.
template <class F>
void visit_ordered(DType d, const char* op, F&& f) {
  visit(d, [&]<class T>() {
    if constexpr (is_ordered<T>)
      f.template operator()<T>();
    else
      fail(ErrorKind::Runtime, op, ": complex numbers have no order");
  });
}

// The lines of `input` along dim: offset of each line in input and in one or two outputs of like
// shape (but along dim).
struct Lines {
  std::vector<int64_t> in, v, x;
  int64_t n, si, sv, sx;
  Lines(const Tensor& input, const Tensor& values, const Tensor& places, int64_t dim) {
    auto starts = [&](const Tensor& t) {
      if (t.dim() == 0) return std::vector<int64_t>{0};
      Ints sizes = t.sizes(), strides = t.strides();
      if (t.dim() == input.dim()) {
        sizes.erase(sizes.begin() + dim);
        strides.erase(strides.begin() + dim);
      }
      return offsets(sizes, strides, 0, sizes.size());
    };
    auto step = [&](const Tensor& t) {
      return t.dim() == input.dim() && t.dim() ? t.strides()[dim] : 0;
    };
    in = starts(input), v = starts(values), x = starts(places);
    n = input.dim() ? input.sizes()[dim] : 1;
    si = step(input), sv = step(values), sx = step(places);
    FB_CHECK(n < (int64_t{1} << 32), "sort: lines of 2**32 entries and more are not supported");
  }
  int64_t count() const { return static_cast<int64_t>(in.size()); }
};

template <class F>
void each_line(const Lines& lines, const F& f) {
  int64_t grain = std::max<int64_t>(1, kGrain / 8 / std::max<int64_t>(lines.n, 1));
  parallel_for(0, lines.count(), grain, f);
}

template <class T>
void load_keys(const T* line, int64_t n, int64_t stride, bool flip,
               Keyed<typename KeyOf<T>::U>* out) {
  using U = typename KeyOf<T>::U;
  for (int64_t i = 0; i < n; ++i) {
    U key = KeyOf<T>::of(line[i * stride]);
    out[i] = {flip ? static_cast<U>(~key) : key, static_cast<uint32_t>(i)};
  }
}

}  // namespace

void sort(Tensor& values, Tensor& indices, const Tensor& input, bool, int64_t dim,
          bool descending) {
  if (input.numel() == 0) return;
  Lines lines(input, values, indices, wrap_dim(dim, input.dim()));
  visit_ordered(input.dtype(), "sort", [&]<class T>() {
    using U = typename KeyOf<T>::U;
    const T* in = input.data<T>();
    T* v = values.data<T>();
    int64_t* x = indices.data<int64_t>();
    each_line(lines, [&](int64_t a, int64_t b) {
      std::vector<Keyed<U>> keys(lines.n), scratch(lines.n > 48 ? lines.n : 0);
      for (int64_t i = a; i < b; ++i) {
        const T* line = in + lines.in[i];
        load_keys(line, lines.n, lines.si, descending, keys.data());
        radix_sort(keys.data(), scratch.data(), lines.n);
        T* vi = v + lines.v[i];
        int64_t* xi = x + lines.x[i];
        for (int64_t j = 0; j < lines.n; ++j) {
          vi[j * lines.sv] = line[keys[j].place * lines.si];
          xi[j * lines.sx] = keys[j].place;
        }
      }
    });
  });
}

namespace {
// Orders by key, the larger first, and by place.
template <class U>
struct Better {
  bool operator()(const Keyed<U>& a, const Keyed<U>& b) const {
    return a.key > b.key || (a.key == b.key && a.place < b.place);
  }
};

void best_of_groups(const float* x, int64_t n, int64_t groups, bool less, float* best) {
  FB_ISA_DISPATCH(best_of_groups_float)(x, n, groups, less, best);
}
void best_of_groups(const double* x, int64_t n, int64_t groups, bool less, double* best) {
  FB_ISA_DISPATCH(best_of_groups_double)(x, n, groups, less, best);
}
int64_t places_beyond(const float* x, int64_t n, float bound, bool less, uint32_t* places) {
  return FB_ISA_DISPATCH(places_beyond_float)(x, n, bound, less, places);
}
int64_t places_beyond(const double* x, int64_t n, double bound, bool less, uint32_t* places) {
  return FB_ISA_DISPATCH(places_beyond_double)(x, n, bound, less, places);
}

// How many entries are ordered by counting how many come before each, O(n^2) without a branch to
// mispredict.
constexpr int64_t kCounted = 64;

// Orders n <= kCounted entries, which come by place.
template <class U>
void order_few(Keyed<U>* x, int64_t n) {
  U keys[kCounted];
  Keyed<U> out[kCounted];
  for (int64_t i = 0; i < n; ++i) keys[i] = x[i].key;
  for (int64_t i = 0; i < n; ++i) {
    int32_t before = 0;
    for (int64_t j = 0; j < i; ++j) before += keys[j] >= keys[i];
    for (int64_t j = i + 1; j < n; ++j) before += keys[j] > keys[i];
    out[before] = x[i];
  }
  std::copy_n(out, n, x);
}

// The k-th best of n numbers without NaN, whose order is lost.
template <class T>
T kth_best(T* x, int64_t n, int64_t k, bool less) {
  if (n > kCounted) {
    std::nth_element(x, x + (k - 1), x + n, [=](T a, T b) { return less ? a < b : a > b; });
    return x[k - 1];
  }
  T found = x[0];
  for (int64_t i = 0; i < n; ++i) {
    int32_t before = 0;
    for (int64_t j = 0; j < n; ++j)
      before += (less ? x[j] < x[i] : x[j] > x[i]) | ((x[j] == x[i]) & (j < i));
    found = before == k - 1 ? x[i] : found;
  }
  return found;
}

// How many groups a line is divided into, so that the k-th best of their best is a bound which k
// numbers reach and few more.
int64_t groups_for(int64_t k) {
  return k <= 12 ? 16 : (k + 47) / 48 * 64;
}

// The k best of n entries to the front.
template <class U>
void choose_best(Keyed<U>* x, int64_t n, int64_t k, bool sorted) {
  constexpr Better<U> better;
  if (n <= kCounted) return order_few(x, n);
  if (k < n) std::nth_element(x, x + (k - 1), x + n, better);
  if (sorted) std::sort(x, x + k, better);
}

// The k best of a line through a heap of those seen so far: most entries lose against its root at
// the cost of one comparison.
template <class T, class U>
void best_by_heap(const T* line, int64_t n, int64_t stride, int64_t k, bool flip, bool sorted,
                  Keyed<U>* best) {
  constexpr Better<U> better;
  load_keys(line, k, stride, flip, best);
  std::make_heap(best, best + k, better);
  for (int64_t j = k; j < n; ++j) {
    U key = KeyOf<T>::of(line[j * stride]);
    if (flip) key = static_cast<U>(~key);
    if (key <= best[0].key) [[likely]]
      continue;
    std::pop_heap(best, best + k, better);
    best[k - 1] = {key, static_cast<uint32_t>(j)};
    std::push_heap(best, best + k, better);
  }
  if (sorted) std::sort(best, best + k, better);
}

// The k best of n numbers side by side: those beyond a bound, which is found first.
template <class T, class U>
void best_beyond(const T* line, int64_t n, int64_t k, bool flip, bool sorted,
                 std::vector<T>& bounds, uint32_t* places, std::vector<Keyed<U>>& best) {
  const int64_t groups = static_cast<int64_t>(bounds.size());
  best_of_groups(line, n, groups, flip, bounds.data());
  const T bound = kth_best(bounds.data(), groups, k, flip);
  const int64_t found = places_beyond(line, n, bound, flip, places);
  if (found > static_cast<int64_t>(best.size())) best.resize(found);
  for (int64_t j = 0; j < found; ++j) {
    U key = KeyOf<T>::of(line[places[j]]);
    best[j] = {flip ? static_cast<U>(~key) : key, places[j]};
  }
  choose_best(best.data(), found, k, sorted);
}
}  // namespace

void topk(Tensor& values, Tensor& indices, const Tensor& input, int64_t k, int64_t dim,
          bool largest, bool sorted) {
  if (values.numel() == 0 || input.numel() == 0) return;
  if (input.dim() == 0) k = 1;
  Lines lines(input, values, indices, wrap_dim(dim, input.dim()));
  visit_ordered(input.dtype(), "topk", [&]<class T>() {
    using U = typename KeyOf<T>::U;
    const T* in = input.data<T>();
    T* v = values.data<T>();
    int64_t* x = indices.data<int64_t>();
    constexpr bool real = std::is_floating_point_v<T>;
    const int64_t n = lines.n;
    const bool few = k * 4 < n;
    const bool bounded = real && lines.si == 1 && groups_for(k) * 4 <= n;
    each_line(lines, [&](int64_t a, int64_t b) {
      std::vector<Keyed<U>> best(few ? k : n);
      std::vector<T> bounds(bounded ? groups_for(k) : 0);
      std::unique_ptr<uint32_t[]> places(bounded ? new uint32_t[n] : nullptr);
      for (int64_t i = a; i < b; ++i) {
        const T* line = in + lines.in[i];
        if (bounded) {
          if constexpr (real)
            best_beyond(line, n, k, !largest, sorted, bounds, places.get(), best);
        } else if (few) {
          best_by_heap(line, n, lines.si, k, !largest, sorted, best.data());
        } else {
          load_keys(line, n, lines.si, !largest, best.data());
          choose_best(best.data(), n, k, sorted);
        }
        for (int64_t j = 0; j < k; ++j) {
          v[lines.v[i] + j * lines.sv] = line[best[j].place * lines.si];
          x[lines.x[i] + j * lines.sx] = best[j].place;
        }
      }
    });
  });
}

namespace {
// One chosen entry per line: choose(keys of the line) gives the place.
template <class Choose>
void select_line(Tensor& values, Tensor& indices, const Tensor& input, int64_t dim, const char* op,
                 const Choose& choose) {
  if (input.numel() == 0) return;
  Lines lines(input, values, indices, wrap_dim(dim, input.dim()));
  visit_ordered(input.dtype(), op, [&]<class T>() {
    using U = typename KeyOf<T>::U;
    const T* in = input.data<T>();
    each_line(lines, [&](int64_t a, int64_t b) {
      std::vector<Keyed<U>> keys(lines.n), scratch(lines.n);
      for (int64_t i = a; i < b; ++i) {
        const T* line = in + lines.in[i];
        load_keys(line, lines.n, lines.si, false, keys.data());
        int64_t place = choose.template operator()<U>(
            keys, scratch, std::is_floating_point_v<T> || sizeof(T) == 2);
        values.data<T>()[lines.v[i]] = line[place * lines.si];
        indices.data<int64_t>()[lines.x[i]] = place;
      }
    });
  });
}

template <class U>
bool less(const Keyed<U>& a, const Keyed<U>& b) {
  return a.key < b.key || (a.key == b.key && a.place < b.place);
}

template <class U>
int64_t nth(std::vector<Keyed<U>>& keys, int64_t k) {
  std::nth_element(keys.begin(), keys.begin() + k, keys.end(), less<U>);
  return keys[k].place;
}
}  // namespace

void kthvalue(Tensor& values, Tensor& indices, const Tensor& input, int64_t k, int64_t dim, bool) {
  select_line(values, indices, input, dim, "kthvalue",
              [&]<class U>(auto& keys, auto&, bool) { return nth<U>(keys, k - 1); });
}

void median_dim(Tensor& values, Tensor& indices, const Tensor& input, int64_t dim, bool,
                bool skip_nan) {
  bool floating = input.is_floating_point();
  select_line(values, indices, input, dim, "median",
              [&]<class U>(auto& keys, auto&, bool) -> int64_t {
                int64_t n = static_cast<int64_t>(keys.size());
                if (floating) {
                  constexpr U nan = static_cast<U>(~U(0));
                  int64_t numbers = 0, first = -1;
                  for (int64_t i = 0; i < n; ++i) {
                    if (keys[i].key != nan)
                      ++numbers;
                    else if (first < 0)
                      first = i;
                  }
                  if (first >= 0 && (!skip_nan || numbers == 0)) return first;
                  n = numbers;
                }
                return nth<U>(keys, (n - 1) / 2);
              });
}

void median_of_run(Tensor& out, const Tensor& input, bool skip_nan) {
  Tensor place = empty(Ints(), DType::Int64);
  median_dim(out, place, input, 0, false, skip_nan);
}

void mode(Tensor& values, Tensor& indices, const Tensor& input, int64_t dim, bool) {
  select_line(values, indices, input, dim, "mode",
              [&]<class U>(auto& keys, auto& scratch, bool) -> int64_t {
                radix_sort(keys.data(), scratch.data(), static_cast<int64_t>(keys.size()));
                int64_t n = static_cast<int64_t>(keys.size()), best = 0, longest = 0;
                for (int64_t i = 0; i < n;) {
                  int64_t j = i;
                  while (j < n && keys[j].key == keys[i].key) ++j;
                  if (j - i > longest) longest = j - i, best = j - 1;
                  i = j;
                }
                return keys[best].place;
              });
}

// Places in sequences
// ----------------------------------------------------------------------------------------------------

namespace {
// The order that sort sorts by: NaN is the largest.
template <class T>
bool comes_before(T a, T b) {
  if constexpr (is_whole<T>)
    return a < b;
  else
    return a < b || (!(b == b) && a == a);
}
}  // namespace

void searchsorted(Tensor& out, const Tensor& sequence, const Tensor& input, bool, bool right,
                  const std::optional<std::string>& side, const OptTensor& sorter) {
  if (input.numel() == 0) return;
  bool after = right || (side && *side == "right");
  const bool tensor = !input.is_wrapped_number() || input.is_complex();  // its dtype counts
  DType kind = promote(sequence.dtype(), tensor                      ? input.dtype()
                                         : input.is_floating_point() ? DType::Float32
                                                                     : sequence.dtype());
  Tensor s = contiguous(to_dtype(sequence, kind)), x = contiguous(to_dtype(input, kind));
  Tensor order = sorter ? contiguous(*sorter) : Tensor();
  int64_t n = s.sizes().back();
  int64_t per_row = s.dim() == 1 ? x.numel() : x.sizes().back();
  if (order)
    for (int64_t i = 0; i < order.numel(); ++i)
      FB_CHECK_INDEX(order.data<int64_t>()[i] >= 0 && order.data<int64_t>()[i] < n,
                     "torch.searchsorted(): sorter index out of range");
  Tensor result = out.is_contiguous() ? out : empty(out.sizes(), out.dtype());
  visit_ordered(x.dtype(), "searchsorted", [&]<class T>() {
    const T *sp = s.data<T>(), *xp = x.data<T>();
    parallel_for(0, x.numel(), kGrain / 8, [&](int64_t a, int64_t b) {
      for (int64_t i = a; i < b; ++i) {
        int64_t row = s.dim() == 1 ? 0 : i / per_row;
        const T* line = sp + row * n;
        const int64_t* perm =
            order ? order.data<int64_t>() + (order.dim() == 1 ? 0 : row * n) : nullptr;
        T v = xp[i];
        int64_t lo = 0, hi = n;
        while (lo < hi) {
          int64_t mid = lo + (hi - lo) / 2;
          T m = line[perm ? perm[mid] : mid];
          if (after ? !comes_before(v, m) : comes_before(m, v))
            lo = mid + 1;
          else
            hi = mid;
        }
        if (result.dtype() == DType::Int32)
          result.data<int32_t>()[i] = static_cast<int32_t>(lo);
        else
          result.data<int64_t>()[i] = lo;
      }
    });
  });
  if (!result.is_same(out)) copy(out, result);
}

Tensor bincount(const Tensor& input, const OptTensor& weights, int64_t minlength) {
  Tensor x = contiguous(to_dtype(input, DType::Int64));
  const int64_t* p = x.data<int64_t>();
  int64_t n = x.numel(), bins = minlength;
  for (int64_t i = 0; i < n; ++i) {
    FB_CHECK(p[i] >= 0, "bincount only supports 1-d non-negative integral inputs.");
    FB_CHECK(p[i] < INT64_MAX, "bincount: too many bins: the largest entry is ", p[i]);
    bins = std::max(bins, p[i] + 1);
  }
  if (!weights) {
    Tensor out = empty({bins}, DType::Int64);
    fill(out, Scalar(0));
    for (int64_t i = 0; i < n; ++i) ++out.data<int64_t>()[p[i]];
    return out;
  }
  bool single = weights->dtype() == DType::Float32;
  Tensor w = contiguous(to_dtype(*weights, single ? DType::Float32 : DType::Float64));
  Tensor out = empty({bins}, w.dtype());
  fill(out, Scalar(0));
  if (single)
    for (int64_t i = 0; i < n; ++i) out.data<float>()[p[i]] += w.data<float>()[i];
  else
    for (int64_t i = 0; i < n; ++i) out.data<double>()[p[i]] += w.data<double>()[i];
  return out;
}

void histc(Tensor& out, const Tensor& input, int64_t bins, const Scalar& min, const Scalar& max) {
  Tensor x = contiguous(to_dtype(input, DType::Float64));
  const double* p = x.data<double>();
  double lo = min.to_double(), hi = max.to_double();
  if (lo == hi && x.numel()) {
    auto [a, b] = std::minmax_element(p, p + x.numel());
    lo = *a, hi = *b;
  }
  if (lo == hi) lo -= 1, hi += 1;
  FB_CHECK(std::isfinite(lo) && std::isfinite(hi), "torch.histc: range of [", lo, ", ", hi,
           "] is not finite");
  FB_CHECK(lo < hi, "torch.histc: max must be larger than min");
  std::vector<double> counts(bins, 0);
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (!(p[i] >= lo && p[i] <= hi)) continue;
    double b = (p[i] / 2 - lo / 2) / (hi / 2 - lo / 2) * static_cast<double>(bins);
    ++counts[std::min(static_cast<int64_t>(b), bins - 1)];
  }
  Tensor result = empty({bins}, DType::Float64);
  std::copy(counts.begin(), counts.end(), result.data<double>());
  copy(out, result);
}

// Distinct entries
// -------------------------------------------------------------------------------------------------------

namespace {
// Groups of equal rows, given an order of rows and a test of neighbours: where each group starts,
// inverse and counts.
struct Groups {
  std::vector<int64_t> first;
  Tensor inverse, counts;
};
template <class Same>
Groups group(const std::vector<int64_t>& order, const Same& same, const Ints& inverse_shape,
             bool inverse, bool counts) {
  Groups g;
  int64_t n = static_cast<int64_t>(order.size());
  g.inverse = empty(inverse ? inverse_shape : Ints{0}, DType::Int64);
  for (int64_t i = 0; i < n; ++i) {
    if (i == 0 || !same(order[i - 1], order[i])) g.first.push_back(i);
    if (inverse) g.inverse.data<int64_t>()[order[i]] = static_cast<int64_t>(g.first.size()) - 1;
  }
  int64_t m = static_cast<int64_t>(g.first.size());
  g.counts = empty({counts ? m : 0}, DType::Int64);
  if (counts)
    for (int64_t i = 0; i < m; ++i)
      g.counts.data<int64_t>()[i] = (i + 1 < m ? g.first[i + 1] : n) - g.first[i];
  return g;
}

std::tuple<Tensor, Tensor, Tensor> unique_flat(const Tensor& input, bool sort_first, bool inverse,
                                               bool counts) {
  Tensor x = contiguous(input);
  int64_t n = x.numel();
  std::tuple<Tensor, Tensor, Tensor> result;
  visit_ordered(x.dtype(), "unique", [&]<class T>() {
    using U = typename KeyOf<T>::U;
    const T* p = x.data<T>();
    std::vector<int64_t> order(n);
    if (sort_first) {
      std::vector<Keyed<U>> keys(n), scratch(n);
      FB_CHECK(n < (int64_t{1} << 32), "unique: 2**32 entries and more are not supported");
      load_keys(p, n, 1, false, keys.data());
      radix_sort(keys.data(), scratch.data(), n);
      for (int64_t i = 0; i < n; ++i) order[i] = keys[i].place;
    } else {
      for (int64_t i = 0; i < n; ++i) order[i] = i;
    }
    auto same = [&](int64_t a, int64_t b) {
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
        return float(p[a]) == float(p[b]);
      else
        return p[a] == p[b];
    };
    Groups g = group(order, same, input.sizes(), inverse, counts);
    Tensor out = empty({static_cast<int64_t>(g.first.size())}, x.dtype());
    for (size_t i = 0; i < g.first.size(); ++i) out.data<T>()[i] = p[order[g.first[i]]];
    result = {out, g.inverse, g.counts};
  });
  return result;
}

// The elements of a dense tensor as keys, which compare without their type.
template <class U>
std::vector<U> keys_of(const Tensor& x) {
  std::vector<U> keys(x.numel());
  visit_ordered(x.dtype(), "unique_dim", [&]<class T>() {
    if constexpr (std::is_same_v<typename KeyOf<T>::U, U>)
      std::transform(x.data<T>(), x.data<T>() + x.numel(), keys.begin(), KeyOf<T>::of);
  });
  return keys;
}

// Which rows of a matrix hold a NaN; nothing where none can.
std::vector<bool> rows_with_nan(const Tensor& rows, int64_t n, int64_t width) {
  if (!is_floating_point(rows.dtype())) return {};
  std::vector<bool> found(n, false);
  visit_ordered(rows.dtype(), "unique_dim", [&]<class T>() {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < width && !found[i]; ++j)
        found[i] =
            std::isnan(static_cast<double>(static_cast<float>(rows.data<T>()[i * width + j])));
  });
  return found;
}

// Groups of equal rows of a matrix; `order` becomes theirs.
template <class U>
Groups group_rows(const Tensor& rows, std::vector<int64_t>& order, bool sort_first, bool inverse,
                  bool counts) {
  const int64_t n = static_cast<int64_t>(order.size()), width = n ? rows.numel() / n : 0;
  const std::vector<U> keys = keys_of<U>(rows);
  const auto row = [&](int64_t r) { return keys.begin() + r * width; };
  for (int64_t i = 0; i < n; ++i) order[i] = i;
  if (sort_first)
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return std::lexicographical_compare(row(a), row(a) + width, row(b), row(b) + width);
    });
  // Not a number equals nothing, so a row that holds one is alone.
  const std::vector<bool> odd = rows_with_nan(rows, n, width);
  const auto same = [&](int64_t a, int64_t b) {
    return (odd.empty() || !odd[a]) && std::equal(row(a), row(a) + width, row(b));
  };
  return group(order, same, {n}, inverse, counts);
}

// Slices along dim as rows of one matrix, compared lexicographically.
std::tuple<Tensor, Tensor, Tensor> unique_rows(const Tensor& input, int64_t dim, bool sort_first,
                                               bool inverse, bool counts) {
  int64_t d = wrap_dim(dim, input.dim()), n = input.size(d);
  Ints sizes = input.sizes(), strides = input.strides();
  std::swap(sizes[0], sizes[d]);
  std::swap(strides[0], strides[d]);
  FB_CHECK(input.numel() > 0 || n == 0 || input.numel() == 0, "unique: unexpected shape");
  Tensor rows = contiguous(alias(input, sizes, strides, input.offset()));
  if (input.numel() == 0) {
    int64_t zeros = 0;
    for (int64_t s : input.sizes()) zeros += s == 0;
    FB_CHECK(zeros == 1 && n == 0,
             "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  }
  std::vector<int64_t> order(n);
  const int64_t item = rows.itemsize(), bytes = n ? rows.numel() / n * item : 0;
  const auto grouped = item == 1   ? group_rows<uint8_t>
                       : item == 2 ? group_rows<uint16_t>
                       : item == 4 ? group_rows<uint32_t>
                                   : group_rows<uint64_t>;
  const Groups g = grouped(rows, order, sort_first, inverse, counts);
  Ints shape = sizes;
  shape[0] = static_cast<int64_t>(g.first.size());
  const Tensor out = empty(shape, rows.dtype());
  const char* from = static_cast<const char*>(rows.data_ptr());
  char* to = static_cast<char*>(out.data_ptr());
  if (bytes)
    for (int64_t first : g.first) to = std::copy_n(from + order[first] * bytes, bytes, to);
  Ints back_sizes = out.sizes(), back_strides = out.strides();
  std::swap(back_sizes[0], back_sizes[d]);
  std::swap(back_strides[0], back_strides[d]);
  return {contiguous(alias(out, back_sizes, back_strides, 0)), g.inverse, g.counts};
}
}  // namespace

std::tuple<Tensor, Tensor, Tensor> unique(const Tensor& input, std::optional<int64_t> dim, bool,
                                          bool inverse, bool counts) {
  return dim ? unique_rows(input, *dim, true, inverse, counts)
             : unique_flat(input, true, inverse, counts);
}

std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& input,
                                                      std::optional<int64_t> dim, bool inverse,
                                                      bool counts) {
  return dim ? unique_rows(input, *dim, false, inverse, counts)
             : unique_flat(input, false, inverse, counts);
}

}  // namespace flambeau::kernels
