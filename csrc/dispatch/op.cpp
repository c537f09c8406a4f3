#include "dispatch/op.h"

#include <unordered_map>

#include "core/error.h"
#include "core/small_vector.h"
#include "dispatch/autocast.h"
#include "dispatch/registry.h"

namespace flambeau {

Values call_op(const OpDesc& op, const Values& args) {
  FB_CHECK(args.size() == op.params.size(), op.uid, ": expected ", op.params.size(),
           " arguments, got ", args.size());
  SmallVector<const Value*, 16> places;
  for (const Value& v : args) places.push_back(&v);
  Values results(op.returns.size());
  op.call(op, places.data(), results.data());
  return results;
}

Values dispatch_boxed(const OpDesc& op, Values args) {
  if (autocast_enabled() && op.autocast != Autocast::None)
    return autocast_call(op, std::move(args));
  if (!intercepted()) return call_op(op, args);
  Interceptor* mode = modes.top;
  struct Restore {
    Interceptor* mode;
    ~Restore() {
      modes.top = mode;
      modes.active += kIntercept;
    }
  } restore{mode};
  modes.top = mode->outer;
  modes.active -= kIntercept;
  return mode->call(op, std::move(args));
}

Callee find_callee(std::string_view uid) {
  static const auto* index = [] {
    auto* map = new std::unordered_map<std::string_view, Callee>;
    for (const OpDesc* op : all_ops()) {
      map->emplace(op->uid, Callee{op, op->call});
      if (op->inplace) map->emplace(op->inplace_uid, Callee{op, op->inplace});
    }
    return map;
  }();
  if (auto it = index->find(uid); it != index->end()) return it->second;
  const OpDesc* added = uid.find("::") == uid.npos ? nullptr : find_added_op(uid);
  return added ? Callee{added, added->call} : Callee{};
}

const OpDesc* find_op(std::string_view uid) {
  Callee found = find_callee(uid);
  return found.op && found.call == found.op->call ? found.op : nullptr;
}

}  // namespace flambeau
