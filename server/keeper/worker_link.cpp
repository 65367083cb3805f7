#include "server/keeper/worker_link.h"

#include <utility>

#include "eagle/v1/state.pb.h"
#include "server/fault_point.h"
#include "server/keeper/journal.h"
#include "server/keeper/packet.h"

namespace eagle::server {
namespace {

// Of a value, in one packet; the rest of the packet is its frame.
constexpr std::size_t part_bytes = packet_bytes - 256;

StatusOr<std::pair<v1::KeeperMessage, std::vector<UniqueFd>>> next_message(int socket) {
  EAGLE_ASSIGN_OR_RETURN(auto packet, receive_packet(socket, Wait::yes));
  std::pair<v1::KeeperMessage, std::vector<UniqueFd>> message;
  if (!packet || !message.first.ParseFromString(packet->bytes)) {
    return Status(Reason::bad_message, "expected a message of the keeper, found something else");
  }
  message.second = std::move(packet->descriptors);
  return message;
}

Status unexpected(const char* expected) {
  return {Reason::bad_message,
          std::string("expected ") + expected + " from the keeper, found something else"};
}

}  // namespace

StatusOr<Inheritance> WorkerLink::take_over() {
  Inheritance inheritance;
  EAGLE_ASSIGN_OR_RETURN(auto begin, next_message(socket_.get()));
  const auto& said = begin.first.begin();
  constexpr int before_sockets = 2;  // the journal, the ledger
  if (!begin.first.has_begin() ||
      begin.second.size() != static_cast<std::size_t>(before_sockets + said.listen_size())) {
    return unexpected("its beginning");
  }
  inheritance.state.epoch = said.epoch();
  EAGLE_ASSIGN_OR_RETURN(inheritance.state.records,
                         Journal::read(begin.second[0].get(), [this] { still_starts(); }));
  inheritance.ledger = std::move(begin.second[1]);
  for (int i = 0; i < said.listen_size(); ++i) {
    inheritance.listening.emplace_back(said.listen(i),
                                       std::move(begin.second[static_cast<std::size_t>(before_sockets + i)]));
  }
  for (bool last = false; !last;) {
    EAGLE_ASSIGN_OR_RETURN(auto next, next_message(socket_.get()));
    const v1::PlanesMessage& planes = next.first.planes();
    if (!next.first.has_planes() || next.second.size() != static_cast<std::size_t>(planes.planes_size())) {
      return unexpected("planes");
    }
    for (int i = 0; i < planes.planes_size(); ++i) {
      const auto& place = planes.planes(i);
      UniqueFd& fd = next.second[static_cast<std::size_t>(i)];
      if (place.bytes_id() != 0) {
        inheritance.state.bytes.emplace(place.bytes_id(), std::move(fd));
        continue;
      }
      const StateKey key{place.session(), static_cast<StateKind>(place.kind()), place.id()};
      inheritance.state.descriptors.emplace(key, std::move(fd));
    }
    last = planes.last();
    v1::WorkerMessage adopted;
    adopted.set_adopted(static_cast<std::uint32_t>(planes.planes_size()));
    EAGLE_RETURN_IF_ERROR(send(adopted.SerializeAsString()));
  }
  return inheritance;
}

void WorkerLink::still_starts() {
  const auto now = std::chrono::steady_clock::now();
  if (now - said_so_ < pace_) return;
  said_so_ = now;
  beat(true);
}

void WorkerLink::obey(const Orders& orders) {
  for (;;) {
    auto next = next_message(socket_.get());
    if (!next.ok()) return;
    const v1::KeeperMessage& message = next->first;
    if (message.has_drain()) orders.drain(message.drain());
    if (message.has_hand_over()) orders.hand_over(message.hand_over());
    if (message.has_hurry()) orders.hurry();
    if (message.has_client_died()) orders.client_died(message.client_died());
    if (message.has_reload() && next->second.size() == 1) orders.reload(std::move(next->second.front()));
  }
}

Status WorkerLink::send(const std::string& bytes, std::span<const int> descriptors) {
  return send_packet(socket_.get(), bytes, descriptors, Wait::yes).status();
}

// A beat tells nothing that a record in between does not, but whether the scheduler goes round.
void WorkerLink::beat(bool goes_round) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  v1::WorkerMessage message;
  message.set_beat(true);
  message.set_goes_round(goes_round);
  static_cast<void>(send(message.SerializeAsString()));
}

void WorkerLink::say(const v1::WorkerMessage& message) {
  const std::lock_guard lock(mutex_);
  static_cast<void>(send(message.SerializeAsString()));
}

void WorkerLink::serves() {
  v1::WorkerMessage message;
  message.set_serves(true);
  say(message);
}

void WorkerLink::replace(const std::string& why, std::span<const BlamedGraph> blamed) {
  constexpr std::size_t most_blamed = 16;
  v1::WorkerMessage message;
  message.mutable_replace()->set_why(why.substr(0, part_bytes / 2));
  for (const BlamedGraph& one : blamed.first(std::min(most_blamed, blamed.size()))) {
    v1::StrikeRecord& strike = *message.mutable_replace()->add_blamed();
    strike.set_hash(one.hash.data(), one.hash.size());
    strike.set_tenant(one.tenant);
    strike.set_graph(one.graph);
  }
  say(message);
}

void WorkerLink::failed(const std::string& why) {
  v1::WorkerMessage message;
  message.set_failed(why.substr(0, part_bytes));
  say(message);
}

void WorkerLink::reloaded(const std::string& wrong) {
  v1::WorkerMessage message;
  message.set_reloaded(wrong.substr(0, part_bytes));
  say(message);
}

void WorkerLink::end(std::optional<std::uint32_t> within_s) {
  v1::WorkerMessage message;
  message.set_end(true);
  if (within_s) message.set_end_within_s(*within_s);
  say(message);
}

Status WorkerLink::write(std::span<const StateChange> changes) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    EAGLE_RETURN_IF_ERROR(write_one(changes[i], i + 1 < changes.size()));
  }
  return {};
}

Status WorkerLink::write_one(const StateChange& change, bool more) {
  std::string_view rest = change.value;
  bool first = true;
  do {
    v1::WorkerMessage message;
    v1::StateChange& part = *message.mutable_change();
    part.set_session(change.key.session);
    part.set_kind(static_cast<std::uint32_t>(change.key.kind));
    part.set_id(change.key.id);
    part.set_gone(change.gone);
    part.set_value(std::string(rest.substr(0, part_bytes)));
    rest.remove_prefix(std::min(rest.size(), part_bytes));
    part.set_more_value(!rest.empty());
    part.set_more(more);
    part.set_moved(change.moved);
    const bool with_fd = std::exchange(first, false) && change.fd >= 0;
    EAGLE_RETURN_IF_ERROR(
        send(message.SerializeAsString(), std::span<const int>(&change.fd, with_fd ? 1 : 0)));
    if (!rest.empty()) fault_point("log.part");
    if (rest.empty() && more) fault_point("log.between");
  } while (!rest.empty());
  return {};
}

}  // namespace eagle::server
