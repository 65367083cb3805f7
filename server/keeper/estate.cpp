#include "server/keeper/estate.h"

#include <string>
#include <utility>

#include "eagle/v1/state.pb.h"

namespace eagle::server {
namespace {

// Of one batch: a worker that went wrong must not take the keeper along.
constexpr std::uint64_t most_staged_bytes = 256u << 20;
constexpr std::size_t most_staged_changes = 1u << 17;

Status nonsense(const std::string& found) {
  return {Reason::bad_message, "expected a change of the journal from the worker, found " + found};
}

}  // namespace

StatusOr<Estate> Estate::create() {
  EAGLE_ASSIGN_OR_RETURN(Journal journal, Journal::create());
  return Estate(std::move(journal));
}

StatusOr<Estate> Estate::adopt(UniqueFd journal, std::map<StateKey, UniqueFd> descriptors) {
  EAGLE_ASSIGN_OR_RETURN(Journal adopted, Journal::adopt(std::move(journal)));
  Estate estate(std::move(adopted));
  std::erase_if(descriptors, [&](const auto& held) { return !estate.journal_.has(held.first); });
  estate.descriptors_ = std::move(descriptors);
  return estate;
}

void Estate::announce() const {
  for (const auto& [key, fd] : descriptors_) {
    if (key.kind == StateKind::session && came) came(key.session, fd.get());
  }
}

Status Estate::take(const v1::StateChange& part, std::vector<UniqueFd> descriptors) {
  const auto kind = static_cast<StateKind>(part.kind());
  if (part.kind() < static_cast<std::uint32_t>(StateKind::session) ||
      part.kind() > static_cast<std::uint32_t>(last_state_kind) || kind == StateKind::strike) {
    return nonsense("one of kind " + std::to_string(part.kind()));
  }
  if (descriptors.size() > 1) return nonsense(std::to_string(descriptors.size()) + " descriptors");
  const StateKey key{part.session(), kind, part.id()};
  if (!value_goes_on_) {
    staged_.push_back({{key, part.gone(), {}, -1}, {}});
    if (!descriptors.empty()) staged_.back().descriptor = std::move(descriptors.front());
  }
  Staged& staged = staged_.back();
  if (staged.change.key != key) return nonsense("the end of another one");
  staged_bytes_ += part.value().size();
  if (staged_bytes_ > most_staged_bytes || staged_.size() > most_staged_changes) {
    return nonsense("more than one may have");
  }
  staged.change.value += part.value();
  value_goes_on_ = part.more_value();
  return part.more_value() || part.more() ? Status() : commit();
}

void Estate::drop_unfinished() {
  staged_.clear();
  value_goes_on_ = false;
  staged_bytes_ = 0;
}

Status Estate::commit() {
  std::vector<StateChange> changes;
  for (Staged& staged : staged_) changes.push_back(std::move(staged.change));
  EAGLE_RETURN_IF_ERROR(journal_.apply(changes));
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const StateKey& key = changes[i].key;
    if (changes[i].gone) {
      forget(key);
    } else if (staged_[i].descriptor.valid() && journal_.has(key)) {
      replace(key, std::move(staged_[i].descriptor));
    }
  }
  drop_unfinished();
  return {};
}

void Estate::replace(const StateKey& key, UniqueFd fd) {
  UniqueFd& place = descriptors_[key];
  const bool session = key.kind == StateKind::session;
  if (session && place.valid() && goes) goes(key.session, place.get());
  place = std::move(fd);
  if (session && came) came(key.session, place.get());
}

// With a session goes what it holds.
void Estate::forget(const StateKey& key) {
  auto entry = descriptors_.lower_bound(key);
  const bool whole = key.kind == StateKind::session;
  while (entry != descriptors_.end() && (whole ? entry->first.session == key.session : entry->first == key)) {
    if (entry->first.kind == StateKind::session && goes) goes(key.session, entry->second.get());
    entry = descriptors_.erase(entry);
  }
}

std::vector<StateKey> Estate::for_the_worker() const {
  std::vector<StateKey> keys;
  for (const auto& [key, fd] : descriptors_) {
    if (key.kind != StateKind::session) keys.push_back(key);
  }
  return keys;
}

int Estate::descriptor(const StateKey& key) const {
  const auto found = descriptors_.find(key);
  return found == descriptors_.end() ? -1 : found->second.get();
}

}  // namespace eagle::server
