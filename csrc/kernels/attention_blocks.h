// Attention by blocks of keys with running maxima and sums, so that the matrix of scores is never
// stored whole (Dao et al. 2022, "FlashAttention"; Milakov & Gimelshein 2018 for the running
// softmax). Native code over strided arrays.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "kernels/isa.h"

namespace flambeau::kernels {

// A (batch, heads, rows, columns) array whose last dimension is dense.
struct AttentionOperand {
  void* data;
  int64_t batch, head, row;  // strides in elements
};

struct AttentionCall {
  DType dtype;   // float or double
  DType stored;  // that of q, k, v, out and go in memory; forward converts it block by block
  bool tiled;    // stored is bfloat16, and the tiles of AMX multiply it, forward and backward
  int64_t batch, heads, kv_heads, queries, keys, dim, value_dim;
  AttentionOperand q, k, v, out;
  const void* mask =
      nullptr;  // added to the scores (dtype), or bool: false forbids; strides of all four dims
  bool mask_is_bool = false;
  int64_t mask_stride[4] = {0, 0, 0, 0};
  bool causal = false;
  double scale = 1;
  void*
      lse;  // (batch, heads, queries): log of the sum of exponentials; +inf where all is forbidden
};

struct AttentionGradCall : AttentionCall {
  AttentionOperand go, gq, gk, gv;
};

FB_ISA_DECLARE(void attention_forward(const AttentionCall& call);)
FB_ISA_DECLARE(void attention_backward(const AttentionGradCall& call);)

}  // namespace flambeau::kernels
