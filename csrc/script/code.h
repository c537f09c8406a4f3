// What the machine runs: instructions over registers, made of a unit by `lower`. Immutable, so that
// any number of threads run one at once.
//
// A register is a Value of the frame of a call; a name with the highest bit is a constant of the
// function. Arguments of calls lie in `operands`: results first, then arguments, of which the last
// use of a register is marked, so that memory is freed as early as it can be.
#pragma once

#include <memory>

#include "dispatch/op.h"
#include "script/unit.h"

namespace flambeau::script {

// A function of the language itself. Results are assigned after all arguments have been read.
using CoreFunction = void (*)(const Value* const* args, size_t n, Value* results);

// What the owner of a program runs for it, in whatever language. The machine calls it with the
// number that it gave when the program was made.
class Host {
 public:
  virtual ~Host() = default;
  virtual void call(uint32_t number, const Value* const* args, size_t n, Value* results) = 0;
  // A context that is entered and left; what `enter` gives is handed to `leave`.
  virtual Value enter(uint32_t number, const Value* const* args, size_t n) = 0;
  virtual void leave(const Value& entered) = 0;
};

enum class Op : uint8_t {
  // Calls: `count` arguments, `results` results, all in operands
  Entry,   // of the table
  Core,    // of the language
  Host,    // of the owner
  Call,    // of another function of the unit
  Tuple,   // one result of many that an entry gives
  GetAttr,
  SetAttr,
  Fork,  // of a function of the unit; a: of the host's `number`
  Wait,
  Done,
  Enter,   // a: the Context; `number` of the host, or `code` of an __exit__
  Leave,
  // Control: a, b, c are registers, `target` is an instruction
  Return,  // a
  Raise,   // a: message; `text`
  Jump,
  Unless,  // a is false
  When,    // a is true
  Range,   // a: state of three registers; of start, stop and step in operands
  Turn,    // of a range: a: item, b: state; falls through at its end
  Begin,   // an iteration: a: index, set to what comes first
  Next,    // a: item, b: list, c: index; jumps at its end
  NextBack,
  Move,    // a = b
  Take,    // a = b, which is empty then
  Drop,    // a
  Truth,   // a = bool(b)
  Not,
  IsNone,
  Append,  // to a list of whole numbers
  // Whole numbers and floats: a = b op c
  AddInt,
  SubInt,
  MulInt,
  FloorDivInt,
  ModInt,
  AndInt,
  OrInt,
  XorInt,
  EqInt,
  NeInt,
  LtInt,
  LeInt,
  AddFloat,
  SubFloat,
  MulFloat,
  EqFloat,
  LtFloat,
  LeFloat,
  // The same, and a jump where it is false: a op b
  UnlessEqInt,
  UnlessNeInt,
  UnlessLtInt,
  UnlessLeInt
};

struct Code;

// What `with` enters.
enum class Context : uint8_t { NoGrad, Grad, SetGrad, Object, Host, Nothing };

// What an attribute is, as its class says.
struct AttrRef {
  const Class* owner;
  std::string name, place;
  Type type;
  uint32_t slot;  // among the attributes of the class
  std::shared_ptr<void> data;  // of the owner of the program
};

using Register = uint16_t;
constexpr Register kConstant = 0x8000, kLast = 0x4000, kRegisters = 0x3FFF;

struct Instruction {
  Op op;
  uint8_t count = 0, results = 0;
  bool drops = false;     // an operand is marked
  Register a = 0, b = 0;
  union {
    uint32_t operands;
    uint32_t target;
    Register c;
  };
  union {
    const Callee* callee = nullptr;
    CoreFunction core;
    const Code* code;
    const AttrRef* attribute;
    const std::string* text;
    uint64_t number;
  };
  Instruction() : op(Op::Jump), operands(0) {}
};
static_assert(sizeof(Instruction) == 24);

struct Program;

struct Code {
  const Function* source = nullptr;
  const Program* program = nullptr;
  std::vector<Instruction> instructions;
  std::vector<Register> operands;
  Values constants;
  std::vector<int32_t> lines;  // by instruction
  uint32_t registers = 0, params = 0;
  bool lasts = false;  // it loops, waits or calls what does: worth giving a lock up for
};

// Functions of a unit that can run, by their place in it. Tasks that nobody waits for keep it.
struct Program : std::enable_shared_from_this<Program> {
  Unit unit;
  std::vector<std::unique_ptr<Code>> codes;  // null: the machine cannot run it
  std::vector<std::string> reasons;          // why not
  std::vector<std::unique_ptr<Callee>> callees;
  std::vector<std::unique_ptr<AttrRef>> attributes;
  std::vector<std::unique_ptr<std::string>> texts;
  std::unique_ptr<Host> host;

  const Code* find(std::string_view name) const;
};

}  // namespace flambeau::script
