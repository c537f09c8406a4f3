// What the running engine wants, as far as nodes that stand for others must tell it.
#pragma once

#include "autograd/node.h"

namespace flambeau {

// While it lives, edges to `node` are wanted on this thread when those to `stand_in` are.
class WantedAlias {
 public:
  WantedAlias(Node* node, Node* stand_in);
  ~WantedAlias();
  WantedAlias(const WantedAlias&) = delete;

  Node* const node;
  Node* const stand_in;
  WantedAlias* const outer;
};

}  // namespace flambeau
