// Objects of classes of C++ in files: what they are saved as, and made of again.
#pragma once

#include "script/custom.h"
#include "script/unit.h"

namespace flambeau::script {

// A type of a schema as scripts have it.
Type script_type(const SchemaType& t);

// What `def_pickle` said of a class.
struct CustomState {
  const OpDesc *get, *set;
  Type type;

  Value of(const Value& object) const;
  Value object(const Value& state) const;
};
// Error(Type): there is no class of that name, or it has no def_pickle.
CustomState custom_state(const std::string& full_name);

}  // namespace flambeau::script
