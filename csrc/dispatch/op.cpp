#include "dispatch/op.h"

#include <unordered_map>

#include "dispatch/autocast.h"

namespace flambeau {

Value::Value() = default;
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

Values dispatch_boxed(const OpDesc& op, Values args) {
  if (autocast_enabled() && op.autocast != Autocast::None)
    return autocast_call(op, std::move(args));
  if (!intercepted()) return op.call(args);
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

template class std::vector<flambeau::Value>;
