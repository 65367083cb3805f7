// Connection: one session of a daemon, over the link to its worker. For the .cpp files of this folder only.
#pragma once

#include <errno.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "client/attachment.h"
#include "client/remote_link.h"
#include "client/remote_planes.h"
#include "client/request_names.h"
#include "client/resume_token.h"
#include "client/retained_maps.h"
#include "client/ring_client.h"
#include "client/session_state.h"
#include "client/side_channel.h"
#include "eagle/client/run.h"
#include "eagle/client/session.h"
#include "eagle/v1/service.grpc.pb.h"
#include "engine/base/hex.h"
#include "engine/base/trace_context.h"
#include "proto/rpc_error.h"

namespace eagle {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// What a call from a destructor may take, and telling the daemon to stop something.
constexpr milliseconds brief{1'000};
// Between two tries to have a session go on with the next worker.
constexpr milliseconds between_resumes{20};
// How often a call that finds its worker dead is made again with the next one. A request that kills every
// worker must come to an end, and leave some for the others.
constexpr int most_repeats = 2;
// Until a daemon that is being exchanged is asked again.
constexpr milliseconds pause_between_tries{10};
// What a call may take beyond a short one where a graph is built again for it, and its code compiled.
constexpr milliseconds building{120'000};

// EAGLE_RING=off keeps a program's launches on gRPC.
inline bool ring_is_off() {
  const char* said = std::getenv("EAGLE_RING");
  return said != nullptr && std::string_view(said) == "off";
}

// Thread-safe.
//
// When the worker dies its connection breaks; a keeper starts another, which has all that the session had.
// The session then goes on over another link, as soon as somebody wants something of it (`check`).
class Connection final : public PlaneSource {
public:
  static StatusOr<std::shared_ptr<Connection>> open(const Endpoint& endpoint, const ConnectOptions& options,
                                                    std::shared_ptr<const void> daemon) {
    const Deadline deadline = Clock::now() + options.timeout;
    SessionRequest request;
    request.client_name = options.client_name.empty() ? program_invocation_short_name : options.client_name;
    request.lease = std::chrono::ceil<std::chrono::seconds>(options.lease);
    request.token = options.token;
    request.traceparent = options.traceparent;
    if (!options.traceparent.empty() && !trace_context(options.traceparent)) {
      return Status(Reason::bad_value,
                    "connect: traceparent: expected 00-, 32 lower-case hexadecimal digits, -, 16 more, "
                    "-, 2 more (W3C Trace Context), found '" +
                        options.traceparent.substr(0, 80) + "'");
    }
    if (endpoint.tcp()) {
      if (!options.resume.empty()) {
        return Status(Reason::bad_value,
                      "connect: a session over TCP is not resumed by a token: it goes on by itself while its "
                      "process and its lease last");
      }
      EAGLE_ASSIGN_OR_RETURN(auto link,
                             RemoteLink::open_tcp(endpoint, options, request.client_name, deadline));
      return std::make_shared<Connection>(endpoint, options, nullptr, request, std::move(link), 0);
    }
    std::uint64_t last_launch = 0;
    if (!options.resume.empty()) {
      EAGLE_ASSIGN_OR_RETURN(request.resume, resumption_of(options.resume));
      // Above all that another process has used.
      last_launch = unix_microseconds();
      request.resume->last_launch_id = last_launch;
    }
    EAGLE_ASSIGN_OR_RETURN(request.attempt, random_bytes());
    auto opened = RemoteLink::open(endpoint, request, 1, deadline);
    // The worker died before it answered; its keeper may have another.
    for (int again = 0; again < 3 && opened.status().reason() == Reason::connection_lost; ++again) {
      opened = RemoteLink::open(endpoint, request, 1, deadline);
    }
    EAGLE_ASSIGN_OR_RETURN(auto link, std::move(opened));
    return std::make_shared<Connection>(endpoint, options, std::move(daemon), request, std::move(link),
                                        last_launch);
  }

  Connection(Endpoint its_endpoint, const ConnectOptions& options, std::shared_ptr<const void> daemon,
             SessionRequest request, std::shared_ptr<RemoteLink> link, std::uint64_t last_launch)
      : endpoint(std::move(its_endpoint)),
        state("session " + std::to_string(next_session_number()) + " at " + endpoint.text()),
        timeout(options.timeout),
        daemon_(std::move(daemon)),
        request_(std::move(request)),
        id_(link->session().id),
        raw_secret_(link->session().secret),
        secret_(to_hex(raw_secret_)),
        survives_(link->session().survives),
        copies_(link->side() == nullptr),
        huge_pages_(options.huge_pages),
        link_(std::move(link)),
        ring_wanted_(options.ring && !ring_is_off()),
        last_launch_(last_launch) {
    const milliseconds often = link_->session().heartbeat;
    if (often.count() <= 0) return;
    beats_ =
        std::make_unique<std::jthread>([this, often](const std::stop_token& stop) { beat(stop, often); });
  }

  ~Connection() override {
    if (state.forked()) {
      static_cast<void>(beats_.release());  // its thread is the parent's
      link_->abandon();
      return;
    }
    beats_.reset();
    state.close();
    end_session();
  }

  // The link of now. Whoever makes a call keeps it until the call is over.
  [[nodiscard]] std::shared_ptr<RemoteLink> link() const {
    const std::scoped_lock lock(link_mutex_);
    return link_;
  }

  // No new calls, and those that run are stopped. The daemon's side lives on while there are arrays, so that
  // their memory stays, and goes array by array; over TCP there is no memory to stay.
  void close() {
    if (!state.close()) return;
    if (planes_ == 0 || copies()) end_session();
  }

  // Whether a call can be made at all, over another link if need be.
  Status check(std::string_view operation) {
    EAGLE_RETURN_IF_ERROR(state.check(operation));
    return link()->alive() ? Status() : resume(operation, back_until());
  }

  // Over TCP a call may wait until the connection is there again.
  void prepare(grpc::ClientContext& context) const {
    context.AddMetadata(rpc::session_secret_key, secret_);
    if (copies()) context.set_wait_for_ready(true);
  }

  // Over TCP the arrays of this process are copies.
  [[nodiscard]] bool copies() const override { return copies_; }
  [[nodiscard]] bool forked() const override { return state.forked(); }
  // After a call that found the connection broken: whether it stands again before the deadline.
  [[nodiscard]] bool back_again(Deadline deadline) const {
    Attachment* const attachment = link()->attachment();
    return attachment != nullptr && attachment->wait_until_attached(deadline);
  }

  // What became of a call over this link, in the client's words where the server had none. CONNECTION_LOST:
  // the link is broken, and whether the call was carried out is not known.
  [[nodiscard]] Status outcome(std::string_view operation, const RemoteLink& link, const grpc::Status& status,
                               const grpc::ClientContext& context) const {
    if (status.ok()) return {};
    EAGLE_RETURN_IF_ERROR(state.check(operation));  // closed meanwhile, by ourselves
    const Status said = rpc::status_of(status, context);
    const bool cut_off = said.reason() == Reason::connection_lost ||
                         (said.reason() == Reason::internal && !link.alive()) ||
                         came_too_late(status, context);
    if (cut_off) {
      link.note_broken();
      return lost(operation, said.message());
    }
    if (said.reason() == Reason::deadline && status.error_message() == "Deadline Exceeded") {
      return {Reason::deadline, std::string(operation) + ": the daemon at " + endpoint.text() +
                                    " did not answer within " + std::to_string(timeout.count()) + " ms"};
    }
    return said;
  }

  // Of a call that arrived as the worker closed its connections gRPC itself says that it is cancelled, and
  // not why. (So it does of one that this side cancelled.)
  [[nodiscard]] static bool came_too_late(const grpc::Status& status, const grpc::ClientContext& context) {
    return status.error_code() == grpc::StatusCode::CANCELLED &&
           context.GetServerTrailingMetadata().count(rpc::error_reason_key) == 0;
  }

  // Whether a call that ended so may be made again, because nothing of it was begun; or may be asked for by
  // its id, because the session goes on. Waits until that makes sense; `outcome` says why not. The daemon is
  // being exchanged, or its worker died.
  bool try_again(std::string_view operation, Status& outcome, Deadline deadline) {
    if (rpc::passes_soon(outcome) && survives_ && Clock::now() < deadline) {
      std::this_thread::sleep_for(pause_between_tries);
      outcome = state.check(operation);
      return outcome.ok();
    }
    if (outcome.reason() != Reason::connection_lost || !survives_) return false;
    outcome = resume(operation, back_until());
    return outcome.ok();
  }

  // The end of a call that is not made twice: WORKER_RESTARTED instead of CONNECTION_LOST where the session
  // goes on.
  Status settle(std::string_view operation, const Status& outcome) {
    if (outcome.reason() != Reason::connection_lost || !survives_) return outcome;
    EAGLE_RETURN_IF_ERROR(resume(operation, back_until()));
    return copies_ ? outcome : restarted(operation);  // the line may have broken, and nothing else
  }
  [[nodiscard]] Status restarted(std::string_view operation) const {
    return {Reason::worker_restarted,
            std::string(operation) + ": the worker of the daemon at " + endpoint.text() +
                " died meanwhile, and another took its place; the session, its arrays and graphs are there, "
                "but how far this call came is not known"};
  }
  // A run may be sent again with its id.
  [[nodiscard]] bool tells_begun() const { return link()->session().tells_begun; }

  // A short call: `method` of `stub`. One that may be made twice is, where a worker dies in between; any is
  // where the daemon is being exchanged and has not begun it.
  enum class Again { may, must_not };
  template <typename Stub, typename Request, typename Reply>
  Status call(std::string_view operation, Stub RemoteLink::Stubs::*stub,
              grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
              const Request& request, Reply& reply, std::chrono::milliseconds beyond = {},
              Again again = Again::may) {
    const Deadline deadline = Clock::now() + timeout + beyond;
    for (int repeats = 0;;) {
      EAGLE_RETURN_IF_ERROR(check(operation));
      Status done = attempt(operation, *link(), stub, method, request, reply, beyond);
      const bool lost = done.reason() == Reason::connection_lost;
      if (lost && (again == Again::must_not || repeats++ == most_repeats)) return settle(operation, done);
      if (!try_again(operation, done, deadline)) return done;
    }
  }

  // A call that tidies up or stops something, in a closed session too: short, and not made where nobody would
  // answer. Whether the daemon answered; what it said then is nobody's to hear.
  template <typename Stub, typename Request, typename Reply>
  bool tidy(Stub RemoteLink::Stubs::*stub,
            grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
            const Request& request) {
    if (state.forked()) return false;
    const std::shared_ptr<RemoteLink> link = this->link();
    if (!link->alive()) return false;
    grpc::ClientContext context;
    prepare(context);
    context.set_deadline(std::chrono::system_clock::now() + brief);
    Reply reply;
    return (link->rpc().*stub.*method)(&context, request, &reply).error_code() !=
           grpc::StatusCode::DEADLINE_EXCEEDED;
  }

  // Gives a graph back to the daemon. From destructors: a daemon that lets one of those calls wait is left
  // alone for a while, so that what follows does not wait, too; it hears with the next call that it answers.
  void release_graph(std::uint64_t graph) {
    if (state.forked()) return;
    drop_graph(graph);
    give_back({0, 0, graph});
  }

  void release_plane(Plane plane) override {
    if (state.forked()) return;
    const std::byte* const data = plane.memory.data();
    std::optional<plane::Memory> gone;
    // Before the daemon knows: from then on its memory may be another plane's.
    if (!copies_ && !plane.device) {
      const std::scoped_lock lock(held_mutex_);
      gone = retained_.keep(plane.id, std::move(plane.memory));
    }
    if (plane.device) --device_planes_;
    drop_use(plane.id, data);
    if (--planes_ == 0 && state.closed()) end_session();
  }

  // In remote_source.cpp, as what they say of PlaneSource.
  StatusOr<Plane> create_plane(std::uint64_t bytes, std::string_view label, std::string_view device) override;
  StatusOr<Plane> import_plane(const run::cuda::DeviceHandle& handle, std::string_view label) override;
  StatusOr<std::shared_ptr<run::cuda::Opening>> open_on_device(const Plane& plane) override;
  [[nodiscard]] milliseconds driver_patience() const override { return timeout; }
  Status clear(const Plane& plane, std::uint64_t offset, std::uint64_t bytes) override;
  [[nodiscard]] std::uint64_t worker() const override;
  // Only where a launch may have left something there.
  void renew(const graph::PlaneId& plane, std::uint64_t offset, std::uint64_t bytes) override;

  // A plane that the daemon has made for this session, or granted to it. It may be one that this process has
  // already: it is released with the last.
  StatusOr<Plane> take_plane(const v1::PlaneInfo& info, bool read_only) {
    return take_plane(*link(), info, read_only);
  }

  // Whether what callables touch may have to be fetched and sent.
  [[nodiscard]] bool some_copied() const { return copies() || device_planes_ > 0; }
  // Where the bytes of a plane are in this process; null where they are not.
  [[nodiscard]] std::byte* bytes_of(const v1::PlaneRef& plane) const {
    const std::scoped_lock lock(held_mutex_);
    const auto found = uses_.find({plane.id(), plane.generation()});
    return found == uses_.end() ? nullptr : found->second.back();  // an older one is about to go
  }

  // The daemon has moved a plane: its new memory takes the place of the old one, wherever this process has
  // that.
  Status map_again(const v1::PlaneInfo& info) {
    const std::shared_ptr<RemoteLink> link = this->link();
    if (link->side() == nullptr) return {};
    EAGLE_ASSIGN_OR_RETURN(auto descriptors, link->side()->fetch({info.token()}, Clock::now() + timeout));
    const std::scoped_lock lock(held_mutex_);
    const auto uses = uses_.find({info.ref().id(), info.ref().generation()});
    if (uses == uses_.end()) return {};
    for (std::byte* const data : uses->second) {
      if (data == nullptr) continue;  // it is not mapped yet, or could not be
      EAGLE_RETURN_IF_ERROR(plane::Memory::map_over(data, info.bytes(), descriptors.front()));
    }
    return {};
  }

  // Calls that make something for the session hold this until the client knows of it: a session is not
  // resumed meanwhile, which releases what it does not know of.
  [[nodiscard]] std::shared_lock<std::shared_mutex> making() { return std::shared_lock(making_); }
  void hold_graph(std::uint64_t graph) {
    const std::scoped_lock lock(held_mutex_);
    held_graphs_.insert(graph);
  }
  void drop_graph(std::uint64_t graph) {
    const std::scoped_lock lock(held_mutex_);
    held_graphs_.erase(graph);
  }

  // A launch or a run of this session did not end well, and may have left arrays half written.
  void note_failure() { failed_.store(true, std::memory_order_relaxed); }

  [[nodiscard]] std::uint64_t next_launch() {
    const std::uint64_t launch = ++last_launch_;
    if (copies_) link()->attachment()->note_launch(launch);
    return launch;
  }
  [[nodiscard]] run::HostIdentity host() const { return link()->session().host; }

  // The way launches go where there is one; null where it is not wanted or the daemon has none.
  [[nodiscard]] RingClient* ring(RemoteLink& link) const {
    return ring_wanted_ ? link.ring(timeout) : nullptr;
  }

  // For another process, or for later.
  [[nodiscard]] std::string resume_token() const {
    std::string id(sizeof id_, '\0');
    for (std::size_t i = 0; i < id.size(); ++i) id[i] = static_cast<char>(id_ >> (8 * (id.size() - 1 - i)));
    return copies_ ? std::string() : to_hex(id) + "-" + secret_;
  }

  // CONNECTION_LOST.
  [[nodiscard]] Status lost(std::string_view operation, std::string_view why) const {
    const bool stays = copies_ && link()->alive();
    return {Reason::connection_lost,
            std::string(operation) + ": the daemon at " + endpoint.text() + " went away (" +
                std::string(why) + "); " +
                (stays ? "the session stays for its lease: call again, which waits for the connection"
                       : "open another session once it is back")};
  }

  const Endpoint endpoint;
  SessionState state;
  const milliseconds timeout;

private:
  // With the last one the plane goes back to the daemon.
  void drop_use(const graph::PlaneId& plane, const std::byte* data) {
    {
      const std::scoped_lock lock(held_mutex_);
      const auto uses = uses_.find({plane.id, plane.generation});
      uses->second.erase(std::find(uses->second.begin(), uses->second.end(), data));
      if (!uses->second.empty()) return;
      uses_.erase(uses);
    }
    give_back({plane.id, plane.generation, 0});
  }

  // What this process holds no more and the daemon may not know of yet: a plane, or a graph.
  struct Owed {
    std::uint64_t plane = 0;
    std::uint64_t generation = 0;
    std::uint64_t graph = 0;  // 0: it is a plane
  };

  void give_back(const Owed& owed) {
    {
      const std::scoped_lock lock(owed_mutex_);
      owed_.push_back(owed);
      owing_ = true;
      if (Clock::now() < quiet_until_) return;
    }
    settle_owed();
  }

  // Tells the daemon of it all, as long as it answers at once. It may hear of one twice: it knows no such
  // plane or graph then.
  void settle_owed() {
    const Deadline end = Clock::now() + brief;
    while (Clock::now() < end) {
      Owed owed;
      {
        const std::scoped_lock lock(owed_mutex_);
        if (owed_.empty()) return;
        owed = owed_.back();
        owed_.pop_back();
        owing_ = !owed_.empty();
      }
      if (!link()->alive() || tell_of(owed)) continue;  // a link that comes after knows what is held
      const std::scoped_lock lock(owed_mutex_);
      owed_.push_back(owed);
      owing_ = true;
      quiet_until_ = Clock::now() + brief;
      return;
    }
  }

  bool tell_of(const Owed& owed) {
    if (owed.graph != 0) {
      v1::ReleaseGraphRequest request;
      request.set_graph(owed.graph);
      return tidy(&RemoteLink::Stubs::graphs, &v1::Graphs::Stub::Release, request);
    }
    v1::ReleasePlanesRequest request;
    request.add_planes()->set_id(owed.plane);
    request.mutable_planes(0)->set_generation(owed.generation);
    return tidy(&RemoteLink::Stubs::planes, &v1::Planes::Stub::Release, request);
  }

  template <typename Stub, typename Request, typename Reply>
  Status attempt(std::string_view operation, RemoteLink& link, Stub RemoteLink::Stubs::*stub,
                 grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                 const Request& request, Reply& reply, std::chrono::milliseconds beyond) {
    grpc::ClientContext context;
    prepare(context);
    context.set_deadline(std::chrono::system_clock::now() + timeout + beyond);
    const Status done =
        outcome(operation, link, (link.rpc().*stub.*method)(&context, request, &reply), context);
    if (done.ok() && owing_) settle_owed();
    return done;
  }

  // In remote_source.cpp. `recycled`: the plane whose memory it has, or null.
  StatusOr<Plane> create_plane(const char* operation, const v1::CreatePlanesRequest& request,
                               milliseconds beyond);
  StatusOr<Plane> try_create_plane(const char* operation, const v1::CreatePlanesRequest& request,
                                   milliseconds beyond);
  StatusOr<Plane> take_plane(RemoteLink& link, const v1::PlaneInfo& info, bool read_only,
                             const v1::PlaneRef* recycled = nullptr);
  StatusOr<plane::Memory> map_plane(RemoteLink& link, const v1::PlaneInfo& info, bool read_only,
                                    const v1::PlaneRef* recycled);

  // A keeper may have much to hand to its next worker, whose answer to the greeting then takes as long; that
  // nobody is there is known at once. A call that has given up leaves the session as it is: the next one
  // tries again. Over TCP the stream goes on trying by itself.
  [[nodiscard]] Deadline back_until() const {
    return Clock::now() + std::max(timeout, copies_ ? timeout : survival_patience);
  }

  // Goes on with the session over another link. CONNECTION_LOST where it is over.
  Status resume(std::string_view operation, Deadline deadline) {
    if (copies_) return resume_stream(operation, deadline);
    if (!survives_ || gone_) return lost(operation, "its connection is closed");
    const std::unique_lock nobody_makes(making_);
    forget_maps();  // what the worker kept died with it
    if (gone_) return lost(operation, "its connection is closed");
    if (link()->alive()) return {};  // somebody else was quicker
    SessionRequest request = request_;
    request.resume = {id_, raw_secret_, last_launch_};
    for (;;) {
      auto fresh = RemoteLink::open(endpoint, request, link()->number() + 1, deadline);
      Status done = fresh.status();
      // Who has the session from another process knows of no more than its own part of it.
      if (done.ok() && !request_.resume) done = retain(operation, **fresh);
      if (done.ok()) {
        const std::scoped_lock lock(link_mutex_);
        link_ = *std::move(fresh);
        return {};
      }
      // The next worker may have died, too; its keeper is where it was.
      if (done.reason() == Reason::connection_lost && Clock::now() < deadline) {
        std::this_thread::sleep_for(between_resumes);
        continue;
      }
      if (done.reason() != Reason::deadline) gone_ = true;
      return lost(operation, done.message());
    }
  }

  void forget_maps() {
    RetainedMaps gone;  // unmapped after the lock
    const std::scoped_lock lock(held_mutex_);
    std::swap(gone, retained_);
  }

  // Over TCP the stream is made anew by itself.
  Status resume_stream(std::string_view operation, Deadline deadline) {
    const std::unique_lock nobody_makes(making_);
    std::this_thread::sleep_for(pause_between_tries);  // who found it broken may be the first to know
    const std::shared_ptr<RemoteLink> link = this->link();
    for (;;) {
      if (!link->attachment()->wait_until_attached(deadline))
        return lost(operation, "the connection is broken");
      const std::uint64_t attached = link->attachment()->times().attached;
      if (attached == retained_streams_) return {};
      const Status done = retain(operation, *link);
      if (done.ok()) retained_streams_ = attached;
      if (done.ok()) return {};
      const bool again = done.reason() == Reason::connection_lost || rpc::passes_soon(done);
      if (!again || Clock::now() >= deadline) return done;
      std::this_thread::sleep_for(pause_between_tries);
    }
  }

  // Says now and then that this process lives, and goes on with the session where its worker died: who is
  // idle keeps it.
  void beat(const std::stop_token& stop, milliseconds often) {
    std::mutex mutex;
    std::condition_variable_any woken;
    std::unique_lock lock(mutex);
    while (!woken.wait_for(lock, stop, often, [] { return false; }) && !stop.stop_requested() && !gone_) {
      const std::shared_ptr<RemoteLink> link = this->link();
      if (link->alive()) {
        static_cast<void>(link->side()->beat(Clock::now() + timeout));
      } else {
        static_cast<void>(resume("heartbeat", back_until()));
      }
    }
  }

  Status retain(std::string_view operation, RemoteLink& link) {
    v1::RetainRequest known;
    {
      const std::scoped_lock lock(held_mutex_);
      for (const auto& [held, memory] : uses_) {
        v1::PlaneRef& plane = *known.add_planes();
        plane.set_id(held.first);
        plane.set_generation(held.second);
      }
      for (const std::uint64_t graph : held_graphs_) known.add_graphs(graph);
    }
    v1::RetainReply reply;
    grpc::ClientContext context;
    prepare(context);
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    return outcome(operation, link, link.rpc().planes.Retain(&context, known, &reply), context);
  }

  // The daemon is told that the session is not to be kept, where it would be: after its lease, or because the
  // worker died and left it to the next one.
  void end_session() {
    forget_maps();
    for (int again = 0; again < 2 && !copies_ && (survives_ || request_.lease.count() > 0); ++again) {
      if (!link()->alive() && !resume("close", Clock::now() + brief).ok()) break;
      if (link()->side()->leave(Clock::now() + brief).reason() != Reason::connection_lost) break;
    }
    link()->shut_down();
  }

  std::shared_ptr<const void> daemon_;  // goes last
  const SessionRequest request_;        // as it was opened
  const std::uint64_t id_;
  const std::string raw_secret_;
  const std::string secret_;
  const bool survives_;
  const bool copies_;
  const bool huge_pages_;
  static constexpr std::uint64_t least_huge_bytes = 2u << 20;
  mutable std::mutex link_mutex_;
  std::shared_ptr<RemoteLink> link_;
  std::shared_mutex making_;
  mutable std::mutex held_mutex_;
  std::set<std::uint64_t> held_graphs_;
  // The planes that arrays of this process hold, by id and generation, and where each is mapped.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::byte*>> uses_;
  RetainedMaps retained_;
  const bool ring_wanted_;
  std::atomic<bool> gone_ = false;  // the session is over for good
  std::atomic<std::uint64_t> last_launch_;
  std::atomic<bool> failed_ = false;              // see note_failure
  std::atomic<std::uint64_t> planes_ = 0;         // that arrays of this process hold
  std::atomic<std::uint64_t> device_planes_ = 0;  // of these, on GPUs
  std::uint64_t retained_streams_ = 1;   // streams over TCP since which the daemon has what we know of
  std::unique_ptr<std::jthread> beats_;  // where the daemon cannot see this process
  std::mutex owed_mutex_;                // guards what follows
  std::vector<Owed> owed_;               // at most what was held: where nobody answers, nothing new is made
  Deadline quiet_until_{};               // after a tidying call that the daemon let wait
  std::atomic<bool> owing_ = false;      // there is something in `owed_`; also read without the mutex
};

}  // namespace eagle
