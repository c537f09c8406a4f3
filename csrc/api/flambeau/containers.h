// c10::List and c10::Dict: what scripts take and give as lists and dicts.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "flambeau/ivalue.h"

namespace flambeau {

// A list of values of one type. A copy is a list of its own.
template <class T>
class List : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  List(const std::vector<T>& xs) : std::vector<T>(xs) {}
  List(std::vector<T>&& xs) noexcept : std::vector<T>(std::move(xs)) {}
  explicit List(ArrayRef<T> xs) : std::vector<T>(xs.begin(), xs.end()) {}
  // Error(Index) behind the end.
  T get(size_t i) const {
    check(i);
    return (*this)[i];
  }
  void set(size_t i, T x) {
    check(i);
    (*this)[i] = std::move(x);
  }
  T extract(size_t i) const { return get(i); }
  std::vector<T> vec() const { return *this; }
  List copy() const { return *this; }
  void append(List xs) { this->insert(this->end(), xs.begin(), xs.end()); }
  operator ArrayRef<T>() const
    requires(!std::is_same_v<T, bool>)
  {
    return ArrayRef<T>(this->data(), this->size());
  }

 private:
  void check(size_t i) const {
    FB_CHECK_INDEX(i < this->size(), "List: index ", i, " is out of range for ", this->size(),
                   " elements");
  }
};

// How keys of a dict are found.
template <class K>
struct DictKey {
  static size_t hash(const K& key) { return std::hash<K>()(key); }
  static bool same(const K& a, const K& b) { return a == b; }
};
template <>
struct DictKey<Tensor> {  // by identity, as Python's
  static size_t hash(const Tensor& key) { return std::hash<const void*>()(key.impl()); }
  static bool same(const Tensor& a, const Tensor& b) { return a.is_same(b); }
};
template <>
struct DictKey<IValue> {
  static size_t hash(const IValue& key);
  static bool same(const IValue& a, const IValue& b);
};

// Keys and values in the order in which they were put in. Copies refer to the same dict.
template <class K, class V>
class Dict {
 public:
  struct Entry : std::pair<K, V> {
    using std::pair<K, V>::pair;
    const K& key() const noexcept { return this->first; }
    const V& value() const noexcept { return this->second; }
    void setValue(V x) { this->second = std::move(x); }
  };
  using iterator = typename std::vector<Entry>::iterator;

  Dict() : state_(std::make_shared<State>()) {}

  // The second: was it put in? `insert` keeps what there is, `insert_or_assign` replaces it.
  std::pair<iterator, bool> insert(K key, V x) const {
    return put(std::move(key), std::move(x), false);
  }
  std::pair<iterator, bool> insert_or_assign(K key, V x) const {
    return put(std::move(key), std::move(x), true);
  }
  iterator find(const K& key) const {
    auto [from, to] = state_->places.equal_range(DictKey<K>::hash(key));
    for (; from != to; ++from)
      if (DictKey<K>::same(state_->entries[from->second].first, key))
        return begin() + static_cast<std::ptrdiff_t>(from->second);
    return end();
  }
  bool contains(const K& key) const { return find(key) != end(); }
  // Error(Key) where there is none.
  V& at(const K& key) const {
    auto found = find(key);
    FB_CHECK_AS(Key, found != end(), "Dict: there is no such key");
    return found->second;
  }
  size_t erase(const K& key) const {
    auto found = find(key);
    if (found == end()) return 0;
    state_->entries.erase(found);
    state_->places.clear();
    for (size_t i = 0; i < size(); ++i)
      state_->places.emplace(DictKey<K>::hash(state_->entries[i].first), i);
    return 1;
  }
  void clear() const {
    state_->entries.clear();
    state_->places.clear();
  }
  void reserve(size_t n) const { state_->entries.reserve(n); }
  size_t size() const noexcept { return state_->entries.size(); }
  bool empty() const noexcept { return size() == 0; }
  Dict copy() const {
    Dict out;
    *out.state_ = *state_;
    return out;
  }
  iterator begin() const noexcept { return state_->entries.begin(); }
  iterator end() const noexcept { return state_->entries.end(); }

 private:
  struct State {
    std::vector<Entry> entries;
    std::unordered_multimap<size_t, size_t> places;
  };
  std::pair<iterator, bool> put(K key, V x, bool replace) const {
    if (auto found = find(key); found != end()) {
      if (replace) found->second = std::move(x);
      return {found, false};
    }
    state_->places.emplace(DictKey<K>::hash(key), size());
    state_->entries.emplace_back(std::move(key), std::move(x));
    return {end() - 1, true};
  }
  std::shared_ptr<State> state_;
};
using GenericDict = Dict<IValue, IValue>;
using GenericList = List<IValue>;

template <class T>
IValue::IValue(const List<T>& xs) : IValue(static_cast<const std::vector<T>&>(xs)) {}
template <class K, class V>
IValue::IValue(const Dict<K, V>& xs) {
  std::vector<std::pair<IValue, IValue>> pairs;
  for (const auto& e : xs) pairs.emplace_back(IValue(e.key()), IValue(e.value()));
  *this = of_pairs(std::move(pairs));
}
inline GenericList IValue::toList() const {
  return toListRef();
}

namespace impl {
using flambeau::GenericDict;
using flambeau::GenericList;
}  // namespace impl

}  // namespace flambeau
