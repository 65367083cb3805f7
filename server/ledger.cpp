#include "server/ledger.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "server/secret.h"

namespace eagle::server {
namespace {

constexpr std::size_t most_lines = 8192;  // as many as there may be jobs
constexpr std::size_t noted_ranges = 14;
constexpr std::size_t windows = 4096;  // as many as there may be sessions
constexpr std::uint64_t window_ids = 64;

enum class State : std::uint32_t { free = 0, noted = 1, computing = 2, on_gpu = 3 };

}  // namespace

// What a dead process has stored is there for the next one, in the order of the program.
struct Ledger::Entry {
  std::atomic<State> state{};
  std::uint32_t ranges = 0;  // more than there is room for: all that the session has
  std::uint64_t session = 0;
  GraphHash hash{};
  std::array<Range, noted_ranges> written;
};

// The last launches that have begun: bit i is that of `highest - i`. While it is being changed it says
// nothing.
struct Ledger::Window {
  std::atomic<std::uint64_t> session;  // 0: free
  std::atomic<std::uint64_t> changing;
  std::atomic<std::uint64_t> highest;
  std::atomic<std::uint64_t> bits;
};

struct Ledger::Contents {
  std::array<Entry, most_lines> lines;
  std::array<Window, windows> begun;
};

// The formats before this one: fewer lines, and at first nothing else.
struct Ledger::FewLines {
  std::array<Entry, 2048> lines;
};
struct Ledger::FewerLines {
  FewLines few;
  std::array<Window, windows> begun;
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
  static_assert(sizeof(Entry) == 480 && sizeof(Window) == 32);
  EAGLE_ASSIGN_OR_RETURN(plane::Memory memory, plane::Memory::create(sizeof(Contents), "eagled-ledger"));
  return Ledger(std::move(memory));
}

StatusOr<Ledger> Ledger::open(UniqueFd fd) {
  EAGLE_ASSIGN_OR_RETURN(plane::Memory memory, plane::Memory::map(std::move(fd), sizeof(Contents)));
  return Ledger(std::move(memory));
}

StatusOr<Ledger> Ledger::adopt(UniqueFd fd) {
  struct stat file {};
  if (::fstat(fd.get(), &file) != 0) {
    return Status(Reason::system, std::string("the ledger: fstat: ") + std::strerror(errno));
  }
  const auto bytes = static_cast<std::uint64_t>(file.st_size);
  if (bytes != sizeof(FewLines) && bytes != sizeof(FewerLines)) return open(std::move(fd));
  EAGLE_ASSIGN_OR_RETURN(const plane::Memory older, plane::Memory::map(std::move(fd), bytes));
  EAGLE_ASSIGN_OR_RETURN(Ledger ledger, create());
  std::byte* const to = ledger.memory_.data();
  std::memcpy(to + offsetof(Contents, lines), older.data(), sizeof(FewLines));
  if (bytes == sizeof(FewLines)) return ledger;
  std::memcpy(to + offsetof(Contents, begun), older.data() + sizeof(FewLines), sizeof(Contents::begun));
  return Ledger(std::move(ledger.memory_));  // which finds the windows
}

// A memfd begins as zeros: lines that are free.
Ledger::Ledger(plane::Memory memory) : memory_(std::move(memory)), lines_(std::make_unique<Lines>()) {
  for (std::size_t i = most_lines; i > 0; --i) free_.push_back(i - 1);
  for (std::size_t i = windows; i > 0; --i) {
    const std::uint64_t session = contents().begun[i - 1].session.load(std::memory_order_acquire);
    if (session == 0 || !unclaimed_.emplace(session, i - 1).second) free_windows_.push_back(i - 1);
  }
}

Ledger::Contents& Ledger::contents() const { return *reinterpret_cast<Contents*>(memory_.data()); }

std::vector<Ledger::Cut> Ledger::cut_off() const {
  std::vector<Cut> cut;
  for (const Entry& entry : contents().lines) {
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
  for (const Entry& entry : contents().lines) {
    const State state = entry.state.load(std::memory_order_acquire);
    if (state == State::computing || state == State::on_gpu) running.push_back(entry.hash);
  }
  return running;
}

std::vector<GraphHash> Ledger::take_running() {
  std::vector<GraphHash> taken, on_gpus;
  for (Entry& entry : contents().lines) {
    for (const auto& [state, into] : {std::pair(State::computing, &taken), {State::on_gpu, &on_gpus}}) {
      State now = state;
      if (entry.state.compare_exchange_strong(now, State::noted, std::memory_order_acq_rel))
        into->push_back(entry.hash);
    }
  }
  return taken.empty() ? on_gpus : taken;
}

void Ledger::clear() {
  for (Entry& entry : contents().lines) entry.state.store(State::free, std::memory_order_release);
}

Ledger::Line Ledger::note(std::uint64_t session, const GraphHash& hash, std::span<const Range> written) {
  Line line;
  line.index_ = lines_->last.exchange(Lines::none, std::memory_order_acquire);
  if (line.index_ == Lines::none) {
    const std::lock_guard lock(lines_->mutex);
    if (free_.empty()) return line;
    line.index_ = free_.back();
    free_.pop_back();
  }
  line.ledger_ = this;
  Entry& entry = contents().lines[line.index_];
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

void Ledger::Line::computes(bool now, bool on_gpu) {
  if (ledger_ == nullptr) return;
  const State state = !now ? State::noted : on_gpu ? State::on_gpu : State::computing;
  ledger_->contents().lines[index_].state.store(state, std::memory_order_release);
}

void Ledger::Line::cross_out() {
  Ledger* const ledger = std::exchange(ledger_, nullptr);
  if (ledger == nullptr) return;
  ledger->contents().lines[index_].state.store(State::free, std::memory_order_release);
  std::size_t none = Lines::none;
  if (ledger->lines_->last.compare_exchange_strong(none, index_, std::memory_order_release)) return;
  const std::lock_guard lock(ledger->lines_->mutex);
  ledger->free_.push_back(index_);
}

Ledger::Begun Ledger::begun(std::uint64_t session, bool left) {
  Begun begun;
  const std::lock_guard lock(lines_->mutex);
  if (const auto known = unclaimed_.find(session); known != unclaimed_.end()) {
    begun.index_ = known->second;
    unclaimed_.erase(known);
  } else {
    if (left || free_windows_.empty()) return begun;
    begun.index_ = free_windows_.back();
    free_windows_.pop_back();
    Window& window = contents().begun[begun.index_];
    window.highest.store(0, std::memory_order_relaxed);
    window.bits.store(0, std::memory_order_relaxed);
    window.changing.store(0, std::memory_order_relaxed);
    window.session.store(session, std::memory_order_release);
  }
  begun.ledger_ = this;
  return begun;
}

void Ledger::forget_unclaimed() {
  const std::lock_guard lock(lines_->mutex);
  for (const auto& [session, index] : unclaimed_) {
    contents().begun[index].session.store(0, std::memory_order_release);
    free_windows_.push_back(index);
  }
  unclaimed_.clear();
}

Ledger::Begun::~Begun() {
  if (ledger_ == nullptr) return;
  const std::lock_guard lock(ledger_->lines_->mutex);
  ledger_->contents().begun[index_].session.store(0, std::memory_order_release);
  ledger_->free_windows_.push_back(index_);
}

void Ledger::Begun::note(std::uint64_t launch_id) {
  if (ledger_ == nullptr || launch_id == 0) return;
  Window& window = ledger_->contents().begun[index_];
  const std::uint64_t highest = window.highest.load(std::memory_order_relaxed);
  const std::uint64_t bits = window.bits.load(std::memory_order_relaxed);
  if (launch_id <= highest) {
    const std::uint64_t back = highest - launch_id;
    if (back < window_ids) window.bits.store(bits | std::uint64_t{1} << back, std::memory_order_release);
    return;
  }
  const std::uint64_t ahead = launch_id - highest;
  window.changing.store(1, std::memory_order_release);
  window.bits.store((ahead < window_ids ? bits << ahead : 0) | 1, std::memory_order_release);
  window.highest.store(launch_id, std::memory_order_release);
  window.changing.store(0, std::memory_order_release);
}

bool Ledger::Begun::may_have(std::uint64_t launch_id) const {
  if (ledger_ == nullptr) return true;
  const Window& window = ledger_->contents().begun[index_];
  const std::uint64_t highest = window.highest.load(std::memory_order_acquire);
  const std::uint64_t bits = window.bits.load(std::memory_order_acquire);
  // Another thread may change it meanwhile; it then says that nothing is certain.
  if (window.changing.load(std::memory_order_acquire) != 0) return true;
  if (window.highest.load(std::memory_order_acquire) != highest) return true;
  if (launch_id > highest) return false;
  return highest - launch_id >= window_ids || (bits >> (highest - launch_id) & 1) != 0;
}

}  // namespace eagle::server
