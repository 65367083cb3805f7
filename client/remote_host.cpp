#include "client/remote_host.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "client/host_views.h"
#include "client/plane_registry.h"
#include "client/progress_teller.h"
#include "client/remote_connection.h"
#include "client/remote_planes.h"
#include "client/transfers.h"
#include "client/view_table.h"
#include "client/watched_call.h"
#include "engine/plane/packed.h"
#include "engine/run/report_message.h"
#include "engine/step/result_message.h"
#include "proto/rpc_error.h"

namespace eagle {
namespace {

// ---- graphs

// What building a graph again may take beyond a short call.
constexpr milliseconds building{120'000};

// What a description has that decides how its launches go.
struct Contents {
  bool host_nodes = false;
  std::size_t loops = 0;
};

void look_into(const google::protobuf::RepeatedPtrField<v1::Stage>& stages, Contents& contents);

void look_into(const v1::Group& group, Contents& contents);

void look_into(const v1::Node& node, Contents& contents) {
  if (node.has_group()) return look_into(node.group(), contents);
  contents.host_nodes |= node.has_host();
  contents.loops += node.has_repeat_while() ? 1 : 0;
  look_into(node.skippable().body(), contents);
  look_into(node.repeat_while().body(), contents);
}

void look_into(const google::protobuf::RepeatedPtrField<v1::Stage>& stages, Contents& contents) {
  for (const v1::Stage& stage : stages) {
    if (stage.has_node()) look_into(stage.node(), contents);
    look_into(stage.group(), contents);
  }
}

void look_into(const v1::Group& group, Contents& contents) {
  for (const v1::Branch& branch : group.branches()) {
    for (const v1::Node& node : branch.nodes()) look_into(node, contents);
  }
}

// `session` 0: the connection's own.
StatusOr<std::string> picture_of(Connection& connection, std::uint64_t session, std::uint64_t graph,
                                 PictureFormat format) {
  v1::PictureRequest request;
  request.set_session(session);
  request.set_graph(graph);
  request.set_format(static_cast<v1::PictureFormat>(format));
  v1::PictureReply reply;
  EAGLE_RETURN_IF_ERROR(
      connection.call("picture", &RemoteLink::Stubs::graphs, &v1::Graphs::Stub::Picture, request, reply));
  return reply.picture().content();
}

void fill(const NodeReference& node, v1::NodeReference& message) {
  if (const auto* const index = std::get_if<std::uint32_t>(&node)) message.set_index(*index);
  if (const auto* const label = std::get_if<std::string>(&node)) message.set_label(*label);
}

template <typename Reply>  // BuildReply, RebindReply, GraphSummary
graph::ScratchLayout scratch_of(const Reply& reply) {
  graph::ScratchLayout layout;
  layout.bytes = reply.scratch_bytes();
  for (const v1::ScratchUse& use : reply.scratch()) {
    layout.uses.push_back({use.name(), 0, use.bytes(), use.in_memory(), use.offset()});
  }
  return layout;
}

void describe(const graph::ParamUpdate& update, v1::ParamUpdate& message) {
  message.mutable_argument()->set_node(update.address.node);
  if (update.address.leaf) message.mutable_argument()->set_leaf(*update.address.leaf);
  message.mutable_argument()->set_name(update.address.name);
  if (const auto* real = std::get_if<double>(&update.value)) {
    message.mutable_value()->set_real(*real);
  } else {
    message.mutable_value()->set_integer(std::get<std::int64_t>(update.value));
  }
}

class RemoteGraph final : public HostGraph {
public:
  // `link`: the number of the one that it was built over.
  RemoteGraph(std::shared_ptr<Connection> connection, const v1::BuildReply& built, const Contents& contents,
              HostViews host_views, std::uint64_t link)
      : connection_(std::move(connection)),
        host_views_(std::move(host_views)),
        id_(built.graph()),
        ready_on_(link),
        schedule_(built.schedule().begin(), built.schedule().end()),
        calls_back_(contents.host_nodes),
        fits_ring_(contents.loops <= ring::most_iterations),
        compiled_(built.compiled()),
        scratch_(scratch_of(built)),
        execution_(run::execution_of(built.execution())) {}
  ~RemoteGraph() override {
    if (connection_->state.forked()) {
      static_cast<void>(conversation_.release());
    } else if (std::exchange(waited_for_, false)) {
      cancel_enqueued();  // nobody will ask for it
      if (posted_) ring(*posted_->link)->abandon(posted_->slot);
      conversation_.reset();
    }
    if (!connection_->state.forked()) connection_->drop_graph(id_);
    v1::ReleaseGraphRequest request;
    request.set_graph(id_);
    connection_->tidy(&RemoteLink::Stubs::graphs, &v1::Graphs::Stub::Release, request);
  }

  [[nodiscard]] std::vector<std::string> schedule() const override { return schedule_; }

  StatusOr<std::string> picture(PictureFormat format) const override {
    return picture_of(*connection_, 0, id_, format);
  }
  StatusOr<std::string> explanation(const NodeReference& node,
                                    const std::optional<NodeReference>& other) const override {
    v1::ExplainRequest request;
    request.set_graph(id_);
    fill(node, *request.mutable_node());
    if (other) fill(*other, *request.mutable_other());
    v1::ExplainReply reply;
    EAGLE_RETURN_IF_ERROR(
        connection_->call("explain", &RemoteLink::Stubs::graphs, &v1::Graphs::Stub::Explain, request, reply));
    return reply.explanation().text();
  }

  StatusOr<LaunchReport> launch(std::int64_t n, const LaunchOptions& options,
                                const std::function<Status(std::uint32_t)>& host_call) override {
    for (;;) {
      EAGLE_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteLink> link, ready("launch"));
      const std::uint64_t launch_id = connection_->next_launch();
      if (auto outcome = launch_by_ring(*link, n, launch_id, options, host_call)) {
        // Nobody had taken it: it is the first use of a link that broke some time ago, and another one is
        // there.
        if (!outcome->ok() && outcome->status().reason() == Reason::connection_lost) {
          EAGLE_RETURN_IF_ERROR(connection_->check("launch"));
          continue;
        }
        return *std::move(outcome);
      }
      EAGLE_RETURN_IF_ERROR(connection_->check("launch"));
      if (connection_->link() != link) continue;
      v1::LaunchRequest request;
      request.set_graph(id_);
      request.set_count(n);
      request.set_launch_id(launch_id);
      if (!calls_back_) return ask("launch", request, options);
      Conversation conversation(*connection_, request, options);
      return hear("launch", conversation, with_transfers(host_call));
    }
  }

  [[nodiscard]] bool enqueues() const override { return true; }

  Status enqueue(std::int64_t n) override {
    EAGLE_RETURN_IF_ERROR(connection_->check("enqueue"));
    EAGLE_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteLink> link, ready("enqueue"));
    v1::LaunchRequest request;
    request.set_graph(id_);
    request.set_count(n);
    request.set_launch_id(connection_->next_launch());
    stop_ = std::make_shared<std::atomic<bool>>(false);
    posted_.reset();
    if (RingClient* const ring = this->ring(*link)) {
      if (const auto slot = ring->post({id_, n, request.launch_id(), {}})) posted_ = Posted{link, *slot};
    }
    if (!posted_ && calls_back_) {
      conversation_ =
          std::make_unique<Conversation>(*connection_, request, LaunchOptions{std::nullopt, stop_});
    } else if (!posted_) {
      v1::EnqueueReply reply;
      EAGLE_RETURN_IF_ERROR(connection_->call("enqueue", &RemoteLink::Stubs::graphs,
                                              &v1::Graphs::Stub::Enqueue, request, reply, {},
                                              Connection::Again::must_not));
    }
    in_flight_ = request;
    waited_for_ = true;
    return {};
  }

  StatusOr<LaunchReport> synchronize(const LaunchOptions& options,
                                     const std::function<Status(std::uint32_t)>& host_call) override {
    waited_for_ = false;
    if (stop_->load()) options.cancel->store(true);
    if (const auto posted = std::exchange(posted_, std::nullopt)) {
      auto outcome = finish_by_ring("synchronize", *posted->link, posted->slot, in_flight_.launch_id(),
                                    options, host_call);
      return outcome ? *std::move(outcome) : ask("synchronize", in_flight_, options);
    }
    if (!conversation_) return ask("synchronize", in_flight_, options);
    const std::unique_ptr<Conversation> conversation = std::move(conversation_);
    conversation->call.watch(options.timeout, options.cancel);
    return hear("synchronize", *conversation, with_transfers(host_call));
  }

  void cancel_enqueued() override {
    connection_->note_failure();
    stop_->store(true);
    if (posted_ && ring(*posted_->link)->take_back(posted_->slot)) return;
    v1::CancelRequest request;
    request.set_launch_id(in_flight_.launch_id());
    connection_->tidy(&RemoteLink::Stubs::graphs, &v1::Graphs::Stub::Cancel, request);
  }

  Status update(const std::vector<graph::ParamUpdate>& updates) override {
    v1::UpdateRequest request;
    request.set_graph(id_);
    for (const graph::ParamUpdate& update : updates) describe(update, *request.add_params());
    EAGLE_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteLink> link, ready("update"));
    if (RingClient* const ring = connection_->ring(*link)) {
      const RingClient::Caller caller{
          [&] { return link->alive() ? RingClient::Wish::go_on : RingClient::Wish::give_up; }, nullptr};
      const auto updated = ring->update(request.SerializeAsString(), caller);
      if (updated && link->alive()) return *updated;
    }
    // A second time where the link broke: the same numbers may be given twice.
    v1::UpdateReply reply;
    return connection_->call("update", &RemoteLink::Stubs::graphs, &v1::Graphs::Stub::Update, request, reply);
  }

  Status rebind(const v1::GraphDescription& description,
                std::span<const run::PlaneMemory> /*private_planes*/) override {
    v1::RebindRequest request;
    request.set_graph(id_);
    *request.mutable_description() = description;
    v1::RebindReply reply;
    EAGLE_RETURN_IF_ERROR(
        connection_->call("rebind", &RemoteLink::Stubs::graphs, &v1::Graphs::Stub::Rebind, request, reply));
    if (connection_->copies()) host_views_ = HostViews(*connection_, description);
    const std::scoped_lock lock(mutex_);
    scratch_ = scratch_of(reply);
    execution_ = run::execution_of(reply.execution());
    return {};
  }

  [[nodiscard]] graph::ScratchLayout scratch() const override {
    const std::scoped_lock lock(mutex_);
    return scratch_;
  }
  [[nodiscard]] run::Execution execution() const override {
    const std::scoped_lock lock(mutex_);
    return execution_;
  }
  [[nodiscard]] bool compiled() const override { return compiled_; }

private:
  // Over TCP a callable finds its arrays' values in this process, and what it stores there goes to the
  // daemon.
  std::function<Status(std::uint32_t)> with_transfers(
      const std::function<Status(std::uint32_t)>& host_call) const {
    if (!connection_->copies()) return host_call;
    return [this, host_call](std::uint32_t call) -> Status {
      EAGLE_RETURN_IF_ERROR(host_views_.fetch_reads(*connection_, call));
      EAGLE_RETURN_IF_ERROR(host_call(call));
      return host_views_.send_writes(*connection_, call);
    };
  }

  // The link of now, whose worker knows the graph. It may be broken without anybody knowing.
  StatusOr<std::shared_ptr<RemoteLink>> ready(std::string_view operation) {
    EAGLE_RETURN_IF_ERROR(connection_->state.check(operation));
    for (;;) {
      std::shared_ptr<RemoteLink> link = connection_->link();
      if (ready_on_.load(std::memory_order_acquire) == link->number()) return link;
      v1::RestoreGraphRequest request;
      request.set_graph(id_);
      v1::RestoreGraphReply reply;
      EAGLE_RETURN_IF_ERROR(connection_->call(operation, &RemoteLink::Stubs::graphs,
                                              &v1::Graphs::Stub::Restore, request, reply, building));
      ready_on_.store(link->number(), std::memory_order_release);
    }
  }

  [[nodiscard]] RingClient* ring(RemoteLink& link) const {
    return fits_ring_ ? connection_->ring(link) : nullptr;
  }

  // Empty where it must go another way. CONNECTION_LOST: it never began.
  std::optional<StatusOr<LaunchReport>> launch_by_ring(
      RemoteLink& link, std::int64_t n, std::uint64_t launch_id, const LaunchOptions& options,
      const std::function<Status(std::uint32_t)>& host_call) {
    RingClient* const ring = this->ring(link);
    if (ring == nullptr) return {};
    const auto posted = ring->post({id_, n, launch_id, options.timeout.value_or(milliseconds(0))});
    if (!posted) return {};
    return finish_by_ring("launch", link, *posted, launch_id, options, host_call);
  }

  std::optional<StatusOr<LaunchReport>> finish_by_ring(
      std::string_view operation, RemoteLink& link, const RingClient::Posted& posted, std::uint64_t launch_id,
      const LaunchOptions& options, const std::function<Status(std::uint32_t)>& host_call) {
    StopWatch watch(*connection_, launch_id, options.timeout, options.cancel);
    using Wish = RingClient::Wish;
    const auto look = [&] {
      if (!link.alive() || !watch.look()) return Wish::give_up;
      return watch.stop() == StopWatch::Stop::none ? Wish::go_on : Wish::stop;
    };
    const RingClient::Caller caller{look, host_call, [&] { return watch.note(); }};
    auto outcome = ring(link)->finish(posted, caller);
    if (!outcome) return {};
    if (outcome->ok()) {
      (*outcome)->host = link.session().host;
      return outcome;
    }
    if (const Status closed = connection_->state.check(operation); !closed.ok()) return closed;
    const bool begun = outcome->status().reason() != Reason::connection_lost;
    if (link.alive()) {
      return watch.in_words(begun ? outcome->status() : Status(Reason::cancelled, "the launch never began"));
    }
    const Status lost = connection_->lost(operation, "its connection is closed");
    return begun ? connection_->settle(operation, lost) : lost;
  }

  // The outcome of a launch without host calls: this one's, or that of the one that was sent with this id.
  StatusOr<LaunchReport> ask(std::string_view operation, const v1::LaunchRequest& request,
                             const LaunchOptions& options) {
    EAGLE_RETURN_IF_ERROR(connection_->check(operation));
    WatchedCall call(*connection_, request.launch_id(), options.timeout, options.cancel);
    v1::LaunchReport report;
    grpc::Status status;
    const auto reader = call.rpc().graphs.AsyncLaunch(&call.context, request, &call.queue);
    reader->Finish(&report, &status, WatchedCall::tag());
    call.wait();
    EAGLE_RETURN_IF_ERROR(connection_->settle(operation, call.outcome(operation, status)));
    return report_of(report);
  }

  StatusOr<LaunchReport> hear(std::string_view operation, Conversation& conversation,
                              const std::function<Status(std::uint32_t)>& host_call) {
    v1::LaunchReport report;
    const grpc::Status status = conversation.run(host_call, report);
    EAGLE_RETURN_IF_ERROR(connection_->settle(operation, conversation.call.outcome(operation, status)));
    return report_of(report);
  }

  static LaunchReport report_of(const v1::LaunchReport& report) {
    return {run::host_of(report.host()),
            report.launches(),
            report.threads(),
            report.wall_s(),
            {report.iterations().begin(), report.iterations().end()},
            run::counts_of(report.counts())};
  }

  std::shared_ptr<Connection> connection_;
  HostViews host_views_;  // changed by `rebind`, during which there is no launch
  std::uint64_t id_;
  std::atomic<std::uint64_t> ready_on_;  // the number of the link whose worker has it
  std::vector<std::string> schedule_;
  bool calls_back_;
  bool fits_ring_;
  bool compiled_;
  mutable std::mutex mutex_;
  graph::ScratchLayout scratch_;
  run::Execution execution_;
  // Of the launch that was enqueued.
  v1::LaunchRequest in_flight_;
  bool waited_for_ = false;  // it has not been collected
  std::shared_ptr<std::atomic<bool>> stop_;
  struct Posted {
    std::shared_ptr<RemoteLink> link;
    RingClient::Posted slot;
  };
  std::optional<Posted> posted_;  // through the ring, or
  std::unique_ptr<Conversation> conversation_;
};

// ---- the host

class RemoteHost final : public Host, public HostRuns {
public:
  explicit RemoteHost(std::shared_ptr<Connection> connection)
      : connection_(std::move(connection)),
        planes_(std::make_shared<RemotePlanes>(connection_, connection_->state.shared_name())) {}

  [[nodiscard]] const std::string& name() const override { return connection_->state.name(); }
  [[nodiscard]] bool remote() const override { return true; }
  [[nodiscard]] bool closed() const override { return connection_->state.closed(); }
  [[nodiscard]] std::string resume_token() const override { return connection_->resume_token(); }
  Status close() override {
    if (connection_->state.forked()) return connection_->state.check("close");
    planes_->close();
    connection_->close();
    std::map<std::uint64_t, std::vector<std::shared_ptr<const void>>> gone;
    const std::scoped_lock lock(kept_mutex_);
    gone.swap(kept_);
    return {};
  }

  StatusOr<SessionInfo> info() override {
    v1::InfoReply reply;
    EAGLE_RETURN_IF_ERROR(connection_->call("info", &RemoteLink::Stubs::admin, &v1::Admin::Stub::Info,
                                            v1::InfoRequest(), reply));
    SessionInfo info;
    info.endpoint = connection_->endpoint.text();
    info.transport = connection_->copies()                                ? "copy + grpc"
                     : connection_->ring(*connection_->link()) != nullptr ? "memfd + ring"
                                                                          : "memfd + grpc";
    info.version = reply.version();
    info.host = run::host_of(reply.host());
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

  StatusOr<std::vector<GraphInfo>> graphs(GraphScope scope) override {
    v1::ListGraphsRequest request;
    request.set_all_sessions(scope == GraphScope::visible);
    v1::ListGraphsReply reply;
    EAGLE_RETURN_IF_ERROR(
        connection_->call("graphs", &RemoteLink::Stubs::graphs, &v1::Graphs::Stub::List, request, reply));
    std::vector<GraphInfo> all;
    for (const v1::GraphSummary& graph : reply.graphs()) {
      all.push_back({graph.session(), graph.graph(), graph.name(), graph.client(), graph.nodes(),
                     graph.launches(), scratch_of(graph)});
    }
    return all;
  }
  StatusOr<std::string> picture(const GraphInfo& graph, PictureFormat format) override {
    return picture_of(*connection_, graph.session, graph.graph, format);
  }

  StatusOr<std::shared_ptr<Buffer>> allocate(std::uint64_t bytes, std::string_view label) override {
    EAGLE_RETURN_IF_ERROR(connection_->check("allocate"));
    return planes_->allocate(bytes, label);
  }

  [[nodiscard]] std::optional<PlaneAddress> find(const void* address, std::uint64_t bytes) const override {
    return PlaneRegistry::of_process().find(name(), address, bytes);
  }

  Status accept(const v1::AcceptPlanesRequest& request) override {
    v1::AcceptPlanesReply reply;
    return connection_->call("accept", &RemoteLink::Stubs::planes, &v1::Planes::Stub::Accept, request, reply);
  }

  StatusOr<std::unique_ptr<HostGraph>> build(const v1::GraphDescription& description,
                                             std::span<const run::PlaneMemory> /*private_planes*/) override {
    v1::BuildRequest request;
    *request.mutable_graph() = description;
    for (;;) {
      EAGLE_RETURN_IF_ERROR(connection_->check("build"));
      auto built = try_build(request);
      if (built.ok() || built.status().reason() != Reason::connection_lost) return built;
      const Status restarted = connection_->settle("build", built.status());
      if (restarted.reason() != Reason::worker_restarted) return restarted;
    }
  }

  StatusOr<RunResult> simulate(const v1::RunDescription& description,
                               std::span<const run::PlaneMemory> /*private_planes*/,
                               const SimulateOptions& options, const HostCall& host_call) override {
    EAGLE_RETURN_IF_ERROR(connection_->check("simulate"));
    v1::SimulateRequest request;
    *request.mutable_run() = description;
    request.set_launch_id(connection_->next_launch());
    request.set_progress(static_cast<bool>(options.progress));
    request.set_cancelled(options.cancel && options.cancel->load());
    WatchedCall call(*connection_, request.launch_id(), options.timeout, options.cancel);
    v1::RunResult last;
    const grpc::Status status =
        description.host_steps_size() > 0
            ? converse(call, request, options, with_transfers(description, host_call), last)
            : listen(call, request, options, last);
    EAGLE_RETURN_IF_ERROR(connection_->settle("simulate", call.outcome("simulate", status)));
    EAGLE_ASSIGN_OR_RETURN(RunResult result, step::result_of(last));
    if (result.status != RunStatus::cancelled) return result;
    if (call.stop() == WatchedCall::Stop::closed) return connection_->state.check("simulate");
    if (call.stop() == WatchedCall::Stop::deadline) result.status = RunStatus::deadline;
    return result;
  }

  HostRuns* runs() override { return this; }
  StatusOr<std::uint64_t> submit(const v1::SubmitRequest& request, std::span<const run::PlaneMemory>,
                                 std::vector<std::shared_ptr<const void>> keep_alive) override {
    v1::SubmitReply reply;
    EAGLE_RETURN_IF_ERROR(connection_->call("submit", &RemoteLink::Stubs::runs, &v1::Runs::Stub::Submit,
                                            request, reply, {}, Connection::Again::must_not));
    const std::scoped_lock lock(kept_mutex_);
    kept_[reply.run()] = std::move(keep_alive);
    return reply.run();
  }
  Status get(std::uint64_t run, v1::KeptRun& reply) override {
    v1::RunRef request;
    request.set_run(run);
    return connection_->call("run", &RemoteLink::Stubs::runs, &v1::Runs::Stub::Get, request, reply);
  }
  Status list(v1::ListRunsReply& reply) override {
    return connection_->call("runs", &RemoteLink::Stubs::runs, &v1::Runs::Stub::List, v1::ListRunsRequest(),
                             reply);
  }
  Status fetch(const v1::FetchRunRequest& request, std::span<const run::PlaneMemory>) override {
    v1::FetchRunReply reply;
    constexpr milliseconds copying{60'000};  // beyond the time of a short call
    EAGLE_RETURN_IF_ERROR(connection_->call("result", &RemoteLink::Stubs::runs, &v1::Runs::Stub::Fetch,
                                            request, reply, copying));
    std::vector<std::shared_ptr<const void>> gone;  // after the lock
    const std::scoped_lock lock(kept_mutex_);
    if (const auto found = kept_.find(request.run()); found != kept_.end()) {
      gone = std::move(found->second);
      kept_.erase(found);
    }
    return {};
  }
  Status cancel(std::uint64_t run) override {
    v1::RunRef request;
    request.set_run(run);
    v1::CancelReply reply;
    return connection_->call("cancel", &RemoteLink::Stubs::runs, &v1::Runs::Stub::CancelRun, request, reply);
  }

  [[nodiscard]] bool copies() const override { return connection_->copies(); }
  Status fetch_packed(const ArrayView& array, std::span<std::byte> packed,
                      const TransferProgress& progress) override {
    EAGLE_ASSIGN_OR_RETURN(const Slice slice, slice_of("fetch", array));
    if (!slice.copied) return Host::fetch_packed(array, packed, progress);
    EAGLE_RETURN_IF_ERROR(check_size("fetch", slice, packed.size()));
    return fetch_slice(*connection_, "fetch", slice.message, packed, progress);
  }
  Status send_packed(const ArrayView& array, std::span<const std::byte> packed,
                     const TransferProgress& progress) override {
    EAGLE_ASSIGN_OR_RETURN(const Slice slice, slice_of("send", array));
    if (!slice.copied) return Host::send_packed(array, packed, progress);
    EAGLE_RETURN_IF_ERROR(check_size("send", slice, packed.size()));
    return send_slice(*connection_, "send", slice.message, packed, progress);
  }
  Status fill(const ArrayView& array, std::span<const std::byte> element) override {
    EAGLE_ASSIGN_OR_RETURN(const Slice slice, slice_of("fill", array));
    if (!slice.copied) return Host::fill(array, element);
    return fill_slice(*connection_, slice.message, slice.bytes, element);
  }

  StatusOr<PublishedArray> publish(const ArrayView& array, std::string_view name,
                                   const PublishOptions& options) override {
    EAGLE_ASSIGN_OR_RETURN(const Slice slice, slice_of("publish", array));
    v1::PublishRequest request;
    *request.mutable_slice() = slice.message;
    request.set_name(std::string(name));
    request.set_writable(options.writable);
    for (const std::string& principal : options.to) request.add_to(principal);
    v1::OpenedPlane reply;
    constexpr std::uint64_t copied_per_ms = 100'000;
    EAGLE_RETURN_IF_ERROR(connection_->call("publish", &RemoteLink::Stubs::planes, &v1::Planes::Stub::Publish,
                                            request, reply, milliseconds(slice.bytes / copied_per_ms)));
    if (reply.moved()) return opened(name, reply);
    return PublishedArray{slice.buffer, array, reply.owner(), false};
  }
  StatusOr<PublishedArray> open_published(std::string_view name, std::string_view owner) override {
    v1::OpenRequest request;
    request.set_name(std::string(name));
    request.set_owner(std::string(owner));
    v1::OpenedPlane reply;
    EAGLE_RETURN_IF_ERROR(
        connection_->call("open", &RemoteLink::Stubs::planes, &v1::Planes::Stub::Open, request, reply));
    return opened(name, reply);
  }
  Status withdraw(std::string_view name, const WithdrawOptions& options) override {
    v1::WithdrawRequest request;
    request.set_name(std::string(name));
    for (const std::string& principal : options.from) request.add_from(principal);
    request.set_seal_off(options.seal_off);
    v1::WithdrawReply reply;
    constexpr milliseconds copying{60'000};
    EAGLE_RETURN_IF_ERROR(connection_->call("withdraw", &RemoteLink::Stubs::planes,
                                            &v1::Planes::Stub::Withdraw, request, reply, copying));
    return reply.has_moved() ? connection_->map_again(reply.moved()) : Status();
  }
  StatusOr<std::vector<SessionPlane>> planes() override {
    v1::ListPlanesReply reply;
    EAGLE_RETURN_IF_ERROR(connection_->call("planes", &RemoteLink::Stubs::planes, &v1::Planes::Stub::List,
                                            v1::ListPlanesRequest(), reply));
    std::vector<SessionPlane> planes;
    for (const v1::PlaneInfo& plane : reply.planes()) {
      const auto reach = reply.reach_size() == reply.planes_size()
                             ? reply.reach(static_cast<int>(planes.size()))
                             : v1::PlaneReach();
      planes.push_back({plane.ref().id(), plane.label(), plane.bytes(), reach.copied() ? "copy" : "memfd",
                        reach.why(), reach.read_only()});
    }
    return planes;
  }

private:
  StatusOr<std::unique_ptr<HostGraph>> try_build(const v1::BuildRequest& request) {
    const auto making = connection_->making();
    v1::BuildReply reply;
    grpc::Status status;
    WatchedCall call(*connection_, 0, std::nullopt, nullptr);
    const auto reader = call.rpc().graphs.AsyncBuild(&call.context, request, &call.queue);
    reader->Finish(&reply, &status, WatchedCall::tag());
    call.wait();
    EAGLE_RETURN_IF_ERROR(call.outcome("build", status));
    connection_->hold_graph(reply.graph());
    Contents contents;
    look_into(request.graph().stages(), contents);
    HostViews host_views;
    if (connection_->copies()) host_views = HostViews(*connection_, request.graph());
    return std::unique_ptr<HostGraph>(std::make_unique<RemoteGraph>(
        connection_, reply, contents, std::move(host_views), call.link().number()));
  }

  // An array as a slice of its plane.
  struct Slice {
    v1::PlaneSlice message;
    std::uint64_t bytes = 0;  // packed
    std::shared_ptr<Buffer> buffer;
    bool copied = false;
  };
  StatusOr<Slice> slice_of(std::string_view operation, const ArrayView& array) const {
    v1::GraphDescription scene;  // where arrays become views of planes
    ViewTable table(*this);
    Backing backing;
    Slice slice;
    v1::View& view = *slice.message.mutable_view();
    EAGLE_RETURN_IF_ERROR(table.add(array, operation, view));
    table.finish([&scene]() -> v1::PlaneDeclaration& { return *scene.add_planes(); }, backing);
    if (scene.planes_size() != 1 || !scene.planes(0).has_plane()) {
      return Status(Reason::private_array,
                    std::string(operation) + ": expected an array of " + name() +
                        ", found other memory; make one with zeros, full or asarray of it");
    }
    *slice.message.mutable_plane() = scene.planes(0).plane();
    view.set_plane(0);
    const plane::View elements{0, 0, array.dtype, array.item_bytes, array.shape, array.strides};
    EAGLE_ASSIGN_OR_RETURN(const plane::Packed packed, plane::Packed::of(elements));
    slice.bytes = packed.bytes();
    if (const auto address = find(array.data, 0)) slice.buffer = address->keep_alive;
    slice.copied = connection_->copies();
    return slice;
  }
  static Status check_size(std::string_view operation, const Slice& slice, std::size_t found) {
    if (slice.bytes == found) return {};
    return {Reason::bad_value, std::string(operation) + ": expected " + std::to_string(slice.bytes) +
                                   " bytes, the array's elements, found " + std::to_string(found)};
  }

  // What the daemon opened for this session, as an array of this process.
  StatusOr<PublishedArray> opened(std::string_view name, const v1::OpenedPlane& reply) {
    EAGLE_ASSIGN_OR_RETURN(PlaneSource::Plane plane,
                           connection_->take_plane(reply.plane(), reply.read_only()));
    const std::uint64_t bytes = plane.memory.bytes();
    PublishedArray array;
    array.buffer = planes_->adopt(std::move(plane), bytes, name);
    const v1::View& view = reply.view();
    array.view = {array.buffer->data() + view.offset(),
                  static_cast<DType>(view.dtype()),
                  view.item_bytes(),
                  {view.shape().begin(), view.shape().end()},
                  {view.strides().begin(), view.strides().end()},
                  reply.read_only(),
                  array.buffer};
    array.owner = reply.owner();
    array.moved = reply.moved();
    return array;
  }

  HostCall with_transfers(const v1::RunDescription& description, const HostCall& host_call) const {
    if (!connection_->copies()) return host_call;
    const auto views = std::make_shared<const HostViews>(*connection_, description);
    return [this, views, host_call](std::uint32_t call) -> step::HostAnswer {
      if (const Status fetched = views->fetch_reads(*connection_, call); !fetched.ok())
        return {fetched, false};
      step::HostAnswer answer = host_call(call);
      if (answer.status.ok()) answer.status = views->send_writes(*connection_, call);
      return answer;
    };
  }

  grpc::Status listen(WatchedCall& call, const v1::SimulateRequest& request, const SimulateOptions& options,
                      v1::RunResult& last) {
    ProgressTeller tell(options);
    const auto reader =
        call.rpc().runs.AsyncSimulate(&call.context, request, &call.queue, WatchedCall::tag());
    bool going = call.wait();
    v1::SimulateEvent event;
    while (going) {
      reader->Read(&event, WatchedCall::tag());
      going = call.wait();
      if (going && event.has_result()) last = event.result();
      if (going && event.has_progress() && !told(call, tell, event.progress())) call.ask_to_cancel();
      call.look();
    }
    grpc::Status status;
    reader->Finish(&status, WatchedCall::tag());
    call.wait();
    return status;
  }

  // Who wanted the run to end hears no more of it.
  static bool told(const WatchedCall& call, ProgressTeller& tell, const v1::RunProgress& progress) {
    return call.stop() != WatchedCall::Stop::none || tell.tell({progress.steps(), progress.finished()});
  }

  // Where the caller has a part in every step, the wish to stop goes with a reply, so that the step is whole.
  grpc::Status converse(WatchedCall& call, const v1::SimulateRequest& request, const SimulateOptions& options,
                        const HostCall& host_call, v1::RunResult& last) {
    ProgressTeller tell(options);
    for (const v1::HostStep& step : request.run().host_steps()) {
      if (step.every() == 1) call.note_only();
    }
    const auto stream =
        call.rpc().runs.AsyncSimulateWithCalls(&call.context, &call.queue, WatchedCall::tag());
    bool going = call.wait();
    v1::SimulateClientMessage said;
    *said.mutable_simulate() = request;
    const auto write = [&] {
      stream->Write(said, WatchedCall::tag());
      return call.wait();
    };
    going = going && write();
    v1::SimulateEvent heard;
    while (going) {
      stream->Read(&heard, WatchedCall::tag());
      if (!call.wait()) break;
      if (heard.has_result()) last = std::move(*heard.mutable_result());
      if (heard.has_progress() && !told(call, tell, heard.progress())) call.ask_to_cancel();
      if (!heard.has_call()) continue;
      const step::HostAnswer answer = host_call(heard.call().call());
      call.look();
      v1::HostCallReply& reply = *said.mutable_reply();
      reply.set_sequence(heard.call().sequence());
      reply.set_ok(answer.status.ok());
      reply.set_error(rpc::wire_message(answer.status.message()));
      reply.set_stop(answer.stop);
      reply.set_cancel(call.stop() != WatchedCall::Stop::none);
      static_cast<void>(write());  // it may cross the end of the run, whose result is then to be read
    }
    grpc::Status status;
    stream->Finish(&status, WatchedCall::tag());
    call.wait();
    return status;
  }

  std::shared_ptr<Connection> connection_;
  std::shared_ptr<RemotePlanes> planes_;
  // Arrays of submitted runs: their memory must not be used again while the daemon may compute on it. Those
  // of a run whose lease is over are among them until the session closes.
  std::mutex kept_mutex_;
  std::map<std::uint64_t, std::vector<std::shared_ptr<const void>>> kept_;
};

}  // namespace

StatusOr<std::shared_ptr<Host>> open_remote(const Endpoint& endpoint, const ConnectOptions& options,
                                            std::shared_ptr<const void> daemon) {
  EAGLE_ASSIGN_OR_RETURN(auto connection, Connection::open(endpoint, options, std::move(daemon)));
  return std::shared_ptr<Host>(std::make_shared<RemoteHost>(std::move(connection)));
}

}  // namespace eagle
