// Lists, dicts, tuples and text of scripts. Lists are changed where they lie, for all who hold
// them.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/pylist.h"
#include "script/core_ops.h"
#include "script/core_table.h"
#include "script/run.h"
#include "script/text.h"
#include "script/values.h"

namespace flambeau::script {

namespace {

using Args = const Value* const*;

ListKind kind_of(const Value& v) {
  return static_cast<ListKind>(v.get<int64_t>());
}
void append(const Value& list, const Value& x) {
  list_insert(list, list_size(list), x);
}
// What holds a changed list while it changes.
Value held(const Value& v) {
  return v;
}

// -- making them

void make_list(Args a, size_t n, Value* out) {
  Value made = empty_list(kind_of(*a[n - 1]));
  for (size_t i = 0; i + 1 < n; ++i) append(made, *a[i]);
  *out = std::move(made);
}
void make_dict(Args a, size_t n, Value* out) {
  Value made = make_box<Dict>();
  for (size_t i = 0; i + 1 < n; i += 2) box_of<Dict>(made)->set(*a[i], *a[i + 1]);
  *out = std::move(made);
}
void filled(Args a, size_t, Value* out) {
  Value made = empty_list(kind_of(*a[2]));
  int64_t n = a[1]->get<int64_t>();
  FB_CHECK_AS(OutOfMemory, n < int64_t{1} << 40, "a list of ", n, " items is too long");
  for (int64_t i = 0; i < n; ++i) append(made, *a[0]);
  *out = std::move(made);
}
void copy_list(Args a, size_t, Value* out) {
  Value made = empty_list(kind_of(*a[1]));
  for (int64_t i = 0, n = list_size(*a[0]); i < n; ++i) append(made, list_item(*a[0], i));
  *out = std::move(made);
}
void concat(Args a, size_t, Value* out) {
  Value made = empty_list(kind_of(*a[2]));
  for (const Value* from : {a[0], a[1]})
    for (int64_t i = 0, n = list_size(*from); i < n; ++i) append(made, list_item(*from, i));
  *out = std::move(made);
}
void repeat(Args a, size_t, Value* out) {
  Value made = empty_list(kind_of(*a[2]));
  int64_t times = a[1]->get<int64_t>(), n = list_size(*a[0]);
  FB_CHECK_AS(OutOfMemory, n == 0 || times < (int64_t{1} << 40) / n, "a list repeated ", times,
              " times is too long");
  for (int64_t k = 0; k < times; ++k)
    for (int64_t i = 0; i < n; ++i) append(made, list_item(*a[0], i));
  *out = std::move(made);
}
void reversed_list(Args a, size_t, Value* out) {
  Value made = list_slice(*a[0], list_size(*a[0]) - 1, -1, -1);
  *out = std::move(made);
}
void whole_numbers(int64_t start, int64_t stop, int64_t step, Value* out) {
  FB_CHECK_VALUE(step != 0, "range() arg 3 must not be zero");
  Ints xs;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    xs.push_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  *out = Value(std::move(xs));
}
void range_list(Args a, size_t n, Value* out) {
  auto at = [&](size_t i) { return a[i]->get<int64_t>(); };
  if (n == 1) return whole_numbers(0, at(0), 1, out);
  whole_numbers(at(0), at(1), n == 3 ? at(2) : 1, out);
}
void count_from(Args a, size_t, Value* out) {
  int64_t start = a[0]->get<int64_t>();
  whole_numbers(start, py::plus(start, a[1]->get<int64_t>()), 1, out);
}
void pairs_to_dict(Args a, size_t, Value* out) {
  Value made = make_box<Dict>();
  for (int64_t i = 0, n = list_size(*a[0]); i < n; ++i) {
    Value pair = list_item(*a[0], i);
    const auto& items = expect_box<Tuple>(pair).items;
    FB_CHECK_VALUE(items.size() == 2, "dict: expected pairs, got ", items.size(), " items");
    box_of<Dict>(made)->set(items[0], items[1]);
  }
  *out = std::move(made);
}
void copy_dict(Args a, size_t, Value* out) {
  Value made = make_box<Dict>();
  expect_box<Dict>(*a[0]).each(
      [&](const Value& k, const Value& x) { box_of<Dict>(made)->set(k, x); });
  *out = std::move(made);
}

// -- reading them

void len(Args a, size_t, Value* out) {
  const Value& x = *a[0];
  if (auto* s = x.get_if<std::string>()) {
    *out = Value(length(*s));
  } else if (auto* d = box_of<Dict>(x)) {
    *out = Value(static_cast<int64_t>(d->size()));
  } else if (x.is<Tensor>()) {
    const Tensor& t = defined_tensor(x);
    FB_CHECK_TYPE(t.dim() > 0, "len() of a 0-d tensor");
    *out = Value(t.sizes()[0]);
  } else {
    *out = Value(list_size(x));
  }
}
void getitem(Args a, size_t, Value* out) {
  int64_t i = a[1]->get<int64_t>();
  Value x = list_item(*a[0], place_of(i, list_size(*a[0]), "list index out of range"));
  *out = std::move(x);
}
void part(Args a, size_t, Value* out) {
  const auto& items = expect_box<Tuple>(*a[0]).items;
  auto n = static_cast<int64_t>(items.size());
  Value x = items[static_cast<size_t>(
      place_of(a[1]->get<int64_t>(), n, "tuple index out of range"))];
  *out = std::move(x);
}
void character(Args a, size_t, Value* out) {
  const auto& s = a[0]->get<std::string>();
  int64_t i = place_of(a[1]->get<int64_t>(), length(s), "string index out of range");
  *out = Value(std::string(characters(s, i, i + 1)));
}
void lookup(Args a, size_t, Value* out) {
  const Value* x = expect_box<Dict>(*a[0]).find(*a[1]);
  if (!x) throw MissingKey(*a[1]);
  *out = Value(*x);
}
void getslice(Args a, size_t n, Value* out) {
  Value step = n > 3 ? *a[3] : Value();
  if (auto* s = a[0]->get_if<std::string>()) {
    Span span = span_of(*a[1], *a[2], step, length(*s));
    std::string made;
    if (span.step == 1) {
      made = characters(*s, span.start, std::max(span.start, span.stop));
    } else {
      for (int64_t i = 0, m = span.count(); i < m; ++i) {
        int64_t at = span.start + i * span.step;
        made += characters(*s, at, at + 1);
      }
    }
    *out = Value(std::move(made));
    return;
  }
  Span span = span_of(*a[1], *a[2], step, list_size(*a[0]));
  *out = list_slice(*a[0], span.start, span.stop, span.step);
}
void in_list(Args a, size_t, Value* out) {
  bool found = false;
  for (int64_t i = 0; !found && i < list_size(*a[1]); ++i) {
    Value x = list_item(*a[1], i);
    found = x.same_as(*a[0]) || equal(x, *a[0]);
  }
  out->put(found);
}
void in_dict(Args a, size_t, Value* out) {
  out->put(expect_box<Dict>(*a[1]).find(*a[0]) != nullptr);
}
void in_text(Args a, size_t, Value* out) {
  out->put(py::contains(a[1]->get<std::string>(), a[0]->get<std::string>()));
}
int64_t place_in(const Value& list, const Value& x) {
  for (int64_t i = 0; i < list_size(list); ++i) {
    Value y = list_item(list, i);
    if (y.same_as(x) || equal(y, x)) return i;
  }
  return -1;
}
void count(Args a, size_t, Value* out) {
  int64_t found = 0;
  for (int64_t i = 0; i < list_size(*a[0]); ++i) {
    Value y = list_item(*a[0], i);
    found += y.same_as(*a[1]) || equal(y, *a[1]);
  }
  *out = Value(found);
}
void index(Args a, size_t, Value* out) {
  int64_t i = place_in(*a[0], *a[1]);
  if (i < 0) fail(ErrorKind::Value, repr(*a[1]), " is not in list");
  *out = Value(i);
}
template <bool most>
void extreme_of(Args a, size_t, Value* out) {
  int64_t n = list_size(*a[0]);
  FB_CHECK_VALUE(n > 0, most ? "max" : "min", "() arg is an empty sequence");
  Value best = list_item(*a[0], 0);
  for (int64_t i = 1; i < n; ++i) {
    Value x = list_item(*a[0], i);
    if (most ? less(best, x) : less(x, best)) best = std::move(x);
  }
  *out = std::move(best);
}
void all(Args a, size_t, Value* out) {
  bool on = true;
  for (int64_t i = 0, n = list_size(*a[0]); on && i < n; ++i) on = truth(list_item(*a[0], i));
  out->put(on);
}
void any(Args a, size_t, Value* out) {
  bool on = false;
  for (int64_t i = 0, n = list_size(*a[0]); !on && i < n; ++i) on = truth(list_item(*a[0], i));
  out->put(on);
}
void sum(Args a, size_t, Value* out) {
  Value total(int64_t{0});
  for (int64_t i = 0, n = list_size(*a[0]); i < n; ++i) {
    Value x = list_item(*a[0], i);
    const Value* both[] = {&total, &x};
    core_add(both, 2, &total);
  }
  *out = std::move(total);
}

// -- changing them

void setitem(Args a, size_t, Value* out) {
  int64_t i = a[1]->get<int64_t>();
  list_set(*a[0], place_of(i, list_size(*a[0]), "list assignment index out of range"), *a[2]);
  out->clear();
}
void set_key(Args a, size_t, Value* out) {
  expect_box<Dict>(*a[0]).set(*a[1], *a[2]);
  out->clear();
}
void delitem(Args a, size_t, Value* out) {
  int64_t i = a[1]->get<int64_t>();
  list_take(*a[0], place_of(i, list_size(*a[0]), "list assignment index out of range"));
  out->clear();
}
void del_key(Args a, size_t, Value* out) {
  if (!expect_box<Dict>(*a[0]).erase(*a[1])) throw MissingKey(*a[1]);
  out->clear();
}
void extend(Args a, size_t, Value* out) {
  for (int64_t i = 0, n = list_size(*a[1]); i < n; ++i) append(*a[0], list_item(*a[1], i));
  out->clear();
}
void insert(Args a, size_t, Value* out) {
  int64_t n = list_size(*a[0]), i = a[1]->get<int64_t>();
  if (i < 0) i += n;
  list_insert(*a[0], std::clamp<int64_t>(i, 0, n), *a[2]);
  out->clear();
}
void pop(Args a, size_t n, Value* out) {
  int64_t size = list_size(*a[0]), i = n > 1 ? a[1]->get<int64_t>() : -1;
  FB_CHECK_INDEX(size > 0, "pop from empty list");
  Value x = list_take(*a[0], place_of(i, size, "pop index out of range"));
  *out = std::move(x);
}
void remove(Args a, size_t, Value* out) {
  int64_t i = place_in(*a[0], *a[1]);
  FB_CHECK_VALUE(i >= 0, "list.remove(x): x not in list");
  list_take(*a[0], i);
  out->clear();
}
void clear(Args a, size_t, Value* out) {
  list_clear(*a[0]);
  out->clear();
}
void reverse(Args a, size_t, Value* out) {
  list_assign(*a[0], list_slice(*a[0], list_size(*a[0]) - 1, -1, -1));
  out->clear();
}
Value in_order(const Value& list, bool reverse) {
  Values items;
  for (int64_t i = 0, n = list_size(list); i < n; ++i) items.push_back(list_item(list, i));
  // An order that is none (NaN) must not lead out of the list: merging does not rely on it.
  auto before = [reverse](const Value& x, const Value& y) {
    return reverse ? less(y, x) : less(x, y);
  };
  std::stable_sort(items.begin(), items.end(), before);
  return make_box<List>(std::move(items));
}
void sort(Args a, size_t, Value* out) {
  list_assign(*a[0], in_order(*a[0], a[1]->get<bool>()));
  out->clear();
}
void sorted(Args a, size_t, Value* out) {
  Value made = empty_list(kind_of(*a[2]));
  list_assign(made, in_order(*a[0], a[1]->get<bool>()));
  *out = std::move(made);
}

// -- dicts

void keys(Args a, size_t, Value* out) {
  Value made = empty_list(kind_of(*a[1]));
  expect_box<Dict>(*a[0]).each([&](const Value& k, const Value&) { append(made, k); });
  *out = std::move(made);
}
void values(Args a, size_t, Value* out) {
  Value made = empty_list(kind_of(*a[1]));
  expect_box<Dict>(*a[0]).each([&](const Value&, const Value& x) { append(made, x); });
  *out = std::move(made);
}
void items(Args a, size_t, Value* out) {
  Values made;
  expect_box<Dict>(*a[0]).each([&](const Value& k, const Value& x) {
    Values both;
    both.push_back(k);
    both.push_back(x);
    made.push_back(make_box<Tuple>(std::move(both)));
  });
  *out = make_box<List>(std::move(made));
}
void get(Args a, size_t n, Value* out) {
  const Value* x = expect_box<Dict>(*a[0]).find(*a[1]);
  *out = x ? Value(*x) : n > 2 ? Value(*a[2]) : Value();
}
void pop_key(Args a, size_t n, Value* out) {
  Value x;
  if (!expect_box<Dict>(*a[0]).erase(*a[1], &x)) {
    if (n < 3) throw MissingKey(*a[1]);
    x = *a[2];
  }
  *out = std::move(x);
}
void popitem(Args a, size_t, Value* out) {
  Values both(2);
  if (!expect_box<Dict>(*a[0]).take_last(&both[0], &both[1]))
    throw MissingKey(Value(std::string("popitem(): dictionary is empty")));
  *out = make_box<Tuple>(std::move(both));
}
void setdefault(Args a, size_t, Value* out) {
  Dict& d = expect_box<Dict>(*a[0]);
  if (!d.find(*a[1])) d.set(*a[1], *a[2]);
  *out = Value(*d.find(*a[1]));
}
void update(Args a, size_t, Value* out) {
  Value from = held(*a[1]);
  Dict& to = expect_box<Dict>(*a[0]);
  if (!a[0]->same_as(from))
    expect_box<Dict>(from).each([&](const Value& k, const Value& x) { to.set(k, x); });
  out->clear();
}
void clear_dict(Args a, size_t, Value* out) {
  expect_box<Dict>(*a[0]).clear();
  out->clear();
}

// -- text, and the rest

void add_text(Args a, size_t, Value* out) {
  *out = Value(a[0]->get<std::string>() + a[1]->get<std::string>());
}
void repeat_text(Args a, size_t, Value* out) {
  bool first = a[0]->is<std::string>();
  const auto& s = a[first ? 0 : 1]->get<std::string>();
  int64_t n = a[first ? 1 : 0]->get<int64_t>();
  FB_CHECK_AS(OutOfMemory, s.empty() || n < (int64_t{1} << 40) / static_cast<int64_t>(s.size()),
              "a string repeated ", n, " times is too long");
  std::string made;
  for (int64_t i = 0; i < n; ++i) made += s;
  *out = Value(std::move(made));
}
void join(Args a, size_t, Value* out) {
  std::string made;
  for (int64_t i = 0, n = list_size(*a[1]); i < n; ++i) {
    if (i) made += a[0]->get<std::string>();
    made += list_item(*a[1], i).get<std::string>();
  }
  *out = Value(std::move(made));
}
void startswith(Args a, size_t, Value* out) {
  out->put(a[0]->get<std::string>().starts_with(a[1]->get<std::string>()));
}
void endswith(Args a, size_t, Value* out) {
  out->put(a[0]->get<std::string>().ends_with(a[1]->get<std::string>()));
}
void check(Args a, size_t, Value* out) {
  if (!truth(*a[0])) fail(ErrorKind::Assertion, a[1]->get<std::string>());
  out->clear();
}
void not_none(Args a, size_t, Value* out) {
  FB_CHECK(!a[0]->is_none(), "Unwrapping null optional");
  *out = Value(*a[0]);
}
void of_length(Args a, size_t, Value* out) {
  const Value& xs = *a[0];
  int64_t n = a[1]->get<int64_t>(),
          found = xs.is<std::string>() ? length(xs.get<std::string>()) : list_size(xs);
  FB_CHECK_VALUE(found == n, "zip: strict=True, and lengths ", n, " and ", found);
  *out = Value(xs);
}
void make_slice(Args a, size_t, Value* out) {
  *out = make_box<Slice>(*a[0], *a[1], *a[2]);
}
void make_ellipsis(Args, size_t, Value* out) {
  *out = make_box<Ellipsis>();
}
void nothing(Args, size_t, Value* out) {
  out->clear();
}

constexpr CoreRow kRows[] = {
    {"list", "~", make_list, true}, {"dict", "~", make_dict}, {"filled", "*i", filled, true},
    {"list_of", "l", copy_list, true}, {"list_of", "p", copy_list, true},
    {"copy", "l", copy_list, true}, {"concat_lists", "ll", concat, true},
    {"repeat_list", "li", repeat, true}, {"reversed_list", "l", reversed_list},
    {"range_list", "iii", range_list}, {"range_list", "ii", range_list},
    {"range_list", "i", range_list}, {"count_from", "ii", count_from},
    {"dict_of", "l", pairs_to_dict}, {"dict_of", "d", copy_dict}, {"copy", "d", copy_dict},
    {"len", "s", len}, {"len", "d", len}, {"len", "t", len}, {"len", "l", len}, {"len", "p", len},
    {"getitem", "li", getitem}, {"getitem", "pi", part}, {"getitem", "si", character},
    {"part", "pi", part}, {"lookup", "d*", lookup}, {"getslice", "l**", getslice},
    {"getslice", "l***", getslice}, {"getslice", "s**", getslice}, {"getslice", "s***", getslice},
    {"in_", "*l", in_list}, {"in_", "*p", in_list},
    {"in_", "*d", in_dict}, {"in_", "ss", in_text}, {"count", "l*", count}, {"index", "l*", index},
    {"max_of", "l", extreme_of<true>}, {"min_of", "l", extreme_of<false>}, {"all", "l", all},
    {"any", "l", any}, {"sum", "l", sum}, {"setitem", "li*", setitem}, {"setitem", "d**", set_key},
    {"delitem", "li", delitem}, {"delitem", "d*", del_key}, {"append", "l*", core_append},
    {"extend", "ll", extend}, {"insert", "li*", insert}, {"pop", "l", pop}, {"pop", "li", pop},
    {"remove", "l*", remove}, {"clear", "l", clear}, {"reverse", "l", reverse},
    {"sort", "lb", sort}, {"sorted", "lb", sorted, true}, {"keys", "d", keys, true},
    {"values", "d", values, true}, {"items", "d", items}, {"get", "d*", get}, {"get", "d**", get},
    {"pop", "d*", pop_key}, {"pop", "d**", pop_key}, {"popitem", "d", popitem},
    {"setdefault", "d**", setdefault}, {"update", "dd", update}, {"clear", "d", clear_dict},
    {"add", "ss", add_text}, {"mul", "si", repeat_text}, {"mul", "is", repeat_text},
    {"join", "sl", join}, {"startswith", "ss", startswith}, {"endswith", "ss", endswith},
    {"check", "bs", check}, {"not_none", "*", not_none}, {"of_length", "*i", of_length},
    {"slice", "***", make_slice},
    {"ellipsis", "", make_ellipsis}, {"uninitialized", "", nothing},
};

}  // namespace

std::span<const CoreRow> container_rows() {
  return kRows;
}

ListKind list_kind(const Type& list) {
  static constexpr std::pair<std::string_view, ListKind> named[] = {
      {"Ints", ListKind::Ints},       {"Floats", ListKind::Floats},
      {"Bools", ListKind::Bools},     {"Numbers", ListKind::Numbers},
      {"Tensors", ListKind::Tensors}, {"OptTensors", ListKind::OptTensors}};
  for (auto& [name, kind] : named)
    if (list.base == name) return kind;
  return ListKind::Any;
}

Value empty_list(ListKind k) {
  switch (k) {
    case ListKind::Ints:
      return Value(Ints());
    case ListKind::Floats:
      return Value(std::vector<double>());
    case ListKind::Bools:
      return Value(std::vector<bool>());
    case ListKind::Numbers:
      return Value(std::vector<Scalar>());
    case ListKind::Tensors:
      return Value(Tensors());
    case ListKind::OptTensors:
      return Value(OptTensors());
    case ListKind::Any:
      break;
  }
  return make_box<List>();
}

void core_empty_list(Args a, size_t, Value* out) {
  *out = empty_list(kind_of(*a[0]));
}
void core_append(Args a, size_t, Value* out) {
  append(*a[0], *a[1]);
  out->clear();
}
void core_append_at(Args a, size_t, Value*) {
  const Value* list = expect_box<Dict>(*a[0]).find(*a[1]);
  if (!list) throw MissingKey(*a[1]);
  auto* xs = list->shared_if<Ints>();
  const auto* x = a[2]->get_if<int64_t>();
  if (xs && x)
    xs->push_back(*x);
  else
    append(Value(*list), *a[2]);
}
void core_characters(Args a, size_t, Value* out) {
  const auto& s = a[0]->get<std::string>();
  Values made;
  for (size_t i = 0; i < s.size();) {
    size_t n = characters(std::string_view(s).substr(i), 0, 1).size();
    made.push_back(Value(s.substr(i, n)));
    i += n;
  }
  *out = make_box<List>(std::move(made));
}
void core_unpack(Args a, size_t, Value* out) {
  int64_t wanted = a[1]->get<int64_t>(), n = list_size(*a[0]);
  FB_CHECK_VALUE(n >= wanted, "not enough values to unpack (expected ", wanted, ", got ", n, ")");
  FB_CHECK_VALUE(n <= wanted, "too many values to unpack (expected ", wanted, ")");
  Value list = held(*a[0]);
  for (int64_t i = 0; i < n; ++i) out[i] = list_item(list, i);
}
void core_named_tuple(Args a, size_t n, Value* out) {
  Values items;
  for (size_t i = 1; i < n; ++i) items.push_back(*a[i]);
  *out = make_box<Tuple>(std::move(items), a[0]->get<std::string>());
}
void core_new_object(Args a, size_t, Value* out) {
  *out = make_box<Object>(*static_cast<Object&>(expect_box<Instance>(*a[0])).owner);
}

}  // namespace flambeau::script
