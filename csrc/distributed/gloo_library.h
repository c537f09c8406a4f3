// Gloo, when it was there at build time and is there now: csrc/gloo, a library of its own beside
// this one, opened on first use. csrc/gloo/collectives.cpp says what the functions do.
#pragma once

#include <cstdint>

namespace flambeau::distributed {

inline constexpr uint64_t kGlooErrorBytes = 512;

struct GlooLibrary {
  void* (*make)(int rank, int size, const char* host, int64_t connect_ms, char* error);
  void (*free)(void* handle);
  uint64_t (*address)(void* handle, int r, char* out, uint64_t most);
  bool (*connect)(void* handle, int r, const char* address, uint64_t bytes, char* error);
  void (*abort)(void* handle);
  bool (*all_to_all)(void* handle, char* in, const uint64_t* in_bytes, char* out,
                     const uint64_t* out_bytes, uint32_t tag, int64_t ms, char* error);
  bool (*all_gather)(void* handle, char* in, uint64_t in_bytes, char* out,
                     const uint64_t* out_bytes, uint32_t tag, int64_t ms, char* error);
  bool (*broadcast)(void* handle, char* data, uint64_t bytes, int root, uint32_t tag, int64_t ms,
                    char* error);
  bool (*gather)(void* handle, char* in, uint64_t bytes, char* out, int root, uint32_t tag,
                 int64_t ms, char* error);
  bool (*scatter)(void* handle, char* const* in, uint64_t bytes, char* out, int root, uint32_t tag,
                  int64_t ms, char* error);
};

// Null where it is missing.
const GlooLibrary* gloo_library();

}  // namespace flambeau::distributed
