// Classes of a program's own whose objects scripts and Python hold.
//
//   struct Stack : torch::CustomClassHolder {
//     explicit Stack(std::vector<std::string> xs) : items(std::move(xs)) {}
//     void push(std::string x) { items.push_back(std::move(x)); }
//     std::vector<std::string> items;
//   };
//   TORCH_LIBRARY(my_classes, m) {
//     m.class_<Stack>("Stack").def(torch::init<std::vector<std::string>>()).def("push",
//     &Stack::push);
//   }
//
// Python finds it as torch.classes.my_classes.Stack once the library is loaded, scripts call its
// methods, and operations take its objects: each method is an added operation,
// `my_classes::Stack.push`.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "flambeau/library.h"

// Behind it, for it says that this is a program.
#include "script/custom.h"

namespace flambeau {

// The base of classes that `class_` takes. A copy of an object is one of its own.
class CustomClassHolder : public script::CustomObject {
 public:
  CustomClassHolder() = default;
  CustomClassHolder(const CustomClassHolder&) : CustomClassHolder() {}
  CustomClassHolder& operator=(const CustomClassHolder&) { return *this; }
};
using intrusive_ptr_target = CustomClassHolder;

// A pointer to such an object, which counts who holds it.
template <class T>
class intrusive_ptr {
 public:
  using element_type = T;
  intrusive_ptr() noexcept = default;
  intrusive_ptr(std::nullptr_t) noexcept {}
  intrusive_ptr(std::unique_ptr<T> owned) noexcept : ref_(Ref<T>::adopt(owned.release())) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> intrusive_ptr(const intrusive_ptr<U>& o)
  noexcept : ref_(Ref<T>(o.get())) {}
  template <class... A>
  static intrusive_ptr make(A&&... args) {
    return reclaim(new T(std::forward<A>(args)...));
  }
  // Takes over a count of one, as `release` gave it up.
  static intrusive_ptr reclaim(T* owned) noexcept {
    intrusive_ptr out;
    out.ref_ = Ref<T>::adopt(owned);
    return out;
  }
  static intrusive_ptr reclaim_copy(T* shared) noexcept {
    intrusive_ptr out;
    out.ref_ = Ref<T>(shared);
    return out;
  }

  T* get() const noexcept { return ref_.get(); }
  T* operator->() const noexcept { return get(); }
  T& operator*() const noexcept { return *get(); }
  explicit operator bool() const noexcept { return get() != nullptr; }
  bool defined() const noexcept { return get() != nullptr; }
  size_t use_count() const noexcept { return get() ? get()->use_count() : 0; }
  bool unique() const noexcept { return use_count() == 1; }
  void reset() noexcept { ref_ = nullptr; }
  void swap(intrusive_ptr& o) noexcept { std::swap(ref_, o.ref_); }
  T* release() noexcept { return ref_.detach(); }
  friend bool operator==(const intrusive_ptr& a, const intrusive_ptr& b) noexcept {
    return a.get() == b.get();
  }
  friend bool operator<(const intrusive_ptr& a, const intrusive_ptr& b) noexcept {
    return std::less<T*>()(a.get(), b.get());
  }

  // As a value of scripts. Error(Type) where no `class_` was made of T.
  Value as_value() const;

 private:
  Ref<T> ref_;
};
template <class T, class... A>
intrusive_ptr<T> make_intrusive(A&&... args) {
  return intrusive_ptr<T>::make(std::forward<A>(args)...);
}
template <class T, class U>
intrusive_ptr<T> static_intrusive_pointer_cast(const intrusive_ptr<U>& p) noexcept {
  return intrusive_ptr<T>::reclaim_copy(static_cast<T*>(p.get()));
}
template <class T, class U>
intrusive_ptr<T> dynamic_intrusive_pointer_cast(const intrusive_ptr<U>& p) noexcept {
  return intrusive_ptr<T>::reclaim_copy(dynamic_cast<T*>(p.get()));
}

namespace boxed {

const script::CustomClass& class_of(std::type_index type);  // Error(Type): there is none
Value object_value(script::CustomObject* object, std::type_index type);
script::CustomObject* object_of(const Value& v);  // null where it is something else
[[noreturn]] void no_object(const Value& v, std::type_index expected);

template <class T>
struct Type<intrusive_ptr<T>> {
  static std::string name() { return class_of(typeid(T)).full_name(); }
  static intrusive_ptr<T> from(const Value& v) {
    T* object = dynamic_cast<T*>(object_of(v));
    if (!object) no_object(v, typeid(T));
    return intrusive_ptr<T>::reclaim_copy(object);
  }
  static Value to(const intrusive_ptr<T>& x) { return x.as_value(); }
};

}  // namespace boxed

template <class T>
Value intrusive_ptr<T>::as_value() const {
  return get() ? boxed::object_value(get(), typeid(T)) : Value();
}
template <class T>
intrusive_ptr<T> IValue::toCustomClass() const {
  return boxed::Type<intrusive_ptr<T>>::from(*this);
}

// The name of a parameter, and its default: torch::arg("x"), torch::arg("x") = 3.
class arg {
 public:
  explicit arg(std::string name) : name_(std::move(name)) {}
  static arg none(std::string name) {
    arg out(std::move(name));
    out.value_ = IValue();
    return out;
  }
  arg& operator=(const IValue& x) {
    value_ = x;
    return *this;
  }
  const std::string& name() const noexcept { return name_; }
  const std::optional<IValue>& value() const noexcept { return value_; }

 private:
  std::string name_;
  std::optional<IValue> value_;
};

// What makes objects: of the arguments of a constructor, or by a function that gives a pointer.
template <class... A>
struct InitTypes {};
template <class F>
struct InitFunction {
  F function;
};
template <class... A>
InitTypes<A...> init() {
  return {};
}
template <class F>
InitFunction<std::decay_t<F>> init(F&& f) {
  return {std::forward<F>(f)};
}

namespace boxed {

// The part of `class_` that knows no type.
class ClassMaker {
 public:
  ClassMaker(const std::string& space, const std::string& name, std::string doc,
             std::type_index type);

 protected:
  using Args = std::initializer_list<arg>;
  enum class Form { Method, Static, Get, Set };
  void add(const std::string& name, CppFunction f, Form form, std::string doc, Args args);
  script::CustomClass* cls_;
};

// A method as a function of the object.
template <class T, class F>
struct Bound {
  static F of(F f) { return f; }
};
template <class T, class C, class R, class... A>
struct Bound<T, R (C::*)(A...)> {
  static auto of(R (C::*f)(A...)) {
    return [f](const intrusive_ptr<T>& self, A... args) -> R {
      return (self.get()->*f)(std::forward<A>(args)...);
    };
  }
};
template <class T, class C, class R, class... A>
struct Bound<T, R (C::*)(A...) const> {
  static auto of(R (C::*f)(A...) const) {
    return [f](const intrusive_ptr<T>& self, A... args) -> R {
      return (self.get()->*f)(std::forward<A>(args)...);
    };
  }
};

}  // namespace boxed

template <class T>
class class_ : public boxed::ClassMaker {
  static_assert(std::is_base_of_v<CustomClassHolder, T>,
                "class_<T>: T derives from torch::CustomClassHolder");
  template <class F>
  static CppFunction bound(F f) {
    return CppFunction(boxed::Bound<T, std::decay_t<F>>::of(std::move(f)));
  }

 public:
  class_(const std::string& space, const std::string& name, std::string doc = "")
      : ClassMaker(space, name, std::move(doc), typeid(T)) {}

  template <class... A>
  class_& def(InitTypes<A...>, std::string doc = "", Args args = {}) {
    return made_by([](A... given) { return make_intrusive<T>(std::move(given)...); },
                   std::move(doc), args);
  }
  template <class F>
  class_& def(InitFunction<F> made, std::string doc = "", Args args = {}) {
    return made_by(std::move(made.function), std::move(doc), args);
  }
  // A method of the class, or a function whose first parameter is a pointer to the object.
  template <class F>
  class_& def(const std::string& name, F f, std::string doc = "", Args args = {}) {
    add(name, bound(std::move(f)), Form::Method, std::move(doc), args);
    return *this;
  }
  template <class F>
  class_& def_static(const std::string& name, F f, std::string doc = "") {
    add(name, CppFunction(std::move(f)), Form::Static, std::move(doc), {});
    return *this;
  }
  template <class D>
  class_& def_readwrite(const std::string& name, D T::*field) {
    def_readonly(name, field);
    auto set = [field](const intrusive_ptr<T>& self, D x) { self.get()->*field = std::move(x); };
    add(name, CppFunction(set), Form::Set, "", {});
    return *this;
  }
  template <class D>
  class_& def_readonly(const std::string& name, D T::*field) {
    auto get = [field](const intrusive_ptr<T>& self) -> D { return self.get()->*field; };
    add(name, CppFunction(get), Form::Get, "", {});
    return *this;
  }
  template <class Get>
  class_& def_property(const std::string& name, Get get, std::string doc = "") {
    add(name, bound(std::move(get)), Form::Get, std::move(doc), {});
    return *this;
  }
  template <class Get, class Set>
  requires(!std::is_convertible_v<Set, std::string>) class_& def_property(const std::string& name,
                                                                          Get get, Set set,
                                                                          std::string doc = "") {
    def_property(name, std::move(get), std::move(doc));
    add(name, bound(std::move(set)), Form::Set, "", {});
    return *this;
  }
  // What a saved or copied object is made of: `get` gives it, `set` makes an object of it.
  template <class Get, class Set>
  class_& def_pickle(Get get, Set set) {
    add("__getstate__", bound(std::move(get)), Form::Method, "", {});
    add("__setstate__", CppFunction(std::move(set)), Form::Static, "", {});
    return *this;
  }

 private:
  template <class F>
  class_& made_by(F f, std::string doc, Args args) {
    add("__new__", CppFunction(std::move(f)), Form::Static, std::move(doc), args);
    return *this;
  }
};

template <class T>
class_<T> Library::class_(const std::string& name, const std::string& doc) {
  return flambeau::class_<T>(space(), name, doc);
}

// An object as a value of scripts.
template <class T, class... A>
IValue make_custom_class(A&&... args) {
  return IValue(make_intrusive<T>(std::forward<A>(args)...).as_value());
}
template <class T>
bool isCustomClassRegistered() {
  return script::custom_class_of(typeid(T)) != nullptr;
}

namespace jit {
using flambeau::class_;
using flambeau::CustomClassHolder;
using flambeau::init;
}  // namespace jit

}  // namespace flambeau

template <class T>
struct std::hash<flambeau::intrusive_ptr<T>> {
  size_t operator()(const flambeau::intrusive_ptr<T>& p) const noexcept {
    return std::hash<T*>()(p.get());
  }
};
