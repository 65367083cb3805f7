// Host: what a session needs from the place where it runs. Two implementations, one contract:
// `LocalHost` (local_host.cpp, the engine in this process, planes may borrow the caller's memory) and
// `RemoteHost` (remote_host.cpp, gRPC and a side socket to eagled, planes are shared memory).
//
// Thread-safe. Every call ends: remote ones by their deadline, cancel or the daemon's death.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/callback_thread.h"
#include "eagle/client/array.h"
#include "eagle/client/gpu_work.h"
#include "eagle/client/run.h"
#include "eagle/client/session.h"
#include "engine/base/status.h"
#include "engine/graph/explain.h"
#include "engine/graph/graph.h"
#include "engine/run/built_graph.h"
#include "engine/view/picture.h"

namespace eagle::v1 {
class AcceptPlanesRequest;
class FetchRunRequest;
class GraphDescription;
class KeptRun;
class ListRunsReply;
class RunDescription;
class SubmitRequest;
}  // namespace eagle::v1

namespace eagle {

class HostAdmin;  // client/host_admin.h

using graph::NodeReference;
using PictureFormat = view::Format;

// Where an address lies in a host's memory.
struct PlaneAddress {
  graph::PlaneId plane;
  std::uint64_t plane_bytes = 0;
  std::uint64_t offset = 0;  // of the address within the plane
  std::string label;
  std::shared_ptr<Buffer> keep_alive;  // the array's own buffer
  bool alone = false;                  // nothing else lies in the plane
  std::uint64_t begins = 0;            // the array, within the plane
};

// A graph that the host has built; released when it goes.
class HostGraph {
public:
  virtual ~HostGraph() = default;
  [[nodiscard]] virtual std::vector<std::string> schedule() const = 0;
  // As the host itself draws and explains it, from what it was sent.
  [[nodiscard]] virtual StatusOr<std::string> picture(PictureFormat format) const = 0;
  [[nodiscard]] virtual StatusOr<std::string> explanation(
      const NodeReference& node, const std::optional<NodeReference>& other) const = 0;
  // What it did lately, in Chrome's trace-event format. GRAPH_STATE where the host remembers nothing of it.
  [[nodiscard]] virtual StatusOr<std::string> timeline() const {
    return Status(
        Reason::graph_state,
        "timeline: a session in this process keeps none; build the graph in a daemon (eagle.connect)");
  }
  // `host_call` runs the client's callable number `call` in this thread; its error ends the launch with
  // HOST_CALL_FAILED.
  virtual StatusOr<LaunchReport> launch(std::int64_t n, const LaunchOptions& options,
                                        const std::function<Status(std::uint32_t call)>& host_call) = 0;

  // So many replays keep the thread that launches computing for a millisecond at most. Never changes.
  [[nodiscard]] virtual std::int64_t brief_replays() const = 0;

  // Whether `enqueue` leaves a launch in flight; where not it is a launch, and `synchronize` has nothing to
  // do.
  [[nodiscard]] virtual bool enqueues() const = 0;
  // Returns once the launch is queued; one at a time. Its outcome, host calls included, is `synchronize`'s.
  virtual Status enqueue(std::int64_t n) = 0;
  virtual StatusOr<LaunchReport> synchronize(const LaunchOptions& options,
                                             const std::function<Status(std::uint32_t call)>& host_call) = 0;
  // Asks the launch that was enqueued to stop. From any thread, while one is in flight and nobody collects
  // it: whoever calls keeps `synchronize` from beginning meanwhile. It does not wait; what it returns is
  // still to be called, from anywhere, and may.
  [[nodiscard]] virtual std::function<void()> cancel_enqueued() = 0;

  // Both refused whole or done whole; not while a launch is under way.
  virtual Status update(const std::vector<graph::ParamUpdate>& updates) = 0;
  // The description is the one that was built, over other planes; `private_planes` as for Host::build.
  virtual Status rebind(const v1::GraphDescription& description,
                        std::span<const run::PlaneMemory> private_planes) = 0;
  [[nodiscard]] virtual graph::ScratchLayout scratch() const = 0;
  [[nodiscard]] virtual run::Execution execution() const = 0;
  [[nodiscard]] virtual bool compiled() const = 0;                     // false: all code came from a cache
  [[nodiscard]] virtual std::string backend() const { return "cpu"; }  // "cuda:0"
};

// Runs that the host keeps, whatever becomes of this session.
class HostRuns {
public:
  virtual ~HostRuns() = default;
  // `planes` of the request are what may be fetched.
  virtual StatusOr<std::uint64_t> submit(const v1::SubmitRequest& request,
                                         std::span<const run::PlaneMemory> private_planes,
                                         std::vector<std::shared_ptr<const void>> keep_alive) = 0;
  virtual Status get(std::uint64_t run, v1::KeptRun& reply) = 0;
  virtual Status list(v1::ListRunsReply& reply) = 0;
  virtual Status fetch(const v1::FetchRunRequest& request,
                       std::span<const run::PlaneMemory> private_planes) = 0;
  virtual Status cancel(std::uint64_t run) = 0;
};

class Host {
public:
  virtual ~Host() = default;

  // For messages, and unique in this process: "local session 1", "session 2 at unix:/run/eagled.sock".
  [[nodiscard]] virtual const std::string& name() const = 0;
  [[nodiscard]] virtual bool remote() const = 0;
  [[nodiscard]] virtual bool closed() const = 0;
  virtual Status close() = 0;
  [[nodiscard]] virtual std::string resume_token() const { return {}; }  // empty: it cannot be resumed
  virtual StatusOr<SessionInfo> info() = 0;
  virtual StatusOr<std::vector<GraphInfo>> graphs(GraphScope scope) = 0;
  virtual StatusOr<std::string> picture(const GraphInfo& graph, PictureFormat format) = 0;

  virtual StatusOr<std::shared_ptr<Buffer>> allocate(std::uint64_t bytes, std::string_view label,
                                                     Contents contents) = 0;
  // Zeros on a GPU of the host, for those that have some.
  virtual StatusOr<std::shared_ptr<Buffer>> allocate_on(std::string_view device, std::uint64_t bytes,
                                                        std::string_view label, Contents contents);
  // Memory on a GPU of this process that somebody else made, as in Session.
  virtual StatusOr<std::shared_ptr<Buffer>> import_on_device(const ImportedMemory& memory,
                                                             std::string_view label);
  // The plane of the array that holds [address, address + bytes) whole, or nothing: memory that this session
  // did not allocate, and ranges that reach from one array into another.
  [[nodiscard]] virtual std::optional<PlaneAddress> find(const void* address, std::uint64_t bytes) const = 0;

  // Half written arrays are fine as they are. In process nothing is kept of that: the arrays are the
  // caller's.
  virtual Status accept(const v1::AcceptPlanesRequest& /*request*/) { return {}; }
  // As in Session. What is said here of shared memory is true of every host but one over TCP.
  [[nodiscard]] virtual bool copies() const { return false; }
  virtual Status fetch_packed(const ArrayView& array, std::span<std::byte> packed,
                              const TransferProgress& progress);
  virtual Status send_packed(const ArrayView& array, std::span<const std::byte> packed,
                             const TransferProgress& progress);
  virtual Status fill(const ArrayView& array, std::span<const std::byte> element);

  // As in Session. What is said here is true of a host that nobody shares.
  virtual StatusOr<PublishedArray> publish(const ArrayView& array, std::string_view name,
                                           const PublishOptions& options);
  virtual StatusOr<PublishedArray> open_published(std::string_view name, std::string_view owner);
  virtual Status withdraw(std::string_view name, const WithdrawOptions& options);
  virtual StatusOr<std::vector<SessionPlane>> planes();

  // `private_planes`: memory of the private planes of the description, by plane index (null data for
  // shared ones). A remote host ignores it: host nodes alone touch those, and they run in the client.
  virtual StatusOr<std::unique_ptr<HostGraph>> build(const v1::GraphDescription& description,
                                                     std::span<const run::PlaneMemory> private_planes) = 0;
  // The same with what callables are on a GPU of this process. What is said here is true of hosts that have
  // none.
  virtual StatusOr<std::unique_ptr<HostGraph>> build_with(const v1::GraphDescription& description,
                                                          std::span<const run::PlaneMemory> private_planes,
                                                          const GpuWorks& /*works*/) {
    return build(description, private_planes);
  }
  // `host_call` runs the client's part number `call` of a step in this thread; its error ends the run with
  // HOST_CALL_FAILED.
  using HostCall = std::function<step::HostAnswer(std::uint32_t call)>;
  virtual StatusOr<RunResult> simulate(const v1::RunDescription& description,
                                       std::span<const run::PlaneMemory> private_planes,
                                       const SimulateOptions& options, const HostCall& host_call) = 0;
  // The same with what callables are on a GPU of this process, as for `build_with`.
  virtual StatusOr<RunResult> simulate_with(const v1::RunDescription& description,
                                            std::span<const run::PlaneMemory> private_planes,
                                            const SimulateOptions& options, const HostCall& host_call,
                                            const GpuWorks& /*works*/) {
    return simulate(description, private_planes, options, host_call);
  }

  // Null where it keeps none.
  virtual HostRuns* runs() { return nullptr; }
  // Null in process, where there is nobody to ask.
  virtual HostAdmin* admin() { return nullptr; }

  // Where host nodes run whose launch nobody waits for.
  CallbackThread& callbacks() { return callbacks_; }

private:
  CallbackThread callbacks_;
  std::mutex published_mutex_;
  std::map<std::string, PublishedArray, std::less<>> published_;
};

}  // namespace eagle
