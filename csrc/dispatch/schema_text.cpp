// Schemas written out.
#include <cmath>
#include <cstdio>

#include "core/error.h"
#include "dispatch/schema.h"

namespace flambeau {

std::string Schema::space() const {
  size_t colon = name.rfind("::");
  return colon == std::string::npos ? "" : name.substr(0, colon);
}

std::string Schema::full_name() const {
  return overload.empty() ? name : name + "." + overload;
}

bool Schema::is_mutable() const {
  for (const SchemaArgument& a : arguments)
    if (a.is_written()) return true;
  return false;
}

namespace {

std::string joined(const std::vector<std::string>& parts, const char* between) {
  std::string out;
  for (const std::string& p : parts) out += (out.empty() ? "" : between) + p;
  return out;
}

std::string alias_text(const SchemaAlias& a) {
  std::string out = "(" + joined(a.before, "|") + (a.write ? "!" : "");
  if (!a.after.empty() && a.after != a.before) out += " -> " + joined(a.after, "|");
  return out + ")";
}

// Memory is of the innermost type: `Tensor(a!)[]`.
std::string type_text(const SchemaType& t, const SchemaAlias* alias) {
  using Form = SchemaType::Form;
  auto inside = [&] {
    std::string out;
    for (const SchemaType& i : t.items) out += (out.empty() ? "" : ", ") + type_text(i, nullptr);
    return out;
  };
  std::string memory = alias ? alias_text(*alias) : "";
  switch (t.form) {
    case Form::Name:
      return t.name + memory;
    case Form::List:
      return type_text(t.items[0], alias) + "[" + (t.length ? std::to_string(t.length) : "") + "]";
    case Form::Optional:
      return type_text(t.items[0], alias) + "?";
    case Form::Tuple:
      return "(" + inside() + ")" + memory;
    case Form::Dict:
      return "Dict(" + inside() + ")" + memory;
    case Form::Future:
      return t.name + "(" + inside() + ")" + memory;
  }
  return "";
}

std::string float_text(double x) {
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  if (std::isnan(x)) return "nan";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", x);
  std::string out = text;
  return out.find_first_of(".e") == std::string::npos ? out + "." : out;
}

std::string number_text(const Scalar& x) {
  switch (x.kind()) {
    case Scalar::Kind::Bool:
      return x.to_bool() ? "True" : "False";
    case Scalar::Kind::Float:
      return float_text(x.to_double());
    case Scalar::Kind::Complex:
      return float_text(x.to_complex().imag()) + "j";
    default:
      return std::to_string(x.to_int());
  }
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else
      out += c;
  }
  return out + "\"";
}

// All items in brackets, or one where a length says how many there are.
template <class T, class F>
std::string list_text(const SchemaType& type, const T& items, F text) {
  bool same = type.length > 0 && static_cast<int64_t>(items.size()) == type.length;
  for (size_t i = 1; i < items.size(); ++i) same = same && items[i] == items[0];
  if (same) return text(items[0]);
  std::string out = "[";
  for (size_t i = 0; i < items.size(); ++i) out += (i ? ", " : "") + text(items[i]);
  return out + "]";
}

std::string argument_text(const SchemaArgument& a) {
  std::string out = type_text(a.type, a.alias ? &*a.alias : nullptr);
  if (!a.name.empty()) out += " " + a.name;
  if (a.value) out += "=" + default_text(a.type, *a.value);
  return out;
}

}  // namespace

std::string default_text(const SchemaType& given, const Value& value) {
  const SchemaType& type = given.form == SchemaType::Form::Optional ? given.items[0] : given;
  switch (value.tag()) {
    case ValueTag::None:
      return "None";
    case ValueTag::Str:
      return quoted(value.get<std::string>());
    case ValueTag::Ints:
      return list_text(type, value.get<Ints>(), [](int64_t i) { return std::to_string(i); });
    case ValueTag::Floats:
      return list_text(type, value.get<std::vector<double>>(), float_text);
    case ValueTag::Bools:
      return list_text(type, value.get<std::vector<bool>>(),
                       [](bool b) { return std::string(b ? "True" : "False"); });
    case ValueTag::Numbers: {
      std::string out = "[";
      for (const Scalar& x : value.get<std::vector<Scalar>>())
        out += (out.size() > 1 ? ", " : "") + number_text(x);
      return out + "]";
    }
    case ValueTag::Tensors:
    case ValueTag::OptTensors:
      return "[]";
    case ValueTag::DType:
      return dtype_name(value.get<DType>());
    case ValueTag::Device:
      return concat(value.get<Device>());
    case ValueTag::Layout:
      return "strided";
    case ValueTag::MemoryFormat: {
      static const char* const names[] = {"contiguous_format", "preserve_format", "channels_last",
                                          "channels_last_3d"};
      return names[static_cast<size_t>(value.get<MemoryFormat>())];
    }
    default:
      return number_text(value.number());
  }
}

std::string to_text(const SchemaType& type) {
  return type_text(type, nullptr);
}

std::string to_text(const Schema& s) {
  std::string out = s.full_name() + "(";
  bool first = true, kwonly = false;
  auto put = [&](const std::string& part) {
    out += (first ? "" : ", ") + part;
    first = false;
  };
  for (const SchemaArgument& a : s.arguments) {
    if (a.kwonly && !std::exchange(kwonly, true)) put("*");
    put(argument_text(a));
  }
  if (s.more_arguments) put("...");
  out += ") -> ";
  bool bare = s.returns.size() == 1 && !s.more_returns && s.returns[0].name.empty() &&
              s.returns[0].type.form != SchemaType::Form::Tuple;
  if (bare) return out + argument_text(s.returns[0]);
  if (s.returns.empty() && s.more_returns) return out + "...";
  out += "(";
  first = true;
  for (const SchemaArgument& a : s.returns) put(argument_text(a));
  if (s.more_returns) put("...");
  return out + ")";
}

}  // namespace flambeau
