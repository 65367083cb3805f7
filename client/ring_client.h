// RingClient: launches of a session through its ring (proto/ring/layout.h).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "eagle/client/run.h"
#include "engine/base/patience.h"
#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "engine/plane/memory.h"
#include "proto/ring/layout.h"

namespace eagle {

// Thread-safe: each launch has a slot of its own.
class RingClient {
public:
  struct Launch {
    std::uint64_t graph = 0;
    std::int64_t count = 0;
    std::uint64_t launch_id = 0;
    std::chrono::nanoseconds timeout{0};  // 0: none
    bool enqueued = false;
  };
  // What the launching thread does while it waits. `look` is called every few milliseconds and says whether
  // to wait on, to stop (a launch that has not begun then never will), or to give up; `host_call` runs a
  // callable of the client, after which `look` is called again.
  enum class Wish { go_on, stop, give_up };
  struct Caller {
    std::function<Wish()> look;
    std::function<Status(std::uint32_t)> host_call;
    std::function<bool()> wants_to_stop = {};  // asked after a host call, whose reply says so; may be empty
    std::function<void()> before_sleep = {};   // called before the first sleep of a wait; may be empty
  };

  // The descriptors that came with the ring. BAD_MESSAGE for memory that is no ring.
  static StatusOr<std::unique_ptr<RingClient>> open(UniqueFd memory, UniqueFd doorbell);
  RingClient(const RingClient&) = delete;
  RingClient& operator=(const RingClient&) = delete;

  // A launch that is on its way; it has a slot until `finish` or `abandon`.
  struct Posted {
    std::size_t slot = 0;
    std::int64_t count = 0;
    bool rang = false;  // the worker slept
  };
  // Empty when every slot is in use: then the launch is to go over gRPC. From here on the worker may begin.
  std::optional<Posted> post(const Launch& launch);
  // The worker hands over: what is to be enqueued goes over gRPC.
  [[nodiscard]] bool closing() const { return ring().header.closing.load(std::memory_order_seq_cst) != 0; }
  // Waits for the outcome. Empty when the error is too long for a slot: then the launch is to be asked for
  // over gRPC, with its id. The launch's own error. Where `look` gave up: CONNECTION_LOST if nobody has taken
  // the launch, which then never runs, else CANCELLED: the slot is used again once the worker is done with
  // it. The report's host is left open.
  // `answered` (may be null): whether it is the worker's word.
  std::optional<StatusOr<LaunchReport>> finish(const Posted& posted, const Caller& caller,
                                               bool* answered = nullptr);
  // Both.
  std::optional<StatusOr<LaunchReport>> launch(const Launch& launch, const Caller& caller) {
    const std::optional<Posted> posted = post(launch);
    return posted ? finish(*posted, caller) : std::nullopt;
  }
  // Where it has not begun, it never will. True: `finish` then says so, without waiting.
  bool take_back(const Posted& posted);
  // Nobody waits for it: the slot is used again once the worker is done with it.
  void abandon(const Posted& posted);

  // New numbers for Params of a graph: an UpdateRequest (service.proto) as bytes. Empty where it is to go
  // over gRPC: it is too long, the graph too large, every slot in use, or nobody took it before `look` gave
  // up.
  std::optional<Status> update(std::string_view request, const Caller& caller);

private:
  RingClient(plane::Memory memory, UniqueFd doorbell);
  [[nodiscard]] ring::Memory& ring() const { return *reinterpret_cast<ring::Memory*>(memory_.data()); }
  static Status silence();  // why there is no outcome
  std::optional<std::size_t> claim();
  void abandon(std::size_t slot);
  void reclaim();
  // Until the slot is the client's for good: `done`, or `free` where it was taken back; empty where `look`
  // gave up.
  std::optional<ring::State> wait_for_end(ring::Slot& slot, bool rang, const Caller& caller);
  void give_back(std::size_t slot);
  bool ring_doorbell();  // whether it had to
  static bool take_back(ring::Slot& slot);
  template <typename Done>
  bool wait_for_move(const Done& done) const;
  // The word, once it is the client's turn: `free` where the launch was taken back; empty where `look` gave
  // up.
  std::optional<ring::State> wait(ring::Slot& slot, bool rang, const Caller& caller);
  // The word after the reply: `done` where nobody wanted it.
  ring::State answer(ring::Slot& slot, const Caller& caller);

  const plane::Memory memory_;
  const UniqueFd doorbell_;
  // Slots, by their bits.
  static_assert(ring::slot_count == 64);
  std::atomic<std::uint64_t> used_ = 0;
  std::atomic<std::uint64_t> abandoned_ = 0;  // of them, those that nobody waits for
  // A worker that was woken may have been put on this very processor, and has it once this thread sleeps: how
  // long to wait for that one is learned apart.
  Patience patience_, patience_with_sleeper_;
};

}  // namespace eagle
