// Loaders: batches of a set in the order of a sampler, made by the caller or by threads.
#pragma once

#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>  // milliseconds: <chrono> costs programs an eighth of a second
#include <optional>

#include "flambeau/data/datasets.h"
#include "flambeau/data/samplers.h"

namespace flambeau::data {

struct DataLoaderOptions {
  DataLoaderOptions() = default;
  DataLoaderOptions(size_t batch_size) : batch_size_(batch_size) {}
  TORCH_ARG(size_t, batch_size) = 1;
  TORCH_ARG(size_t, workers) = 0;                                // threads; 0: the caller
  TORCH_ARG(std::optional<size_t>, max_jobs);                    // none: 2 for each thread
  TORCH_ARG(std::optional<std::chrono::milliseconds>, timeout);  // to wait for a batch
  TORCH_ARG(bool, enforce_ordering) = true;                      // that of the sampler
  TORCH_ARG(bool, drop_last) = false;                            // a batch that is not full
};

// An exception of a thread of a loader, thrown where its batch is asked for.
struct WorkerException : public std::exception {
  explicit WorkerException(std::exception_ptr original);
  const char* what() const noexcept override { return message.c_str(); }
  std::string message;
  std::exception_ptr original_exception;
};

// Threads that do jobs, and their results, by number. Values pass as pointers to what the loader
// knows the types of: the threads are the library's, not each program's.
class Workers {
 public:
  using Value = std::shared_ptr<void>;
  using Make = std::function<Value(const Value& request)>;

  Workers();
  ~Workers();
  Workers(const Workers&) = delete;
  void start(Make make);
  void put(size_t number, Value request);
  // The result of that number, or of any; Error(Runtime) after the time.
  Value take(std::optional<size_t> number, const std::optional<std::chrono::milliseconds>& time);
  // What is asked for or made already is nobody's any more.
  void drop();
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Goes through the batches once; a loader has one at a time.
template <class Loader>
class Iterator {
 public:
  using Batch = typename Loader::BatchType;
  using difference_type = std::ptrdiff_t;
  using value_type = Batch;
  using pointer = Batch*;
  using reference = Batch&;
  using iterator_category = std::input_iterator_tag;

  Iterator() = default;  // the end
  explicit Iterator(Loader* loader) : loader_(loader) { ++*this; }
  Iterator& operator++() {
    batch_ = loader_->next();
    if (!batch_) loader_ = nullptr;
    return *this;
  }
  Batch& operator*() { return current(); }
  Batch* operator->() { return &current(); }
  friend bool operator==(const Iterator& a, const Iterator& b) { return a.loader_ == b.loader_; }

 private:
  Batch& current() {
    FB_CHECK(batch_, "Attempted to dereference a DataLoader iterator past its end");
    return *batch_;
  }
  Loader* loader_ = nullptr;
  std::optional<Batch> batch_;
};

template <class Dataset, class Sampler>
class StatelessDataLoader {
 public:
  using BatchType = typename Dataset::BatchType;
  using BatchRequestType = typename Sampler::BatchRequestType;

  StatelessDataLoader(Dataset dataset, Sampler sampler, DataLoaderOptions options)
      : options_(std::move(options)), sampler_(std::move(sampler)) {
    FB_CHECK_VALUE(options_.batch_size() > 0, "DataLoader: batch_size must be positive");
    jobs_ = options_.max_jobs().value_or(2 * options_.workers());
    FB_CHECK_VALUE(options_.workers() == 0 || jobs_ > 0, "DataLoader: max_jobs must be positive");
    for (size_t i = 0; i < options_.workers(); ++i)
      workers_.start([set = dataset](const Workers::Value& request) mutable -> Workers::Value {
        auto& given = *static_cast<BatchRequestType*>(request.get());
        return std::make_shared<BatchType>(set.get_batch(std::move(given)));
      });
    if (options_.workers() == 0) dataset_.emplace(std::move(dataset));
  }
  ~StatelessDataLoader() { join(); }
  StatelessDataLoader(const StatelessDataLoader&) = delete;

  // Begins an epoch; what another iterator has left is dropped.
  Iterator<StatelessDataLoader> begin() {
    FB_CHECK(!joined_, "Attempted to begin an epoch of a DataLoader that was joined");
    workers_.drop();
    sampler_.reset(std::nullopt);
    asked_ = given_ = 0;
    ended_ = false;
    return Iterator<StatelessDataLoader>(this);
  }
  Iterator<StatelessDataLoader> end() { return {}; }
  // Ends the threads.
  void join() {
    workers_.stop();
    joined_ = true;
  }
  const DataLoaderOptions& options() const noexcept { return options_; }

  // The next batch; none at the end.
  std::optional<BatchType> next() {
    if (options_.workers() == 0) {
      auto request = next_request();
      if (!request) return std::nullopt;
      return dataset_->get_batch(std::move(*request));
    }
    while (asked_ - given_ < jobs_) {
      auto request = next_request();
      if (!request) break;
      workers_.put(asked_++, std::make_shared<BatchRequestType>(std::move(*request)));
    }
    if (asked_ == given_) return std::nullopt;
    std::optional<size_t> number;
    if (options_.enforce_ordering()) number = given_;
    ++given_;
    return std::move(*static_cast<BatchType*>(workers_.take(number, options_.timeout()).get()));
  }

 private:
  static size_t count(size_t request) { return request; }
  template <class R>
  static size_t count(const R& request) {
    return request.size();
  }
  std::optional<BatchRequestType> next_request() {
    if (ended_) return std::nullopt;
    auto request = sampler_.next(options_.batch_size());
    ended_ = !request || (options_.drop_last() && count(*request) < options_.batch_size());
    return ended_ ? std::nullopt : std::move(request);
  }

  DataLoaderOptions options_;
  Sampler sampler_;
  std::optional<Dataset> dataset_;  // of the caller
  size_t jobs_ = 0, asked_ = 0, given_ = 0;
  bool ended_ = false, joined_ = false;
  Workers workers_;
};

template <class Dataset, class Sampler>
  requires(requires { typename Sampler::BatchRequestType; })
std::unique_ptr<StatelessDataLoader<Dataset, Sampler>> make_data_loader(
    Dataset dataset, Sampler sampler, DataLoaderOptions options = DataLoaderOptions()) {
  return std::make_unique<StatelessDataLoader<Dataset, Sampler>>(
      std::move(dataset), std::move(sampler), std::move(options));
}
template <class Sampler = samplers::RandomSampler, class Dataset>
  requires(std::is_constructible_v<Sampler, size_t>)
std::unique_ptr<StatelessDataLoader<Dataset, Sampler>> make_data_loader(
    Dataset dataset, DataLoaderOptions options = DataLoaderOptions()) {
  const std::optional<size_t> size = dataset.size();
  FB_CHECK(size, "Expected the dataset to be sized in order to construct the Sampler");
  return make_data_loader(std::move(dataset), Sampler(*size), std::move(options));
}

}  // namespace flambeau::data
