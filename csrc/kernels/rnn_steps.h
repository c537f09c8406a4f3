// One direction of one recurrent layer over a sequence, forward and backward: native code over
// dense arrays, float or double. The recurrent weight is packed once for the whole sequence,
// threads own hidden units and meet once per step.
//
// Rows of all steps lie one after the other: step t has batch_sizes[t] of them, never more than the
// step before it (a packed sequence). States keep one row per sequence.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "kernels/isa.h"

namespace flambeau::kernels {

enum RnnMode : int64_t { kRnnTanh = 0, kRnnRelu = 1, kLstm = 2, kGru = 3 };
inline int64_t rnn_gates(int64_t mode) {
  return mode == kLstm ? 4 : mode == kGru ? 3 : 1;
}
// What the backward needs besides the outputs, per row, in hidden sizes: LSTM i f g o c; GRU r z n
// and n's hidden part.
inline int64_t rnn_saved(int64_t mode) {
  return mode == kLstm ? 5 : mode == kGru ? 4 : 0;
}

struct RnnCall {
  DType dtype;
  int64_t mode, steps, batch, hidden;
  const int64_t* batch_sizes;
  bool reverse;
  const void *w, *b;  // (gates * hidden, hidden), (gates * hidden) or null
  void *y, *saved;    // (rows, hidden), (rows, rnn_saved * hidden)
};
struct RnnForward : RnnCall {
  const void* x;  // (rows, gates * hidden): what the inputs contribute, bias included
  void *h, *c;    // states, in place: initial to final
};
struct RnnBackward : RnnCall {
  const void *gy, *h0, *c0;
  void *gx, *gh_gates;  // cotangents of the two summands of the gates (the same array but for GRU)
  void* previous;       // (rows, hidden): the state before each row, for the gradient of the weight
  void *gh, *gc;        // cotangents of the states, in place: final to initial
};

FB_ISA_DECLARE(void rnn_forward(const RnnForward& call);)
FB_ISA_DECLARE(void rnn_backward(const RnnBackward& call);)

}  // namespace flambeau::kernels
