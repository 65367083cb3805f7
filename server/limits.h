// Limits: every bound of the daemon in one place. A refusal names the bound by its key, which is the
// name of its field here, and in [limits] of the configuration file.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace eagle::server {

// A bound that may change while it is looked at: whoever reads it gets the old value or the new one.
template <typename T>
class Bound {
public:
  constexpr Bound(T value) : value_(value) {}  // NOLINT(*-explicit-*): a number that may change
  Bound(const Bound& other) : value_(static_cast<T>(other)) {}
  Bound& operator=(const Bound& other) { return *this = static_cast<T>(other); }
  Bound& operator=(T value) {
    value_.store(value, std::memory_order_relaxed);
    return *this;
  }
  ~Bound() = default;
  operator T() const { return value_.load(std::memory_order_relaxed); }  // NOLINT(*-explicit-*)

private:
  std::atomic<T> value_;
};

struct Limits {
  // Connections.
  std::size_t waiting_connections = 1024;  // accepted, and not yet a session or gRPC
  std::size_t grpc_connections = 8192;
  std::size_t grpc_connections_per_process = 256;
  std::size_t grpc_connections_per_user = 4096;       // of those over the unix socket
  std::chrono::milliseconds greeting_timeout{5'000};  // to say what it is and to open the session
  std::uint32_t frame_bytes = 64u << 10;              // of one side message
  std::uint32_t descriptors_per_message = 253;        // the kernel's SCM_MAX_FD
  std::uint32_t message_bytes = 64u << 20;            // of one gRPC request, whatever it is
  std::uint32_t request_bytes = 64u << 10;            // of one that has ids and names
  std::uint32_t list_bytes = 8u << 20;                // of one with a list of them
  std::uint32_t streams = 256;                        // concurrent calls of one gRPC connection
  // For the first message of a stream in which both sides speak, which may be a large one on a slow line.
  std::chrono::milliseconds first_word_timeout{120'000};

  std::size_t unnamed_streams = 8192;               // of clients over TCP that have not opened a session yet
  std::size_t grpc_connections_per_address = 1024;  // of those over TCP
  std::uint32_t chunk_bytes = 1u << 20;             // of a plane that travels
  Bound<std::size_t> transfers = 256;  // of one session: streams of planes that are read or written
  std::chrono::milliseconds keepalive{
      20'000};                              // a TCP peer is asked after that much silence, and given as much
  std::chrono::milliseconds lease{30'000};  // of a session over TCP whose connection broke
  std::chrono::milliseconds longest_lease{24 * 3600 * 1000};

  // A client whose process cannot be seen says so often that it lives, and is taken for dead after so long.
  std::chrono::milliseconds heartbeat{5'000};
  std::chrono::milliseconds longest_silence{30'000};

  // Sessions and what they hold.
  Bound<std::size_t> sessions = 4096;
  std::size_t processes = 4;           // that have one session, or had it, and still run
  Bound<std::size_t> planes = 50'000;  // of all sessions: descriptors and mappings
  Bound<std::size_t> planes_per_request = 4096;
  std::uint64_t recycled_bytes = 512u << 20;  // of released planes, that a session keeps for later ones
  std::chrono::seconds recycled_age{10};      // after which it keeps them no more
  std::size_t label_bytes = 256;              // of a plane, of a client's name
  Bound<std::size_t> graphs = 10'000;         // of one session
  Bound<std::size_t> published = 10'000;      // arrays with a name, of all sessions
  std::size_t grantees = 128;                 // principals that one of them is granted to
  Bound<std::size_t> edge_touches = 4096;     // views of a graph whose edges are listed
  std::size_t listing_bytes = 16u << 20;      // of a kernel as text or assembly

  // Work.
  Bound<std::size_t> jobs = 4096;  // launches and runs that wait, run or await a reply
  // At one piece of work while others wait: only a kernel's loop over one sample takes so long.
  Bound<std::size_t> piece_ms = 10'000;
  std::size_t builds = 64;             // requests that wait for a build thread
  int build_threads = 2;               // of one tenant at most; one more is there for the others
  std::size_t memory_requests = 1024;  // to make or release planes, that wait for their thread
  Bound<std::size_t> import_ms =
      5'000;  // until a driver has opened what a client made on a GPU; 0: none is opened
  Bound<std::size_t> gpu_probe_ms = 5'000;        // between two looks whether a GPU is still there
  std::chrono::milliseconds gpu_silence{10'000};  // after which one that does not answer is called silent
  std::uint64_t small_memory_bytes = 64u << 20;   // requests over so many bytes wait on a thread of their own
  Bound<std::size_t> kept_runs = 64;              // of one user, running or waiting to be fetched
  std::size_t kept_runs_in_all = 1024;
  std::chrono::seconds kept_run_lease{7 * 24 * 3600};
  std::size_t outcomes = 1024;  // launches whose outcome a session keeps; of those that are asked for later
                                // as many again
  std::size_t launch_waiters = 64;       // calls that wait for one launch
  std::size_t outcome_bytes = 8u << 20;  // that these may take
};

// Calls `visit(key, field, least, most)` for each bound that can be configured. Those that are `Bound` follow
// a reload; the others are looked at once, when the daemon starts.
template <typename AnyLimits, typename Visit>
void for_each_limit(AnyLimits& limits, Visit&& visit) {
  constexpr std::int64_t many = 1'000'000'000;
  visit("sessions", limits.sessions, 1, many);
  visit("planes", limits.planes, 1, many);
  visit("planes_per_request", limits.planes_per_request, 1, 1'000'000);
  visit("graphs", limits.graphs, 1, many);
  visit("published", limits.published, 1, many);
  visit("edge_touches", limits.edge_touches, 1, 1'000'000);
  visit("jobs", limits.jobs, 1, 8192);  // lines of the ledger
  visit("piece_ms", limits.piece_ms, 1, many);
  visit("kept_runs", limits.kept_runs, 1, many);
  visit("builds", limits.builds, 1, many);
  visit("memory_requests", limits.memory_requests, 1, many);
  visit("import_ms", limits.import_ms, 0, 600'000);
  visit("gpu_probe_ms", limits.gpu_probe_ms, 1, many);
  visit("waiting_connections", limits.waiting_connections, 1, many);
  visit("grpc_connections", limits.grpc_connections, 1, many);
  visit("grpc_connections_per_process", limits.grpc_connections_per_process, 1, many);
  visit("grpc_connections_per_user", limits.grpc_connections_per_user, 1, many);
  visit("grpc_connections_per_address", limits.grpc_connections_per_address, 1, many);
  visit("message_bytes", limits.message_bytes, 1 << 16, 1 << 30);
  visit("request_bytes", limits.request_bytes, 1 << 12, 1 << 30);
  visit("list_bytes", limits.list_bytes, 1 << 16, 1 << 30);
  visit("streams", limits.streams, 1, 1'000'000);
  visit("transfers", limits.transfers, 1, 1'000'000);
}

// The same for processes that may have so many descriptors (RLIMIT_NOFILE). A plane takes one in the worker
// and one in the keeper, a session one, and one for each of its `processes`: half and five sixteenths of what
// there is, so that the rest is left for connections.
inline Limits within_descriptors(Limits limits, std::uint64_t descriptors) {
  const auto at_most = [descriptors](std::size_t bound, std::uint64_t part) {
    return std::min<std::size_t>(bound, std::max<std::uint64_t>(descriptors / part, 1));
  };
  limits.planes = at_most(limits.planes, 2);
  limits.sessions = at_most(limits.sessions, 16);
  return limits;
}

}  // namespace eagle::server
