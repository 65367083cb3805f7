#include "server/kept_runs.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "eagle/v1/run.pb.h"
#include "eagle/v1/state.pb.h"
#include "engine/graph/wire.h"
#include "engine/kernel/names.h"
#include "engine/plane/copy_view.h"
#include "engine/plane/overlap.h"
#include "engine/plane/packed.h"
#include "engine/step/result_message.h"
#include "server/client_text.h"
#include "server/fault_point.h"
#include "server/held_bytes.h"
#include "server/log_context.h"
#include "server/sessions.h"

namespace eagle::server {

// Written under the lock of KeptRuns, except what is atomic or says otherwise.
struct KeptRuns::Run {
  std::uint64_t id = 0;
  Principal owner;
  std::string name;
  std::string tenant;
  std::string mask;
  std::int64_t max_steps = 0;
  std::string attempt;
  Clock::time_point until;
  std::vector<graph::NamedView> planes;
  ResolvedPlanes memory;
  std::shared_ptr<SimulationJob> job;  // until it has ended
  std::atomic<std::int64_t> steps = 0;
  std::atomic<std::int64_t> finished = 0;
  std::mutex mutex;  // of the outcome
  std::optional<StatusOr<step::RunResult>> outcome;
  Clock::time_point written;  // when its progress was
  bool lost = false;          // it did not survive its worker
  HeldBytes costs;
  bool gone = false;  // it is kept no longer: what comes of it now is not written down
};

namespace {

Status unknown_run(std::uint64_t id) {
  return {Reason::unknown_run, "there is no run " + std::to_string(id) +
                                   " of yours: its lease is over, its planes were fetched, or it never was"};
}

constexpr std::uint32_t name_bytes = 256;

// Names are looked up one by one.
Status check_count(int planes, const char* where, const Limits& limits) {
  if (static_cast<std::size_t>(planes) <= limits.planes_per_request) return {};
  return {Reason::quota, std::string(where) + ": expected at most " +
                             std::to_string(limits.planes_per_request) +
                             " planes in one request (planes_per_request), found " + std::to_string(planes)};
}

// How often a run's progress is written down. A death forgets what came after.
constexpr std::chrono::milliseconds progress_interval{500};
// Of one run's planes, in the ids of their entries.
constexpr int plane_bits = 12;

// What is kept of it until it is fetched: the description is not.
std::uint64_t kept_bytes(const v1::SubmitRequest& request) {
  std::uint64_t bytes = request.name().size() + request.mask().size() + request.attempt().size();
  for (const v1::NamedView& plane : request.planes()) bytes += plane.ByteSizeLong();
  return bytes;
}

std::int64_t nanoseconds_of(std::chrono::steady_clock::time_point time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

}  // namespace

KeptRuns::KeptRuns(Engine& engine, Gpus& gpus, Executor& executor, WorkPool& builders, Underway& underway,
                   PlaneBudget& budget, const Limits& limits, Survival survival)
    : engine_(engine),
      gpus_(gpus),
      executor_(executor),
      builders_(builders),
      underway_(underway),
      budget_(budget),
      limits_(limits),
      survival_(survival),
      last_(std::uint64_t{survival.epoch} << 32),
      keeper_([this] { expire(); }) {}

KeptRuns::~KeptRuns() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
}

StatusOr<std::uint64_t> KeptRuns::submit(const std::shared_ptr<Session>& session,
                                         const v1::SubmitRequest& request) {
  const double longest = std::chrono::duration<double>(limits_.kept_run_lease).count();
  if (!(request.lease_s() > 0) || request.lease_s() > longest) {
    return Status(Reason::bad_value, "lease: expected seconds above 0 and at most " +
                                         std::to_string(longest) + " (kept_run_lease), found " +
                                         std::to_string(request.lease_s()));
  }
  for (const auto& [what, text] : {std::pair{"a name", &request.name()}, std::pair{"a mask", &request.mask()},
                                   std::pair{"an attempt", &request.attempt()}})
    EAGLE_RETURN_IF_ERROR(check_client_text(what, *text, limits_).within("run"));
  EAGLE_RETURN_IF_ERROR(graph::check_name(request.name(), "run", "name", name_bytes));
  EAGLE_RETURN_IF_ERROR(graph::check_name(request.mask(), "run", "mask", name_bytes));
  if (session->principal().identity == Identity::anonymous) {
    return Status(Reason::permission_denied,
                  "a submitted run belongs to a user, who finds it again from another session, and this "
                  "daemon does not know who you are; connect with a token or a certificate, or step it with "
                  "simulate");
  }
  if (request.run().host_steps_size() > 0) {
    return Status(Reason::graph_state,
                  "a submitted run outlives its client, who cannot be called then; step it with simulate");
  }
  EAGLE_RETURN_IF_ERROR(check_count(request.planes_size(), "planes", limits_));
  if (request.planes_size() >= 1 << plane_bits) {
    return Status(Reason::bad_value, "expected at most " + std::to_string((1 << plane_bits) - 1) +
                                         " planes that may be fetched, found " +
                                         std::to_string(request.planes_size()));
  }
  if (!request.attempt().empty()) {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, known] : runs_) {
      if (known->attempt == request.attempt() && known->owner.same_as(session->principal())) return id;
    }
  }
  auto run = std::make_shared<Run>();
  std::vector<graph::Plane> declared;
  for (const v1::PlaneDeclaration& plane : request.run().planes()) {
    EAGLE_ASSIGN_OR_RETURN(graph::Plane read, graph::read_plane(plane, "planes"));
    declared.push_back(std::move(read));
  }
  for (const v1::NamedView& plane : request.planes()) {
    EAGLE_ASSIGN_OR_RETURN(graph::NamedView view,
                           graph::read_named_view(plane, declared, "planes", name_bytes));
    EAGLE_RETURN_IF_ERROR(
        graph::refuse_private(declared[view.view.plane], kernel::quote_name(view.name), "the run"));
    run->planes.push_back(std::move(view));
  }
  EAGLE_ASSIGN_OR_RETURN(run->memory, resolve(request.run(), session->planes()));
  for (const graph::NamedView& view : run->planes) {
    if (run->memory.memory[view.view.plane].bytes < declared[view.view.plane].bytes)
      return Status(Reason::malformed_graph,
                    "plane " + kernel::quote_name(view.name) + " is declared larger than it is");
  }
  run->owner = session->principal();
  run->name = request.name();
  run->tenant = session->tenant()->name();
  run->mask = request.mask();
  run->attempt = request.attempt();
  run->max_steps = request.run().max_steps();
  run->until = Clock::now() +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(request.lease_s()));

  EAGLE_ASSIGN_OR_RETURN(run->costs, hold_bytes(budget_, session->tenant().get(), "a submitted run",
                                                copies_of_records * kept_bytes(request)));

  SimulationEvents events;
  const std::weak_ptr<Run> reached = run;
  events.progress = [this, reached](std::int64_t steps, std::int64_t finished) {
    if (const auto mine = reached.lock()) {
      mine->steps = steps;
      mine->finished = finished;
      note_progress(*mine);
    }
  };
  events.done = [this, reached](const StatusOr<step::RunResult>& outcome) {
    const auto mine = reached.lock();
    if (!mine) return;
    if (outcome.ok()) {
      mine->steps = outcome->report.steps;
      mine->finished = outcome->report.finished;
    }
    const std::lock_guard lock(mine->mutex);
    mine->outcome = outcome;
    mine->job.reset();
    write_down(*mine);
  };
  const auto job = SimulationJob::detached(executor_, session, run->memory, std::move(events));
  run->job = job;
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return Status(Reason::shutting_down, "the daemon is going away and takes no new work");
    const auto mine = std::count_if(runs_.begin(), runs_.end(), [&](const auto& entry) {
      return entry.second->owner.same_as(run->owner);
    });
    if (static_cast<std::size_t>(mine) >= limits_.kept_runs) {
      return Status(Reason::quota,
                    "the daemon keeps " + std::to_string(limits_.kept_runs) +
                        " runs of this user, which is its limit (kept_runs); fetch or cancel some");
    }
    if (runs_.size() >= limits_.kept_runs_in_all) {
      return Status(Reason::quota, "the daemon keeps " + std::to_string(limits_.kept_runs_in_all) +
                                       " runs, which is its limit (kept_runs_in_all); try again later");
    }
    run->id = ++last_;
    runs_[run->id] = run;
  }
  changed_.notify_all();
  {
    const std::lock_guard lock(run->mutex);
    write_down(*run);
  }
  const auto description = std::make_shared<const v1::RunDescription>(request.run());
  const Status queued =
      builders_.submit([&engine = engine_, &gpus = gpus_, job, description,
                        counted = underway_.enter()] { job->prepare(engine, gpus, *description); },
                       session->tenant()->name());
  if (!queued.ok()) job->refuse(queued);
  const LogScope scope({session->id()});
  if (const auto more = submitted_lines_.admit())
    spdlog::info("run={} submitted by {} lease={} s{}", run->id, loggable(run->owner.text()),
                 request.lease_s(), *more);
  return run->id;
}

StatusOr<std::shared_ptr<KeptRuns::Run>> KeptRuns::find(const Session& session, std::uint64_t run) const {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(run);
  if (found == runs_.end() || !found->second->owner.same_as(session.principal())) return unknown_run(run);
  return found->second;
}

void KeptRuns::describe(const Run& run, v1::KeptRun& reply) {
  reply.set_run(run.id);
  reply.set_name(run.name);
  reply.set_max_steps(run.max_steps);
  reply.set_mask(run.mask);
  reply.set_lease_s(std::chrono::duration<double>(run.until - Clock::now()).count());
  reply.mutable_progress()->set_steps(run.steps);
  reply.mutable_progress()->set_finished(run.finished);
  for (const graph::NamedView& plane : run.planes) {
    v1::KeptPlane& out = *reply.add_planes();
    out.set_name(plane.name);
    out.set_dtype(static_cast<v1::DType>(plane.view.dtype));
    out.mutable_shape()->Add(plane.view.shape.begin(), plane.view.shape.end());
    if (plane.view.plane >= run.memory.bytes.size()) continue;  // it is lost
    if (const auto there = run.memory.gpu(plane.view.plane)) out.set_device(there->unit()->name());
  }
  if (!run.outcome) return;
  reply.set_ended(true);
  if (run.outcome->ok()) {
    step::describe(**run.outcome, *reply.mutable_result());
  } else {
    reply.set_reason(std::string(info(run.outcome->status().reason()).wire_name));
    reply.set_error(run.outcome->status().message());
  }
}

Status KeptRuns::get(const Session& session, std::uint64_t id, v1::KeptRun& reply) const {
  EAGLE_ASSIGN_OR_RETURN(const auto run, find(session, id));
  const std::lock_guard lock(run->mutex);
  describe(*run, reply);
  return {};
}

void KeptRuns::list(const Session& session, v1::ListRunsReply& reply) const {
  std::vector<std::shared_ptr<Run>> mine;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, run] : runs_) {
      if (run->owner.same_as(session.principal())) mine.push_back(run);
    }
  }
  for (const auto& run : mine) {
    const std::lock_guard lock(run->mutex);
    describe(*run, *reply.add_runs());
  }
}

Status KeptRuns::fetch(Session& session, const v1::FetchRunRequest& request,
                       const std::function<bool()>& given_up) {
  EAGLE_RETURN_IF_ERROR(check_count(request.into_size(), "into", limits_));
  EAGLE_ASSIGN_OR_RETURN(const auto run, find(session, request.run()));
  {
    const std::lock_guard lock(run->mutex);
    if (!run->outcome)
      return {Reason::graph_state,
              "run " + std::to_string(run->id) + " still computes; wait for its end, or cancel it"};
    // Nothing of it is left.
    if (run->lost) return run->outcome->status();
  }
  EAGLE_ASSIGN_OR_RETURN(const ResolvedPlanes own, resolve(request, session.planes()));
  std::vector<graph::Plane> declared;
  for (const v1::PlaneDeclaration& plane : request.planes()) {
    EAGLE_ASSIGN_OR_RETURN(graph::Plane read, graph::read_plane(plane, "planes"));
    const run::PlaneMemory& memory = own.memory[declared.size()];
    const bool is_there = memory.data != nullptr || own.gpu(declared.size()) != nullptr;
    if (!is_there || memory.bytes < read.bytes)
      return {Reason::malformed_graph, "planes: expected planes of this session, as large as declared"};
    declared.push_back(std::move(read));
  }
  // All are checked before the first is copied.
  std::vector<std::pair<const graph::NamedView*, graph::NamedView>> copies;
  for (const v1::NamedView& into : request.into()) {
    EAGLE_ASSIGN_OR_RETURN(graph::NamedView view, graph::read_named_view(into, declared, "into", name_bytes));
    const std::string quoted = kernel::quote_name(view.name);
    const auto from = std::find_if(run->planes.begin(), run->planes.end(),
                                   [&](const auto& plane) { return plane.name == view.name; });
    if (from == run->planes.end())
      return {Reason::unknown_name, "run " + std::to_string(run->id) + " has no plane " + quoted};
    // Of dtype `other`, elements have the size that the view says.
    if (from->view.dtype != view.view.dtype || from->view.item_bytes != view.view.item_bytes ||
        from->view.shape != view.view.shape) {
      return {Reason::wrong_shape, "plane " + quoted + ": expected " + plane::to_string(from->view) + " of " +
                                       std::to_string(from->view.item_bytes) + " bytes each, found " +
                                       plane::to_string(view.view) + " of " +
                                       std::to_string(view.view.item_bytes)};
    }
    // Arrays of one session may lie side by side in one plane.
    for (const graph::NamedView& kept : run->planes) {
      plane::View same = view.view;
      same.plane = kept.view.plane;
      if (run->memory.bytes[kept.view.plane] == own.bytes[view.view.plane] &&
          plane::overlap(same, kept.view).overlaps)
        return {Reason::plane_overlap, "the array to copy into is one of the run's own; make another one"};
    }
    EAGLE_RETURN_IF_ERROR(refuse_write(view.view.plane, "the result", own));
    EAGLE_RETURN_IF_ERROR(
        plane::check_target(view.view, declared[view.view.plane].bytes).within("plane " + quoted));
    copies.emplace_back(&*from, std::move(view));
  }
  const auto unwanted = [&given_up] { return given_up && given_up(); };
  for (const auto& [from, to] : copies) {
    const PlaneBytes& source = *run->memory.bytes[from->view.plane];
    const PlaneBytes& target = *own.bytes[to.view.plane];
    const Status stopped(Reason::cancelled,
                         "run " + std::to_string(run->id) + " was fetched in part, and is still kept");
    if (source.gpu() == nullptr && target.gpu() == nullptr) {
      if (!plane::copy_view(from->view, source.data(), to.view, target.data(), unwanted)) return stopped;
      continue;
    }
    EAGLE_ASSIGN_OR_RETURN(const plane::Packed reads, plane::Packed::of(from->view));
    EAGLE_ASSIGN_OR_RETURN(const plane::Packed writes, plane::Packed::of(to.view));
    EAGLE_RETURN_IF_ERROR(plane::copy_packed(
        reads.bytes(),
        [&](std::uint64_t first, std::span<std::byte> into) {
          return unwanted() ? stopped : source.read(reads, first, into);
        },
        [&](std::uint64_t first, std::span<const std::byte> packed) {
          return target.write(writes, first, packed);
        }));
  }
  const std::lock_guard lock(mutex_);
  if (runs_.erase(run->id) != 0) write_down_end(*run);
  executor_.discard(run);
  return {};
}

std::uint64_t KeptRuns::plane_key(std::uint64_t run, std::uint64_t plane) {
  // The number of the worker is in the upper half of a run's id.
  return run << plane_bits | plane;
}

// Only once it has ended do its planes hold something.
void KeptRuns::write_down(Run& run) const {
  if (survival_.log == nullptr || run.gone) return;
  v1::RunRecord record;
  record.set_uid(run.owner.uid);
  record.set_identity(static_cast<std::uint32_t>(run.owner.identity));
  record.set_subject(run.owner.subject);
  record.set_until_ns(nanoseconds_of(run.until));
  record.set_attempt(run.attempt);
  describe(run, *record.mutable_run());
  std::vector<StateChange> changes(1);
  std::vector<UniqueFd> descriptors;
  for (const graph::NamedView& plane : run.planes) {
    graph::to_message(plane.view, *record.add_planes());
    if (!run.outcome) continue;
    const auto& bytes = run.memory.bytes[plane.view.plane];
    const auto found = std::find_if(run.memory.planes.begin(), run.memory.planes.end(),
                                    [&](const auto& one) { return one->bytes() == bytes; });
    // What lies on a GPU goes with this process.
    if (found == run.memory.planes.end() || (*found)->gpu() != nullptr) continue;
    auto entry = PlaneStore::entry_of(0, **found, descriptors);
    if (!entry.ok()) continue;  // no descriptor is left for it: it is not there after a death
    entry->key = {0, StateKind::run_plane, plane_key(run.id, changes.size() - 1)};
    changes.push_back(*std::move(entry));
  }
  changes.front().key = {0, StateKind::run, run.id};
  changes.front().value = record.SerializeAsString();
  if (run.outcome) changes.push_back({{0, StateKind::run_progress, run.id}, true, {}, -1});
  fault_point("run.before");
  static_cast<void>(survival_.log->write(changes));  // fails where this process is about to end
  fault_point("run.after");
  run.written = Clock::now();
}

void KeptRuns::write_down_end(Run& run) const {
  const std::lock_guard lock(run.mutex);
  run.gone = true;
  if (survival_.log == nullptr) return;
  std::vector<StateChange> changes;
  for (const StateKind kind : {StateKind::run, StateKind::run_progress})
    changes.push_back({{0, kind, run.id}, true, {}, -1});
  for (std::size_t i = 0; i < run.planes.size(); ++i) {
    changes.push_back({{0, StateKind::run_plane, plane_key(run.id, i)}, true, {}, -1});
  }
  fault_point("run.end.before");
  static_cast<void>(survival_.log->write(changes));
  fault_point("run.end.after");
}

void KeptRuns::note_progress(Run& run) const {
  const std::lock_guard lock(run.mutex);
  if (survival_.log == nullptr || run.outcome || run.gone) return;
  if (Clock::now() - run.written < progress_interval) return;
  v1::RunProgressRecord record;
  record.set_steps(run.steps);
  record.set_finished(run.finished);
  const StateChange change{{0, StateKind::run_progress, run.id}, false, record.SerializeAsString(), -1};
  fault_point("run.progress.before");
  static_cast<void>(survival_.log->write({&change, 1}));  // fails where this process is about to end
  fault_point("run.progress.after");
  run.written = Clock::now();
}

Status KeptRuns::restore(std::uint64_t id, const v1::RunRecord& record, PlaneStore::Planes planes,
                         Tenants& tenants) {
  const Status nonsense(Reason::bad_message, "the record of a submitted run is none");
  const v1::KeptRun& said = record.run();
  if (said.run() != id || record.planes_size() != said.planes_size()) return nonsense;
  auto run = std::make_shared<Run>();
  run->id = id;
  run->owner = {record.uid(), static_cast<gid_t>(-1), 0, static_cast<Identity>(record.identity()),
                record.subject()};
  run->costs = adopt_bytes(budget_, tenants.of(run->owner).get(), copies_of_records * record.ByteSizeLong());
  run->name = said.name();
  run->mask = said.mask();
  run->attempt = record.attempt();
  run->max_steps = said.max_steps();
  run->until = Clock::time_point(std::chrono::nanoseconds(record.until_ns()));
  run->steps = said.progress().steps();
  run->finished = said.progress().finished();
  for (int i = 0; i < record.planes_size(); ++i) {
    graph::NamedView& plane = run->planes.emplace_back();
    plane.name = said.planes(i).name();
    plane.view = graph::unchecked_view(record.planes(i));
    plane.view.plane = static_cast<std::uint32_t>(i);
    if (static_cast<std::size_t>(i) >= planes.size()) continue;
    Plane& bytes = *planes[static_cast<std::size_t>(i)];
    EAGLE_RETURN_IF_ERROR(plane::check(plane.view, bytes.size()));
    run->memory.memory.push_back({bytes.data(), bytes.size()});
    run->memory.read_only.push_back(false);
    run->memory.bytes.push_back(bytes.bytes());
  }
  const bool whole = said.ended() && planes.size() == run->planes.size();
  run->memory.planes = std::move(planes);
  if (!whole) {
    run->memory = {};
    run->lost = true;
    const auto on_gpu = std::find_if(said.planes().begin(), said.planes().end(),
                                     [](const auto& plane) { return !plane.device().empty(); });
    run->outcome =
        said.ended() && on_gpu != said.planes().end()
            ? Status(Reason::worker_restarted,
                     "the run had ended, and its arrays lay on " + on_gpu->device() +
                         ", whose memory went with the daemon's worker; submit it anew, or fetch "
                         "results as soon as they are there")
            : Status(Reason::worker_restarted,
                     "the daemon's worker died while the run computed, and it is not run again; by its "
                     "last report it had come to step " +
                         std::to_string(run->steps) + " of " + std::to_string(run->max_steps) +
                         "; look at its arrays, and submit it anew");
  } else if (said.reason().empty()) {
    EAGLE_ASSIGN_OR_RETURN(run->outcome, step::result_of(said.result()));
  } else {
    run->outcome = Status(reason_named(said.reason()), said.error());
  }
  const std::lock_guard lock(mutex_);
  runs_[id] = std::move(run);
  changed_.notify_all();
  return {};
}

std::vector<KeptRuns::OnGpu> KeptRuns::on_gpu(std::string_view uuid, std::size_t most) const {
  std::vector<OnGpu> found;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, run] : runs_) {
    const bool there =
        std::any_of(run->memory.planes.begin(), run->memory.planes.end(), [&](const auto& plane) {
          return plane->gpu() != nullptr && plane->gpu()->unit()->info().uuid == uuid;
        });
    if (there && found.size() < most) found.push_back({id, run->name, run->tenant});
  }
  return found;
}

void KeptRuns::cancel_all() {
  std::vector<std::shared_ptr<SimulationJob>> jobs;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, run] : runs_) {
      const std::lock_guard outcome(run->mutex);
      if (run->job) jobs.push_back(run->job);
    }
  }
  for (const auto& job : jobs) job->cancel();
}

Status KeptRuns::cancel(const Session& session, std::uint64_t id) {
  EAGLE_ASSIGN_OR_RETURN(const auto run, find(session, id));
  std::shared_ptr<SimulationJob> job;
  {
    const std::lock_guard lock(run->mutex);
    job = run->job;
  }
  if (job) job->cancel();
  return {};
}

void KeptRuns::end_all() {
  Runs all;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    all = std::exchange(runs_, {});
  }
  changed_.notify_all();
  for (const auto& [id, run] : all) {
    std::shared_ptr<SimulationJob> job;
    {
      const std::lock_guard lock(run->mutex);
      job = run->job;
    }
    if (job) job->cancel();
  }
}

// Waits for the lease that ends first.
void KeptRuns::expire() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    const auto first = std::min_element(runs_.begin(), runs_.end(), [](const auto& a, const auto& b) {
      return a.second->until < b.second->until;
    });
    if (first == runs_.end()) {
      changed_.wait(lock);
      continue;
    }
    if (first->second->until > Clock::now()) {
      const Clock::time_point until = first->second->until;
      changed_.wait_until(lock, until);
      continue;
    }
    const std::shared_ptr<Run> run = first->second;
    runs_.erase(first);
    write_down_end(*run);
    lock.unlock();
    if (const auto more = over_lines_.admit())
      spdlog::info("run={} is kept no longer: its lease is over{}", run->id, *more);
    std::shared_ptr<SimulationJob> job;
    {
      const std::lock_guard outcome(run->mutex);
      job = run->job;
    }
    if (job) job->cancel();
    executor_.discard(run);
    lock.lock();
  }
}

}  // namespace eagle::server
