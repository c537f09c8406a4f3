// The reader of files without Python, on damaged files: reader_fuzz FOLDER COUNT. Built with the
// sanitizers by test_reader_fuzz.py; it ends with a status other than 0 where one of them objects.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "files/pickle.h"
#include "files/safetensors.h"
#include "files/zip.h"

using namespace flambeau;
using namespace flambeau::files;

namespace {

// Values are numbers of nodes of a tree, which refer to others by number.
struct Tree {
  using Value = size_t;
  std::vector<std::vector<size_t>> parts{{}};

  Value node(std::vector<size_t> of = {}) {
    parts.push_back(std::move(of));
    return parts.size() - 1;
  }
  Value seen(std::string_view bytes) {
    size_t sum = 0;
    for (char c : bytes) sum += static_cast<unsigned char>(c);
    return node({sum & 1});
  }
  Value none() { return node(); }
  Value boolean(bool) { return node(); }
  Value integer(int64_t) { return node(); }
  Value real(double) { return node(); }
  Value long_integer(std::string_view b) { return seen(b); }
  Value decimal(std::string_view b) { return seen(b); }
  Value real_text(std::string_view b) { return seen(b); }
  Value text(std::string_view b) { return seen(b); }
  Value raw_unicode(std::string_view b) { return seen(b); }
  Value old_text(std::string_view b) { return seen(b); }
  Value quoted(std::string_view b) { return seen(b); }
  Value bytes(std::string_view b) { return seen(b); }
  Value byte_array(std::string_view b) { return seen(b); }
  Value tuple(Value* v, size_t n) { return node({v, v + n}); }
  Value list(Value* v, size_t n) { return node({v, v + n}); }
  Value dict(Value* v, size_t n) { return node({v, v + n}); }
  Value set(Value* v, size_t n, bool) { return node({v, v + n}); }
  void extend(Value& t, Value* v, size_t n) { parts[t].insert(parts[t].end(), v, v + n); }
  void set_items(Value& t, Value* v, size_t n) { extend(t, v, n); }
  void add_items(Value& t, Value* v, size_t n) { extend(t, v, n); }
  Value global(Value m, Value n, int) { return node({m, n}); }
  Value persistent(Value id) { return node({id}); }
  Value call(Value f, Value a) { return node({f, a}); }
  Value new_object(Value c, Value a, Value k) { return node({c, a, k}); }
  void state(Value o, Value s) { parts[o].push_back(s); }
};

std::string damaged(std::string data, std::mt19937_64& draw) {
  for (int n = 1 + draw() % 4; n-- && !data.empty();) {
    const size_t at = draw() % data.size(), size = 1 + draw() % 20;
    switch (draw() % 5) {
      case 0:
        data[at] = static_cast<char>(draw());
        break;
      case 1:
        data[at] ^= static_cast<char>(1 << draw() % 8);
        break;
      case 2:
        for (size_t k = at; k < std::min(at + 8, data.size()); ++k) data[k] = '\xff';
        break;
      case 3:
        data.erase(at, size);
        break;
      case 4:
        data.insert(at, data.substr(at, size));
        break;
    }
  }
  return data;
}

// How many of the pickles in it were read; -1: no archive.
int read_all(const std::string& data) {
  try {
    MemorySource source(data.data(), data.size());
    int sound = 0;
    for (const Entry& e : read_directory(source)) {
      std::vector<char> bytes(e.size);
      read_checked(source, e.start, bytes.data(), bytes.size());
      if (!e.name.ends_with(".pkl")) continue;
      Tree tree;
      Unpickler<Tree> machine({bytes.data(), bytes.size()}, 0, tree);
      try {
        machine.run();
        ++sound;
      } catch (const Error&) {
      }
    }
    return sound;
  } catch (const Error&) {
    return -1;
  }
}

// A pickle by itself, which is damaged more often than one in an archive.
void read_pickle(const std::string& data) {
  Tree tree;
  Unpickler<Tree> machine(data, 0, tree);
  try {
    machine.run();
  } catch (const Error&) {
  }
}

}  // namespace

int main(int, char** argv) {
  std::vector<std::string> archives, pickles;
  for (const auto& file : std::filesystem::directory_iterator(argv[1])) {
    std::ifstream in(file.path(), std::ios::binary);
    std::string data{std::istreambuf_iterator<char>(in), {}};
    (data.starts_with("PK") ? archives : pickles).push_back(std::move(data));
  }
  for (const std::string& data : archives)
    if (read_all(data) != 1) return std::puts("a sound archive is refused"), 2;
  std::mt19937_64 draw(1);
  int sound = 0;
  for (int k = std::atoi(argv[2]); k--;) {
    sound += read_all(damaged(archives[draw() % archives.size()], draw)) > 0;
    read_pickle(damaged(pickles[draw() % pickles.size()], draw));
  }
  const std::string header =
      R"({"__metadata__":{"a":"\u00e9\n"},"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";
  if (read_safetensors_header(header, 24).tensors.size() != 1) return 3;
  for (int k = std::atoi(argv[2]); k--;) try {
      read_safetensors_header(damaged(header, draw), 24);
    } catch (const Error&) {
    }
  std::printf("%d damaged archives were read all the same\n", sound);
}
