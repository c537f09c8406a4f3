// Mesh: a connection between every two ranks of a group, which may be on different machines.
//
// Carries the streams of messages, the heads of collectives, and word of who leaves, gives up or
// dies: a connection that ends without a goodbye is a death. A thread reads all connections, so that a rank answers while it
// computes; one that does not answer is stopped, or cut off. Who connects shows the number that the
// rank gave away in its address. A sender sends no more than its receiver has room for, so nobody
// has to stop reading, and word of a death is never behind data.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "distributed/link.h"
#include "distributed/socket.h"

namespace flambeau::distributed {

class Mesh final : public Link {
 public:
  // Listens at this address of this machine, on a free port.
  Mesh(int rank, int size, std::string group, const std::string& host);
  ~Mesh() override;

  std::string address() const override { return address_; }
  void begin(const std::vector<std::string>& addresses, Milliseconds timeout) override;
  void leave(RankState state, const std::string& reason) override;
  void set_doing(uint64_t doing) override { doing_ = doing; }
  std::string trouble(int r) override;
  std::string whereabouts(int r) override;
  size_t room(int r) override;
  size_t put(int r, const char* data, size_t bytes) override;
  size_t waiting(int r) override;
  size_t get(int r, char* data, size_t bytes) override;
  uint32_t bell() override { return bell_; }
  void ring_bell(int r) override;
  bool wait_bell(uint32_t seen, const Deadline& deadline) override;

  const std::string& host() const { return host_; }
  // Sends one text to each other rank and gets one of each, before messages begin.
  std::vector<std::string> exchange(const std::vector<std::string>& texts,
                                    const Deadline& deadline);
  // The head of a collective: one goes to each other rank, and one comes of each.
  void send_head(int r, const char* data, size_t bytes);
  // Until all are there (this rank's stays empty). False where one never will be, or in time.
  bool take_heads(std::vector<std::string>& heads, const Deadline& deadline);
  // Called by the thread, again and again, once a rank has given up
  // or died.
  void when_broken(std::function<void()> call);
  // All that is known to be wrong: ": rank 1 has died ...; rank 2 gave up ...". Waits a while for
  // it to become known.
  std::string all_trouble(Milliseconds most);
  // Which ranks have not come to the collective with this number, after asking them.
  std::string missing(uint32_t number);

 private:
  struct Peer {
    Socket socket;
    std::string out, in, reason;
    size_t out_at = 0, in_at = 0;  // what was sent, taken, of them
    std::string partial;           // of a frame that is not whole
    std::deque<std::string> heads;
    uint64_t credit = 0, taken = 0, doing = 0;
    RankState state = RankState::Working;
    int pid = 0;
    bool gone = false, answered = false;
  };
  struct Frame;
  void send_frame(Peer& p, uint8_t type, uint64_t value, const char* data, size_t bytes);
  void flush(Peer& p);
  void read(Peer& p);
  void parse(Peer& p);
  void handle(Peer& p, const Frame& frame, const char* data);
  void ask(Milliseconds most);
  void rung();
  void wake();
  void run();
  std::string trouble_of(int r) const;
  std::string found_trouble() const;

  std::string host_, token_, address_;
  Socket listener_, bell_in_, bell_out_;  // bytes to wake the thread
  std::vector<Peer> peers_;
  std::mutex mutex_, call_mutex_;
  std::condition_variable changed_;
  std::atomic<uint32_t> bell_{0};
  std::atomic<uint64_t> doing_{0};
  std::function<void()> broken_;  // under call_mutex_
  RankState state_ = RankState::Working;
  bool stopping_ = false;
  int owner_;
  std::unique_ptr<std::thread> thread_;
};

}  // namespace flambeau::distributed
