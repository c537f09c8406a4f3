// A class for each kind of error, for who catches one kind alone. `fail_with` throws these.
#pragma once

#include "core/error.h"

namespace flambeau {

template <ErrorKind K>
class ErrorOf : public Error {
 public:
  explicit ErrorOf(const std::string& message) : Error(K, message) {}
};
using ValueError = ErrorOf<ErrorKind::Value>;
using TypeError = ErrorOf<ErrorKind::Type>;
using IndexError = ErrorOf<ErrorKind::Index>;
using NotImplementedError = ErrorOf<ErrorKind::NotImplemented>;
using OutOfMemoryError = ErrorOf<ErrorKind::OutOfMemory>;
using LinAlgError = ErrorOf<ErrorKind::LinAlg>;
using AssertionError = ErrorOf<ErrorKind::Assertion>;

}  // namespace flambeau
