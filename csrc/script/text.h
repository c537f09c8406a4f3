// The text of a unit, as `jit.save` writes it: `write(read(text)) == text`.
//
//     class main.Net(module):
//       weight: Tensor in _parameters
//       def forward = main.Net.forward
//
//     def main.Net.forward(%self.0: main.Net, %x.1: Tensor) -> Tensor:  # net.py:7 in forward
//       default x = None
//       %2: Tensor = core.getattr(%self.0, 'weight')  # 8
//       %3: Tensor = mul(%x.1, %2)  # 8
//       return(%3)  # 8
//
// Nothing of it is run. Whatever it says, reading takes time and memory bounded by its length.
#pragma once

#include "script/unit.h"

namespace flambeau::script {

// Raises a ValueError that names the line.
Unit read(std::string_view text);
std::string write(const Unit& unit);

Type read_type(std::string_view text);
std::string show(const Type& t);
std::string show(const Arg& a, const Function* f);
// A float as Python's repr has it.
std::string show(double x);

}  // namespace flambeau::script
