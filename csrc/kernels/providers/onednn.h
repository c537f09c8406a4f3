// oneDNN, when it was there at build time and is there now: csrc/onednn, a library of its own
// beside the extension, opened on first use. Functions are null without it; all take dense floats.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flambeau::kernels {

// Which arrays of a convolution have their channels last in memory; the others are row-major.
struct ChannelsLast {
  bool x, w, y;
};

struct OneDnn {
  // what: 0 the convolution of a by b, 1 the gradient of its input, 2 that of its weight.
  bool (*convolution)(int what, const void* geometry, ChannelsLast last, const float* a,
                      const float* b, const float* bias, float* out, void* (*take)(size_t),
                      void (*give)(void*, size_t));
  // c = alpha a b + beta c, row-major; at, bt: 'T' when the operand is stored transposed.
  bool (*sgemm)(char at, char bt, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc);
};

const OneDnn& onednn();

// Its memory comes from our allocator.
void* onednn_take(size_t bytes);
void onednn_give(void* p, size_t bytes);

}  // namespace flambeau::kernels
