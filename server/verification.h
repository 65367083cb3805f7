// Verification: a graph of a session, computed on the CPU and on a GPU from one copy of its planes, and
// compared (engine/differential_replay.h). Nobody's planes change.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/differential_replay.h"
#include "engine/graph/schedule.h"
#include "engine/run/control.h"
#include "server/daemon.h"
#include "server/ledger.h"
#include "server/loaded_graph.h"
#include "server/underway.h"

namespace eagle::server {

class Session;

struct VerifyAsked {
  std::uint64_t graph = 0;
  std::string device;         // empty: the GPU that the graph runs on, else the first one
  std::int64_t launches = 1;  // replays
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

struct Verified {
  std::string device;                          // "cuda:0"
  std::string gpu;                             // its name and UUID
  std::string backend;                         // where the graph itself runs
  std::vector<graph::StageSchedule> schedule;  // on the GPU
  std::size_t nodes = 0;
  std::size_t planes = 0;   // that were compared
  std::uint64_t bytes = 0;  // of them
  std::optional<Difference> difference;
};

class Verification : public std::enable_shared_from_this<Verification> {
  struct Token {};

public:
  using Done = std::function<void(const StatusOr<Verified>&)>;
  // `owner` has the graph; copies, builds and time count for `payer`.
  Verification(Token token, Daemon& daemon, std::shared_ptr<Session> owner, std::shared_ptr<Session> payer,
               VerifyAsked asked, Done done);
  ~Verification();
  Verification(const Verification&) = delete;
  Verification& operator=(const Verification&) = delete;

  static std::shared_ptr<Verification> make(Daemon& daemon, std::shared_ptr<Session> owner,
                                            std::shared_ptr<Session> payer, VerifyAsked asked, Done done);
  // Builds both and queues the rest; takes as long as that takes. `done` is called once, whatever happens,
  // from any thread: UNKNOWN_GRAPH, GRAPH_STATE (callables), GRAPH_QUARANTINED, BAD_VALUE (no such GPU, a
  // count below 0), SYSTEM (no driver, a fault), PLANE_BUDGET, QUOTA, OUT_OF_MEMORY, CANCELLED, DEADLINE.
  void begin();
  // Instead of `begin`.
  void refuse(const Status& status) { finish(status); }
  // Ends it soon; from any thread.
  void cancel();

private:
  class Turns;
  Status prepare();
  Status copy_planes(const v1::GraphDescription& description, const PlaneStore::Planes& planes);
  Status queue(std::shared_ptr<Turns> turns, std::shared_ptr<const Footprint> footprint);
  // A turn of each; whether it is over.
  StatusOr<bool> copy_some();
  StatusOr<bool> replay_some();
  void after_copying();
  void after_replaying();
  StatusOr<Verified> compared() const;
  [[nodiscard]] Status stopped() const;
  void finish(const StatusOr<Verified>& outcome);

  // Of a plane of the graph that has memory.
  struct Copy {
    std::shared_ptr<Plane> from;
    std::shared_ptr<std::byte> to;  // charged
    std::uint64_t bytes = 0;
  };

  Daemon& daemon_;
  const std::shared_ptr<Session> owner_;
  const std::shared_ptr<Session> payer_;
  const VerifyAsked asked_;
  Done done_;
  Underway::Token counted_;
  const std::shared_ptr<run::Control> control_ = std::make_shared<run::Control>();
  std::shared_ptr<const run::cuda::Devices::Unit> unit_;
  std::shared_ptr<const void> on_device_;  // the charge of what lies there
  std::string backend_;
  GraphHash hash_{};
  std::vector<Copy> copies_;
  std::size_t copied_ = 0;          // whole ones
  std::uint64_t copied_bytes_ = 0;  // of the next
  std::unique_ptr<DifferentialReplay> replay_;
  Ledger::Line line_;
  std::mutex mutex_;
  std::shared_ptr<Turns> turns_;  // what is queued
};

}  // namespace eagle::server
