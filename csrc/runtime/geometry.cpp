#include "runtime/geometry.h"

#include "dispatch/modes.h"

namespace flambeau::runtime {

// Numbers
// ------------------------------------------------------------------------------------------------

Sizes::Sizes(const Tree& spec) {
  for (const Tree& s : spec[0].items())
    symbols_.push_back({static_cast<Kind>(s[0].integer_below(kSymbolKinds, "kind of symbol")),
                        static_cast<uint32_t>(s[1].integer_below(UINT32_MAX, "input")),
                        s[2].integer()});
  auto known = [&](const Formula& f) {
    FB_CHECK_VALUE(f.highest() < static_cast<int64_t>(symbols_.size()),
                   "a program: a formula refers to a symbol that there is not");
  };
  for (const Tree& f : spec[1].items()) known(formulas_.emplace_back(f));
  for (const Tree& c : spec[2].items()) known(conditions_.emplace_back(c).formula);
}

int64_t Sizes::value(const Symbol& s, std::span<const Input> inputs) const {
  if (s.kind == Unknown) return 0;
  FB_CHECK(s.input < inputs.size(), "compiled function: expected more than ", s.input, " inputs");
  const Input& x = inputs[s.input];
  if (s.kind == Value) return x.number;
  FB_CHECK(x.tensor.defined(), "compiled function: expected a tensor as input ", s.input);
  if (s.kind == Offset) return x.tensor.offset();
  FB_CHECK(s.dim >= 0 && s.dim < x.tensor.dim(), "compiled function: expected input ", s.input,
           " to have more than ", s.dim, " dims, got shape ", x.tensor.sizes());
  auto d = static_cast<size_t>(s.dim);
  return s.kind == Size ? x.tensor.sizes()[d] : x.tensor.strides()[d];
}

void Sizes::evaluate(std::span<const Input> inputs, Numbers& numbers) const {
  numbers.reserve(count());
  for (const Symbol& s : symbols_) numbers.push_back(value(s, inputs));
  std::span<const int64_t> symbols(numbers.data(), symbols_.size());
  for (const Condition& c : conditions_)
    FB_CHECK(c.holds(symbols),
             "compiled function: the inputs have sizes that it was not made for; expected ",
             c.text);
  for (const Formula& f : formulas_) {
    int64_t v;
    FB_CHECK(f.evaluate(symbols, v), "compiled function: a size overflows, or divides by zero");
    numbers.push_back(v);
  }
}

// Geometries
// ------------------------------------------------------------------------------------------------

Geometry::Geometry(const Tree& spec, size_t numbers) : dtype(spec[0].dtype()) {
  auto read = [&](const Tree& t, Patch::Where where, size_t dim) -> int64_t {
    if (!t.is_list()) return t.integer();
    const int64_t n = t[0].integer_below(numbers, "number");
    patches.push_back({where, static_cast<uint32_t>(dim), static_cast<uint32_t>(n)});
    return 0;
  };
  for (const Tree& t : spec[1].items()) sizes.push_back(read(t, Patch::InSizes, sizes.size()));
  for (const Tree& t : spec[2].items())
    strides.push_back(read(t, Patch::InStrides, strides.size()));
  offset = read(spec[3], Patch::InOffset, 0);
  FB_CHECK_VALUE(sizes.size() == strides.size(), "a program: ", sizes.size(), " sizes, but ",
                 strides.size(), " strides");
}

const Geometry& Geometry::filled(const Numbers& numbers, Geometry& room) const {
  room.dtype = dtype;
  room.sizes = sizes;
  room.strides = strides;
  room.offset = offset;
  for (const Patch& p : patches)
    (p.where == Patch::InSizes     ? room.sizes[p.dim]
     : p.where == Patch::InStrides ? room.strides[p.dim]
                                   : room.offset) = numbers[p.number];
  return room;
}

constexpr int64_t kBeyond = int64_t{1} << 58;  // no memory has so many elements

int64_t Geometry::extent() const {
  int64_t last = 0, count = 1;
  bool none = false, bad = offset < 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t reach;
    bad |= sizes[i] < 0 || strides[i] < 0 || __builtin_mul_overflow(count, sizes[i], &count);
    none |= sizes[i] == 0;
    if (sizes[i] > 0)
      bad |= __builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) ||
             __builtin_add_overflow(last, reach, &last);
  }
  bad |= last >= kBeyond;
  FB_CHECK(!bad, "compiled function: there is no tensor of ", *this);
  return none ? 0 : last + 1;
}

bool Geometry::is_laid_out_as(const Tensor& t) const {
  if (t.dtype() != dtype || t.sizes() != sizes) return false;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1 && strides[i] != t.strides()[i] && t.numel()) return false;
  return true;
}

std::ostream& operator<<(std::ostream& out, const Geometry& g) {
  return out << "shape " << g.sizes << ", strides " << g.strides << ", dtype "
             << dtype_name(g.dtype);
}

Tensor tensor_over(const Geometry& g, const Ref<Storage>& storage, int64_t base) {
  int64_t reach = g.extent(), first = base + g.offset;
  bool empty = reach == 0 && first < kBeyond;  // reaches nothing, wherever it begins
  FB_CHECK(first >= 0 && (empty || (first + reach) * itemsize(g.dtype) <= storage->nbytes()),
           "compiled function: a view of ", g, " at ", first, " leaves its memory");
  TensorImpl* impl = TensorImpl::make();
  Tensor t(Ref<TensorImpl>::adopt(impl));
  impl->dtype = g.dtype;
  impl->flags = modes.inference ? kInference : 0;
  impl->sizes = g.sizes;
  impl->strides = g.strides;
  impl->offset = first;
  impl->storage = storage;
  impl->refresh();
  return t;
}

}  // namespace flambeau::runtime
