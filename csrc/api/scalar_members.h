// Members of class Scalar by the names that programs in C++ know. Included inside of the class.
// A number that does not fit is an error.
double toDouble() const {
  return to<double>();
}
float toFloat() const {
  return to<float>();
}
Half toHalf() const {
  return to<Half>();
}
BFloat16 toBFloat16() const {
  return to<BFloat16>();
}
int toInt() const {
  return to<int32_t>();
}
int64_t toLong() const {
  return to<int64_t>();
}
int16_t toShort() const {
  return to<int16_t>();
}
int8_t toChar() const {
  return to<int8_t>();
}
uint8_t toByte() const {
  return to<uint8_t>();
}
bool toBool() const {
  return to_bool();
}
complex64 toComplexFloat() const {
  return to<complex64>();
}
complex128 toComplexDouble() const {
  return to_complex();
}
bool isFloatingPoint() const {
  return is_floating_point();
}
bool isIntegral(bool include_bool = false) const {
  return is_integral(include_bool);
}
bool isBoolean() const {
  return is_bool();
}
bool isComplex() const {
  return is_complex();
}
// Of the number itself, whatever the default dtype is.
DType type() const {
  return is_complex()          ? DType::Complex128
         : is_floating_point() ? DType::Float64
         : is_bool()           ? DType::Bool
                               : DType::Int64;
}
