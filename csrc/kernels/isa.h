// Instruction sets. A file `*.isa.cpp` is compiled once per set, its contents in a namespace named
// by FB_ISA; the set is chosen once per process by what the CPU has. Use, in a header and in a
// caller:
//
//   FB_ISA_DECLARE(void add_rows(float* out, const float* x, int64_t n);)     // in namespace
//   flambeau::kernels FB_ISA_DISPATCH(add_rows)(out, x, n);
//
// Note [One definition per set]
// Inline functions that a *.isa.cpp file shares with other files may be emitted with instructions
// that the machine lacks, and the linker keeps any one copy. So such files define what they need in
// their own namespace, include few headers, and mark helpers `FB_INLINE`.
#pragma once

#define FB_INLINE [[gnu::always_inline]] inline

#if FB_HAVE_ISA_v2
#define FB_IF_V2(...) __VA_ARGS__
#else
#define FB_IF_V2(...)
#endif
#if FB_HAVE_ISA_v3
#define FB_IF_V3(...) __VA_ARGS__
#else
#define FB_IF_V3(...)
#endif
#if FB_HAVE_ISA_v4
#define FB_IF_V4(...) __VA_ARGS__
#else
#define FB_IF_V4(...)
#endif
#if FB_HAVE_ISA_portable
#define FB_IF_PORTABLE(...) __VA_ARGS__
#else
#define FB_IF_PORTABLE(...)
#endif

#define FB_ISA_DECLARE(...)                       \
  FB_IF_PORTABLE(namespace portable{__VA_ARGS__}) \
  FB_IF_V2(namespace v2{__VA_ARGS__})             \
  FB_IF_V3(namespace v3{__VA_ARGS__})             \
  FB_IF_V4(namespace v4{__VA_ARGS__})

// Addresses of the builds of `fn`, from the plainest to the richest set: an initialiser of an
// array.
#define FB_ISA_LIST(fn) \
  { FB_IF_PORTABLE(&portable::fn, ) FB_IF_V2(&v2::fn, ) FB_IF_V3(&v3::fn, ) FB_IF_V4(&v4::fn, ) }

#define FB_ISA_DISPATCH(fn) \
  (::flambeau::kernels::pick_isa<decltype(::flambeau::kernels::isa_first::fn)>(FB_ISA_LIST(fn)))

namespace flambeau::kernels {

// The plainest set that was built: names its functions for decltype.
FB_IF_PORTABLE(
    namespace portable {} namespace isa_first { using namespace portable; })
FB_IF_V2(
    namespace v2 {} namespace isa_first { using namespace v2; })

#if !FB_HAVE_ISA_portable && !FB_HAVE_ISA_v2 && !defined(FB_ISA)
#error "no instruction set is built: define FB_HAVE_ISA_v2 (with v3, v4) or FB_HAVE_ISA_portable"
#endif

inline constexpr int kIsas = 0 FB_IF_PORTABLE(+1) FB_IF_V2(+1) FB_IF_V3(+1) FB_IF_V4(+1);

extern const int isa_index;  // position in FB_ISA_LIST of the set in use
const char* isa_name();      // "portable", "v2", "v3", "v4"

template <class F>
struct IsaList {
  F* builds[kIsas > 0 ? kIsas : 1];
};
template <class F>
inline F* pick_isa(const IsaList<F>& list) {
  return list.builds[isa_index];
}

}  // namespace flambeau::kernels
