// Compiled functions in C++: what `torch._inductor.aoti_compile_and_package` wrote in Python, run
// without Python and without a compiler.
//
//   torch::inductor::AOTIModelPackageLoader model("net.pt2");
//   std::vector<torch::Tensor> out = model.run({torch::ones({1, 3})});
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "flambeau/flambeau.h"

namespace flambeau::inductor {

struct Package;

// A file of a compiled function. It holds machine code, which runs: open files that you trust.
class AOTIModelPackageLoader {
 public:
  // Error(Runtime) where there is no such file, or it is another or a damaged one, of another
  // version, or made for a processor that has what this one lacks.
  explicit AOTIModelPackageLoader(const std::string& model_package_path);

  // The tensors among the results, in order, for tensors of the shapes, strides and dtypes that it
  // was compiled for; Error(Runtime) for others. Threads may call it at the same time.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const;
  // What was said when the file was written: "version", "isa".
  std::unordered_map<std::string, std::string> get_metadata() const;

 private:
  std::shared_ptr<const Package> package_;
};

}  // namespace flambeau::inductor
