// CRC-32 as zip archives have it (ISO 3309, reflected polynomial 0xedb88320).
#pragma once

#include <cstddef>
#include <cstdint>

namespace flambeau::files {

// The checksum of what had `crc` followed by these bytes; 0 begins.
uint32_t crc32(uint32_t crc, const void* data, size_t size);

}  // namespace flambeau::files
