// Device, Layout, MemoryFormat: small value types shared by all layers.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

namespace flambeau {

enum class DeviceType : int8_t { CPU, CUDA, Meta };

class Device {
 public:
  // Index -1: the current one.
  constexpr Device(DeviceType type = DeviceType::CPU, int8_t index = -1) noexcept
      : type_(type), index_(index) {}
  // "cpu", "cuda:1", "meta"; Error(Runtime) for other texts.
  Device(const std::string& text);
  Device(const char* text) : Device(std::string(text)) {}

  constexpr DeviceType type() const noexcept { return type_; }
  constexpr int8_t index() const noexcept { return index_; }
  constexpr bool has_index() const noexcept { return index_ >= 0; }
  constexpr bool is_cpu() const noexcept { return type_ == DeviceType::CPU; }
  constexpr bool is_cuda() const noexcept { return type_ == DeviceType::CUDA; }
  constexpr bool is_meta() const noexcept { return type_ == DeviceType::Meta; }
  std::string str() const;
  friend bool operator==(const Device&, const Device&) = default;

 private:
  DeviceType type_;
  int8_t index_;
};

enum class Layout : int8_t { Strided, SparseCoo, SparseCsr };
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

inline std::ostream& operator<<(std::ostream& out, Device d) {
  out << (d.is_cpu() ? "cpu" : d.is_cuda() ? "cuda" : "meta");
  if (d.has_index()) out << ':' << int(d.index());
  return out;
}

}  // namespace flambeau
