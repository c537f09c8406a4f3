// Objects of classes of C++ in a program without Python: pointers, values, and files of scripts.
#include <dlfcn.h>
#include <torch/custom_class.h>
#include <torch/script.h>

#include <complex>
#include <iostream>
#include <unordered_set>

struct Base : torch::CustomClassHolder {
  virtual int64_t number() const { return 1; }
};
struct Derived : Base {
  int64_t number() const override { return 2; }
};
TORCH_LIBRARY(own, m) {
  m.class_<Base>("Base").def("number", &Base::number);
}

static void refuses(const char* what, const std::function<void()>& f) {
  try {
    f();
    std::cout << what << ": no error\n";
  } catch (const c10::Error& e) {
    std::cout << what << ": " << e.msg() << "\n";
  }
}

int main(int argc, char** argv) {
  auto first = c10::make_intrusive<Derived>();
  c10::intrusive_ptr<Base> base = first;
  std::cout << base.use_count() << ' ' << base->number() << ' ' << base.unique() << ' '
            << c10::dynamic_intrusive_pointer_cast<Derived>(base)->number() << '\n';
  std::unordered_set<c10::intrusive_ptr<Base>> set{base, first};
  std::cout << set.size() << ' ' << (base == c10::intrusive_ptr<Base>(first)) << '\n';
  c10::IValue value = base;
  auto taken = c10::intrusive_ptr<Base>::reclaim(base.release());
  std::cout << value.isCustomClass() << ' ' << !base << ' ' << taken.use_count() << '\n';
  auto found = c10::Dispatcher::singleton().findSchemaOrThrow("own::Base", "number");
  std::cout << found.typed<int64_t(const c10::intrusive_ptr<Base>&)>().call(taken) << '\n';
  std::cout << torch::make_custom_class<Base>().toCustomClass<Base>()->number() << '\n';
  refuses("a number", [] { c10::IValue(3).toCustomClass<Base>(); });
  refuses("no class", [] { c10::IValue(c10::make_intrusive<Derived>()); });
  c10::complex<double> z(1, 2);
  std::cout << torch::toString(torch::kLong) << torch::toString(torch::kComplexDouble) << z << ' ' << at::complex(torch::ones(1), torch::ones(1)).is_complex() << '\n';
  if (argc < 3) return 0;
  refuses("not there", [&] { torch::jit::load(argv[2]); });
  if (!dlopen(argv[1], RTLD_NOW)) {
    std::cout << dlerror() << '\n';
    return 1;
  }
  auto m = torch::jit::load(argv[2]);
  std::cout << m.forward({std::string("C++"), torch::ones({2})}) << '\n';
  m.save(argv[3]);
  std::cout << torch::jit::load(argv[3]).forward({std::string("again"), torch::ones({2})}) << '\n';
}
