// Runs compiled functions that Python wrote: for each pair of files, a package and its inputs with
// the expected results, says how far apart they are.
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <iostream>
#include <thread>

int main(int count, char** names) {
  for (int i = 1; i + 1 < count; i += 2) {
    try {
      torch::inductor::AOTIModelPackageLoader model(names[i]);
      std::vector<torch::Tensor> inputs, expected;
      torch::serialize::InputArchive file;
      file.load_from(names[i + 1]);
      torch::IValue value;
      file.read("inputs", value);
      inputs = value.toTensorVector();
      file.read("expected", value);
      expected = value.toTensorVector();
      std::vector<torch::Tensor> got = model.run(inputs), other;
      std::thread([&] { other = model.run(inputs); }).join();
      bool equal = got.size() == expected.size();
      for (size_t k = 0; equal && k < got.size(); ++k)
        equal = torch::equal(got[k], expected[k]) && torch::equal(other[k], expected[k]) &&
                !got[k].requires_grad();
      std::cout << "results " << got.size() << " equal " << equal << " of version "
                << model.get_metadata().at("version") << '\n';
    } catch (const c10::Error& e) {
      std::cout << e.what_without_backtrace() << '\n';
    }
  }
}
