// Tensors from Python data, shared by the factories, indexing and operators.
#pragma once

#include "python/tensor_object.h"

namespace flambeau::python {

// A new tensor with a copy of nested sequences, numbers, arrays or tensors. Without a dtype it is
// inferred.
Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype);
// The array's memory as a tensor (the tensor keeps the array alive). `warn`: of arrays that must
// not be written.
Tensor tensor_from_numpy(PyObject* array, bool warn = true);
// The bytes of a buffer as a 1-d tensor: frombuffer.
Tensor tensor_from_bytes(PyObject* buffer, DType dtype, int64_t count, int64_t offset);
// A contiguous copy of elements that may lie at odd addresses.
Tensor aligned_copy(const Tensor& t);
// The memory of an object of the array interface or of the buffer protocol; undefined when it has
// neither.
Tensor tensor_from_interface(PyObject* o);
// The whole memory of a storage as a 1-d tensor that shares it; undefined for other objects. A
// storage with a type must have `dtype`.
Tensor tensor_from_storage(PyObject* o, std::optional<DType> dtype);
// The memory of an object that speaks DLPack (dlpack.cpp).
Tensor tensor_from_dlpack(PyObject* o);
// The only element; an error inside transforms, where there is not one value (number.cpp).
Scalar item_of(const Tensor& t);
// Tells whoever makes a number of a tensor that requires grad.
void warn_of_number(const Tensor& x);
void init_operators();

}  // namespace flambeau::python
