#include "script/constants.h"

#include <charconv>

namespace flambeau::script {

std::optional<Value> named_constant(std::string_view name) {
  struct Row {
    std::string_view short_name, name;
    DType dtype;
  };
  static constexpr Row rows[] = {
      {"bool", "bool_", DType::Bool},        {"u8", "uint8", DType::UInt8},
      {"i8", "int8", DType::Int8},           {"i16", "int16", DType::Int16},
      {"i32", "int32", DType::Int32},        {"i64", "int64", DType::Int64},
      {"u16", "uint16", DType::UInt16},      {"u32", "uint32", DType::UInt32},
      {"u64", "uint64", DType::UInt64},      {"f16", "float16", DType::Float16},
      {"bf16", "bfloat16", DType::BFloat16}, {"f32", "float32", DType::Float32},
      {"f64", "float64", DType::Float64},    {"c64", "complex64", DType::Complex64},
      {"c128", "complex128", DType::Complex128}};
  for (const Row& r : rows)
    if (r.short_name == name || r.name == name) return Value(r.dtype);
  if (name == "contiguous_format") return Value(MemoryFormat::Contiguous);
  if (name == "preserve_format") return Value(MemoryFormat::Preserve);
  if (name == "channels_last") return Value(MemoryFormat::ChannelsLast);
  if (name == "channels_last_3d") return Value(MemoryFormat::ChannelsLast3d);
  if (name == "strided" || name == "strided_layout") return Value(Layout::Strided);
  return std::nullopt;
}

std::optional<Device> device_named(std::string_view text) {
  size_t colon = text.find(':');
  std::string_view kind = text.substr(0, colon);
  int index = -1;
  if (colon != text.npos) {
    std::string_view number = text.substr(colon + 1);
    auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
    if (error != std::errc() || end != number.data() + number.size() || index < 0 || index > 127)
      return std::nullopt;
  }
  auto of = [index](DeviceType t) { return Device{t, static_cast<int8_t>(index)}; };
  if (kind == "cpu") return of(DeviceType::CPU);
  if (kind == "cuda") return of(DeviceType::CUDA);
  if (kind == "meta") return of(DeviceType::Meta);
  return std::nullopt;
}

std::optional<Value> constant(const Arg& a) {
  switch (a.kind) {
    case Arg::Kind::None:
      return Value();
    case Arg::Kind::Bool:
      return Value(a.whole != 0);
    case Arg::Kind::Int:
      return Value(a.whole);
    case Arg::Kind::Float:
      return Value(a.real);
    case Arg::Kind::Complex:
      return Value(complex128(a.real, a.imag));
    case Arg::Kind::Str:
      return Value(a.text);
    case Arg::Kind::Device:
      if (std::optional<Device> d = device_named(a.text)) return Value(*d);
      return std::nullopt;
    case Arg::Kind::Name:
      return named_constant(a.text);
    case Arg::Kind::Tuple: {
      Values items;
      for (const Arg& x : a.items) {
        std::optional<Value> item = constant(x);
        if (!item) return std::nullopt;
        items.push_back(*std::move(item));
      }
      return make_box<Tuple>(std::move(items));
    }
    default:
      return std::nullopt;
  }
}

}  // namespace flambeau::script
