#include "server/published.h"

#include <algorithm>
#include <string_view>

#include "eagle/v1/state.pb.h"
#include "engine/graph/wire.h"
#include "server/client_text.h"
#include "server/fault_point.h"

namespace eagle::server {
namespace {

// A client's text, for a message.
std::string loggable_name(std::string_view text) {
  std::string shown(text.substr(0, 128));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < 0x20 || c == 0x7f || c == '\''; }, '?');
  return shown;
}

Status unknown(const std::string& name) {
  return {Reason::unknown_name,
          "there is no published array '" + loggable_name(name) + "' that this caller may open"};
}

}  // namespace

bool Published::is_principal(const std::string& text) {
  if (text == "*") return true;
  for (const std::string_view scheme : {"uid:", "token:", "certificate:"}) {
    if (!text.starts_with(scheme) || text.size() == scheme.size() || text.size() > 300) continue;
    const std::string_view rest = std::string_view(text).substr(scheme.size());
    return scheme != "uid:" ||
           (rest.size() <= 10 && rest.find_first_not_of("0123456789") == std::string_view::npos);
  }
  return false;
}

bool Published::granted(const Key& key, const Entry& entry, const std::string& principal) {
  return key.first == principal || entry.array.to.contains(principal) || entry.array.to.contains("*");
}

Status Published::publish(const std::shared_ptr<Session>& owner, const std::string& name, Array array) {
  if (name.empty()) return {Reason::bad_value, "publish: expected a name, found an empty one"};
  EAGLE_RETURN_IF_ERROR(check_client_text("a name", name, limits_).within("publish"));
  EAGLE_RETURN_IF_ERROR(check_client_text("an attempt", array.attempt, limits_).within("publish"));
  for (const std::string& principal : array.to) {
    if (is_principal(principal)) continue;
    return {Reason::bad_value,
            "publish: to: expected 'uid:N', 'token:NAME', 'certificate:NAME' or '*', found '" +
                loggable_name(principal) + "'"};
  }
  if (array.to.size() > limits_.grantees) {
    return {Reason::quota, "publish: to: expected at most " + std::to_string(limits_.grantees) +
                               " principals (grantees), found " + std::to_string(array.to.size()) +
                               "; '*' grants it to everybody"};
  }
  const Key key{owner->principal().text(), name};
  const std::lock_guard lock(mutex_);
  if (owner->ended()) return {Reason::session_closed, "publish: the session was closed; open another one"};
  const auto known = entries_.find(key);
  const bool asked_again = known != entries_.end() && known->second.session_id == owner->id() &&
                           !array.attempt.empty() && known->second.array.attempt == array.attempt;
  if (known != entries_.end() && !asked_again && known->second.session.lock()) {
    return {Reason::bad_value, "publish: '" + loggable_name(name) +
                                   "' is published already; withdraw it first, or choose another name"};
  }
  if (entries_.size() >= limits_.published && known == entries_.end()) {
    return {Reason::quota, "publish: the daemon has " + std::to_string(limits_.published) +
                               " published arrays, which is its limit (published); withdraw some"};
  }
  Entry fresh{owner, owner->id(), owner->log(), ++last_number_, std::move(array), {}, {}};
  EAGLE_ASSIGN_OR_RETURN(fresh.costs,
                         hold_bytes(budget_, owner->tenant().get(), "the name of an array and its grants",
                                    copies_of_records * record_of(name, fresh).ByteSizeLong()));
  if (known != entries_.end()) EAGLE_RETURN_IF_ERROR(write_down_end(known->second));
  Entry& entry = entries_[key];
  entry = std::move(fresh);
  return write_down(name, entry);
}

StatusOr<Published::Opened> Published::open(const std::shared_ptr<Session>& caller, const std::string& name,
                                            const std::string& owner) {
  const std::string principal = caller->principal().text();
  const std::lock_guard lock(mutex_);
  auto found = entries_.end();
  std::string owners;
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (it->first.second != name || !granted(it->first, it->second, principal)) continue;
    if (!owner.empty() && it->first.first != owner) continue;
    if (owner.empty() && it->first.first == principal) {
      found = it;
      owners.clear();
      break;
    }
    owners += (owners.empty() ? "" : ", ") + it->first.first;
    if (found != entries_.end()) {
      return Status(Reason::bad_value, "open: several owners have granted an array '" + loggable_name(name) +
                                           "' (" + owners + "); say whose with owner=");
    }
    found = it;
  }
  if (found == entries_.end()) return unknown(name).within("open");
  auto& [key, entry] = *found;
  const bool own = key.first == principal;
  Opened opened;
  opened.read_only = !own && !entry.array.writable;
  EAGLE_ASSIGN_OR_RETURN(opened.plane,
                         caller->planes().adopt(name, entry.array.bytes, opened.read_only, key.first));
  opened.read_only = opened.plane.plane->read_only();
  opened.view = entry.array.view;
  opened.owner = key.first;
  // Holders that are gone make room for those that come; the caller's plane may be another one than before.
  std::erase_if(entry.holders, [&caller](const auto& holder) {
    const std::weak_ptr<Session>& session = holder.second.session;
    return session.expired() || (!session.owner_before(caller) && !caller.owner_before(session));
  });
  if (!own) entry.holders.emplace(principal, Holder{caller, opened.plane.plane->id()});
  return opened;
}

StatusOr<Published::Withdrawn> Published::withdraw(const Session& caller, const std::string& name,
                                                   const std::set<std::string>& from) {
  std::vector<Holder> losing;
  Withdrawn withdrawn;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find({caller.principal().text(), name});
    if (found == entries_.end()) return unknown(name).within("withdraw");
    Entry& entry = found->second;
    withdrawn.bytes = entry.array.bytes;
    for (auto it = entry.holders.begin(); it != entry.holders.end();) {
      const bool loses = from.empty() || from.contains(it->first) || from.contains("*");
      if (loses) losing.push_back(it->second);
      it = loses ? entry.holders.erase(it) : std::next(it);
    }
    for (const std::string& principal : from) entry.array.to.erase(principal);
    if (from.contains("*")) entry.array.to.clear();
    const Status written = from.empty() ? write_down_end(entry) : write_down(name, entry);
    if (from.empty()) entries_.erase(found);
    if (!written.ok()) return written;
  }
  for (const Holder& holder : losing) {
    // It may have released the plane itself, and the id may be another plane's by now, of another generation.
    if (const auto session = holder.session.lock()) {
      static_cast<void>(session->planes().release({&holder.plane, 1}));
      withdrawn.sessions.push_back(session->id());
    }
  }
  return withdrawn;
}

std::size_t Published::holders() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const auto& [key, entry] : entries_) count += entry.holders.size();
  return count;
}

v1::NameRecord Published::record_of(const std::string& name, const Entry& entry) {
  v1::NameRecord record;
  record.set_name(name);
  graph::to_message(entry.array.view, *record.mutable_view());
  record.set_writable(entry.array.writable);
  record.mutable_to()->Add(entry.array.to.begin(), entry.array.to.end());
  record.set_bytes_id(entry.array.bytes->id());
  record.set_bytes(entry.array.bytes->size());
  record.set_attempt(entry.array.attempt);
  return record;
}

Status Published::write_down(const std::string& name, const Entry& entry, bool moved) {
  if (entry.log == nullptr || entry.array.bytes->gpu() != nullptr) return {};
  EAGLE_ASSIGN_OR_RETURN(const UniqueFd descriptor, entry.array.bytes->descriptor(false));
  StateChange change;
  change.key = {entry.session_id, StateKind::name, entry.number};
  change.value = record_of(name, entry).SerializeAsString();
  change.fd = descriptor.get();
  change.moved = moved;
  fault_point("name.before");
  EAGLE_RETURN_IF_ERROR(entry.log->write({&change, 1}));
  fault_point("name.after");
  return {};
}

Status Published::write_down_end(const Entry& entry) {
  if (entry.log == nullptr) return {};
  const StateChange change{{entry.session_id, StateKind::name, entry.number}, true, {}, -1};
  fault_point("name.end.before");
  EAGLE_RETURN_IF_ERROR(entry.log->write({&change, 1}));
  fault_point("name.end.after");
  return {};
}

Status Published::note_moved(const PlaneBytes& bytes) {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, entry] : entries_) {
    if (entry.array.bytes.get() == &bytes) EAGLE_RETURN_IF_ERROR(write_down(key.second, entry, true));
  }
  return {};
}

Status Published::restore(const std::shared_ptr<Session>& owner, std::uint64_t number,
                          const v1::NameRecord& record, std::shared_ptr<PlaneBytes> bytes) {
  Array array{std::move(bytes),
              graph::unchecked_view(record.view()),
              record.writable(),
              {record.to().begin(), record.to().end()},
              record.attempt()};
  array.view.plane = 0;
  EAGLE_RETURN_IF_ERROR(plane::check(array.view, array.bytes->size()));
  const std::lock_guard lock(mutex_);
  entries_[{owner->principal().text(), record.name()}] = {
      owner,
      owner->id(),
      owner->log(),
      number,
      std::move(array),
      {},
      adopt_bytes(budget_, owner->tenant().get(), copies_of_records * record.ByteSizeLong())};
  return {};
}

void Published::restore_holder(const std::shared_ptr<Session>& session) {
  const std::string principal = session->principal().text();
  const std::lock_guard lock(mutex_);
  for (const auto& plane : session->planes().list()) {
    if (!plane->granted()) continue;
    const auto found = entries_.find({plane->opened_from(), plane->label()});
    if (found == entries_.end() || found->second.array.bytes != plane->bytes()) continue;
    if (plane->opened_from() == principal) continue;  // its owner's other session
    found->second.holders.emplace(principal, Holder{session, plane->id()});
  }
}

void Published::forget(const Session& owner) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const auto& entry) { return entry.second.session_id == owner.id(); });
}

}  // namespace eagle::server
