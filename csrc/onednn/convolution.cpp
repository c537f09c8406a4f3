// Convolutions of float by oneDNN 2, as a library of its own that conv.cpp opens on first use, so
// that importing does not load oneDNN and a machine without it lacks nothing but speed. Arrays come
// and go dense, row-major or with the channels last. Where an input or an output has its channels
// last, oneDNN works on that layout, unless the weight is larger than they are (it is what takes
// long to rearrange then); else it chooses its own, and arrays are brought to it and back. Memory
// for that comes from the caller.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

using namespace dnnl;

namespace {

// As ConvGeometry of csrc/kernels/conv_taps.h.
struct Geometry {
  int64_t batch, groups, ci, co;
  int64_t in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
};

// As ChannelsLast of csrc/kernels/providers/onednn.h.
struct ChannelsLast {
  bool x, w, y;
};

struct Allocator {
  void* (*take)(size_t);
  void (*give)(void*, size_t);
};

using Dims = memory::dims;
using Tag = memory::format_tag;
constexpr auto kDirect = algorithm::convolution_direct;

engine& cpu() {
  static engine e(engine::kind::cpu, 0);
  return e;
}

// Descriptions of the arrays of one convolution; two axes unless the first of three is real.
struct Shapes {
  Shapes(const Geometry& g, ChannelsLast last)
      : first(g.in[0] == 1 && g.kernel[0] == 1 ? 1 : 0), last(last) {
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
      // Below zero: elements at the end that no window reaches.
      right.push_back(
          std::max<int64_t>(0, (g.out[a] - 1) * g.stride[a] + reach - g.in[a] - g.pad[a]));
    }
  }
  static int64_t elements(const Dims& d) {
    return std::accumulate(d.begin(), d.end(), int64_t{1}, std::multiplies<>());
  }
  // What a primitive is asked for.
  static memory::desc weights(const Dims& d) { return of(d, Tag::any); }
  memory::desc plane(const Dims& d) const {
    const bool follow = (last.x || last.y) && elements(x) + elements(y) >= elements(w);
    return of(d, follow ? channels_last(d) : Tag::any);
  }
  // What is there.
  memory::desc input() const { return of(x, last.x ? channels_last(x) : row_major(x)); }
  memory::desc output() const { return of(y, last.y ? channels_last(y) : row_major(y)); }
  memory::desc weight() const {
    const Tag grouped = w.size() == 6 ? Tag::abdefc : Tag::abdec;
    const bool groups = w.size() > x.size();
    return of(w, !last.w ? row_major(w) : groups ? grouped : channels_last(w));
  }
  static memory::desc vector(int64_t n) { return of({n}, Tag::a); }

  int first;
  ChannelsLast last;
  Dims x, y, w, stride, dilation, left, right;

 private:
  static memory::desc of(const Dims& d, Tag tag) { return {d, memory::data_type::f32, tag}; }
  static Tag channels_last(const Dims& d) { return d.size() == 5 ? Tag::acdeb : Tag::acdb; }
  static Tag row_major(const Dims& d) {
    return d.size() == 6 ? Tag::abcdef : d.size() == 5 ? Tag::abcde : Tag::abcd;
  }
};

// Memory of the caller's allocator.
class Block {
 public:
  Block(size_t bytes, Allocator a) : allocator_(a), bytes_(bytes), p_(bytes ? a.take(bytes) : 0) {}
  ~Block() {
    if (p_) allocator_.give(p_, bytes_);
  }
  Block(const Block&) = delete;
  void* get() const { return p_; }

 private:
  Allocator allocator_;
  size_t bytes_;
  void* p_;
};

// An array in the layout that a primitive wants.
class Array {
 public:
  Array(const memory::desc& here, const memory::desc& wanted, const void* data, Allocator a)
      : plain_(here, cpu(), const_cast<void*>(data)),
        same_(here == wanted),
        own_(same_ ? 0 : wanted.get_size(), a) {
    if (!same_) moved_ = memory(wanted, cpu(), own_.get());
  }
  memory& get() { return same_ ? plain_ : moved_; }
  void load(stream& s) {
    if (!same_) reorder(plain_, moved_).execute(s, plain_, moved_);
  }
  void store(stream& s) {
    if (!same_) reorder(moved_, plain_).execute(s, moved_, plain_);
  }

 private:
  memory plain_, moved_;
  bool same_;
  Block own_;
};

// oneDNN's own scratch memory would be taken from the system anew on every call.
const primitive_attr& attributes() {
  static const primitive_attr shared = [] {
    primitive_attr a;
    a.set_scratchpad_mode(scratchpad_mode::user);
    return a;
  }();
  return shared;
}

// Its plain loops are slower than anybody's.
template <class Description>
bool is_reference(const Description& pd) {
  return std::strncmp(pd.impl_info_str(), "ref", 3) == 0;
}

// Scratch memory of many sizes would have a block of the cache each; large ones have a size in
// common.
size_t shared_size(size_t bytes) {
  constexpr size_t kStep = size_t{1} << 22;
  return bytes < kStep ? bytes : (bytes + kStep - 1) / kStep * kStep;
}

template <class Primitive, class Description>
void execute(const Description& pd, stream& run, std::unordered_map<int, memory> args,
             Allocator a) {
  const memory::desc scratch = pd.scratchpad_desc();
  const Block own(shared_size(scratch.get_size()), a);
  if (own.get()) args.emplace(DNNL_ARG_SCRATCHPAD, memory(scratch, cpu(), own.get()));
  Primitive(pd).execute(run, args);
  run.wait();
}

convolution_forward::primitive_desc forward_of(const Shapes& s, bool bias) {
  const auto kind = prop_kind::forward_training;
  const auto x = s.plane(s.x), y = s.plane(s.y), w = s.weights(s.w);
  if (bias)
    return {{kind, kDirect, x, w, s.vector(s.y[1]), y, s.stride, s.dilation, s.left, s.right},
            attributes(),
            cpu()};
  return {{kind, kDirect, x, w, y, s.stride, s.dilation, s.left, s.right}, attributes(), cpu()};
}

bool forward(const Shapes& s, const float* x, const float* w, const float* bias, float* y,
             Allocator a) {
  const auto pd = forward_of(s, bias != nullptr);
  if (is_reference(pd)) return false;
  stream run(cpu());
  Array ax(s.input(), pd.src_desc(), x, a), aw(s.weight(), pd.weights_desc(), w, a),
      ay(s.output(), pd.dst_desc(), y, a);
  ax.load(run), aw.load(run);
  std::unordered_map<int, memory> args{
      {DNNL_ARG_SRC, ax.get()}, {DNNL_ARG_WEIGHTS, aw.get()}, {DNNL_ARG_DST, ay.get()}};
  if (bias) args.emplace(DNNL_ARG_BIAS, memory(s.vector(s.y[1]), cpu(), const_cast<float*>(bias)));
  execute<convolution_forward>(pd, run, std::move(args), a);
  ay.store(run);
  return run.wait(), true;
}

bool to_input(const Shapes& s, const float* gy, const float* w, float* gx, Allocator a) {
  const convolution_backward_data::primitive_desc pd(
      {kDirect, s.plane(s.x), s.weights(s.w), s.plane(s.y), s.stride, s.dilation, s.left, s.right},
      attributes(), cpu(), forward_of(s, false));
  if (is_reference(pd)) return false;
  stream run(cpu());
  Array ay(s.output(), pd.diff_dst_desc(), gy, a), aw(s.weight(), pd.weights_desc(), w, a),
      ax(s.input(), pd.diff_src_desc(), gx, a);
  ay.load(run), aw.load(run);
  execute<convolution_backward_data>(
      pd, run,
      {{DNNL_ARG_DIFF_DST, ay.get()}, {DNNL_ARG_WEIGHTS, aw.get()}, {DNNL_ARG_DIFF_SRC, ax.get()}},
      a);
  ax.store(run);
  return run.wait(), true;
}

bool to_weight(const Shapes& s, const float* gy, const float* x, float* gw, Allocator a) {
  const convolution_backward_weights::primitive_desc pd(
      {kDirect, s.plane(s.x), s.weights(s.w), s.plane(s.y), s.stride, s.dilation, s.left, s.right},
      attributes(), cpu(), forward_of(s, false));
  if (is_reference(pd)) return false;
  stream run(cpu());
  Array ay(s.output(), pd.diff_dst_desc(), gy, a), ax(s.input(), pd.src_desc(), x, a),
      aw(s.weight(), pd.diff_weights_desc(), gw, a);
  ay.load(run), ax.load(run);
  execute<convolution_backward_weights>(
      pd, run,
      {{DNNL_ARG_DIFF_DST, ay.get()}, {DNNL_ARG_SRC, ax.get()}, {DNNL_ARG_DIFF_WEIGHTS, aw.get()}},
      a);
  aw.store(run);
  return run.wait(), true;
}

bool map(int what, const Shapes& s, const float* a, const float* b, const float* bias, float* out,
         Allocator allocator) {
  if (what == 0) return forward(s, a, b, bias, out, allocator);
  if (bias) return false;
  return what == 1 ? to_input(s, a, b, out, allocator) : to_weight(s, a, b, out, allocator);
}

}  // namespace

// what: 0 the convolution of a by b, 1 the gradient of its input, 2 that of its weight, for a the
// gradient of the output. True when it was done.
extern "C" __attribute__((visibility("default"))) bool flambeau_onednn_convolution(
    int what, const void* geometry, ChannelsLast last, const float* a,
    const float* b, const float* bias, float* out, void* (*take)(size_t),
    void (*give)(void*, size_t)) {
  try {
    const Shapes s(*static_cast<const Geometry*>(geometry), last);
    const Allocator allocator{take, give};
    return map(what, s, a, b, bias, out, allocator);
  } catch (const dnnl::error&) {
    return false;
  }
}

extern "C" __attribute__((visibility("default"))) bool flambeau_onednn_sgemm(
    char at, char bt, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
    const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  return dnnl_sgemm(at, bt, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) == dnnl_success;
}
