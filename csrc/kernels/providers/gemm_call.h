// From a GemmCall to the templates of gemm_core.h, for operands of the computing type and for those
// that packing converts. Included by *.isa.cpp files alone.
#pragma once

#include "kernels/providers/gemm.h"
#include "kernels/providers/gemm_core.h"

namespace flambeau::kernels::FB_KERNEL_NS::tiles {

template <class S>
Strides<S> operand_a(const GemmCall& g) {
  return {static_cast<const S*>(g.a), g.a_rs, g.a_cs};
}
template <class S>
Strides<S> operand_b(const GemmCall& g) {
  return {static_cast<const S*>(g.b), g.b_rs, g.b_cs};
}

template <class T>
void gemm_same(const GemmCall& g) {
  Epilogue<T> e{static_cast<T>(g.alpha), static_cast<T>(g.beta), static_cast<const T*>(g.bias),
                static_cast<const T*>(g.row_bias)};
  gemm_strided<T>(g.m, g.n, g.k, operand_a<T>(g), operand_b<T>(g), static_cast<T*>(g.c), g.ldc, e,
                  g.threads);
}

// out = alpha * sums + beta * out + bias, in T, stored as S.
template <class T, class S>
void finish_converted(const GemmCall& g, const T* sums) {
  const T alpha = static_cast<T>(g.alpha), beta = static_cast<T>(g.beta);
  const S* bias = static_cast<const S*>(g.bias);
  const S* row_bias = static_cast<const S*>(g.row_bias);
  parallel_for(0, g.m,
               g.threads > 1 ? std::max<int64_t>(1, kGrain / std::max<int64_t>(1, g.n)) : g.m,
               [&](int64_t from, int64_t to) {
                 for (int64_t i = from; i < to; ++i) {
                   S* c = static_cast<S*>(g.c) + i * g.ldc;
                   const T* v = sums + i * g.n;
                   const T shift = row_bias ? static_cast<T>(row_bias[i]) : T(0);
                   if (beta != T(0))
                     for (int64_t j = 0; j < g.n; ++j)
                       c[j] = static_cast<S>(alpha * v[j] + beta * static_cast<T>(c[j]) + shift +
                                             (bias ? static_cast<T>(bias[j]) : T(0)));
                   else if (bias)
                     for (int64_t j = 0; j < g.n; ++j)
                       c[j] = static_cast<S>(alpha * v[j] + shift + static_cast<T>(bias[j]));
                   else
                     for (int64_t j = 0; j < g.n; ++j) c[j] = static_cast<S>(alpha * v[j] + shift);
                 }
               });
}

// Operands stored as S, product in T.
template <class T, class S>
void gemm_converted(const GemmCall& g) {
  Buffer<T> sums(g.m * g.n);
  gemm_by_tiles<T, S>(g.m, g.n, g.k, operand_a<S>(g), operand_b<S>(g), sums.get(), g.n,
                      Epilogue<T>{}, g.threads);
  finish_converted<T, S>(g, sums.get());
}

}  // namespace flambeau::kernels::FB_KERNEL_NS::tiles
