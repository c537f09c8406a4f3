#include "core/devices.h"

#include "core/error.h"

namespace flambeau {

[[noreturn]] static void fail_on_devices(Device expected, Device got) {
  fail(ErrorKind::Runtime, "Tensor on device ", got, " is not on the expected device ", expected,
       "!");
}

void CommonDevice::write(const Tensor& x) {
  if (device_ && x.device().type != device_->type) fail_on_devices(*device_, x.device());
  device_ = x.device();
}

Device device_of(Operands operands) {
  Device found;
  for (const Operand& o : operands)
    o.each([&](const Tensor& x) {
      if (found.type == DeviceType::CPU) found = x.device();
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
  FB_CHECK(out.device().type == result.type, "Attempting to copy from device ", result,
           " to device ", out.device(), ", but cross-device copies are not allowed!");
}

bool truth(const Tensor& x, bool otherwise) {
  bool unknown = x.device().type == DeviceType::Meta || x.has_flag(kWrapper);
  return unknown ? otherwise : x.item().to<bool>();
}

void fail_on_meta(const char* op) {
  fail(ErrorKind::NotImplemented, op,
       "(): the result depends on the values of a tensor on the meta device, which has none");
}

}  // namespace flambeau
