// Recording: what a built graph, or a model, keeps of its launches so that a reverse pass can go back over
// them.
//
// It adds copies to a description that is about to be built, and wraps the callables of its host nodes. One
// caller at a time: that of the graph that is launched, or of the reverse pass.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/describe.h"
#include "client/host.h"
#include "eagle/client/graph.h"
#include "eagle/client/run.h"
#include "eagle/client/session.h"
#include "eagle/util/Busy.h"
#include "engine/diff/program.h"
#include "engine/diff/record.h"
#include "engine/graph/graph.h"

namespace eagle::v1 {
class GraphDescription;
}

namespace eagle {

class Recording {
public:
  // Of all calls of callables in a launch, together.
  static constexpr std::uint64_t most_call_bytes = std::uint64_t{1} << 30;

  using Bytes = std::shared_ptr<const std::vector<std::byte>>;
  struct Call {
    std::vector<Bytes> reads;   // packed as diff::packed does; null: still in its array
    std::vector<Bytes> writes;  // empty where nobody will ask
  };
  struct Callable {
    std::string label;
    NamedArrays reads;
    NamedArrays writes;
    bool has_the_gpu = false;  // it works on arrays where they lie
    std::vector<Call> calls;   // of the last launch, in order
  };

  // Of the graph that `description` describes, with `backing`. Afterwards the description has the copies, and
  // the backing the wrapped callables; memory that both need is kept by the backing.
  static StatusOr<std::shared_ptr<Recording>> add_to(const Session& session, Stages stages,
                                                     v1::GraphDescription& description, Backing& backing);
  // The same for a description that will not be built: the callables are wrapped, and `copies` describes a
  // graph of the copies alone, empty where there are none.
  static StatusOr<std::shared_ptr<Recording>> of(const Session& session, Stages stages,
                                                 const v1::GraphDescription& description, Backing& backing,
                                                 v1::GraphDescription& copies);
  ~Recording();

  const Session session;
  const std::uint64_t structure;                      // no two have the same
  std::shared_ptr<v1::GraphDescription> description;  // without the copies
  std::shared_ptr<const graph::Graph> graph;          // the same, read
  std::unique_ptr<const diff::Program> program;       // of `graph`
  diff::Record plan;
  std::uint32_t copies = 0;  // nodes, before all others
  std::string device;        // where the graph's arrays lie, and the copies; empty: in memory of the host
  std::shared_ptr<Buffer> memory;  // of plan.bytes; null: none
  std::vector<run::PlaneMemory> private_planes;
  std::vector<std::shared_ptr<const void>> keep_alive;
  std::vector<Callable> callables;  // by host node, in the order of a walk

  util::Busy in_use;  // by whoever launches what is recorded, or goes back over it

  void begin(std::int64_t runs);
  void finish(std::vector<std::int64_t> trips);
  // The graph has other arrays now, and a recording of those.
  void supersede() { superseded_ = true; }
  // GRAPH_STATE unless the last launch was whole, one run of the graph, and over the arrays that it has.
  [[nodiscard]] Status check(std::string_view method) const;
  [[nodiscard]] std::uint64_t launches() const { return launches_; }               // that began
  [[nodiscard]] const std::vector<std::int64_t>& trips() const { return trips_; }  // of each loop, last time
  [[nodiscard]] std::uint64_t bytes() const { return static_cast<std::uint64_t>(plan.bytes) + call_bytes_; }

  // Numbers that Params got since the build, by launch and argument.
  using Params = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>;
  Params params;
  std::uint64_t params_changed = 0;  // how often
  // Those that the last launch ran with, which a reverse pass is about.
  [[nodiscard]] const Params& launched_params() const { return launched_params_; }
  [[nodiscard]] std::uint64_t launched_params_changed() const { return launched_params_changed_; }

private:
  explicit Recording(const Session& its_session);
  Status prepare(Stages stages, const v1::GraphDescription& whole, const Backing& backing);
  void wrap(std::vector<std::function<Status()>>& calls, const std::shared_ptr<Recording>& self);
  Status call(std::size_t host, const std::function<Status()>& callable);
  StatusOr<Bytes> keep(const ArrayView& array, const Callable& callable);

  enum class State : std::uint8_t { none, incomplete, several, whole };
  State state_ = State::none;
  std::atomic<bool> superseded_ = false;
  std::int64_t runs_ = 0;
  std::atomic<std::uint64_t> launches_ = 0;  // looked at while one begins
  std::uint64_t call_bytes_ = 0;
  std::vector<std::int64_t> trips_;
  Params launched_params_;
  std::uint64_t launched_params_changed_ = 0;
};

// Declares plane `index` of the description as where the buffer lies. Where that is part of a plane that is
// declared already, the views of `index` become views of that one.
Status place(const Host& host, const Buffer& buffer, std::uint32_t index, v1::GraphDescription& description,
             Backing& backing);

// The view that an array is, of a plane that begins at its address.
plane::View view_of_array(const ArrayView& array);

}  // namespace eagle
