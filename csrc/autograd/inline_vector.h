// InlineVector: a growable array of movable values whose first N live inside it. Edges and output
// descriptions of nodes are made of it, so that recording an ordinary operation allocates the node
// alone.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace flambeau {

template <class T, uint32_t N>
class InlineVector {
  static_assert(std::is_nothrow_move_constructible_v<T>);

 public:
  InlineVector() noexcept : data_(inline_data()) {}
  InlineVector(const InlineVector&) = delete;
  ~InlineVector() {
    std::destroy_n(data_, size_);
    if (data_ != inline_data()) ::operator delete(data_);
  }

  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  uint32_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T& operator[](size_t i) noexcept { return data_[i]; }
  const T& operator[](size_t i) const noexcept { return data_[i]; }
  T& back() noexcept { return data_[size_ - 1]; }
  const T& at(size_t i) const {
    if (i >= size_) throw std::out_of_range("InlineVector::at");
    return data_[i];
  }

  void push_back(T x) { emplace_back(std::move(x)); }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) reserve(2 * capacity_);
    return *new (data_ + size_++) T{std::forward<Args>(args)...};
  }
  void reserve(uint32_t n) {
    if (n <= capacity_) return;
    T* fresh = static_cast<T*>(::operator new(n * sizeof(T)));
    std::uninitialized_move_n(data_, size_, fresh);
    std::destroy_n(data_, size_);
    if (data_ != inline_data()) ::operator delete(data_);
    data_ = fresh, capacity_ = n;
  }
  void clear() noexcept {
    std::destroy_n(data_, size_);
    size_ = 0;
  }

 private:
  T* inline_data() noexcept { return reinterpret_cast<T*>(inline_); }

  T* data_;
  uint32_t size_ = 0, capacity_ = N;
  alignas(T) unsigned char inline_[N * sizeof(T)];
};

}  // namespace flambeau
