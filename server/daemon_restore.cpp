// What a worker makes of what the one before it left: the part of Daemon that runs once, at its start.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "eagle/v1/state.pb.h"
#include "server/daemon.h"
#include "server/fault_point.h"
#include "server/log_context.h"

namespace eagle::server {
namespace {

Status nonsense() { return {Reason::bad_message, "a record of the worker before this one is none"}; }

}  // namespace

Status Daemon::restore(RestoredState& state, const std::function<void()>& each) {
  Restoring restoring{state};
  for (auto& [key, record] : state.records) {
    EAGLE_RETURN_IF_ERROR(restore_entry(restoring, key, record));
    record = std::string();  // what became of it is enough: the worker before may have died of its memory
    if (each) each();
  }
  sessions_.all_restored();
  for (const auto& [id, session] : sessions_.by_id()) published_.restore_holder(session);
  if (ledger_) {
    for (const Ledger::Cut& cut : ledger_->cut_off()) {
      mark_torn(cut);
      const LogScope scope({cut.session});
      spdlog::warn("a launch was cut off; half written may be: {}",
                   cut.all_planes ? "any of its arrays" : text_of(cut.written));
    }
    EAGLE_RETURN_IF_ERROR(name_strikes());
    fault_point("restore.torn");
    ledger_->clear();
    ledger_->forget_unclaimed();
  }
  if (state.epoch == 0) return {};
  spdlog::info("worker {} takes over: sessions={} planes={} graphs={}", state.epoch + 1, sessions_.size(),
               budget_->used_planes(), sessions_.graphs());
  return {};
}

// Its session may be gone, and planes of it.
void Daemon::mark_torn(const Ledger::Cut& cut) {
  const std::string what = "what a launch wrote when its worker died";
  const auto session = sessions_.restored(cut.session);
  if (!session.ok()) return;
  if (cut.all_planes) {
    for (const auto& plane : (*session)->planes().list()) {
      plane->mark_torn(what);
      plane->write_down_torn();
    }
  }
  for (const Ledger::Range& range : cut.written) {
    const auto plane = (*session)->planes().find(range.plane);
    if (!plane.ok() || range.bytes == 0) continue;
    (*plane)->mark_torn(range.offset, range.bytes, what);
    (*plane)->write_down_torn();
  }
}

StatusOr<std::shared_ptr<PlaneBytes>> Daemon::restored_bytes(Restoring& restoring, const StateKey& key,
                                                             std::uint64_t id, std::uint64_t bytes) {
  std::shared_ptr<PlaneBytes> none;
  std::shared_ptr<PlaneBytes>& known = id == 0 ? none : restoring.bytes[id];
  if (known) return known;
  const auto shared = restoring.state.bytes.find(id);
  const auto own = restoring.state.descriptors.find(key);
  if (shared == restoring.state.bytes.end() && own == restoring.state.descriptors.end()) return nonsense();
  UniqueFd& memory = shared == restoring.state.bytes.end() ? own->second : shared->second;
  EAGLE_ASSIGN_OR_RETURN(plane::Memory mapped, plane::Memory::map(std::move(memory), bytes));
  known = std::make_shared<PlaneBytes>(std::move(mapped), budget_->adopt(bytes), Tenant::Share(),
                                       std::weak_ptr<RecycledMemory::Bin>(), id);
  known->mark_fetched();  // for all that is known here
  return known;
}

Status Daemon::restore_plane(Restoring& restoring, const StateKey& key, const std::string& text) {
  EAGLE_ASSIGN_OR_RETURN(const auto session, sessions_.restored(key.session));
  v1::PlaneRecord record;
  if (!record.ParseFromString(text)) return nonsense();
  EAGLE_ASSIGN_OR_RETURN(auto bytes, restored_bytes(restoring, key, record.bytes_id(), record.bytes()));
  return session->planes().restore(key.id, record, std::move(bytes));
}

Status Daemon::restore_name(Restoring& restoring, const StateKey& key, const std::string& text) {
  EAGLE_ASSIGN_OR_RETURN(const auto session, sessions_.restored(key.session));
  v1::NameRecord record;
  if (!record.ParseFromString(text)) return nonsense();
  EAGLE_ASSIGN_OR_RETURN(auto bytes, restored_bytes(restoring, key, record.bytes_id(), record.bytes()));
  return published_.restore(session, key.id, record, std::move(bytes));
}

// A run that had ended is as it was; of one that had not, how far it had come.
Status Daemon::restore_run(Restoring& restoring, const StateKey& key, const std::string& text) {
  v1::RunRecord record;
  if (!record.ParseFromString(text)) return nonsense();
  const auto progress = restoring.state.records.find({0, StateKind::run_progress, key.id});
  if (progress != restoring.state.records.end()) {
    v1::RunProgressRecord how_far;
    if (!how_far.ParseFromString(progress->second)) return nonsense();
    record.mutable_run()->mutable_progress()->set_steps(how_far.steps());
    record.mutable_run()->mutable_progress()->set_finished(how_far.finished());
  }
  PlaneStore::Planes planes;
  for (std::uint64_t i = 0;; ++i) {
    const StateKey plane{0, StateKind::run_plane, KeptRuns::plane_key(key.id, i)};
    const auto found = restoring.state.records.find(plane);
    if (found == restoring.state.records.end()) break;
    v1::PlaneRecord of;
    if (!of.ParseFromString(found->second)) return nonsense();
    EAGLE_ASSIGN_OR_RETURN(auto bytes, restored_bytes(restoring, plane, of.bytes_id(), of.bytes()));
    planes.push_back(std::make_shared<Plane>(of.label(), std::move(bytes), Plane::Access::own));
  }
  return kept_runs_.restore(key.id, record, std::move(planes), sessions_.tenants());
}

// Entries come in the order of their keys: a session before what it holds, and runs first.
Status Daemon::restore_entry(Restoring& restoring, const StateKey& key, const std::string& text) {
  if (key.kind == StateKind::strike) return quarantine_.restore(text);
  if (key.kind == StateKind::gpu_fault) return gpu_faults_.restore(key.id, text);
  if (key.kind == StateKind::session) {
    v1::SessionRecord record;
    if (!record.ParseFromString(text)) return nonsense();
    EAGLE_ASSIGN_OR_RETURN(const auto restored, sessions_.restore(key.session, record));
    if (!record.over_tcp()) return {};
    const std::chrono::milliseconds lease(record.stream_lease_ms());
    attachments_.restore(restored, std::max<std::chrono::milliseconds>(lease, orphan_grace));
    return {};
  }
  if (key.kind == StateKind::run) return restore_run(restoring, key, text);
  if (key.kind == StateKind::run_plane || key.kind == StateKind::run_progress) return {};  // with its run
  EAGLE_ASSIGN_OR_RETURN(const auto session, sessions_.restored(key.session));
  switch (key.kind) {
    case StateKind::plane:
      return restore_plane(restoring, key, text);
    case StateKind::torn:
      return session->planes().restore_torn(key.id, text);
    case StateKind::outcomes:
      return session->outcomes().restore(text);
    case StateKind::name:
      return restore_name(restoring, key, text);
    case StateKind::process: {
      v1::ProcessRecord record;
      const auto process = restoring.state.descriptors.find(key);
      if (!record.ParseFromString(text) || process == restoring.state.descriptors.end()) return nonsense();
      session->restore_process(key.id, record.pid(), std::move(process->second));
      return {};
    }
    default:
      break;
  }
  EAGLE_RETURN_IF_ERROR(session->records().restored(key, text));
  if (key.kind == StateKind::graph) session->add_dormant(key.id);
  return {};
}

}  // namespace eagle::server
