#include "core/devices.h"

#include <charconv>

#include "core/error.h"

namespace flambeau {

Device::Device(const std::string& text) : Device(DeviceType::CPU) {
  size_t colon = text.find(':');
  std::string kind = text.substr(0, colon);
  if (kind == "cuda")
    type_ = DeviceType::CUDA;
  else if (kind == "meta")
    type_ = DeviceType::Meta;
  else
    FB_CHECK(kind == "cpu",
             "Expected one of cpu, cuda, meta device type at start of device string: ", text);
  if (colon == std::string::npos) return;
  const char *from = text.data() + colon + 1, *to = text.data() + text.size();
  int index = -1;
  auto [end, error] = std::from_chars(from, to, index);
  FB_CHECK(error == std::errc{} && end == to && from != to && index >= 0 && index < 128 &&
               (*from != '0' || to - from == 1),
           "Invalid device string: '", text, "'");
  index_ = static_cast<int8_t>(index);
}

std::string Device::str() const {
  return join({*this});
}

[[noreturn]] static void fail_on_devices(Device expected, Device got) {
  fail(ErrorKind::Runtime, "Tensor on device ", got, " is not on the expected device ", expected,
       "!");
}

void CommonDevice::write(const Tensor& x) {
  if (device_ && x.device().type() != device_->type()) fail_on_devices(*device_, x.device());
  device_ = x.device();
}

Device device_of(Operands operands) {
  Device found;
  for (const Operand& o : operands)
    o.each([&](const Tensor& x) {
      if (found.type() == DeviceType::CPU) found = x.device();
    });
  return found;
}

bool runs_kernel_elsewhere(Operands written, Operands read) {
  CommonDevice device;
  for (const Operand& o : read) o.each([&](const Tensor& x) { device.read(x); });
  for (const Operand& o : written) o.each([&](const Tensor& x) { device.write(x); });
  return false;
}

void fail_off_cpu(Operands read) {
  fail_on_devices(Device{}, device_of(read));
}

void check_out_device(Device result, const Tensor& out) {
  FB_CHECK(out.device().type() == result.type(), "Attempting to copy from device ", result,
           " to device ", out.device(), ", but cross-device copies are not allowed!");
}

bool truth(const Tensor& x, bool otherwise) {
  bool unknown = x.device().type() == DeviceType::Meta || x.has_flag(kWrapper);
  return unknown ? otherwise : x.item().to<bool>();
}

void fail_on_meta(const char* op) {
  fail(ErrorKind::NotImplemented, op,
       "(): the result depends on the values of a tensor on the meta device, which has none");
}

}  // namespace flambeau
