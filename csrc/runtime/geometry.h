// Geometries of programs: sizes, strides and offsets of which some are found when a program is run.
// Owns the numbers that vary (symbols, found in the inputs, and formulas over them) and the tensors
// that are made of them. Invariant: a tensor made here lies within its memory.
#pragma once

#include "core/tensor.h"
#include "runtime/formula.h"

namespace flambeau::runtime {

// An argument of a program: a tensor, or a number that varies.
struct Input {
  Tensor tensor;  // undefined: a number
  int64_t number = 0;
};

// The numbers of one run: symbols, then formulas.
using Numbers = SmallVector<int64_t, 16>;

// How they are found.
class Sizes {
 public:
  explicit Sizes(const Tree& spec);  // (symbols, formulas, conditions)
  bool empty() const noexcept { return symbols_.empty() && formulas_.empty(); }
  size_t count() const noexcept { return symbols_.size() + formulas_.size(); }
  // Error(Runtime) when a condition does not hold of these inputs.
  void evaluate(std::span<const Input> inputs, Numbers& numbers) const;

 private:
  using Kind = SymbolKind;
  using enum SymbolKind;
  struct Symbol {
    Kind kind;
    uint32_t input;
    int64_t dim;
  };
  int64_t value(const Symbol& s, std::span<const Input> inputs) const;

  std::vector<Symbol> symbols_;
  std::vector<Formula> formulas_;
  std::vector<Condition> conditions_;
};

struct Geometry {
  Geometry() = default;
  // (dtype, sizes, strides, offset); what varies is a tuple of one index into the numbers
  Geometry(const Tree& spec, size_t numbers);
  bool fixed() const noexcept { return patches.empty(); }
  // This geometry in a run: itself, or made in `room`.
  const Geometry& in(const Numbers& numbers, Geometry& room) const {
    return fixed() ? *this : filled(numbers, room);
  }
  // Elements from the first one that it reaches. Error(Runtime) when there is no such tensor.
  int64_t extent() const;
  bool is_of(const Tensor& t) const {  // but for the offset
    return t.dtype() == dtype && t.sizes() == sizes && t.strides() == strides;
  }
  bool is_laid_out_as(const Tensor& t) const;  // the same, strides of dims of size 1 apart

  DType dtype = DType::Float32;
  Ints sizes, strides;
  int64_t offset = 0;
  struct Patch {
    enum Where : uint8_t { InSizes, InStrides, InOffset } where;
    uint32_t dim, number;
  };
  std::vector<Patch> patches;

 private:
  const Geometry& filled(const Numbers& numbers, Geometry& room) const;
};

std::ostream& operator<<(std::ostream& out, const Geometry& g);

// A tensor of that geometry (which is fixed) over memory, `base` elements after its start.
Tensor tensor_over(const Geometry& g, const Ref<Storage>& storage, int64_t base);

}  // namespace flambeau::runtime
