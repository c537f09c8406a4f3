// Files of MNIST: a mark, the sizes, big-endian, then a byte for each number.
#include <fstream>

#include "flambeau/data/datasets.h"

namespace flambeau::data::datasets {

namespace {

constexpr int64_t kSide = 28;

std::string path_of(const std::string& root, const char* name) {
  return root.empty() || root.back() == '/' ? root + name : root + "/" + name;
}

uint32_t number(std::istream& in, const std::string& path) {
  unsigned char b[4];
  in.read(reinterpret_cast<char*>(b), 4);
  FB_CHECK(in.good(), "MNIST: ", path, " ends early");
  return uint32_t{b[0]} << 24 | uint32_t{b[1]} << 16 | uint32_t{b[2]} << 8 | uint32_t{b[3]};
}

// The bytes behind the head of a file, as many as it says that there are.
Tensor read(const std::string& path, const char* what, uint32_t mark, bool images) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  FB_CHECK(in, "Error opening ", what, " file at ", path);
  const auto whole = static_cast<int64_t>(in.tellg());
  in.seekg(0);
  const uint32_t found = number(in, path);
  FB_CHECK(found == mark, "MNIST: ", path, " is no file of ", what, ": it begins with ", found,
           ", expected ", mark);
  const int64_t count = number(in, path);
  int64_t each = 1, head = 8;
  if (images) {
    const int64_t rows = number(in, path), columns = number(in, path);
    FB_CHECK(rows == kSide && columns == kSide, "MNIST: images of ", rows, " x ", columns, " in ",
             path, ", expected 28 x 28");
    each = rows * columns;
    head = 16;
  }
  FB_CHECK(whole - head >= count * each, "MNIST: ", path, " ends early");
  Tensor out = images ? empty({count, 1, kSide, kSide}, kByte) : empty({count}, kByte);
  in.read(static_cast<char*>(out.data_ptr()), static_cast<std::streamsize>(count * each));
  FB_CHECK(in.good() || count == 0, "MNIST: ", path, " ends early");
  return out;
}

}  // namespace

MNIST::MNIST(const std::string& root, Mode mode) : train_(mode == Mode::kTrain) {
  const char* images = train_ ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte";
  const char* targets = train_ ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte";
  images_ = read(path_of(root, images), "images", 2051, true).to(kFloat).div_(255);
  targets_ = read(path_of(root, targets), "targets", 2049, false).to(kLong);
  FB_CHECK(images_.size(0) == targets_.size(0), "MNIST: ", images_.size(0), " images and ",
           targets_.size(0), " targets in ", root);
}
Example<> MNIST::get(size_t index) {
  const auto i = static_cast<int64_t>(index);
  return {images_[i], targets_[i]};
}
std::optional<size_t> MNIST::size() const {
  return static_cast<size_t>(images_.size(0));
}

}  // namespace flambeau::data::datasets
