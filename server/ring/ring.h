// Ring: one session's ring, as the worker sees it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "engine/plane/memory.h"
#include "proto/ring/layout.h"
#include "server/launch_job.h"
#include "server/plane_budget.h"

namespace eagle::server {

// `visit` and what it calls belong to one thread, the executor's; the events of the launches that it starts
// may come from any. Held by shared_ptr: a launch that is still running writes into the memory, whoever else
// has let go.
class Ring : public std::enable_shared_from_this<Ring> {
public:
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;
  // Starts a launch, as LaunchJob::start does. A refusal is told to `events.done`, and null is returned.
  using Start = std::function<std::shared_ptr<LaunchJob>(const LaunchRequest&, Deadline, LaunchEvents)>;

  // Takes new numbers for Params: an UpdateRequest (service.proto) as bytes, from a client. Quick; empty
  // where it would not be.
  using Update = std::function<std::optional<Status>(const std::string&)>;

  // OUT_OF_MEMORY, SYSTEM. `charge`: of its memory.
  static StatusOr<std::shared_ptr<Ring>> create(Start start, Update update, PlaneBudget::Charge charge = {});

  [[nodiscard]] int memory_fd() const { return memory_.fd(); }
  [[nodiscard]] int doorbell() const { return doorbell_.get(); }

  // Starts launches that were posted and passes on replies, at most `most`, going on where the last visit
  // ended. How many there were.
  int visit(int most);
  // Whether there is something for `visit` in the slots that were used of late; `pending` looks at all of
  // them.
  [[nodiscard]] bool pending_soon() const;
  // Whether the client must ring. After `set_asleep(true)`, `pending` tells of what was posted just before.
  void set_asleep(bool asleep) { ring().header.asleep.store(asleep ? 1 : 0, std::memory_order_seq_cst); }
  bool pending();
  // Where the client was when it posted the launch that was taken last, as it says (sched_getcpu); -1: it
  // does not say.
  [[nodiscard]] int client_processor() const { return client_processor_; }
  void set_moving(bool moving) { ring().header.moving.set(moving ? 1 : 0); }
  // Any thread: the daemon is being exchanged, and what is enqueued is to go another way.
  void set_closing() { ring().header.closing.store(1, std::memory_order_seq_cst); }

private:
  static constexpr std::size_t few_slots = 1;
  // Visits from one look at all slots to the next; of a client that does not say how many it uses.
  static constexpr unsigned visits_between_all = 256;
  static constexpr unsigned visits_where_unsaid = 16;
  enum class Phase : std::uint8_t { idle, running, asking };
  // What the worker knows of a slot, whatever the shared memory says.
  struct Taken {
    std::atomic<Phase> phase = Phase::idle;
    std::weak_ptr<LaunchJob> job;  // of the visiting thread
    std::atomic<std::uint64_t> sequence = 0;
    // What a launch is given as its events, which keep the ring.
    std::function<void(std::uint64_t sequence, std::uint32_t call)> ask;
    std::function<void(const LaunchOutcome&)> finish;
  };

  Ring(Start start, Update update, PlaneBudget::Charge charge, plane::Memory memory, UniqueFd doorbell);
  [[nodiscard]] ring::Memory& ring() const { return *reinterpret_cast<ring::Memory*>(memory_.data()); }
  [[nodiscard]] bool has_work(std::size_t slot) const;
  // False: the client, or the end of the launch, was quicker.
  bool take(std::size_t slot);
  bool pass_on_reply(std::size_t slot);
  bool exchange(std::size_t slot, ring::State from, ring::State to);
  void ask(std::size_t slot, std::uint64_t sequence, std::uint32_t call);
  void finish(std::size_t slot, const LaunchOutcome& outcome);
  void fail(std::size_t slot, const Status& status);
  void take_update(std::size_t slot);
  void turn_over(std::size_t slot, ring::State state);

  const Start start_;
  const Update update_;
  const PlaneBudget::Charge charge_;  // given back after the memory
  const plane::Memory memory_;
  const UniqueFd doorbell_;
  std::array<Taken, ring::slot_count> taken_;
  std::size_t next_ = 0;
  // Clients take the lowest slot that is free: few are looked at each time, and all of them now and then.
  std::size_t in_use_ = few_slots;  // the first so many
  std::size_t said_ = 0;            // of them, by the client
  unsigned visits_ = 0;
  int client_processor_ = -1;
};

}  // namespace eagle::server
