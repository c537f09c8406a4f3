// Values as files of torch.save: the zip with a pickle and its storages, which Python's torch.load
// reads, PyTorch's too. Owns the opcodes and the names by which pickles call tensors. Invariant:
// what is met twice is written once, so circles end.
#pragma once

#include <string>
#include <unordered_set>

#include "files/zip_writer.h"
#include "flambeau/flambeau.h"

namespace flambeau::api {

// Tensors that files shall have as parameters.
using Parameters = std::unordered_set<const TensorImpl*>;

// Writes an archive whose folder is `top`. Error(Type) for what is no data: objects of scripts,
// generators; Error(Value) for lists nested deeper than a reader would follow. `what` begins the
// messages.
void write_checkpoint(const Value& root, const files::Sink& to, const std::string& top,
                      const char* what, const Parameters& parameters = {});

}  // namespace flambeau::api
