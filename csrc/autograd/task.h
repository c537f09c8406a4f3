// Task: one run of the engine. Discovers the graph under its roots in one pass (dependencies, and
// which nodes lead to what is wanted), then applies nodes in order of decreasing sequence number.
// Nodes know nothing of it: several tasks may run over one graph at the same time.
#pragma once

#include "autograd/engine.h"

namespace flambeau {

// Node -> index of its entry; open addressing.
class NodeMap {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t find(const Node* node) const noexcept;
  // The place of node's index, kNone when it is new (the caller fills it).
  uint32_t& insert(const Node* node);
  void clear();

 private:
  struct Slot {
    const Node* node;
    uint32_t index;
  };
  size_t home(const Node* node) const noexcept {
    return (reinterpret_cast<uintptr_t>(node) * 0x9e3779b97f4a7c15ull) >> shift_;
  }
  void grow();
  std::vector<Slot> slots_;
  size_t used_ = 0;
  int shift_ = 64;
};

class Task {
 public:
  struct Settings {
    bool keep_graph = false, create_graph = false, accumulate = true;
  };
  Tensors run(const std::vector<Edge>& roots, Tensors&& cotangents, const std::vector<Edge>& inputs,
              Settings settings);
  bool wants(const Node* node) const noexcept;
  bool reaches(const Node* node) const noexcept;
  bool restricted() const noexcept { return restricted_; }
  void reset();

  Settings settings;
  int64_t id = -1;
  Node* current = nullptr;
  Task* outer = nullptr;
  std::vector<std::function<void()>> callbacks;

 private:
  struct Entry {
    Node* node;
    uint32_t dependencies = 0;
    uint32_t first_edge = 0;  // of its targets
    bool needed = false;      // to be applied
    bool captured = false;    // its gradient is asked for
    Tensors grads;
  };
  struct Capture {
    uint32_t entry, nr, out;
  };
  struct Frame {
    uint32_t entry, edge;
  };
  struct Ready {
    uint64_t sequence;
    uint32_t entry;
    bool operator<(const Ready& o) const noexcept { return sequence < o.sequence; }
  };

  uint32_t enter(Node* node);  // index of the node's entry, discovering what lies under it
  void discover(uint32_t entry);
  void ask_for(const std::vector<Edge>& inputs);
  void find_needed();
  void ready(uint32_t entry);
  void give(uint32_t entry, uint32_t nr, Tensor&& grad);
  void execute(uint32_t entry, Tensors& results);
  void execute_recorded(uint32_t entry, Tensors& results);  // with its event in a profile
  void before(Entry& e, Tensors& grads);
  Tensors apply(Node& node, Tensors&& grads);
  void distribute(Entry& e, Tensors&& grads);

  bool restricted_ = false;
  std::vector<Entry> entries_;
  std::vector<uint32_t> targets_;
  std::vector<Frame> stack_;
  std::vector<uint32_t> finished_;  // restricted: entries, those under them first
  std::vector<Ready> heap_;
  std::vector<Capture> captures_;
  NodeMap index_;
};

}  // namespace flambeau
