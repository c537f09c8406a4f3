#include "script/custom.h"

#include <deque>
#include <mutex>
#include <unordered_map>

namespace flambeau::script {

namespace {

struct All {
  std::mutex mutex;
  std::deque<CustomClass> classes;
  std::unordered_map<std::type_index, const CustomClass*> by_type;
};
All& all() {
  static auto* a = new All;  // threads may outlive it
  return *a;
}

}  // namespace

CustomClass& add_custom_class(std::type_index type, CustomClass made) {
  All& a = all();
  std::lock_guard guard(a.mutex);
  FB_CHECK(!a.by_type.contains(type), "class_(\"", made.name, "\"): the type is that of the class ",
           a.by_type.at(type)->full_name(), " already");
  for (const CustomClass& c : a.classes)
    FB_CHECK(c.full_name() != made.full_name(), "class_(\"", made.name,
             "\"): there is a class of that name in ", made.space, " already");
  CustomClass& out = a.classes.emplace_back(std::move(made));
  a.by_type.emplace(type, &out);
  return out;
}

const CustomClass* custom_class_of(std::type_index type) {
  All& a = all();
  std::lock_guard guard(a.mutex);
  auto found = a.by_type.find(type);
  return found == a.by_type.end() ? nullptr : found->second;
}

const CustomClass* find_custom_class(std::string_view full_name) {
  All& a = all();
  std::lock_guard guard(a.mutex);
  for (const CustomClass& c : a.classes)
    if (c.full_name() == full_name) return &c;
  return nullptr;
}

std::vector<const CustomClass*> custom_classes() {
  All& a = all();
  std::lock_guard guard(a.mutex);
  std::vector<const CustomClass*> out;
  for (const CustomClass& c : a.classes) out.push_back(&c);
  return out;
}

}  // namespace flambeau::script
