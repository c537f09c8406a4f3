// Flambeau in C++: tensors and all operations on them. `torch::` is a name for `flambeau::`.
//
// A program includes this before any other header of the library and links to libflambeau
// (find_package(Flambeau); docs/cpp.md). The library's own files include the headers of csrc
// instead, which declare less.
#pragma once

#ifndef FLAMBEAU_API
#define FLAMBEAU_API
#endif

#include <cmath>
#include <complex>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "core/generator.h"
#include "core/tensor.h"
#include "dispatch/modes.h"
#include "flambeau/autograd.h"
#include "flambeau/composites.h"
#include "flambeau/containers.h"
#include "flambeau/indexing.h"
#include "flambeau/operators.h"
#include "flambeau/tensor_data.h"
#include "gen/api/functions.h"

namespace flambeau {

// Seeds the default generator.
void manual_seed(uint64_t seed);
Generator make_generator(uint64_t seed);
template <class Impl>
  requires(std::is_same_v<Impl, GeneratorImpl>)
Generator make_generator(uint64_t seed = 67280421310721) {
  return make_generator(seed);
}
namespace detail {
inline Generator createCPUGenerator(uint64_t seed = 67280421310721) {
  return make_generator(seed);
}
inline const Generator& getDefaultCPUGenerator() {
  return default_generator();
}
}  // namespace detail
// What << writes, to standard output.
void print(const Tensor& x);
inline void print(const Tensor& x, int64_t) {
  print(x);
}
int get_num_threads();
void set_num_threads(int n);

namespace api {
// What definitions of the functions use.
Tensor with_options(Tensor made, const TensorOptions& options);
inline const std::string& text(const Text& x) {
  return x.str();
}
inline std::optional<std::string> text(const std::optional<Text>& x) {
  return x ? std::optional<std::string>(x->str()) : std::nullopt;
}
// One number stands for as many as there are axes.
inline Ints sized(IntArrayRef xs, size_t n) {
  return xs.size() == 1 ? Ints(n, xs[0]) : xs.ints();
}
inline std::optional<Ints> sized(const OptionalIntArrayRef& xs, size_t n) {
  return xs.has_value() ? std::optional<Ints>(sized(xs.value(), n)) : std::nullopt;
}
inline std::optional<Tensor> defined_or_none(const std::optional<Tensor>& x) {
  return x && x->defined() ? x : std::nullopt;
}
}  // namespace api

namespace cuda {
inline bool is_available() {
  return false;
}
inline int64_t device_count() {
  return 0;
}
inline bool cudnn_is_available() {
  return false;
}
inline void manual_seed(uint64_t) {}
inline void manual_seed_all(uint64_t) {}
inline void synchronize(int64_t = -1) {}
}  // namespace cuda
inline bool hasCUDA() {
  return false;
}
inline bool hasMPS() {
  return false;
}
inline bool hasXPU() {
  return false;
}
inline bool hasMKL() {
  return false;
}

}  // namespace flambeau

namespace torch = flambeau;
namespace at = flambeau;
// A namespace of its own, for `complex` is an operation in the others.
namespace c10 {
using namespace flambeau;
template <class T>
using complex = std::complex<T>;
}  // namespace c10
