// Heap: gives back what the C library keeps of memory that was freed.
//
// It keeps freed memory of small blocks for the next ones: a description of a million nodes that was refused
// would leave half a gigabyte with the worker for ever, in the arena of whichever thread had it.
#pragma once

#include <cstdint>
#include <mutex>

namespace eagle::server {

class Heap {
public:
  // So much may stay.
  static constexpr std::uint64_t may_stay = 64u << 20;

  // Whether it is worth giving back: more than `may_stay` is free, and since it last was so as much was
  // freed, or the process has grown by as much. Quick where it never had much. From one thread, now and then.
  [[nodiscard]] bool has_much_free();
  // Takes as long as there are free blocks. From any thread, each time that it was worth it.
  void give_back();

private:
  std::uint64_t least_ = 0;  // that the process ever had; of who asks
  std::mutex mutex_;
  // Since it was last given back, and what there was less of later. What was in use at that moment and is
  // freed soon is seen because it is looked at afterwards, not before.
  std::uint64_t had_ = 0;
  std::uint64_t free_ = 0;
  bool giving_ = false;
};

}  // namespace eagle::server
