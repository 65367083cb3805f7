#include "client/ring_client.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "engine/base/futex.h"
#include "engine/base/spin.h"
#include "engine/base/ticks.h"
#include "engine/run/host.h"

namespace eagle {
namespace {

using ring::State;

// How often a launch that sleeps looks around.
constexpr std::chrono::milliseconds ring_look_interval{4};
// Waiting without sleeping pays where the worker is quick; longer than this a system call is cheap beside it.
constexpr double longest_spin_s = 50e-6;
constexpr double shortest_spin_s = 2e-6;
// While the worker moves to another processor; where that one is busy it takes longer.
constexpr double longest_move_s = 1e-3;

constexpr std::uint64_t bit(std::size_t slot) { return std::uint64_t{1} << slot; }

// With one processor, whoever is waited for could not run.
Patience usual_patience() {
  return run::allowed_threads() > 1 ? Patience(shortest_spin_s, longest_spin_s) : Patience(0, 0);
}

// Whether it is the worker's turn.
bool is_the_workers(std::uint32_t word) {
  const auto state = static_cast<State>(word);
  return state == State::posted || state == State::taken || state == State::replied;
}

Status error_of(const ring::Slot& slot) {
  const std::string text = slot.text.get();
  const std::size_t blank = text.find(' ');
  return {reason_named(text.substr(0, blank)), blank == std::string::npos ? text : text.substr(blank + 1)};
}

LaunchReport report_of(const ring::Slot& slot) {
  LaunchReport report;
  report.launches = slot.launches.get();
  report.threads = slot.threads.get();
  report.wall_s = slot.wall_s.get();
  report.counts.clamped = slot.clamped.get();
  report.counts.zero_divisions = slot.zero_divisions.get();
  report.counts.dropped = slot.dropped.get();
  const auto loops = std::min<std::uint64_t>(slot.iteration_count.get(), ring::most_iterations);
  for (std::size_t i = 0; i < loops; ++i) report.iterations.push_back(slot.iterations[i].get());
  return report;
}

}  // namespace

StatusOr<std::unique_ptr<RingClient>> RingClient::open(UniqueFd memory, UniqueFd doorbell) {
  EAGLE_ASSIGN_OR_RETURN(plane::Memory mapped, plane::Memory::map(std::move(memory), sizeof(ring::Memory)));
  if (reinterpret_cast<const ring::Memory*>(mapped.data())->header.magic_number.get() != ring::magic) {
    return Status(Reason::bad_message, "the memory that the daemon sent is no ring that this client knows");
  }
  return std::unique_ptr<RingClient>(new RingClient(std::move(mapped), std::move(doorbell)));
}

RingClient::RingClient(plane::Memory memory, UniqueFd doorbell)
    : memory_(std::move(memory)),
      doorbell_(std::move(doorbell)),
      patience_(usual_patience()),
      patience_with_sleeper_(usual_patience()) {}

// The lowest free slot: those that were used last are in the caches.
std::optional<std::size_t> RingClient::claim() {
  if (abandoned_.load(std::memory_order_relaxed) != 0) reclaim();
  std::uint64_t used = used_.load(std::memory_order_relaxed);
  while (~used != 0) {
    const auto slot = static_cast<std::size_t>(std::countr_one(used));
    if (used_.compare_exchange_weak(used, used | bit(slot), std::memory_order_acquire)) {
      // Of two threads one may say too little: then the worker finds the other's slot later.
      if (ring().header.slots.get() <= slot) ring().header.slots.set(static_cast<std::uint32_t>(slot + 1));
      return slot;
    }
  }
  return {};
}

void RingClient::give_back(std::size_t slot) {
  ring().slots[slot].word.store(static_cast<std::uint32_t>(State::free), std::memory_order_release);
  used_.fetch_and(~bit(slot), std::memory_order_release);
}

bool RingClient::ring_doorbell() {
  if (ring().header.asleep.load(std::memory_order_seq_cst) == 0) return false;
  const std::uint64_t one = 1;
  static_cast<void>(::write(doorbell_.get(), &one, sizeof one));
  return true;
}

// What nobody has begun.
bool RingClient::take_back(ring::Slot& slot) {
  auto posted = static_cast<std::uint32_t>(State::posted);
  return slot.word.compare_exchange_strong(posted, static_cast<std::uint32_t>(State::free),
                                           std::memory_order_seq_cst);
}

// Whether it came true meanwhile, or soon afterwards.
template <typename Done>
bool RingClient::wait_for_move(const Done& done) const {
  bool moving = ring().header.moving.get() != 0;
  if (!moving) return false;
  Ticks until = ticks_now() + ticks_of(longest_move_s);
  while (!done()) {
    if (ticks_now() >= until) return false;
    if (moving && ring().header.moving.get() == 0) {
      moving = false;
      until = ticks_now() + ticks_of(longest_spin_s);
    }
    pause_a_little();
  }
  return true;
}

std::optional<State> RingClient::wait(ring::Slot& slot, bool rang, const Caller& caller) {
  const auto is_mine = [&] { return !is_the_workers(slot.word.load(std::memory_order_acquire)); };
  bool mine = (rang ? patience_with_sleeper_ : patience_).wait(is_mine) || wait_for_move(is_mine);
  if (!mine && caller.before_sleep) caller.before_sleep();
  while (!mine) {
    const std::uint32_t word = slot.word.load(std::memory_order_acquire);
    slot.sleeping.store(1, std::memory_order_seq_cst);
    if (is_the_workers(word)) futex_wait(slot.word, word, ring_look_interval);
    slot.sleeping.store(0, std::memory_order_relaxed);
    mine = !is_the_workers(slot.word.load(std::memory_order_acquire));
    if (mine) break;
    const Wish wish = caller.look();
    if (wish == Wish::give_up) return {};
    if (wish == Wish::stop && take_back(slot)) return State::free;
  }
  return static_cast<State>(slot.word.load(std::memory_order_acquire));
}

State RingClient::answer(ring::Slot& slot, const Caller& caller) {
  const std::uint64_t sequence = slot.sequence.get();
  const Status called = caller.host_call(static_cast<std::uint32_t>(slot.call.get()));
  slot.call_failed.set((called.ok() ? 0u : 1u) | (caller.wants_to_stop && caller.wants_to_stop() ? 2u : 0u));
  slot.reply.set(called.message());
  slot.replied_to.set(sequence);
  auto word = static_cast<std::uint32_t>(State::host_call);
  const bool wanted = slot.word.compare_exchange_strong(word, static_cast<std::uint32_t>(State::replied),
                                                        std::memory_order_seq_cst);
  return wanted ? State::replied : static_cast<State>(word);
}

// Whoever takes the bit of a slot away is the one who looks at it: nobody else frees or loses it meanwhile.
void RingClient::reclaim() {
  for (std::size_t slot = 0; slot < ring::slot_count; ++slot) {
    if ((abandoned_.load(std::memory_order_relaxed) & bit(slot)) == 0) continue;
    if ((abandoned_.fetch_and(~bit(slot), std::memory_order_acq_rel) & bit(slot)) == 0) continue;
    auto done = static_cast<std::uint32_t>(State::done);
    const bool over = ring().slots[slot].word.compare_exchange_strong(
        done, static_cast<std::uint32_t>(State::free), std::memory_order_acq_rel);
    if (over || static_cast<State>(done) == State::free) {
      used_.fetch_and(~bit(slot), std::memory_order_release);
    } else {
      abandon(slot);
    }
  }
}

std::optional<RingClient::Posted> RingClient::post(const Launch& launch) {
  const std::optional<std::size_t> claimed = claim();
  if (!claimed) return {};
  ring::Slot& slot = ring().slots[*claimed];
  slot.kind.set(static_cast<std::uint64_t>(launch.enqueued ? ring::Kind::enqueued : ring::Kind::launch));
  slot.graph.set(launch.graph);
  slot.count.set(launch.count);
  slot.launch_id.set(launch.launch_id);
  slot.timeout_ns.set(launch.timeout.count());
  slot.processor.set(static_cast<std::uint32_t>(::sched_getcpu() + 1));
  slot.word.store(static_cast<std::uint32_t>(State::posted), std::memory_order_seq_cst);
  return Posted{*claimed, launch.count, ring_doorbell()};
}

Status RingClient::silence() {
  return {Reason::cancelled, "the daemon does not react, and how far it came is not known"};
}

bool RingClient::take_back(const Posted& posted) {
  auto word = static_cast<std::uint32_t>(State::posted);
  return ring().slots[posted.slot].word.compare_exchange_strong(word, static_cast<std::uint32_t>(State::free),
                                                                std::memory_order_seq_cst);
}

void RingClient::abandon(const Posted& posted) {
  static_cast<void>(take_back(posted));
  abandon(posted.slot);
}

void RingClient::abandon(std::size_t slot) { abandoned_.fetch_or(bit(slot), std::memory_order_release); }

std::optional<State> RingClient::wait_for_end(ring::Slot& slot, bool rang, const Caller& caller) {
  for (;;) {
    std::optional<State> state = wait(slot, rang, caller);
    if (state != State::host_call) return state;
    state = answer(slot, caller);
    if (state != State::replied) return state;
    rang = ring_doorbell();
  }
}

std::optional<StatusOr<LaunchReport>> RingClient::finish(const Posted& posted, const Caller& caller,
                                                         bool* answered) {
  ring::Slot& slot = ring().slots[posted.slot];
  const std::optional<State> state = wait_for_end(slot, posted.rang, caller);
  if (answered != nullptr) *answered = state.has_value();
  if (!state && take_back(slot)) {
    give_back(posted.slot);
    return Status(Reason::connection_lost, "nobody took the launch");
  }
  if (!state) {  // the slot is used again once the worker is done with it
    abandon(posted.slot);
    return silence();
  }
  if (*state == State::free) {
    give_back(posted.slot);
    return Status(Reason::cancelled, "the launch was cancelled before it began; 0 of " +
                                         std::to_string(posted.count) + " replays were whole");
  }
  if (*state != State::done) {
    return Status(Reason::bad_message,
                  "the ring is in a state that it cannot be in; something wrote over it");
  }
  std::optional<StatusOr<LaunchReport>> outcome;
  if (slot.failed.get() == 0) {
    outcome = report_of(slot);
  } else if (slot.text_was_cut.get() == 0) {
    outcome = error_of(slot);
  }
  give_back(posted.slot);
  return outcome;
}

std::optional<Status> RingClient::update(std::string_view request, const Caller& caller) {
  if (request.size() > ring::text_bytes) return {};
  const std::optional<std::size_t> claimed = claim();
  if (!claimed) return {};
  ring::Slot& slot = ring().slots[*claimed];
  slot.kind.set(static_cast<std::uint64_t>(ring::Kind::update));
  slot.text.set_bytes(request);
  slot.word.store(static_cast<std::uint32_t>(State::posted), std::memory_order_seq_cst);
  const std::optional<State> state = wait(slot, ring_doorbell(), caller);
  if (!state && take_back(slot)) {
    give_back(*claimed);
    return {};
  }
  if (!state) {  // the slot is used again once the worker is done with it
    abandon(*claimed);
    return silence();
  }
  std::optional<Status> outcome;
  if (*state == State::done && slot.failed.get() == 0) {
    outcome = Status();
  } else if (*state == State::done && slot.text_was_cut.get() == 0) {
    outcome = error_of(slot);
  }
  give_back(*claimed);
  return outcome;
}

}  // namespace eagle
