// Samplers: which examples make the next batch.
#pragma once

#include <optional>
#include <vector>

#include "flambeau/flambeau.h"
#include "flambeau/serialize.h"

namespace flambeau::data::samplers {

template <class BatchRequest = std::vector<size_t>>
class Sampler {
 public:
  using BatchRequestType = BatchRequest;
  virtual ~Sampler() = default;
  // Begins anew, with as many examples as before or as `new_size`.
  virtual void reset(std::optional<size_t> new_size) = 0;
  virtual std::optional<BatchRequest> next(size_t batch_size) = 0;  // none: the end
  virtual void save(serialize::OutputArchive& archive) const = 0;
  virtual void load(serialize::InputArchive& archive) = 0;
};

// Indices of a list, one batch after another.
class IndexSampler : public Sampler<> {
 public:
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;
  size_t index() const noexcept { return at_; }

 protected:
  void begin(std::vector<int64_t> order);
  size_t total() const noexcept { return order_.size(); }

 private:
  std::vector<int64_t> order_;
  size_t at_ = 0;
};

// A permutation of the default generator for each epoch: randperm(size, index_dtype). Error(Value)
// for a dtype that is not of integers, Error(Runtime) for one that cannot count so far.
class RandomSampler : public IndexSampler {
 public:
  explicit RandomSampler(int64_t size, DType index_dtype = kLong);
  void reset(std::optional<size_t> new_size = std::nullopt) override;

 private:
  int64_t size_;
  DType index_dtype_;
};
class SequentialSampler : public IndexSampler {
 public:
  explicit SequentialSampler(size_t size);
  void reset(std::optional<size_t> new_size = std::nullopt) override;

 private:
  size_t size_;
};

// The share of one of several processes, as Python's DistributedSampler gives it: every
// num_replicas-th of the order, from rank on; all get equally many, by repeating the first ones, or
// by leaving out the last where duplicates are not allowed.
class DistributedSampler : public IndexSampler {
 public:
  DistributedSampler(size_t size, size_t num_replicas, size_t rank, bool allow_duplicates);
  void set_epoch(size_t epoch) { epoch_ = epoch; }
  size_t epoch() const noexcept { return epoch_; }
  void reset(std::optional<size_t> new_size = std::nullopt) override;

 protected:
  virtual std::vector<int64_t> order(size_t size) = 0;

 private:
  size_t size_, num_replicas_, rank_, epoch_ = 0;
  bool allow_duplicates_;
};
// The permutation of a generator that the epoch seeds.
class DistributedRandomSampler : public DistributedSampler {
 public:
  explicit DistributedRandomSampler(size_t size, size_t num_replicas = 1, size_t rank = 0,
                                    bool allow_duplicates = true);

 protected:
  std::vector<int64_t> order(size_t size) override;
};
class DistributedSequentialSampler : public DistributedSampler {
 public:
  explicit DistributedSequentialSampler(size_t size, size_t num_replicas = 1, size_t rank = 0,
                                        bool allow_duplicates = true);

 protected:
  std::vector<int64_t> order(size_t size) override;
};

// So many examples of a stream.
class StreamSampler : public Sampler<size_t> {
 public:
  explicit StreamSampler(size_t epoch_size) : size_(epoch_size) {}
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<size_t> next(size_t batch_size) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;

 private:
  size_t size_, taken_ = 0;
};

}  // namespace flambeau::data::samplers
