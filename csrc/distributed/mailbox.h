// Messages between two ranks: send and recv, matched by sender and tag in the order of their calls.
//
// Each direction is a stream of bytes of the link. Whoever waits moves bytes, for all messages of
// the group; while there are messages that nobody waits for (isend, irecv), a thread does. One whose
// tag nobody has asked for yet stays in the stream, or where it is in the way of another, in memory
// of the receiver. Knows no collective.
#pragma once

#include <deque>
#include <list>
#include <memory>
#include <thread>

#include "distributed/link.h"
#include "distributed/work.h"

namespace flambeau::distributed {

struct Transfer {
  bool sends;
  int peer;  // -1: from any rank
  int32_t tag;
  char* data;
  size_t bytes;
  Milliseconds timeout;
  std::shared_ptr<Work> work;
  Deadline deadline{timeout};
  size_t told = 0, done = 0;  // what was sent of its header, and of its data
};

class Mailbox {
 public:
  explicit Mailbox(Link& link);
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  void start(std::shared_ptr<Transfer> t);   // the thread moves it on
  void finish(std::shared_ptr<Transfer> t);  // this thread does, until it is done
  void stop();

 private:
  struct Header {
    uint64_t bytes;
    int32_t tag, reserved;
  };
  struct Message {  // one that arrives
    Header header{};
    std::shared_ptr<Transfer> to;
    std::string held;  // its bytes, where `to` is not known
    size_t have = 0;
    bool whole() const { return have == header.bytes; }
  };
  struct Peer {
    std::deque<std::shared_ptr<Transfer>> sends;
    std::unique_ptr<Message> current;
    std::list<std::unique_ptr<Message>> held;
    bool cut = false;  // a message to it ended in the middle
  };

  void post(const std::shared_ptr<Transfer>& t);
  void progress();
  void send_to(int r);
  void receive_from(int r);
  bool take_header(int r);
  std::shared_ptr<Transfer> wanted(int r, int32_t tag);
  void deliver(int r, Message& m);
  void check(const std::shared_ptr<Transfer>& t);
  void end(const std::shared_ptr<Transfer>& t, const std::string& fault);
  void run();
  bool idle() const;

  Link& link_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::vector<Peer> peers_;
  std::list<std::shared_ptr<Transfer>> receives_;
  std::unique_ptr<std::thread> thread_;
  bool stopping_ = false;
};

}  // namespace flambeau::distributed
