// Mesh: a connection between every two ranks of a group, which may be on different machines.
//
// Two, in truth. One carries the streams of messages and word of who leaves, gives up or dies: one
// that ends without a goodbye is a death. A thread reads these, so that a rank answers while it
// computes; one that does not answer is stopped, or cut off. A sender sends no more than its
// receiver has room for, so nobody has to stop reading, and word of a death is never behind data.
// The other is for the data of collectives (traffic.h); its end says that no more will come.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "distributed/greeting.h"
#include "distributed/link.h"

namespace flambeau::distributed {

class Mesh final : public Link {
 public:
  // Listens at this address of this machine, on a free port. All ranks know the same secret.
  Mesh(int rank, int size, std::string group, const std::string& host, const std::string& secret);
  ~Mesh() override;

  std::string address() const override { return acceptor_.address(); }
  void begin(const std::vector<std::string>& addresses, Milliseconds timeout) override;
  void leave(RankState state, const std::string& reason) override;
  void set_doing(uint64_t doing) override { doing_ = doing; }
  std::string trouble(int r) override;
  std::string whereabouts(int r) override;
  size_t put(int r, const char* data, size_t bytes) override;
  size_t waiting(int r) override;
  size_t get(int r, char* data, size_t bytes) override;
  size_t get_lasting(int r, char* data, size_t bytes) override;
  size_t forget(int r) override;
  uint32_t bell() override { return bell_; }
  void ring_bell(int r) override;
  bool wait_bell(uint32_t seen, const Deadline& deadline) override;

  // The connection to rank r for the data of collectives; not for blocking calls.
  const Socket& data(int r) const { return peers_[static_cast<size_t>(r)].data; }
  // Whether something is known to be wrong with any rank.
  bool troubled() const { return troubled_; }
  // All that is known to be wrong: ": rank 1 has died ...; rank 2 gave up ...". Waits a while for
  // it to become known.
  std::string all_trouble(Milliseconds most);
  // Which ranks have not come to the collective with this number, after asking them.
  std::string missing(uint32_t number);

 private:
  struct Peer {
    Socket socket, data;
    std::string out, in, reason;
    size_t out_at = 0, in_at = 0;  // what was sent, taken, of them
    std::string partial;           // of a frame that is not whole
    size_t rest = 0;               // what has not come of the frame of data that comes
    char* place = nullptr;         // where the stream's next bytes go, rather than to `in`,
    size_t place_bytes = 0, placed = 0;  // how many do, and how many have gone there untold
    uint64_t credit = 0, taken = 0, advance = 0, doing = 0;
    RankState state = RankState::Working;
    int pid = 0;
    bool gone = false, deaf = false, answered = false;  // deaf: it takes nothing any more
  };
  struct Frame;
  void send_frame(Peer& p, uint8_t type, uint64_t value, const char* data, size_t bytes);
  void flush(Peer& p);
  size_t take(Peer& p, char* data, size_t bytes);
  void grant(Peer& p, size_t bytes);
  void read(Peer& p);
  void parse(Peer& p, const char* data, size_t bytes);
  void store(Peer& p, const char* data, size_t bytes);
  void handle(Peer& p, const Frame& frame, const char* data);
  void ask(Milliseconds most);
  void rung();
  void wake();
  void run();
  std::string trouble_of(int r) const;
  std::string found_trouble() const;

  void add(Introduced from, int pid);
  std::string secret_;
  Acceptor acceptor_;
  Socket bell_in_, bell_out_;  // bytes to wake the thread
  std::vector<Peer> peers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<uint32_t> bell_{0};
  std::atomic<uint64_t> doing_{0};
  std::atomic<bool> troubled_{false};
  RankState state_ = RankState::Working;
  bool stopping_ = false;
  int owner_;
  std::unique_ptr<std::thread> thread_;
};

}  // namespace flambeau::distributed
