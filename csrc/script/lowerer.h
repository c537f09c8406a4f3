// Lowerer: one function's blocks to instructions. Its own file is lower.cpp; nodes are in
// lower_nodes.cpp, loops, branches and contexts in lower_control.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "script/assembler.h"
#include "script/core_ops.h"
#include "script/lower.h"
#include "script/run.h"
#include "script/text.h"

namespace flambeau::script {

class Lowerer : Assembler {
 public:
  using Index = std::unordered_map<std::string_view, size_t>;
  Lowerer(Program& p, const Function& f, const Index& index, HostMaker* maker, Code& out,
          std::vector<size_t>& calls)
      : Assembler(f, out), program_(p), index_(index), maker_(maker), calls_(calls) {}

  void run();

 private:
  // -- blocks ---

  struct Loop {
    std::vector<Register> carried;
    std::vector<size_t> breaks, continues;
    size_t open;  // contexts that are entered around it
  };

  // Lowers the nodes, and moves what the block gives to `given`.
  void block(const Block& b, int depth, const std::vector<Register>& given);

  // -- nodes ---

  void node(const Block& b, const Node& n, int depth, size_t at, size_t place);

  void host_node(const Node& n, int depth, size_t at, size_t place);

  void entry_node(const Node& n, std::string_view uid, int depth, size_t at);
  static bool is_number(const Type& t) {
    return t.is("int") || t.is("float") || t.is("bool") || t.is("Number") || t.is("complex");
  }
  static bool is_plain_number(const Arg& a) {
    return a.kind == Arg::Kind::Int || a.kind == Arg::Kind::Float || a.kind == Arg::Kind::Bool;
  }
  // A constant as the parameter of an entry has it.
  Value parameter(const TypeDesc& t, const Arg& a);
  const Callee* keep(const Callee& c);
  void call_node(const Node& n, int depth, size_t at);

  // What a task runs; what the host runs goes the way of its nodes.
  bool fork_node(const Node& n, int depth, size_t at);

  Type type_of(const Arg& a) const;
  std::string letters(const Node& n) const;

  // A function of the language for these types; false where there is none.
  bool language(const Node& n, std::string_view name, int depth, size_t at);

  bool core_node(const Block& b, const Node& n, int depth, size_t at);

  bool arithmetic(const Block& b, const Node& n, std::string_view name, size_t at);

  bool is_next_test(const Block& b, const Node& n, size_t at) const;

  const Class* class_of(const Arg& a) const {
    return a.is_value() ? program_.unit.find_class(f_.values[a.index].type.base) : nullptr;
  }

  bool attribute(const Node& n, bool sets, int depth, size_t at);

  bool make_object(const Node& n);

  bool make_named(const Node& n, int depth, size_t at);

  // The types of a text `A or B`, where no object of the owner's is asked for.
  std::optional<Value> type_list(std::string_view text) const;
  static bool names_class(const Type& t) {
    for (const Type& item : t.items)
      if (names_class(item)) return true;
    return t.base.find('.') != t.base.npos;
  }

  bool unpack(const Node& n, int depth, size_t at);

  // -- control ---

  // The jumps to take where the test does not hold.
  size_t unless(const Arg& test);

  void if_node(const Node& n, int depth, size_t);

  // Registers for what a loop carries, with the first values in them.
  std::vector<Register> carry(const Node& n, int depth, size_t at);

  void loop_node(const Node& n, int depth, size_t at);
  void drop_lists(const std::vector<Arg>& over, int depth, size_t at);

  void turn(const Block& body, int depth, const std::vector<Register>& carried);
  // Ends the loop on top: `again` is where a turn begins, or nothing where it falls through.
  void finish(size_t next, const std::vector<size_t>& exits, size_t again);

  void jump_out(const Node& n, int depth, size_t at);

  struct Iteration {
    std::string kind;
    std::vector<Register> lists, items;
    Register state = 0;  // an index, or the first of three registers of a range
  };

  Iteration iterate(const std::string& kind, const std::vector<Arg>& over, int depth, size_t at);
  // The items of the next turn; the jumps at the end.
  std::vector<size_t> advance(Iteration& it, const std::vector<uint32_t>& items);

  void collect_node(const Node& n, int depth, size_t at);

  // -- with ---

  void enter_no_grad();
  void leave_one();
  // Leaves contexts until so many are open, which stay open for what follows in the text.
  void leave_to(size_t n) {
    for (size_t k = open_.size(); k > n; --k) emit(Op::Leave);
  }

  void with_node(const Node& n, int depth, size_t at, size_t place_of_node);
  void with_block(const Node& n, int depth, int32_t outer);

  void enter_object(const std::vector<Arg>& given, int, size_t at);

  struct Test {
    uint32_t value;
    Op op;
    Register a, b;
  };

  Program& program_;
  const Index& index_;
  HostMaker* maker_;
  std::vector<size_t>& calls_;
  std::vector<Loop> loops_;
  std::vector<Context> open_;
  std::optional<Test> test_;
  std::vector<Register> found_;  // the dict and the key of a look-up that the next node is part of
  size_t place_ = 0;
  int32_t entered_ = -1;
};

}  // namespace flambeau::script
