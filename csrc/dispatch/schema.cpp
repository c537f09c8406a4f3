// The parser of schemas: one pass over the text, one function for each thing that a schema is made
// of. Every error names what was expected, what is there, and where.
#include "dispatch/schema.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"

namespace flambeau {

namespace {

using Form = SchemaType::Form;

// Types that have a name of their own.
constexpr std::string_view kTypes[] = {
    "Tensor",  "int",      "SymInt",  "float",     "SymFloat", "bool",         "SymBool",
    "str",     "Scalar",   "complex", "ScalarType", "Device",   "Layout",       "MemoryFormat",
    "Generator", "Dimname", "Storage", "Stream",   "QScheme",  "Any",          "AnyClassType",
    "NoneType", "Capsule"};

constexpr int kDeepest = 32;  // types within types

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Schema schema() {
    Schema out;
    out.name = dotted("the name of an operation", "::");
    if (take(".")) {
      out.overload = word("the name of an overload");
      if (out.overload == "default") refuse("an overload that is not named default", at_ - 7);
    }
    expect("(");
    arguments(out);
    expect("->");
    returns(out);
    if (!done()) refuse("the end of the text");
    return out;
  }

 private:
  // -- characters -------------------------------------------------------------------------------

  void skip() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool done() {
    skip();
    return at_ == text_.size();
  }
  char next() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(std::string_view what) {
    skip();
    if (text_.substr(at_, what.size()) != what) return false;
    at_ += what.size();
    return true;
  }
  void expect(std::string_view what) {
    if (!take(what)) refuse(concat("'", std::string(what), "'"));
  }
  [[noreturn]] void refuse(const std::string& expected) {
    skip();
    refuse(expected, at_);
  }
  [[noreturn]] void refuse(const std::string& expected, size_t where) {
    size_t end = where;
    while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
    end = std::min(std::max(end, where + 1), text_.size());
    while (end < text_.size() && (text_[end] & 0xC0) == 0x80) ++end;  // the rest of a character
    std::string found = where >= text_.size()
                            ? "the end of the text"
                            : concat("'", std::string(text_.substr(where, end - where)), "'");
    fail(ErrorKind::Runtime, "schema: expected ", expected, ", got ", found, " at character ",
         where, " of \"", std::string(text_), "\"");
  }

  std::string word(const char* what) {
    skip();
    size_t start = at_;
    if (at_ < text_.size() && is_letter(text_[at_]))
      while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    if (at_ == start) refuse(what);
    return std::string(text_.substr(start, at_ - start));
  }
  // Words with nothing but the separator between them.
  std::string dotted(const char* what, std::string_view between) {
    std::string out = word(what);
    while (text_.substr(at_, between.size()) == between) {
      at_ += between.size();
      if (at_ >= text_.size() || !is_letter(text_[at_])) refuse(what);
      out += std::string(between) + word(what);
    }
    return out;
  }

  // -- arguments and results --------------------------------------------------------------------

  void arguments(Schema& out) {
    bool kwonly = false;
    if (take(")")) return;
    do {
      if (take("...")) {
        out.more_arguments = true;
        break;
      }
      if (next() == '*') {
        if (kwonly) refuse("one '*'");
        take("*");
        kwonly = true;
        if (next() != ',') refuse("an argument that is given by name");
        continue;
      }
      SchemaArgument a = typed();
      skip();
      size_t start = at_;
      a.name = word("the name of an argument");
      for (const SchemaArgument& other : out.arguments)
        if (other.name == a.name) refuse("a name that no argument before has", start);
      if (next() == '[') {  // the length behind the name, as in `int name[2]`
        if (a.type.form == Form::Optional) refuse("',' or ')'");
        lists(a.type);
      }
      a.kwonly = kwonly;
      if (take("=")) a.value = value(a.type);
      out.arguments.push_back(std::move(a));
    } while (take(","));
    expect(")");
  }

  void returns(Schema& out) {
    if (take("...")) {
      out.more_returns = true;
      return;
    }
    if (next() != '(') {
      out.returns.push_back(result());
      return;
    }
    take("(");
    if (take(")")) return;
    do {
      if (take("...")) {
        out.more_returns = true;
        break;
      }
      out.returns.push_back(result());
    } while (take(","));
    expect(")");
  }

  SchemaArgument result() {
    SchemaArgument out = typed();
    if (is_letter(next())) out.name = word("the name of a result");
    return out;
  }

  SchemaArgument typed() {
    SchemaArgument out;
    out.type = type(&out.alias, 0);
    return out;
  }

  // -- types ------------------------------------------------------------------------------------

  SchemaType type(std::optional<SchemaAlias>* alias, int depth) {
    if (depth > kDeepest) refuse(concat("types of at most ", kDeepest, " levels"));
    SchemaType t;
    skip();
    size_t start = at_;
    if (take("(")) {
      t.form = Form::Tuple;
      inside(t, depth);
    } else {
      t.name = dotted("a type", ".");
      if (t.name == "Dict") {
        t.form = Form::Dict;
        t.name.clear();
        expect("(");
        inside(t, depth);
        if (t.items.size() != 2) refuse("two types in Dict(KEY, VALUE)", start);
      } else if (t.name == "Future" || t.name == "Await" || t.name == "RRef") {
        t.form = Form::Future;
        expect("(");
        inside(t, depth);
        if (t.items.size() != 1) refuse(concat("one type in ", t.name, "(TYPE)"), start);
      } else if (!is_type(t.name)) {
        refuse("a type", start);
      }
    }
    if (next() == '(') {
      if (!alias || *alias) refuse("memory to be named once");
      *alias = memory();
    }
    suffixes(t, depth);
    return t;
  }

  static bool is_type(const std::string& name) {
    if (name.size() == 1 && name[0] >= 'a' && name[0] <= 'z') return true;  // of any kind
    if (name.starts_with("__torch__.")) return true;                        // a class
    return std::find(std::begin(kTypes), std::end(kTypes), name) != std::end(kTypes);
  }

  void inside(SchemaType& t, int depth) {
    do t.items.push_back(type(nullptr, depth + 1));
    while (take(","));
    expect(")");
  }

  void suffixes(SchemaType& t, int depth) {
    for (;;) {
      if (take("?")) {
        if (t.form == Form::Optional) refuse("one '?'", at_ - 1);
        wrap(t, Form::Optional);
      } else if (next() == '[') {
        lists(t);
      } else {
        return;
      }
      if (++depth > kDeepest) refuse(concat("types of at most ", kDeepest, " levels"));
    }
  }
  void lists(SchemaType& t) {
    expect("[");
    wrap(t, Form::List);
    if (take("]")) return;
    if (!is_digit(next())) refuse("the length of a list");
    size_t start = at_;
    t.length = integer();
    if (t.length < 1 || t.length > 255) refuse("a length from 1 to 255", start);
    expect("]");
  }
  static void wrap(SchemaType& t, Form form) {
    SchemaType outer;
    outer.form = form;
    outer.items.push_back(std::move(t));
    t = std::move(outer);
  }

  SchemaAlias memory() {
    SchemaAlias out;
    expect("(");
    out.before = sets();
    out.write = take("!");
    if (take("->")) {
      out.after = sets();
      if (out.after == out.before) out.after.clear();
    }
    expect(")");
    return out;
  }
  std::vector<std::string> sets() {
    std::vector<std::string> out;
    do out.push_back(take("*") ? "*" : word("the name of a memory"));
    while (take("|"));
    return out;
  }

  // -- defaults ---------------------------------------------------------------------------------

  Value value(const SchemaType& given) {
    if (take_word("None")) {
      if (given.form != Form::Optional && !given.is("NoneType") && !given.is("Any") &&
          !given.is("Generator") && !given.is("Tensor"))
        refuse(concat("a default of type ", to_text(given)), at_ - 4);
      return {};
    }
    const SchemaType& t = given.form == Form::Optional ? given.items[0] : given;
    if (t.form == Form::List) return list(t);
    if (t.is("str")) return text();
    if (t.is("bool") || t.is("SymBool")) {
      if (take_word("True")) return true;
      if (take_word("False")) return false;
      refuse("True or False");
    }
    if (t.is("int") || t.is("SymInt")) return whole();
    if (t.is("float") || t.is("SymFloat")) return real();
    if (t.is("Scalar") || t.is("complex")) return Value(scalar());
    if (t.is("ScalarType")) return dtype();
    if (t.is("Device")) return device();
    if (t.is("Layout")) {
      if (take_word("strided") || take_word("0")) return Layout::Strided;
      refuse("strided");
    }
    if (t.is("MemoryFormat")) return format();
    refuse(concat("no default for a parameter of type ", to_text(given)));
  }

  bool take_word(std::string_view what) {
    skip();
    size_t end = at_ + what.size();
    if (text_.substr(at_, what.size()) != what) return false;
    if (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) return false;
    at_ = end;
    return true;
  }

  Scalar scalar() {
    if (take_word("True")) return true;
    if (take_word("False")) return false;
    return number();
  }

  int64_t whole() {
    if (take_word("Mean")) return 1;
    if (take_word("Sum")) return 2;
    skip();
    size_t start = at_;
    Scalar x = number();
    if (!x.is_integral()) refuse("an integer", start);
    return x.to_int();
  }

  double real() {
    skip();
    size_t start = at_;
    Scalar x = number();
    if (x.is_complex()) refuse("a real number", start);
    return x.to_double();
  }

  int64_t integer() {
    int64_t out = 0;
    auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), out);
    if (error != std::errc{}) refuse("an integer of 64 bits");
    at_ = static_cast<size_t>(end - text_.data());
    return out;
  }

  // An integer, or a float where a point or an exponent says so; `j` makes it imaginary.
  Scalar number() {
    skip();
    size_t start = at_;
    bool minus = at_ < text_.size() && text_[at_] == '-';
    if (minus) ++at_;
    if (take_word("inf")) return minus ? -HUGE_VAL : HUGE_VAL;
    if (take_word("nan")) return std::nan("");
    size_t end = at_;
    while (end < text_.size() && is_digit(text_[end])) ++end;
    char behind = end < text_.size() ? text_[end] : '\0';
    if (end == at_ && behind != '.') refuse("a number", start);
    at_ = start;
    if (behind != '.' && behind != 'e' && behind != 'E' && behind != 'j') return whole_number();
    double x = 0;
    auto [stop, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), x);
    if (error != std::errc{}) refuse("a number that a float can hold", start);
    at_ = static_cast<size_t>(stop - text_.data());
    if (take_word("j")) return complex128(0, x);
    if (at_ < text_.size() && is_letter(text_[at_])) refuse("a number", start);
    return x;
  }
  int64_t whole_number() {
    size_t start = at_;
    int64_t out = integer();
    if (at_ < text_.size() && is_letter(text_[at_])) refuse("a number", start);
    return out;
  }

  std::string text() {
    char quote = next();
    if (quote != '"' && quote != '\'') refuse("a text in quotes");
    std::string out;
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      char c = text_[at_];
      if (c == '\\') {
        if (++at_ == text_.size()) break;
        c = text_[at_] == 'n' ? '\n' : text_[at_] == 't' ? '\t' : text_[at_];
      }
      out += c;
    }
    if (at_ >= text_.size()) refuse("a quote at the end of the text");
    ++at_;
    return out;
  }

  Value dtype() {
    skip();
    size_t start = at_;
    std::string name = word("a dtype");
    static constexpr std::pair<const char*, const char*> others[] = {
        {"float", "float32"}, {"double", "float64"}, {"half", "float16"}, {"int", "int32"},
        {"long", "int64"},    {"short", "int16"}};
    for (auto& [from, to] : others)
      if (name == from) name = to;
    for (int i = 0; i < kDTypes; ++i)
      if (name == dtype_name(static_cast<DType>(i))) return static_cast<DType>(i);
    refuse("a dtype", start);
  }

  Value device() {
    skip();
    size_t start = at_;
    std::string name;
    if (next() == '"' || next() == '\'') {
      name = text();
    } else {
      name = word("a device");
      if (take(":")) name += ":" + std::to_string(integer());
    }
    try {
      return Device(name);
    } catch (const Error&) {
      refuse("cpu, cuda or meta, with a number or without", start);
    }
  }

  Value format() {
    static constexpr std::pair<const char*, MemoryFormat> names[] = {
        {"contiguous_format", MemoryFormat::Contiguous},
        {"preserve_format", MemoryFormat::Preserve},
        {"channels_last_3d", MemoryFormat::ChannelsLast3d},
        {"channels_last", MemoryFormat::ChannelsLast}};
    for (auto& [name, format] : names)
      if (take_word(name)) return format;
    refuse("a memory format");
  }

  // A list in brackets, or one number for each of a known length.
  Value list(const SchemaType& t) {
    const SchemaType& item = t.items[0];
    if (item.is("int") || item.is("SymInt"))
      return Value(items<Ints, int64_t>(t, [&] { return whole(); }));
    if (item.is("float") || item.is("SymFloat"))
      return Value(items<std::vector<double>, double>(t, [&] { return real(); }));
    if (item.is("bool"))
      return Value(items<std::vector<bool>, bool>(t, [&] { return value(item).get<bool>(); }));
    if (item.is("Scalar"))
      return Value(items<std::vector<Scalar>, Scalar>(t, [&] { return scalar(); }));
    expect("[");
    expect("]");  // nothing else has items that can be written
    if (item.is("Tensor")) return Tensors();
    if (item.form == Form::Optional && item.items[0].is("Tensor")) return OptTensors();
    refuse(concat("no default for a parameter of type ", to_text(t)));
  }
  template <class List, class Item, class F>
  List items(const SchemaType& t, F item) {
    List out;
    if (!take("[")) {
      if (!t.length) refuse("'['");
      Item x = item();
      for (int64_t i = 0; i < t.length; ++i) out.push_back(x);
      return out;
    }
    if (take("]")) return out;
    do out.push_back(item());
    while (take(","));
    expect("]");
    if (t.length && static_cast<int64_t>(out.size()) != t.length)
      refuse(concat(t.length, " items"), at_ - 1);
    return out;
  }

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Schema parse_schema(std::string_view text) {
  return Parser(text).schema();
}

}  // namespace flambeau
