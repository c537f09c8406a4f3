// Rows of the table of the language's functions, which the files that have them give. Knows none.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "script/core_ops.h"

namespace flambeau::script {

// Patterns have a letter for each argument (`letter`), or one for several of them: # int, float or
// bool; N what # is, Number and complex; B int or bool; & what has an identity; @ what can be
// compared without a tensor; v a part of a key; y what is put into a tensor; * anything; ~ at the end: any number of any.
struct CoreRow {
  std::string_view name, pattern;
  CoreFunction function;
  bool makes_list = false;
  bool alone = false;  // only where no host shows values as Python does
};

std::span<const CoreRow> number_rows();
std::span<const CoreRow> container_rows();
std::span<const CoreRow> tensor_rows();
std::span<const CoreRow> data_rows();
std::span<const CoreRow> text_rows();

std::string show_float(double x);

}  // namespace flambeau::script
