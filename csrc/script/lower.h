// A unit to code. What a function needs and the machine does not have is asked of the owner of the
// program; a function of which a part is left over does not run here at all, nor do those that call
// it.
#pragma once

#include <memory>
#include <optional>

#include "script/code.h"

namespace flambeau::script {

// Says what the owner runs. Nodes are numbered as they stand in the text of a function.
class HostMaker {
 public:
  virtual ~HostMaker() = default;
  // The number by which the host will be called for a node; nothing where it does not run it.
  virtual std::optional<uint32_t> node(const Function& f, size_t place, const Node& n) = 0;
  // The same for a `with`.
  virtual std::optional<uint32_t> context(const Function& f, size_t place, const Node& n) = 0;
  // Objects of the owner's have this attribute, and what it holds is the same for both. May leave
  // something with it for them.
  virtual bool attribute(AttrRef& a) = 0;
};

// The unit has been checked. The host is put into the program by its owner.
std::shared_ptr<Program> lower(Unit unit, HostMaker* maker);

}  // namespace flambeau::script
