// Gradients of recorded graphs and runs.
//
//   eagle::Graph g(session, {.name = "step", .recorded = true});
//   ... add, build, launch ...
//   StatusOr<eagle::Record> record = g.record();
//   StatusOr<eagle::Reverse> reverse = eagle::reverse(*record, {"y"});
//   Status s = reverse->set_seed(0, dJ_dy);           // as `y` is shaped
//   StatusOr<LaunchReport> report = reverse->launch();
//   s = reverse->get_gradient(0, dJ_dx);              // reverse->gradients()[0] says of what
//
// The reverse pass is a graph of its own in the same session (docs/manual/gradients.md), built once; launch
// it after every launch of the recorded graph that it is to be about. It reads the arrays of the recorded
// graph as they are by then: leave them alone in between.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "eagle/client/graph.h"
#include "eagle/client/run.h"
#include "eagle/client/session.h"
#include "eagle/client/stepping.h"
#include "engine/base/status.h"
#include "engine/diff/reverse.h"

namespace eagle {

class Recording;

// What the last launch of a recorded graph, or the last run of a recorded model, left for a reverse pass.
class Record {
public:
  explicit Record(std::shared_ptr<Recording> recording) : recording_(std::move(recording)) {}

  // That it holds: copies of arrays as they were before the launch, and what callables read and wrote.
  [[nodiscard]] std::uint64_t bytes() const;
  // A number that changes when the recorded graph gets other arrays: a reverse pass is of one of them.
  [[nodiscard]] std::uint64_t structure() const;
  // How many launches or runs have begun since the build: two that are equal are of one record.
  [[nodiscard]] std::uint64_t launches() const;
  // What a launch begins with and may leave changed, as (label of a node, name there): with other values of
  // these the next launch gives other results.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> carried() const;
  [[nodiscard]] const std::shared_ptr<Recording>& recording() const { return recording_; }

private:
  std::shared_ptr<Recording> recording_;
};

// What the derivative of a callable is given: for each of its planes, by name, where the values are.
// `gradients` are those of its reads that are asked about; they hold zeros, and get the gradients.
struct VjpArguments {
  NamedArrays primals;
  NamedArrays cotangents;  // of its writes
  NamedArrays gradients;
};
using Vjp = std::function<Status(const VjpArguments&)>;

struct ReverseOptions {
  std::optional<std::vector<std::string>> wrt = {};  // names of gradients; empty: all inputs
  // By the label of the callable's node; for a label that several of them share one each, in their order.
  std::vector<std::pair<std::string, Vjp>> vjps = {};
  // Trips of a loop, or steps of a run, from one kept state to the next: k of them need memory for n / k
  // states and for what k trips look at. 0: as many as make both equal, about sqrt(n).
  std::int64_t checkpoint = 0;
};

class Reverse {
public:
  struct Plane {
    std::string name;
    DType dtype = DType::f64;
    Shape shape;
  };

  Reverse(Reverse&&) noexcept;
  Reverse& operator=(Reverse&&) noexcept;
  ~Reverse();

  [[nodiscard]] const std::vector<Plane>& seeds() const;
  [[nodiscard]] const std::vector<Plane>& gradients() const;
  // Values of dtype and shape of the plane, any strides. WRONG_SHAPE, WRONG_DTYPE.
  Status set_seed(std::size_t index, const ArrayView& values);
  Status get_gradient(std::size_t index, const ArrayView& into) const;
  // Whether the last launch that was recorded can be gone back over by this pass: its loops took no more
  // trips than it has room for. If not, make another one.
  [[nodiscard]] bool fits() const;
  // GRAPH_STATE where nothing whole is recorded; what callables return.
  StatusOr<LaunchReport> launch(const LaunchOptions& options = {});

  // The reverse pass itself, to be looked at.
  [[nodiscard]] const Graph& graph() const;
  // Of memory that it needs beside the record.
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] const std::vector<diff::LoopPlan>& loops() const;

private:
  friend StatusOr<Reverse> reverse(const Record& record, const std::vector<std::string>& seeds,
                                   const ReverseOptions& options);
  struct State;
  explicit Reverse(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Plans, compiles and binds; nothing runs. Seeds and gradients are named as engine/diff/names.h says.
// Refusals: those of engine/diff/reverse.h, GRAPH_STATE, BAD_BINDING for a label of several callables.
StatusOr<Reverse> reverse(const Record& record, const std::vector<std::string>& seeds,
                          const ReverseOptions& options = {});

// A model whose runs are recorded: `run` is `simulate` (stepping.h), after a copy of what the steps
// overwrite. Callables of the model are recorded step by step.
class RecordedModel {
public:
  // At most `max_steps` steps a run. `labels`: of the parts, by which derivatives of callables are given;
  // none: as a graph labels nodes without names. BAD_VALUE.
  static StatusOr<RecordedModel> make(const Session& session, std::vector<ModelStep> model,
                                      std::int64_t max_steps, const std::vector<std::string>& labels = {});
  StatusOr<RunResult> run(const SimulateOptions& options);
  [[nodiscard]] Record record() const;

private:
  struct State;
  explicit RecordedModel(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace eagle
