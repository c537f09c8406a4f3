#include "flambeau/data/samplers.h"

#include <numeric>

#include "flambeau/data/loader.h"

namespace flambeau::data {

WorkerException::WorkerException(std::exception_ptr original)
    : message("Caught exception in DataLoader worker thread."), original_exception(original) {
  try {
    std::rethrow_exception(original);
  } catch (const std::exception& e) {
    message += std::string(" Original message: ") + e.what();
  } catch (...) {
  }
}

namespace samplers {

static std::vector<int64_t> counted(size_t n) {
  std::vector<int64_t> out(n);
  std::iota(out.begin(), out.end(), 0);
  return out;
}
static std::vector<int64_t> listed(const Tensor& x) {
  const Tensor flat = x.to(kLong).contiguous();
  const auto* p = flat.data_ptr<int64_t>();
  return {p, p + flat.numel()};
}

void IndexSampler::begin(std::vector<int64_t> order) {
  order_ = std::move(order);
  at_ = 0;
}
std::optional<std::vector<size_t>> IndexSampler::next(size_t batch_size) {
  const size_t n = std::min(batch_size, order_.size() - at_);
  if (n == 0) return std::nullopt;
  std::vector<size_t> out;
  out.reserve(n);
  for (size_t i = 0; i < n; ++i) out.push_back(static_cast<size_t>(order_[at_ + i]));
  at_ += n;
  return out;
}
void IndexSampler::save(serialize::OutputArchive& archive) const {
  archive.write("index", IValue(static_cast<int64_t>(at_)));
  archive.write("indices", IValue(order_));
}
void IndexSampler::load(serialize::InputArchive& archive) {
  IValue index, indices;
  archive.read("index", index);
  archive.read("indices", indices);
  std::vector<int64_t> order;
  if (!indices.isList() || !indices.toListRef().empty()) order = indices.toIntVector();
  const int64_t at = index.toInt();
  FB_CHECK_VALUE(at >= 0 && at <= static_cast<int64_t>(order.size()), "load: a sampler at index ",
                 at, " of ", order.size());
  begin(std::move(order));
  at_ = static_cast<size_t>(at);
}

RandomSampler::RandomSampler(int64_t size, DType index_dtype)
    : size_(size), index_dtype_(index_dtype) {
  FB_CHECK_VALUE(size >= 0, "RandomSampler: a size of ", size);
  FB_CHECK_VALUE(is_integral(index_dtype),
                 "RandomSampler: expected an index_dtype of integers, got ",
                 dtype_name(index_dtype));
  reset();
}
void RandomSampler::reset(std::optional<size_t> new_size) {
  if (new_size) size_ = static_cast<int64_t>(*new_size);
  begin(listed(randperm(size_, index_dtype_)));
}

SequentialSampler::SequentialSampler(size_t size) : size_(size) {
  begin(counted(size));
}
void SequentialSampler::reset(std::optional<size_t> new_size) {
  if (new_size) size_ = *new_size;
  begin(counted(size_));
}

DistributedSampler::DistributedSampler(size_t size, size_t num_replicas, size_t rank,
                                       bool allow_duplicates)
    : size_(size), num_replicas_(num_replicas), rank_(rank), allow_duplicates_(allow_duplicates) {
  FB_CHECK_VALUE(rank < num_replicas, "Invalid rank ", rank, ", rank should be in the interval [0,",
                 " ", static_cast<int64_t>(num_replicas) - 1, "]");
}
void DistributedSampler::reset(std::optional<size_t> new_size) {
  if (new_size) size_ = *new_size;
  const std::vector<int64_t> all = order(size_);
  size_t each = all.size() / num_replicas_;
  if (allow_duplicates_ && all.size() % num_replicas_) ++each;
  std::vector<int64_t> mine;
  for (size_t i = 0; i < each && !all.empty(); ++i)
    mine.push_back(all[(rank_ + i * num_replicas_) % all.size()]);
  begin(std::move(mine));
}
DistributedRandomSampler::DistributedRandomSampler(size_t size, size_t num_replicas, size_t rank,
                                                   bool allow_duplicates)
    : DistributedSampler(size, num_replicas, rank, allow_duplicates) {
  reset();
}
std::vector<int64_t> DistributedRandomSampler::order(size_t size) {
  return listed(randperm(static_cast<int64_t>(size), make_generator(epoch())));
}
DistributedSequentialSampler::DistributedSequentialSampler(size_t size, size_t num_replicas,
                                                           size_t rank, bool allow_duplicates)
    : DistributedSampler(size, num_replicas, rank, allow_duplicates) {
  reset();
}
std::vector<int64_t> DistributedSequentialSampler::order(size_t size) {
  return counted(size);
}

void StreamSampler::reset(std::optional<size_t> new_size) {
  if (new_size) size_ = *new_size;
  taken_ = 0;
}
std::optional<size_t> StreamSampler::next(size_t batch_size) {
  const size_t n = std::min(batch_size, size_ - taken_);
  taken_ += n;
  return n ? std::optional<size_t>(n) : std::nullopt;
}
void StreamSampler::save(serialize::OutputArchive& archive) const {
  archive.write("taken", IValue(static_cast<int64_t>(taken_)));
}
void StreamSampler::load(serialize::InputArchive& archive) {
  IValue taken;
  archive.read("taken", taken);
  FB_CHECK_VALUE(taken.toInt() >= 0 && static_cast<size_t>(taken.toInt()) <= size_,
                 "load: a sampler that has taken ", taken.toInt(), " of ", size_);
  taken_ = static_cast<size_t>(taken.toInt());
}

}  // namespace samplers
}  // namespace flambeau::data
