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
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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

class Graph;      // graph.h
class GraphFile;  // graph_file.h
struct LoadOptions;

class Host;  // client/host.h: the interface behind a session, with its two implementations

// How a daemon and its client prove who they are over TCP. PEM files.
struct TlsOptions {
  std::string ca;           // whom the daemon's certificate must come from; empty: whom the system trusts
  std::string certificate;  // of the client, where the daemon asks for one
  std::string key;
  std::string server_name;  // in the daemon's certificate, where that is not the endpoint's host
};

// The requests of a session as a file, for `eaglectl replay` (docs/manual/eaglectl.md).
struct RecordingOptions {
  // Replaced if it is there and a recording. Empty: where EAGLE_RECORD names one, there, or in FILE.2, ...
  // beside it; else nowhere.
  std::string file;
  bool contents = false;  // what arrays hold, too (EAGLE_RECORD_CONTENTS=1)
  // The file grows no further, and the recording ends there (EAGLE_RECORD_BYTES).
  std::uint64_t most_bytes = std::uint64_t{4} << 30;
};

struct ConnectOptions {
  std::chrono::milliseconds timeout{10'000};  // for connecting and for each short call
  std::string client_name;                    // shown to the operator; the program's name when empty
  // Launch through shared memory where the daemon can; else, and without it, over gRPC. The results are the
  // same.
  bool ring = true;
  // Arrays of a huge page (2 MiB) or more lie in such where the system gives some; Session::planes tells
  // whether it did.
  bool huge_pages = false;
  // How long the daemon keeps the session, with its arrays and graphs, when this process has gone without
  // closing it, or over TCP when the connection has broken. 0: not at all, or over TCP as the daemon likes.
  std::chrono::milliseconds lease{0};
  // Session::resume_token of a session that is to go on, here instead of where it was. Not over TCP.
  std::string resume;
  std::optional<TlsOptions> tls;  // of a dns: endpoint; without, everything travels in the clear
  std::string token;              // where the daemon asks for one
  // W3C trace context ("00-TRACE-SPAN-FLAGS") that what the session does belongs to: it stands on the
  // daemon's log lines and spans. Empty: none. BAD_VALUE for what is none.
  std::string traceparent;
  RecordingOptions recording = {};
};

// Told during long transfers, with the bytes done so far and in all; false stops it (CANCELLED).
using TransferProgress = std::function<bool(std::uint64_t done, std::uint64_t all)>;

// An array that a session has given a name, as the one who opened it holds it.
struct PublishedArray {
  std::shared_ptr<Buffer> buffer;
  ArrayView view;
  std::string owner;   // a principal: "uid:1000", "token:NAME", "certificate:NAME"
  bool moved = false;  // of publish: it is another array than the one that was given, with its values
};
struct PublishOptions {
  bool writable = false;
  std::vector<std::string> to;  // principals besides one's own; "*": everybody
};
struct WithdrawOptions {
  std::vector<std::string> from;  // principals; empty: everybody, and the name goes
  // Also what others have mapped already: the bytes move, and their maps show zeros. Takes a copy of the
  // bytes.
  bool seal_off = false;
};

// A plane that the session holds.
struct SessionPlane {
  std::uint64_t id = 0;
  std::string label;
  std::uint64_t bytes = 0;
  // "memfd", "copy" (over TCP) or "borrowed" (in process); of a GPU's memory "cuda_vmm_fd", "cuda_ipc",
  // "cuda_import", "copy" or "pointer" (in process)
  std::string transport;
  std::string why;  // why not another one, and why not in huge pages
  bool read_only = false;
  std::uint64_t huge_bytes = 0;  // that lie in huge pages
  std::string device = "cpu";    // "cuda:0"
  std::uint32_t opened_by = 0;   // of a GPU's memory: processes that had its handle and still run
  std::uint64_t generation = 0;  // of the id, which is used again once its plane is released
};

struct LocalOptions {
  int threads = 0;  // of a team; 0: what the machine and cgroup allow
  RecordingOptions recording = {};
};

// One of those who share the machine, as the daemon's operators know them. Root and whom the daemon runs as
// see all of them, others their own.
struct TenantUse {
  std::string name;
  double weight = 1;  // shares of the team's time are as the weights
  std::int64_t priority = 0;
  std::uint64_t sessions = 0;
  std::uint64_t planes = 0;  // its own, and those that it opened
  std::uint64_t plane_bytes = 0;
  std::uint64_t graphs = 0;
  std::uint64_t jobs = 0;  // launches and runs that wait, run or are at a host call
  std::uint64_t jobs_ended = 0;
  std::uint64_t refused = 0;  // for a quota
  double device_s = 0;        // of the team's time
  double compile_s = 0;
  double queue_wait_s = 0;  // of all jobs that have begun, from admission to their first turn
  double longest_queue_wait_s = 0;
};

struct SessionInfo {
  std::string endpoint;   // "local", "unix:/path" or "dns:host:port"
  std::string transport;  // "in process", "memfd + ring", "memfd + grpc" or "copy + grpc" (over TCP)
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
  std::string tenant;  // the caller's; empty in process, where nobody shares
  std::vector<TenantUse> tenants;
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
  std::string tenant = {};            // of the session; empty in process
};
// The graphs of this session, or all that the caller may see: those of its own user, and for root and whom
// the daemon runs as everybody's.
enum class GraphScope : std::uint8_t { session, visible };

class Session {
public:
  explicit Session(std::shared_ptr<Host> host) : host_(std::move(host)) {}

  // `bytes` of memory of its own that the engine computes on. PLANE_BUDGET, OUT_OF_MEMORY.
  // `device`: "cuda:0", "cuda" or a UUID for zeros on a GPU of the host, whose values are fetched and sent;
  // what is wrong with it is said by name.
  StatusOr<std::shared_ptr<Buffer>> allocate(std::uint64_t bytes, std::string_view label = {},
                                             Contents contents = Contents::zeros,
                                             std::string_view device = {}) const;

  // Memory on a GPU of this process that the session computes on where it lies: in process by its address,
  // in a daemon on the same host, which opens all of the allocation. Its owner is kept until nobody computes
  // there any more, and so are those from whom the same bytes are imported meanwhile: they are the same
  // array. In process bytes of an array that the session allocated are that one, in which they begin
  // `pointer` minus on_device()'s pointer on. BAD_VALUE with the cure for memory that its driver hands to no
  // other process, for what is no memory of a GPU, and over TCP; PLANE_OVERLAP for bytes that share some, not
  // all, with another import; MIXED_DEVICES for a GPU that the daemon does not use; DEADLINE.
  [[nodiscard]] StatusOr<std::shared_ptr<Buffer>> import_on_device(const ImportedMemory& memory,
                                                                   std::string_view label = {}) const;

  template <typename T>
  StatusOr<Array<T>> zeros(const Shape& shape, std::string_view device = {}) const {
    EAGLE_ASSIGN_OR_RETURN(std::uint64_t bytes, bytes_for(shape, sizeof(T)));
    EAGLE_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer, allocate(bytes, {}, Contents::zeros, device));
    return Array<T>(std::move(buffer), shape);
  }
  // Values are whatever was there.
  template <typename T>
  StatusOr<Array<T>> empty(const Shape& shape, std::string_view device = {}) const {
    EAGLE_ASSIGN_OR_RETURN(std::uint64_t bytes, bytes_for(shape, sizeof(T)));
    EAGLE_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer, allocate(bytes, {}, Contents::any, device));
    return Array<T>(std::move(buffer), shape);
  }
  template <typename T>
  StatusOr<Array<T>> full(const Shape& shape, T value, std::string_view device = {}) const {
    EAGLE_ASSIGN_OR_RETURN(Array<T> array, empty<T>(shape, device));
    for (T& element : array.span()) element = value;
    if (copied(array)) {
      EAGLE_RETURN_IF_ERROR(fill(array, {reinterpret_cast<const std::byte*>(&value), sizeof value}));
    }
    return array;
  }
  // A copy of `values` in the session's memory, 1-D.
  template <typename T>
  StatusOr<Array<T>> copy(std::span<const T> values, std::string_view device = {}) const {
    EAGLE_ASSIGN_OR_RETURN(Array<T> array, zeros<T>({static_cast<std::int64_t>(values.size())}, device));
    std::copy(values.begin(), values.end(), array.span().begin());
    EAGLE_RETURN_IF_ERROR(send(array));
    return array;
  }

  // Over TCP, and of an array on a GPU, an array's memory in this process is a copy: `fetch` brings the
  // array's values there, `send` takes them from there. Where the memory is shared there is nothing to do.
  // Arrays of other sessions: MIXED_SESSIONS.
  [[nodiscard]] Status fetch(const ArrayView& array, const TransferProgress& progress = {}) const;
  [[nodiscard]] Status send(const ArrayView& array, const TransferProgress& progress = {}) const;
  // The same with the values in memory of the caller's, row-major; `packed` is as large as the array's
  // elements.
  [[nodiscard]] Status fetch_packed(const ArrayView& array, std::span<std::byte> packed,
                                    const TransferProgress& progress = {}) const;
  [[nodiscard]] Status send_packed(const ArrayView& array, std::span<const std::byte> packed,
                                   const TransferProgress& progress = {}) const;
  // Every element gets this value, whose bytes are given.
  [[nodiscard]] Status fill(const ArrayView& array, std::span<const std::byte> element) const;
  // Whether values have to be fetched and sent: of every array; of this one.
  [[nodiscard]] bool copies() const;
  [[nodiscard]] bool copied(const ArrayView& array) const;
  // The array's first element for CUDA in this process. As Buffer::on_device; PRIVATE_ARRAY for memory that
  // is not this session's.
  [[nodiscard]] StatusOr<DeviceAddress> on_device(const ArrayView& array) const;
  // The plane that the address lies in. PRIVATE_ARRAY, UNKNOWN_PLANE.
  [[nodiscard]] StatusOr<SessionPlane> plane_of(const void* address) const;
  // As Buffer::device; empty also for memory that is not this session's.
  [[nodiscard]] std::string device_of(const void* address) const;

  // Gives the array a name under which other sessions, of this principal and of those it is granted to, can
  // open it. A part of a plane is copied into a plane of its own first: use the array that is returned from
  // then on. The name goes with this session. BAD_VALUE for a name that is taken.
  [[nodiscard]] StatusOr<PublishedArray> publish(const ArrayView& array, std::string_view name,
                                                 const PublishOptions& options = {}) const;
  // UNKNOWN_NAME where there is none, or none for this principal. `owner`: a principal; empty: one's own, or
  // the only one that has granted an array of this name.
  [[nodiscard]] StatusOr<PublishedArray> open(std::string_view name, std::string_view owner = {}) const;
  // Takes grants back: what others opened they can use in no new graph, run or launch.
  [[nodiscard]] Status withdraw(std::string_view name, const WithdrawOptions& options = {}) const;
  [[nodiscard]] StatusOr<std::vector<SessionPlane>> planes() const;

  // Whether the address lies in memory that this session allocated (and still holds).
  [[nodiscard]] bool owns(const void* address) const;

  // Says that the array is fine as it is, although a launch that was cut short may have left it half written:
  // launches may read it again (PLANE_TORN). Whatever of that kind shares a byte with it is accepted, too.
  [[nodiscard]] Status accept(const ArrayView& array) const;

  // Steps the model until every sample has finished or max_steps is reached; state and mask are updated
  // in place. One request, however many steps.
  StatusOr<RunResult> simulate(const BoundPlan& model, const SimulateOptions& options) const;

  // A graph of a file's nodes, to be built: over the arrays that are given, and arrays of zeros that are
  // made. UNKNOWN_NAME lists what the file has; WRONG_SHAPE, WRONG_DTYPE; BAD_BINDING for a callable that is
  // missing; what Graph::add refuses.
  [[nodiscard]] StatusOr<Graph> load(const GraphFile& file, const LoadOptions& options) const;
  [[nodiscard]] StatusOr<Graph> load(const GraphFile& file) const;

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

// A session in a daemon: "unix:PATH" or "dns:HOST:PORT", or empty for EAGLE_ENDPOINT,
// /run/eagled/eagled.sock, $XDG_RUNTIME_DIR/eagled.sock, and else a private daemon, started here and shared
// by the process, that ends with it. BAD_ENDPOINT, NO_DAEMON, PROTOCOL_MISMATCH.
StatusOr<Session> connect(std::string_view endpoint = {}, const ConnectOptions& options = {});
// A session in this process; each launching thread has its own OpenMP team.
StatusOr<Session> local(const LocalOptions& options = {});

}  // namespace eagle
