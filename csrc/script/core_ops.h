// The functions of the language itself (`core.NAME`, and the few of the package that tensors answer
// at once), by name and by the types of their arguments.
#pragma once

#include <span>

#include "script/code.h"
#include "script/errors.h"

namespace flambeau::script {

// Which box a list of a type lies in, as the last argument of those that make lists.
enum class ListKind : int64_t { Any, Ints, Floats, Bools, Numbers, Tensors, OptTensors };
ListKind list_kind(const Type& list);
Value empty_list(ListKind k);

struct CoreEntry {
  CoreFunction function = nullptr;  // null: there is none for these types
  bool makes_list = false;          // it takes the kind of its result besides
};
// A letter for each argument, see `letter`. `alone`: nobody else runs what is not found.
CoreEntry find_core(std::string_view name, std::string_view letters, bool alone = false);
// i int, f float, b bool, s str, n Number, c complex, l list, d Dict, p Tuple or a named one,
// t Tensor, 0 None, S Slice, E Ellipsis, D dtype, V device, o an object, e an enum; ? what may be
// None, x other
char letter(const Type& t, const Unit& unit);

// What instructions fall back to where a value is not what its type says.
void core_add(const Value* const* args, size_t n, Value* results);
void core_sub(const Value* const* args, size_t n, Value* results);
void core_mul(const Value* const* args, size_t n, Value* results);
void core_floordiv(const Value* const* args, size_t n, Value* results);
void core_mod(const Value* const* args, size_t n, Value* results);
void core_and(const Value* const* args, size_t n, Value* results);
void core_or(const Value* const* args, size_t n, Value* results);
void core_xor(const Value* const* args, size_t n, Value* results);

// x[part, ...] of a tensor, and what is put there.
Tensor get_item(const Tensor& x, std::span<const Value* const> parts);
void set_item(const Tensor& x, std::span<const Value* const> parts, const Value& value);

}  // namespace flambeau::script
