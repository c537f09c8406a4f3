#include "flambeau/guards.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#include "flambeau/macros.h"

namespace flambeau {

int get_thread_num() {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}

void checkDim(CheckedFrom c, const TensorArg& x, int64_t dim) {
  FB_CHECK(x->dim() == dim, "Expected ", dim, "-dimensional tensor, but got ", x->dim(),
           "-dimensional tensor for ", x, " (while checking arguments for ", c, ")");
}
void checkDimRange(CheckedFrom c, const TensorArg& x, int64_t from, int64_t to) {
  FB_CHECK(x->dim() >= from && x->dim() < to, "Expected ", from, " to ", to - 1,
           " dimensions, but got ", x->dim(), "-dimensional tensor for ", x,
           " (while checking arguments for ", c, ")");
}
void checkNumel(CheckedFrom c, const TensorArg& x, int64_t numel) {
  FB_CHECK(x->numel() == numel, "Expected tensor for ", x, " to have ", numel,
           " elements; but it actually has ", x->numel(),
           " elements (while checking arguments for ", c, ")");
}
void checkSize(CheckedFrom c, const TensorArg& x, IntArrayRef sizes) {
  FB_CHECK(sizes == IntArrayRef(x->sizes()), "Expected tensor of size ", sizes,
           ", but got tensor of size ", x->sizes(), " for ", x, " (while checking arguments for ",
           c, ")");
}
void checkSize(CheckedFrom c, const TensorArg& x, int64_t dim, int64_t size) {
  FB_CHECK(x->size(dim) == size, "Expected tensor to have size ", size, " at dimension ", dim,
           ", but got size ", x->size(dim), " for ", x, " (while checking arguments for ", c, ")");
}
void checkContiguous(CheckedFrom c, const TensorArg& x) {
  FB_CHECK(x->is_contiguous(), "Expected contiguous tensor, but got non-contiguous tensor for ", x,
           " (while checking arguments for ", c, ")");
}
void checkDefined(CheckedFrom c, const TensorArg& x) {
  FB_CHECK(x->defined(), "Expected tensor for ", x,
           " to be non-null, but it was undefined (while checking arguments for ", c, ")");
}
void checkScalarType(CheckedFrom c, const TensorArg& x, DType dtype) {
  FB_CHECK(x->dtype() == dtype, "Expected tensor for ", x, " to have scalar type ",
           scalar_type_name(dtype), "; but got ", scalar_type_name(x->dtype()),
           " instead (while checking arguments for ", c, ")");
}
void checkScalarTypes(CheckedFrom c, const TensorArg& x, ArrayRef<DType> dtypes) {
  bool found = false;
  std::string names;
  for (DType d : dtypes) {
    found |= x->dtype() == d;
    names += (names.empty() ? "" : ", ") + std::string(scalar_type_name(d));
  }
  FB_CHECK(found, "Expected tensor for ", x, " to have one of the following scalar types: ", names,
           "; but got ", scalar_type_name(x->dtype()), " instead (while checking arguments for ", c,
           ")");
}
void checkSameType(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  FB_CHECK(a->type() == b->type(), "Expected tensor for ", a,
           " to have the same type as tensor for ", b, "; but type ", a->toString(),
           " does not equal ", b->toString(), " (while checking arguments for ", c, ")");
}
void checkSameSize(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  FB_CHECK(a->sizes() == b->sizes(), "Expected tensor for ", a, " to have same size as tensor for ",
           b, "; but ", a->sizes(), " does not equal ", b->sizes(),
           " (while checking arguments for ", c, ")");
}
void checkSameDim(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  FB_CHECK(a->dim() == b->dim(), "Expected tensor for ", a,
           " to have the same dimension as tensor for ", b, "; but ", a->dim(), " does not equal ",
           b->dim(), " (while checking arguments for ", c, ")");
}
void checkSameNumel(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  FB_CHECK(a->numel() == b->numel(), "Expected tensor for ", a,
           " to have same number of elements as tensor for ", b, "; but ", a->numel(),
           " does not equal ", b->numel(), " (while checking arguments for ", c, ")");
}

template <class F>
static void with_first(CheckedFrom c, ArrayRef<TensorArg> xs, F check) {
  const TensorArg* first = nullptr;
  for (const TensorArg& x : xs) {
    if (!x->defined()) continue;
    if (first) check(c, *first, x);
    if (!first) first = &x;
  }
}
void checkAllSameType(CheckedFrom c, ArrayRef<TensorArg> xs) {
  with_first(c, xs, checkSameType);
}
void checkAllSameSize(CheckedFrom c, ArrayRef<TensorArg> xs) {
  with_first(c, xs, checkSameSize);
}
void checkAllSameNumel(CheckedFrom c, ArrayRef<TensorArg> xs) {
  with_first(c, xs, checkSameNumel);
}
void checkAllDefined(CheckedFrom c, ArrayRef<TensorArg> xs) {
  for (const TensorArg& x : xs) checkDefined(c, x);
}
void checkAllContiguous(CheckedFrom c, ArrayRef<TensorArg> xs) {
  for (const TensorArg& x : xs)
    if (x->defined()) checkContiguous(c, x);
}

}  // namespace flambeau
