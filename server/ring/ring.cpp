#include "server/ring/ring.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "engine/base/futex.h"

namespace eagle::server {
namespace {

// Deadlines later than this are none: adding them to a clock might overflow.
constexpr std::int64_t longest_timeout_ns = std::int64_t{1} << 60;
// That a client may name; what is more is none.
constexpr std::uint32_t most_processors = 1 << 20;

Ring::Deadline deadline_of(std::int64_t timeout_ns) {
  if (timeout_ns == 0 || timeout_ns > longest_timeout_ns) return {};
  return std::chrono::steady_clock::now() + std::chrono::nanoseconds(std::max<std::int64_t>(timeout_ns, 0));
}

}  // namespace

StatusOr<std::shared_ptr<Ring>> Ring::create(Start start, Update update, PlaneBudget::Charge charge) {
  EAGLE_ASSIGN_OR_RETURN(plane::Memory memory, plane::Memory::create(sizeof(ring::Memory), "eagle-ring"));
  UniqueFd doorbell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!doorbell.valid()) return Status(Reason::system, std::string("eventfd: ") + std::strerror(errno));
  return std::shared_ptr<Ring>(new Ring(std::move(start), std::move(update), std::move(charge),
                                        std::move(memory), std::move(doorbell)));
}

Ring::Ring(Start start, Update update, PlaneBudget::Charge charge, plane::Memory memory, UniqueFd doorbell)
    : start_(std::move(start)),
      update_(std::move(update)),
      charge_(std::move(charge)),
      memory_(std::move(memory)),
      doorbell_(std::move(doorbell)) {
  auto* const made = new (memory_.data()) ring::Memory;
  made->header.magic_number.set(ring::magic);
  made->header.asleep.store(1, std::memory_order_seq_cst);  // until it is looked at
  for (std::size_t slot = 0; slot < ring::slot_count; ++slot) {
    taken_[slot].ask = [this, slot](std::uint64_t sequence, std::uint32_t call) {
      ask(slot, sequence, call);
    };
    taken_[slot].finish = [this, slot](const LaunchOutcome& outcome) { finish(slot, outcome); };
  }
}

bool Ring::has_work(std::size_t slot) const {
  const auto word = static_cast<ring::State>(ring().slots[slot].word.load(std::memory_order_acquire));
  if (word != ring::State::posted && word != ring::State::replied) return false;
  const Phase phase = taken_[slot].phase.load(std::memory_order_acquire);
  return (word == ring::State::posted && phase == Phase::idle) ||
         (word == ring::State::replied && phase == Phase::asking);
}

bool Ring::pending_soon() const {
  for (std::size_t slot = 0; slot < in_use_; ++slot) {
    if (has_work(slot)) return true;
  }
  return false;
}

bool Ring::pending() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (std::size_t slot = 0; slot < ring::slot_count; ++slot) {
    if (!has_work(slot)) continue;
    in_use_ = std::max(in_use_, slot + 1);
    return true;
  }
  return false;
}

bool Ring::exchange(std::size_t slot, ring::State from, ring::State to) {
  auto expected = static_cast<std::uint32_t>(from);
  return ring().slots[slot].word.compare_exchange_strong(expected, static_cast<std::uint32_t>(to),
                                                         std::memory_order_seq_cst);
}

int Ring::visit(int most) {
  const auto said = std::min<std::size_t>(ring().header.slots.get(), ring::slot_count);
  if (said != std::exchange(said_, said)) in_use_ = std::max(in_use_, said);
  // What was not said, or not yet, and whether fewer are used than were.
  const bool all = ++visits_ % (said == 0 ? visits_where_unsaid : visits_between_all) == 0;
  const std::size_t slots = all ? ring::slot_count : in_use_;
  std::size_t last = few_slots;
  int found = 0;
  std::size_t slot = next_ < slots ? next_ : 0;
  for (std::size_t looked = 0; looked < slots && found < most; ++looked) {
    if (has_work(slot)) {
      const bool idle = taken_[slot].phase.load(std::memory_order_relaxed) == Phase::idle;
      found += (idle ? take(slot) : pass_on_reply(slot)) ? 1 : 0;
      last = std::max(last, slot + 1);
      next_ = (slot + 1) % slots;
    }
    slot = (slot + 1) % slots;
  }
  in_use_ = all && found < most ? last : std::max(in_use_, last);
  return found;
}

bool Ring::take(std::size_t slot) {
  if (!exchange(slot, ring::State::posted, ring::State::taken)) return false;
  const ring::Slot& shared = ring().slots[slot];
  if (shared.kind.get() == static_cast<std::uint64_t>(ring::Kind::update)) {
    take_update(slot);
    return true;
  }
  // Copied once: what is checked is what is run.
  const LaunchRequest request{shared.graph.get(), shared.count.get(), shared.launch_id.get()};
  const Deadline deadline = deadline_of(shared.timeout_ns.get());
  client_processor_ = static_cast<int>(std::min(shared.processor.get(), most_processors)) - 1;
  taken_[slot].phase.store(Phase::running, std::memory_order_release);
  LaunchEvents events;
  events.enqueued = shared.kind.get() == static_cast<std::uint64_t>(ring::Kind::enqueued);
  const auto self = shared_from_this();
  events.host_call = std::shared_ptr<const decltype(Taken::ask)>(self, &taken_[slot].ask);
  events.done = std::shared_ptr<const decltype(Taken::finish)>(self, &taken_[slot].finish);
  taken_[slot].job = start_(request, deadline, std::move(events));
  return true;
}

bool Ring::pass_on_reply(std::size_t slot) {
  if (!exchange(slot, ring::State::replied, ring::State::taken)) return false;
  // A launch that was cancelled meanwhile ends on another thread, which writes the last word.
  Phase asking = Phase::asking;
  if (!taken_[slot].phase.compare_exchange_strong(asking, Phase::running)) return false;
  const ring::Slot& shared = ring().slots[slot];
  Status result;
  const std::uint64_t how = shared.call_failed.get();
  if ((how & 1) != 0) result = {Reason::host_call_failed, shared.reply.get()};
  if (shared.replied_to.get() != taken_[slot].sequence.load(std::memory_order_relaxed)) {
    result = {Reason::bad_message, "the ring's reply is to another host call than the one that is open"};
  }
  if (const auto job = taken_[slot].job.lock()) {
    static_cast<void>(job->answer(taken_[slot].sequence.load(std::memory_order_relaxed), std::move(result),
                                  (how & 2) != 0));
  }
  return true;
}

void Ring::ask(std::size_t slot, std::uint64_t sequence, std::uint32_t call) {
  ring::Slot& shared = ring().slots[slot];
  shared.sequence.set(sequence);
  shared.call.set(call);
  taken_[slot].sequence.store(sequence, std::memory_order_relaxed);
  taken_[slot].phase.store(Phase::asking, std::memory_order_release);
  turn_over(slot, ring::State::host_call);
}

void Ring::finish(std::size_t slot, const LaunchOutcome& outcome) {
  ring::Slot& shared = ring().slots[slot];
  shared.failed.set(outcome.ok() ? 0 : 1);
  if (outcome.ok()) {
    shared.launches.set(outcome->launches);
    shared.threads.set(outcome->threads);
    shared.wall_s.set(outcome->wall_s);
    shared.clamped.set(outcome->counts.clamped);
    shared.zero_divisions.set(outcome->counts.zero_divisions);
    shared.dropped.set(outcome->counts.dropped);
    const std::size_t loops = std::min(outcome->iterations.size(), ring::most_iterations);
    for (std::size_t i = 0; i < loops; ++i) shared.iterations[i].set(outcome->iterations[i]);
    shared.iteration_count.set(loops);
  } else {
    fail(slot, outcome.status());
  }
  taken_[slot].phase.store(Phase::idle, std::memory_order_release);
  turn_over(slot, ring::State::done);
}

void Ring::fail(std::size_t slot, const Status& status) {
  ring::Slot& shared = ring().slots[slot];
  const std::string text = std::string(info(status.reason()).wire_name) + " " + status.message();
  shared.failed.set(1);
  shared.text.set(text);
  shared.text_was_cut.set(ring::cut(text, ring::text_bytes).size() < text.size() ? 1 : 0);
}

void Ring::take_update(std::size_t slot) {
  ring::Slot& shared = ring().slots[slot];
  const std::optional<Status> updated = update_(shared.text.get());  // of a copy
  shared.failed.set(0);
  if (updated && !updated->ok()) fail(slot, *updated);
  if (!updated) {
    shared.failed.set(1);
    shared.text_was_cut.set(1);
  }
  turn_over(slot, ring::State::done);
}

void Ring::turn_over(std::size_t slot, ring::State state) {
  ring::Slot& shared = ring().slots[slot];
  shared.word.store(static_cast<std::uint32_t>(state), std::memory_order_seq_cst);
  if (shared.sleeping.load(std::memory_order_seq_cst) != 0) futex_wake(shared.word);
}

}  // namespace eagle::server
