#include "server/sessions.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace eagle::server {
namespace {

// Random, so that an id says nothing about how many sessions there were; never 0.
StatusOr<std::uint64_t> random_id() {
  std::array<std::uint8_t, 8> bytes{};
  EAGLE_RETURN_IF_ERROR(fill_random(bytes));
  std::uint64_t id = 0;
  std::memcpy(&id, bytes.data(), sizeof id);
  return id == 0 ? 1 : id;
}

}  // namespace

std::string loggable(std::string_view text) {
  std::string shown(text.substr(0, 64));
  for (char& c : shown) {
    if (c < 0x20 || c > 0x7e || c == '"') c = '?';
  }
  return shown;
}

StatusOr<Sessions::Opened> Sessions::open(const Principal& principal, const std::string& client) {
  if (client.size() > limits_.label_bytes) {
    return Status(Reason::bad_value, "expected a client name of at most " +
                                         std::to_string(limits_.label_bytes) +
                                         " bytes (label_bytes), found " + std::to_string(client.size()));
  }
  EAGLE_ASSIGN_OR_RETURN(const std::uint64_t id, random_id());
  Opened opened;
  EAGLE_RETURN_IF_ERROR(fill_random(opened.secret));
  opened.session = std::make_shared<Session>(id, principal, client, budget_, limits_);
  const Digest digest = digest_of(opened.secret);
  {
    const std::lock_guard lock(mutex_);
    if (by_digest_.size() >= limits_.sessions) {
      return Status(Reason::quota, "the daemon has " + std::to_string(limits_.sessions) +
                                       " sessions, which is its limit (sessions); close some");
    }
    if (!digest_of_.emplace(id, digest).second) return Status(Reason::internal, "a session id came up twice");
    by_digest_.emplace(digest, opened.session);
  }
  spdlog::info("session={:016x} opened by {} pid={} client=\"{}\"", id, loggable(principal.text()),
               principal.pid, loggable(client));
  return opened;
}

StatusOr<std::shared_ptr<Session>> Sessions::find(std::string_view secret_hex) const {
  const auto secret = secret_from_hex(secret_hex);
  if (secret) {
    const Digest digest = digest_of(*secret);
    const std::lock_guard lock(mutex_);
    const auto found = by_digest_.find(digest);
    if (found != by_digest_.end()) return found->second;
  }
  return Status(Reason::unauthenticated,
                "expected the secret of an open session in the call's metadata, found none that the daemon "
                "knows: the session was closed, or the daemon started anew; open a session first");
}

std::vector<std::shared_ptr<Session>> Sessions::visible_to(const Principal& caller) const {
  const bool sees_all = caller.is_operator();
  std::vector<std::shared_ptr<Session>> visible;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [digest, session] : by_digest_) {
      if (sees_all || session->principal().same_as(caller)) visible.push_back(session);
    }
  }
  std::sort(visible.begin(), visible.end(), [](const auto& a, const auto& b) { return a->id() < b->id(); });
  return visible;
}

PlaneStore::Planes Sessions::end(const std::shared_ptr<Session>& session, bool client_lives) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = digest_of_.find(session->id());
    if (found == digest_of_.end()) return {};
    by_digest_.erase(found->second);
    digest_of_.erase(found);
  }
  auto remains = std::make_shared<Session::Remains>(session->end());
  if (ended_) ended_(*session);
  spdlog::info("session={:016x} ended planes={} graphs={}", session->id(), remains->planes.size(),
               remains->graphs.size());
  PlaneStore::Planes kept;
  if (client_lives) {
    for (const auto& plane : remains->planes) {
      if (plane->fetched()) kept.push_back(plane);
    }
  }
  static_cast<void>(reaper_.submit([remains = std::move(remains)]() mutable { remains.reset(); }));
  return kept;
}

void Sessions::reap(PlaneStore::Planes planes) {
  auto held = std::make_shared<PlaneStore::Planes>(std::move(planes));
  static_cast<void>(reaper_.submit([held = std::move(held)]() mutable { held.reset(); }));
}

void Sessions::end_all() {
  std::map<Digest, std::shared_ptr<Session>> all;
  {
    const std::lock_guard lock(mutex_);
    all = by_digest_;
  }
  for (const auto& [digest, session] : all) static_cast<void>(end(session, false));
}

std::size_t Sessions::size() const {
  const std::lock_guard lock(mutex_);
  return by_digest_.size();
}

std::size_t Sessions::graphs() const {
  std::map<Digest, std::shared_ptr<Session>> all;
  {
    const std::lock_guard lock(mutex_);
    all = by_digest_;
  }
  std::size_t graphs = 0;
  for (const auto& [digest, session] : all) graphs += session->graphs().size();
  return graphs;
}

}  // namespace eagle::server
