// Device, Layout, MemoryFormat: small value types shared by all layers.
#pragma once

#include <cstdint>
#include <ostream>

namespace flambeau {

enum class DeviceType : int8_t { CPU, CUDA, Meta };

struct Device {
  DeviceType type = DeviceType::CPU;
  int8_t index = -1;  // -1: the current one
  friend bool operator==(const Device&, const Device&) = default;
};

enum class Layout : int8_t { Strided, SparseCoo, SparseCsr };
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

inline std::ostream& operator<<(std::ostream& out, Device d) {
  out << (d.type == DeviceType::CPU ? "cpu" : d.type == DeviceType::CUDA ? "cuda" : "meta");
  if (d.index >= 0) out << ':' << int(d.index);
  return out;
}

}  // namespace flambeau
