#include "script/custom_state.h"

namespace flambeau::script {

Type script_type(const SchemaType& t) {
  using Form = SchemaType::Form;
  static constexpr std::pair<const char*, const char*> names[] = {
      {"SymInt", "int"},    {"SymFloat", "float"}, {"SymBool", "bool"},
      {"Scalar", "Number"}, {"complex", "Number"}, {"ScalarType", "DType"}};
  static constexpr std::pair<const char*, const char*> lists[] = {
      {"Tensor", "Tensors"},  {"int", "Ints"},   {"SymInt", "Ints"},   {"float", "Floats"},
      {"SymFloat", "Floats"}, {"bool", "Bools"}, {"Scalar", "Numbers"}};
  Type out;
  if (t.form == Form::Name) {
    out.base = t.name;
    for (auto& [schema, script] : names)
      if (t.name == schema) out.base = script;
    return out;
  }
  if (t.form == Form::Optional) {
    out = script_type(t.items[0]);
    out.optional = true;
    return out;
  }
  if (t.form == Form::List)
    for (auto& [item, list] : lists)
      if (t.items[0].is(item)) return out.base = list, out;
  out.base = t.form == Form::List ? "List" : t.form == Form::Dict ? "Dict" : "Tuple";
  for (const SchemaType& item : t.items) out.items.push_back(script_type(item));
  return out;
}

CustomState custom_state(const std::string& full_name) {
  const CustomClass* c = find_custom_class(full_name);
  FB_CHECK_TYPE(c, "there is no class ", full_name, "; load the library that defines it before");
  CustomState out{};
  for (const CustomMethod& m : c->methods) {
    if (m.name == "__getstate__") out.get = m.op;
    if (m.name == "__setstate__") out.set = m.op;
  }
  FB_CHECK_TYPE(out.get && out.set, "objects of ", full_name,
                " cannot be saved: their C++ says no def_pickle");
  const auto& given = out.get->added->schema.returns;
  if (given.size() == 1) {
    out.type = script_type(given[0].type);
  } else {
    out.type.base = "Tuple";
    for (const SchemaArgument& a : given) out.type.items.push_back(script_type(a.type));
  }
  return out;
}

Value CustomState::of(const Value& object) const {
  Values results = call_op(*get, {object});
  return results.size() == 1 ? results[0] : make_box<Tuple>(std::move(results));
}
Value CustomState::object(const Value& state) const {
  return call_op(*set, {state}).at(0);
}

}  // namespace flambeau::script
