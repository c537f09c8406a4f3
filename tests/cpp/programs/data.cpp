// Sets, transforms, samplers and loaders; argv[1] is a folder with files of MNIST.
#include <atomic>
#include <set>
#include <sstream>
#include <thread>

#include "show.h"

using namespace torch::data;

struct Squares : datasets::Dataset<Squares> {
  Example<> get(size_t i) override {
    if (i == bad) throw std::runtime_error("no example 13");
    if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(i % 3 ? 1 : 4));
    auto x = torch::full({1, 2, 2}, static_cast<double>(i));
    return {x, torch::tensor(static_cast<int64_t>(i * i))};
  }
  std::optional<size_t> size() const override { return 10; }
  size_t bad = 99;
  bool slow = false;
};
struct Stream : datasets::StreamDataset<Stream, std::vector<int>> {
  std::vector<int> get_batch(size_t n) override {
    std::vector<int> out;
    while (out.size() < n) out.push_back(next++);
    return out;
  }
  std::optional<size_t> size() const override { return std::nullopt; }
  int next = 0;
};
template <class S>
void order(S& sampler, size_t n) {
  while (auto batch = sampler.next(n)) {
    for (size_t i : *batch) std::cout << i << ' ';
    std::cout << "| ";
  }
  std::cout << std::endl;
}
template <class L>
void targets(L& loader) {
  for (auto& batch : *loader) std::cout << batch.target << batch.data.sizes() << ' ';
  std::cout << std::endl;
}

int main(int, char** argv) {
  // The order of a seed is that of Python's samplers.
  samplers::RandomSampler random(10);
  torch::manual_seed(4);
  random.reset();
  order(random, 4);
  samplers::SequentialSampler sequence(5);
  order(sequence, 2);
  for (size_t rank : {0, 1, 2}) {
    samplers::DistributedRandomSampler mine(10, 3, rank);
    mine.set_epoch(2);
    mine.reset();
    order(mine, 3);
  }
  samplers::DistributedSequentialSampler part(10, 3, 2), less(10, 3, 2, false);
  order(part, 9);
  order(less, 9);
  // A sampler goes on where it was.
  sequence.reset(6);
  sequence.next(2);
  torch::serialize::OutputArchive out;
  sequence.save(out);
  std::stringstream file;
  out.save_to(file);
  torch::serialize::InputArchive in;
  in.load_from(file);
  samplers::SequentialSampler other(1);
  other.load(in);
  order(other, 3);

  auto set = Squares().map(transforms::Normalize<>(1.0, 2.0)).map(transforms::Stack<>());
  auto plain = make_data_loader<samplers::SequentialSampler>(set, DataLoaderOptions(4));
  targets(plain);
  targets(plain);  // again, from the start
  auto full = make_data_loader<samplers::SequentialSampler>(set, DataLoaderOptions(4).drop_last(true));
  targets(full);
  Squares slow;
  slow.slow = true;
  auto threads = make_data_loader<samplers::SequentialSampler>(slow.map(transforms::Normalize<>(1.0, 2.0)).map(transforms::Stack<>()), DataLoaderOptions(4).workers(3));
  targets(threads);
  targets(threads);
  threads->begin();  // left in the middle
  targets(threads);
  auto any = make_data_loader(slow, DataLoaderOptions(1).workers(4).max_jobs(5).enforce_ordering(false));
  std::set<int64_t> seen;
  for (auto& batch : *any) seen.insert(batch[0].target.item<int64_t>());
  SHOW(seen.size() << any->options().workers());
  auto stream = make_data_loader(Stream(), samplers::StreamSampler(5), DataLoaderOptions(2));
  for (auto& batch : *stream) std::cout << batch.size() << batch[0] << ' ';
  SHOW("");
  auto rows = make_data_loader<samplers::SequentialSampler>(datasets::TensorDataset(torch::arange(6).view({3, 2})).map(transforms::Lambda<TensorExample>([](TensorExample e) { return TensorExample(e.data * 10); })).map(transforms::Stack<TensorExample>()), 2);
  for (auto& batch : *rows) std::cout << batch.data << ' ';
  SHOW("");

  datasets::MNIST train(argv[1]), test(argv[1], datasets::MNIST::Mode::kTest);
  SHOW(*train.size() << ' ' << *test.size() << train.is_train() << train.images().sizes() << train.get(1).target << train.get(2).data.max().item<float>() << train.targets().slice(0, 0, 5));

  Squares broken;
  broken.bad = 6;
  for (size_t workers : {0, 2})
    fails([&] { auto l = make_data_loader<samplers::SequentialSampler>(broken, DataLoaderOptions(4).workers(workers)); for (auto& b : *l) (void)b; });
  fails([&] { struct Slow : Squares { std::vector<Example<>> get_batch(torch::ArrayRef<size_t>) override { std::this_thread::sleep_for(std::chrono::milliseconds(300)); return {}; } }; auto l = make_data_loader(Slow(), DataLoaderOptions().workers(1).timeout(std::chrono::milliseconds(20))); for (auto& b : *l) (void)b; });
  fails([&] { make_data_loader(Squares(), DataLoaderOptions(0)); });
  fails([&] { threads->join(); threads->begin(); });
  fails([&] { samplers::DistributedRandomSampler(10, 2, 2); });
  fails([&] { datasets::MNIST("/nowhere"); });
  fails([&] { datasets::MNIST(std::string(argv[1]) + "/cut"); });
  fails([&] { datasets::MNIST(std::string(argv[1]) + "/other"); });
}
