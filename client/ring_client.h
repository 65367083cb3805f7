// RingClient: launches of a session through its ring (proto/ring/layout.h).
#pragma once

#include <atomic>
#include <bitset>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "eagle/client/run.h"
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
  };
  // What the launching thread does while it waits. `look` is called every few milliseconds and says whether
  // to wait on, to stop (a launch that has not begun then never will), or to give up; `host_call` runs a
  // callable of the client, after which `look` is called again.
  enum class Wish { go_on, stop, give_up };
  struct Caller {
    std::function<Wish()> look;
    std::function<Status(std::uint32_t)> host_call;
    std::function<bool()> wants_to_stop = {};  // asked after a host call, whose reply says so; may be empty
  };

  // The descriptors that came with the ring. BAD_MESSAGE for memory that is no ring.
  static StatusOr<std::unique_ptr<RingClient>> open(UniqueFd memory, UniqueFd doorbell);
  RingClient(const RingClient&) = delete;
  RingClient& operator=(const RingClient&) = delete;

  // Empty when every slot is in use, or when the error is too long for a slot: then the launch is to go over
  // gRPC, with the same id. The launch's own error. Where `look` gave up: CONNECTION_LOST if nobody has taken
  // the launch, which then never runs, else CANCELLED: the slot is lost with it, because the worker may still
  // write there. The report's host is left open.
  std::optional<StatusOr<LaunchReport>> launch(const Launch& launch, const Caller& caller);

private:
  RingClient(plane::Memory memory, UniqueFd doorbell);
  [[nodiscard]] ring::Memory& ring() const { return *reinterpret_cast<ring::Memory*>(memory_.data()); }
  std::optional<std::size_t> claim();
  void give_back(std::size_t slot);
  void ring_doorbell();
  [[nodiscard]] std::int64_t time_to_spin();
  bool spin(const ring::Slot& slot);
  static bool take_back(ring::Slot& slot);
  // The word, once it is the client's turn: `free` where the launch was taken back; empty where `look` gave
  // up.
  std::optional<ring::State> wait(ring::Slot& slot, const Caller& caller);
  // The word after the reply: `done` where nobody wanted it.
  ring::State answer(ring::Slot& slot, const Caller& caller);

  const plane::Memory memory_;
  const UniqueFd doorbell_;
  std::mutex mutex_;
  std::bitset<ring::slot_count> used_;
  std::atomic<std::int64_t> spin_ns_;  // how long it has been worth to wait without sleeping
  std::atomic<std::uint64_t> waits_ = 0;
};

}  // namespace eagle
