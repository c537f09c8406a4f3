#include "files/json.h"

#include <cerrno>
#include <cstdlib>
#include <unordered_set>

#include "core/error.h"

namespace flambeau::files {

namespace {

constexpr int kDeepest = 500;
constexpr size_t kLongestNumber = 400;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Json whole() {
    Json made = value(0);
    space();
    need(at_ == text_.size(), "something follows the end");
    return made;
  }

 private:
  void need(bool ok, const char* what) { FB_CHECK_VALUE(ok, what, " at byte ", at_); }
  bool more() const { return at_ < text_.size(); }
  void space() {
    while (more() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  bool takes(char c) {
    if (!more() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool takes_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Json value(int depth) {
    FB_CHECK_VALUE(depth <= kDeepest, "nested too deeply");
    space();
    need(more(), "a value is missing");
    Json made;
    switch (text_[at_]) {
      case '{':
        object(made, depth);
        break;
      case '[':
        list(made, depth);
        break;
      case '"':
        made.kind = Json::Kind::Text;
        made.text = string();
        break;
      case 't':
      case 'f':
        made.kind = Json::Kind::Bool;
        made.integer = text_[at_] == 't';
        need(takes_word(made.integer ? "true" : "false"), "an unknown word");
        break;
      case 'n':
        need(takes_word("null"), "an unknown word");
        break;
      default:
        number(made);
    }
    return made;
  }

  void object(Json& made, int depth) {
    made.kind = Json::Kind::Object;
    std::unordered_set<std::string> seen;
    ++at_;
    space();
    if (takes('}')) return;
    do {
      space();
      need(more() && text_[at_] == '"', "a name is missing");
      std::string name = string();
      FB_CHECK_VALUE(seen.insert(name).second, "names '", name.substr(0, 80), "' twice");
      space();
      need(takes(':'), "a colon is missing");
      made.items.push_back(value(depth + 1));
      made.names.push_back(std::move(name));
      space();
    } while (takes(','));
    need(takes('}'), "an object does not end");
  }

  void list(Json& made, int depth) {
    made.kind = Json::Kind::List;
    ++at_;
    space();
    if (takes(']')) return;
    do {
      made.items.push_back(value(depth + 1));
      space();
    } while (takes(','));
    need(takes(']'), "a list does not end");
  }

  bool digits() {
    const size_t start = at_;
    while (more() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ > start;
  }

  void number(Json& made) {
    const size_t start = at_;
    takes('-');
    const bool zero = more() && text_[at_] == '0';
    need(digits() && (!zero || text_[at_ - 1] == '0'), "no value");
    need(!zero || at_ == start + 1 + (text_[start] == '-'), "a number begins with 0");
    bool whole = true;
    if (takes('.')) {
      whole = false;
      need(digits(), "a number ends with a point");
    }
    if (more() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      whole = false;
      ++at_;
      if (!takes('+')) takes('-');
      need(digits(), "a number without its exponent");
    }
    need(at_ - start <= kLongestNumber, "a number is too long");
    const std::string shown(text_.substr(start, at_ - start));
    errno = 0;
    made.integer = whole ? std::strtoll(shown.c_str(), nullptr, 10) : 0;
    whole = whole && errno == 0;
    made.kind = whole ? Json::Kind::Integer : Json::Kind::Real;
    if (!whole) made.real = std::strtod(shown.c_str(), nullptr);
  }

  uint32_t hex() {
    uint32_t n = 0;
    for (int k = 0; k < 4; ++k) {
      need(more(), "a text does not end");
      const char c = text_[at_++];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      need(digit >= 0, "an escape that is no number");
      n = n << 4 | static_cast<uint32_t>(digit);
    }
    return n;
  }

  void escape(std::string& out) {
    need(more(), "a text does not end");
    const char c = text_[at_++];
    constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
    if (const size_t k = from.find(c); k != from.npos) {
      out += to[k];
      return;
    }
    need(c == 'u', "an unknown escape");
    uint32_t n = hex();
    if (n >= 0xd800 && n < 0xe000) {
      need(n < 0xdc00 && takes_word("\\u"), "half a character");
      const uint32_t low = hex();
      need(low >= 0xdc00 && low < 0xe000, "half a character");
      n = 0x10000 + ((n - 0xd800) << 10) + (low - 0xdc00);
    }
    if (n < 0x80) {
      out += static_cast<char>(n);
    } else if (n < 0x800) {
      out += static_cast<char>(0xc0 | n >> 6);
    } else if (n < 0x10000) {
      out += static_cast<char>(0xe0 | n >> 12);
      out += static_cast<char>(0x80 | (n >> 6 & 63));
    } else {
      out += static_cast<char>(0xf0 | n >> 18);
      out += static_cast<char>(0x80 | (n >> 12 & 63));
      out += static_cast<char>(0x80 | (n >> 6 & 63));
    }
    if (n >= 0x80) out += static_cast<char>(0x80 | (n & 63));
  }

  std::string string() {
    std::string out;
    ++at_;
    while (true) {
      need(more(), "a text does not end");
      const char c = text_[at_++];
      if (c == '"') return out;
      if (c == '\\') {
        escape(out);
        continue;
      }
      need(static_cast<unsigned char>(c) >= 0x20, "a control character in a text");
      out += c;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

const Json* Json::find(std::string_view name) const {
  for (size_t k = 0; k < names.size(); ++k)
    if (names[k] == name) return &items[k];
  return nullptr;
}

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto c = static_cast<unsigned char>(text[at]);
    const size_t more = c < 0x80                ? 0
                        : c >= 0xc2 && c < 0xe0 ? 1
                        : c >= 0xe0 && c < 0xf0 ? 2
                        : c >= 0xf0 && c < 0xf5 ? 3
                                                : 4;
    if (more == 4 || more >= text.size() - at) return false;
    for (size_t k = 1; k <= more; ++k)
      if ((static_cast<unsigned char>(text[at + k]) & 0xc0) != 0x80) return false;
    const auto next = more ? static_cast<unsigned char>(text[at + 1]) : 0;
    if ((c == 0xe0 && next < 0xa0) || (c == 0xed && next >= 0xa0) || (c == 0xf0 && next < 0x90) ||
        (c == 0xf4 && next >= 0x90))
      return false;
    at += 1 + more;
  }
  return true;
}

Json parse_json(std::string_view text) {
  FB_CHECK_VALUE(is_utf8(text), "not UTF-8");
  return Parser(text).whole();
}

}  // namespace flambeau::files
