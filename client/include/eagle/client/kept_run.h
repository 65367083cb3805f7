// Runs that outlive their client: submitted to a daemon, they go on when the session ends, and any later
// session of the same user finds them again until their lease is over. In process they run on a thread of
// their own and end with the session.
//
//   StatusOr<KeptRun> run = eagle::submit(session, model, {.max_steps = 1'000'000}, {.planes = {{"x", x}}});
//   ... (another process, tomorrow)
//   StatusOr<std::vector<KeptRunState>> mine = eagle::kept_runs(session);
//   KeptRun run(session, mine->front().id);
//   StatusOr<RunResult> result = run.wait();
//   Status fetched = run.fetch({{"x", my_array}});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "eagle/client/stepping.h"

namespace eagle {

struct SubmitOptions {
  double lease_s = 86'400;  // above 0; how long the run and its planes are kept, from now on
  std::string name;         // for people
  NamedArrays planes;       // what `fetch` may ask for
  std::string mask;         // the name among them of the finish mask
};

struct KeptPlane {
  std::string name;
  DType dtype = DType::f64;
  Shape shape;
  std::string device;  // "cuda:0"; empty: in memory of the host
};

struct KeptRunState {
  std::uint64_t id = 0;
  std::string name;
  bool ended = false;
  RunProgress progress;
  std::int64_t max_steps = 0;
  double lease_s = 0;  // left
  std::vector<KeptPlane> planes;
  std::string mask;
  std::optional<RunResult> result;  // of a run that ended well
  Status error;                     // of one that did not
};

// A handle: copies are of the same run. Thread-safe.
class KeptRun {
public:
  KeptRun(Session session, std::uint64_t id) : session_(std::move(session)), id_(id) {}

  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] StatusOr<KeptRunState> state() const;  // BAD_VALUE: there is no such run of this user
  // Its end; DEADLINE or CANCELLED where the caller would not wait so long, which the run does not notice.
  [[nodiscard]] StatusOr<RunResult> wait(const LaunchOptions& options = {}) const;
  // Copies planes of the ended run into arrays of this session, of equal dtype and shape. The host then keeps
  // the run no longer. With no arrays it only does that.
  [[nodiscard]] Status fetch(const NamedArrays& into) const;
  [[nodiscard]] Status cancel() const;  // at whole steps; it stays to be fetched

private:
  Session session_;
  std::uint64_t id_;
};

// Without host nodes, `between` and `progress`: there is nobody to call. QUOTA where this user has too many.
StatusOr<KeptRun> submit(const Session& session, std::span<const ModelStep> model,
                         const SimulateOptions& options, const SubmitOptions& kept = {});
// Those of this user; in process, of this session.
StatusOr<std::vector<KeptRunState>> kept_runs(const Session& session);

}  // namespace eagle
