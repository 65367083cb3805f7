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

// Of the memory that the entry is over; 0: of none, or of one that no other entry is over.
std::uint64_t bytes_id_of(StateKind kind, const std::string& record) {
  if (kind == StateKind::plane || kind == StateKind::run_plane) {
    v1::PlaneRecord plane;
    return plane.ParseFromString(record) ? plane.bytes_id() : 0;
  }
  if (kind != StateKind::name) return 0;
  v1::NameRecord name;
  return name.ParseFromString(record) ? name.bytes_id() : 0;
}

}  // namespace

StatusOr<Estate> Estate::create() {
  EAGLE_ASSIGN_OR_RETURN(Journal journal, Journal::create());
  return Estate(std::move(journal));
}

StatusOr<Estate> Estate::adopt(UniqueFd journal, std::map<StateKey, UniqueFd> descriptors,
                               std::map<std::uint64_t, UniqueFd> bytes) {
  EAGLE_ASSIGN_OR_RETURN(Journal adopted, Journal::adopt(std::move(journal)));
  Estate estate(std::move(adopted));
  std::erase_if(descriptors, [&](const auto& held) { return !estate.journal_.has(held.first); });
  estate.descriptors_ = std::move(descriptors);
  for (const StateKey& key : estate.journal_.keys()) {
    if (key.kind != StateKind::plane && key.kind != StateKind::run_plane && key.kind != StateKind::name)
      continue;
    EAGLE_ASSIGN_OR_RETURN(const std::string record, estate.journal_.value(key));
    const std::uint64_t id = bytes_id_of(key.kind, record);
    if (id == 0) continue;
    UniqueFd fd;
    if (auto left = bytes.extract(id)) fd = std::move(left.mapped());
    if (auto left = estate.descriptors_.extract(key); left && !fd.valid()) fd = std::move(left.mapped());
    estate.refer(key, id, std::move(fd), false);
  }
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
      part.kind() > static_cast<std::uint32_t>(last_state_kind)) {
    return nonsense("one of kind " + std::to_string(part.kind()));
  }
  // A worker says whose a strike is, and takes it back when an admin does; it makes none.
  if (kind == StateKind::strike && !part.gone() && !journal_.has({part.session(), kind, part.id()})) {
    return nonsense("a strike");
  }
  if (descriptors.size() > 1) return nonsense(std::to_string(descriptors.size()) + " descriptors");
  const StateKey key{part.session(), kind, part.id()};
  if (!value_goes_on_) {
    staged_.push_back({{key, part.gone(), {}, -1, part.moved()}, {}});
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
    } else if (!journal_.has(key)) {
      continue;
    } else if (const std::uint64_t id = bytes_id_of(key.kind, changes[i].value); id != 0) {
      refer(key, id, std::move(staged_[i].descriptor), changes[i].moved);
    } else if (staged_[i].descriptor.valid()) {
      replace(key, std::move(staged_[i].descriptor));
    }
  }
  drop_unfinished();
  return {};
}

void Estate::refer(const StateKey& key, std::uint64_t bytes_id, UniqueFd fd, bool moved) {
  const auto known = over_.find(key);
  if (known == over_.end() || known->second != bytes_id) {
    const auto memory = memory_.find(bytes_id);
    if (memory == memory_.end() && !fd.valid()) return;
    ++memory_[bytes_id].entries;
    drop_reference(key);
    over_[key] = bytes_id;
  }
  // Each entry comes with a descriptor; it may have been taken before the bytes moved, and come after.
  UniqueFd& held = memory_[bytes_id].fd;
  if (fd.valid() && (moved || !held.valid())) held = std::move(fd);
}

void Estate::drop_reference(const StateKey& key) {
  const auto known = over_.find(key);
  if (known == over_.end()) return;
  const auto memory = memory_.find(known->second);
  if (--memory->second.entries == 0) memory_.erase(memory);
  over_.erase(known);
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
  if (!whole) return drop_reference(key);
  for (auto over = over_.lower_bound(key); over != over_.end() && over->first.session == key.session;
       over = over_.lower_bound(key)) {
    drop_reference(StateKey(over->first));
  }
}

std::vector<Estate::Given> Estate::for_the_worker() const {
  std::vector<Given> all;
  for (const auto& [id, memory] : memory_) all.push_back({id, {}});
  for (const auto& [key, fd] : descriptors_) {
    if (key.kind != StateKind::session) all.push_back({0, key});
  }
  return all;
}

std::map<std::uint64_t, int> Estate::bytes() const {
  std::map<std::uint64_t, int> all;
  for (const auto& [id, memory] : memory_) all[id] = memory.fd.get();
  return all;
}

int Estate::descriptor(const Given& given) const {
  if (given.bytes_id != 0) {
    const auto memory = memory_.find(given.bytes_id);
    return memory == memory_.end() ? -1 : memory->second.fd.get();
  }
  const auto found = descriptors_.find(given.key);
  return found == descriptors_.end() ? -1 : found->second.get();
}

}  // namespace eagle::server
