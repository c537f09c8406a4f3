// Operations of a program's own, added while it starts, as the table's are: called, differentiated,
// batched, compiled, and found by Python under torch.ops once the library is loaded.
//
//   TORCH_LIBRARY(space, m) { m.def("scale(Tensor x, float by=2.) -> Tensor"); }
//   TORCH_LIBRARY_IMPL(space, CPU, m) { m.impl("scale", &scale); }
#pragma once

#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>

#include "flambeau/flambeau.h"

// Behind it, for it says that this is a program.
#include "dispatch/boxing.h"
#include "dispatch/registry.h"

namespace flambeau {

// Where a kernel is used. `CompositeImplicitAutograd` (also what `def` with a function registers)
// is made of other operations, which are recorded; kernels of a device are not.
enum class DispatchKey : uint8_t {
  CPU,
  CUDA,
  Meta,
  Autograd,
  AutogradCPU,
  AutogradCUDA,
  AutocastCPU,
  Autocast,
  CompositeExplicitAutograd,
  CompositeImplicitAutograd,
  CatchAll
};

namespace boxed {

// Of C++ types of a kernel: how the schema writes them, and how they come from a Value.
template <class T>
struct Type;
#define FB_TYPE(T, word)                                               \
  template <>                                                          \
  struct Type<T> {                                                     \
    static std::string name() { return word; }                         \
    static decltype(auto) from(const Value& v) { return unbox<T>(v); } \
  }
FB_TYPE(Tensor, "Tensor");
FB_TYPE(int64_t, "int");
FB_TYPE(bool, "bool");
FB_TYPE(std::string, "str");
FB_TYPE(Scalar, "Scalar");
FB_TYPE(DType, "ScalarType");
FB_TYPE(Device, "Device");
FB_TYPE(Layout, "Layout");
FB_TYPE(MemoryFormat, "MemoryFormat");
FB_TYPE(Generator, "Generator");
FB_TYPE(std::vector<Tensor>, "Tensor[]");
FB_TYPE(std::vector<OptTensor>, "Tensor?[]");
FB_TYPE(std::vector<double>, "float[]");
FB_TYPE(std::vector<bool>, "bool[]");
FB_TYPE(std::vector<Scalar>, "Scalar[]");
FB_TYPE(Ints, "int[]");
#undef FB_TYPE
template <>
struct Type<double> {
  static std::string name() { return "float"; }
  static double from(const Value& v) { return v.number().to_double(); }
};
template <>
struct Type<std::string_view> : Type<std::string> {};
template <>
struct Type<std::vector<int64_t>> : Type<Ints> {
  static std::vector<int64_t> from(const Value& v) { return v.get<Ints>().vec(); }
};
template <>
struct Type<IntArrayRef> : Type<Ints> {};
template <>
struct Type<TensorList> : Type<std::vector<Tensor>> {};
template <>
struct Type<ArrayRef<double>> : Type<std::vector<double>> {};
template <class T>
struct Type<std::optional<T>> {
  static std::string name() { return Type<T>::name() + "?"; }
  static std::optional<T> from(const Value& v) {
    if (v.is_none()) return std::nullopt;
    return std::optional<T>(Type<T>::from(v));
  }
};

template <class T>
Value value_of(T x);

// What the table has no type for: lists of anything, dicts, tuples.
template <>
struct Type<IValue> {
  static std::string name() { return "Any"; }
  static IValue from(const Value& v) { return IValue(v); }
  static Value to(const IValue& x) { return x; }
};
template <class T>
struct Type<std::vector<T>> {
  static std::string name() { return Type<T>::name() + "[]"; }
  static std::vector<T> from(const Value& v) {
    std::vector<T> out;
    for (const IValue& x : IValue(v).toListRef()) out.push_back(T(Type<T>::from(x)));
    return out;
  }
  static Value to(const std::vector<T>& xs) {
    std::vector<IValue> out;
    for (const T& x : xs) out.push_back(IValue(value_of(x)));
    return IValue::of_list(out);
  }
};
template <class T>
struct Type<List<T>> {
  static std::string name() { return Type<std::vector<T>>::name(); }
  static List<T> from(const Value& v) { return List<T>(Type<std::vector<T>>::from(v)); }
  static Value to(const List<T>& xs) { return value_of(xs.vec()); }
};
template <class Map, class K, class T>
struct MapType {
  static std::string name() {
    return "Dict(" + Type<K>::name() + ", " + Type<T>::name() + ")";
  }
  static Map from(const Value& v) {
    Map out;
    for (const auto& pair : IValue(v).toGenericDict())
      out.insert_or_assign(K(Type<K>::from(pair.first)), T(Type<T>::from(pair.second)));
    return out;
  }
  static Value to(const Map& xs) {
    std::vector<std::pair<IValue, IValue>> out;
    for (const auto& [key, x] : xs) out.emplace_back(value_of(K(key)), value_of(T(x)));
    return IValue::of_pairs(std::move(out));
  }
};
template <class K, class T>
struct Type<Dict<K, T>> : MapType<Dict<K, T>, K, T> {};
template <class K, class T>
struct Type<std::unordered_map<K, T>> : MapType<std::unordered_map<K, T>, K, T> {};
template <class K, class T>
struct Type<std::map<K, T>> : MapType<std::map<K, T>, K, T> {};
template <class... T>
struct Type<std::tuple<T...>> {
  static std::string name() {
    std::string out;
    ((out += (out.empty() ? "(" : ", ") + Type<T>::name()), ...);
    return out + ")";
  }
  static std::tuple<T...> from(const Value& v) {
    const auto items = IValue(v).toTuple()->elements();
    FB_CHECK_TYPE(items.size() == sizeof...(T), "expected a tuple of ", sizeof...(T), ", got one of ",
                  items.size());
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple<T...>(T(Type<T>::from(items[I]))...);
    }(std::index_sequence_for<T...>());
  }
  static Value to(const std::tuple<T...>& xs) {
    return std::apply(
        [](const auto&... x) { return IValue::of_tuple({IValue(value_of(x))...}); }, xs);
  }
};

template <class T>
Value value_of(T x) {
  if constexpr (requires { Type<T>::to(x); })
    return Type<T>::to(x);
  else if constexpr (requires { typename T::value_type; *x; x.has_value(); })
    return x.has_value() ? value_of<typename T::value_type>(*std::move(x)) : Value();
  else if constexpr (std::is_same_v<T, std::vector<int64_t>>)
    return Value(Ints(x));
  else if constexpr (std::is_same_v<T, float>)
    return Value(static_cast<double>(x));
  else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return Value(static_cast<int64_t>(x));
  else
    return box(std::move(x));
}
template <class T>
struct Result {
  static std::string name() { return Type<T>::name(); }
  static void put(Value* results, T x) { *results = value_of(std::move(x)); }
};
template <class... T>
struct Result<std::tuple<T...>> {
  static std::string name() { return Type<std::tuple<T...>>::name(); }
  static void put(Value* results, std::tuple<T...> xs) {
    std::apply([&](auto&... x) { ((*results++ = value_of(std::move(x))), ...); }, xs);
  }
};

// What a parameter is stored as while the call runs.
template <class A>
using Plain = std::remove_cvref_t<A>;

template <class F>
struct Signature;
template <class R, class... Args>
struct Signature<R(Args...)> {
  static std::string schema() {
    std::string out;
    int i = 0;
    ((out += (i ? ", " : "") + Type<Plain<Args>>::name() + " _" + std::to_string(i), ++i), ...);
    if constexpr (std::is_void_v<R>)
      return "(" + out + ") -> ()";
    else
      return "(" + out + ") -> " + Result<Plain<R>>::name();
  }
  template <class F>
  static void call(F& f, const Value* const* args, Value* results) {
    call(f, args, results, std::index_sequence_for<Args...>());
  }
  template <class F, size_t... I>
  static void call(F& f, [[maybe_unused]] const Value* const* args, Value* results,
                   std::index_sequence<I...>) {
    // Copies of what arguments refer to, for a kernel may write to them or keep them.
    auto given = std::tuple<Plain<Args>...>(Plain<Args>(Type<Plain<Args>>::from(*args[I]))...);
    if constexpr (std::is_void_v<R>)
      f(static_cast<Args>(std::get<I>(given))...), (void)results;
    else
      Result<Plain<R>>::put(results, f(static_cast<Args>(std::get<I>(given))...));
  }
};
template <class R, class C, class... Args>
struct Signature<R (C::*)(Args...) const> : Signature<R(Args...)> {};
template <class R, class C, class... Args>
struct Signature<R (C::*)(Args...)> : Signature<R(Args...)> {};
template <class R, class... Args>
struct Signature<R (*)(Args...)> : Signature<R(Args...)> {};
template <class F>
struct CallableOf {
  using type = Signature<decltype(&F::operator())>;
};
template <class R, class... Args>
struct CallableOf<R (*)(Args...)> {
  using type = Signature<R(Args...)>;
};

// What an argument of a typed call is kept as: references to lists become lists.
template <class T>
auto owned(const T& x) {
  if constexpr (std::is_same_v<T, IntArrayRef>)
    return x.ints();
  else if constexpr (std::is_same_v<T, TensorList>)
    return Tensors(x.begin(), x.end());
  else if constexpr (std::is_same_v<T, ArrayRef<double>>)
    return x.vec();
  else if constexpr (std::is_same_v<T, std::string_view>)
    return std::string(x);
  else if constexpr (requires { x.has_value(), *x; }) {
    using Inner = decltype(owned(*x));
    return x.has_value() ? std::optional<Inner>(owned(*x)) : std::optional<Inner>();
  } else
    return x;
}
template <class T>
struct Returned {
  static T from(const Values& out) { return T(Type<T>::from(out.at(0))); }
};
template <class... T>
struct Returned<std::tuple<T...>> {
  static std::tuple<T...> from(const Values& out) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple<T...>(T(Type<T>::from(out.at(I)))...);
    }(std::index_sequence_for<T...>());
  }
};
template <class Signature>
struct Count;
template <class R, class... Args>
struct Count<R(Args...)> {
  static constexpr size_t args = sizeof...(Args), results = std::is_void_v<R> ? 0 : 1;
};
template <class... T, class... Args>
struct Count<std::tuple<T...>(Args...)> {
  static constexpr size_t args = sizeof...(Args), results = sizeof...(T);
};

}  // namespace boxed

// A function of C++ as a kernel, and the schema that its types say.
class CppFunction {
 public:
  template <class F>
    requires(!std::is_same_v<std::decay_t<F>, CppFunction>)
  CppFunction(F&& f) {
    using Kernel = std::decay_t<F>;
    using Signature = typename boxed::CallableOf<Kernel>::type;
    schema_ = Signature::schema();
    kernel_.context = std::make_shared<Kernel>(std::forward<F>(f));
    kernel_.call = [](const OpDesc&, void* context, const Value* const* args, Value* results) {
      Signature::call(*static_cast<Kernel*>(context), args, results);
    };
  }
  const std::string& schema() const noexcept { return schema_; }
  const OpKernel& kernel() const noexcept { return kernel_; }
  std::optional<DispatchKey> key;

 private:
  std::string schema_;
  OpKernel kernel_;
};
template <class F>
CppFunction dispatch(DispatchKey key, F&& f) {
  CppFunction out(std::forward<F>(f));
  out.key = key;
  return out;
}
template <class F>
CppFunction dispatch(DeviceType type, F&& f) {
  return dispatch(type == DeviceType::CPU    ? DispatchKey::CPU
                  : type == DeviceType::CUDA ? DispatchKey::CUDA
                                             : DispatchKey::Meta,
                  std::forward<F>(f));
}

// A namespace of operations while its block runs.
template <class T>
class class_;  // custom_class.h
class Library {
 public:
  Library(std::string space, std::optional<DispatchKey> key)
      : space_(std::move(space)), key_(key) {}

  // "name(…) -> …" or, with a function whose types say the rest, "name".
  Library& def(const std::string& schema);
  Library& def(const std::string& schema, CppFunction f);
  Library& impl(const std::string& name, CppFunction f);
  Library& fallback(CppFunction f);  // Error(NotImplemented): there is none for all operations
  // A class whose objects scripts and Python hold: custom_class.h.
  template <class T>
  flambeau::class_<T> class_(const std::string& name, const std::string& doc = "");
  const std::string& space() const noexcept { return space_; }

 private:
  std::string qualified(const std::string& name) const;
  std::string space_;
  std::optional<DispatchKey> key_;
};

struct LibraryInit {
  LibraryInit(void (*block)(Library&), const char* space, std::optional<DispatchKey> key = {});
};

// What went wrong in blocks since the last call, a line each; Python raises it when a library was
// loaded.
std::string take_library_errors();

// The older way: RegisterOperators().op("space::name", &f).op("space::other(Tensor x) -> Tensor",
// &g)
class RegisterOperators {
 public:
  RegisterOperators() = default;
  RegisterOperators(const std::string& schema, CppFunction f) { op(schema, std::move(f)); }
  RegisterOperators& op(const std::string& schema, CppFunction f);
};

// An operation of the table or of a program, called by what its schema says:
//   c10::Dispatcher::singleton().findSchemaOrThrow("space::scale", "").typed<Tensor(const Tensor&,
//   double)>().call(x, 2)
template <class Signature>
class TypedOperatorHandle;
template <class R, class... Args>
class TypedOperatorHandle<R(Args...)> {
 public:
  explicit TypedOperatorHandle(const OpDesc& op) : op_(&op) {}
  R call(Args... args) const {
    Values out =
        call_op(*op_, Values{boxed::value_of(boxed::owned<std::remove_cvref_t<Args>>(args))...});
    if constexpr (!std::is_void_v<R>) return boxed::Returned<std::remove_cvref_t<R>>::from(out);
  }
  R operator()(Args... args) const { return call(args...); }

 private:
  const OpDesc* op_;
};
class OperatorHandle {
 public:
  explicit OperatorHandle(const OpDesc& op) : op_(&op) {}
  // Error(Type) where the operation takes or gives another number of values.
  template <class Signature>
  TypedOperatorHandle<Signature> typed() const {
    expect(boxed::Count<Signature>::args, boxed::Count<Signature>::results);
    return TypedOperatorHandle<Signature>(*op_);
  }

 private:
  void expect(size_t args, size_t results) const;
  const OpDesc* op_;
};
class Dispatcher {
 public:
  static Dispatcher& singleton();
  // Error(Runtime) where there is none.
  OperatorHandle findSchemaOrThrow(const char* name, const char* overload) const;
  std::optional<OperatorHandle> findSchema(const std::string& name,
                                           const std::string& overload = "") const;
};

}  // namespace flambeau

#define FB_JOIN_(a, b) a##b
#define FB_JOIN(a, b) FB_JOIN_(a, b)
#define FB_LIBRARY(space, key, block)                                             \
  static void block(::flambeau::Library&);                                        \
  static const ::flambeau::LibraryInit FB_JOIN(block, _init)(block, #space, key); \
  void block
#define TORCH_LIBRARY(space, m) FB_LIBRARY(space, {}, fb_library_##space)(::flambeau::Library & m)
#define TORCH_LIBRARY_FRAGMENT(space, m) \
  FB_LIBRARY(space, {}, FB_JOIN(fb_fragment_##space##_, __COUNTER__))(::flambeau::Library & m)
#define TORCH_LIBRARY_IMPL(space, key, m)                      \
  FB_LIBRARY(space, ::flambeau::DispatchKey::key,              \
             FB_JOIN(fb_impl_##space##_##key##_, __COUNTER__)) \
  (::flambeau::Library & m)
#define TORCH_FN(f) (&f)
