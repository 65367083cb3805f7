#include "server/sessions.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "eagle/v1/state.pb.h"
#include "proto/rpc_error.h"
#include "server/client_text.h"
#include "server/fault_point.h"
#include "server/log_context.h"

namespace eagle::server {
namespace {

void describe(const Principal& principal, v1::SessionRecord& record) {
  record.set_identity(static_cast<std::uint32_t>(principal.identity));
  record.set_subject(principal.subject);
}

Principal principal_of(const v1::SessionRecord& record) {
  const auto identity = static_cast<Identity>(record.identity());
  return {record.uid(), record.gid(), record.pid(), identity, record.subject()};
}

}  // namespace

std::string loggable(std::string_view text) {
  std::string shown(text.substr(0, 64));
  for (char& c : shown) {
    if (c < 0x20 || c > 0x7e || c == '"') c = '?';
  }
  return shown;
}

Sessions::Sessions(PlaneBudget& budget, const Limits& limits, Survival survival,
                   std::function<void(const Session&)> ended)
    : budget_(budget),
      limits_(limits),
      survival_(survival),
      ended_(std::move(ended)),
      admins_{"uid:0", "uid:" + std::to_string(::geteuid())} {}

Status Sessions::write_down(const Session& session, const Principal& principal, const Digest& digest,
                            const Writing& writing) {
  if (session.log() == nullptr) return {};
  v1::SessionRecord record;
  record.set_secret_digest(digest.data(), digest.size());
  record.set_uid(principal.uid);
  record.set_gid(principal.gid);
  describe(principal, record);
  record.set_pid(writing.process >= 0 ? principal.pid : 0);
  record.set_watched(writing.process >= 0);
  record.set_over_tcp(session.over_tcp());
  if (writing.stream_lease) {
    record.set_stream_lease_ms(static_cast<std::uint32_t>(writing.stream_lease->count()));
  }
  record.set_client(session.client());
  record.set_lease_s(static_cast<std::uint32_t>(session.lease().count()));
  record.set_attempt(writing.attempt);
  StateChange change;
  change.key = {session.id(), StateKind::session, 0};
  change.value = record.SerializeAsString();
  change.fd = writing.process;
  std::vector<StateChange> changes = {std::move(change)};
  changes.insert(changes.end(), writing.processes.begin(), writing.processes.end());
  return session.log()->write(changes);
}

// It is known by nobody: its secret never arrived.
void Sessions::end_unanswered(const Principal& principal, const std::string& attempt) {
  if (attempt.empty()) return;
  std::shared_ptr<Session> unanswered;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [digest, entry] : by_digest_) {
      const bool same = entry.attempt == attempt && entry.session->principal().same_as(principal);
      if (same && entry.left_by_a_worker) unanswered = entry.session;
    }
  }
  if (unanswered) end(unanswered);
}

StatusOr<Sessions::Opened> Sessions::open(const Principal& principal, const std::string& client,
                                          OpenOptions options) {
  EAGLE_RETURN_IF_ERROR(check_client_text("a client name", client, limits_));
  if (options.lease > longest_lease) {
    return Status(Reason::bad_value, "expected a lease of at most " + std::to_string(longest_lease.count()) +
                                         " s, found " + std::to_string(options.lease.count()));
  }
  EAGLE_RETURN_IF_ERROR(check_client_text("an attempt", options.attempt, limits_));
  end_unanswered(principal, options.attempt);
  EAGLE_ASSIGN_OR_RETURN(const std::uint64_t id, random_id());
  Opened opened;
  EAGLE_RETURN_IF_ERROR(fill_random(opened.secret));
  auto tenant = tenants_.of(principal);
  EAGLE_ASSIGN_OR_RETURN(Tenant::Share share, tenant->hold(Held::sessions));
  opened.session = std::make_shared<Session>(
      id, principal, client, budget_, limits_, std::move(tenant), std::move(share),
      Session::Survival{survival_.log, survival_.epoch, options.lease, survival_.ledger});
  if (options.stream_lease) opened.session->set_over_tcp();
  std::vector<StateChange> processes;
  EAGLE_ASSIGN_OR_RETURN(opened.process, opened.session->admit(options.process, principal.pid, processes));
  const Digest digest = digest_of(opened.secret);
  {
    const std::lock_guard lock(mutex_);
    if (by_digest_.size() >= limits_.sessions) {
      return Status(Reason::quota, "the daemon has " + std::to_string(limits_.sessions) +
                                       " sessions, which is its limit (sessions); close some");
    }
    if (!digest_of_.emplace(id, digest).second) return Status(Reason::internal, "a session id came up twice");
    opened.attachment = ++last_attachment_;
    by_digest_[digest] = {opened.session, opened.attachment, false, options.attempt, std::nullopt};
  }
  fault_point("session.open.before");
  const Status written =
      write_down(*opened.session, principal, digest,
                 {options.process, options.attempt, options.stream_lease, std::move(processes)});
  if (!written.ok()) {
    end(opened.session);
    return written;
  }
  fault_point("session.open.after");
  opened.session->set_trace(options.trace);
  const LogScope scope({id, 0, 0, options.trace});
  if (const auto more = opened_lines_.admit())
    spdlog::info("opened by {} pid={} client=\"{}\"{}", loggable(principal.text()), principal.pid,
                 loggable(client), *more);
  return opened;
}

StatusOr<std::shared_ptr<Session>> Sessions::restore(std::uint64_t id, const v1::SessionRecord& record) {
  if (record.closed()) {
    auto closed =
        std::make_shared<Session>(id, Principal(), "", budget_, limits_, nullptr, Tenant::Share(),
                                  Session::Survival{survival_.log, survival_.epoch, {}, nullptr, true});
    const std::lock_guard lock(mutex_);
    closed_[id] = closed;
    return closed;
  }
  Digest digest{};
  if (id == 0 || record.secret_digest().size() != digest.size()) {
    return Status(Reason::bad_message, "the record of a session is none");
  }
  std::copy(record.secret_digest().begin(), record.secret_digest().end(), digest.begin());
  const Principal principal = principal_of(record);
  auto tenant = tenants_.of(principal);
  // One that is there already is not refused, whatever the quota says by now; it then does not count.
  auto held = tenant->hold(Held::sessions);
  auto session = std::make_shared<Session>(
      id, principal, record.client(), budget_, limits_, std::move(tenant),
      held.ok() ? *std::move(held) : Tenant::Share(),
      Session::Survival{survival_.log, survival_.epoch, std::chrono::seconds(record.lease_s()),
                        survival_.ledger, true});
  Entry entry{session, 0, true, record.attempt(), std::nullopt};
  const auto grace = record.left() ? Clock::duration(0)
                                   : std::max<Clock::duration>(session->lease(), limits_.longest_silence);
  const bool watched = record.watched() || record.over_tcp() || record.pid() != 0;
  if (record.over_tcp()) session->set_over_tcp();
  if (record.left() || !watched) entry.ends_at = Clock::now() + grace;
  const std::lock_guard lock(mutex_);
  if (!digest_of_.emplace(id, digest).second) return Status(Reason::internal, "a session id came up twice");
  by_digest_[digest] = std::move(entry);
  return session;
}

StatusOr<std::shared_ptr<Session>> Sessions::restored(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  if (const auto closed = closed_.find(id); closed != closed_.end()) return closed->second;
  const auto known = digest_of_.find(id);
  if (known == digest_of_.end())
    return Status(Reason::bad_message, "a record of a session that is not there");
  return by_digest_.at(known->second).session;
}

Sessions::Entry* Sessions::entry_of(std::uint64_t session) {
  const auto known = digest_of_.find(session);
  return known == digest_of_.end() ? nullptr : &by_digest_.at(known->second);
}

StatusOr<Sessions::Opened> Sessions::resume(const Principal& principal, const Resumption& resumption) {
  const Digest digest = digest_of(resumption.secret);
  Opened opened;
  opened.secret = resumption.secret;
  std::vector<StateChange> processes;
  {
    const std::lock_guard lock(mutex_);
    const auto found = by_digest_.find(digest);
    if (found == by_digest_.end() || found->second.session->id() != resumption.session ||
        !found->second.session->principal().same_as(principal)) {
      return Status(
          Reason::unauthenticated,
          "there is no session to resume with this id and secret: its lease is over, it was closed, "
          "or it is another user's or daemon's; open a new one");
    }
    Entry& entry = found->second;
    opened.session = entry.session;
    // Before anything changes: whoever is refused here leaves the session to who comes next.
    EAGLE_ASSIGN_OR_RETURN(opened.process,
                           entry.session->admit(resumption.process, principal.pid, processes));
    // Nothing that ran before the worker's death runs again, whoever asks.
    if (entry.left_by_a_worker) opened.session->outcomes().lost_through(resumption.last_launch);
    entry = {opened.session, ++last_attachment_, false, {}, std::nullopt};
    opened.attachment = entry.attachment;
  }
  fault_point("session.resume.before");
  EAGLE_RETURN_IF_ERROR(
      write_down(*opened.session, principal, digest, {resumption.process, {}, {}, std::move(processes)}));
  fault_point("session.resume.after");
  opened.session->detach_ring();
  opened.session->set_trace(resumption.trace);
  const LogScope scope({opened.session->id(), 0, 0, resumption.trace});
  if (const auto more = opened_lines_.admit())
    spdlog::info("resumed by {} pid={}{}", loggable(principal.text()), principal.pid, *more);
  return opened;
}

Status Sessions::leave(const std::shared_ptr<Session>& session) {
  session->end_lease();
  if (session->log() == nullptr) return {};
  Digest digest{};
  {
    const std::lock_guard lock(mutex_);
    const auto known = digest_of_.find(session->id());
    if (known == digest_of_.end()) return {};
    digest = known->second;
  }
  v1::SessionRecord record;
  record.set_secret_digest(digest.data(), digest.size());
  record.set_uid(session->principal().uid);
  describe(session->principal(), record);
  record.set_left(true);
  StateChange change;
  change.key = {session->id(), StateKind::session, 0};
  change.value = record.SerializeAsString();
  fault_point("session.leave.before");
  EAGLE_RETURN_IF_ERROR(session->log()->write({&change, 1}));
  fault_point("session.leave.after");
  return {};
}

bool Sessions::attached(const Session& session, std::uint64_t attachment) const {
  const std::lock_guard lock(mutex_);
  const auto known = digest_of_.find(session.id());
  return known != digest_of_.end() && by_digest_.at(known->second).attachment == attachment;
}

void Sessions::detach(const std::shared_ptr<Session>& session, std::uint64_t attachment) {
  {
    const std::lock_guard lock(mutex_);
    Entry* const entry = entry_of(session->id());
    if (entry == nullptr || entry->attachment != attachment) return;
    if (session->lease().count() > 0) {
      entry->attachment = 0;
      entry->ends_at = Clock::now() + session->lease();
      session->planes().release_imports();
      const LogScope scope({session->id()});
      if (const auto more = ended_lines_.admit())
        spdlog::info("is kept for {} s{}", session->lease().count(), *more);
      return;
    }
  }
  end(session);
}

void Sessions::client_died(std::uint64_t id) {
  std::shared_ptr<Session> gone;
  {
    const std::lock_guard lock(mutex_);
    Entry* const entry = entry_of(id);
    // Whoever has a connection hears of it there.
    if (entry == nullptr || entry->attachment != 0 || entry->ends_at) return;
    if (entry->session->lease().count() > 0) {
      entry->ends_at = Clock::now() + entry->session->lease();
      entry->session->planes().release_imports();
      return;
    }
    gone = entry->session;
  }
  end(gone);
}

void Sessions::expire(Clock::time_point now) {
  free_unmapped();
  std::vector<std::shared_ptr<Session>> over;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [digest, entry] : by_digest_) {
      if (entry.ends_at && *entry.ends_at <= now) over.push_back(entry.session);
    }
  }
  for (const auto& session : over) {
    const LogScope scope({session->id()});
    if (const auto more = unresumed_lines_.admit()) spdlog::info("was not resumed in time{}", *more);
    end(session);
  }
}

StatusOr<std::shared_ptr<Session>> Sessions::find_for_stream(std::string_view secret_hex) const {
  if (const auto secret = secret_from_hex(secret_hex)) {
    const std::lock_guard lock(mutex_);
    const auto found = by_digest_.find(digest_of(*secret));
    if (found != by_digest_.end() && found->second.session->over_tcp()) return found->second.session;
  }
  return find({});
}

void Sessions::resumed_by_stream(const Session& session, std::uint64_t last_launch) {
  const std::lock_guard lock(mutex_);
  Entry* const entry = entry_of(session.id());
  if (entry == nullptr || !std::exchange(entry->left_by_a_worker, false)) return;
  entry->session->outcomes().lost_through(last_launch);
}

StatusOr<std::shared_ptr<Session>> Sessions::find(std::string_view secret_hex) const {
  const auto secret = secret_from_hex(secret_hex);
  if (secret) {
    const Digest digest = digest_of(*secret);
    const std::lock_guard lock(mutex_);
    const auto found = by_digest_.find(digest);
    if (found != by_digest_.end() && found->second.left_by_a_worker && found->second.session->over_tcp()) {
      return Status(Reason::shutting_down,
                    "the daemon's worker died and another took its place, where the session's stream has not "
                    "arrived yet; nothing was begun, " +
                        std::string(rpc::passes_soon_words));
    }
    if (found != by_digest_.end() && found->second.left_by_a_worker) {
      return Status(
          Reason::worker_restarted,
          "the daemon's worker died and another took its place; resume the session first, by a Hello "
          "on a new side connection");
    }
    if (found != by_digest_.end()) return found->second.session;
  }
  return Status(Reason::unauthenticated,
                "expected the secret of an open session in the call's metadata, found none that the daemon "
                "knows: the session was closed, or the daemon started anew; open a session first");
}

void Sessions::set_admins(std::vector<std::string> admins) {
  const std::lock_guard lock(mutex_);
  admins_ = std::move(admins);
}

bool Sessions::is_admin(const Principal& principal) const {
  const std::lock_guard lock(mutex_);
  return std::find(admins_.begin(), admins_.end(), principal.text()) != admins_.end();
}

std::vector<std::shared_ptr<Session>> Sessions::visible_to(const Principal& caller) const {
  const bool sees_all = is_admin(caller);
  std::vector<std::shared_ptr<Session>> visible;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [digest, entry] : by_digest_) {
      if (sees_all || entry.session->principal().same_as(caller)) visible.push_back(entry.session);
    }
  }
  std::sort(visible.begin(), visible.end(), [](const auto& a, const auto& b) { return a->id() < b->id(); });
  return visible;
}

void Sessions::write_down_end(const Session& session, const PlaneStore::Planes& mapped) const {
  if (session.log() == nullptr) return;
  std::vector<StateChange> changes(1);
  changes.front().key = {session.id(), StateKind::session, 0};
  changes.front().gone = true;
  std::vector<UniqueFd> descriptors;
  if (!mapped.empty()) {
    v1::SessionRecord record;
    record.set_closed(true);
    changes.push_back(changes.front());
    changes.back().gone = false;
    changes.back().value = record.SerializeAsString();
    for (StateChange& process : session.processes()) changes.push_back(std::move(process));
    for (const auto& plane : mapped) {
      auto entry = PlaneStore::entry_of(session.id(), *plane, descriptors);
      if (entry.ok()) changes.push_back(*std::move(entry));  // else no descriptor is left: it is not counted
    }
  }
  fault_point("session.end.before");
  static_cast<void>(session.log()->write(changes));  // fails where this process is about to end
  fault_point("session.end.after");
}

void Sessions::end(const std::shared_ptr<Session>& session) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = digest_of_.find(session->id());
    if (found == digest_of_.end()) return;
    by_digest_.erase(found->second);
    digest_of_.erase(found);
  }
  auto remains = std::make_shared<Session::Remains>(session->end());
  PlaneStore::Planes mapped;
  for (const auto& plane : remains->planes) {
    if (plane->bytes()->mapped_by(session->id())) mapped.push_back(plane);
  }
  write_down_end(*session, mapped);
  if (ended_) ended_(*session);
  const LogScope scope({session->id(), 0, 0, session->trace()});
  if (const auto more = ended_lines_.admit())
    spdlog::info("ended planes={} graphs={}{}", remains->planes.size(), remains->graphs.size(), *more);
  if (!mapped.empty()) {
    const std::lock_guard lock(mutex_);
    mapped_[session->id()] = std::make_shared<const PlaneStore::Planes>(std::move(mapped));
  }
  static_cast<void>(reaper_.submit([remains = std::move(remains)]() mutable { remains.reset(); }));
}

void Sessions::free_unmapped() {
  std::map<std::uint64_t, std::shared_ptr<const PlaneStore::Planes>> all;
  {
    const std::lock_guard lock(mutex_);
    all = mapped_;
  }
  PlaneStore::Planes freed;
  std::vector<StateChange> changes;
  for (const auto& [session, planes] : all) {
    auto still = std::make_shared<PlaneStore::Planes>();
    PlaneStore::Planes gone;
    for (const auto& plane : *planes) (plane->bytes()->mapped_by(session) ? *still : gone).push_back(plane);
    if (gone.empty()) continue;
    const std::lock_guard lock(mutex_);
    const auto kept = mapped_.find(session);
    if (kept == mapped_.end() || kept->second != planes) continue;  // another thread was quicker
    for (const auto& plane : gone)
      changes.push_back({{session, StateKind::plane, plane->id().id}, true, {}, -1});
    freed.insert(freed.end(), gone.begin(), gone.end());
    if (still->empty()) {
      changes.push_back({{session, StateKind::session, 0}, true, {}, -1});
      mapped_.erase(kept);
    } else {
      kept->second = std::move(still);
    }
  }
  if (freed.empty()) return;
  fault_point("session.unmapped.before");
  if (survival_.log != nullptr) static_cast<void>(survival_.log->write(changes));
  fault_point("session.unmapped.after");
  all.clear();
  reap(std::move(freed));
}

bool Sessions::keeps_mapped(std::uint64_t session) const {
  const std::lock_guard lock(mutex_);
  return mapped_.count(session) != 0;
}

void Sessions::leave_to_clients() const {
  const std::lock_guard lock(mutex_);
  for (const auto& [session, planes] : mapped_) {
    for (const auto& plane : *planes) plane->bytes()->leave_to_clients();
  }
}

void Sessions::all_restored() {
  for (const auto& [id, session] : by_id()) session->assume_mapped();
  const std::lock_guard lock(mutex_);
  for (const auto& [id, session] : closed_) {
    session->assume_mapped();
    mapped_[id] = std::make_shared<const PlaneStore::Planes>(session->end().planes);
  }
  closed_.clear();
}

bool Sessions::attached(const Session& session) const {
  const std::lock_guard lock(mutex_);
  const auto known = digest_of_.find(session.id());
  return known != digest_of_.end() && by_digest_.at(known->second).attachment != 0;
}

void Sessions::reap(PlaneStore::Planes planes) {
  auto held = std::make_shared<PlaneStore::Planes>(std::move(planes));
  static_cast<void>(reaper_.submit([held = std::move(held)]() mutable { held.reset(); }));
}

std::map<std::uint64_t, std::shared_ptr<Session>> Sessions::by_id() const {
  std::map<std::uint64_t, std::shared_ptr<Session>> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [digest, entry] : by_digest_) all.emplace(entry.session->id(), entry.session);
  return all;
}

void Sessions::end_all() {
  std::map<Digest, Entry> all;
  {
    const std::lock_guard lock(mutex_);
    all = by_digest_;
  }
  for (const auto& [digest, entry] : all) end(entry.session);
}

std::size_t Sessions::size() const {
  const std::lock_guard lock(mutex_);
  return by_digest_.size();
}

std::size_t Sessions::graphs() const {
  std::map<Digest, Entry> all;
  {
    const std::lock_guard lock(mutex_);
    all = by_digest_;
  }
  std::size_t graphs = 0;
  for (const auto& [digest, entry] : all) {
    graphs += entry.session->graphs().size() + entry.session->dormant().size();
  }
  return graphs;
}

}  // namespace eagle::server
