// Sampling of images and volumes at arbitrary points: nearest, linear, cubic; zeros, border or
// reflection outside.
#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "gen/kernels.h"
#include "kernels/copy.h"

namespace flambeau::kernels {
namespace {

enum Mode { kLinear = 0, kNearest = 1, kCubic = 2 };
enum Outside { kZeros = 0, kBorder = 1, kReflection = 2 };

// A coordinate in pixels and its derivative by the normalised one.
template <class T>
struct Coordinate {
  T value, slope;
};

template <class T>
Coordinate<T> to_pixels(T x, int64_t size, bool align) {
  const T n = static_cast<T>(size);
  return align ? Coordinate<T>{(x + 1) / 2 * (n - 1), (n - 1) / 2}
               : Coordinate<T>{((x + 1) * n - 1) / 2, n / 2};
}

// Mirrors at low / 2 and high / 2.
template <class T>
Coordinate<T> reflect(Coordinate<T> c, int64_t low, int64_t high) {
  if (low == high) return {0, 0};
  const T start = static_cast<T>(low) / 2, span = static_cast<T>(high - low) / 2;
  T x = c.value - start;
  if (x < 0) x = -x, c.slope = -c.slope;
  const T extra = std::fmod(x, span);
  const bool even = static_cast<int64_t>(std::fmod(std::floor(x / span), T(2))) == 0;
  if (!even) c.slope = -c.slope;
  c.value = even ? extra + start : span - extra + start;
  return c;
}

template <class T>
Coordinate<T> clip(Coordinate<T> c, int64_t size) {
  const T top = static_cast<T>(size - 1);
  if (!(c.value > 0)) return {0, 0};  // also NaN
  if (c.value >= top) return {top, 0};
  return c;
}

template <class T>
Coordinate<T> outside(Coordinate<T> c, int64_t size, int64_t mode, bool align) {
  if (mode == kReflection) c = align ? reflect(c, 0, 2 * (size - 1)) : reflect(c, -1, 2 * size - 1);
  if (mode != kZeros) c = clip(c, size);
  return c;
}

// Index of a whole coordinate, or -1 where there is nothing (also for NaN and what no integer can
// hold).
template <class T>
int64_t index_at(T x, int64_t size) {
  return x > -1 && x < static_cast<T>(size) ? static_cast<int64_t>(x) : -1;
}

// Weights of the neighbours along one axis, their first and second derivatives, and their indices.
template <class T>
struct Axis {
  int count = 0;
  int64_t at[4];
  T weight[4], slope[4], bend[4] = {};
};

template <class T>
T cubic_weight(T x, bool derivative) {
  const T a = T(-0.75);
  const T s = std::abs(x), sign = x < 0 ? T(-1) : T(1);
  if (s <= 1)
    return derivative ? sign * (3 * (a + 2) * s - 2 * (a + 3)) * s
                      : ((a + 2) * s - (a + 3)) * s * s + 1;
  return derivative ? sign * ((3 * a * s - 10 * a) * s + 8 * a)
                    : ((a * s - 5 * a) * s + 8 * a) * s - 4 * a;
}

// Its second derivative.
template <class T>
T cubic_bend(T x) {
  const T a = T(-0.75), s = std::abs(x);
  return s <= 1 ? 6 * (a + 2) * s - 2 * (a + 3) : 6 * a * s - 10 * a;
}

template <class T>
Axis<T> neighbours(T x, int64_t size, int64_t mode, int64_t padding, bool align) {
  Axis<T> axis;
  Coordinate<T> c = to_pixels(x, size, align);
  if (mode == kCubic) {
    const T base = std::floor(c.value);
    for (int j = -1; j <= 2; ++j) {
      const Coordinate<T> p = outside(Coordinate<T>{base + j, 1}, size, padding, align);
      axis.at[axis.count] = index_at(std::floor(p.value), size);
      axis.weight[axis.count] = cubic_weight(c.value - base - j, false);
      axis.bend[axis.count] = cubic_bend(c.value - base - j) * c.slope * c.slope;
      axis.slope[axis.count++] = cubic_weight(c.value - base - j, true) * c.slope;
    }
    return axis;
  }
  c = outside(c, size, padding, align);
  if (mode == kNearest) {
    axis.count = 1;
    axis.at[0] = index_at(std::nearbyint(c.value), size);
    axis.weight[0] = 1, axis.slope[0] = 0;
    return axis;
  }
  const T base = std::floor(c.value);
  axis.count = 2;
  axis.at[0] = index_at(base, size);
  axis.at[1] = index_at(base + 1, size);
  axis.weight[0] = base + 1 - c.value, axis.weight[1] = c.value - base;
  axis.slope[0] = -c.slope, axis.slope[1] = c.slope;
  return axis;
}

struct Shape {
  int64_t n, c, in[3] = {1, 1, 1}, points = 1;
  int axes;
  Shape(const Ints& input, const Ints& grid)
      : n(input[0]), c(input[1]), axes(static_cast<int>(input.size()) - 2) {
    for (int a = 0; a < axes; ++a) in[3 - axes + a] = input[2 + a], points *= grid[1 + a];
  }
  int64_t size() const { return in[0] * in[1] * in[2]; }
};

// The neighbours along the axes (z, y, x) of one point.
template <class T>
struct Neighbourhood {
  const Shape& s;
  Axis<T> axis[3];

  Neighbourhood(const Shape& shape, const T* point, int64_t mode, int64_t padding, bool align)
      : s(shape) {
    for (int a = 0; a < 3; ++a) {
      if (a >= 3 - s.axes) {
        axis[a] = neighbours<T>(point[2 - a], s.in[a], mode, padding, align);
      } else {
        axis[a].count = 1;
        axis[a].at[0] = 0, axis[a].weight[0] = 1, axis[a].slope[0] = 0;
      }
    }
  }

  // Calls f(pixel, places along the three axes) for each neighbour inside.
  template <class F>
  void each(const F& f) const {
    for (int i = 0; i < axis[0].count; ++i)
      for (int j = 0; j < axis[1].count; ++j)
        for (int k = 0; k < axis[2].count; ++k) {
          if (axis[0].at[i] < 0 || axis[1].at[j] < 0 || axis[2].at[k] < 0) continue;
          f((axis[0].at[i] * s.in[1] + axis[1].at[j]) * s.in[2] + axis[2].at[k], i, j, k);
        }
  }

  // d2(weight) / d(coordinate a) d(coordinate b), the coordinates as grids have them, x first.
  T curvature(int i, int j, int k, int a, int b) const {
    const int place[3] = {i, j, k};
    T product = 1;
    for (int d = 0; d < 3; ++d) {
      const int times = (2 - d == a) + (2 - d == b), at = place[d];
      product *= times == 2   ? axis[d].bend[at]
                 : times == 1 ? axis[d].slope[at]
                              : axis[d].weight[at];
    }
    return product;
  }
};

// Calls f(pixel, weight, per-axis slopes, x first) for each neighbour inside.
template <class T, class F>
void each_neighbour(const Shape& s, const T* point, int64_t mode, int64_t padding, bool align,
                    const F& f) {
  const Neighbourhood<T> near(s, point, mode, padding, align);
  const Axis<T>* axis = near.axis;
  near.each([&](int64_t pixel, int i, int j, int k) {
    const T wz = axis[0].weight[i], wy = axis[1].weight[j], wx = axis[2].weight[k];
    const T slopes[3] = {axis[2].slope[k] * wz * wy, axis[1].slope[j] * wz * wx,
                         axis[0].slope[i] * wy * wx};
    f(pixel, wz * wy * wx, slopes);
  });
}

template <class F>
void float_or_double(DType d, const F& f) {
  if (d == DType::Float64)
    f.template operator()<double>();
  else
    f.template operator()<float>();
}

}  // namespace

void grid_sample(Tensor& out, const Tensor& input, const Tensor& grid, int64_t mode,
                 int64_t padding, bool align) {
  if (out.numel() == 0) return;
  const Shape s(input.sizes(), grid.sizes());
  const DType d = opmath(out.dtype());
  const Tensor x = contiguous(to_dtype(input, d)), points = contiguous(to_dtype(grid, d));
  const bool direct = out.dtype() == d && out.is_contiguous();
  Tensor y = direct ? out : empty(out.sizes(), d);
  float_or_double(d, [&]<class T>() {
    parallel_for(0, s.n * s.points, std::max<int64_t>(1, kGrain / (16 * s.c)),
                 [&](int64_t from, int64_t to) {
                   for (int64_t i = from; i < to; ++i) {
                     const int64_t n = i / s.points, p = i % s.points;
                     T* o = y.data<T>() + n * s.c * s.points + p;
                     const T* image = x.data<T>() + n * s.c * s.size();
                     for (int64_t c = 0; c < s.c; ++c) o[c * s.points] = 0;
                     each_neighbour<T>(s, points.data<T>() + i * s.axes, mode, padding, align,
                                       [&](int64_t pixel, T w, const T*) {
                                         for (int64_t c = 0; c < s.c; ++c)
                                           o[c * s.points] += w * image[c * s.size() + pixel];
                                       });
                   }
                 });
  });
  if (!direct) copy(out, y);
}

void grid_sample_backward(Tensor& grad_input, Tensor& grad_grid, const Tensor& grad,
                          const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                          bool align) {
  const DType d = opmath(input.dtype());
  Tensor gi = empty(grad_input.sizes(), d), gg = empty(grad_grid.sizes(), d);
  fill_zero(gi);
  fill_zero(gg);
  if (grad.numel()) {
    const Shape s(input.sizes(), grid.sizes());
    const Tensor x = contiguous(to_dtype(input, d)), points = contiguous(to_dtype(grid, d));
    const Tensor g = contiguous(to_dtype(grad, d));
    float_or_double(d, [&]<class T>() {
      parallel_for(0, s.n, 1, [&](int64_t from, int64_t to) {
        for (int64_t i = from * s.points; i < to * s.points; ++i) {
          const int64_t n = i / s.points, p = i % s.points;
          const T* go = g.data<T>() + n * s.c * s.points + p;
          const T* image = x.data<T>() + n * s.c * s.size();
          T* gimage = gi.data<T>() + n * s.c * s.size();
          T* gpoint = gg.data<T>() + i * s.axes;
          each_neighbour<T>(s, points.data<T>() + i * s.axes, mode, padding, align,
                            [&](int64_t pixel, T w, const T* slopes) {
                              T dot = 0;
                              for (int64_t c = 0; c < s.c; ++c) {
                                gimage[c * s.size() + pixel] += w * go[c * s.points];
                                dot += image[c * s.size() + pixel] * go[c * s.points];
                              }
                              for (int a = 0; a < s.axes; ++a) gpoint[a] += slopes[a] * dot;
                            });
        }
      });
    });
  }
  copy(grad_input, gi);
  copy(grad_grid, gg);
}

// Cotangents of grad, input and grid where those of grid_sample_backward's results are `a` (of the
// image) and `b` (of the grid). With weights w, slopes w_k and curvatures w_kl, a neighbour adds
// grad * (w a + sum_k b_k w_k image) to the sum whose derivatives these are.
void grid_sample_twice(Tensor& grad_grad, Tensor& grad_input, Tensor& grad_grid, const Tensor& a,
                       const Tensor& b, const Tensor& grad, const Tensor& input, const Tensor& grid,
                       int64_t mode, int64_t padding, bool align) {
  const DType d = opmath(input.dtype());
  Tensor go = empty(grad_grad.sizes(), d), gi = empty(grad_input.sizes(), d),
         gg = empty(grad_grid.sizes(), d);
  for (const Tensor& t : {go, gi, gg}) fill_zero(t);
  if (grad.numel()) {
    const Shape s(input.sizes(), grid.sizes());
    auto dense = [&](const Tensor& t) { return contiguous(to_dtype(t, d)); };
    const Tensor x = dense(input), points = dense(grid), g = dense(grad), da = dense(a),
                 db = dense(b);
    float_or_double(d, [&]<class T>() {
      parallel_for(0, s.n, 1, [&](int64_t from, int64_t to) {
        for (int64_t i = from * s.points; i < to * s.points; ++i) {
          const int64_t n = i / s.points, out = n * s.c * s.points + i % s.points,
                        in = n * s.c * s.size();
          const T *image = x.data<T>() + in, *by_image = da.data<T>() + in,
                  *weights = g.data<T>() + out, *by_point = db.data<T>() + i * s.axes;
          T *to_image = gi.data<T>() + in, *to_weights = go.data<T>() + out,
            *to_point = gg.data<T>() + i * s.axes;
          const Neighbourhood<T> near(s, points.data<T>() + i * s.axes, mode, padding, align);
          const Axis<T>* axis = near.axis;
          near.each([&](int64_t pixel, int u, int v, int w) {
            const T wz = axis[0].weight[u], wy = axis[1].weight[v], wx = axis[2].weight[w];
            const T slopes[3] = {axis[2].slope[w] * wz * wy, axis[1].slope[v] * wz * wx,
                                 axis[0].slope[u] * wy * wx};
            T along = 0;
            for (int k = 0; k < s.axes; ++k) along += by_point[k] * slopes[k];
            T of_image = 0, of_cotangent = 0;
            for (int64_t c = 0; c < s.c; ++c) {
              const int64_t at = c * s.size() + pixel;
              const T go_c = weights[c * s.points];
              to_weights[c * s.points] += wz * wy * wx * by_image[at] + along * image[at];
              to_image[at] += along * go_c;
              of_image += go_c * image[at];
              of_cotangent += go_c * by_image[at];
            }
            for (int k = 0; k < s.axes; ++k) {
              T bent = 0;
              for (int l = 0; l < s.axes; ++l) bent += by_point[l] * near.curvature(u, v, w, k, l);
              to_point[k] += slopes[k] * of_cotangent + bent * of_image;
            }
          });
        }
      });
    });
  }
  copy(grad_grad, go);
  copy(grad_input, gi);
  copy(grad_grid, gg);
}

}  // namespace flambeau::kernels
