#include "server/ledger.h"

#include <algorithm>
#include <atomic>

#include "server/secret.h"

namespace eagle::server {
namespace {

constexpr std::size_t lines = 2048;
constexpr std::size_t noted_ranges = 14;

enum class State : std::uint32_t { free = 0, noted = 1, computing = 2 };

}  // namespace

// What a dead process has stored is there for the next one, in the order of the program.
struct Ledger::Entry {
  std::atomic<State> state{};
  std::uint32_t ranges = 0;  // more than there is room for: all that the session has
  std::uint64_t session = 0;
  GraphHash hash{};
  std::array<Range, noted_ranges> written;
};

struct Ledger::Entries {
  std::array<Entry, lines> all;
};

std::string text_of(const GraphHash& hash) { return to_hex(hash); }

std::string text_of(const std::vector<Ledger::Range>& ranges) {
  std::string text;
  for (const Ledger::Range& range : ranges) {
    text += (text.empty() ? "plane " : ", plane ") + std::to_string(range.plane.id) + " bytes " +
            std::to_string(range.offset) + " to " + std::to_string(range.offset + range.bytes);
  }
  return text;
}

void add_range(std::vector<Ledger::Range>& ranges, const graph::PlaneId& plane, const plane::View& view) {
  const plane::Extent extent = plane::extent(view);
  if (extent.first == extent.last) return;
  // A line says "too many" of more than it has room for, so that one more than that is as good as all:
  // looking for a range among thousands, for each of them, would make building a graph quadratic.
  if (ranges.size() > noted_ranges) return;
  const Ledger::Range range{plane, static_cast<std::uint64_t>(extent.first),
                            static_cast<std::uint64_t>(extent.last - extent.first)};
  if (std::find(ranges.begin(), ranges.end(), range) == ranges.end()) ranges.push_back(range);
}

StatusOr<Ledger> Ledger::create() {
  static_assert(sizeof(Entry) == 480);
  EAGLE_ASSIGN_OR_RETURN(plane::Memory memory, plane::Memory::create(sizeof(Entries), "eagled-ledger"));
  return Ledger(std::move(memory));
}

StatusOr<Ledger> Ledger::open(UniqueFd fd) {
  EAGLE_ASSIGN_OR_RETURN(plane::Memory memory, plane::Memory::map(std::move(fd), sizeof(Entries)));
  return Ledger(std::move(memory));
}

// A memfd begins as zeros: lines that are free.
Ledger::Ledger(plane::Memory memory) : memory_(std::move(memory)), mutex_(std::make_unique<std::mutex>()) {
  for (std::size_t i = lines; i > 0; --i) free_.push_back(i - 1);
}

Ledger::Entries& Ledger::entries() const { return *reinterpret_cast<Entries*>(memory_.data()); }

std::vector<Ledger::Cut> Ledger::cut_off() const {
  std::vector<Cut> cut;
  for (const Entry& entry : entries().all) {
    if (entry.state.load(std::memory_order_acquire) == State::free) continue;
    Cut& one = cut.emplace_back();
    one.session = entry.session;
    one.all_planes = entry.ranges > noted_ranges;
    const std::size_t count = std::min<std::size_t>(entry.ranges, noted_ranges);
    one.written.assign(entry.written.begin(), entry.written.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return cut;
}

std::vector<GraphHash> Ledger::running() const {
  std::vector<GraphHash> running;
  for (const Entry& entry : entries().all) {
    if (entry.state.load(std::memory_order_acquire) == State::computing) running.push_back(entry.hash);
  }
  return running;
}

std::vector<GraphHash> Ledger::take_running() {
  std::vector<GraphHash> taken = running();
  for (Entry& entry : entries().all) {
    State computing = State::computing;
    entry.state.compare_exchange_strong(computing, State::noted, std::memory_order_acq_rel);
  }
  return taken;
}

void Ledger::clear() {
  for (Entry& entry : entries().all) entry.state.store(State::free, std::memory_order_release);
}

Ledger::Line Ledger::note(std::uint64_t session, const GraphHash& hash, std::span<const Range> written) {
  Line line;
  {
    const std::lock_guard lock(*mutex_);
    if (free_.empty()) return line;
    line.index_ = free_.back();
    free_.pop_back();
  }
  line.ledger_ = this;
  Entry& entry = entries().all[line.index_];
  entry.session = session;
  entry.hash = hash;
  entry.ranges = static_cast<std::uint32_t>(written.size());
  const std::size_t count = std::min(written.size(), noted_ranges);
  std::copy_n(written.begin(), count, entry.written.begin());
  entry.state.store(State::noted, std::memory_order_release);
  return line;
}

Ledger::Line& Ledger::Line::operator=(Line&& other) noexcept {
  if (this == &other) return *this;
  cross_out();
  ledger_ = std::exchange(other.ledger_, nullptr);
  index_ = other.index_;
  return *this;
}

void Ledger::Line::computes(bool now) {
  if (ledger_ == nullptr) return;
  ledger_->entries().all[index_].state.store(now ? State::computing : State::noted,
                                             std::memory_order_release);
}

void Ledger::Line::cross_out() {
  Ledger* const ledger = std::exchange(ledger_, nullptr);
  if (ledger == nullptr) return;
  ledger->entries().all[index_].state.store(State::free, std::memory_order_release);
  const std::lock_guard lock(*ledger->mutex_);
  ledger->free_.push_back(index_);
}

}  // namespace eagle::server
