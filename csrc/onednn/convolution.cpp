// Convolutions of float by oneDNN 2, as a library of its own that conv.cpp opens on first use, so
// that importing does not load oneDNN and a machine without it lacks nothing but speed. oneDNN
// chooses its layouts; arrays come and go dense, memory for the layouts comes from the caller.
#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

using namespace dnnl;

namespace {

// As ConvGeometry of csrc/kernels/conv_taps.h.
struct Geometry {
  int64_t batch, groups, ci, co;
  int64_t in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
};

struct Allocator {
  void* (*take)(size_t);
  void (*give)(void*);
};

using Dims = memory::dims;
using Tag = memory::format_tag;

engine& cpu() {
  static engine e(engine::kind::cpu, 0);
  return e;
}

// Descriptions of the arrays of one convolution; two axes unless the first of three is real.
struct Shapes {
  explicit Shapes(const Geometry& g) : first(g.in[0] == 1 && g.kernel[0] == 1 ? 1 : 0) {
    x = {g.batch, g.groups * g.ci}, y = {g.batch, g.groups * g.co};
    if (g.groups > 1)
      w = {g.groups, g.co, g.ci};
    else
      w = {g.co, g.ci};
    for (int a = first; a < 3; ++a) {
      x.push_back(g.in[a]), y.push_back(g.out[a]), w.push_back(g.kernel[a]);
      stride.push_back(g.stride[a]), dilation.push_back(g.dilation[a] - 1);
      left.push_back(g.pad[a]);
      const int64_t reach = (g.kernel[a] - 1) * g.dilation[a] + 1;
      right.push_back((g.out[a] - 1) * g.stride[a] + reach - g.in[a] - g.pad[a]);
    }
  }
  static memory::desc any(const Dims& d) { return {d, memory::data_type::f32, Tag::any}; }
  static memory::desc dense(const Dims& d) {
    static const Tag tags[] = {Tag::a,    Tag::a,     Tag::ab,    Tag::abc,
                               Tag::abcd, Tag::abcde, Tag::abcdef};
    return {d, memory::data_type::f32, tags[d.size()]};
  }
  int first;
  Dims x, y, w, stride, dilation, left, right;
};

// An array in the layout that a primitive wants.
class Array {
 public:
  Array(const memory::desc& dense, const memory::desc& wanted, const void* data, Allocator a)
      : allocator_(a), plain_(dense, cpu(), const_cast<void*>(data)), same_(dense == wanted) {
    if (same_) return;
    own_ = a.take(wanted.get_size());
    moved_ = memory(wanted, cpu(), own_);
  }
  ~Array() {
    if (own_) allocator_.give(own_);
  }
  Array(const Array&) = delete;
  memory& get() { return same_ ? plain_ : moved_; }
  void load(stream& s) {
    if (!same_) reorder(plain_, moved_).execute(s, plain_, moved_);
  }
  void store(stream& s) {
    if (!same_) reorder(moved_, plain_).execute(s, moved_, plain_);
  }

 private:
  Allocator allocator_;
  memory plain_, moved_;
  bool same_;
  void* own_ = nullptr;
};

convolution_forward::primitive_desc forward_of(const Shapes& s, bool bias, int64_t channels) {
  const auto kind = prop_kind::forward_training;
  const auto algorithm = algorithm::convolution_direct;
  if (bias)
    return {{kind, algorithm, s.any(s.x), s.any(s.w), s.dense({channels}), s.any(s.y), s.stride,
             s.dilation, s.left, s.right},
            cpu()};
  return {
      {kind, algorithm, s.any(s.x), s.any(s.w), s.any(s.y), s.stride, s.dilation, s.left, s.right},
      cpu()};
}

void forward(const Geometry& g, const Shapes& s, const float* x, const float* w, const float* bias,
             float* y, Allocator a) {
  const int64_t channels = g.groups * g.co;
  auto pd = forward_of(s, bias != nullptr, channels);
  stream run(cpu());
  Array ax(s.dense(s.x), pd.src_desc(), x, a), aw(s.dense(s.w), pd.weights_desc(), w, a),
      ay(s.dense(s.y), pd.dst_desc(), y, a);
  ax.load(run), aw.load(run);
  std::unordered_map<int, memory> args{
      {DNNL_ARG_SRC, ax.get()}, {DNNL_ARG_WEIGHTS, aw.get()}, {DNNL_ARG_DST, ay.get()}};
  if (bias)
    args.emplace(DNNL_ARG_BIAS, memory(s.dense({channels}), cpu(), const_cast<float*>(bias)));
  convolution_forward(pd).execute(run, args);
  ay.store(run);
  run.wait();
}

void to_input(const Geometry& g, const Shapes& s, const float* gy, const float* w, float* gx,
              Allocator a) {
  convolution_backward_data::primitive_desc pd(
      {algorithm::convolution_direct, s.any(s.x), s.any(s.w), s.any(s.y), s.stride, s.dilation,
       s.left, s.right},
      cpu(), forward_of(s, false, g.co));
  stream run(cpu());
  Array ay(s.dense(s.y), pd.diff_dst_desc(), gy, a), aw(s.dense(s.w), pd.weights_desc(), w, a),
      ax(s.dense(s.x), pd.diff_src_desc(), gx, a);
  ay.load(run), aw.load(run);
  convolution_backward_data(pd).execute(
      run,
      {{DNNL_ARG_DIFF_DST, ay.get()}, {DNNL_ARG_WEIGHTS, aw.get()}, {DNNL_ARG_DIFF_SRC, ax.get()}});
  ax.store(run);
  run.wait();
}

void to_weight(const Geometry& g, const Shapes& s, const float* gy, const float* x, float* gw,
               Allocator a) {
  convolution_backward_weights::primitive_desc pd(
      {algorithm::convolution_direct, s.any(s.x), s.any(s.w), s.any(s.y), s.stride, s.dilation,
       s.left, s.right},
      cpu(), forward_of(s, false, g.co));
  stream run(cpu());
  Array ay(s.dense(s.y), pd.diff_dst_desc(), gy, a), ax(s.dense(s.x), pd.src_desc(), x, a),
      aw(s.dense(s.w), pd.diff_weights_desc(), gw, a);
  ay.load(run), ax.load(run);
  convolution_backward_weights(pd).execute(
      run,
      {{DNNL_ARG_DIFF_DST, ay.get()}, {DNNL_ARG_SRC, ax.get()}, {DNNL_ARG_DIFF_WEIGHTS, aw.get()}});
  aw.store(run);
  run.wait();
}

}  // namespace

// what: 0 the convolution of a by b, 1 the gradient of its input, 2 that of its weight, for a the
// gradient of the output. True when it was done.
extern "C" __attribute__((visibility("default"))) bool flambeau_onednn_convolution(
    int what, const void* geometry, const float* a, const float* b, const float* bias, float* out,
    void* (*take)(size_t), void (*give)(void*)) {
  const Geometry& g = *static_cast<const Geometry*>(geometry);
  try {
    Shapes s(g);
    for (int64_t r : s.right)
      if (r < 0) return false;
    Allocator allocator{take, give};
    if (what == 0) return forward(g, s, a, b, bias, out, allocator), true;
    if (bias) return false;
    if (what == 1) return to_input(g, s, a, b, out, allocator), true;
    return to_weight(g, s, a, b, out, allocator), true;
  } catch (const dnnl::error&) {
    return false;
  }
}

extern "C" __attribute__((visibility("default"))) bool flambeau_onednn_sgemm(
    char at, char bt, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
    const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  return dnnl_sgemm(at, bt, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) == dnnl_success;
}
