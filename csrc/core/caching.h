// Whether freed memory is kept for the next taker. Under the address sanitizer nothing is: every
// block comes from malloc, of the very size asked for, and goes straight back, so that reading past
// its end or after its release is seen. With FB_GUARD_PAGES the same is seen without instrumented
// code: each block ends at a page that cannot be touched.
#pragma once

namespace flambeau {

#if FB_GUARD_PAGES
inline constexpr bool kGuardPages = true, kCaching = false;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool kGuardPages = false, kCaching = false;
#else
inline constexpr bool kGuardPages = false, kCaching = true;
#endif

}  // namespace flambeau
