// Graph::State: what a Graph holds, for the files that implement it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "client/describe.h"
#include "client/host.h"
#include "eagle/client/graph.h"
#include "eagle/util/Busy.h"

namespace eagle {

class Recording;

using StagePtr = std::shared_ptr<const StageSpec>;
using HostCall = std::function<Status(std::uint32_t call)>;
// BUSY.
Status busy(std::string_view method);
// Where it happened, once: a session that refuses names the call itself.
Status within_call(const Status& status, std::string_view method);
// As the engine of this host will read it.
StatusOr<graph::Graph> read_for(const Host& host, const v1::GraphDescription& description);

// Sets the policies of the description's kernels as the choices want them. BAD_VALUE.
Status apply_dispatch(const std::vector<kernel::PolicyChoice>& choices, v1::GraphDescription& description);

// An address as a key: label, index and name.
using AddressKey = std::tuple<std::string, std::optional<std::uint32_t>, std::string>;

struct Graph::State {
  State(Session its_session, GraphOptions its_options)
      : session(std::move(its_session)), options(std::move(its_options)) {}

  Session session;
  GraphOptions options;
  util::Busy busy;  // what changes or runs the graph: one caller at a time; an enqueued launch counts
  std::shared_ptr<const int> identity = std::make_shared<const int>(0);  // what conditionals point to

  // Looking takes the mutex only, so it works while a call is running. Nothing that owns an array goes while
  // the mutex is held: its owner may be a caller's, and wait for a lock that a thread which looks here has.
  std::mutex mutex;
  std::vector<StagePtr> stages;
  std::vector<std::shared_ptr<const void>> keep_alive;  // every array that was added
  std::shared_ptr<const graph::Graph> looked;           // of the first `looked_stages` stages
  std::size_t looked_stages = 0;
  std::vector<kernel::PolicyChoice> dispatch;  // of `built`
  NamedArrays loaded_planes;                   // of a graph that was loaded, by the file's names
  std::map<AddressKey, std::pair<std::uint64_t, graph::Number>>
      updated;  // since the build, numbered in order
  std::uint64_t updates = 0;
  Backing backing;  // of `built`, and outliving it
  std::unique_ptr<HostGraph> built;
  std::atomic<std::int64_t> brief_replays = 0;  // of `built`
  std::shared_ptr<std::atomic<bool>> running;   // stops the launch that runs
  bool enqueued = false;                        // a launch is in flight that `synchronize` will collect
  bool synchronizing = false;
  LaunchReport last;                     // of the last launch that was whole
  std::shared_ptr<Recording> recording;  // of `built`, where the graph is recorded

  [[nodiscard]] const Host& host() const { return *session.host(); }

  // These stages as a message of this graph.
  StatusOr<Backing> describe(Stages some, v1::GraphDescription& message) const;
  [[nodiscard]] StatusOr<graph::Graph> read(const v1::GraphDescription& description) const {
    return read_for(host(), description);
  }

  Status add(std::string_view method, StageSpec spec);
  void claim(const StageSpec& stage) const;
  void adopt(std::vector<StagePtr> fresh, Backing its_backing);  // in place of all stages
  Status check_conditionals(const StageSpec& spec) const;
  StatusOr<Backing> check_stage(const StagePtr& stage) const;
  Status build(const std::vector<kernel::PolicyChoice>& chosen);
  StatusOr<std::vector<Graph::DispatchRow>> dispatch_rows();
  StatusOr<std::shared_ptr<const graph::Graph>> look();
  StatusOr<const HostGraph*> host_graph(std::string_view method);
  Status check_launch(std::string_view method, std::int64_t n) const;  // the caller is in
  // `callbacks`: who runs the callables of host nodes; null: the thread that waits for the launch. `told`:
  // what is reported, for who wants more than that it stays with the graph; null: nobody.
  Status launch(std::string_view method, std::int64_t n, const LaunchOptions& launch_options,
                CallbackThread* callbacks, LaunchReport* told);
  // Launches of a recorded graph: the record is in use until the launch has ended.
  Status begin_recording(std::int64_t n) const;
  void end_recording(const LaunchReport* report) const;  // null: it was not whole
  [[nodiscard]] std::uint32_t hidden_nodes() const;      // before those of the caller, for the record
  Status enqueue(std::int64_t n);
  StatusOr<LaunchReport> synchronize(const LaunchOptions& launch_options);
  Status finish(std::string_view method, const LaunchOptions& launch_options, CallbackThread* callbacks,
                const std::function<StatusOr<LaunchReport>(const LaunchOptions&, const HostCall&)>& run,
                LaunchReport* told);
  Status update(const std::vector<ParamUpdate>& params);
  void remember(const std::vector<ParamUpdate>& params);  // for files of the graph
  Status rebind(const std::vector<PlaneUpdate>& planes);
};

}  // namespace eagle
