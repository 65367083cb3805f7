#include "client/remote_host.h"

#include <google/protobuf/arena.h>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "client/host_views.h"
#include "client/imported_ranges.h"
#include "client/lent.h"
#include "client/plane_registry.h"
#include "client/progress_teller.h"
#include "client/remote_admin.h"
#include "client/remote_connection.h"
#include "client/remote_graph.h"
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

class RemoteHost final : public Host, public HostRuns {
public:
  explicit RemoteHost(std::shared_ptr<Connection> connection)
      : connection_(std::move(connection)),
        planes_(std::make_shared<RemotePlanes>(connection_, connection_->state.shared_name())),
        admin_(remote_admin(connection_)) {}

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
    info.tenant = reply.tenant();
    for (const v1::TenantInfo& tenant : reply.tenants()) info.tenants.push_back(tenant_of(tenant));
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
                     graph.launches(), scratch_of(graph), graph.tenant()});
    }
    return all;
  }
  StatusOr<std::string> picture(const GraphInfo& graph, PictureFormat format) override {
    return picture_of(*connection_, graph.session, graph.graph, format);
  }

  StatusOr<std::shared_ptr<Buffer>> allocate(std::uint64_t bytes, std::string_view label,
                                             Contents contents) override {
    EAGLE_RETURN_IF_ERROR(connection_->check("allocate"));
    return planes_->allocate(bytes, label, contents);
  }

  StatusOr<std::shared_ptr<Buffer>> allocate_on(std::string_view device, std::uint64_t bytes,
                                                std::string_view label, Contents contents) override {
    EAGLE_RETURN_IF_ERROR(connection_->check("allocate"));
    return planes_->allocate_on(device, bytes, label, contents);
  }

  StatusOr<std::shared_ptr<Buffer>> import_on_device(const ImportedMemory& memory,
                                                     std::string_view label) override {
    EAGLE_RETURN_IF_ERROR(connection_->check("import"));
    if (connection_->copies()) {
      return Status(
          Reason::bad_value,
          "import: memory of a GPU cannot be imported over TCP; connect to the daemon's unix socket "
          "on the GPU's host, or copy the values: session.asarray(values, device=...)");
    }
    return imported_.find_or(memory, [&](const ImportedMemory& kept) -> StatusOr<std::shared_ptr<Buffer>> {
      return planes_->import(kept, label);
    });
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
    const Lent graph(request, description, &v1::BuildRequest::unsafe_arena_set_allocated_graph,
                     &v1::BuildRequest::unsafe_arena_release_graph);
    for (int repeats = 0;;) {
      EAGLE_RETURN_IF_ERROR(connection_->check("build"));
      auto built = try_build(request);
      if (built.ok()) return built;
      Status status = built.status();
      if (status.reason() == Reason::connection_lost && repeats++ == most_repeats)
        return connection_->settle("build", status);
      if (!connection_->try_again("build", status, Clock::now() + connection_->timeout)) return status;
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
    const Deadline until = options.timeout ? Clock::now() + *options.timeout : Deadline::max();
    for (;;) {
      auto result = try_simulate(request, options, until, host_call);
      if (result.ok()) return result;
      Status status = result.status();
      // What has begun is refused by a daemon that tells.
      if (status.reason() == Reason::connection_lost && !connection_->tells_begun()) {
        return connection_->settle("simulate", status);
      }
      if (!connection_->try_again("simulate", status, until)) {
        return status.reason() == Reason::worker_restarted ? connection_->restarted("simulate") : status;
      }
      request.set_cancelled(options.cancel && options.cancel->load());
    }
  }

  HostAdmin* admin() override { return admin_.get(); }
  HostRuns* runs() override { return this; }
  StatusOr<std::uint64_t> submit(const v1::SubmitRequest& asked, std::span<const run::PlaneMemory>,
                                 std::vector<std::shared_ptr<const void>> keep_alive) override {
    v1::SubmitRequest request = asked;
    EAGLE_ASSIGN_OR_RETURN(*request.mutable_attempt(), random_bytes());
    v1::SubmitReply reply;
    const auto again = connection_->tells_begun() ? Connection::Again::may : Connection::Again::must_not;
    EAGLE_RETURN_IF_ERROR(connection_->call("submit", &RemoteLink::Stubs::runs, &v1::Runs::Stub::Submit,
                                            request, reply, {}, again));
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
    request.set_alone(slice.alone);
    request.set_name(std::string(name));
    request.set_writable(options.writable);
    EAGLE_ASSIGN_OR_RETURN(*request.mutable_attempt(), random_bytes());
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
    const auto ask = [&] {
      return connection_->call("withdraw", &RemoteLink::Stubs::planes, &v1::Planes::Stub::Withdraw, request,
                               reply, copying, Connection::Again::must_not);
    };
    Status done = ask();
    // Once more with the next worker, where the name may be gone already. Whether bytes have moved nobody can
    // say.
    if (done.reason() == Reason::worker_restarted && !options.seal_off) {
      done = ask();
      if (done.reason() == Reason::unknown_name) return {};
    }
    EAGLE_RETURN_IF_ERROR(done);
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
      planes.push_back({plane.ref().id(), plane.label(), plane.bytes(), transport_of(plane, reach),
                        reach.why(), reach.read_only(), reach.huge_bytes(),
                        plane.device().empty() ? "cpu" : plane.device(), reach.opened_by(),
                        plane.ref().generation()});
    }
    return planes;
  }

private:
  static std::string transport_of(const v1::PlaneInfo& plane, const v1::PlaneReach& reach) {
    if (reach.copied()) return "copy";
    if (plane.transport() == v1::TRANSPORT_CUDA_VMM_FD) return "cuda_vmm_fd";
    if (plane.transport() == v1::TRANSPORT_CUDA_IMPORT) return "cuda_import";
    return plane.transport() == v1::TRANSPORT_CUDA_IPC ? "cuda_ipc" : "memfd";
  }
  static TenantUse tenant_of(const v1::TenantInfo& tenant) {
    return {tenant.name(),         tenant.weight(),
            tenant.priority(),     tenant.sessions(),
            tenant.planes(),       tenant.plane_bytes(),
            tenant.graphs(),       tenant.jobs(),
            tenant.jobs_ended(),   tenant.refused(),
            tenant.device_s(),     tenant.compile_s(),
            tenant.queue_wait_s(), tenant.longest_queue_wait_s()};
  }

  StatusOr<RunResult> try_simulate(const v1::SimulateRequest& request, const SimulateOptions& options,
                                   Deadline until, const HostCall& host_call) {
    std::optional<milliseconds> left;
    if (options.timeout) {
      left = std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(until - Clock::now()));
    }
    WatchedCall call(*connection_, request.launch_id(), left, options.cancel);
    call.tell(options.waiting);
    v1::RunResult last;
    const grpc::Status status =
        request.run().host_steps_size() > 0
            ? converse(call, request, options, with_transfers(call, request.run(), host_call), last)
            : listen(call, request, options, last);
    EAGLE_RETURN_IF_ERROR(call.outcome("simulate", status));
    EAGLE_ASSIGN_OR_RETURN(RunResult result, step::result_of(last));
    if (result.status != RunStatus::cancelled) return result;
    if (call.stop() == WatchedCall::Stop::closed) return connection_->state.check("simulate");
    if (call.stop() == WatchedCall::Stop::deadline) result.status = RunStatus::deadline;
    return result;
  }
  StatusOr<std::unique_ptr<HostGraph>> try_build(const v1::BuildRequest& request) {
    const auto making = connection_->making();
    google::protobuf::Arena arena;  // thousands of small messages
    auto& reply = *google::protobuf::Arena::CreateMessage<v1::BuildReply>(&arena);
    grpc::Status status;
    WatchedCall call(*connection_, 0, std::nullopt, nullptr);
    const auto reader = call.rpc().graphs.AsyncBuild(&call.context, request, call.queue());
    reader->Finish(&reply, &status, call.tag());
    call.wait();
    EAGLE_RETURN_IF_ERROR(call.outcome("build", status));
    connection_->hold_graph(reply.graph());
    HostViews host_views;
    if (connection_->some_copied()) host_views = HostViews(*connection_, request.graph());
    return remote_graph(connection_, reply, request.graph(), std::move(host_views), call.link().number());
  }

  // An array as a slice of its plane.
  struct Slice {
    v1::PlaneSlice message;
    std::uint64_t bytes = 0;  // packed
    std::shared_ptr<Buffer> buffer;
    bool copied = false;
    bool alone = false;  // all that lies in its plane
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
    if (const auto address = find(array.data, 0)) {
      slice.buffer = address->keep_alive;
      slice.alone = address->alone && slice.bytes == slice.buffer->bytes();
    }
    slice.copied = connection_->copies() || (slice.buffer && slice.buffer->copied());
    return slice;
  }
  static Status check_size(std::string_view operation, const Slice& slice, std::size_t found) {
    if (slice.bytes == found) return {};
    return {Reason::bad_value, std::string(operation) + ": expected " + std::to_string(slice.bytes) +
                                   " bytes, the array's elements, found " + std::to_string(found)};
  }

  // What the daemon opened for this session, as an array of this process.
  StatusOr<PublishedArray> opened(std::string_view name, const v1::OpenedPlane& reply) {
    PublishedArray array;
    EAGLE_ASSIGN_OR_RETURN(const Opened memory, memory_of(name, reply));
    array.buffer = memory.buffer;
    const v1::View& view = reply.view();
    array.view = {memory.plane + view.offset(),
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

  // Where arrays are copies a plane has one memory in this process, however often it is opened: what one
  // array was sent, the others see.
  struct Opened {
    std::shared_ptr<Buffer> buffer;
    std::byte* plane = nullptr;  // where the plane begins
  };
  StatusOr<Opened> memory_of(std::string_view name, const v1::OpenedPlane& reply) {
    std::unique_lock<std::mutex> one_at_a_time;
    if (connection_->copies() || !reply.plane().device().empty()) {
      one_at_a_time = std::unique_lock(opening_mutex_);
      std::byte* const known = connection_->bytes_of(reply.plane().ref());
      const auto address = known == nullptr ? std::nullopt : find(known + reply.view().offset(), 0);
      if (address && address->alone) return Opened{address->keep_alive, known};
    }
    EAGLE_ASSIGN_OR_RETURN(PlaneSource::Plane plane,
                           connection_->take_plane(reply.plane(), reply.read_only()));
    const std::uint64_t bytes = plane.memory.bytes();
    const auto buffer = planes_->adopt(std::move(plane), bytes, name);
    return Opened{buffer, buffer->data()};
  }

  HostCall with_transfers(WatchedCall& run, const v1::RunDescription& description,
                          const HostCall& host_call) const {
    if (!connection_->some_copied()) return host_call;
    const auto views = std::make_shared<const HostViews>(*connection_, description);
    return [this, &run, views, host_call](std::uint32_t call) -> step::HostAnswer {
      if (const Status fetched = views->fetch_reads(*connection_, call, run.transfers()); !fetched.ok())
        return {fetched, false};
      step::HostAnswer answer = host_call(call);
      if (answer.status.ok()) answer.status = views->send_writes(*connection_, call, run.last_transfers());
      return answer;
    };
  }

  grpc::Status listen(WatchedCall& call, const v1::SimulateRequest& request, const SimulateOptions& options,
                      v1::RunResult& last) {
    ProgressTeller tell(options);
    const auto reader = call.rpc().runs.AsyncSimulate(&call.context, request, call.queue(), call.tag());
    bool going = call.wait();
    v1::SimulateEvent event;
    while (going) {
      reader->Read(&event, call.tag());
      going = call.wait();
      if (going && event.has_result()) last = event.result();
      if (going && event.has_progress() && !told(call, tell, event.progress())) call.ask_to_cancel();
      call.look();
    }
    grpc::Status status;
    reader->Finish(&status, call.tag());
    call.wait();
    return status;
  }

  // Who wanted the run to end hears no more of it.
  static bool told(const WatchedCall& call, ProgressTeller& tell, const v1::RunProgress& progress) {
    return call.stop() != WatchedCall::Stop::none || tell.tell({progress.steps(), progress.finished()});
  }

  // Where the caller has a part in every step, the wish to stop goes with a reply, so that the step is whole;
  // but not where the step takes long.
  grpc::Status converse(WatchedCall& call, const v1::SimulateRequest& request, const SimulateOptions& options,
                        const HostCall& host_call, v1::RunResult& last) {
    ProgressTeller tell(options);
    for (const v1::HostStep& step : request.run().host_steps()) {
      if (step.every() == 1) call.go_with_replies();
    }
    const auto stream = call.rpc().runs.AsyncSimulateWithCalls(&call.context, call.queue(), call.tag());
    bool going = call.wait();
    v1::SimulateClientMessage said;
    *said.mutable_simulate() = request;
    const auto write = [&] {
      stream->Write(said, call.tag());
      return call.wait();
    };
    going = going && write();
    v1::SimulateEvent heard;
    while (going) {
      stream->Read(&heard, call.tag());
      if (!call.wait()) break;
      if (heard.has_result()) last = std::move(*heard.mutable_result());
      if (heard.has_progress() && !told(call, tell, heard.progress())) call.ask_to_cancel();
      if (!heard.has_call()) continue;
      const step::HostAnswer answer = host_call(heard.call().call());
      v1::HostCallReply& reply = *said.mutable_reply();
      reply.set_sequence(heard.call().sequence());
      reply.set_ok(answer.status.ok());
      reply.set_error(rpc::wire_message(answer.status.message()));
      reply.set_stop(answer.stop);
      reply.set_cancel(call.note());
      static_cast<void>(write());  // it may cross the end of the run, whose result is then to be read
    }
    grpc::Status status;
    stream->Finish(&status, call.tag());
    call.wait();
    return status;
  }

  std::shared_ptr<Connection> connection_;
  std::shared_ptr<RemotePlanes> planes_;
  ImportedRanges imported_;
  std::mutex opening_mutex_;
  const std::unique_ptr<HostAdmin> admin_;
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
