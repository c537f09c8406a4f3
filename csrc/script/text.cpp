#include "script/text.h"

#include <charconv>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "core/error.h"

namespace flambeau::script {

namespace {

constexpr int kDepth = 200;  // of types, tuples and blocks in each other
constexpr std::string_view kControl[] = {"if",     "loop",  "collect",  "with",
                                         "return", "break", "continue", "raise"};

bool is_control(std::string_view target) {
  for (auto t : kControl)
    if (t == target) return true;
  return false;
}
bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80);
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// What stands before the blocks of a node.
const char* label_of(const Node& n, size_t i) {
  if (n.target == "if") return i ? "else" : "then";
  if (n.target == "loop") return i || n.blocks.size() == 1 ? "do" : "while";
  if (n.target == "collect") return i || n.blocks.size() == 1 ? "each" : "when";
  return "inside";
}

void put_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

// Reads one line from left to right.
class Line {
 public:
  Line(std::string_view text, size_t number) : text_(text), number_(number) {}

  [[noreturn]] void fail_here(const std::string& expected) const {
    std::string rest(text_.substr(at_, 40));
    fail(ErrorKind::Value, "script text, line ", number_, ": expected ", expected, ", got ",
         rest.empty() ? "the end of the line" : "'" + rest + "'");
  }
  bool done() const { return at_ == text_.size(); }
  void expect_end() const {
    if (!done()) fail_here("the end of the line");
  }
  char peek() const { return done() ? '\0' : text_[at_]; }
  bool sees(std::string_view s) const { return text_.substr(at_).starts_with(s); }
  bool take(std::string_view s) {
    if (!sees(s)) return false;
    at_ += s.size();
    return true;
  }
  void expect(std::string_view s) {
    if (!take(s)) fail_here("'" + std::string(s) + "'");
  }
  std::string_view rest() { return text_.substr(std::exchange(at_, text_.size())); }

  // Letters, digits, `_`; with dots between them where `dotted`.
  std::string word(bool dotted, const char* what) {
    size_t start = at_;
    while (!done() && (is_word(text_[at_]) || (dotted && text_[at_] == '.' && at_ > start))) ++at_;
    if (at_ == start || text_[at_ - 1] == '.') {
      at_ = start;
      fail_here(what);
    }
    return std::string(text_.substr(start, at_ - start));
  }
  // What a node calls: a word with dots, `space::name` where it was added.
  std::string target() {
    std::string out = word(true, "what is called");
    return take("::") ? out + "::" + word(true, "the name of an operation") : out;
  }
  int64_t whole(const char* what) {
    int64_t x = 0;
    auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), x);
    if (error != std::errc()) fail_here(what);
    at_ = static_cast<size_t>(end - text_.data());
    return x;
  }

  Type type(int depth = 0) {
    if (depth > kDepth) fail_here("a type that is nested less deeply");
    Type t{word(true, "a type"), false, 0, {}};
    if (t.base.size() == 5 && t.base.starts_with("Ints") && is_digit(t.base[4])) {
      t.length = t.base[4] - '0';
      t.base = "Ints";
    }
    if (take("[")) {
      do t.items.push_back(type(depth + 1));
      while (take(", "));
      expect("]");
    }
    if (t.base == "List" && t.items.size() != 1) fail_here("the type of a list's items");
    t.optional = take(" | None");
    return t;
  }

  std::string string() {
    char quote = peek();
    if (quote != '\'' && quote != '"') fail_here("a string");
    std::string out;
    for (++at_; peek() != quote; ++at_) {
      if (done()) fail_here("the end of a string");
      if (static_cast<unsigned char>(peek()) < 0x20) fail_here("no control character in a string");
      if (peek() != '\\') {
        out += peek();
        continue;
      }
      ++at_;
      switch (peek()) {
        case 'n':
          out += '\n';
          break;
        case 'r':
          out += '\r';
          break;
        case 't':
          out += '\t';
          break;
        case '\\':
        case '\'':
        case '"':
          out += peek();
          break;
        case 'x':
          put_utf8(out, hex(2));
          break;
        case 'u':
          put_utf8(out, hex(4));
          break;
        case 'U':
          put_utf8(out, hex(8));
          break;
        default:
          fail_here("an escape of a string");
      }
    }
    ++at_;
    return out;
  }

  // A number as Python writes it; names of infinities are the caller's.
  Arg number() {
    size_t start = at_;
    take("-");
    bool real = false;
    while (is_digit(peek()) || peek() == '.' || peek() == 'e' ||
           ((peek() == '+' || peek() == '-') && at_ > start && text_[at_ - 1] == 'e')) {
      real |= !is_digit(peek());
      ++at_;
    }
    std::string_view text = text_.substr(start, at_ - start);
    const char* end = text.data() + text.size();
    Arg a;
    if (real) {
      a.kind = Arg::Kind::Float;
      auto [p, error] = std::from_chars(text.data(), end, a.real);
      if (p != end || error == std::errc::invalid_argument) at_ = start, fail_here("a number");
      if (error != std::errc()) a.real = std::strtod(std::string(text).c_str(), nullptr);
      return a;
    }
    a.kind = Arg::Kind::Int;
    auto [p, error] = std::from_chars(text.data(), end, a.whole);
    if (p != end || error == std::errc::invalid_argument) at_ = start, fail_here("a number");
    if (error != std::errc()) a.kind = Arg::Kind::BigInt, a.text = text;
    return a;
  }

  size_t position() const { return at_; }
  std::string_view since(size_t start) const { return text_.substr(start, at_ - start); }

 private:
  uint32_t hex(size_t digits) {
    uint32_t x = 0;
    std::string_view text = text_.substr(at_ + 1, digits);
    auto [p, error] = std::from_chars(text.data(), text.data() + text.size(), x, 16);
    bool sound = text.size() == digits && error == std::errc() && p == text.data() + digits;
    if (!sound || x > 0x10FFFF || (x >= 0xD800 && x < 0xE000)) fail_here("a character's number");
    at_ += digits;
    return x;
  }

  std::string_view text_;
  size_t number_, at_ = 0;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Unit run() {
    while (next()) {
      if (line_.empty()) continue;
      if (indent_ != 0) here().fail_here("a class or a function");
      if (line_.starts_with("class "))
        read_class();
      else
        read_function();
    }
    return std::move(unit_);
  }

 private:
  // The next line without its indentation; false at the end.
  bool next() {
    if (again_) return again_ = false, true;
    if (at_ >= text_.size()) return false;
    size_t end = std::min(text_.find('\n', at_), text_.size());
    line_ = text_.substr(at_, end - at_);
    at_ = end + 1;
    ++number_;
    indent_ = std::min(line_.find_first_not_of(' '), line_.size());
    line_.remove_prefix(indent_);
    return true;
  }
  void back() { again_ = true; }
  Line here() const { return Line(line_, number_); }

  // -- classes ------------------------------------------------------------------------------------

  void read_class() {
    Line l = here();
    l.expect("class ");
    Class c;
    c.name = l.word(true, "the name of a class");
    l.expect("(");
    c.kind = l.word(false, "a kind");
    l.expect("):");
    l.expect_end();
    bool known = false;
    for (auto kind : {"module", "class", "tuple", "enum", "library", "interface", "native"})
      known |= c.kind == kind;
    if (!known) here().fail_here("a class of a known kind");
    while (next()) {
      if (line_.empty()) continue;
      if (indent_ == 0) {
        back();
        break;
      }
      Line m = here();
      if (m.take("def ")) {
        std::string n = m.word(true, "a name");
        m.expect(" = ");
        c.methods.emplace_back(std::move(n), m.word(true, "a function"));
      } else if (m.take("child ")) {
        c.children.push_back(m.word(false, "a name"));
      } else if (m.take("member ")) {
        std::string n = m.word(false, "a name");
        m.expect(" = ");
        c.members.emplace_back(std::move(n), literal(m));
      } else {
        attribute(c, m);
      }
      m.expect_end();
    }
    unit_.classes.push_back(std::move(c));
  }

  void attribute(Class& c, Line& m) {
    Attribute a;
    a.name = m.word(false, "an attribute or a method");
    m.expect(": ");
    a.type = m.type();
    if (m.take(" in ")) {
      a.place = m.word(false, "a table of a module");
      if (a.place != "_parameters" && a.place != "_buffers" && a.place != "_modules")
        m.fail_here("a table of a module");
    }
    if (m.take(" = ")) a.initial = literal(m);
    c.attributes.push_back(std::move(a));
  }

  Arg literal(Line& l) {
    Function none;
    f_ = &none;
    ids_.clear();
    return arg(l, 0, true);
  }

  // -- functions ----------------------------------------------------------------------------------

  void read_function() {
    Function f;
    f_ = &f;
    ids_.clear();
    Line l = here();
    l.expect("def ");
    f.name = l.word(true, "the name of a function");
    l.expect("(");
    f.body.inputs = defined(l);
    l.expect(") -> ");
    f.returns = l.type();
    l.expect(":");
    if (l.take("  # ")) place(f, l.rest());
    l.expect_end();
    while (next()) {
      if (!line_.starts_with("default ")) {
        back();
        break;
      }
      given(f);
    }
    block(f.body, 0, 0);
    unit_.functions.push_back(std::move(f));
  }

  // `file:line in function`
  void place(Function& f, std::string_view text) {
    size_t in = text.rfind(" in "), colon = text.rfind(':', in);
    if (in == text.npos || colon == text.npos) here().fail_here("a place: file:line in function");
    f.file = text.substr(0, colon);
    f.where = text.substr(in + 4);
    Line number(text.substr(colon + 1, in - colon - 1), number_);
    f.line = number.whole("a line");
    number.expect_end();
  }

  void given(Function& f) {
    Line l = here();
    l.expect("default ");
    std::string name = l.word(false, "a parameter");
    uint32_t i = 0;
    while (i < f.body.inputs.size() && f.values[f.body.inputs[i]].name != name) ++i;
    if (i == f.body.inputs.size()) here().fail_here("the name of a parameter");
    Default d;
    l.expect(" ");
    d.kwonly = l.take("kwonly ");
    l.expect("= ");
    if (!l.take("required")) d.value = arg(l, 0, true);
    l.expect_end();
    f.defaults[i] = std::move(d);
  }

  std::vector<uint32_t> defined(Line& l) {
    std::vector<uint32_t> out;
    if (l.peek() != '%') return out;
    do {
      auto [name, id] = value_name(l);
      l.expect(": ");
      auto index = static_cast<uint32_t>(f_->values.size());
      if (!ids_.emplace(id, index).second) l.fail_here("a value that is new");
      f_->values.push_back({id, std::move(name), l.type()});
      out.push_back(index);
    } while (l.take(", "));
    return out;
  }

  std::pair<std::string, int64_t> value_name(Line& l) {
    l.expect("%");
    std::string name;
    if (!is_digit(l.peek())) {
      name = l.word(false, "a value");
      l.expect(".");
    }
    if (!is_digit(l.peek())) l.fail_here("the number of a value");
    return {std::move(name), l.whole("the number of a value")};
  }

  // The nodes of a block whose head is indented by `indent`.
  void block(Block& b, size_t indent, int depth) {
    if (depth > kDepth) here().fail_here("blocks that are nested less deeply");
    bool yielded = false;
    while (next()) {
      if (line_.empty()) continue;
      if (depth == 0 ? indent_ == 0 : indent_ <= indent) {
        back();
        return;
      }
      Line l = here();
      if (yielded) l.fail_here("nothing after what a block gives");
      if (depth > 0 && l.take("yield ")) {
        do b.outputs.push_back(arg(l, 0, false));
        while (l.take(", "));
        l.expect_end();
        yielded = true;
      } else if (!label(b, l, depth)) {
        b.nodes.push_back(node(l));
      }
    }
  }

  // `then():` and its kin: a block of the node before it.
  bool label(Block& b, Line& l, int depth) {
    if (b.nodes.empty()) return false;
    Node& n = b.nodes.back();
    for (const char* name : {"then(", "else(", "while(", "do(", "when(", "each(", "inside("}) {
      if (!l.take(name)) continue;
      Block inner;
      inner.inputs = defined(l);
      l.expect("):");
      l.expect_end();
      size_t indent = indent_;
      block(inner, indent, depth + 1);
      // The node may have moved meanwhile only if this block grew, which it did not.
      n.blocks.push_back(std::move(inner));
      size_t i = n.blocks.size() - 1;
      std::string_view given(name);
      given.remove_suffix(1);
      // Which of two blocks the first one is shows when the second has come.
      bool first_of_two = i == 0 && (given == "while" || given == "when");
      if (!first_of_two && given != label_of(n, i))
        fail(ErrorKind::Value, "script text, line ", number_, ": ", n.target, " has no block '",
             given, "' here");
      if (n.blocks.size() > 2)
        fail(ErrorKind::Value, "script text, line ", number_, ": too many blocks");
      return true;
    }
    return false;
  }

  Node node(Line& l) {
    Node n;
    bool bare = false;
    for (auto t : kControl) bare |= l.sees(t) && l.sees(std::string(t) + "(");
    std::vector<uint32_t> outs;
    size_t before = f_->values.size();
    if (!bare) {
      if (!l.take("()")) outs = defined(l);
      if (outs.empty() && f_->values.size() != before) l.fail_here("a node");
      l.expect(" = ");
      n.grad = !l.take("no_grad ");
    }
    n.target = l.target();
    l.expect("(");
    n.args = arguments(l, ')');
    l.expect(")");
    if (l.take("  # ")) {
      n.line = l.whole("a line");
      if (n.line < 0) l.fail_here("a line");
    }
    l.expect_end();
    n.outs = std::move(outs);
    return n;
  }

  std::vector<Arg> arguments(Line& l, char end) {
    std::vector<Arg> out;
    if (l.peek() == end) return out;
    do out.push_back(arg(l, 0, false));
    while (l.take(", "));
    return out;
  }

  Arg arg(Line& l, int depth, bool constant) {
    if (depth > kDepth) l.fail_here("what is nested less deeply");
    Arg a;
    char c = l.peek();
    if (c == '%' && !constant) {
      size_t start = l.position();
      auto [name, id] = value_name(l);
      auto found = ids_.find(id);
      if (found == ids_.end() || f_->values[found->second].name != name)
        fail(ErrorKind::Value, "script text, line ", number_, ": there is no value ",
             l.since(start));
      a.kind = Arg::Kind::Value;
      a.index = found->second;
    } else if (c == '\'' || c == '"') {
      size_t start = l.position();
      a.kind = Arg::Kind::Str;
      a.text = l.string();
      a.spelling = l.since(start);
    } else if (c == '(') {
      l.take("(");
      a.kind = Arg::Kind::Tuple;
      while (l.peek() != ')') {
        a.items.push_back(arg(l, depth + 1, constant));
        if (!l.take(", ") && !(a.items.size() == 1 && l.take(","))) {
          if (l.peek() != ')') l.fail_here("')'");
          if (a.items.size() == 1) l.fail_here("','");
        }
      }
      l.expect(")");
    } else if (c == '[' && constant) {
      l.take("[");
      a.kind = Arg::Kind::List;
      if (l.peek() != ']') {
        do a.items.push_back(arg(l, depth + 1, true));
        while (l.take(", "));
      }
      l.expect("]");
    } else if (c == '{' && constant) {
      l.expect("{}");
      a.kind = Arg::Kind::Dict;
    } else if (is_digit(c) || (c == '-' && !l.sees("-inf"))) {
      a = l.number();
    } else {
      named(a, l);
    }
    return a;
  }

  double real(Line& l) {
    if (l.take("inf")) return INFINITY;
    if (l.take("-inf")) return -INFINITY;
    if (l.take("nan")) return NAN;
    Arg a = l.number();
    if (a.kind != Arg::Kind::Float) l.fail_here("a float");
    return a.real;
  }

  void named(Arg& a, Line& l) {
    if (l.sees("inf") || l.sees("-inf") || l.sees("nan")) {
      a.kind = Arg::Kind::Float;
      a.real = real(l);
      return;
    }
    std::string name = l.word(false, "an argument");
    if (name == "None") return;
    if (name == "True" || name == "False") {
      a.kind = Arg::Kind::Bool;
      a.whole = name == "True";
    } else if (name == "device" && l.take("(")) {
      a.kind = Arg::Kind::Device;
      a.text = l.string();
      l.expect(")");
    } else if (name == "complex" && l.take("(")) {
      a.kind = Arg::Kind::Complex;
      a.real = real(l);
      l.expect(", ");
      a.imag = real(l);
      l.expect(")");
    } else {
      a.kind = Arg::Kind::Name;
      a.text = std::move(name);
    }
  }

  std::string_view text_, line_;
  size_t at_ = 0, indent_ = 0, number_ = 0;
  bool again_ = false;
  Unit unit_;
  Function* f_ = nullptr;
  std::unordered_map<int64_t, uint32_t> ids_;
};

class Writer {
 public:
  std::string run(const Unit& unit) {
    bool first = true;
    auto blank = [&] {
      if (!std::exchange(first, false)) out_ += '\n';
    };
    for (const Class& c : unit.classes) blank(), put(c);
    for (const Function& f : unit.functions) blank(), put(f);
    return std::move(out_);
  }

 private:
  template <class... T>
  void add(const T&... parts) {
    ((out_ += parts), ...);
  }

  void put(const Class& c) {
    add("class ", c.name, "(", c.kind, "):\n");
    for (const Attribute& a : c.attributes) {
      add("  ", a.name, ": ", show(a.type));
      if (!a.place.empty()) add(" in ", a.place);
      if (a.initial) add(" = ", show(*a.initial, nullptr));
      add("\n");
    }
    for (auto& [n, x] : c.members) add("  member ", n, " = ", show(x, nullptr), "\n");
    for (const std::string& n : c.children) add("  child ", n, "\n");
    for (auto& [n, f] : c.methods) add("  def ", n, " = ", f, "\n");
  }

  void put(const Function& f) {
    f_ = &f;
    add("def ", f.name, "(", defined(f.body.inputs), ") -> ", show(f.returns), ":");
    if (f.line) add("  # ", f.file, ":", std::to_string(f.line), " in ", f.where);
    add("\n");
    for (auto& [i, d] : f.defaults)
      add("  default ", f.values[f.body.inputs[i]].name, d.kwonly ? " kwonly = " : " = ",
          d.value ? show(*d.value, nullptr) : "required", "\n");
    put(f.body, 1);
  }

  void put(const Block& b, size_t depth) {
    for (const Node& n : b.nodes) {
      add(std::string(2 * depth, ' '));
      if (!n.outs.empty())
        add(defined(n.outs), " = ");
      else if (!is_control(n.target))
        add("() = ");
      add(n.grad ? "" : "no_grad ", n.target, "(");
      list(n.args);
      add(")");
      if (n.line >= 0) add("  # ", std::to_string(n.line));
      add("\n");
      for (size_t i = 0; i < n.blocks.size(); ++i) {
        add(std::string(2 * depth, ' '), label_of(n, i), "(", defined(n.blocks[i].inputs), "):\n");
        put(n.blocks[i], depth + 1);
      }
    }
    if (b.outputs.empty()) return;
    add(std::string(2 * depth, ' '), "yield ");
    list(b.outputs);
    add("\n");
  }

  void list(const std::vector<Arg>& args) {
    for (size_t i = 0; i < args.size(); ++i) add(i ? ", " : "", show(args[i], f_));
  }
  std::string defined(const std::vector<uint32_t>& values) const {
    std::string out;
    for (uint32_t v : values) {
      const IrValue& x = f_->values[v];
      if (!out.empty()) out += ", ";
      Arg a;
      a.kind = Arg::Kind::Value;
      a.index = v;
      out += show(a, f_) + ": " + show(x.type);
    }
    return out;
  }

  std::string out_;
  const Function* f_ = nullptr;
};

}  // namespace

Unit read(std::string_view text) {
  return Reader(text).run();
}

std::string write(const Unit& unit) {
  return Writer().run(unit);
}

Type read_type(std::string_view text) {
  Line l(text, 1);
  Type t = l.type();
  l.expect_end();
  return t;
}

std::string show(const Type& t) {
  std::string out = t.base;
  if (t.length) out += std::to_string(t.length);
  if (!t.items.empty()) {
    out += '[';
    for (size_t i = 0; i < t.items.size(); ++i) out += (i ? ", " : "") + show(t.items[i]);
    out += ']';
  }
  return out + (t.optional ? " | None" : "");
}

std::string show(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  char text[32];
  double size = std::abs(x);
  bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  auto [end, error] = std::to_chars(text, text + sizeof(text), x, format);
  std::string out(text, end);
  if (plain && out.find('.') == out.npos) out += ".0";
  return out;
}

std::string show(const Arg& a, const Function* f) {
  auto items = [&] {
    std::string out;
    for (size_t i = 0; i < a.items.size(); ++i) out += (i ? ", " : "") + show(a.items[i], f);
    return out;
  };
  switch (a.kind) {
    case Arg::Kind::Value: {
      const IrValue& v = f->values[a.index];
      return (v.name.empty() ? "%" : "%" + v.name + ".") + std::to_string(v.id);
    }
    case Arg::Kind::None:
      return "None";
    case Arg::Kind::Bool:
      return a.whole ? "True" : "False";
    case Arg::Kind::Int:
      return std::to_string(a.whole);
    case Arg::Kind::Float:
      return show(a.real);
    case Arg::Kind::Complex:
      return "complex(" + show(a.real) + ", " + show(a.imag) + ")";
    case Arg::Kind::Str:
      return a.spelling;
    case Arg::Kind::Device:
      return "device('" + a.text + "')";
    case Arg::Kind::BigInt:
    case Arg::Kind::Name:
      return a.text;
    case Arg::Kind::Tuple:
      return "(" + items() + (a.items.size() == 1 ? ",)" : ")");
    case Arg::Kind::List:
      return "[" + items() + "]";
    case Arg::Kind::Dict:
      return "{}";
  }
  return "";
}

}  // namespace flambeau::script
