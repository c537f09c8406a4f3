// Classes of C++ whose objects scripts and Python hold (`torch::class_`): what a class is called,
// and which added operation each of its methods is (`space::Class.method`). So whoever calls
// operations calls methods, and needs to know no more. Knows no types of programs and no Python.
#pragma once

#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "dispatch/registry.h"
#include "script/values.h"

namespace flambeau::script {

struct CustomClass;

// The base of such objects; the object itself is the box of its value.
class CustomObject : public Box {
 public:
  static constexpr Kind kKind = Kind::Custom;
  CustomObject() : Box(kKind) {}
  // What it was first handed out as; null before.
  mutable const CustomClass* cls = nullptr;
};

struct CustomMethod {
  std::string name, doc;
  const OpDesc* op;
  bool of_class = false;  // static: takes no object
};
struct CustomProperty {
  std::string name, doc;
  const OpDesc* get;
  const OpDesc* set;  // null: cannot be assigned
};
struct CustomClass {
  std::string space, name, doc;
  std::string full_name() const { return std::string(kCustomClasses) + space + "." + name; }
  std::vector<CustomMethod> methods;
  std::vector<CustomProperty> properties;
};

// Adds a class; it lives as long as the process. Error(Runtime): the name or the type is taken.
CustomClass& add_custom_class(std::type_index type, CustomClass made);
const CustomClass* custom_class_of(std::type_index type);
const CustomClass* find_custom_class(std::string_view full_name);
std::vector<const CustomClass*> custom_classes();  // in the order in which they came

}  // namespace flambeau::script
