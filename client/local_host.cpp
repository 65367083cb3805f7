#include "client/local_host.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "client/imported_ranges.h"
#include "client/local_device.h"
#include "client/local_enqueued.h"
#include "client/local_memory.h"
#include "client/local_planes.h"
#include "client/local_runs.h"
#include "client/local_works.h"
#include "client/plane_registry.h"
#include "client/progress_teller.h"
#include "client/session_state.h"
#include "eagle/v1/graph.pb.h"
#include "eagle/v1/run.pb.h"
#include "engine/codegen/disk_cache.h"
#include "engine/engine.h"
#include "engine/graph/races.h"
#include "engine/plane/memory.h"
#include "engine/plane/packed.h"
#include "engine/run/cuda/device_transfer.h"
#include "engine/run/cuda/devices.h"
#include "engine/run/cuda/foreign_memory.h"
#include "engine/run/cuda/graph_backend.h"
#include "engine/run/team_thread.h"
#include "engine/step/device_run.h"
#include "engine/step/model.h"
#include "engine/view/explain_text.h"
#include "engine/view/picture.h"

namespace eagle {
namespace {

using Clock = std::chrono::steady_clock;

class LocalBuffer final : public Buffer {
public:
  LocalBuffer(LocalMemory::Block block, std::uint64_t bytes, std::shared_ptr<LocalPlanes> planes)
      : Buffer(block.data(), bytes), block_(std::move(block)), planes_(std::move(planes)) {}
  ~LocalBuffer() override {
    if (id_ == 0) return;
    PlaneRegistry::of_process().remove(*this);
    planes_->leave(id_, bytes());
  }
  void entered(std::uint64_t id) { id_ = id; }

private:
  LocalMemory::Block block_;
  std::shared_ptr<LocalPlanes> planes_;
  std::uint64_t id_ = 0;
};

// The built graphs of one session, by number.
class LocalGraphs {
public:
  using Launches = std::shared_ptr<const std::atomic<std::uint64_t>>;

  std::uint64_t enter(const std::shared_ptr<const run::BuiltGraph>& built, Launches launches) {
    const std::scoped_lock lock(mutex_);
    graphs_[++last_] = {built, std::move(launches)};
    return last_;
  }
  void replace(std::uint64_t id, const std::shared_ptr<const run::BuiltGraph>& built) {
    const std::scoped_lock lock(mutex_);
    graphs_[id].built = built;
  }
  void leave(std::uint64_t id) {
    const std::scoped_lock lock(mutex_);
    graphs_.erase(id);
  }
  std::size_t size() const {
    const std::scoped_lock lock(mutex_);
    return graphs_.size();
  }
  std::vector<GraphInfo> list() const {
    const std::scoped_lock lock(mutex_);
    std::vector<GraphInfo> all;
    for (const auto& [id, known] : graphs_) {
      const auto built = known.built.lock();
      if (!built) continue;
      const auto nodes = static_cast<std::uint32_t>(built->node_labels().size());
      all.push_back({0, id, built->graph().name, "", nodes, known.launches->load(), built->scratch()});
    }
    return all;
  }
  std::shared_ptr<const run::BuiltGraph> find(std::uint64_t id) const {
    const std::scoped_lock lock(mutex_);
    const auto found = graphs_.find(id);
    return found == graphs_.end() ? nullptr : found->second.built.lock();
  }
  static std::string draw(const run::BuiltGraph& built, PictureFormat format) {
    return view::draw(built.graph(), format,
                      {.schedule = built.schedule(), .backend = built.backend(), .recorded = false});
  }

private:
  struct Known {
    std::weak_ptr<const run::BuiltGraph> built;
    Launches launches;
  };
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Known> graphs_;
  std::uint64_t last_ = 0;
};

// What the session's graphs share with it: they may outlive the host object.
class Shared {
public:
  Shared(std::string name, std::unique_ptr<Engine> its_engine)
      : state(std::move(name)), engine(std::move(its_engine)) {}

  SessionState state;
  std::unique_ptr<Engine> engine;
  run::cuda::Devices devices{engine->compiler()};
  LocalGraphs graphs;

  // From now on every call is refused, and those that run stop at their next chunk.
  void close() {
    state.close();
    const std::scoped_lock lock(mutex_);
    for (run::Control* control : running_) control->cancel = true;
  }

  // What stops one call: its own flag and timeout, and the closing of the session.
  class Call {
  public:
    template <typename Options>  // LaunchOptions, SimulateOptions
    Call(Shared& shared, const Options& options) : shared_(shared) {
      control_->caller = options.cancel;
      if (options.timeout) control_->deadline = Clock::now() + *options.timeout;
      const std::scoped_lock lock(shared_.mutex_);
      shared_.running_.push_back(control_.get());
      if (shared_.state.closed()) control_->cancel = true;
    }
    ~Call() {
      const std::scoped_lock lock(shared_.mutex_);
      std::erase(shared_.running_, control_.get());
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    [[nodiscard]] const std::shared_ptr<run::Control>& control() const { return control_; }

  private:
    Shared& shared_;
    std::shared_ptr<run::Control> control_ = std::make_shared<run::Control>();
  };

private:
  std::mutex mutex_;
  std::vector<run::Control*> running_;
};

// The memory behind a description's planes, and the buffers that hold it.
struct Resolved {
  std::vector<run::PlaneMemory> memory;
  std::vector<LocalPlane> planes;
};

template <typename Declarations>
StatusOr<Resolved> resolve(const LocalPlanes& planes, std::string_view session,
                           const Declarations& declarations,
                           std::span<const run::PlaneMemory> private_planes) {
  Resolved resolved;
  for (int i = 0; i < declarations.size(); ++i) {
    const v1::PlaneDeclaration& declaration = declarations.Get(i);
    if (!declaration.has_plane()) {
      resolved.memory.push_back(private_planes[static_cast<std::size_t>(i)]);
      resolved.planes.push_back({nullptr, declaration.label()});
      continue;
    }
    std::shared_ptr<Buffer> buffer = planes.find(declaration.plane().id());
    if (!buffer) {
      return Status(Reason::unknown_plane, "plane " + std::to_string(declaration.plane().id()) + " of " +
                                               std::string(session) +
                                               " is gone; keep its array for as long as something uses it");
    }
    resolved.memory.push_back({buffer->data(), buffer->bytes()});
    resolved.planes.push_back({std::move(buffer), declaration.label()});
  }
  return resolved;
}

class LocalGraph final : public HostGraph {
public:
  LocalGraph(std::shared_ptr<Shared> shared, std::shared_ptr<LocalPlanes> planes, Resolved resolved,
             std::unique_ptr<run::BuiltGraph> built, LocalWorks works, GpuTouches touches)
      : shared_(std::move(shared)),
        planes_(std::move(planes)),
        works_(std::move(works)),
        touches_(std::move(touches)),
        host_views_(built->graph(), resolved.planes),
        bound_(std::move(resolved.planes)),
        built_(std::move(built)),
        id_(shared_->graphs.enter(built_, launches_)) {}
  ~LocalGraph() override {
    shared_->graphs.leave(id_);
    // Whoever waits for it holds it, too; and what packages gave the graph may go with this.
    if (enqueued_) enqueued_->stop_and_wait();
  }

  [[nodiscard]] std::vector<std::string> schedule() const override {
    std::vector<std::string> names;
    for (const graph::StageSchedule schedule : built()->schedule())
      names.emplace_back(graph::name_of(schedule));
    return names;
  }

  StatusOr<std::string> picture(PictureFormat format) const override {
    return LocalGraphs::draw(*built(), format);
  }
  StatusOr<std::string> explanation(const NodeReference& node,
                                    const std::optional<NodeReference>& other) const override {
    const auto built = this->built();
    EAGLE_ASSIGN_OR_RETURN(const graph::Explanation found, built->explain(node, other));
    return view::to_text(found);
  }

  StatusOr<LaunchReport> launch(std::int64_t n, const LaunchOptions& options,
                                const std::function<Status(std::uint32_t)>& host_call) override {
    EAGLE_RETURN_IF_ERROR(shared_->state.check("launch"));
    EAGLE_RETURN_IF_ERROR(works_.check());
    auto report = run(n, options, host_call);  // after whatever is enqueued over the same arrays
    works_.over();
    return report;
  }

  StatusOr<LaunchReport> run(std::int64_t n, const LaunchOptions& options,
                             const std::function<Status(std::uint32_t)>& host_call) {
    const Clock::time_point start = Clock::now();
    const Shared::Call call(*shared_, options);
    const auto built = this->built();
    if (const Status settled = LocalEnqueued::settle(touches_, call.control().get()); !settled.ok())
      return shared_->state.closed() ? shared_->state.check("launch") : settled;
    run::Replay replay(*built, n, call.control());
    const auto advance = [&replay]() -> StatusOr<run::Replay::Next> {
      while (true) {
        StatusOr<run::Replay::Next> next = replay.advance();
        if (!next.ok() || *next != run::Replay::Next::again) return next;
      }
    };
    while (true) {
      const StatusOr<run::Replay::Next> next = run::with_team(advance);
      if (!next.ok() && shared_->state.closed()) return shared_->state.check("launch");
      if (!next.ok()) return next.status();
      if (*next == run::Replay::Next::done) break;
      Status called = host_views_.fetch_reads(replay.call());
      if (called.ok()) called = host_call(replay.call());
      if (called.ok()) called = host_views_.send_writes(replay.call());
      if (!called.ok()) {
        return Status(Reason::host_call_failed, "a host node failed after " +
                                                    std::to_string(replay.launches()) +
                                                    " whole launches: " + called.message());
      }
    }
    LaunchReport report = report_of(*built, replay, start);
    *launches_ += static_cast<std::uint64_t>(report.launches);
    return report;
  }

  [[nodiscard]] std::int64_t brief_replays() const override { return built()->brief_replays(); }

  // On the CPU there is nobody to leave a launch with, nor where the host has a part in it.
  [[nodiscard]] bool enqueues() const override { return built()->enqueues(); }
  Status enqueue(std::int64_t n) override {
    EAGLE_RETURN_IF_ERROR(shared_->state.check("enqueue"));
    EAGLE_RETURN_IF_ERROR(works_.check());
    const auto call = std::make_shared<const EnqueuedCall>(shared_);
    auto begun = LocalEnqueued::begin(built(), n, touches_, call->call.control(), {call, shared_.get()});
    if (!begun.ok() && shared_->state.closed()) return shared_->state.check("enqueue");
    EAGLE_ASSIGN_OR_RETURN(enqueued_, std::move(begun));
    return {};
  }
  StatusOr<LaunchReport> synchronize(const LaunchOptions& options,
                                     const std::function<Status(std::uint32_t)>& /*host_call*/) override {
    std::optional<Clock::time_point> deadline;
    if (options.timeout) deadline = Clock::now() + *options.timeout;
    auto report = enqueued_->collect(options.cancel, deadline);
    enqueued_.reset();
    works_.over();
    if (!report.ok() && shared_->state.closed()) return shared_->state.check("synchronize");
    if (report.ok()) *launches_ += static_cast<std::uint64_t>(report->launches);
    return report;
  }
  std::function<void()> cancel_enqueued() override {
    return [launch = enqueued_] { launch->stop(); };
  }

  Status update(const std::vector<graph::ParamUpdate>& updates) override {
    EAGLE_RETURN_IF_ERROR(shared_->state.check("update"));
    return built()->update(updates);
  }

  Status rebind(const v1::GraphDescription& description,
                std::span<const run::PlaneMemory> private_planes) override {
    EAGLE_RETURN_IF_ERROR(shared_->state.check("rebind"));
    EAGLE_ASSIGN_OR_RETURN(Resolved resolved,
                           resolve(*planes_, shared_->state.name(), description.planes(), private_planes));
    EAGLE_ASSIGN_OR_RETURN(auto on_device, planes_on_device(resolved.planes));
    if (on_device) on_device->works = works_.on_device();  // over the arrays that they have
    EAGLE_ASSIGN_OR_RETURN(std::shared_ptr<run::BuiltGraph> fresh,
                           on_device ? shared_->engine->rebind(*built(), description, *on_device)
                                     : shared_->engine->rebind(*built(), description, resolved.memory));
    fresh->keep();
    touches_ = on_device ? touches_of(fresh->graph(), on_device->memory) : GpuTouches();
    const std::scoped_lock lock(mutex_);  // what was there before goes after it
    host_views_ = LocalHostViews(fresh->graph(), resolved.planes);
    built_.swap(fresh);
    shared_->graphs.replace(id_, built_);
    bound_.swap(resolved.planes);
    return {};
  }

  [[nodiscard]] std::string backend() const override { return built()->backend(); }
  [[nodiscard]] graph::ScratchLayout scratch() const override { return built()->scratch(); }
  [[nodiscard]] run::Execution execution() const override { return built()->execution(); }
  [[nodiscard]] bool compiled() const override { return built()->compiled(); }

private:
  // What stops a launch that was enqueued, for as long as it is.
  struct EnqueuedCall {
    explicit EnqueuedCall(std::shared_ptr<Shared> its)
        : shared(std::move(its)), call(*shared, LaunchOptions()) {}
    const std::shared_ptr<Shared> shared;
    const Shared::Call call;
  };
  // Held by whoever looks at it: a rebind may put another one in its place meanwhile.
  [[nodiscard]] std::shared_ptr<run::BuiltGraph> built() const {
    const std::scoped_lock lock(mutex_);
    return built_;
  }

  std::shared_ptr<Shared> shared_;
  std::shared_ptr<LocalPlanes> planes_;
  const LocalWorks works_;
  GpuTouches touches_;  // changed by `rebind`, as what follows
  mutable std::mutex mutex_;
  LocalHostViews host_views_;      // changed by `rebind`, during which there is no launch
  std::vector<LocalPlane> bound_;  // for as long as the graph is
  std::shared_ptr<run::BuiltGraph> built_;
  std::shared_ptr<std::atomic<std::uint64_t>> launches_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::uint64_t id_;
  std::shared_ptr<LocalEnqueued> enqueued_;  // until it is collected; ends before the rest goes
};

class LocalHost final : public Host {
public:
  explicit LocalHost(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  ~LocalHost() override { runs_.close(); }

  [[nodiscard]] const std::string& name() const override { return shared_->state.name(); }
  [[nodiscard]] bool remote() const override { return false; }
  [[nodiscard]] bool closed() const override { return shared_->state.closed(); }
  Status close() override {
    shared_->close();
    LocalEnqueued::settle_all_of(shared_.get());
    runs_.close();
    memory_->close();
    return {};
  }
  HostRuns* runs() override { return &runs_; }

  StatusOr<SessionInfo> info() override {
    EAGLE_RETURN_IF_ERROR(shared_->state.check("info"));
    const Engine::Counters counters = shared_->engine->counters();
    const LocalPlanes::Totals totals = planes_->totals();
    SessionInfo info;
    info.endpoint = "local";
    info.transport = "in process";
    info.version = EAGLE_VERSION;
    info.host = run::this_host();
    info.threads = shared_->engine->threads();
    info.cpu = shared_->engine->target().cpu.empty() ? "native" : shared_->engine->target().cpu;
    info.uptime_s = std::chrono::duration<double>(Clock::now() - start_).count();
    info.sessions = 1;
    info.planes = totals.planes;
    info.plane_bytes = totals.bytes;
    info.graphs = shared_->graphs.size();
    info.launches = counters.launches;
    info.kernels_cached = counters.compiler.cached;
    return info;
  }

  // One session is all there is here.
  StatusOr<std::vector<GraphInfo>> graphs(GraphScope /*scope*/) override {
    EAGLE_RETURN_IF_ERROR(shared_->state.check("graphs"));
    return shared_->graphs.list();
  }
  StatusOr<std::string> picture(const GraphInfo& graph, PictureFormat format) override {
    EAGLE_RETURN_IF_ERROR(shared_->state.check("picture"));
    const auto built = shared_->graphs.find(graph.graph);
    if (!built) {
      return Status(Reason::unknown_graph, "there is no graph " + std::to_string(graph.graph) + " in " +
                                               name() + "; it may be gone");
    }
    return LocalGraphs::draw(*built, format);
  }

  StatusOr<std::shared_ptr<Buffer>> allocate(std::uint64_t bytes, std::string_view label,
                                             Contents contents) override {
    EAGLE_RETURN_IF_ERROR(shared_->state.check("allocate"));
    bytes = std::max<std::uint64_t>(bytes, 1);  // an empty array has an address too
    EAGLE_ASSIGN_OR_RETURN(LocalMemory::Block block,
                           memory_->allocate(bytes, planes_->next_number(), contents));
    const auto buffer = std::make_shared<LocalBuffer>(std::move(block), bytes, planes_);
    const std::uint64_t id = planes_->enter(buffer);
    buffer->entered(id);
    PlaneRegistry::of_process().add(
        *buffer, {shared_->state.shared_name(), {id, 1}, bytes, 0, std::string(label), buffer});
    return std::shared_ptr<Buffer>(buffer);
  }

  StatusOr<std::shared_ptr<Buffer>> allocate_on(std::string_view device, std::uint64_t bytes,
                                                std::string_view label, Contents /*contents*/) override {
    EAGLE_RETURN_IF_ERROR(shared_->state.check("allocate"));
    bytes = std::max<std::uint64_t>(bytes, 1);
    EAGLE_ASSIGN_OR_RETURN(const auto unit, shared_->devices.find(device));
    EAGLE_ASSIGN_OR_RETURN(auto made, run::cuda::DeviceMemory::create(unit->device, bytes));
    auto memory = std::make_shared<const run::cuda::DeviceMemory>(std::move(made));
    EAGLE_RETURN_IF_ERROR(memory->fill(0));
    EAGLE_ASSIGN_OR_RETURN(auto buffer, enter_on_device(unit, std::move(memory), label));
    static_cast<LocalDeviceBuffer&>(*buffer).allocated(std::string(label));
    return buffer;
  }

  StatusOr<std::shared_ptr<Buffer>> import_on_device(const ImportedMemory& memory,
                                                     std::string_view label) override {
    EAGLE_RETURN_IF_ERROR(shared_->state.check("import"));
    EAGLE_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> own, own_array_of(*planes_, memory));
    if (own != nullptr) return own;
    return imported_.find_or(memory, [&](const ImportedMemory& kept) -> StatusOr<std::shared_ptr<Buffer>> {
      EAGLE_ASSIGN_OR_RETURN(const auto found, run::cuda::foreign_memory(memory.pointer, memory.bytes));
      EAGLE_ASSIGN_OR_RETURN(const auto unit, shared_->devices.find(found.gpu.uuid));
      EAGLE_ASSIGN_OR_RETURN(auto borrowed, run::cuda::borrowed(unit->device, found, kept.owner));
      return enter_on_device(unit, std::make_shared<const run::cuda::DeviceMemory>(std::move(borrowed)),
                             label);
    });
  }

  Status fetch_packed(const ArrayView& array, std::span<std::byte> packed,
                      const TransferProgress& progress) override {
    EAGLE_ASSIGN_OR_RETURN(const auto there, on_device("fetch", array, packed.size()));
    if (there.memory == nullptr) return Host::fetch_packed(array, packed, progress);
    EAGLE_RETURN_IF_ERROR(LocalEnqueued::settle(*there.memory, false));
    return in_pieces(packed.size(), progress, [&](std::uint64_t first, std::uint64_t count) {
      return run::cuda::read_packed(*there.memory, there.form, first, packed.subspan(first, count));
    });
  }
  Status send_packed(const ArrayView& array, std::span<const std::byte> packed,
                     const TransferProgress& progress) override {
    EAGLE_ASSIGN_OR_RETURN(const auto there, on_device("send", array, packed.size()));
    if (there.memory == nullptr) return Host::send_packed(array, packed, progress);
    EAGLE_RETURN_IF_ERROR(LocalEnqueued::settle(*there.memory, true));
    return in_pieces(packed.size(), progress, [&](std::uint64_t first, std::uint64_t count) {
      return run::cuda::write_packed(*there.memory, there.form, first, packed.subspan(first, count));
    });
  }
  Status fill(const ArrayView& array, std::span<const std::byte> element) override {
    EAGLE_ASSIGN_OR_RETURN(const auto there, on_device("fill", array, std::nullopt));
    if (there.memory == nullptr) return Host::fill(array, element);
    if (element.size() != array.item_bytes) return Host::fill(array, element);  // which refuses it
    EAGLE_RETURN_IF_ERROR(LocalEnqueued::settle(*there.memory, true));
    const std::vector<std::byte> pattern = plane::repeated(element);
    for (std::uint64_t at = 0; at < there.form.bytes(); at += pattern.size()) {
      const std::uint64_t count = std::min<std::uint64_t>(pattern.size(), there.form.bytes() - at);
      EAGLE_RETURN_IF_ERROR(
          run::cuda::write_packed(*there.memory, there.form, at, std::span(pattern).first(count)));
    }
    return {};
  }

  [[nodiscard]] std::optional<PlaneAddress> find(const void* address, std::uint64_t bytes) const override {
    return PlaneRegistry::of_process().find(name(), address, bytes);
  }

  StatusOr<std::unique_ptr<HostGraph>> build(const v1::GraphDescription& description,
                                             std::span<const run::PlaneMemory> private_planes) override {
    return build_with(description, private_planes, {});
  }
  StatusOr<std::unique_ptr<HostGraph>> build_with(const v1::GraphDescription& description,
                                                  std::span<const run::PlaneMemory> private_planes,
                                                  const GpuWorks& given) override {
    EAGLE_RETURN_IF_ERROR(shared_->state.check("build"));
    EAGLE_ASSIGN_OR_RETURN(Resolved resolved,
                           resolve(*planes_, name(), description.planes(), private_planes));
    EAGLE_ASSIGN_OR_RETURN(auto on_device, planes_on_device(resolved.planes));
    LocalWorks works;
    if (on_device && some_work(given)) {
      // Refused before a callable runs.
      EAGLE_ASSIGN_OR_RETURN(const graph::Graph graph,
                             graph::read(description, graph::PrivateKernelPlanes::allowed));
      EAGLE_RETURN_IF_ERROR(graph::check_races(graph, {}));
      EAGLE_RETURN_IF_ERROR(run::cuda::check_on_device(graph, *on_device));
      EAGLE_RETURN_IF_ERROR(
          LocalEnqueued::settle(touches_of(on_device->memory)));  // no wait while it captures
      EAGLE_ASSIGN_OR_RETURN(works, LocalWorks::prepare(graph, given, on_device->unit->device));
      on_device->works = works.on_device();
    }
    EAGLE_ASSIGN_OR_RETURN(auto built, on_device ? shared_->engine->build(description, *on_device)
                                                 : shared_->engine->build(description, resolved.memory));
    GpuTouches touches = on_device ? touches_of(built->graph(), on_device->memory) : GpuTouches();
    return std::unique_ptr<HostGraph>(std::make_unique<LocalGraph>(
        shared_, planes_, std::move(resolved), std::move(built), std::move(works), std::move(touches)));
  }

  StatusOr<RunResult> simulate(const v1::RunDescription& description,
                               std::span<const run::PlaneMemory> private_planes,
                               const SimulateOptions& options, const HostCall& host_call) override {
    return simulate_with(description, private_planes, options, host_call, {});
  }
  StatusOr<RunResult> simulate_with(const v1::RunDescription& description,
                                    std::span<const run::PlaneMemory> private_planes,
                                    const SimulateOptions& options, const HostCall& host_call,
                                    const GpuWorks& given) override {
    EAGLE_RETURN_IF_ERROR(shared_->state.check("simulate"));
    EAGLE_ASSIGN_OR_RETURN(const Resolved resolved,
                           resolve(*planes_, name(), description.planes(), private_planes));
    EAGLE_ASSIGN_OR_RETURN(auto on_device, planes_on_device(resolved.planes));
    LocalWorks works;
    const Shared::Call call(*shared_, options);
    if (on_device) {
      EAGLE_RETURN_IF_ERROR(
          LocalEnqueued::settle(touches_of(on_device->memory), call.control().get()).within("simulate"));
    }
    if (on_device && some_work(given)) {
      // Refused before a callable runs.
      EAGLE_ASSIGN_OR_RETURN(const step::Model model,
                             step::read_model(description, graph::PrivateKernelPlanes::allowed, {}));
      EAGLE_RETURN_IF_ERROR(step::check_on_device(model, *on_device));
      EAGLE_ASSIGN_OR_RETURN(works, LocalWorks::prepare(model, given, on_device->unit->device));
      on_device->works = works.on_device();
    }
    EAGLE_ASSIGN_OR_RETURN(const auto simulation,
                           on_device
                               ? shared_->engine->simulate(description, *on_device, call.control())
                               : shared_->engine->simulate(description, resolved.memory, call.control()));
    const LocalHostViews host_views(description, resolved.planes);
    const HostCall with_views = [&](std::uint32_t number) -> step::HostAnswer {
      if (const Status fetched = host_views.fetch_reads(number); !fetched.ok()) return {fetched, false};
      const step::HostAnswer answer = host_call(number);
      if (!answer.status.ok()) return answer;
      if (const Status same = works.check(); !same.ok()) return {same, false};
      return {host_views.send_writes(number), answer.stop};
    };
    const Status ran = run_to_the_end(*simulation, call, options, with_views);
    works.over();
    EAGLE_RETURN_IF_ERROR(ran);
    if (simulation->result().status == step::RunStatus::cancelled && closed())
      return shared_->state.check("simulate");
    return simulation->result();
  }

private:
  StatusOr<std::shared_ptr<Buffer>> enter_on_device(
      const std::shared_ptr<const run::cuda::Devices::Unit>& unit,
      std::shared_ptr<const run::cuda::DeviceMemory> memory, std::string_view label) {
    const std::uint64_t bytes = memory->bytes();
    EAGLE_ASSIGN_OR_RETURN(auto stand_in, plane::Memory::stand_in(bytes));
    const auto buffer =
        std::make_shared<LocalDeviceBuffer>(std::move(memory), std::move(stand_in), unit, planes_);
    const std::uint64_t id = planes_->enter(buffer);
    buffer->entered(id);
    PlaneRegistry::of_process().add(
        *buffer, {shared_->state.shared_name(), {id, 1}, bytes, 0, std::string(label), buffer, unit->name()});
    return std::shared_ptr<Buffer>(buffer);
  }
  static bool some_work(const GpuWorks& given) {
    return std::any_of(given.begin(), given.end(), [](const auto& one) { return one != nullptr; });
  }
  // An array's elements in memory of a GPU; no memory: in memory of the host.
  struct OnDevice {
    std::shared_ptr<Buffer> buffer;
    const run::cuda::DeviceMemory* memory = nullptr;
    plane::Packed form;
  };
  StatusOr<OnDevice> on_device(std::string_view operation, const ArrayView& array,
                               std::optional<std::size_t> bytes) const {
    OnDevice found;
    const auto address = find(array.data, 0);
    if (!address || address->keep_alive->device().empty()) return found;
    found.buffer = address->keep_alive;
    const auto offset = static_cast<std::int64_t>(address->offset);
    const plane::View view{0, offset, array.dtype, array.item_bytes, array.shape, array.strides};
    EAGLE_RETURN_IF_ERROR(plane::check(view, found.buffer->bytes()).within(operation));
    EAGLE_ASSIGN_OR_RETURN(found.form, plane::Packed::of(view));
    if (bytes && *bytes != found.form.bytes()) {
      return Status(Reason::bad_value, std::string(operation) + ": expected " +
                                           std::to_string(found.form.bytes()) +
                                           " bytes, the array's elements, found " + std::to_string(*bytes));
    }
    found.memory = static_cast<const LocalDeviceBuffer&>(*found.buffer).memory().get();
    return found;
  }
  template <typename Part>
  static Status in_pieces(std::uint64_t bytes, const TransferProgress& progress, const Part& part) {
    constexpr std::uint64_t piece_bytes = 32u << 20;
    for (std::uint64_t at = 0; at < bytes;) {
      const std::uint64_t count = std::min(piece_bytes, bytes - at);
      EAGLE_RETURN_IF_ERROR(part(at, count));
      at += count;
      if (progress && !progress(at, bytes)) return {Reason::cancelled, "the caller stopped the transfer"};
    }
    return {};
  }

  // The caller's code runs in this thread, outside of the team.
  static Status run_to_the_end(step::Simulation& simulation, const Shared::Call& call,
                               const SimulateOptions& options, const HostCall& host_call) {
    ProgressTeller tell(options);
    const auto advance = [&] {
      step::Simulation::Next next = simulation.advance();
      while (next == step::Simulation::Next::again && !tell.due()) next = simulation.advance();
      return next;
    };
    while (true) {
      const step::Simulation::Next next = run::with_team(advance);
      const step::RunReport& so_far = simulation.result().report;
      if (next == step::Simulation::Next::done) return {};
      if (next == step::Simulation::Next::failed) return simulation.failure();
      if (!tell.tell({so_far.steps, so_far.finished})) call.control()->cancel = true;
      if (next != step::Simulation::Next::host_call) continue;
      const step::HostAnswer answer = host_call(simulation.call());
      if (!answer.status.ok()) {
        return {Reason::host_call_failed, "a host step failed after " + std::to_string(so_far.steps) +
                                              " whole steps: " + answer.status.message()};
      }
      simulation.answer(answer.stop);
    }
  }

  // For runs in threads of their own.
  StatusOr<LocalRuns::Bound> bound(const google::protobuf::RepeatedPtrField<v1::PlaneDeclaration>& planes,
                                   std::span<const run::PlaneMemory> private_planes) const {
    EAGLE_RETURN_IF_ERROR(shared_->state.check("run"));
    EAGLE_ASSIGN_OR_RETURN(Resolved resolved, resolve(*planes_, name(), planes, private_planes));
    return LocalRuns::Bound{std::move(resolved.memory), std::move(resolved.planes), {}};
  }

  std::shared_ptr<Shared> shared_;
  std::shared_ptr<LocalPlanes> planes_ = std::make_shared<LocalPlanes>();
  const std::shared_ptr<LocalMemory> memory_ = std::make_shared<LocalMemory>();
  ImportedRanges imported_;
  Clock::time_point start_ = Clock::now();
  LocalRuns runs_{*shared_->engine,
                  [this](const auto& planes, std::span<const run::PlaneMemory> private_planes) {
                    return bound(planes, private_planes);
                  }};
};

}  // namespace

StatusOr<std::shared_ptr<Host>> open_local(const LocalOptions& options) {
  if (options.threads < 0) {
    return Status(Reason::bad_value, "local: threads is " + std::to_string(options.threads) +
                                         "; give 0 for what the machine allows, or a number of at least 1");
  }
  Engine::Options engine_options;
  engine_options.threads = options.threads;
  engine_options.private_planes = graph::PrivateKernelPlanes::allowed;
  engine_options.compiler.cache_directory = codegen::DiskCache::default_directory();
  EAGLE_ASSIGN_OR_RETURN(auto engine, Engine::create(std::move(engine_options)));
  auto shared =
      std::make_shared<Shared>("local session " + std::to_string(next_session_number()), std::move(engine));
  return std::shared_ptr<Host>(std::make_shared<LocalHost>(std::move(shared)));
}

}  // namespace eagle
