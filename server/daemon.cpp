#include "server/daemon.h"

#include <spdlog/spdlog.h>

#include <string>
#include <utility>

#include "eagle/v1/graph.pb.h"
#include "engine/run/host.h"
#include "engine/run/system_memory.h"
#include "server/memory_limit.h"
#include "server/ring/rings.h"

namespace eagle::server {
namespace {

// Scratch memory counts as a plane does.
StatusOr<std::shared_ptr<std::byte>> charged_memory(PlaneBudget& budget, std::uint64_t bytes) {
  struct Held {
    PlaneBudget::Charge charge;
    std::shared_ptr<std::byte> memory;
  };
  auto held = std::make_shared<Held>();
  EAGLE_ASSIGN_OR_RETURN(held->charge, budget.charge(bytes));
  EAGLE_ASSIGN_OR_RETURN(held->memory, run::system_memory(bytes));
  return std::shared_ptr<std::byte>(held, held->memory.get());
}

// Moves bytes on the executor's thread, where no kernel runs meanwhile.
class SealOff final : public Job {
public:
  SealOff(std::shared_ptr<PlaneBytes> bytes, std::string label, PlaneBudget::Charge twice,
          std::function<void(const Status&)> done)
      : bytes_(std::move(bytes)),
        label_(std::move(label)),
        twice_(std::move(twice)),
        done_(std::move(done)) {}
  Next advance() override {
    done_(bytes_->move_to_fresh(label_));
    return Next::done;
  }
  void cancel() override {}

private:
  const std::shared_ptr<PlaneBytes> bytes_;
  const std::string label_;
  const PlaneBudget::Charge twice_;
  const std::function<void(const Status&)> done_;
};

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
      options.limits.planes);
  engine.scratch_memory = [budget](std::uint64_t bytes) { return charged_memory(*budget, bytes); };
  EAGLE_ASSIGN_OR_RETURN(auto made, Engine::create(std::move(engine)));
  const int wanted = options.threads > 0 ? options.threads : run::allowed_threads();
  if (made->threads() < wanted) {
    spdlog::warn("a team of {} threads instead of {}: no more can be started; raise pids.max or RLIMIT_NPROC",
                 made->threads(), wanted);
  }
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(options), std::move(budget), std::move(made)));
  EAGLE_RETURN_IF_ERROR(daemon->executor_.rings()->usable());
  return daemon;
}

Daemon::Daemon(Options options, std::shared_ptr<PlaneBudget> budget, std::unique_ptr<Engine> engine)
    : limits_(options.limits),
      budget_(std::move(budget)),
      engine_(std::move(engine)),
      published_(limits_),
      sessions_(*budget_, limits_, [this](const Session& session) { published_.forget(session); }),
      executor_(limits_.jobs),
      small_memory_pool_(1, limits_.memory_requests, "memory_requests"),
      large_memory_pool_(1, limits_.memory_requests, "memory_requests"),
      build_pool_(limits_.build_threads, limits_.builds, "builds"),
      kept_runs_(*engine_, executor_, build_pool_, limits_),
      attachments_([this](const std::shared_ptr<Session>& session) { sessions_.end(session, false); }) {}

Daemon::~Daemon() = default;

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
  return info;
}

StatusOr<Daemon::Built> Daemon::build(Session& session, const v1::GraphDescription& description) {
  EAGLE_ASSIGN_OR_RETURN(ResolvedPlanes planes, resolve(description, session.planes()));
  EAGLE_ASSIGN_OR_RETURN(auto built, engine_->build(description, planes.memory));
  EAGLE_RETURN_IF_ERROR(refuse_writes(built->graph(), planes));
  Built result;
  result.loaded = std::make_shared<LoadedGraph>(std::move(planes.planes), std::move(built));
  EAGLE_ASSIGN_OR_RETURN(result.graph, session.add(result.loaded));
  spdlog::info("session={:016x} graph={} built name=\"{}\" nodes={} in {:.4f} s{}", session.id(),
               result.graph, loggable(description.name()), result.loaded->nodes(),
               result.loaded->built().build_s(),
               result.loaded->built().compiled() ? "" : ", all code from the cache");
  return result;
}

StatusOr<std::shared_ptr<Ring>> Daemon::open_ring(const std::shared_ptr<Session>& session) {
  // The ring is the session's and does not keep it.
  auto start = [this, session = std::weak_ptr(session)](const LaunchRequest& request, Ring::Deadline deadline,
                                                        LaunchEvents events) -> std::shared_ptr<LaunchJob> {
    const auto open = session.lock();
    const Status accepts = open ? accepts_work() : Status(Reason::session_closed, "the session was closed");
    if (!accepts.ok()) {
      events.done(accepts);
      return nullptr;
    }
    return LaunchJob::start(executor_, open, request, deadline, std::move(events));
  };
  EAGLE_ASSIGN_OR_RETURN(auto ring, Ring::create(std::move(start)));
  EAGLE_RETURN_IF_ERROR(session->attach(executor_.rings(), ring));
  return ring;
}

StatusOr<std::shared_ptr<LoadedGraph>> Daemon::rebind(Session& session, std::uint64_t id,
                                                      const v1::GraphDescription& description) {
  EAGLE_ASSIGN_OR_RETURN(const std::shared_ptr<LoadedGraph> old, session.graph(id));
  EAGLE_ASSIGN_OR_RETURN(ResolvedPlanes planes, resolve(description, session.planes()));
  if (!old->begin_launch()) return running(id);
  auto built = engine_->rebind(old->built(), description, planes.memory);
  const Status allowed = built.ok() ? refuse_writes((*built)->graph(), planes) : built.status();
  if (!allowed.ok()) {
    old->end_launch(0);
    return allowed;
  }
  auto fresh = std::make_shared<LoadedGraph>(std::move(planes.planes), std::move(*built), old->launches());
  // The old one stays taken: a launch that found it a moment ago is refused, and not run over old planes.
  EAGLE_RETURN_IF_ERROR(session.replace_graph(id, fresh));
  return fresh;
}

void Daemon::seal_off(const std::shared_ptr<PlaneBytes>& bytes, const std::string& label,
                      std::function<void(const Status&)> done) {
  auto twice = budget_->charge(bytes->size());
  if (!twice.ok()) return done(twice.status());
  const auto job = std::make_shared<SealOff>(bytes, label, *std::move(twice), done);
  if (const Status queued = executor_.submit(job); !queued.ok()) done(queued);
}

Status Daemon::accepts_work() const {
  if (!draining_) return {};
  return {Reason::shutting_down, "the daemon is going away and takes no new work; try again in a moment"};
}

void Daemon::stop(const std::atomic<bool>& hurry) {
  begin_drain();
  kept_runs_.end_all();  // they would not outlive this process
  executor_.wait_until_idle(hurry);
  sessions_.end_all();
  static const std::atomic<bool> never = false;
  executor_.wait_until_idle(never);
}

}  // namespace eagle::server
