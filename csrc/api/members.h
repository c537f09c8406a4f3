// Members of class Tensor that programs in C++ have besides the operations (gen/api/methods.h).
// Included inside of the class. All but a few bodies are in csrc/api/tensor.cpp.

// Assignment to what an index gives writes into the tensor: `x[0] = y`, `x.index({1, 2}) = 3`.
Tensor(const Tensor&) noexcept = default;
Tensor(Tensor&&) noexcept = default;
Tensor& operator=(const Tensor&) & noexcept = default;
Tensor& operator=(Tensor&&) & noexcept = default;
Tensor& operator=(const Tensor& value) &&;
Tensor& operator=(Tensor&& value) && {
  return std::move(*this) = static_cast<const Tensor&>(value);
}
Tensor& operator=(const Scalar& value) &&;

// What it is
ScalarType scalar_type() const noexcept {
  return dtype();
}
TensorOptions options() const {
  return TensorOptions(dtype()).device(device());
}
Layout layout() const noexcept {
  return Layout::Strided;
}
bool is_cpu() const noexcept {
  return device().is_cpu();
}
bool is_cuda() const noexcept {
  return device().is_cuda();
}
bool is_meta() const noexcept {
  return device().is_meta();
}
bool is_sparse() const noexcept {
  return false;
}
bool is_quantized() const noexcept {
  return false;
}
bool is_mkldnn() const noexcept {
  return false;
}
DeprecatedTypeProperties type() const {
  return {dtype(), device()};
}
Tensor type(DType dtype) const {
  return to(dtype);
}
int64_t ndimension() const noexcept {
  return dim();
}
TensorImpl* unsafeGetTensorImpl() const noexcept {
  return impl();
}
bool has_storage() const noexcept {
  return defined();
}
int64_t get_device() const noexcept {
  return device().index();
}
int64_t element_size() const noexcept {
  return itemsize();
}
size_t nbytes() const noexcept {
  return static_cast<size_t>(numel() * itemsize());
}
int64_t storage_offset() const noexcept {
  return offset();
}
bool is_alias_of(const Tensor& other) const noexcept {
  return shares_storage(other);
}
bool is_non_overlapping_and_dense() const {
  return is_dense();
}
size_t use_count() const noexcept {
  return defined() ? impl()->use_count() : 0;
}
void reset() noexcept {
  impl_ = nullptr;
}
std::string toString() const;  // "CPUFloatType"
void print() const;            // what << writes, to standard output

// Its values
template <class T>
T item() const {
  return item().to<T>();
}
// The first element's address; Error(Runtime) where T is not what the elements are.
template <class T>
T* data_ptr() const {
  expect_dtype(dtype_of<std::conditional_t<std::is_same_v<std::remove_const_t<T>, bool>, Truth,
                                           std::remove_const_t<T>>>);
  return static_cast<T*>(data_ptr());
}
template <class T>
T* mutable_data_ptr() const {
  return data_ptr<T>();
}
template <class T>
const T* const_data_ptr() const {
  return data_ptr<const T>();
}
void* mutable_data_ptr() const {
  return data_ptr();
}
const void* const_data_ptr() const {
  return data_ptr();
}
// Elements by index, without checks of bounds: accessor<float, 2>()[i][j].
template <class T, size_t N>
TensorAccessor<T, N> accessor() const&;
// The same with sizes and strides of its own. Error(Runtime) where a size passes index_t.
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
PackedTensorAccessor32<T, N, PtrTraits> packed_accessor32() const&;
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
PackedTensorAccessor64<T, N, PtrTraits> packed_accessor64() const&;

// As something else
Tensor to(const TensorOptions& options, bool non_blocking = false, bool copy = false,
          std::optional<MemoryFormat> memory_format = std::nullopt) const;
Tensor to(DType dtype, bool non_blocking = false, bool copy = false,
          std::optional<MemoryFormat> memory_format = std::nullopt) const;
Tensor to(Device device, DType dtype, bool non_blocking = false, bool copy = false,
          std::optional<MemoryFormat> memory_format = std::nullopt) const;
Tensor to(const Tensor& other, bool non_blocking = false, bool copy = false,
          std::optional<MemoryFormat> memory_format = std::nullopt) const;
Tensor toType(DType dtype) const {
  return to(dtype);
}
Tensor type_as(const Tensor& other) const {
  return to(other);
}
// Itself where its elements lie in order, else a copy.
MaybeOwned<Tensor> expect_contiguous() const&;
Tensor cpu() const;
Tensor cuda() const;
Tensor alias() const;

// In place: what it stands for changes, with its history. What is resized keeps the elements that
// fit, others hold whatever was there.
Tensor& t_() const;
Tensor& transpose_(int64_t dim0, int64_t dim1) const;
Tensor& swapdims_(int64_t dim0, int64_t dim1) const {
  return transpose_(dim0, dim1);
}
Tensor& swapaxes_(int64_t axis0, int64_t axis1) const {
  return transpose_(axis0, axis1);
}
Tensor& unsqueeze_(int64_t dim) const;
Tensor& squeeze_() const;
Tensor& squeeze_(IntArrayRef dim) const;
Tensor& as_strided_(IntArrayRef size, IntArrayRef stride,
                    std::optional<int64_t> storage_offset = std::nullopt) const;
Tensor& resize_(IntArrayRef size) const;
Tensor& resize_as_(const Tensor& other) const;
Tensor& set_() const;  // no elements
Tensor& set_(const Tensor& source) const;

// Parts, as x[...] gives them in Python
Tensor operator[](int64_t i) const;
Tensor operator[](const Scalar& i) const;
Tensor operator[](const Tensor& i) const;
Tensor index(ArrayRef<indexing::TensorIndex> key) const;
Tensor index(std::initializer_list<indexing::TensorIndex> key) const;
Tensor& index_put_(ArrayRef<indexing::TensorIndex> key, const Tensor& value) const;
Tensor& index_put_(ArrayRef<indexing::TensorIndex> key, const Scalar& value) const;
Tensor& index_put_(std::initializer_list<indexing::TensorIndex> key, const Tensor& value) const;
Tensor& index_put_(std::initializer_list<indexing::TensorIndex> key, const Scalar& value) const;

// Derivatives, see flambeau/autograd.h
Tensor& requires_grad_(bool on = true) const;
const Tensor& set_requires_grad(bool on) const {
  return requires_grad_(on);
}
bool is_leaf() const;
Ref<Node> grad_fn() const;
int64_t output_nr() const;
Tensor grad() const;  // undefined: none yet
Tensor& mutable_grad() const;
void set_grad(const Tensor& value) const;
Tensor detach() const;
Tensor& detach_() const;
Tensor data() const;  // its values without history and without a version of their own
Tensor variable_data() const {
  return data();
}
Tensor tensor_data() const {
  return detach();
}
void set_data(const Tensor& value) const;
void retain_grad() const;
bool retains_grad() const;
int64_t _version() const {
  return version();
}
bool is_inference() const noexcept {
  return has_flag(kInference);
}
// Of a result of one element, or of the vector-Jacobian product with `gradient`. Adds to the .grad
// of the leaves, or of `inputs` alone.
void backward(const std::optional<Tensor>& gradient = std::nullopt,
              std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
              std::optional<TensorList> inputs = std::nullopt) const;
// A function of the gradient, called when it is known: returns another one, or nothing. The number
// is for remove_hook.
template <class F>
unsigned register_hook(F hook) const {
  if constexpr (std::is_void_v<std::invoke_result_t<F&, const Tensor&>>)
    return add_hook(
        [hook = std::move(hook)](const Tensor& g) mutable { return hook(g), Tensor(); });
  else
    return add_hook([hook = std::move(hook)](const Tensor& g) mutable { return Tensor(hook(g)); });
}
void remove_hook(unsigned number) const;
// Forward mode: its tangent at a level, see autograd::forward_ad.
Tensor _fw_grad(uint64_t level) const;

private:
void expect_dtype(DType wanted) const {
  FB_CHECK(dtype() == wanted, "expected scalar type ", scalar_type_name(wanted), " but found ",
           scalar_type_name(dtype()));
}
unsigned add_hook(std::function<Tensor(const Tensor&)> hook) const;

public:
