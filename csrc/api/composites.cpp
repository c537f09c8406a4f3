#define FLAMBEAU_API
#include "flambeau/flambeau.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/promotion.h"
#include "gen/ops.h"

namespace flambeau {

namespace {

// Names of dims: a letter, or the number of a dim that an ellipsis stands for.
using Names = std::vector<std::string>;
const std::string kDots = "...";

bool has(const Names& names, const std::string& n) {
  return std::find(names.begin(), names.end(), n) != names.end();
}
int64_t place(const Names& names, const std::string& n) {
  return std::find(names.begin(), names.end(), n) - names.begin();
}
void drop(Names& names, const std::string& n) {
  std::erase(names, n);
}

struct Operand {
  Tensor x;
  Names names;
  int64_t size(const std::string& n) const { return x.size(place(names, n)); }
};

Names terms(const std::string& text) {
  Names out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text.compare(i, 3, kDots) == 0) {
      FB_CHECK(!has(out, kDots), "einsum(): found '.' for operand in '", text,
               "' more than one ellipsis");
      out.push_back(kDots);
      i += 2;
      continue;
    }
    FB_CHECK(text[i] != '.', "einsum(): found '.' that is not part of any ellipsis");
    const bool letter = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z');
    FB_CHECK(letter, "einsum(): invalid subscript given: ", std::string(1, text[i]),
             ", subscripts must be in [a-zA-Z]");
    out.emplace_back(1, text[i]);
  }
  return out;
}

// The ellipsis as numbers of the dims that it stands for, aligned at the last.
Names spread(const Names& given, int64_t ndim, size_t index, int64_t broadcast) {
  const int64_t named =
      std::count_if(given.begin(), given.end(), [](const std::string& t) { return t != kDots; });
  const int64_t missing = ndim - named;
  if (!has(given, kDots)) {
    FB_CHECK(missing == 0, "einsum(): the number of subscripts in the equation (", named,
             ") does not match the number of dimensions (", ndim, ") for operand ", index,
             " and no ellipsis was given");
    return given;
  }
  FB_CHECK(missing >= 0, "einsum(): the number of subscripts in the equation (", named,
           ") is more than the number of dimensions (", ndim, ") for operand ", index);
  Names out;
  for (const std::string& t : given) {
    if (t != kDots) {
      out.push_back(t);
      continue;
    }
    for (int64_t i = broadcast - missing; i < broadcast; ++i) out.push_back(std::to_string(i));
  }
  return out;
}

// Diagonals for names that stand twice.
Operand without_repeats(Operand o, size_t index) {
  for (const std::string& name : Names(o.names)) {
    while (std::count(o.names.begin(), o.names.end(), name) > 1) {
      const int64_t i = place(o.names, name);
      const int64_t j = std::find(o.names.begin() + i + 1, o.names.end(), name) - o.names.begin();
      FB_CHECK(o.x.size(i) == o.x.size(j), "einsum(): subscript ", name,
               " is repeated for operand ", index, " but the sizes don't match, ", o.x.size(j),
               " != ", o.x.size(i));
      o.x = o.x.diagonal(0, i, j);
      o.names.erase(o.names.begin() + j);
      o.names.erase(o.names.begin() + i);
      o.names.push_back(name);
    }
  }
  return o;
}

Tensor arranged(const Operand& o, const Names& order) {
  std::vector<int64_t> dims;
  for (const std::string& n : order)
    if (has(o.names, n)) dims.push_back(place(o.names, n));
  Tensor x = o.x.permute(dims);
  for (size_t i = 0; i < order.size(); ++i)
    if (!has(o.names, order[i])) x = x.unsqueeze(static_cast<int64_t>(i));
  return x;
}

void sum_alone(Operand& o, const Names& other, const std::set<std::string>& keep) {
  std::vector<int64_t> dims;
  Names left;
  for (size_t i = 0; i < o.names.size(); ++i) {
    if (!has(other, o.names[i]) && !keep.contains(o.names[i]))
      dims.push_back(static_cast<int64_t>(i));
    else
      left.push_back(o.names[i]);
  }
  if (dims.empty()) return;
  o.x = o.x.sum(dims);
  o.names = left;
}

// Product of two operands; names that nothing else needs are summed.
Operand pair(Operand a, Operand b, const std::set<std::string>& keep) {
  const Names names_of_a = a.names;
  sum_alone(a, b.names, keep);
  sum_alone(b, names_of_a, keep);
  std::map<std::string, int64_t> size;
  for (const std::string& n : a.names) size[n] = a.size(n);
  for (const std::string& n : b.names)
    if (auto [at, made] = size.try_emplace(n, b.size(n)); !made && at->second == 1)
      at->second = b.size(n);
  Names contracted;
  for (const std::string& n : a.names)
    if (has(b.names, n) && !keep.contains(n)) contracted.push_back(n);
  // A shared dim of size 1 on one side broadcasts; it cannot be contracted as it is.
  for (const std::string& n : Names(contracted)) {
    if (a.size(n) == b.size(n)) continue;
    Operand &one = a.size(n) == 1 ? a : b, &many = a.size(n) == 1 ? b : a;
    many.x = many.x.sum({place(many.names, n)});
    drop(many.names, n);
    one.x = one.x.squeeze(place(one.names, n));
    drop(one.names, n);
    drop(contracted, n);
  }
  Names batch, left, right;
  for (const std::string& n : a.names)
    if (!has(b.names, n))
      left.push_back(n);
    else if (keep.contains(n))
      batch.push_back(n);
  for (const std::string& n : b.names)
    if (!has(a.names, n)) right.push_back(n);
  auto joined = [](std::initializer_list<const Names*> lists) {
    Names out;
    for (const Names* l : lists) out.insert(out.end(), l->begin(), l->end());
    return out;
  };
  const Names order = joined({&batch, &left, &right});
  if (contracted.empty()) return {arranged(a, order) * arranged(b, order), order};
  auto count = [&](const Names& names) {
    int64_t n = 1;
    for (const std::string& name : names) n *= size[name];
    return n;
  };
  auto flat = [&](const Tensor& x, const Names& first, const Names& second) {
    std::vector<int64_t> shape;
    for (const std::string& n : batch) shape.push_back(size[n]);
    for (size_t d = batch.size(); d < x.sizes().size(); ++d) shape.push_back(x.sizes()[d]);
    return x.expand(shape).reshape({count(batch), count(first), count(second)});
  };
  Tensor out = bmm(flat(arranged(a, joined({&batch, &left, &contracted})), left, contracted),
                   flat(arranged(b, joined({&batch, &contracted, &right})), contracted, right));
  std::vector<int64_t> shape;
  for (const std::string& n : order) shape.push_back(size[n]);
  return {out.reshape(shape), order};
}

Names names_of_output(const std::vector<Names>& inputs, const std::optional<Names>& output,
                      int64_t broadcast) {
  Names dots, letters, names;
  for (int64_t i = 0; i < broadcast; ++i) dots.push_back(std::to_string(i));
  for (const Names& in : inputs)
    for (const std::string& t : in)
      if (t != kDots) letters.push_back(t);
  if (!output) {
    std::set<std::string> once;
    for (const std::string& t : letters)
      if (std::count(letters.begin(), letters.end(), t) == 1) once.insert(t);
    names = dots;
    names.insert(names.end(), once.begin(), once.end());
    return names;
  }
  for (const std::string& t : *output) {
    if (t == kDots) {
      names.insert(names.end(), dots.begin(), dots.end());
      continue;
    }
    FB_CHECK(!has(names, t), "einsum(): output subscript ", t,
             " appears more than once in the output");
    FB_CHECK(has(letters, t), "einsum(): output subscript ", t,
             " does not appear in the equation for any input operand");
    names.push_back(t);
  }
  return names;
}

void check_sizes(const std::vector<Operand>& operands) {
  std::map<std::string, int64_t> size;
  for (size_t i = 0; i < operands.size(); ++i) {
    for (size_t d = 0; d < operands[i].names.size(); ++d) {
      const std::string& n = operands[i].names[d];
      const int64_t s = operands[i].x.size(static_cast<int64_t>(d));
      const int64_t known = size.try_emplace(n, 1).first->second;
      FB_CHECK(known == 1 || s == 1 || s == known, "einsum(): subscript ", n, " has size ", s,
               " for operand ", i, " which does not broadcast with previously seen size ", known,
               " (dimension ", d, ")");
      size[n] = s ? std::max(known, s) : s;
    }
  }
}

}  // namespace

Tensor einsum(const std::string& equation, TensorList tensors) {
  FB_CHECK_VALUE(!tensors.empty(),
                 "einsum(): must specify the equation string and at least one operand");
  const size_t arrow = equation.find("->");
  std::vector<Names> inputs;
  const std::string left = equation.substr(0, arrow);
  for (size_t from = 0; from <= left.size();) {
    const size_t comma = std::min(left.find(',', from), left.size());
    inputs.push_back(terms(left.substr(from, comma - from)));
    from = comma + 1;
  }
  FB_CHECK(inputs.size() <= tensors.size(),
           "einsum(): more operands were given in the equation than in the call");
  FB_CHECK(inputs.size() >= tensors.size(),
           "einsum(): fewer operands were provided in the equation than in the call");
  std::optional<Names> output;
  if (arrow != std::string::npos) output = terms(equation.substr(arrow + 2));

  int64_t broadcast = 0;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (has(inputs[i], kDots))
      broadcast =
          std::max(broadcast, tensors[i].dim() - static_cast<int64_t>(inputs[i].size()) + 1);
  std::vector<Operand> operands;
  for (size_t i = 0; i < inputs.size(); ++i)
    operands.push_back(
        without_repeats({tensors[i], spread(inputs[i], tensors[i].dim(), i, broadcast)}, i));
  const Names result = names_of_output(inputs, output, broadcast);
  check_sizes(operands);
  Operand out = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    std::set<std::string> keep(result.begin(), result.end());
    for (size_t k = i + 1; k < operands.size(); ++k)
      keep.insert(operands[k].names.begin(), operands[k].names.end());
    out = pair(std::move(out), operands[i], keep);
  }
  sum_alone(out, {}, {result.begin(), result.end()});
  std::vector<int64_t> dims;
  for (const std::string& n : result) dims.push_back(place(out.names, n));
  return out.x.permute(dims);
}

Tensor tensordot(const Tensor& first, const Tensor& second, IntArrayRef dims_a,
                 IntArrayRef dims_b) {
  FB_CHECK(dims_a.size() == dims_b.size(),
           "tensordot: both dimension lists should have same length");
  Tensor a = first, b = second;
  Ints of_a = wrap_dims(dims_a.ints(), a.dim()), of_b = wrap_dims(dims_b.ints(), b.dim());
  for (size_t k = 0; k < of_a.size(); ++k) {
    const int64_t n = a.size(of_a[k]), m = b.size(of_b[k]);
    FB_CHECK(n == m || n == 1 || m == 1,
             "tensordot: contracted dimensions need to match, but first has size ", n, " in dim ",
             of_a[k], " and second has size ", m, " in dim ", of_b[k]);
    if (n == m) continue;
    if (m == 1) a = a.sum(of_a[k], true);
    if (n == 1) b = b.sum(of_b[k], true);
  }
  auto rest = [](const Tensor& x, const Ints& used) {
    Ints out;
    for (int64_t d = 0; d < x.dim(); ++d)
      if (std::find(used.begin(), used.end(), d) == used.end()) out.push_back(d);
    return out;
  };
  const Ints rest_a = rest(a, of_a), rest_b = rest(b, of_b);
  Ints shape, order_a = rest_a, order_b = of_b;
  int64_t rows = 1, columns = 1, inner = 1;
  for (int64_t d : rest_a) shape.push_back(a.size(d)), rows *= a.size(d);
  for (int64_t d : rest_b) shape.push_back(b.size(d)), columns *= b.size(d);
  for (int64_t d : of_a) inner *= a.size(d);
  order_a.append(of_a.begin(), of_a.end());
  order_b.append(rest_b.begin(), rest_b.end());
  return mm(a.permute(order_a).reshape({rows, inner}), b.permute(order_b).reshape({inner, columns}))
      .reshape(shape);
}

std::vector<Tensor> meshgrid(TensorList tensors, const Text& indexing) {
  const std::string& how = indexing.str();
  FB_CHECK(how == "ij" || how == "xy", "meshgrid: indexing must be 'ij' or 'xy', got '", how, "'");
  std::vector<Tensor> given = tensors.vec();
  const bool swapped = how == "xy" && given.size() >= 2;
  if (swapped) std::swap(given[0], given[1]);
  Ints shape;
  for (const Tensor& t : given) {
    FB_CHECK(t.dim() <= 1, "meshgrid: expected tensors of at most one dimension, got ", t.dim());
    shape.push_back(t.numel());
  }
  std::vector<Tensor> out;
  for (size_t i = 0; i < given.size(); ++i) {
    Ints view(given.size(), 1);
    view[i] = shape[i];
    out.push_back(given[i].reshape(view).expand(shape));
  }
  if (!swapped) return out;
  for (Tensor& t : out) t = t.transpose(0, 1);
  std::swap(out[0], out[1]);
  return out;
}

static Ints pool_size(IntArrayRef size, size_t dims, const char* op) {
  if (size.size() == 1) return Ints(dims, size[0]);
  FB_CHECK(size.size() == dims, op, ": output_size must have 1 or ", dims, " numbers, got ",
           size.size());
  return size.ints();
}
Tensor adaptive_avg_pool2d(const Tensor& input, IntArrayRef output_size) {
  return ops::_adaptive_avg_pool(input, pool_size(output_size, 2, "adaptive_avg_pool2d"));
}
Tensor adaptive_avg_pool3d(const Tensor& input, IntArrayRef output_size) {
  return ops::_adaptive_avg_pool(input, pool_size(output_size, 3, "adaptive_avg_pool3d"));
}
std::tuple<Tensor, Tensor> adaptive_max_pool2d(const Tensor& input, IntArrayRef output_size) {
  return ops::_adaptive_max_both(input, pool_size(output_size, 2, "adaptive_max_pool2d"));
}
std::tuple<Tensor, Tensor> adaptive_max_pool3d(const Tensor& input, IntArrayRef output_size) {
  return ops::_adaptive_max_both(input, pool_size(output_size, 3, "adaptive_max_pool3d"));
}

std::tuple<Tensor, Tensor, Tensor> _unique2(const Tensor& input, bool sorted, bool return_inverse,
                                            bool return_counts) {
  return ops::_unique(input, std::nullopt, sorted, return_inverse, return_counts);
}
std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& input, int64_t dim, bool sorted,
                                              bool return_inverse, bool return_counts) {
  return ops::_unique(input, dim, sorted, return_inverse, return_counts);
}
std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& input, bool return_inverse,
                                                      bool return_counts,
                                                      std::optional<int64_t> dim) {
  return ops::_unique_consecutive(input, dim, return_inverse, return_counts);
}

Tensor norm(const Tensor& input, const std::optional<Scalar>& p, OptionalIntArrayRef dim,
            bool keepdim, std::optional<DType> dtype) {
  return ops::norm(input, p, dim.ints(), keepdim, dtype);
}
Tensor scalar_tensor(const Scalar& x, const TensorOptions& options) {
  return full({}, x, options.dtype(options.dtype()));
}
bool is_nonzero(const Tensor& input) {
  return input.item<bool>();
}
DType result_type(const Tensor& a, const Tensor& b) {
  ResultType type;
  type.add(a);
  type.add(b);
  return type.get();
}

}  // namespace flambeau
