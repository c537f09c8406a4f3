// OrderedDict: keys and values in the order in which they were put in.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

namespace flambeau {

template <class Key, class Value>
class OrderedDict {
 public:
  class Item {
   public:
    Item(Key key, Value value) : pair_(std::move(key), std::move(value)) {}
    const Key& key() const noexcept { return pair_.first; }
    Value& value() noexcept { return pair_.second; }
    const Value& value() const noexcept { return pair_.second; }
    Value& operator*() noexcept { return pair_.second; }
    const Value& operator*() const noexcept { return pair_.second; }
    Value* operator->() noexcept { return &pair_.second; }
    const Value* operator->() const noexcept { return &pair_.second; }
    const std::pair<Key, Value>& pair() const noexcept { return pair_; }

   private:
    std::pair<Key, Value> pair_;
  };

  explicit OrderedDict(std::string key_description = "Key") : what_(std::move(key_description)) {}
  OrderedDict(std::initializer_list<Item> items) : what_("Key") {
    for (const Item& item : items) insert(item.key(), item.value());
  }

  auto begin() noexcept { return items_.begin(); }
  auto end() noexcept { return items_.end(); }
  auto begin() const noexcept { return items_.begin(); }
  auto end() const noexcept { return items_.end(); }
  size_t size() const noexcept { return items_.size(); }
  bool is_empty() const noexcept { return items_.empty(); }
  Item& front() { return items_.front(); }
  Item& back() { return items_.back(); }
  const Item& front() const { return items_.front(); }
  const Item& back() const { return items_.back(); }

  Value* find(const Key& key) noexcept {
    for (Item& item : items_)
      if (item.key() == key) return &item.value();
    return nullptr;
  }
  const Value* find(const Key& key) const noexcept {
    return const_cast<OrderedDict*>(this)->find(key);
  }
  bool contains(const Key& key) const noexcept { return find(key) != nullptr; }
  Value& operator[](const Key& key) {
    Value* value = find(key);
    FB_CHECK_AS(Key, value, what_, " '", key, "' is not defined");
    return *value;
  }
  const Value& operator[](const Key& key) const { return (*const_cast<OrderedDict*>(this))[key]; }
  Item& operator[](size_t i) {
    FB_CHECK_INDEX(i < items_.size(), "Index ", i, " is out of bounds");
    return items_[i];
  }
  const Item& operator[](size_t i) const { return (*const_cast<OrderedDict*>(this))[i]; }

  template <class K, class V>
  Value& insert(K&& key, V&& value) {
    FB_CHECK_AS(Key, !contains(key), what_, " '", key, "' already defined");
    items_.emplace_back(std::forward<K>(key), std::forward<V>(value));
    return items_.back().value();
  }
  void update(const OrderedDict& other) {
    for (const Item& item : other) insert(item.key(), item.value());
  }
  void erase(const Key& key) {
    FB_CHECK_AS(Key, contains(key), what_, " '", key, "' is not defined");
    std::erase_if(items_, [&](const Item& item) { return item.key() == key; });
  }
  void clear() { items_.clear(); }

  std::vector<Key> keys() const {
    std::vector<Key> out;
    for (const Item& item : items_) out.push_back(item.key());
    return out;
  }
  std::vector<Value> values() const {
    std::vector<Value> out;
    for (const Item& item : items_) out.push_back(item.value());
    return out;
  }
  const std::vector<Item>& items() const noexcept { return items_; }
  std::vector<std::pair<Key, Value>> pairs() const {
    std::vector<std::pair<Key, Value>> out;
    for (const Item& item : items_) out.push_back(item.pair());
    return out;
  }

 private:
  std::string what_;
  std::vector<Item> items_;
};

}  // namespace flambeau
