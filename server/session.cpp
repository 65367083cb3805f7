#include "server/session.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "eagle/v1/state.pb.h"
#include "server/ring/rings.h"

namespace eagle::server {
namespace {

Status closed() { return {Reason::session_closed, "the session was closed; open another one"}; }

Status unknown_graph(std::uint64_t id) {
  return {Reason::unknown_graph,
          "no graph " + std::to_string(id) + " in this session: it was released, or never built"};
}

}  // namespace

StatusOr<std::uint64_t> Session::add(std::shared_ptr<LoadedGraph> graph) {
  const std::lock_guard lock(mutex_);
  if (ended_) return closed();
  if (graphs_.size() + dormant_.size() >= limits_.graphs) {
    return Status(Reason::quota, "the session holds " + std::to_string(limits_.graphs) +
                                     " graphs, which is its limit (graphs); release some");
  }
  EAGLE_ASSIGN_OR_RETURN(Tenant::Share share, tenant_->hold(Held::graphs));
  graph->keep(std::move(share));
  graphs_.emplace(++last_graph_, std::move(graph));
  return last_graph_;
}

StatusOr<std::shared_ptr<LoadedGraph>> Session::graph(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  return find_graph(id);
}

StatusOr<std::shared_ptr<LoadedGraph>> Session::find_graph(std::uint64_t id) const {
  const auto found = graphs_.find(id);
  if (found != graphs_.end()) return found->second;
  if (dormant_.count(id) == 0) return unknown_graph(id);
  return Status(Reason::graph_state, "graph " + std::to_string(id) +
                                         " was built by a worker that has died since; restore it first "
                                         "(Graphs.Restore)");
}

void Session::add_dormant(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  auto share = tenant_->hold(Held::graphs);
  dormant_[id] = share.ok() ? *std::move(share) : Tenant::Share();
}

void Session::wake(std::uint64_t id, std::shared_ptr<LoadedGraph> graph) {
  const std::lock_guard lock(mutex_);
  auto sleeping = dormant_.extract(id);
  if (sleeping.empty()) return;
  graph->keep(std::move(sleeping.mapped()));
  graphs_.emplace(id, std::move(graph));
}

bool Session::dormant(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  return dormant_.count(id) != 0;
}

std::vector<std::uint64_t> Session::dormant() const {
  std::vector<std::uint64_t> ids;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, share] : dormant_) ids.push_back(id);
  return ids;
}

Status Session::replace_graph(std::uint64_t id, std::shared_ptr<LoadedGraph> graph) {
  std::shared_ptr<LoadedGraph> gone;  // freed after the lock
  const std::lock_guard lock(mutex_);
  const auto found = graphs_.find(id);
  if (found == graphs_.end()) return unknown_graph(id);
  graph->keep(found->second->take_share());
  gone = std::exchange(found->second, std::move(graph));
  return {};
}

Status Session::release_graph(std::uint64_t id) {
  std::shared_ptr<LoadedGraph> gone;  // freed after the lock
  {
    const std::lock_guard lock(mutex_);
    const auto found = graphs_.find(id);
    if (found != graphs_.end()) {
      gone = std::move(found->second);
      graphs_.erase(found);
    } else if (dormant_.erase(id) == 0) {
      return unknown_graph(id);
    }
  }
  return records_.released(id);
}

Session::Graphs Session::graphs() const {
  const std::lock_guard lock(mutex_);
  return {graphs_.begin(), graphs_.end()};
}

bool Session::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

Status Session::enter(std::shared_ptr<Job> job, std::uint64_t launch_id) {
  const std::lock_guard lock(mutex_);
  if (ended_) return closed();
  jobs_.push_back({std::move(job), launch_id});
  return {};
}

StatusOr<Session::Launching> Session::enter(std::shared_ptr<Job> job, std::uint64_t launch_id,
                                            std::uint64_t graph) {
  const std::lock_guard lock(mutex_);
  if (ended_) return closed();
  EAGLE_ASSIGN_OR_RETURN(std::shared_ptr<LoadedGraph> found, find_graph(graph));
  jobs_.push_back({std::move(job), launch_id});
  return Launching{std::move(found), trace_};
}

void Session::leave(const Job* job) {
  InFlight gone;  // its end comes after the lock's
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(jobs_.begin(), jobs_.end(), [job](const InFlight& one) { return one.job.get() == job; });
  if (found == jobs_.end()) return;
  gone = std::exchange(*found, std::move(jobs_.back()));
  jobs_.pop_back();
}

void Session::cancel(std::uint64_t launch_id) {
  if (launch_id == 0) return;
  std::vector<std::shared_ptr<Job>> meant;
  {
    const std::lock_guard lock(mutex_);
    for (const InFlight& in_flight : jobs_) {
      if (in_flight.launch_id == launch_id) meant.push_back(in_flight.job);
    }
  }
  for (const auto& job : meant) job->cancel();
}

TraceContext Session::trace() const {
  const std::lock_guard lock(mutex_);
  return trace_;
}

void Session::set_trace(const TraceContext& trace) {
  const std::lock_guard lock(mutex_);
  trace_ = trace;
}

bool Session::has_ring() const {
  const std::lock_guard lock(mutex_);
  return ring_ != nullptr;
}

std::size_t Session::jobs() const {
  const std::lock_guard lock(mutex_);
  return jobs_.size();
}

void Session::cancel_all() {
  std::vector<InFlight> jobs;
  {
    const std::lock_guard lock(mutex_);
    jobs = jobs_;
  }
  for (const InFlight& in_flight : jobs) in_flight.job->cancel();
}

Status Session::attach(std::shared_ptr<Rings> rings, std::shared_ptr<Ring> ring) {
  const std::lock_guard lock(mutex_);
  if (ended_) return closed();
  if (ring_) return {Reason::bad_message, "the session has a ring already, of which there is one a session"};
  EAGLE_RETURN_IF_ERROR(rings->add(ring));
  rings_ = std::move(rings);
  ring_ = std::move(ring);
  return {};
}

void Session::detach_ring(const Ring* only) {
  const std::lock_guard lock(mutex_);
  if (only != nullptr && ring_.get() != only) return;
  if (ring_) rings_->remove(ring_.get());
  ring_.reset();
}

void Session::close_ring() {
  const std::lock_guard lock(mutex_);
  if (ring_) ring_->set_closing();
}

StateChange Session::entry_of(std::uint64_t process, const ClientProcess& known) const {
  v1::ProcessRecord record;
  record.set_pid(known.pid);
  StateChange change;
  change.key = {id_, StateKind::process, process};
  change.value = record.SerializeAsString();
  change.fd = known.fd.get();
  return change;
}

StatusOr<ProcessRef> Session::admit(int process, pid_t pid, std::vector<StateChange>& changes) {
  if (process < 0) return ProcessRef();
  UniqueFd copy(::fcntl(process, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return Status(Reason::system, std::string("fcntl: ") + std::strerror(errno));
  const std::lock_guard lock(mutex_);
  for (auto known = processes_.begin(); known != processes_.end();) {
    if (!known->second->runs()) {
      changes.push_back({{id_, StateKind::process, known->first}, true, {}, -1});
      known = processes_.erase(known);
      continue;
    }
    const bool same = pid != 0 ? known->second->pid == pid : same_process(known->second->fd.get(), process);
    if (same) return known->second;
    ++known;
  }
  // One that cannot be told apart may have come before.
  if (processes_.size() >= limits_.processes && (pid != 0 || same_process(process, process))) {
    return Status(Reason::quota,
                  "the session was had by " + std::to_string(limits_.processes) +
                      " processes that still run, which is the limit (processes); open another "
                      "session, or end one of them");
  }
  const auto admitted = std::make_shared<const ClientProcess>(ClientProcess{pid, std::move(copy)});
  processes_[++last_process_] = admitted;
  changes.push_back(entry_of(last_process_, *admitted));
  return admitted;
}

void Session::restore_process(std::uint64_t id, pid_t pid, UniqueFd process) {
  const std::lock_guard lock(mutex_);
  processes_[id] = std::make_shared<const ClientProcess>(ClientProcess{pid, std::move(process)});
}

std::vector<StateChange> Session::processes() const {
  std::vector<StateChange> changes;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, process] : processes_) {
    if (process->runs()) changes.push_back(entry_of(id, *process));
  }
  return changes;
}

void Session::assume_mapped() {
  const PlaneStore::Planes planes = planes_.list();
  const std::lock_guard lock(mutex_);
  for (const auto& [id, process] : processes_) {
    for (const auto& plane : planes) plane->bytes()->fetched_by(id_, process);
  }
}

Session::Remains Session::end() {
  Remains remains;
  std::vector<InFlight> jobs;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    remains.graphs.assign(graphs_.begin(), graphs_.end());
    graphs_.clear();
    dormant_.clear();
    jobs = jobs_;
    if (ring_) rings_->remove(ring_.get());
    ring_.reset();
  }
  for (const InFlight& in_flight : jobs) in_flight.job->cancel();
  remains.planes = planes_.close();
  return remains;
}

}  // namespace eagle::server
