// Classes of C++ for scripts and Python: as the tutorial has them, and every kind of member.
#include <torch/custom_class.h>
#include <torch/script.h>

#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace {

template <class T>
struct Stack : torch::CustomClassHolder {
  std::vector<T> items;
  int64_t mark = 0;
  explicit Stack(std::vector<T> xs) : items(std::move(xs)) {}
  void push(T x) { items.push_back(std::move(x)); }
  T pop() {
    TORCH_CHECK(!items.empty(), "pop from an empty stack");
    T last = items.back();
    items.pop_back();
    return last;
  }
  int64_t size() const { return static_cast<int64_t>(items.size()); }
  c10::intrusive_ptr<Stack> clone() const { return c10::make_intrusive<Stack>(items); }
  void merge(const c10::intrusive_ptr<Stack>& other) {
    const std::vector<T> theirs = other->items;
    for (const T& x : theirs) push(x);
  }
};
using Texts = Stack<std::string>;

struct Scale : torch::jit::CustomClassHolder {
  torch::Tensor weight;
  int64_t calls;
  Scale(torch::Tensor w, int64_t n) : weight(std::move(w)), calls(n) {}
  torch::Tensor apply(const torch::Tensor& x) {
    ++calls;
    return x * weight;
  }
  std::tuple<int64_t, torch::Tensor> both() const { return {calls, weight}; }
  c10::Dict<std::string, torch::Tensor> table() const {
    c10::Dict<std::string, torch::Tensor> out;
    out.insert("weight", weight);
    return out;
  }
  int64_t total(const std::unordered_map<std::string, std::vector<int64_t>>& xs) const {
    int64_t sum = 0;
    for (const auto& [key, values] : xs)
      for (int64_t x : values) sum += x;
    return sum;
  }
  double first(std::tuple<double, std::string> pair) const { return std::get<0>(pair); }
  std::optional<std::string> named(std::optional<std::string> name) const { return name; }
  c10::IValue same(c10::IValue x) const { return x; }
};
struct Plain : torch::CustomClassHolder {};
struct Bare : torch::CustomClassHolder {};

c10::intrusive_ptr<Texts> shortened(const c10::intrusive_ptr<Texts>& stack) {
  stack->pop();
  return stack;
}
torch::Tensor scaled(const c10::intrusive_ptr<Scale>& scale, const torch::Tensor& x) {
  return scale->apply(x);
}
std::vector<std::string> reversed(std::vector<std::string> xs) {
  return {xs.rbegin(), xs.rend()};
}
torch::Tensor sum_of(const std::map<std::string, torch::Tensor>& xs) {
  torch::Tensor out = torch::zeros({});
  for (const auto& [key, x] : xs) out = out + x.sum();
  return out;
}

}  // namespace

TORCH_LIBRARY(cpptest_classes, m) {
  m.class_<Texts>("Texts", "A stack of texts.")
      .def(torch::init<std::vector<std::string>>())
      .def("top", [](const c10::intrusive_ptr<Texts>& self) { return self->items.back(); })
      .def("push", &Texts::push)
      .def("pop", &Texts::pop, "Takes the last.")
      .def("clone", &Texts::clone)
      .def("merge", &Texts::merge)
      .def("__len__", &Texts::size)
      .def_readwrite("mark", &Texts::mark)
      .def_property("count", &Texts::size, "How many there are.")
      .def_static("of", [](int64_t n) {
        return c10::make_intrusive<Texts>(std::vector<std::string>(static_cast<size_t>(n), "x"));
      })
      .def_pickle([](const c10::intrusive_ptr<Texts>& self) { return self->items; },
                  [](std::vector<std::string> state) {
                    return c10::make_intrusive<Texts>(std::move(state));
                  });
  m.class_<Scale>("Scale")
      .def(torch::init<torch::Tensor, int64_t>(), "", {torch::arg("weight"), torch::arg("calls") = 0})
      .def("apply", &Scale::apply, "", {torch::arg("x")})
      .def("__call__", &Scale::apply)
      .def("both", &Scale::both)
      .def("table", &Scale::table)
      .def("total", &Scale::total)
      .def("first", &Scale::first)
      .def("named", &Scale::named, "", {torch::arg::none("name")})
      .def("same", &Scale::same)
      .def_readonly("calls", &Scale::calls)
      .def_readwrite("weight", &Scale::weight)
      .def_pickle([](const c10::intrusive_ptr<Scale>& self) { return self->both(); },
                  [](std::tuple<int64_t, torch::Tensor> state) {
                    return c10::make_intrusive<Scale>(std::get<1>(state), std::get<0>(state));
                  });
  m.class_<Plain>("Plain").def(torch::init([](int64_t) { return c10::make_intrusive<Plain>(); }));
  m.class_<Bare>("Bare");
  m.def(
      "shortened(__torch__.torch.classes.cpptest_classes.Texts x) -> "
      "__torch__.torch.classes.cpptest_classes.Texts y",
      shortened);
  m.def("scaled", scaled);
  m.def("reversed(str[] xs) -> str[]", reversed);
  m.def("sum_of(Dict(str, Tensor) xs) -> Tensor", sum_of);
}
