#include "dispatch/op.h"

#include <unordered_map>

namespace flambeau {

Values dispatch_boxed(const OpDesc& op, Values args) {
  Interceptor* mode = modes.top;
  struct Restore {
    Interceptor* mode;
    ~Restore() {
      modes.top = mode;
      ++modes.active;
    }
  } restore{mode};
  modes.top = mode->outer;
  --modes.active;
  return mode->call(op, std::move(args));
}

const OpDesc* find_op(const std::string& uid) {
  static const auto* index = [] {
    auto* map = new std::unordered_map<std::string, const OpDesc*>;
    for (const OpDesc* op : all_ops()) map->emplace(op->uid, op);
    return map;
  }();
  auto it = index->find(uid);
  return it == index->end() ? nullptr : it->second;
}

}  // namespace flambeau
