// The reverse pass of a recorded graph, as a graph of its own: derivatives of its kernels, copies, additions,
// and the nodes that make overwritten values again. It is planned once and replayed after every launch of the
// forward graph.
//
// Derivatives follow the data (RAW): each node takes the adjoints of what it wrote to adjoints of what it
// read, from the last node to the first, so the order in which adjoints of a value add up is fixed. Branches
// of groups run one after the other. A loop is taken back trip by trip: while it runs once more its states
// are kept every `interval` trips, and from each of them the trips up to the next one, so that n trips need
// memory for about 2 sqrt(n).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/diff/names.h"
#include "engine/diff/record.h"
#include "engine/graph/graph.h"
#include "engine/plane/view.h"

namespace eagle::v1 {
class GraphDescription;
}

namespace eagle::diff {

struct ReverseOptions {
  std::vector<std::string> seeds;               // find_seeds
  std::optional<std::vector<std::string>> wrt;  // find_inputs; empty: all_inputs
  std::vector<std::string> vjps;                // labels of host nodes whose derivative the client has
  std::int64_t checkpoint = 0;  // trips from one kept state of a loop to the next; 0: sqrt of them
  // Trips that each loop may take at most, by Step::loop, where less than its own cap; 0: its cap.
  std::vector<std::int64_t> trips;
};

// An array of reals in the arena.
struct ArenaArray {
  std::string name;
  plane::View view;
};

// What the client runs for a host node of the reverse pass; its number is the index among `calls`.
struct ReverseCall {
  enum class Kind : std::uint8_t {
    again,  // writes what the forward node wrote in the call whose number `cursor` holds, and counts the
            // cursor up
    vjp,    // computes gradients of that call from cotangents
  };
  Kind kind = Kind::again;
  std::uint32_t host = 0;                              // of the forward graph, in the order of a walk
  std::string label;                                   // of the forward node
  plane::View cursor;                                  // int64
  std::vector<plane::View> writes;                     // again: by write of the forward node
  std::vector<std::optional<plane::View>> cotangents;  // vjp: by write of the forward node; real ones
  std::vector<std::optional<plane::View>> gradients;   // vjp: by read of the forward node; those asked about
};

// A Param of the forward graph that a launch of the reverse one has, too.
struct ParamLink {
  ParamPlace from;
  std::string node;  // label, of one node
  std::string argument;
  kernel::Scalar scalar = kernel::Scalar::f64;
};

struct LoopPlan {
  std::string label;
  std::int64_t trips = 0;     // that it is planned for
  std::int64_t interval = 0;  // between two kept states
};

// Values that are in the arena before the first launch; else it is zero.
struct ArenaConstant {
  std::int64_t offset = 0;
  std::vector<std::int64_t> values;
};

struct Reverse {
  std::unique_ptr<v1::GraphDescription> description;
  // Planes of the description beside those of the forward graph, whose memory is the client's to fill in.
  std::optional<std::uint32_t> record;  // none where the record is empty
  std::uint32_t arena = 0;
  std::int64_t arena_bytes = 0;
  std::vector<ArenaConstant> constants;
  std::vector<ArenaArray> seeds;      // in the order that they were named; written before each launch
  std::vector<ArenaArray> gradients;  // read after it
  std::vector<ReverseCall> calls;
  std::vector<ParamLink> params;
  std::vector<LoopPlan> loops;

  Reverse();
  ~Reverse();
  Reverse(Reverse&&) noexcept;
  Reverse& operator=(Reverse&&) noexcept;
};

// `message` is the description of the program's graph. `record` is plan_record's. Refusals: those of names,
// kernels without a derivative, a host node on the way without one (BAD_BINDING), GRAPH_LIMIT for loops of
// more trips than can be kept.
StatusOr<Reverse> plan_reverse(const Program& program, const v1::GraphDescription& message,
                               const Record& record, const ReverseOptions& options);

}  // namespace eagle::diff
