#include "client/remote_graph.h"

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "client/lent.h"
#include "client/view_table.h"
#include "client/watched_call.h"
#include "engine/graph/address.h"
#include "engine/run/report_message.h"
#include "proto/rpc_error.h"

namespace eagle {
namespace {

// What a description has that decides how its launches go.
struct Features {
  bool host_nodes = false;
  std::size_t loops = 0;
};

void look_into(const google::protobuf::RepeatedPtrField<v1::Stage>& stages, Features& features);

void look_into(const v1::Group& group, Features& features);

void look_into(const v1::Node& node, Features& features) {
  if (node.has_group()) return look_into(node.group(), features);
  features.host_nodes |= node.has_host();
  features.loops += node.has_repeat_while() ? 1 : 0;
  look_into(node.skippable().body(), features);
  look_into(node.repeat_while().body(), features);
}

void look_into(const google::protobuf::RepeatedPtrField<v1::Stage>& stages, Features& features) {
  for (const v1::Stage& stage : stages) {
    if (stage.has_node()) look_into(stage.node(), features);
    look_into(stage.group(), features);
  }
}

void look_into(const v1::Group& group, Features& features) {
  for (const v1::Branch& branch : group.branches()) {
    for (const v1::Node& node : branch.nodes()) look_into(node, features);
  }
}

void fill(const NodeReference& node, v1::NodeReference& message) {
  if (const auto* const index = std::get_if<std::uint32_t>(&node)) message.set_index(*index);
  if (const auto* const label = std::get_if<std::string>(&node)) message.set_label(*label);
}

class RemoteGraph final : public HostGraph {
public:
  // `link`: the number of the one that it was built over.
  RemoteGraph(std::shared_ptr<Connection> connection, const v1::BuildReply& built, const Features& features,
              HostViews host_views, std::uint64_t link)
      : connection_(std::move(connection)),
        host_views_(std::move(host_views)),
        id_(built.graph()),
        ready_on_(link),
        schedule_(built.schedule().begin(), built.schedule().end()),
        calls_back_(features.host_nodes),
        fits_ring_(features.loops <= ring::most_iterations),
        compiled_(built.compiled()),
        scratch_(scratch_of(built)),
        execution_(built.execution().SerializeAsString()),
        backend_(built.backend().empty() ? "cpu" : built.backend()) {}
  ~RemoteGraph() override {
    if (connection_->state.forked()) {
      static_cast<void>(conversation_.release());
    } else if (std::exchange(waited_for_, false)) {
      cancel_enqueued()();  // nobody will ask for it
      if (posted_) ring(*posted_->link)->abandon(posted_->slot);
      conversation_.reset();
    }
    connection_->release_graph(id_);
  }

  [[nodiscard]] std::vector<std::string> schedule() const override { return schedule_; }
  [[nodiscard]] std::string backend() const override { return backend_; }

  StatusOr<std::string> timeline() const override {
    v1::GraphTimelineRequest request;
    request.set_graph(id_);
    v1::TimelineReply reply;
    EAGLE_RETURN_IF_ERROR(connection_->call("timeline", &RemoteLink::Stubs::graphs,
                                            &v1::Graphs::Stub::Timeline, request, reply));
    return std::move(*reply.mutable_trace_json());
  }
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
    v1::LaunchRequest request;
    request.set_graph(id_);
    request.set_count(n);
    request.set_launch_id(connection_->next_launch());
    TimeLeft time(options);
    std::uint64_t lost = 0;  // the id of an attempt that may have begun
    for (bool looked_again = false;;) {
      EAGLE_ASSIGN_OR_RETURN(const LaunchOptions* const left, time.left("launch"));
      auto outcome = try_launch(request, *left, host_call);
      if (outcome.ok()) return outcome;
      Status status = outcome.status();
      if (status.reason() == Reason::graph_state && !std::exchange(looked_again, true)) {
        not_ready();
        continue;
      }
      // The next worker will not have the graph any more: what became of this launch it cannot say.
      if (status.reason() == Reason::graph_quarantined && lost == request.launch_id())
        return connection_->restarted("launch");
      if (status.reason() == Reason::connection_lost) lost = request.launch_id();
      if (!again("launch", status, time)) return status;
    }
  }

  [[nodiscard]] std::int64_t brief_replays() const override { return INT64_MAX; }
  [[nodiscard]] bool enqueues() const override { return true; }

  Status enqueue(std::int64_t n) override {
    EAGLE_RETURN_IF_ERROR(connection_->check("enqueue"));
    EAGLE_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteLink> link, ready("enqueue"));
    v1::LaunchRequest request;
    request.set_graph(id_);
    request.set_count(n);
    request.set_launch_id(connection_->next_launch());
    request.set_enqueued(true);
    stop_ = std::make_shared<std::atomic<bool>>(false);
    posted_.reset();
    if (RingClient* const ring = this->ring(*link); ring != nullptr && !ring->closing()) {
      const auto slot = ring->post({id_, n, request.launch_id(), {}, true});
      // One that came too late for the worker goes to the next one.
      if (slot && ring->closing() && ring->take_back(*slot)) {
        ring->abandon(*slot);
      } else if (slot) {
        posted_ = Posted{link, *slot};
      }
    }
    if (!posted_ && calls_back_) {
      conversation_ =
          std::make_unique<Conversation>(*connection_, request, LaunchOptions{std::nullopt, stop_});
    } else if (!posted_) {
      EAGLE_RETURN_IF_ERROR(send_enqueued(request));
    }
    in_flight_ = request;
    waited_for_ = true;
    return {};
  }

  StatusOr<LaunchReport> synchronize(const LaunchOptions& options,
                                     const std::function<Status(std::uint32_t)>& host_call) override {
    waited_for_ = false;
    if (stop_->load()) options.cancel->store(true);
    TimeLeft time(options);
    std::optional<StatusOr<LaunchReport>> outcome;
    if (const auto posted = std::exchange(posted_, std::nullopt)) {
      bool taken = true;
      outcome = finish_by_ring("synchronize", *posted->link, posted->slot, in_flight_.launch_id(), options,
                               host_call, &taken);
      if (!taken) return never_began(outcome->status());
    } else if (conversation_) {
      const std::unique_ptr<Conversation> conversation = std::move(conversation_);
      conversation->call.watch(options.timeout, options.cancel);
      conversation->call.tell(options.waiting);
      outcome = hear("synchronize", *conversation, host_call);
    }
    // It is asked for by its id, wherever its outcome is now: nothing that was enqueued begins so.
    for (;;) {
      if (outcome) {
        if (outcome->ok()) return *std::move(outcome);
        Status status = outcome->status();
        if (calls_back_ || !again("synchronize", status, time)) {
          return connection_->settle("synchronize", status);
        }
      }
      EAGLE_ASSIGN_OR_RETURN(const LaunchOptions* const left, time.left("synchronize"));
      outcome = ask("synchronize", in_flight_, *left);
    }
  }

  std::function<void()> cancel_enqueued() override {
    connection_->note_failure();
    stop_->store(true);
    // The slot is this launch's until it is collected.
    if (posted_ && ring(*posted_->link)->take_back(posted_->slot)) return [] {};
    v1::CancelRequest request;
    request.set_launch_id(in_flight_.launch_id());
    return [connection = connection_, request] {
      connection->tidy(&RemoteLink::Stubs::graphs, &v1::Graphs::Stub::Cancel, request);
    };
  }

  Status update(const std::vector<graph::ParamUpdate>& updates) override {
    v1::UpdateRequest request;
    request.set_graph(id_);
    for (const graph::ParamUpdate& update : updates) graph::to_message(update, *request.add_params());
    EAGLE_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteLink> link, ready("update"));
    if (RingClient* const ring = connection_->ring(*link)) {
      const Deadline deadline = Clock::now() + connection_->timeout;
      const auto look = [&] {
        const bool waits = link->alive() && !connection_->state.closed() && Clock::now() < deadline;
        return waits ? RingClient::Wish::go_on : RingClient::Wish::give_up;
      };
      const RingClient::Caller caller{look, nullptr};
      const auto updated = ring->update(request.SerializeAsString(), caller);
      if (updated && link->alive()) return *updated;
    }
    // A second time where the link broke: the same numbers may be given twice.
    v1::UpdateReply reply;
    return call_when_known("update", [&] {
      return connection_->call("update", &RemoteLink::Stubs::graphs, &v1::Graphs::Stub::Update, request,
                               reply);
    });
  }

  Status rebind(const v1::GraphDescription& description,
                std::span<const run::PlaneMemory> /*private_planes*/) override {
    v1::RebindRequest request;
    request.set_graph(id_);
    const Lent lent(request, description, &v1::RebindRequest::unsafe_arena_set_allocated_description,
                    &v1::RebindRequest::unsafe_arena_release_description);
    v1::RebindReply reply;
    EAGLE_RETURN_IF_ERROR(
        connection_->call("rebind", &RemoteLink::Stubs::graphs, &v1::Graphs::Stub::Rebind, request, reply));
    if (connection_->some_copied()) host_views_ = HostViews(*connection_, description);
    const std::scoped_lock lock(mutex_);
    scratch_ = scratch_of(reply);
    execution_ = reply.execution().SerializeAsString();
    return {};
  }

  [[nodiscard]] graph::ScratchLayout scratch() const override {
    const std::scoped_lock lock(mutex_);
    return scratch_;
  }
  [[nodiscard]] run::Execution execution() const override {
    v1::Execution message;
    const std::scoped_lock lock(mutex_);
    static_cast<void>(message.ParseFromString(execution_));
    return run::execution_of(message);
  }
  [[nodiscard]] bool compiled() const override { return compiled_; }

private:
  // What a launch has left of its caller's time, over several attempts.
  class TimeLeft {
  public:
    explicit TimeLeft(const LaunchOptions& options) : options_(options) {
      if (options.timeout) until_ = Clock::now() + *options.timeout;
    }
    // Until the next call of it. DEADLINE, CANCELLED: it has not begun.
    StatusOr<const LaunchOptions*> left(std::string_view operation) {
      if (++attempts_ == 1) return &options_;
      if (wants_to_stop()) {
        return Status(Reason::cancelled, std::string(operation) + ": cancelled before the launch began");
      }
      if (!until_) return &options_;
      left_ = options_;
      left_.timeout = std::chrono::duration_cast<milliseconds>(*until_ - Clock::now());
      if (left_.timeout->count() > 0) return &left_;
      return Status(Reason::deadline,
                    std::string(operation) + ": the timeout passed before the launch began");
    }
    [[nodiscard]] bool sent_again() const { return attempts_ > 1; }
    [[nodiscard]] bool wants_to_stop() const { return options_.cancel && options_.cancel->load(); }
    [[nodiscard]] Deadline until() const { return until_.value_or(Deadline::max()); }

  private:
    const LaunchOptions& options_;
    LaunchOptions left_;
    std::optional<Deadline> until_;
    int attempts_ = 0;
  };

  // Whether a launch that ended so is to be sent again, with its id: the daemon knows whether it has begun.
  bool again(std::string_view operation, Status& status, const TimeLeft& time) {
    if (connection_->try_again(operation, status, time.until())) return true;
    if (status.reason() == Reason::worker_restarted) status = connection_->restarted(operation);
    // Over TCP the daemon cancels what its client's line broke under.
    if (status.reason() == Reason::cancelled && time.sent_again() && !time.wants_to_stop()) {
      status = connection_->lost(operation, status.message());
    }
    return false;
  }

  // One attempt. SHUTTING_DOWN, CONNECTION_LOST: see `again`.
  StatusOr<LaunchReport> try_launch(v1::LaunchRequest& request, const LaunchOptions& options,
                                    const std::function<Status(std::uint32_t)>& host_call) {
    EAGLE_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteLink> link, ready("launch"));
    if (auto outcome = launch_by_ring(*link, request, options, host_call)) return *std::move(outcome);
    EAGLE_RETURN_IF_ERROR(connection_->check("launch"));
    // Another link, which does not know of the graph.
    if (connection_->link() != link) return connection_->lost("launch", "its connection was closed");
    if (!calls_back_) return ask("launch", request, options);
    Conversation conversation(*connection_, request, options);
    return hear("launch", conversation, host_call);
  }

  // Where another thread has made a new link meanwhile, its worker does not know of the graph either.
  Status call_when_known(std::string_view operation, const std::function<Status()>& call) {
    for (bool looked_again = false;;) {
      EAGLE_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteLink> link, ready(operation));
      Status status = call();
      if (status.reason() != Reason::graph_state) return status;
      if (connection_->link() == link && std::exchange(looked_again, true)) return status;
      not_ready();
    }
  }

  // A call may reach the next worker before the session has heard of the death of the one before it: over TCP
  // gRPC makes connections anew by itself.
  void not_ready() { ready_on_.store(0, std::memory_order_release); }

  // Whoever enqueues waits until it is. A second time with the same id is the same launch, and the next
  // worker is to know of the graph.
  Status send_enqueued(const v1::LaunchRequest& request) {
    for (bool sent_again = false;;) {
      v1::EnqueueReply reply;
      const Status sent = call_when_known("enqueue", [&] {
        return connection_->call("enqueue", &RemoteLink::Stubs::graphs, &v1::Graphs::Stub::Enqueue, request,
                                 reply, {}, Connection::Again::must_not);
      });
      // The drain of a daemon that is being exchanged may take longer than a short call.
      if (rpc::passes_soon(sent)) continue;
      if (sent.reason() != Reason::worker_restarted || !connection_->tells_begun()) return sent;
      if (std::exchange(sent_again, true)) return sent;
    }
  }

  // Where its arrays are copies (over TCP, and on a GPU) a callable finds their values in this process, and
  // what it stores there goes to the daemon.
  std::function<Status(std::uint32_t)> with_transfers(
      WatchedCall& launch, const std::function<Status(std::uint32_t)>& host_call) const {
    if (host_views_.empty()) return host_call;
    return [this, &launch, host_call](std::uint32_t call) -> Status {
      EAGLE_RETURN_IF_ERROR(host_views_.fetch_reads(*connection_, call, launch.transfers()));
      EAGLE_RETURN_IF_ERROR(host_call(call));
      return host_views_.send_writes(*connection_, call, launch.last_transfers());
    };
  }

  // Of a launch that was enqueued and that no worker took. `lost`: why.
  Status never_began(const Status& lost) {
    const Status settled = connection_->settle("synchronize", lost);
    if (settled.reason() != Reason::worker_restarted) return settled;
    return {Reason::worker_restarted,
            "synchronize: the worker of the daemon at " + connection_->endpoint.text() +
                " died before it took the launch, and another took its place; the session, its arrays and "
                "graphs are there, and the launch never began: enqueue it again"};
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
    // What is fetched and sent around a callable goes over gRPC, whose watch stops it.
    return fits_ring_ && host_views_.empty() ? connection_->ring(link) : nullptr;
  }

  // Empty where it must go another way. CONNECTION_LOST: it may have begun, unless it has another id now.
  std::optional<StatusOr<LaunchReport>> launch_by_ring(
      RemoteLink& link, v1::LaunchRequest& request, const LaunchOptions& options,
      const std::function<Status(std::uint32_t)>& host_call) {
    RingClient* const ring = this->ring(link);
    if (ring == nullptr) return {};
    const auto posted = ring->post(
        {id_, request.count(), request.launch_id(), options.timeout.value_or(milliseconds(0)), false});
    if (!posted) return {};
    bool taken = true;
    auto outcome = finish_by_ring("launch", link, *posted, request.launch_id(), options, host_call, &taken);
    // It is the first use of a link that broke some time ago.
    if (!taken) request.set_launch_id(connection_->next_launch());
    return outcome;
  }

  std::optional<StatusOr<LaunchReport>> finish_by_ring(std::string_view operation, RemoteLink& link,
                                                       const RingClient::Posted& posted,
                                                       std::uint64_t launch_id, const LaunchOptions& options,
                                                       const std::function<Status(std::uint32_t)>& host_call,
                                                       bool* taken = nullptr) {
    StopWatch watch(*connection_, launch_id, options.timeout, options.cancel);
    watch.tell(options.waiting);
    using Wish = RingClient::Wish;
    const auto look = [&] {
      if (!link.alive() || !watch.look()) return Wish::give_up;
      return watch.stop() == StopWatch::Stop::none ? Wish::go_on : Wish::stop;
    };
    const RingClient::Caller caller{look, std::cref(host_call), [&] { return watch.note(); },
                                    [&] { watch.tell_waiting(); }};
    bool answered = false;
    auto outcome = ring(link)->finish(posted, caller, &answered);
    if (!outcome) return {};
    if (outcome->ok()) {
      (*outcome)->host = link.session().host;
      return outcome;
    }
    if (const Status closed = connection_->state.check(operation); !closed.ok()) return closed;
    const bool begun = outcome->status().reason() != Reason::connection_lost;
    if (answered || link.alive()) {
      return watch.in_words(begun ? outcome->status() : Status(Reason::cancelled, "the launch never began"));
    }
    if (taken != nullptr) *taken = begun;
    return connection_->lost(operation, "its connection is closed");
  }

  // The outcome of a launch without host calls: this one's, or that of the one that was sent with this id.
  StatusOr<LaunchReport> ask(std::string_view operation, const v1::LaunchRequest& request,
                             const LaunchOptions& options) {
    EAGLE_RETURN_IF_ERROR(connection_->check(operation));
    WatchedCall call(*connection_, request.launch_id(), options.timeout, options.cancel);
    call.tell(options.waiting);
    v1::LaunchReport report;
    grpc::Status status;
    const auto reader = call.rpc().graphs.AsyncLaunch(&call.context, request, call.queue());
    reader->Finish(&report, &status, call.tag());
    call.wait();
    EAGLE_RETURN_IF_ERROR(call.outcome(operation, status));
    return report_of(report);
  }

  StatusOr<LaunchReport> hear(std::string_view operation, Conversation& conversation,
                              const std::function<Status(std::uint32_t)>& host_call) {
    v1::LaunchReport report;
    const grpc::Status status = conversation.run(with_transfers(conversation.call, host_call), report);
    EAGLE_RETURN_IF_ERROR(conversation.call.outcome(operation, status));
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
  std::string execution_;  // a v1::Execution, which few ask for
  const std::string backend_;
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

}  // namespace

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

std::unique_ptr<HostGraph> remote_graph(std::shared_ptr<Connection> connection, const v1::BuildReply& built,
                                        const v1::GraphDescription& description, HostViews host_views,
                                        std::uint64_t link) {
  Features features;
  look_into(description.stages(), features);
  return std::make_unique<RemoteGraph>(std::move(connection), built, features, std::move(host_views), link);
}

}  // namespace eagle
