#include "server/daemon.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "eagle/v1/graph.pb.h"
#include "eagle/v1/service.pb.h"
#include "eagle/v1/state.pb.h"
#include "engine/run/host.h"
#include "proto/rpc_error.h"
#include "server/fault_point.h"
#include "server/log_context.h"
#include "server/memory_limit.h"
#include "server/ring/rings.h"
#include "server/scratch_memory.h"

namespace eagle::server {
namespace {

// Graphs of at most so many nodes are looked through for names where a launch waits meanwhile.
constexpr std::size_t quick_nodes = 256;

}  // namespace

StatusOr<std::unique_ptr<Daemon>> Daemon::create(Options options) {
  const std::uint64_t memory = memory_limit();
  if (options.plane_budget_bytes > memory) {
    return Status(Reason::bad_value, "plane budget: expected at most " + std::to_string(memory) +
                                         " bytes, which is what this process may use, found " +
                                         std::to_string(options.plane_budget_bytes));
  }
  Engine::Options engine;
  engine.threads = options.threads;
  engine.compiler = options.compiler;
  engine.private_planes = graph::PrivateKernelPlanes::refused;
  auto budget = std::make_shared<PlaneBudget>(
      options.plane_budget_bytes != 0 ? options.plane_budget_bytes : plane_budget_of(memory),
      options.limits.planes, options.limits.recycled_bytes);
  EAGLE_ASSIGN_OR_RETURN(auto made, Engine::create(std::move(engine)));
  const int wanted = options.threads > 0 ? options.threads : run::allowed_threads();
  if (made->threads() < wanted) {
    spdlog::warn("a team of {} threads instead of {}: no more can be started; raise pids.max or RLIMIT_NPROC",
                 made->threads(), wanted);
  }
  RestoredState restored = std::move(options.restored);
  const std::function<void()> restores = std::move(options.restores);
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(options), std::move(budget), std::move(made)));
  EAGLE_RETURN_IF_ERROR(daemon->executor_.rings()->usable());
  EAGLE_RETURN_IF_ERROR(daemon->restore(restored, restores));
  return daemon;
}

Daemon::Daemon(Options options, std::shared_ptr<PlaneBudget> budget, std::unique_ptr<Engine> engine)
    : limits_(options.limits),
      log_(std::move(options.log)),
      ledger_(std::move(options.ledger)),
      quarantine_(log_.get()),
      epoch_(options.restored.epoch),
      budget_(std::move(budget)),
      engine_(std::move(engine)),
      replace_worker_(std::move(options.replace_worker)),
      gpu_faults_(log_.get()),
      gpus_(std::make_shared<Gpus>(
          engine_->compiler(), std::move(options.devices), options.device_budget_bytes,
          Gpus::Events{[this](const auto& gpu) { gpu_used(gpu); },
                       [this](const auto& gpu, const Status& why) { gpu_lost(gpu, why); }})),
      published_(limits_, *budget_, options.restored.epoch),
      sessions_(*budget_, limits_, {log_.get(), options.restored.epoch, ledger_.get()},
                [this](const Session& session) { published_.forget(session); }),
      executor_(limits_.jobs),
      small_memory_pool_(2, limits_.memory_requests, "memory_requests"),
      large_memory_pool_(2, limits_.memory_requests, "memory_requests"),
      import_pool_(4, limits_.memory_requests, "memory_requests"),
      build_pool_(limits_.build_threads + 1, limits_.builds, "builds"),
      kept_runs_(*engine_, *gpus_, executor_, build_pool_, underway_, *budget_, limits_,
                 {log_.get(), options.restored.epoch}),
      attachments_([this](const std::shared_ptr<Session>& session) { sessions_.end(session); }) {}

Daemon::~Daemon() { gpus_->forget_events(); }

void Daemon::set_limits(const Limits& limits) {
  std::vector<std::size_t> wanted;
  for_each_limit(limits, [&](const char*, const auto& field, std::int64_t, std::int64_t) {
    wanted.push_back(static_cast<std::size_t>(field));
  });
  for_each_limit(limits_,
                 [next = wanted.begin()](const char*, auto& field, std::int64_t, std::int64_t) mutable {
                   if constexpr (std::is_same_v<std::decay_t<decltype(field)>, Bound<std::size_t>>)
                     field = *next;
                   ++next;
                 });
  executor_.set_capacity(limits_.jobs);
  budget_->set_planes(limits_.planes);
}

DaemonInfo Daemon::info() const {
  const Engine::Counters counters = engine_->counters();
  DaemonInfo info;
  info.version = EAGLE_VERSION;
  info.host = run::this_host();
  info.uptime_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  info.threads = engine_->threads();
  info.cpu = engine_->target().cpu.empty() ? "native" : engine_->target().cpu;
  info.sessions = sessions_.size();
  info.planes = budget_->used_planes();
  info.plane_bytes = budget_->used_bytes();
  info.plane_budget_bytes = budget_->bytes();
  info.graphs = sessions_.graphs();
  info.launches = counters.launches;
  info.kernels_cached = counters.compiler.cached;
  info.jobs = executor_.admitted();
  info.jobs_held = executor_.held();
  info.restarts = epoch_;
  info.tenants = sessions_.tenants().reports();
  return info;
}

GivenUp Daemon::given_up_with(const Session& session, const GivenUp& given_up) const {
  return [this, &session, given_up] { return (given_up && given_up()) || ended_ || session.ended(); };
}

StatusOr<Daemon::Built> Daemon::build(Session& session, const v1::GraphDescription& description,
                                      const GivenUp& given_up) {
  const std::string described = description.SerializeAsString();
  const GraphHash hash = hash_of(described, session.tenant()->name());
  EAGLE_RETURN_IF_ERROR(quarantine_.check(hash, session.tenant()->name(), description.name()));
  EAGLE_RETURN_IF_ERROR(session.tenant()->may_compile());
  EAGLE_ASSIGN_OR_RETURN(ResolvedPlanes planes, resolve(description, session.planes()));
  EAGLE_ASSIGN_OR_RETURN(auto on_device, planes.on_device());
  if (on_device) on_device->account = account_on(*gpus_, on_device->unit, session);
  const GivenUp wanted = given_up_with(session, given_up);
  EAGLE_ASSIGN_OR_RETURN(auto built, on_device ? engine_->build(description, *on_device, wanted)
                                               : engine_->build(description, planes.memory,
                                                                scratch_memory(budget_, session), wanted));
  EAGLE_RETURN_IF_ERROR(refuse_writes(built->graph(), planes));
  session.tenant()->note_compiled(built->build_s());
  const double build_s = built->build_s();
  Built result;
  result.loaded = std::make_shared<LoadedGraph>(std::move(planes.planes), std::move(built));
  result.loaded->note_in(ledger_.get(), session.id(), hash);
  EAGLE_ASSIGN_OR_RETURN(result.graph, session.add(result.loaded));
  const Status written =
      session.records().built(result.graph, described, static_cast<std::uint32_t>(result.loaded->nodes()));
  if (!written.ok()) {
    static_cast<void>(session.release_graph(result.graph));
    return written;
  }
  note_build(session, result.graph, build_s);
  const LogScope scope({session.id(), result.graph, 0, {}});
  if (const auto more = built_lines_.admit())
    spdlog::info("built name=\"{}\" nodes={} in {:.4f} s{}{}", loggable(description.name()),
                 result.loaded->nodes(), result.loaded->built().build_s(),
                 result.loaded->built().compiled() ? "" : ", all code from the cache", *more);
  return result;
}

void Daemon::note_build(const Session& session, std::uint64_t graph, double seconds) {
  executor_.meters().build_duration.observe(seconds);
  const std::int64_t end =
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  TimelineEvent event;
  event.kind = TimelineEvent::Kind::build;
  event.job = ++builds_;
  event.begin = end - static_cast<std::int64_t>(seconds * 1e9);
  event.end = end;
  event.ids = {session.id(), graph, 0, log_ids().trace};
  executor_.timeline().add(event);
}

std::string Daemon::timeline(std::uint64_t session, std::uint64_t graph, std::uint64_t& events,
                             std::uint64_t& forgotten) {
  const Timeline::Snapshot now = executor_.timeline().snapshot(session, graph);
  events = now.events.size();
  forgotten = now.forgotten;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> names;
  for (const TimelineEvent& event : now.events) names[{event.ids.session, event.ids.graph}];
  for (auto& [ids, name] : names) {
    const auto owner = sessions_.restored(ids.first);
    if (!owner.ok()) continue;
    if (const auto loaded = (*owner)->graph(ids.second); loaded.ok()) name = (*loaded)->built().graph().name;
  }
  return to_trace_json(now.events, [&](std::uint64_t owner, std::uint64_t number) {
    const auto found = names.find({owner, number});
    const std::string name = found == names.end() ? "" : found->second;
    return name.empty() ? "graph " + std::to_string(number) : name;
  });
}

StatusOr<std::shared_ptr<Ring>> Daemon::open_ring(const std::shared_ptr<Session>& session) {
  // The ring is the session's and does not keep it.
  auto start = [this, session = std::weak_ptr(session)](const LaunchRequest& request, Ring::Deadline deadline,
                                                        LaunchEvents events) -> std::shared_ptr<LaunchJob> {
    const auto open = session.lock();
    const auto accepts_it = [&] { return events.enqueued ? accepts_work() : accepts_launches(*open); };
    const Status accepts = open ? accepts_it() : Status(Reason::session_closed, "the session was closed");
    if (!accepts.ok()) {
      events.done(accepts);
      return nullptr;
    }
    count(executor_.meters().ring_launches);
    return LaunchJob::start(executor_, open, request, deadline, std::move(events));
  };
  auto update = [this, session = std::weak_ptr(session)](const std::string& bytes) -> std::optional<Status> {
    const auto open = session.lock();
    if (!open) return Status(Reason::session_closed, "the session was closed");
    return update_quickly(*open, bytes);
  };
  EAGLE_ASSIGN_OR_RETURN(auto charge, budget_->charge_for("the ring of a session", sizeof(ring::Memory)));
  EAGLE_ASSIGN_OR_RETURN(auto ring, Ring::create(std::move(start), std::move(update), std::move(charge)));
  EAGLE_RETURN_IF_ERROR(session->attach(executor_.rings(), ring));
  if (handing_over_) ring->set_closing();
  return ring;
}

StatusOr<std::shared_ptr<LoadedGraph>> Daemon::rebind(Session& session, std::uint64_t id,
                                                      const v1::GraphDescription& description,
                                                      const GivenUp& given_up) {
  EAGLE_ASSIGN_OR_RETURN(const std::shared_ptr<LoadedGraph> old, graph(session, id));
  EAGLE_ASSIGN_OR_RETURN(ResolvedPlanes planes, resolve(description, session.planes()));
  EAGLE_ASSIGN_OR_RETURN(auto on_device, planes.on_device());
  if (on_device) on_device->account = account_on(*gpus_, on_device->unit, session);
  if (!old->begin_launch()) return running(id);
  const GivenUp wanted = given_up_with(session, given_up);
  auto built = on_device ? engine_->rebind(old->built(), description, *on_device, wanted)
                         : engine_->rebind(old->built(), description, planes.memory,
                                           scratch_memory(budget_, session), wanted);
  Status allowed = built.ok() ? refuse_writes((*built)->graph(), planes) : built.status();
  if (allowed.ok()) allowed = session.records().rebound(id, description);
  if (!allowed.ok()) {
    built = allowed;  // before anybody launches the old one again
    old->end_launch(0);
    return allowed;
  }
  (*built)->keep();
  // The old one stays taken: a launch that found it a moment ago is refused, and not run over old planes.
  auto fresh = std::make_shared<LoadedGraph>(std::move(planes.planes), std::move(*built), old->launches());
  fresh->note_in(ledger_.get(), session.id(), hash_of(description, session.tenant()->name()));
  EAGLE_RETURN_IF_ERROR(session.replace_graph(id, fresh));
  return fresh;
}

Status Daemon::update(Session& session, const v1::UpdateRequest& request) {
  EAGLE_ASSIGN_OR_RETURN(const auto updates, updates_of(request));
  EAGLE_ASSIGN_OR_RETURN(const auto loaded, graph(session, request.graph()));
  EAGLE_RETURN_IF_ERROR(session.records().reserve(request.graph(), request));
  return loaded->update(request.graph(), updates,
                        [&] { return session.records().updated(request.graph(), request); });
}

std::optional<Status> Daemon::update_quickly(Session& session, const std::string& bytes) {
  v1::UpdateRequest request;
  if (!request.ParseFromString(bytes)) {
    return Status(Reason::bad_message, "expected an UpdateRequest in the ring's slot, found other bytes");
  }
  if (session.dormant(request.graph())) return std::nullopt;
  const auto loaded = session.graph(request.graph());
  if (loaded.ok() && (*loaded)->nodes() > quick_nodes) return std::nullopt;
  return update(session, request);
}

StatusOr<std::shared_ptr<LoadedGraph>> Daemon::graph(Session& session, std::uint64_t id) {
  if (!session.dormant(id)) return session.graph(id);
  const std::lock_guard lock(waking_);
  if (!session.dormant(id)) return session.graph(id);
  auto built = build_again(session, id);
  if (!built.ok())
    return built.status().within("graph " + std::to_string(id) + ", which another worker built");
  session.wake(id, *built);
  return session.graph(id);
}

StatusOr<std::shared_ptr<LoadedGraph>> Daemon::build_again(Session& session, std::uint64_t id) {
  EAGLE_ASSIGN_OR_RETURN(const GraphRecords::Record record, session.records().find(id));
  const v1::GraphDescription& description = record.graph->description();
  const GraphHash hash = hash_of(description, session.tenant()->name());
  EAGLE_RETURN_IF_ERROR(quarantine_.check(hash, session.tenant()->name(), description.name()));
  EAGLE_ASSIGN_OR_RETURN(ResolvedPlanes planes, resolve(description, session.planes()));
  EAGLE_ASSIGN_OR_RETURN(auto built,
                         engine_->build(description, planes.memory, scratch_memory(budget_, session),
                                        given_up_with(session, {})));
  EAGLE_ASSIGN_OR_RETURN(const auto updates, updates_of(*record.params));
  for (std::size_t done = 0; done < updates.size(); done += graph::most_updates) {
    const std::size_t end = std::min(done + graph::most_updates, updates.size());
    EAGLE_RETURN_IF_ERROR(built->update({updates.begin() + static_cast<std::ptrdiff_t>(done),
                                         updates.begin() + static_cast<std::ptrdiff_t>(end)}));
  }
  auto loaded = std::make_shared<LoadedGraph>(std::move(planes.planes), std::move(built));
  loaded->note_in(ledger_.get(), session.id(), hash);
  note_build(session, id, loaded->built().build_s());
  const LogScope scope({session.id(), id});
  if (const auto more = built_lines_.admit())
    spdlog::info("built again in {:.4f} s{}", loaded->built().build_s(), *more);
  return loaded;
}

Status Daemon::name_strikes() {
  if (!quarantine_.has_unnamed()) return {};
  for (const Ledger::Cut& cut : ledger_->cut_off()) {
    const auto found = sessions_.restored(cut.session);
    if (!found.ok() || !(*found)->tenant()) continue;
    const std::string& tenant = (*found)->tenant()->name();
    for (const std::uint64_t id : (*found)->dormant()) {
      const auto record = (*found)->records().find(id);
      if (!record.ok()) continue;
      const v1::GraphDescription& description = record->graph->description();
      EAGLE_RETURN_IF_ERROR(quarantine_.name(hash_of(description, tenant), tenant, description.name()));
    }
  }
  return {};
}

Status Daemon::retain(Session& session, const v1::RetainRequest& known) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> planes;
  for (const v1::PlaneRef& plane : known.planes()) planes.emplace(plane.id(), plane.generation());
  std::vector<graph::PlaneId> unknown;
  for (const auto& plane : session.planes().list()) {
    if (planes.count({plane->id().id, plane->id().generation}) == 0) unknown.push_back(plane->id());
  }
  if (!unknown.empty()) EAGLE_RETURN_IF_ERROR(session.planes().release(unknown));
  const std::set<std::uint64_t> graphs(known.graphs().begin(), known.graphs().end());
  std::vector<std::uint64_t> held = session.dormant();
  for (const auto& [id, loaded] : session.graphs()) held.push_back(id);
  for (const std::uint64_t id : held) {
    if (graphs.count(id) == 0) EAGLE_RETURN_IF_ERROR(session.release_graph(id));
  }
  return {};
}

void Daemon::begin_drain(std::chrono::seconds time) {
  drain_ends_ = std::chrono::steady_clock::now() + time;
  draining_ = true;
}

Status Daemon::note_moved(const PlaneBytes& bytes) {
  for (const auto& [id, session] : sessions_.by_id()) {
    EAGLE_RETURN_IF_ERROR(session->planes().note_moved(bytes));
  }
  return published_.note_moved(bytes);
}
Status Daemon::accepts_work() const {
  if (!draining_) return {};
  return {Reason::shutting_down, "the daemon is going away and takes no new work; try again in " +
                                     std::to_string(retry_after().count()) + " s"};
}

std::chrono::seconds Daemon::retry_after() const {
  const auto left =
      std::chrono::ceil<std::chrono::seconds>(drain_ends_.load() - std::chrono::steady_clock::now());
  return std::clamp(left, std::chrono::seconds(1), std::chrono::seconds(30));
}

Status Daemon::admits(const Principal& principal) const {
  return sessions_.is_admin(principal) ? Status() : accepts_work();
}

void Daemon::free_unused(std::chrono::seconds since) {
  const auto then = RecycledMemory::Clock::now() - since;
  auto old = budget_->recycled().take_older_than(then);
  if (old.empty()) return;
  executor_.discard(std::make_shared<std::vector<RecycledMemory::Piece>>(std::move(old)));
}

Status Daemon::accepts_launches(const Session& session) const {
  EAGLE_RETURN_IF_ERROR(accepts_work());
  return may_begin(session);
}

Status Daemon::may_begin(const Session& session) const {
  if (ended_) return {Reason::shutting_down, "the daemon has gone away meanwhile"};
  if (!handing_over_ || executor_.at_host_call(session.id())) return {};
  return {Reason::shutting_down,
          "the daemon is being exchanged while it runs, and begins nothing meanwhile; " +
              std::string(rpc::passes_soon_words)};
}

void Daemon::hand_over(const std::atomic<bool>& hurry) {
  handing_over_.store(true);
  for (const auto& [id, session] : sessions_.by_id()) session->close_ring();
  static const std::atomic<bool> never = false;
  do {
    executor_.wait_until_idle(hurry);
    if (hurry) {
      for (const auto& [id, session] : sessions_.by_id()) session->cancel_all();
      kept_runs_.cancel_all();
      executor_.wait_until_idle(never);
    }
  } while (!executor_.close());
  for (const auto& [id, session] : sessions_.by_id()) {
    StateChange change{{id, StateKind::outcomes, 0}, false, session->outcomes().left_over(), -1};
    if (change.value.empty() || log_ == nullptr) continue;
    fault_point("handover.outcomes");
    static_cast<void>(log_->write({&change, 1}));  // fails where the keeper is gone, too
  }
}

void Daemon::note_authentication(const Status& outcome, std::string_view peer) {
  Meters& meters = executor_.meters();
  count(outcome.ok() ? meters.authentications_accepted : meters.authentications_refused);
  if (outcome.ok()) return;
  if (const auto more = refused_lines_.admit())
    spdlog::warn("not known: peer={}: {}{}", loggable(peer), outcome.message(), *more);
}

Status Daemon::told(const Status& status) const {
  if (status.ok() || !ended_ || status.reason() == Reason::shutting_down) return status;
  return {Reason::shutting_down, "the daemon has gone away meanwhile: " + status.message()};
}

void Daemon::wake() {
  executor_.wake();
  underway_.wake();
}

void Daemon::look_at_work() {
  const std::string stopped = executor_.stop_overlong(std::chrono::milliseconds(limits_.piece_ms));
  if (!stopped.empty()) spdlog::warn("stopped, as others waited: {}", stopped);
  replace_if_free();
}

void Daemon::look_at_heap() {
  if (heap_.has_much_free()) give_back_heap();
}

void Daemon::give_back_heap() {
  if (!large_memory_pool_.submit([this] { heap_.give_back(); }).ok()) heap_.give_back();
}

std::string Daemon::what_runs() const {
  std::string text = executor_.running();
  const std::size_t calls = underway_.count();
  if (calls > 0) text += (text.empty() ? "" : "; ") + std::to_string(calls) + " builds, transfers or copies";
  return text.empty() ? "nothing that is known of" : text;
}

std::size_t Daemon::stop(const std::atomic<bool>& hurry) {
  if (!draining_) begin_drain(std::chrono::seconds(0));
  const std::size_t jobs = executor_.admitted();
  const std::size_t calls = underway_.count();
  spdlog::info("ending: jobs={} calls={} sessions={}", jobs, calls, sessions_.size());
  do {  // a call that ends may leave a job
    underway_.wait_until_none(hurry);
    executor_.wait_until_idle(hurry);
  } while (!hurry && underway_.count() + executor_.admitted() > 0);
  // This process goes and needs its memory back from nobody: what clients have mapped, they may read on.
  for (const auto& [id, session] : sessions_.by_id()) {
    for (const auto& plane : session->planes().list()) plane->bytes()->leave_to_clients();
  }
  sessions_.leave_to_clients();
  const std::size_t left = executor_.admitted();
  const std::size_t cut = underway_.count();
  count(executor_.meters().drain_cancelled, left);
  spdlog::info("drained: {} of {} jobs were cancelled, {} of {} calls cut off", left, std::max(jobs, left),
               cut, std::max(calls, cut));
  ended_ = true;
  kept_runs_.end_all();  // they would not outlive this process
  sessions_.end_all();
  static const std::atomic<bool> never = false;
  executor_.wait_until_idle(never);
  return left;
}

}  // namespace eagle::server
