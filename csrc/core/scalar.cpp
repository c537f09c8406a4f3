#include "core/scalar.h"

#include <cmath>

#include "core/pylist.h"

namespace flambeau {

bool Scalar::fits(DType d) const {
  if (kind_ == Kind::Complex) {
    if (flambeau::is_complex(d))
      return Scalar(u_.d[0]).fits(to_real(d)) && Scalar(u_.d[1]).fits(to_real(d));
    return u_.d[1] == 0 && Scalar(u_.d[0]).fits(d);
  }
  if (d == DType::Bool) return true;
  const double x = to_double(), top = py::largest(d);
  if (is_inexact(d)) return !std::isfinite(x) || std::abs(x) <= top;
  // In double, the largest number of 64 bits is one too large.
  if (kind_ == Kind::Float) return x >= py::smallest(d) && (itemsize(d) == 8 ? x < top : x <= top);
  if (kind_ == Kind::UInt) return d == DType::UInt64;
  return itemsize(d) == 8 || (x <= top && x >= (is_signed(d) ? py::smallest(d) : -top));
}

void Scalar::refuse(DType d) const {
  fail(ErrorKind::Runtime, "value cannot be converted to type ", dtype_name(d),
       " without overflow: ", *this);
}

std::ostream& operator<<(std::ostream& out, const Scalar& x) {
  switch (x.kind()) {
    case Scalar::Kind::Bool:
      return out << (x.to_bool() ? "True" : "False");
    case Scalar::Kind::Int:
      return out << x.to_int();
    case Scalar::Kind::UInt:
      return out << static_cast<uint64_t>(x.to_int());
    case Scalar::Kind::Float:
      return out << x.to_double();
    case Scalar::Kind::Complex:
      return out << '(' << x.to_complex().real() << std::showpos << x.to_complex().imag()
                 << std::noshowpos << "j)";
  }
  __builtin_unreachable();
}

}  // namespace flambeau
