// SmallVector: a growable array of trivial values whose first N live inside it. Shapes and strides
// are made of it, so that tensors of ordinary rank need no second allocation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <new>
#include <type_traits>
#include <vector>

namespace flambeau {

template <class T, unsigned N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() noexcept : data_(inline_), size_(0), capacity_(N) {}
  explicit SmallVector(size_t n, T value = T()) : SmallVector() { resize(n, value); }
  SmallVector(std::initializer_list<T> xs) : SmallVector() { append(xs.begin(), xs.end()); }
  SmallVector(const std::vector<T>& xs) : SmallVector() { append(xs.begin(), xs.end()); }
  template <class It, class = typename std::iterator_traits<It>::iterator_category>
  SmallVector(It first, It last) : SmallVector() {
    append(first, last);
  }
  SmallVector(const SmallVector& o) : SmallVector() { append(o.begin(), o.end()); }
  SmallVector(SmallVector&& o) noexcept : SmallVector() { steal(o); }
  ~SmallVector() { release(); }

  SmallVector& operator=(const SmallVector& o) {
    if (this != &o) {
      size_ = 0;
      append(o.begin(), o.end());
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& o) noexcept {
    if (this != &o) {
      release();
      data_ = inline_, size_ = 0, capacity_ = N;
      steal(o);
    }
    return *this;
  }

  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  auto rbegin() const noexcept { return std::reverse_iterator(end()); }
  auto rend() const noexcept { return std::reverse_iterator(begin()); }
  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T& operator[](size_t i) noexcept { return data_[i]; }
  const T& operator[](size_t i) const noexcept { return data_[i]; }
  T& front() noexcept { return data_[0]; }
  const T& front() const noexcept { return data_[0]; }
  T& back() noexcept { return data_[size_ - 1]; }
  const T& back() const noexcept { return data_[size_ - 1]; }
  std::vector<T> vec() const { return {begin(), end()}; }

  void push_back(T x) {
    if (size_ == capacity_) grow(size_ + 1);
    data_[size_++] = x;
  }
  void pop_back() noexcept { --size_; }
  void clear() noexcept { size_ = 0; }
  void reserve(size_t n) {
    if (n > capacity_) grow(n);
  }
  void resize(size_t n, T value = T()) {
    reserve(n);
    for (size_t i = size_; i < n; ++i) data_[i] = value;
    size_ = static_cast<uint32_t>(n);
  }
  void insert(const T* at, T x) {
    size_t i = at - data_;
    push_back(x);
    std::rotate(data_ + i, data_ + size_ - 1, data_ + size_);
  }
  void erase(const T* at) {
    size_t i = at - data_;
    std::memmove(data_ + i, data_ + i + 1, (size_ - i - 1) * sizeof(T));
    --size_;
  }
  template <class It>
  void append(It first, It last) {
    reserve(size_ + std::distance(first, last));
    for (; first != last; ++first) data_[size_++] = *first;
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) noexcept {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  void release() noexcept {
    if (data_ != inline_) std::free(data_);
  }
  void steal(SmallVector& o) noexcept {
    if (o.data_ == o.inline_) {
      std::memcpy(static_cast<void*>(inline_), o.inline_, o.size_ * sizeof(T));
    } else {
      data_ = o.data_, capacity_ = o.capacity_;
      o.data_ = o.inline_, o.capacity_ = N;
    }
    size_ = o.size_;
    o.size_ = 0;
  }
  void grow(size_t n) {
    size_t capacity = std::max<size_t>(n, 2 * capacity_);
    T* fresh = static_cast<T*>(std::malloc(capacity * sizeof(T)));
    if (!fresh) throw std::bad_alloc();
    std::memcpy(static_cast<void*>(fresh), data_, size_ * sizeof(T));
    release();
    data_ = fresh, capacity_ = static_cast<uint32_t>(capacity);
  }

  T* data_;
  uint32_t size_, capacity_;
  T inline_[N];
};

using Ints = SmallVector<int64_t, 6>;

}  // namespace flambeau
