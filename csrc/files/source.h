// Bytes that are read by position: a file's, or those in memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flambeau::files {

class Source {
 public:
  virtual ~Source() = default;
  virtual uint64_t size() const = 0;
  // Reads up to `count` bytes from `at` on, fewer at the end alone; Error(Runtime) on failure.
  virtual size_t read(uint64_t at, void* to, size_t count) const = 0;
};

class FileSource final : public Source {
 public:
  explicit FileSource(int descriptor);  // which stays the caller's
  uint64_t size() const override { return size_; }
  size_t read(uint64_t at, void* to, size_t count) const override;

 private:
  int descriptor_;
  uint64_t size_;
};

class MemorySource final : public Source {
 public:
  MemorySource(const void* data, size_t size)
      : data_(static_cast<const unsigned char*>(data)), size_(size) {}
  uint64_t size() const override { return size_; }
  size_t read(uint64_t at, void* to, size_t count) const override;

 private:
  const unsigned char* data_;
  size_t size_;
};

// Reads a range and gives its checksum; Error(Runtime) where the source ends before it.
uint32_t read_checked(const Source& from, uint64_t at, void* to, size_t size);

}  // namespace flambeau::files
