// Memory: the bytes behind a plane, owned and mapped.
//
// Three ways to have some: made here as a sealed memfd, mapped from a descriptor that somebody passed, or
// borrowed from the caller (in process). Movable, not copyable; unmaps and closes when it goes. The bytes
// may be read and written by any thread; ordering is the graph's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"

namespace eagle::plane {

class Memory {
public:
  enum class Pages : std::uint8_t { when_touched, populated };
  enum class PageSize : std::uint8_t { usual, huge };  // huge: where the system gives some

  Memory() = default;
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  // Fresh zeroed bytes in a memfd of mode 0600, reserved with fallocate, mapped populated, then sealed
  // against shrinking, growing and further seals. `bytes` is at least 1; OUT_OF_MEMORY, SYSTEM. The system
  // finds about a gigabyte a second: `given_up` (may be empty) is asked from time to time whether anybody
  // still wants it, and CANCELLED says that nobody does.
  static StatusOr<Memory> create(std::uint64_t bytes, std::string_view label,
                                 const std::function<bool()>& given_up = {},
                                 PageSize pages = PageSize::usual);
  // Maps a received memfd whole; `populated`: with every page at once, which is quicker than at each first
  // touch. Refuses (BAD_MESSAGE) one that is not a memfd of exactly `bytes` sealed against shrinking and
  // growing: an unsealed file could be cut short under its readers.
  static StatusOr<Memory> map(UniqueFd fd, std::uint64_t bytes, Pages pages = Pages::when_touched);
  // The same of a descriptor that was granted for reading only; stores to it end the process.
  static StatusOr<Memory> map_read_only(UniqueFd fd, std::uint64_t bytes);
  // Addresses for `bytes` that lie somewhere else, in no file: zeros of this process's own, which take memory
  // only where they are touched.
  static StatusOr<Memory> stand_in(std::uint64_t bytes);
  // The caller's bytes; the caller keeps them alive.
  static Memory borrow(void* data, std::uint64_t bytes);

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] PageSize page_size() const { return page_size_; }  // that was asked for
  // Frees the bytes of a memfd, also where somebody else maps them: they are zeros there and here from now
  // on.
  void discard() const;
  // The bytes on their way into a fresh memfd.
  class Move;
  // Finds the memory for it, which takes about a second for a gigabyte. Only for memory that `create` made,
  // and that outlives the move. OUT_OF_MEMORY, SYSTEM.
  [[nodiscard]] StatusOr<Move> begin_move(std::string_view label) const;
  // Once all is copied: the fresh memfd is mapped at the address of the old one, which keeps what it holds;
  // whoever has a descriptor of it may empty it. Stores that others made meanwhile may be lost. Who calls
  // `fd` at the same time holds `guard`, which is taken for the moment in which the descriptor changes.
  Status finish_move(Move move, std::mutex& guard);
  // Maps a received memfd in place of what is mapped at `data`, whose owner then unmaps it as before.
  static Status map_over(std::byte* data, std::uint64_t bytes, const UniqueFd& fd);

  // The memfd, or -1 when borrowed. Stays owned here.
  [[nodiscard]] int fd() const { return fd_.get(); }

private:
  static StatusOr<Memory> map_with(UniqueFd fd, std::uint64_t bytes, bool writable);

  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
  bool mapped_ = false;
  PageSize page_size_ = PageSize::usual;
  UniqueFd fd_;
};

class Memory::Move {
public:
  // Copies so many more bytes. Whether all have been copied.
  bool copy(std::uint64_t bytes);

private:
  friend class Memory;
  Move(const std::byte* source, Memory fresh) : source_(source), fresh_(std::move(fresh)) {}
  const std::byte* source_;
  Memory fresh_;
  std::uint64_t copied_ = 0;
};

}  // namespace eagle::plane
