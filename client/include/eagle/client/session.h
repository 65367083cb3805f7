// Session: where things run, in this process or in a daemon. The rest of the API is the same for both.
//
//   #include <eagle/client/session.h>
//   auto session = eagle::connect();                // finds or starts eagled
//   if (!session.ok()) die(session.status());
//   auto x = session->full<double>({1'000'000}, 1.0);
//   ...
//   auto result = session->simulate({kernel, {{"x", *x}, {"dt", 1e-3}, ...}}, {.max_steps = 2000});
//
// A Session is a handle: copies share one session, which closes with `close()` or with the last handle,
// array and graph of it. Thread-safe; calls of one session from several threads run side by side.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "eagle/client/array.h"
#include "eagle/client/run.h"
#include "engine/base/status.h"
#include "engine/graph/scratch.h"

namespace eagle {

namespace view {
enum class Format : std::uint8_t;  // engine/view/picture.h
}

class Host;  // client/host.h: the interface behind a session, with its two implementations

struct ConnectOptions {
  std::chrono::milliseconds timeout{10'000};  // for connecting and for each short call
  std::string client_name;                    // shown to the operator; the program's name when empty
  // Launch through shared memory where the daemon can; else, and without it, over gRPC. The results are the
  // same.
  bool ring = true;
  // How long the daemon keeps the session, with its arrays and graphs, when this process has gone without
  // closing it. 0: not at all.
  std::chrono::seconds lease{0};
  // Session::resume_token of a session that is to go on, here instead of where it was.
  std::string resume;
};

struct LocalOptions {
  int threads = 0;  // of a team; 0: what the machine and cgroup allow
};

struct SessionInfo {
  std::string endpoint;   // "local" or "unix:/path"
  std::string transport;  // "in process", "memfd + ring" or "memfd + grpc"
  std::string version;
  run::HostIdentity host;  // the process that computes
  std::int64_t threads = 1;
  std::string cpu;  // what kernels are compiled for
  double uptime_s = 0;
  std::uint64_t sessions = 0;
  std::uint64_t planes = 0;
  std::uint64_t plane_bytes = 0;
  std::uint64_t plane_budget_bytes = 0;
  std::uint64_t graphs = 0;
  std::uint64_t launches = 0;
  std::uint64_t kernels_cached = 0;
};

// A built graph of a host.
struct GraphInfo {
  std::uint64_t session = 0;
  std::uint64_t graph = 0;  // numbered within its session
  std::string name;
  std::string client;  // what the session's client calls itself
  std::uint32_t nodes = 0;
  std::uint64_t launches = 0;
  graph::ScratchLayout scratch = {};  // where its scratch planes lie in memory of its own
};
// The graphs of this session, or all that the caller may see: those of its own user, and for root and whom
// the daemon runs as everybody's.
enum class GraphScope : std::uint8_t { session, visible };

class Session {
public:
  explicit Session(std::shared_ptr<Host> host) : host_(std::move(host)) {}

  // `bytes` of fresh zeroed memory that the engine computes on. PLANE_BUDGET, OUT_OF_MEMORY.
  StatusOr<std::shared_ptr<Buffer>> allocate(std::uint64_t bytes, std::string_view label = {}) const;

  template <typename T>
  StatusOr<Array<T>> zeros(const Shape& shape) const {
    EAGLE_ASSIGN_OR_RETURN(std::uint64_t bytes, bytes_for(shape, sizeof(T)));
    EAGLE_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer, allocate(bytes));
    return Array<T>(std::move(buffer), shape);
  }
  template <typename T>
  StatusOr<Array<T>> full(const Shape& shape, T value) const {
    EAGLE_ASSIGN_OR_RETURN(Array<T> array, zeros<T>(shape));
    for (T& element : array.span()) element = value;
    return array;
  }
  // A copy of `values` in the session's memory, 1-D.
  template <typename T>
  StatusOr<Array<T>> copy(std::span<const T> values) const {
    EAGLE_ASSIGN_OR_RETURN(Array<T> array, zeros<T>({static_cast<std::int64_t>(values.size())}));
    std::copy(values.begin(), values.end(), array.span().begin());
    return array;
  }

  // Whether the address lies in memory that this session allocated (and still holds).
  [[nodiscard]] bool owns(const void* address) const;

  // Says that the array is fine as it is, although a launch that was cut short may have left it half written:
  // launches may read it again (PLANE_TORN). Whatever of that kind shares a byte with it is accepted, too.
  [[nodiscard]] Status accept(const ArrayView& array) const;

  // Steps the model until every sample has finished or max_steps is reached; state and mask are updated
  // in place. One request, however many steps.
  StatusOr<RunResult> simulate(const BoundPlan& model, const SimulateOptions& options) const;

  // As messages call it, and unique in this process: "local session 1", "session 2 at unix:/run/eagled.sock".
  [[nodiscard]] const std::string& name() const;
  StatusOr<SessionInfo> info() const;
  // In the order in which sessions and graphs were made.
  StatusOr<std::vector<GraphInfo>> graphs(GraphScope scope = GraphScope::session) const;
  // As the host draws it. UNKNOWN_GRAPH where it is gone or not to be seen.
  StatusOr<std::string> picture(const GraphInfo& graph, view::Format format) const;
  // By which another process of the same user goes on with this session (ConnectOptions::resume), while it
  // has a lease. A secret: whoever has it has the session. Empty in process.
  [[nodiscard]] std::string resume_token() const;
  // Ends the session: running calls are cancelled, later ones get SESSION_CLOSED. Arrays stay readable, and
  // only they hold memory from then on.
  Status close() const;
  [[nodiscard]] bool closed() const;
  [[nodiscard]] bool remote() const;
  [[nodiscard]] const std::shared_ptr<Host>& host() const { return host_; }

  // Size in bytes of an array of this shape; BAD_VALUE for a negative extent or over 2^62 bytes.
  static StatusOr<std::uint64_t> bytes_for(const Shape& shape, std::size_t item_bytes);

private:
  std::shared_ptr<Host> host_;
};

// A session in a daemon: "unix:PATH", or empty for EAGLE_ENDPOINT, /run/eagled/eagled.sock,
// $XDG_RUNTIME_DIR/eagled.sock, and else a private daemon, started here and shared by the process, that
// ends with it. BAD_ENDPOINT, NO_DAEMON, PROTOCOL_MISMATCH.
StatusOr<Session> connect(std::string_view endpoint = {}, const ConnectOptions& options = {});
// A session in this process; each launching thread has its own OpenMP team.
StatusOr<Session> local(const LocalOptions& options = {});

}  // namespace eagle
