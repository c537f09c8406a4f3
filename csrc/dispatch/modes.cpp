#include "dispatch/modes.h"

namespace flambeau {

thread_local constinit Modes modes{};

}  // namespace flambeau
