#include "core/device_text.h"

#include <charconv>

#include "core/error.h"

namespace flambeau {

Device parse_device(const std::string& text) {
  size_t colon = text.find(':');
  std::string kind = text.substr(0, colon);
  Device d;
  if (kind == "cpu")
    d.type = DeviceType::CPU;
  else if (kind == "cuda")
    d.type = DeviceType::CUDA;
  else if (kind == "meta")
    d.type = DeviceType::Meta;
  else
    fail(ErrorKind::Runtime,
         "Expected one of cpu, cuda, meta device type at start of device string: ", text);
  if (colon != std::string::npos) {
    const char *from = text.data() + colon + 1, *to = text.data() + text.size();
    int index = -1;
    auto [end, error] = std::from_chars(from, to, index);
    FB_CHECK(error == std::errc{} && end == to && from != to && index >= 0 && index < 128 &&
                 (*from != '0' || to - from == 1),
             "Invalid device string: '", text, "'");
    d.index = static_cast<int8_t>(index);
  }
  return d;
}

}  // namespace flambeau
