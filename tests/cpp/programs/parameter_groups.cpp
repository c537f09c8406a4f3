// Groups of parameters with options of their own, schedulers, files of models and optimisers.
#include <torch/torch.h>

#include <iostream>
#include <sstream>
struct NetImpl : torch::nn::Module {
  NetImpl() : a(register_module("a", torch::nn::Linear(4, 8))), b(register_module("b", torch::nn::Linear(8, 1))) {}
  torch::Tensor forward(torch::Tensor x) { return b->forward(a->forward(x).tanh()); }
  torch::nn::Linear a, b;
};
TORCH_MODULE(Net);
struct Halve : torch::optim::LRScheduler {
  explicit Halve(torch::optim::Optimizer& o) : LRScheduler(o) {}
  std::vector<double> get_lrs() override {
    auto l = get_current_lrs();
    if (step_count_ > 1)
      for (auto& v : l) v /= 2;
    return l;
  }
};
int main(int, char** argv) {
  const std::string folder = argv[1];
  torch::manual_seed(1);
  Net net;
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.push_back(
      torch::optim::OptimizerParamGroup(net->a->parameters(), std::make_unique<torch::optim::AdamWOptions>(0.1)));
  groups.emplace_back(net->b->parameters());
  torch::optim::AdamW opt(
      groups, torch::optim::AdamWOptions(0.01).weight_decay(0.1).betas(std::make_tuple(0.8, 0.99)).amsgrad(true));
  torch::optim::StepLR sched(opt, 2, 0.5);
  auto x = torch::randn({32, 4}), y = x.sum(1, true);
  double first = 0, last = 0;
  for (int i = 0; i < 6; ++i) {
    opt.zero_grad();
    auto loss = torch::mse_loss(net(x), y);
    loss.backward();
    opt.step();
    sched.step();
    last = loss.item<double>();
    if (!i) first = last;
  }
  std::cout << (last < first) << '\n';
  for (auto& group : opt.param_groups()) {
    auto& o = static_cast<torch::optim::AdamWOptions&>(group.options());
    std::cout << o.lr() << ' ' << o.weight_decay() << ' ' << std::get<0>(o.betas()) << ' ' << group.params().size()
              << '\n';
    o.lr(0.5);
    group.options().set_lr(0.25);
    std::cout << group.options().get_lr() << '\n';
  }
  opt.add_param_group(torch::optim::OptimizerParamGroup({torch::ones({2}, torch::requires_grad())}));
  std::cout << opt.param_groups().size() << ' ' << opt.size() << '\n';
  torch::optim::SGD sgd(net->parameters(),
                        torch::optim::SGDOptions(0.1).momentum(0.9).nesterov(true).dampening(0).weight_decay(1e-4));
  sgd.zero_grad();
  torch::mse_loss(net(x), y).backward();
  auto l = sgd.step([&] {
    sgd.zero_grad();
    auto q = torch::mse_loss(net(x), y);
    q.backward();
    return q;
  });
  std::cout << l.defined() << '\n';
  auto& sgdo = static_cast<torch::optim::SGDOptions&>(sgd.defaults());
  std::cout << sgdo.momentum() << '\n';
  torch::optim::ReduceLROnPlateauScheduler plateau(sgd, torch::optim::ReduceLROnPlateauScheduler::min, 0.1, 1);
  for (int i = 0; i < 5; ++i) plateau.step(1.0);
  std::cout << sgd.param_groups()[0].options().get_lr() << '\n';
  Halve h(sgd);
  h.step();
  h.step();
  std::cout << sgd.param_groups()[0].options().get_lr() << '\n';
  torch::optim::RMSprop rms(net->parameters(), torch::optim::RMSpropOptions(1e-3).alpha(0.9).centered(true));
  torch::optim::Adagrad ada(net->parameters(), torch::optim::AdagradOptions(1e-2).lr_decay(1e-3));
  torch::optim::Adam adam({net->a->weight, net->a->bias}, 1e-3);
  torch::optim::LBFGS lbfgs(net->parameters(), torch::optim::LBFGSOptions(1).max_iter(5).history_size(3));
  lbfgs.step([&] {
    lbfgs.zero_grad();
    auto q = torch::mse_loss(net(x), y);
    q.backward();
    return q;
  });
  rms.step(), ada.step(), adam.step();
  std::vector<std::unique_ptr<torch::optim::Optimizer>> all;
  all.push_back(std::make_unique<torch::optim::Adam>(net->parameters()));
  all.back()->step();
  torch::save(net, folder + "/net.pt");
  torch::save(sgd, folder + "/opt.pt");
  Net other;
  torch::load(other, folder + "/net.pt");
  torch::load(sgd, folder + "/opt.pt");
  std::cout << torch::allclose(other(x), net(x)) << '\n';
  std::stringstream ss;
  torch::save(std::vector<torch::Tensor>{x, y}, ss);
  std::vector<torch::Tensor> back;
  torch::load(back, ss);
  std::cout << back.size() << torch::equal(back[1], y) << '\n';
  torch::serialize::OutputArchive ar;
  net->save(ar);
  ar.save_to(folder + "/ar.pt");
  torch::serialize::InputArchive in;
  in.load_from(folder + "/ar.pt");
  other->load(in);
  torch::Tensor t;
  torch::save(x, folder + "/x.pt");
  torch::load(t, folder + "/x.pt", torch::kCPU);
  std::cout << t.equal(x) << '\n';
  auto bytes = torch::pickle_save(x);
  std::cout << torch::pickle_load(bytes).toTensor().sizes() << '\n';
}
