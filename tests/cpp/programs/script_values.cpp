// Values of scripts: tuples, lists, dicts, optional ones; what a module has.
#include <torch/script.h>

#include <fstream>
#include <iostream>
#include <memory>
int main(int argc, const char* argv[]) {
  torch::jit::script::Module module;
  try {
    module = torch::jit::load(argv[1]);
  } catch (const c10::Error& e) {
    std::cerr << "error loading the model\n" << e.what();
    return -1;
  }
  module.eval();
  std::vector<torch::jit::IValue> inputs;
  inputs.push_back(torch::ones({1, 3}));
  auto out = module.forward(inputs).toTuple();
  std::cout << out->elements()[0].toTensor().sizes() << out->elements().size() << '\n';
  c10::Dict<std::string, at::Tensor> d;
  d.insert("x", torch::ones({2}));
  d.insert("y", torch::ones({2}));
  auto r = module.get_method("dicts")({d});
  auto rd = r.toGenericDict();
  std::cout << rd.at("sum").toTensor() << rd.size() << rd.contains("sum") << '\n';
  for (auto& kv : rd) std::cout << kv.key().toStringRef() << ' ' << kv.value().toTensor().sizes() << '\n';
  c10::List<at::Tensor> l;
  l.push_back(torch::ones({2}));
  l.emplace_back(torch::zeros({2}));
  auto rl = module.run_method("lists", l, 3).toTensorVector();
  std::cout << rl.size() << rl[0] << '\n';
  auto tl = module.run_method("lists", l, 2).toTensorList();
  for (at::Tensor t : tl) std::cout << t.sizes();
  auto tup = module.run_method("tup", std::make_tuple(torch::ones({1}), int64_t(2)));
  std::cout << tup.isTuple() << tup.toTupleRef().elements()[1].toInt() << '\n';
  auto ints = module.run_method("ints", std::vector<int64_t>{1, 2, 3});
  std::cout << ints.isIntList() << ints.toIntVector().size() << ints.toListRef().size() << ints << '\n';
  auto opt = module.run_method("opt", torch::IValue());
  std::cout << opt.isNone() << opt.tagKind() << '\n';
  auto str = module.run_method("text", "hello", 2.5, true);
  std::cout << str.toStringRef() << ' ' << str.toString()->string() << '\n';
  c10::Dict<std::string, int64_t> gd;
  gd.insert("a", 1);
  std::cout << module.run_method("sdict", gd).toInt() << '\n';
  for (const auto& p : module.named_parameters()) std::cout << p.name << p.value.sizes() << ' ';
  for (const auto& p : module.parameters()) std::cout << p.numel() << ' ';
  for (const auto& b : module.named_buffers()) std::cout << b.name << ' ';
  for (const auto& c : module.named_children()) std::cout << c.name << ' ';
  for (const auto& m : module.get_methods()) std::cout << m.name() << ' ';
  std::cout << '\n'
            << module.hasattr("scale") << module.attr("scale").toDouble()
            << module.attr("linear").toModule().attr("weight").toTensor().sizes() << '\n';
  module.setattr("scale", 4.0);
  std::cout << module.find_method("nope").has_value() << module.attr("scale") << '\n';
  module.to(at::kDouble);
  module.to(at::kFloat);
  module.train();
  std::cout << module.is_training() << '\n';
  torch::NoGradGuard ng;
  auto clone = module.clone();
  auto copy = module.deepcopy();
  module.save(std::string(argv[1]) + ".saved");
  torch::jit::ExtraFilesMap extra{{"note.txt", ""}};
  std::ifstream in(argv[1], std::ios::binary);
  auto again = torch::jit::load(in, torch::kCPU, extra);
  std::cout << extra["note.txt"] << '\n';
}
