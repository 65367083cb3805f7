#include "server/recycled_memory.h"

#include <iterator>

namespace eagle::server {

// Everything below frees memory after the lock: others must not wait for the system.

RecycledMemory::Bin::~Bin() {
  std::vector<Piece> gone;
  const std::lock_guard lock(all_.mutex_);
  while (!by_bytes_.empty()) gone.push_back(all_.remove(by_bytes_.begin()->second));
}

void RecycledMemory::Bin::keep(Piece piece, Clock::time_point now) {
  const std::uint64_t bytes = piece.bytes();
  if (bytes < least_bytes || bytes > all_.most_bytes_) return;
  std::vector<Piece> gone;
  const std::lock_guard lock(all_.mutex_);
  for (auto place = all_.kept_.begin(); bytes_ > all_.most_bytes_ - bytes;) {
    const auto next = std::next(place);
    if (place->bin == this) gone.push_back(all_.remove(place));
    place = next;
  }
  const Place place = all_.kept_.insert(all_.kept_.end(), Kept{this, std::move(piece), now});
  by_bytes_.emplace(bytes, place);
  bytes_ += bytes;
  all_.bytes_ += bytes;
}

std::optional<RecycledMemory::Piece> RecycledMemory::Bin::take(std::uint64_t bytes) {
  const std::lock_guard lock(all_.mutex_);
  const auto [first, last] = by_bytes_.equal_range(bytes);
  if (first == last) return std::nullopt;
  return all_.remove(std::prev(last)->second);
}

bool RecycledMemory::give_back_oldest() {
  std::optional<Piece> gone;
  const std::lock_guard lock(mutex_);
  if (kept_.empty()) return false;
  gone.emplace(remove(kept_.begin()));
  return true;
}

std::vector<RecycledMemory::Piece> RecycledMemory::take_older_than(Clock::time_point then) {
  std::vector<Piece> old;
  const std::lock_guard lock(mutex_);
  while (!kept_.empty() && kept_.front().since < then) old.push_back(remove(kept_.begin()));
  return old;
}

RecycledMemory::Piece RecycledMemory::remove(Bin::Place place) {
  Piece piece = std::move(place->piece);
  Bin& bin = *place->bin;
  const auto [first, last] = bin.by_bytes_.equal_range(piece.bytes());
  for (auto known = first; known != last; ++known) {
    if (known->second != place) continue;
    bin.by_bytes_.erase(known);
    break;
  }
  bin.bytes_ -= piece.bytes();
  bytes_ -= piece.bytes();
  kept_.erase(place);
  return piece;
}

std::uint64_t RecycledMemory::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::size_t RecycledMemory::pieces() const {
  const std::lock_guard lock(mutex_);
  return kept_.size();
}

}  // namespace eagle::server
