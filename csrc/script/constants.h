// Constants of texts as values.
#pragma once

#include <optional>

#include "script/unit.h"
#include "script/values.h"

namespace flambeau::script {

// Nothing where the machine has no such value: whole numbers beyond 64 bits, names it does not
// know. Lists and dicts are made anew at each call.
std::optional<Value> constant(const Arg& a);
// Dtypes, layouts and memory formats by the names that texts and the language have for them.
std::optional<Value> named_constant(std::string_view name);
// "cpu", "cuda:1", "meta"
std::optional<Device> device_named(std::string_view text);

}  // namespace flambeau::script
