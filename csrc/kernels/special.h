// Special functions of one double (or two), scalar: those too rare to vectorise. No state, no
// tensors.
#pragma once

#include <cstdint>

namespace flambeau::special {

double lgamma(double x);
double digamma(double x);
double polygamma(double n, double x);  // n a whole number
double zeta(double s, double q);       // Hurwitz
double igamma(double a, double x);     // regularised lower incomplete gamma function
double igammac(double a, double x);
double erfinv(double y);
double erfcx(double x);
double ndtri(double p);
double log_ndtr(double x);
double i0(double x);
double i0e(double x);
double i1(double x);
double i1e(double x);
double k0(double x);
double k0e(double x);
double k1(double x);
double k1e(double x);
double j0(double x);
double j1(double x);
double y0(double x);
double y1(double x);
double spherical_j0(double x);
double airy_ai(double x);
double chebyshev_t(double x, double n);
double chebyshev_u(double x, double n);
double chebyshev_v(double x, double n);
double chebyshev_w(double x, double n);
double hermite_h(double x, double n);
double hermite_he(double x, double n);
double laguerre_l(double x, double n);
double legendre_p(double x, double n);

// For loops over integers: Error(Runtime).
[[noreturn]] void division_by_zero();

}  // namespace flambeau::special
