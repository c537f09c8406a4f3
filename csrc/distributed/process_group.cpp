#include "distributed/process_group.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "core/error.h"

namespace flambeau::distributed {

namespace {

const char* op_name(ReduceOp op) {
  const char* names[] = {"SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"};
  return names[static_cast<int>(op)];
}

Span span_of(const char* name, const Tensor& t) {
  FB_CHECK(t.device().type() == DeviceType::CPU, name, ": expected a tensor on the CPU, got one on ",
           t.device());
  FB_CHECK(t.is_contiguous(), name, ": expected a contiguous tensor");
  FB_CHECK(!t.has_flag(kWrapper), name, ": expected a plain tensor, got one inside of a transform");
  return {t.data<char>(), static_cast<size_t>(t.numel() * t.itemsize())};
}

std::unique_ptr<std::thread> quiet_thread(std::function<void()> run) {
  sigset_t all, before;  // signals are the main thread's
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  auto thread = std::make_unique<std::thread>(std::move(run));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

void check_joins(const char* name, ReduceOp op, DType dtype) {
  bool whole = is_integral(dtype, true);
  bool bits = op == ReduceOp::BitAnd || op == ReduceOp::BitOr || op == ReduceOp::BitXor;
  FB_CHECK(!bits || whole, "Cannot use ReduceOp.", op_name(op), " with non-integral dtype: ", name,
           " got ", dtype);
  FB_CHECK(op != ReduceOp::Avg || !whole, "Cannot use ReduceOp.AVG with integral dtype: ", name,
           " got ", dtype);
  FB_CHECK(!is_complex(dtype) || (op != ReduceOp::Min && op != ReduceOp::Max), name,
           " does not support ReduceOp.", op_name(op), " on complex tensors");
}

ProcessGroup::ProcessGroup(std::unique_ptr<Region> region)
    : link_(std::move(region)),
      engine_(std::make_unique<SharedEngine>(static_cast<Region&>(*link_))),
      mailbox_(*link_),
      owner_(::getpid()) {}

ProcessGroup::ProcessGroup(std::unique_ptr<Mesh> mesh)
    : link_(std::move(mesh)),
      engine_(std::make_unique<TcpEngine>(static_cast<Mesh&>(*link_))),
      mailbox_(*link_),
      owner_(::getpid()) {}

void ProcessGroup::begin(const std::vector<std::string>& addresses, Milliseconds timeout) {
  link_->begin(addresses, timeout);
}

ProcessGroup::~ProcessGroup() {
  if (owner_ == ::getpid()) shutdown();
  else (void)thread_.release();  // a forked child has no such thread
}

void ProcessGroup::check_alive(const char* op) const {
  FB_CHECK(owner_ == ::getpid(), op, ": this process was forked after the group was made; make a "
                                     "group in the child");
  if (stopping_) throw Fault(FaultKind::Backend, std::string(op) + ": the group was destroyed");
}

std::shared_ptr<Work> ProcessGroup::collective(Kind kind, const Tensors& out, const Tensors& in,
                                               ReduceOp op, int root, Milliseconds timeout,
                                               bool async) {
  const char* name = kKindNames[static_cast<int>(kind)];
  check_alive(name);
  Task task;
  Call& call = task.call;
  call.kind = kind, call.op = op, call.root = root, call.timeout = timeout;
  for (auto& t : in) call.in.push_back(span_of(name, t));
  for (auto& t : out) call.out.push_back(span_of(name, t));
  if (!in.empty() || !out.empty()) call.dtype = (in.empty() ? out : in)[0].dtype();
  if (kind == Kind::AllReduce || kind == Kind::Reduce || kind == Kind::ReduceScatter)
    check_joins(name, op, call.dtype);
  for (auto& t : out) t.bump_version();
  if (kind == Kind::AllReduce || kind == Kind::Broadcast || kind == Kind::Reduce)
    in[0].bump_version();
  std::unique_lock lock(mutex_);
  check_alive(name);  // once more: nobody runs what is queued after the end
  if (!async && queue_.empty() && !busy_) {
    busy_ = true;
    lock.unlock();
    struct Idle {
      ProcessGroup& group;
      ~Idle() {
        std::lock_guard lock(group.mutex_);
        group.busy_ = false;
        group.changed_.notify_all();
      }
    } idle{*this};
    engine_->run(call);
    return nullptr;
  }
  Tensors held = in;
  held.insert(held.end(), out.begin(), out.end());
  auto work = task.work = std::make_shared<Work>(std::move(held), name);
  queue_.push_back(std::move(task));
  if (!thread_) thread_ = quiet_thread([this] { run(); });
  changed_.notify_all();
  lock.unlock();
  if (async) return work;
  work->wait(std::nullopt);
  return nullptr;
}

void ProcessGroup::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || (!queue_.empty() && !busy_); });
    if (stopping_) return;
    Task task = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    try {
      engine_->run(task.call);
      task.work->finish();
    } catch (const Fault& f) {
      task.work->fail(f.kind, f.what());
    } catch (const std::exception& e) {
      task.work->fail(FaultKind::Backend, e.what());
    }
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

std::shared_ptr<Work> ProcessGroup::message(bool sends, const Tensor& data, int peer, int tag,
                                            Milliseconds timeout, bool async, int* source) {
  const char* name = sends ? "send" : "recv";
  check_alive(name);
  FB_CHECK_VALUE(tag >= 0, name, ": expected a tag of 0 or more, got ", tag);
  FB_CHECK_VALUE(peer < size() && peer >= (sends ? 0 : -1) && peer != rank(), name,
                 ": expected the rank of another process of the group, got ", peer);
  Span span = span_of(name, data);
  if (!sends) data.bump_version();
  auto work = std::make_shared<Work>(Tensors{data}, name);
  auto t = std::make_shared<Transfer>(
      Transfer{sends, peer, tag, span.data, span.bytes, timeout, work});
  if (async) {
    mailbox_.start(t);
    return work;
  }
  mailbox_.finish(t);
  if (source) *source = work->source;
  return nullptr;
}

void ProcessGroup::shutdown() {
  std::unique_ptr<std::thread> thread;
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
    link_->close();
    thread = std::move(thread_);
    changed_.notify_all();
  }
  if (thread) thread->join();
  mailbox_.stop();
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !busy_; });
  }
  fail_queued();
  link_->leave(RankState::Left, "");
}

void ProcessGroup::fail_queued() {
  std::deque<Task> left;
  {
    std::lock_guard lock(mutex_);
    left.swap(queue_);
  }
  for (auto& task : left)
    task.work->fail(FaultKind::Backend, "the group was destroyed before the collective began");
}

}  // namespace flambeau::distributed
