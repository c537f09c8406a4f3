// What files of `torch.save` hold, as data: the zip with its pickle and its storages, of tensors,
// numbers, texts, lists, tuples and dicts. Nothing that a file names is looked for: what is no data
// of these kinds is an error that says its name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "files/source.h"

namespace flambeau::files {

struct Data {
  enum class Kind : uint8_t {
    None,
    Bool,  // in `integer`
    Integer,
    Real,
    Complex,  // in `real`, `imaginary`
    Text,
    Bytes,  // in `text`
    Tensor,
    DType,
    Device,
    List,
    Tuple,
    Dict,    // keys and values by turns
    Global,  // module.name in `text`
    Storage
  };
  Kind kind = Kind::None;
  int64_t integer = 0;
  double real = 0, imaginary = 0;
  std::string text;
  Tensor tensor;
  DType dtype = DType::Float32;
  Device device;
  Ref<flambeau::Storage> storage;
  std::vector<Data*> items;

  bool is(Kind k) const noexcept { return kind == k; }
  const Data* find(std::string_view key) const;        // of a dict; null: there is none
  const Data& at(std::string_view key) const;          // Error(Value) where there is none
  const Data& expect(Kind k, const char* what) const;  // itself; Error(Value) if it is another kind
};

// The nodes of one file; they may refer to one another in circles.
struct Tree {
  std::vector<std::unique_ptr<Data>> nodes;
  Data* root = nullptr;
};

// Error(Runtime) for what is no such archive, Error(Value) for a pickle that is none.
Tree read_checkpoint(const Source& from);
// One file of an archive, its checksum checked; Error(Runtime) where there is none of this name.
std::string read_entry(const Source& from, std::string_view name);

}  // namespace flambeau::files
