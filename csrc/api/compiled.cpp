#include "flambeau/compiled.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "flambeau/serialize.h"
#include "runtime/program.h"
#include "runtime/tree.h"

namespace flambeau::inductor {

struct Package {
  std::unique_ptr<const runtime::Program> program;
  std::unordered_map<std::string, std::string> metadata;
};

namespace {

// What the processor can do, as Linux says it.
std::vector<std::string> features() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("flags")) {
      std::istringstream words(line.substr(line.find(':') + 1));
      return {std::istream_iterator<std::string>(words), {}};
    }
  return {};
}

void check_processor(const std::string& needed) {
  std::vector<std::string> here = features();
  if (here.empty()) return;  // it is not known
  std::sort(here.begin(), here.end());
  std::istringstream words(needed);
  for (std::string word; words >> word;)
    FB_CHECK(std::binary_search(here.begin(), here.end(), word),
             "it was compiled for a processor with ", word, ", which this one lacks");
}

runtime::LibraryFunction library_of(const Tensor& bytes) {
  const Tensor whole = bytes.contiguous();
  FB_CHECK(whole.dtype() == DType::UInt8, "its library is no list of bytes");
  const auto* data = static_cast<const std::byte*>(whole.data_ptr());
  return runtime::function_of(
      runtime::open_library(std::span(data, static_cast<size_t>(whole.numel()))), "run");
}

std::shared_ptr<const Package> read(const std::string& path) {
  serialize::InputArchive file;
  file.load_from(path);
  auto text = [&](const char* key) {
    IValue value;
    FB_CHECK(file.try_read(key, value) && value.isString(), "it is no compiled function");
    return value.toStringRef();
  };
  auto made = std::make_shared<Package>();
  FB_CHECK(text("format") == "flambeau compiled function", "it is no compiled function");
  FB_CHECK(text("version") == FB_VERSION, "it was compiled by Flambeau ", text("version"),
           ", this is " FB_VERSION "; compile it again");
  check_processor(text("processor"));
  for (const char* key : {"version", "isa"}) made->metadata[key] = text(key);
  std::vector<runtime::Input> constants;
  IValue given, library;
  file.read("constants", given);
  if (given.isTensorList())
    for (const Tensor& t : given.toTensorVector()) constants.push_back({t, 0});
  runtime::LibraryFunction nests;
  if (file.try_read("library", library) && library.isTensor())
    nests = library_of(library.toTensor());
  made->program = std::make_unique<const runtime::Program>(runtime::parse_tree(text("program")),
                                                           std::move(constants), std::move(nests));
  return made;
}

}  // namespace

AOTIModelPackageLoader::AOTIModelPackageLoader(const std::string& model_package_path) {
  try {
    package_ = read(model_package_path);
  } catch (const Error& e) {
    fail(ErrorKind::Runtime, "AOTIModelPackageLoader: ", model_package_path, ": ", e.what());
  }
}

std::vector<Tensor> AOTIModelPackageLoader::run(const std::vector<Tensor>& inputs) const {
  std::vector<runtime::Input> given;
  for (const Tensor& t : inputs) given.push_back({t, 0});
  runtime::Numbers numbers;
  Tensors made = package_->program->run(given, numbers);
  return {made.begin(), made.end()};
}

std::unordered_map<std::string, std::string> AOTIModelPackageLoader::get_metadata() const {
  return package_->metadata;
}

}  // namespace flambeau::inductor
