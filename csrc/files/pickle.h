// A machine that reads pickles, protocols 0 to 5, as data: Python's documentation of pickletools.
// It owns opcodes, stack and memo and their checks; values are made by a `Maker`, which alone knows
// what they are. Invariant: it reads inside the bytes given, its memory is bounded by them, and bad
// input ends in Error(Value). What a file names, calls or sends apart is the maker's decision.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/error.h"

namespace flambeau::files {

// A Maker has `Value` and
//   none() boolean(bool) integer(int64_t) real(double) long_integer(bytes) decimal(text)
//   real_text(text) text(bytes) raw_unicode(bytes) old_text(bytes) quoted(bytes) bytes(bytes)
//   byte_array(bytes) tuple(Value*, n) list(Value*, n) dict(Value*, n) set(Value*, n, frozen)
//   extend(target, Value*, n) set_items(target, Value*, n) add_items(target, Value*, n)
//   global(module, name, protocol) persistent(id) call(function, args)
//   new_object(class, args, kwargs or empty) state(object, state)
// all bytes and texts as std::string_view; key and value by turns where items are pairs.
template <class Maker>
class Unpickler {
 public:
  using Value = typename Maker::Value;

  Unpickler(std::string_view data, size_t start, Maker& make)
      : data_(data), at_(start), make_(make) {}

  Value run() {
    while (true) {
      const unsigned char code = byte();
      if (code == '.') break;
      step(code);
    }
    FB_CHECK_VALUE(marks_.empty() && stack_.size() == 1,
                   "the pickle ends with an unfinished object");
    return pop();
  }
  size_t at() const { return at_; }

 private:
  void step(unsigned char code);
  bool plain(unsigned char code);  // numbers and texts
  bool container(unsigned char code);
  bool memo(unsigned char code);
  bool made(unsigned char code);  // what the maker decides

  // -- the bytes
  unsigned char byte() {
    FB_CHECK_VALUE(at_ < data_.size(), "1 byte is wanted, none is left");
    return static_cast<unsigned char>(data_[at_++]);
  }
  std::string_view take(uint64_t count) {
    FB_CHECK_VALUE(count <= data_.size() - at_, count, " bytes are wanted, ", data_.size() - at_,
                   " are left");
    std::string_view found = data_.substr(at_, count);
    at_ += count;
    return found;
  }
  uint64_t number(int bytes) {
    std::string_view raw = take(bytes);
    uint64_t n = 0;
    for (int k = bytes; k--;) n = n << 8 | static_cast<unsigned char>(raw[k]);
    return n;
  }
  std::string_view signed_size() {  // of the opcodes of Python 2
    const auto n = static_cast<int32_t>(number(4));
    FB_CHECK_VALUE(n >= 0, "a size of ", n);
    return take(n);
  }
  std::string_view line() {
    const size_t stop = data_.find('\n', at_);
    FB_CHECK_VALUE(stop != std::string_view::npos, "a line does not end");
    std::string_view found = data_.substr(at_, stop - at_);
    at_ = stop + 1;
    return found;
  }
  uint64_t index_line() {
    uint64_t n = 0;
    std::string_view text = line();
    FB_CHECK_VALUE(!text.empty() && text.size() <= 10, "a memo index '", text, "'");
    for (char c : text) {
      FB_CHECK_VALUE(c >= '0' && c <= '9', "a memo index '", text, "'");
      n = 10 * n + (c - '0');
    }
    return n;
  }

  // -- the stack, whose values before the last mark cannot be reached
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  void need(size_t count) {
    FB_CHECK_VALUE(stack_.size() - floor() >= count, "the stack is empty");
  }
  void push(Value v) { stack_.push_back(std::move(v)); }
  Value pop() {
    need(1);
    Value v = std::move(stack_.back());
    stack_.pop_back();
    return v;
  }
  Value& top() {
    need(1);
    return stack_.back();
  }
  size_t pop_mark() {
    FB_CHECK_VALUE(!marks_.empty(), "a mark is missing");
    size_t from = marks_.back();
    marks_.pop_back();
    return from;
  }
  // Values from `from` on, in the place of which the stack gets what f makes of them.
  template <class F>
  void replace(size_t from, F f) {
    Value made = f(stack_.data() + from, stack_.size() - from);
    stack_.resize(from);
    push(std::move(made));
  }
  // f(target, values, count): the target lies below the mark.
  template <class F>
  void into_target(F f) {
    const size_t from = pop_mark();
    FB_CHECK_VALUE(from > floor(), "the stack is empty");
    f(stack_[from - 1], stack_.data() + from, stack_.size() - from);
    stack_.resize(from);
  }

  // -- the memo: dense as far as indices count up, as those of writers do
  void put(uint64_t index) {
    FB_CHECK_VALUE(index <= 0xffffffff, "memo index ", index);
    Value& v = top();
    if (index < dense_.size()) {
      dense_[index] = v;
    } else if (index == dense_.size()) {
      dense_.push_back(v);
      count_ += sparse_.erase(index) == 0;
    } else {
      count_ += sparse_.insert_or_assign(index, v).second;
    }
  }
  void get(uint64_t index) {
    if (index < dense_.size()) return push(dense_[index]);
    auto found = sparse_.find(index);
    FB_CHECK_VALUE(found != sparse_.end(), "memo index ", index, " was not set");
    push(found->second);
  }

  std::string_view data_;
  size_t at_;
  Maker& make_;
  int protocol_ = 0;
  std::vector<Value> stack_;
  std::vector<size_t> marks_;
  std::vector<Value> dense_;
  std::unordered_map<uint64_t, Value> sparse_;
  size_t count_ = 0;
};

template <class Maker>
void Unpickler<Maker>::step(unsigned char code) {
  switch (code) {
    case 0x80:  // PROTO
      protocol_ = byte();
      FB_CHECK_VALUE(protocol_ <= 5, "pickle protocol ", protocol_, ", only 0 to 5 are known");
      return;
    case 0x95: {  // FRAME
      const uint64_t size = number(8);
      FB_CHECK_VALUE(size <= data_.size() - at_, "a frame of ", size, " bytes, ",
                     data_.size() - at_, " are left");
      return;
    }
    case '(':
      marks_.push_back(stack_.size());
      return;
    case '0':  // POP: a value, or a mark with nothing above it
      if (stack_.size() > floor())
        stack_.pop_back();
      else
        pop_mark();
      return;
    case '1':  // POP_MARK
      stack_.resize(pop_mark());
      return;
    case '2':
      return push(top());
    case 0x82:
    case 0x83:
    case 0x84:
    case 0x97:
    case 0x98:
      FB_CHECK_VALUE(false, "load: the pickle refers to something outside the file (opcode ",
                     int{code},
                     ": an extension code or a buffer sent apart), which files of save "
                     "never do");
  }
  const bool known = plain(code) || memo(code) || container(code) || made(code);
  FB_CHECK_VALUE(known, "load: unknown opcode ", int{code}, " at byte ", at_ - 1, " of the pickle");
}

template <class Maker>
bool Unpickler<Maker>::plain(unsigned char code) {
  switch (code) {
    case 'N':
      push(make_.none());
      return true;
    case 0x88:
      push(make_.boolean(true));
      return true;
    case 0x89:
      push(make_.boolean(false));
      return true;
    case 'I': {
      std::string_view text = line();
      const bool truth = text == "00" || text == "01";
      push(truth ? make_.boolean(text == "01") : make_.decimal(text));
      return true;
    }
    case 'J':
      push(make_.integer(static_cast<int32_t>(number(4))));
      return true;
    case 'K':
      push(make_.integer(byte()));
      return true;
    case 'M':
      push(make_.integer(static_cast<int64_t>(number(2))));
      return true;
    case 'L': {
      std::string_view text = line();
      if (!text.empty() && text.back() == 'L') text.remove_suffix(1);
      push(make_.decimal(text));
      return true;
    }
    case 0x8a:
      push(make_.long_integer(take(byte())));
      return true;
    case 0x8b:
      push(make_.long_integer(signed_size()));
      return true;
    case 'F':
      push(make_.real_text(line()));
      return true;
    case 'G': {
      std::string_view raw = take(8);
      uint64_t bits = 0;
      for (char c : raw) bits = bits << 8 | static_cast<unsigned char>(c);
      double x;
      std::memcpy(&x, &bits, 8);
      push(make_.real(x));
      return true;
    }
    case 'S':
      push(make_.quoted(line()));
      return true;
    case 'T':
      push(make_.old_text(signed_size()));
      return true;
    case 'U':
      push(make_.old_text(take(byte())));
      return true;
    case 'V':
      push(make_.raw_unicode(line()));
      return true;
    case 'X':
      push(make_.text(take(number(4))));
      return true;
    case 0x8c:
      push(make_.text(take(byte())));
      return true;
    case 0x8d:
      push(make_.text(take(number(8))));
      return true;
    case 'B':
      push(make_.bytes(take(number(4))));
      return true;
    case 'C':
      push(make_.bytes(take(byte())));
      return true;
    case 0x8e:
      push(make_.bytes(take(number(8))));
      return true;
    case 0x96:
      push(make_.byte_array(take(number(8))));
      return true;
  }
  return false;
}

template <class Maker>
bool Unpickler<Maker>::memo(unsigned char code) {
  switch (code) {
    case 'g':
      get(index_line());
      return true;
    case 'h':
      get(byte());
      return true;
    case 'j':
      get(number(4));
      return true;
    case 'p':
      put(index_line());
      return true;
    case 'q':
      put(byte());
      return true;
    case 'r':
      put(number(4));
      return true;
    case 0x94:
      put(count_);
      return true;
  }
  return false;
}

template <class Maker>
bool Unpickler<Maker>::container(unsigned char code) {
  auto tuple = [this](Value* v, size_t n) { return make_.tuple(v, n); };
  switch (code) {
    case ')':
      push(make_.tuple(nullptr, 0));
      return true;
    case ']':
      push(make_.list(nullptr, 0));
      return true;
    case '}':
      push(make_.dict(nullptr, 0));
      return true;
    case 0x8f:
      push(make_.set(nullptr, 0, false));
      return true;
    case 't':
      replace(pop_mark(), tuple);
      return true;
    case 'l':
      replace(pop_mark(), [this](Value* v, size_t n) { return make_.list(v, n); });
      return true;
    case 'd':
      replace(pop_mark(), [this](Value* v, size_t n) { return make_.dict(v, n); });
      return true;
    case 0x91:
      replace(pop_mark(), [this](Value* v, size_t n) { return make_.set(v, n, true); });
      return true;
    case 0x85:
    case 0x86:
    case 0x87: {
      const size_t count = code - 0x84;
      need(count);
      replace(stack_.size() - count, tuple);
      return true;
    }
    case 'a': {
      Value item = pop();
      make_.extend(top(), &item, 1);
      return true;
    }
    case 's': {
      Value pair[2];
      pair[1] = pop();
      pair[0] = pop();
      make_.set_items(top(), pair, 2);
      return true;
    }
    case 'e':
      into_target([this](Value& t, Value* v, size_t n) { make_.extend(t, v, n); });
      return true;
    case 'u':
      into_target([this](Value& t, Value* v, size_t n) { make_.set_items(t, v, n); });
      return true;
    case 0x90:
      into_target([this](Value& t, Value* v, size_t n) { make_.add_items(t, v, n); });
      return true;
  }
  return false;
}

template <class Maker>
bool Unpickler<Maker>::made(unsigned char code) {
  switch (code) {
    case 'P':
      push(make_.persistent(make_.text(line())));
      return true;
    case 'Q':
      push(make_.persistent(pop()));
      return true;
    case 'c': {
      Value module = make_.text(line()), name = make_.text(line());
      push(make_.global(module, name, protocol_));
      return true;
    }
    case 0x93: {
      Value name = pop(), module = pop();
      push(make_.global(module, name, protocol_));
      return true;
    }
    case 'i': {
      const size_t from = pop_mark();
      Value module = make_.text(line()), name = make_.text(line());
      replace(from, [&](Value* v, size_t n) {
        Value function = make_.global(module, name, protocol_);
        return make_.call(function, make_.tuple(v, n));
      });
      return true;
    }
    case 'o':
      replace(pop_mark(), [this](Value* v, size_t n) {
        FB_CHECK_VALUE(n > 0, "the stack is empty");
        return make_.call(v[0], make_.tuple(v + 1, n - 1));
      });
      return true;
    case 'R': {
      Value args = pop(), function = pop();
      push(make_.call(function, args));
      return true;
    }
    case 0x81: {
      Value args = pop(), cls = pop();
      push(make_.new_object(cls, args, Value()));
      return true;
    }
    case 0x92: {
      Value kwargs = pop(), args = pop(), cls = pop();
      push(make_.new_object(cls, args, kwargs));
      return true;
    }
    case 'b': {
      Value state = pop();
      make_.state(top(), state);
      return true;
    }
  }
  return false;
}

}  // namespace flambeau::files
