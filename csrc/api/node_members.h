// Members of class Node that programs in C++ walk a graph by. Included inside of the class.
uint64_t sequence_nr() const noexcept {
  return sequence;
}
uint32_t num_inputs() const noexcept {
  return static_cast<uint32_t>(outputs.size());
}
uint32_t num_outputs() const noexcept {
  return static_cast<uint32_t>(edges.size());
}
// Where the gradients go that the node computes, one for each input of its operation.
struct NextEdge {
  Ref<Node> function;  // null: no gradient is wanted there
  uint32_t input_nr = 0;
  bool is_valid() const noexcept { return bool(function); }
};
NextEdge next_edge(size_t i) const;  // Error(Index) where there is none
std::vector<NextEdge> next_edges() const;
