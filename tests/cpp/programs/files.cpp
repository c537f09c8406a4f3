// Files between C++ and Python: argv[1] is the folder, argv[2] what is to be done.
#include <fstream>
#include <sstream>
#include <torch/script.h>

#include "show.h"

using torch::IValue;

struct NetImpl : torch::nn::Module {
  NetImpl() {
    fc = register_module("fc", torch::nn::Linear(3, 4));
    norm = register_module("norm", torch::nn::BatchNorm1d(4));
    drop = register_module("drop", torch::nn::Dropout(0.0));
    head = register_module("head", torch::nn::Sequential(torch::nn::Linear(4, 2)));
    scale = register_parameter("scale", torch::ones({1}));
    shift = register_buffer("shift", torch::full({1}, 0.5));
  }
  Tensor forward(Tensor x) { return head->forward(drop(norm(fc(x)).tanh())) * scale + shift; }
  torch::nn::Linear fc{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Dropout drop{nullptr};
  torch::nn::Sequential head{nullptr};
  Tensor scale, shift;
};
TORCH_MODULE(Net);

template <class N, class O>
void steps(N& net, O& optimizer, int n) {
  torch::manual_seed(3);
  auto x = torch::randn({6, 3}), y = torch::randn({6, 2});
  for (int i = 0; i < n; ++i) {
    optimizer.zero_grad();
    auto loss = torch::mse_loss(net(x), y);
    loss.backward();
    optimizer.step();
    std::cout << hexed(loss) << ' ';
  }
  std::cout << '\n';
}

// Tensors, values and lists of them.
void values(const std::string& folder) {
  auto wide = torch::arange(12, torch::kDouble).view({3, 4});
  torch::save(wide.t(), folder + "/tensor.pt");
  std::vector<Tensor> several = {wide, wide[1], torch::ones({2}, torch::kBFloat16), torch::ones({0}), torch::arange(3).to(torch::kUInt16)};
  torch::save(several, folder + "/several.pt");
  Tensor back;
  torch::load(back, folder + "/tensor.pt");
  SHOW(back.strides() << back.sum().item<double>());
  std::vector<Tensor> all;
  torch::load(all, folder + "/several.pt");
  SHOW(all.size() << all[0].is_alias_of(all[1]) << all[2].dtype() << all[3].sizes() << all[4]);
  std::stringstream stream;
  torch::save(wide, stream);
  torch::load(back, stream);
  SHOW(torch::equal(back, wide));
  using torch::serialize::dict_of;
  auto value = dict_of({{"n", 3}, {"x", 2.5}, {"on", true}, {"none", IValue()}, {"name", "a name"},
                        {"sizes", std::vector<int64_t>{1, -2, 70000, int64_t{1} << 40}},
                        {"tensor", wide}, {"again", wide}, {"z", torch::complex128(1, 2)},
                        {"dtype", torch::kHalf}, {"device", torch::Device("cpu")},
                        {"both", torch::serialize::tuple_of({1, "b"})}, {7, torch::serialize::list_of({})}});
  auto bytes = torch::pickle_save(value);
  std::ofstream(folder + "/value.pt", std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  SHOW(torch::pickle_load(bytes));
  std::ifstream in(folder + "/python.pt", std::ios::binary);
  std::vector<char> given((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  SHOW(torch::pickle_load(given));
}

void archives(const std::string& folder) {
  torch::serialize::OutputArchive out, inner;
  inner.write("weight", torch::ones({2}, torch::requires_grad()));
  inner.write("epoch", 4);
  out.write("net", inner);
  out.write("lr", 0.5);
  out.save_to(folder + "/archive.pt");
  torch::serialize::InputArchive in, net;
  in.load_from(folder + "/archive.pt");
  in.read("net", net);
  Tensor weight;
  IValue epoch;
  net.read("weight", weight);
  net.read("epoch", epoch);
  SHOW(weight << epoch << weight.requires_grad() << net.keys().size() << in.try_read("nothing", weight) << in.try_read("nothing", net));
  fails([&] { in.read("net", weight); });
  fails([&] { net.read("bias", weight); });
  fails([&] { in.read("child", net); });
  fails([&] { out.write("lr", 1.0); });
  fails([&] { torch::load(weight, folder + "/nothing.pt"); });
  fails([&] { torch::load(weight, folder + "/archive.pt"); });
  fails([&] { torch::save(weight, folder + "/nowhere/x.pt"); });
  fails([&] { torch::save(weight, folder); });
  fails([&] { torch::load(weight, "short", 5); });
  fails([&] { torch::pickle_load({'P', 'K'}); });
  fails([&] { torch::load(weight, folder + "/object.pt"); });
  Net net2;
  fails([&] { torch::load(net2, folder + "/archive.pt"); });
  fails([&] { torch::load(net2->fc, folder + "/other.pt"); });
  torch::optim::SGD sgd(net2->parameters(), 0.1);
  fails([&] { torch::load(sgd, folder + "/archive.pt"); });
  fails([&] { torch::load(sgd, folder + "/adam.pt"); });
}

template <class O, class P>
void training(const std::string& folder, const std::string& name, P options) {
  torch::manual_seed(1);
  Net net;
  torch::load(net, folder + "/start.pt");
  O optimizer(net->parameters(), options);
  steps(net, optimizer, 5);
  torch::save(net, folder + "/" + name + "_net.pt");
  torch::save(optimizer, folder + "/" + name + ".pt");
  // Another of each, from the files, goes on as the first does.
  Net other;
  O second(other->parameters(), P(0.7));
  torch::load(other, folder + "/" + name + "_net.pt");
  torch::load(second, folder + "/" + name + ".pt");
  steps(other, second, 5);
  steps(net, optimizer, 5);
  // What Python has saved after ten steps.
  torch::load(other, folder + "/" + name + "_python_net.pt");
  torch::load(second, folder + "/" + name + "_python.pt");
  steps(other, second, 5);
}

void script(const std::string& folder) {
  auto net = torch::jit::load(folder + "/net.pt");
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.05));
  torch::manual_seed(3);
  auto x = torch::randn({6, 3}), y = torch::randn({6, 2});
  for (int i = 0; i < 10; ++i) {
    optimizer.zero_grad();
    auto loss = torch::mse_loss(net.forward({x}).toTuple()->elements()[0].toTensor(), y);
    loss.backward();
    optimizer.step();
    std::cout << hexed(loss) << ' ';
  }
  std::cout << '\n';
  net.run_method("counted", 5);
  net.setattr("k", 3.5);
  net.save(folder + "/trained.pt", {{"notes", "ten steps"}});
  torch::jit::ExtraFilesMap extra{{"notes", ""}, {"nothing", "as it was"}};
  auto again = torch::jit::load(folder + "/trained.pt", torch::nullopt, extra);
  SHOW(extra["notes"] << extra["nothing"] << again.attr("k") << again.attr("seen"));
  SHOW(torch::equal(again.forward({x}).toTuple()->elements()[0].toTensor(), net.forward({x}).toTuple()->elements()[0].toTensor()));
  std::stringstream stream;
  torch::jit::save(torch::jit::load(folder + "/function.pt"), stream);
  SHOW(torch::jit::load(stream).forward({torch::ones({2}), 3}).toTensor());
  again.eval();
  again.save(folder + "/eval.pt");
  again.child("fc").save(folder + "/part.pt");
  fails([&] { torch::jit::Module().save(folder + "/x.pt"); });
  fails([&] { again.save(folder + "/nowhere/x.pt"); });
}

int main(int, char** argv) {
  const std::string folder = argv[1], what = argv[2];
  if (what == "values") values(folder);
  if (what == "archives") archives(folder);
  if (what == "script") script(folder);
  if (what == "train") {
    using namespace torch::optim;
    training<SGD>(folder, "sgd", SGDOptions(0.1).momentum(0.9).nesterov(true));
    training<Adam>(folder, "adam", AdamOptions(0.05).amsgrad(true));
    training<AdamW>(folder, "adamw", AdamWOptions(0.05).betas({0.8, 0.9}));
    training<RMSprop>(folder, "rmsprop", RMSpropOptions(0.02).centered(true).momentum(0.5));
    training<Adagrad>(folder, "adagrad", AdagradOptions(0.1).lr_decay(0.01));
  }
}
