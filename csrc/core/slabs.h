// Blocks of some pages, cut out of slabs that lie in huge pages: a model's weights and activations
// of this size would else be spread over thousands of small pages, whose translations cost as much
// as reading them. Invariant: free ranges neither overlap nor touch, and a slab that is free as a
// whole is unmapped. Not locked: the cache that owns it is (allocator.cpp).
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace flambeau {

class Slabs {
 public:
  static constexpr size_t kPage = 4096, kHuge = size_t{1} << 21, kSlab = size_t{1} << 24;

  // A block of `bytes`, a multiple of kPage and at most kHuge; nullptr when there is no memory.
  void* allocate(size_t bytes) noexcept;
  void free(void* p, size_t bytes) noexcept;

 private:
  bool grow();
  void insert(char* at, size_t bytes);
  void erase(char* at, size_t bytes);

  std::map<char*, size_t> free_;  // by address
  std::set<std::pair<size_t, char*>>
      by_size_;                   // the same, the smallest that fits at the lowest address
  std::map<char*, char*> slabs_;  // first byte -> last byte + 1
};

}  // namespace flambeau
