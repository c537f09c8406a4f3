// Traffic: the bytes of collectives over the connections of a mesh that are for data.
//
// What goes to a rank, and what comes of it, is a row of pieces of memory, in an order that both
// sides know. All connections move at once, on the thread that calls, and no piece waits for one of
// another rank unless its plan says so. It sleeps where nothing can move, and sees there whether a
// rank that it waits for has died, given up or left. Knows pieces, no collective.
#pragma once

#include <vector>

#include "distributed/mesh.h"

namespace flambeau::distributed {

struct Piece {
  char* data = nullptr;
  size_t bytes = 0;
};

// Whether there is a next piece, and whether it can go now.
enum class Next { Piece, Later, None };

class Plan {
 public:
  virtual ~Plan() = default;
  virtual Next send_next(int rank, Piece& piece) = 0;     // to be read until it is sent
  virtual Next receive_next(int rank, Piece& piece) = 0;  // to be written until it is received
  virtual void sent(int) {}                               // the last piece, whole
  virtual void received(int) {}
};

struct Wait {  // what is told of it when it fails
  const char* name;
  uint32_t number;
  Milliseconds timeout;
  Deadline deadline{timeout};
};

class Traffic {
 public:
  explicit Traffic(Mesh& mesh);
  // Until there is no next piece in any direction.
  void run(Plan& plan, const Wait& wait);
  // Throws, and says which ranks are at fault, or `why`.
  [[noreturn]] void fail(const Wait& wait, bool late, const std::string& why) const;

 private:
  struct Way {
    Piece piece;
    size_t at = 0;
    bool open = false, ended = false;  // a piece is under way; there is none any more
    bool stuck = false;                // until poll says otherwise
  };
  bool send(Plan& plan, const Wait& wait, int rank);
  bool receive(Plan& plan, const Wait& wait, int rank);
  void sleep(const Wait& wait);
  Mesh& mesh_;
  std::vector<Way> out_, in_;
};

}  // namespace flambeau::distributed
