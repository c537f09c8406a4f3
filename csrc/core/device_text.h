// Devices from their names.
#pragma once

#include <string>

#include "core/device.h"

namespace flambeau {

Device parse_device(const std::string& text);  // "cpu", "cuda:1", "meta"

}  // namespace flambeau
