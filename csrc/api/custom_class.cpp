#include "flambeau/custom_class.h"

namespace flambeau {

namespace fs = flambeau::script;

namespace boxed {

const fs::CustomClass& class_of(std::type_index type) {
  const fs::CustomClass* found = fs::custom_class_of(type);
  FB_CHECK_TYPE(
      found, "there is no class of the type ", type.name(),
      "; make it known by m.class_<T>(\"Name\") in a TORCH_LIBRARY, before what names it");
  return *found;
}

Value object_value(fs::CustomObject* object, std::type_index type) {
  if (!object->cls) object->cls = &class_of(type);
  return Value(Ref<ValueObject>(object));
}

fs::CustomObject* object_of(const Value& v) {
  return fs::box_of<fs::CustomObject>(v);
}

void no_object(const Value& v, std::type_index expected) {
  const fs::CustomObject* object = object_of(v);
  fail(ErrorKind::Type, "expected an object of the class ", class_of(expected).full_name(),
       ", got ",
       object ? "one of the class " + object->cls->full_name()
              : "a " + std::string(fs::kind_name(v)));
}

ClassMaker::ClassMaker(const std::string& space, const std::string& name, std::string doc,
                       std::type_index type)
    : cls_(&fs::add_custom_class(type, {space, name, std::move(doc), {}, {}})) {}

void ClassMaker::add(const std::string& name, CppFunction f, Form form, std::string doc,
                     Args args) {
  const char* prefix = form == Form::Get ? "__get_" : form == Form::Set ? "__set_" : "";
  const std::string op_name = cls_->space + "::" + cls_->name + "." + prefix + name;
  Schema schema = parse_schema(op_name + f.schema());
  const bool has_self = form != Form::Static;
  FB_CHECK(!has_self ||
               (!schema.arguments.empty() && schema.arguments[0].type.name == cls_->full_name()),
           op_name, ": expected a function whose first parameter is const intrusive_ptr<",
           cls_->name, ">&");
  FB_CHECK(name != "__new__" ||
               (schema.returns.size() == 1 && schema.returns[0].type.name == cls_->full_name()),
           op_name, ": expected a function that gives an intrusive_ptr<", cls_->name, ">");
  if (has_self) schema.arguments[0].name = "self";
  const size_t rest = schema.arguments.size() - has_self;
  FB_CHECK(args.size() == 0 || args.size() == rest, op_name, ": expected ", rest,
           " names of arguments, or none, got ", args.size());
  size_t i = has_self;
  for (const arg& a : args) {
    schema.arguments[i].name = a.name();
    if (a.value()) schema.arguments[i].value = *a.value();
    ++i;
  }
  const OpDesc& op = add_op(std::move(schema));
  set_kernel(op, KernelFor::Composite, f.kernel());
  if (form == Form::Get) {
    cls_->properties.push_back({name, std::move(doc), &op, nullptr});
  } else if (form == Form::Set) {
    cls_->properties.back().set = &op;
  } else {
    cls_->methods.push_back({name, std::move(doc), &op, form == Form::Static});
  }
}

}  // namespace boxed

bool IValue::isCustomClass() const {
  return fs::box_of<fs::CustomObject>(*this) != nullptr;
}

}  // namespace flambeau
