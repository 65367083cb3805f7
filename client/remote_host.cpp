#include "client/remote_host.h"

#include <errno.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <utility>

#include "client/plane_registry.h"
#include "client/remote_planes.h"
#include "client/session_state.h"
#include "client/side_channel.h"
#include "eagle/v1/service.grpc.pb.h"
#include "proto/rpc_error.h"

namespace eagle {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// How often a waiting call looks whether its caller wants it to stop. Its end wakes it at once.
constexpr milliseconds look_interval{10};
// What a call from a destructor may take, and telling the daemon to stop something.
constexpr milliseconds brief{1'000};

std::string hexadecimal(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += digits[static_cast<unsigned char>(byte) >> 4];
    text += digits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

// ---- the connection of one session: its side channel, its gRPC channel and what goes over them

class Connection final : public PlaneSource {
public:
  static StatusOr<std::shared_ptr<Connection>> open(const Endpoint& endpoint, const ConnectOptions& options,
                                                    std::shared_ptr<const void> daemon) {
    const Deadline deadline = Clock::now() + options.timeout;
    const std::string client_name =
        options.client_name.empty() ? program_invocation_short_name : options.client_name;
    EAGLE_ASSIGN_OR_RETURN(auto side, SideChannel::open(endpoint, client_name, deadline));
    // The calls get a socket of their own whose peer was checked too. A channel that gRPC opened by path
    // would send the secret to whoever listens there when it reconnects.
    EAGLE_ASSIGN_OR_RETURN(UniqueFd socket, connect_to_daemon(endpoint, deadline));
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    auto channel = grpc::CreateCustomInsecureChannelFromFd("eagled", socket.release(), arguments);
    return std::make_shared<Connection>(endpoint, options, std::move(daemon), std::move(side),
                                        std::move(channel));
  }

  Connection(Endpoint its_endpoint, const ConnectOptions& options, std::shared_ptr<const void> daemon,
             std::unique_ptr<SideChannel> side, std::shared_ptr<grpc::Channel> channel)
      : endpoint(std::move(its_endpoint)),
        state("session " + std::to_string(next_session_number()) + " at " + endpoint.text()),
        timeout(options.timeout),
        daemon_(std::move(daemon)),
        side_(std::move(side)),
        secret_(hexadecimal(side_->session().secret)),
        rpc_(std::make_unique<Stubs>(std::move(channel))) {}

  ~Connection() override {
    if (state.forked()) {  // abandoned, not destroyed: the threads behind them live in the parent
      static_cast<void>(rpc_.release());
      static_cast<void>(side_.release());
      return;
    }
    state.close();
    side_->shut_down();
  }

  struct Stubs {
    explicit Stubs(const std::shared_ptr<grpc::Channel>& channel)
        : planes(channel), graphs(channel), runs(channel), admin(channel) {}
    v1::Planes::Stub planes;
    v1::Graphs::Stub graphs;
    v1::Runs::Stub runs;
    v1::Admin::Stub admin;
  };
  [[nodiscard]] Stubs& rpc() const { return *rpc_; }

  // No new calls, and those that run are stopped. The daemon's side lives on while there are arrays, so that
  // their memory stays, and goes array by array.
  void close() {
    if (state.close() && planes_ == 0) side_->shut_down();
  }

  // Whether a call can be made at all.
  [[nodiscard]] Status check(std::string_view operation) const {
    EAGLE_RETURN_IF_ERROR(state.check(operation));
    if (!side_->alive()) return lost(operation, "its connection is closed");
    return {};
  }

  void prepare(grpc::ClientContext& context) const { context.AddMetadata(rpc::session_secret_key, secret_); }

  // What became of a call, in the client's words where the server had none.
  [[nodiscard]] Status outcome(std::string_view operation, const grpc::Status& status,
                               const grpc::ClientContext& context) const {
    if (status.ok()) return {};
    EAGLE_RETURN_IF_ERROR(state.check(operation));  // closed meanwhile, by ourselves
    const Status said = rpc::status_of(status, context);
    if (said.reason() == Reason::connection_lost || (said.reason() == Reason::internal && !side_->alive())) {
      return lost(operation, said.message());
    }
    if (said.reason() == Reason::deadline && status.error_message() == "Deadline Exceeded") {
      return {Reason::deadline, std::string(operation) + ": the daemon at " + endpoint.text() +
                                    " did not answer within " + std::to_string(timeout.count()) + " ms"};
    }
    return said;
  }

  // A short call: `method` of `stub`.
  template <typename Stub, typename Request, typename Reply>
  Status call(std::string_view operation, Stub& stub,
              grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
              const Request& request, Reply& reply, std::chrono::milliseconds beyond = {}) const {
    EAGLE_RETURN_IF_ERROR(check(operation));
    grpc::ClientContext context;
    prepare(context);
    context.set_deadline(std::chrono::system_clock::now() + timeout + beyond);
    return outcome(operation, (stub.*method)(&context, request, &reply), context);
  }

  // A call that tidies up, in a closed session too: short, and not made where nobody would answer. Whether
  // the daemon did it.
  template <typename Stub, typename Request, typename Reply>
  bool tidy(Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
            const Request& request) {
    if (unresponsive_ || state.forked() || !side_->alive()) return false;
    grpc::ClientContext context;
    prepare(context);
    context.set_deadline(std::chrono::system_clock::now() + brief);
    Reply reply;
    const grpc::Status status = (stub.*method)(&context, request, &reply);
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) unresponsive_ = true;
    return status.ok();
  }

  StatusOr<Plane> create_plane(std::uint64_t bytes, std::string_view label) override {
    v1::CreatePlanesRequest request;
    request.add_planes()->set_bytes(bytes);
    request.mutable_planes(0)->set_label(std::string(label));
    v1::CreatePlanesReply reply;
    // The daemon reserves and clears every page before it answers: no short call when there are many.
    constexpr std::uint64_t bytes_per_ms = 100'000;  // a tenth of what was measured on a slow machine
    const std::chrono::milliseconds clearing(bytes / bytes_per_ms);
    EAGLE_RETURN_IF_ERROR(
        call("allocate", rpc().planes, &v1::Planes::Stub::Create, request, reply, clearing));
    if (reply.planes_size() != 1) return Status(Reason::bad_message, "allocate: the daemon made no plane");
    const v1::PlaneInfo& info = reply.planes(0);
    const graph::PlaneId id{info.ref().id(), info.ref().generation()};
    auto memory = map_plane(info);
    ++planes_;
    if (!memory.ok()) {
      release_plane(id);
      return memory.status().within("allocate");
    }
    return Plane{id, std::move(*memory)};
  }

  void release_plane(const graph::PlaneId& plane) override {
    v1::ReleasePlanesRequest request;
    request.add_planes()->set_id(plane.id);
    request.mutable_planes(0)->set_generation(plane.generation);
    tidy(rpc().planes, &v1::Planes::Stub::Release, request);
    if (--planes_ == 0 && state.closed() && !state.forked()) side_->shut_down();
  }

  [[nodiscard]] std::uint64_t next_launch() { return ++last_launch_; }

  const Endpoint endpoint;
  SessionState state;
  const milliseconds timeout;

private:
  [[nodiscard]] Status lost(std::string_view operation, std::string_view why) const {
    return {Reason::connection_lost, std::string(operation) + ": the daemon at " + endpoint.text() +
                                         " went away (" + std::string(why) +
                                         "); open another session once it is back"};
  }

  StatusOr<plane::Memory> map_plane(const v1::PlaneInfo& info) {
    EAGLE_ASSIGN_OR_RETURN(auto descriptors, side_->fetch({info.token()}, Clock::now() + timeout));
    return plane::Memory::map(std::move(descriptors.front()), info.bytes());
  }

  std::shared_ptr<const void> daemon_;  // goes last
  std::unique_ptr<SideChannel> side_;
  std::string secret_;
  std::unique_ptr<Stubs> rpc_;
  std::atomic<std::uint64_t> last_launch_ = 0;
  std::atomic<std::uint64_t> planes_ = 0;   // that arrays of this process hold
  std::atomic<bool> unresponsive_ = false;  // it let a tidying call wait; no more of those
};

// ---- a call that may take long

// Asynchronous operations of one call, waited for one by one, while the caller's wish to stop is looked at.
// The daemon is asked to stop and the call then ends by itself, so that nothing computes on the caller's
// arrays any more when it returns; only where the daemon does not react is the call dropped.
class WatchedCall {
public:
  WatchedCall(Connection& connection, std::uint64_t launch_id, const std::optional<milliseconds>& timeout,
              const std::shared_ptr<std::atomic<bool>>& cancel)
      : connection_(connection), launch_id_(launch_id), cancel_(cancel) {
    connection.prepare(context);
    if (timeout) deadline_ = Clock::now() + *timeout;
  }
  ~WatchedCall() {
    queue.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue.Next(&tag, &ok)) {
    }
  }
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

  grpc::ClientContext context;
  grpc::CompletionQueue queue;

  static void* tag() { return nullptr; }

  // The end of the operation that was just started; what gRPC says about it.
  bool wait() {
    void* done = nullptr;
    bool ok = false;
    while (queue.AsyncNext(&done, &ok, std::chrono::system_clock::now() + look_interval) ==
           grpc::CompletionQueue::TIMEOUT) {
      look();
    }
    return ok;
  }

  // Whether the caller wants to stop: asks the daemon to, once.
  void look() {
    if (drop_at_ && Clock::now() >= *drop_at_) return drop();
    if (stop_ != Stop::none) return;
    if (connection_.state.closed()) return ask(Stop::closed);
    if (cancel_ && cancel_->load(std::memory_order_relaxed)) return ask(Stop::cancelled);
    if (deadline_ && Clock::now() >= *deadline_) return ask(Stop::deadline);
  }

  enum class Stop { none, cancelled, deadline, closed };
  [[nodiscard]] Stop stop() const { return stop_; }

  // The outcome of the whole call; a stop that the caller asked for is told in its words.
  [[nodiscard]] Status outcome(std::string_view operation, const grpc::Status& status) const {
    const Status outcome = connection_.outcome(operation, status, context);
    if (outcome.reason() != Reason::cancelled || stop_ == Stop::none) return outcome;
    const std::string far =
        dropped_ ? "the daemon does not react, and how far it came is not known" : outcome.message();
    if (stop_ == Stop::deadline) return {Reason::deadline, "the timeout passed; " + far};
    return {Reason::cancelled, far};
  }

private:
  void ask(Stop why) {
    stop_ = why;
    drop_at_ = Clock::now() + connection_.timeout;
    v1::CancelRequest request;
    request.set_launch_id(launch_id_);
    if (!connection_.tidy(connection_.rpc().graphs, &v1::Graphs::Stub::Cancel, request)) drop();
  }

  void drop() {
    dropped_ = true;
    context.TryCancel();
  }

  Connection& connection_;
  std::uint64_t launch_id_;
  std::shared_ptr<std::atomic<bool>> cancel_;
  std::optional<Clock::time_point> deadline_;
  std::optional<Clock::time_point> drop_at_;
  Stop stop_ = Stop::none;
  bool dropped_ = false;
};

run::HostIdentity host_of(const v1::HostInfo& info) { return {info.pid(), info.host_name()}; }

run::KernelCounts counts_of(const v1::KernelCounts& counts) {
  return {counts.clamped(), counts.zero_divisions(), 0};
}

// ---- graphs

bool has_host_nodes(const google::protobuf::RepeatedPtrField<v1::Stage>& stages);

bool has_host_nodes(const v1::Node& node) {
  return node.has_host() || has_host_nodes(node.skippable().body()) ||
         has_host_nodes(node.repeat_while().body());
}

bool has_host_nodes(const google::protobuf::RepeatedPtrField<v1::Stage>& stages) {
  for (const v1::Stage& stage : stages) {
    if (stage.has_node() && has_host_nodes(stage.node())) return true;
    for (const v1::Branch& branch : stage.group().branches()) {
      for (const v1::Node& node : branch.nodes()) {
        if (has_host_nodes(node)) return true;
      }
    }
  }
  return false;
}

class RemoteGraph final : public HostGraph {
public:
  RemoteGraph(std::shared_ptr<Connection> connection, const v1::BuildReply& built, bool calls_back)
      : connection_(std::move(connection)),
        id_(built.graph()),
        schedule_(built.schedule().begin(), built.schedule().end()),
        calls_back_(calls_back) {}
  ~RemoteGraph() override {
    v1::ReleaseGraphRequest request;
    request.set_graph(id_);
    connection_->tidy(connection_->rpc().graphs, &v1::Graphs::Stub::Release, request);
  }

  [[nodiscard]] std::vector<std::string> schedule() const override { return schedule_; }

  StatusOr<std::string> picture() const override {
    v1::PictureRequest request;
    request.set_graph(id_);
    request.set_format(v1::PICTURE_TEXT);
    v1::PictureReply reply;
    EAGLE_RETURN_IF_ERROR(
        connection_->call("picture", connection_->rpc().graphs, &v1::Graphs::Stub::Picture, request, reply));
    return reply.picture().content();
  }

  StatusOr<LaunchReport> launch(std::int64_t n, const LaunchOptions& options,
                                const std::function<Status(std::uint32_t)>& host_call) override {
    EAGLE_RETURN_IF_ERROR(connection_->check("launch"));
    v1::LaunchRequest request;
    request.set_graph(id_);
    request.set_count(n);
    request.set_launch_id(connection_->next_launch());
    WatchedCall call(*connection_, request.launch_id(), options.timeout, options.cancel);
    v1::LaunchReport report;
    const grpc::Status status =
        calls_back_ ? converse(call, request, host_call, report) : ask(call, request, report);
    EAGLE_RETURN_IF_ERROR(call.outcome("launch", status));
    return LaunchReport{host_of(report.host()),
                        report.launches(),
                        report.threads(),
                        report.wall_s(),
                        {report.iterations().begin(), report.iterations().end()},
                        counts_of(report.counts())};
  }

private:
  grpc::Status ask(WatchedCall& call, const v1::LaunchRequest& request, v1::LaunchReport& report) {
    grpc::Status status;
    const auto reader = connection_->rpc().graphs.AsyncLaunch(&call.context, request, &call.queue);
    reader->Finish(&report, &status, WatchedCall::tag());
    call.wait();
    return status;
  }

  // The daemon asks for host calls until it has the report or an error.
  grpc::Status converse(WatchedCall& call, const v1::LaunchRequest& request,
                        const std::function<Status(std::uint32_t)>& host_call, v1::LaunchReport& report) {
    const auto stream =
        connection_->rpc().graphs.AsyncLaunchWithCalls(&call.context, &call.queue, WatchedCall::tag());
    bool going = call.wait();
    v1::LaunchClientMessage said;
    *said.mutable_launch() = request;
    const auto write = [&] {
      stream->Write(said, WatchedCall::tag());
      return call.wait();
    };
    going = going && write();
    v1::LaunchServerMessage heard;
    while (going) {
      stream->Read(&heard, WatchedCall::tag());
      if (!call.wait()) break;
      if (heard.has_report()) {
        report = std::move(*heard.mutable_report());
        continue;
      }
      // A launch that was asked to stop waits for no reply; and while one is due, the daemon does nothing
      // else with this launch, so that is the moment to ask.
      if (call.stop() != WatchedCall::Stop::none) continue;
      const Status called = host_call(heard.call().call());
      call.look();
      if (call.stop() != WatchedCall::Stop::none) continue;
      v1::HostCallReply& reply = *said.mutable_reply();
      reply.set_sequence(heard.call().sequence());
      reply.set_ok(called.ok());
      reply.set_error(rpc::wire_message(called.message()));
      going = write();
    }
    grpc::Status status;
    stream->Finish(&status, WatchedCall::tag());
    call.wait();
    return status;
  }

  std::shared_ptr<Connection> connection_;
  std::uint64_t id_;
  std::vector<std::string> schedule_;
  bool calls_back_;
};

// ---- the host

StatusOr<RunResult> result_of(const v1::RunResult& message) {
  if (message.status() < v1::FINISHED || message.status() > v1::DEADLINE) {
    return Status(Reason::bad_message, "simulate: the daemon's result has no known status");
  }
  const v1::RunReport& said = message.report();
  RunResult result;
  result.status = static_cast<RunStatus>(message.status());
  result.report = {host_of(said.host()),
                   said.samples(),
                   said.finished(),
                   said.launches(),
                   said.steps(),
                   said.threads(),
                   counts_of(said.counts()),
                   said.build_s(),
                   said.wall_s(),
                   said.compiled(),
                   {said.kernels().begin(), said.kernels().end()}};
  return result;
}

class RemoteHost final : public Host {
public:
  explicit RemoteHost(std::shared_ptr<Connection> connection)
      : connection_(std::move(connection)),
        planes_(std::make_shared<RemotePlanes>(connection_, connection_->state.shared_name())) {}

  [[nodiscard]] const std::string& name() const override { return connection_->state.name(); }
  [[nodiscard]] bool remote() const override { return true; }
  [[nodiscard]] bool closed() const override { return connection_->state.closed(); }
  Status close() override {
    if (connection_->state.forked()) return connection_->state.check("close");
    planes_->close();
    connection_->close();
    return {};
  }

  StatusOr<SessionInfo> info() override {
    v1::InfoReply reply;
    EAGLE_RETURN_IF_ERROR(connection_->call("info", connection_->rpc().admin, &v1::Admin::Stub::Info,
                                            v1::InfoRequest(), reply));
    SessionInfo info;
    info.endpoint = connection_->endpoint.text();
    info.transport = "memfd + grpc";
    info.version = reply.version();
    info.host = host_of(reply.host());
    info.threads = reply.threads();
    info.cpu = reply.cpu();
    info.uptime_s = reply.uptime_s();
    info.sessions = reply.sessions();
    info.planes = reply.planes();
    info.plane_bytes = reply.plane_bytes();
    info.plane_budget_bytes = reply.plane_budget_bytes();
    info.graphs = reply.graphs();
    info.launches = reply.launches();
    info.kernels_cached = reply.kernels_cached();
    return info;
  }

  StatusOr<std::shared_ptr<Buffer>> allocate(std::uint64_t bytes, std::string_view label) override {
    EAGLE_RETURN_IF_ERROR(connection_->check("allocate"));
    return planes_->allocate(bytes, label);
  }

  [[nodiscard]] std::optional<PlaneAddress> find(const void* address, std::uint64_t bytes) const override {
    return PlaneRegistry::of_process().find(name(), address, bytes);
  }

  StatusOr<std::unique_ptr<HostGraph>> build(const v1::GraphDescription& description,
                                             std::span<const run::PlaneMemory> /*private_planes*/) override {
    EAGLE_RETURN_IF_ERROR(connection_->check("build"));
    v1::BuildRequest request;
    *request.mutable_graph() = description;
    v1::BuildReply reply;
    grpc::Status status;
    WatchedCall call(*connection_, 0, std::nullopt, nullptr);
    const auto reader = connection_->rpc().graphs.AsyncBuild(&call.context, request, &call.queue);
    reader->Finish(&reply, &status, WatchedCall::tag());
    call.wait();
    EAGLE_RETURN_IF_ERROR(call.outcome("build", status));
    return std::unique_ptr<HostGraph>(
        std::make_unique<RemoteGraph>(connection_, reply, has_host_nodes(description.stages())));
  }

  StatusOr<RunResult> simulate(const v1::RunDescription& description,
                               std::span<const run::PlaneMemory> /*private_planes*/,
                               const SimulateOptions& options) override {
    EAGLE_RETURN_IF_ERROR(connection_->check("simulate"));
    v1::SimulateRequest request;
    *request.mutable_run() = description;
    request.set_launch_id(connection_->next_launch());
    WatchedCall call(*connection_, request.launch_id(), options.timeout, options.cancel);
    const auto reader =
        connection_->rpc().runs.AsyncSimulate(&call.context, request, &call.queue, WatchedCall::tag());
    bool going = call.wait();
    v1::SimulateEvent event;
    v1::RunResult last;
    while (going) {
      reader->Read(&event, WatchedCall::tag());
      going = call.wait();
      if (going && event.has_result()) last = event.result();
      call.look();
    }
    grpc::Status status;
    reader->Finish(&status, WatchedCall::tag());
    call.wait();
    EAGLE_RETURN_IF_ERROR(call.outcome("simulate", status));
    EAGLE_ASSIGN_OR_RETURN(RunResult result, result_of(last));
    if (result.status != RunStatus::cancelled) return result;
    if (call.stop() == WatchedCall::Stop::closed) return connection_->state.check("simulate");
    if (call.stop() == WatchedCall::Stop::deadline) result.status = RunStatus::deadline;
    return result;
  }

private:
  std::shared_ptr<Connection> connection_;
  std::shared_ptr<RemotePlanes> planes_;
};

}  // namespace

StatusOr<std::shared_ptr<Host>> open_remote(const Endpoint& endpoint, const ConnectOptions& options,
                                            std::shared_ptr<const void> daemon) {
  EAGLE_ASSIGN_OR_RETURN(auto connection, Connection::open(endpoint, options, std::move(daemon)));
  return std::shared_ptr<Host>(std::make_shared<RemoteHost>(std::move(connection)));
}

}  // namespace eagle
