// LocalMemory: the bytes of one session's arrays in this process, used again where that is quicker.
//
// The system finds and clears about ten gigabytes a second with huge pages and one without; memory that is
// there already is written three times as fast. So large blocks are kept when they are given back, as the
// daemon keeps those of a session (docs/design/recycled_memory.md). The system may take the pages of what is
// kept whenever it is short (MADV_FREE), so that keeping costs nobody anything.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>

#include "eagle/client/array.h"
#include "engine/base/process.h"
#include "engine/base/status.h"

namespace eagle {

// Thread-safe. Held by shared_ptr: blocks keep it.
class LocalMemory : public std::enable_shared_from_this<LocalMemory> {
public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t most_kept_bytes = 512u << 20;
  static constexpr std::size_t most_kept = 32;
  static constexpr std::chrono::seconds longest_kept{10};  // looked at when blocks come and go

  // Bytes at a multiple of 64, apart from those of other blocks (engine/plane/stagger.h). Small blocks come
  // from the heap, large ones from the kernel, which makes their pages when they are first touched.
  class Block {
  public:
    Block(Block&& other) noexcept;
    Block& operator=(Block&&) = delete;
    ~Block();
    [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(memory_) + lead_; }

  private:
    friend LocalMemory;
    Block() = default;
    void* memory_ = nullptr;
    std::uint64_t mapped_ = 0;  // bytes; 0: from the heap
    std::uint64_t lead_ = 0;    // before the first byte of the array
    std::shared_ptr<LocalMemory> home_;
  };

  ~LocalMemory() { close(); }
  // bytes >= 1. `number`: of the array among those of its session. OUT_OF_MEMORY.
  StatusOr<Block> allocate(std::uint64_t bytes, std::uint64_t number, Contents contents,
                           Clock::time_point now = Clock::now());
  // Gives back what is kept, and keeps nothing from now on.
  void close();
  [[nodiscard]] std::uint64_t kept_bytes() const;

private:
  struct Kept {
    void* memory = nullptr;
    std::uint64_t bytes = 0;
    Clock::time_point since;
  };
  void* take(std::uint64_t bytes, Clock::time_point now);  // null: there is none
  void keep(void* memory, std::uint64_t bytes, Clock::time_point now);
  // With the lock held: moves what is to go to `gone`, which is freed without it.
  void drop_old(Clock::time_point now, std::list<Kept>& gone);
  static void unmap(const std::list<Kept>& gone);

  const pid_t owner_ = this_process();  // in the child of a fork nothing is kept, and nothing locked
  mutable std::mutex mutex_;
  std::list<Kept> kept_;  // the oldest first
  std::uint64_t kept_bytes_ = 0;
  bool closed_ = false;
};

}  // namespace eagle
