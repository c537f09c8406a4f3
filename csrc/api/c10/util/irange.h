// Whole numbers from 0, or from one to another, for loops: for (auto i : c10::irange(n)).
#pragma once

#include "torch/all.h"

namespace flambeau {

template <class T>
class IntegerRange {
 public:
  struct iterator {
    T at;
    T operator*() const { return at; }
    iterator& operator++() { return ++at, *this; }
    bool operator==(const iterator&) const = default;
  };
  IntegerRange(T begin, T end) : begin_(begin), end_(end < begin ? begin : end) {}
  iterator begin() const { return {begin_}; }
  iterator end() const { return {end_}; }

 private:
  T begin_, end_;
};
template <class T>
IntegerRange<T> irange(T end) {
  return {T(), end};
}
template <class A, class B>
IntegerRange<B> irange(A begin, B end) {
  return {static_cast<B>(begin), end};
}

}  // namespace flambeau
