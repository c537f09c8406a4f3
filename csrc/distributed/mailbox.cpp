#include "distributed/mailbox.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstring>

namespace flambeau::distributed {

Mailbox::Mailbox(Link& link) : link_(link), peers_(static_cast<size_t>(link.size())) {}

Mailbox::~Mailbox() {
  stop();
}

void Mailbox::stop() {
  std::unique_ptr<std::thread> thread;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    thread = std::move(thread_);
    work_.notify_all();
  }
  link_.ring_bell(link_.rank());
  if (thread) thread->join();
  std::lock_guard lock(mutex_);
  std::string why = "the group was destroyed before the message had gone through";
  for (auto& peer : peers_) {
    while (!peer.sends.empty()) end(std::shared_ptr<Transfer>(peer.sends.front()), why);
    if (peer.current && peer.current->to) end(std::shared_ptr<Transfer>(peer.current->to), why);
  }
  for (int r = 0; r < link_.size(); ++r) link_.forget(r);  // what is held ends with the mailbox
  while (!receives_.empty()) end(std::shared_ptr<Transfer>(receives_.front()), why);
}

void Mailbox::start(std::shared_ptr<Transfer> t) {
  std::lock_guard lock(mutex_);
  post(t);
  progress();
  if (t->work->done()) return;
  if (!thread_) {
    sigset_t all, before;  // signals are the main thread's
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::make_unique<std::thread>([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  work_.notify_all();
}

void Mailbox::finish(std::shared_ptr<Transfer> t) {
  bool posted = false, quiet = false;
  try {
    for (;;) {
      uint32_t seen = link_.bell();
      {
        std::lock_guard lock(mutex_);
        if (!posted) post(t), posted = true;
        progress();
        if (quiet) check(t);
        if (t->work->done()) break;
      }
      quiet = !link_.wait_bell(seen, t->deadline);
      if (quiet) check_interrupt();
    }
  } catch (const Fault&) {
    throw;
  } catch (...) {  // interrupted: nothing may write to the memory any more
    std::lock_guard lock(mutex_);
    end(t, "it was interrupted");
    throw;
  }
  t->work->wait(std::nullopt);
}

void Mailbox::run() {
  std::unique_lock lock(mutex_);
  bool quiet = false;
  while (!stopping_) {
    if (idle()) {
      work_.wait(lock);
      continue;
    }
    uint32_t seen = link_.bell();
    progress();
    std::vector<std::shared_ptr<Transfer>> open;
    Milliseconds rest(1000);
    for (auto& peer : peers_) {
      open.insert(open.end(), peer.sends.begin(), peer.sends.end());
      if (peer.current && peer.current->to) open.push_back(peer.current->to);
    }
    open.insert(open.end(), receives_.begin(), receives_.end());
    for (auto& t : open) {
      if (quiet) check(t);
      rest = std::min(rest, t->deadline.left());
    }
    if (idle()) continue;
    lock.unlock();
    quiet = !link_.wait_bell(seen, Deadline(rest));
    lock.lock();
  }
}

bool Mailbox::idle() const {
  if (!receives_.empty()) return false;
  for (auto& peer : peers_)
    if (!peer.sends.empty() || (peer.current && peer.current->to)) return false;
  return true;
}

void Mailbox::post(const std::shared_ptr<Transfer>& t) {
  if (stopping_)
    throw Fault(FaultKind::Backend, "group '" + link_.group() + "': the group was destroyed");
  if (t->sends) {
    Peer& peer = peers_[static_cast<size_t>(t->peer)];
    if (peer.cut)
      throw Fault(FaultKind::Backend, "send (group '" + link_.group() +
                                          "'): an earlier message to rank " +
                                          std::to_string(t->peer) + " was cut off");
    peer.sends.push_back(t);
    return;
  }
  receives_.push_back(t);
  // One that had to be held may be the one; where it is not whole yet, it is its later bytes that
  // bring it here.
  for (int r = 0; r < link_.size(); ++r) {
    if (t->peer >= 0 && t->peer != r) continue;
    auto& held = peers_[static_cast<size_t>(r)].held;
    for (auto at = held.begin(); at != held.end(); ++at) {
      if ((*at)->header.tag != t->tag || !(*at)->whole()) continue;
      (*at)->to = t;
      receives_.remove(t);
      std::unique_ptr<Message> m = std::move(*at);
      held.erase(at);
      deliver(r, *m);
      return;
    }
  }
}

void Mailbox::progress() {
  for (int r = 0; r < link_.size(); ++r) {
    if (r == link_.rank()) continue;
    send_to(r);
    receive_from(r);
  }
}

void Mailbox::send_to(int r) {
  Peer& peer = peers_[static_cast<size_t>(r)];
  bool moved = false;
  while (!peer.sends.empty()) {
    std::shared_ptr<Transfer> t = peer.sends.front();
    Header header{t->bytes, t->tag, 0};
    auto head = reinterpret_cast<const char*>(&header);
    size_t n = link_.put(r, head + t->told, sizeof header - t->told);
    t->told += n;
    moved = moved || n;
    if (t->told < sizeof header) break;
    n = link_.put(r, t->data + t->done, t->bytes - t->done);
    t->done += n;
    moved = moved || n;
    if (t->done < t->bytes) break;
    end(t, "");
  }
  if (moved) link_.ring_bell(r);
}

std::shared_ptr<Transfer> Mailbox::wanted(int r, int32_t tag) {
  for (auto& t : receives_)
    if ((t->peer < 0 || t->peer == r) && t->tag == tag) return t;
  return nullptr;
}

// Takes the next message's header, once somebody waits for this rank; whether it did.
bool Mailbox::take_header(int r) {
  Peer& peer = peers_[static_cast<size_t>(r)];
  if (link_.waiting(r) < sizeof(Header)) return false;
  bool waited_for = false;
  for (auto& t : receives_) waited_for = waited_for || t->peer < 0 || t->peer == r;
  if (!waited_for) return false;
  auto m = std::make_unique<Message>();
  link_.get(r, reinterpret_cast<char*>(&m->header), sizeof m->header);
  m->to = wanted(r, m->header.tag);
  if (m->to && m->to->bytes != m->header.bytes) {
    std::string text = "rank " + std::to_string(r) + " sends " + std::to_string(m->header.bytes) +
                       " bytes, expected " + std::to_string(m->to->bytes);
    end(std::shared_ptr<Transfer>(m->to), text);
    m->to = nullptr;
    m->header.tag = -1;  // no receive asks for it: its bytes are thrown away
  }
  if (m->to) receives_.remove(m->to);
  else if (m->header.tag >= 0) m->held.resize(m->header.bytes);
  peer.current = std::move(m);
  return true;
}

void Mailbox::receive_from(int r) {
  Peer& peer = peers_[static_cast<size_t>(r)];
  bool moved = false;
  while (peer.current || take_header(r)) {
    Message& m = *peer.current;
    char waste[4096];
    while (!m.whole()) {
      size_t most = m.header.bytes - m.have;
      char* to = m.to ? m.to->data + m.have : m.held.empty() ? waste : m.held.data() + m.have;
      if (to == waste) most = std::min(most, sizeof waste);
      size_t n = to == waste ? link_.get(r, to, most) : link_.get_lasting(r, to, most);
      m.have += n;
      moved = moved || n;
      if (!n) break;
    }
    if (!m.whole()) break;
    moved = true;
    std::unique_ptr<Message> done = std::move(peer.current);
    if (!done->to && done->header.tag >= 0) {
      done->to = wanted(r, done->header.tag);
      if (done->to) receives_.remove(done->to);
    }
    if (done->to) deliver(r, *done);
    else if (done->header.tag >= 0) peer.held.push_back(std::move(done));
  }
  if (moved) link_.ring_bell(r);
}

void Mailbox::deliver(int r, Message& m) {
  Transfer& t = *m.to;
  t.work->source = r;
  if (!m.held.empty() && t.bytes == m.header.bytes)
    std::memcpy(t.data, m.held.data(), m.held.size());
  end(m.to, t.bytes == m.header.bytes ? ""
                                      : "rank " + std::to_string(r) + " sends " +
                                            std::to_string(m.header.bytes) + " bytes, expected " +
                                            std::to_string(t.bytes));
}

// Has its time passed, or will its peer never come?
void Mailbox::check(const std::shared_ptr<Transfer>& t) {
  if (t->work->done()) return;
  std::string peer = t->peer < 0 ? "any rank" : "rank " + std::to_string(t->peer);
  if (link_.closing()) return end(t, "the group was destroyed meanwhile");
  if (t->deadline.passed()) {
    std::string text = "timed out after " + seconds_text(t->timeout) + " waiting for " + peer;
    if (t->peer >= 0) text += ": " + link_.whereabouts(t->peer);
    return end(t, text);
  }
  if (t->peer < 0) return;
  std::string why = link_.trouble(t->peer);
  if (why.empty()) return;
  progress();  // what it sent before is still there
  if (!t->work->done()) end(t, peer + " " + why);
}

void Mailbox::end(const std::shared_ptr<Transfer>& given, const std::string& fault) {
  std::shared_ptr<Transfer> t = given;
  receives_.remove(t);
  for (int r = 0; r < link_.size(); ++r) {
    Peer& peer = peers_[static_cast<size_t>(r)];
    auto& sends = peer.sends;
    auto at = std::find(sends.begin(), sends.end(), t);
    // One that is half sent cannot be taken back: the receiver would read the next as its rest.
    if (at != sends.end()) peer.cut = peer.cut || (t->told && t->done < t->bytes);
    if (at != sends.end()) sends.erase(at);
    if (peer.current && peer.current->to == t && !peer.current->whole()) {
      peer.current->have += link_.forget(r);
      peer.current->to = nullptr;
      peer.current->header.tag = -1;
    }
  }
  std::string name = t->sends ? "send" : "recv";
  name += " (group '" + link_.group() + "'): ";
  if (fault.empty()) t->work->finish();
  else t->work->fail(FaultKind::Backend, name + fault);
  link_.ring_bell(link_.rank());
}

}  // namespace flambeau::distributed
