#include "server/heap.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace eagle::server {
namespace {

// Memory of this process alone: planes are files.
std::uint64_t own_bytes() {
  std::uint64_t all = 0, resident = 0, of_files = 0;
  std::ifstream("/proc/self/statm") >> all >> resident >> of_files;
  return (resident - std::min(resident, of_files)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

bool Heap::has_much_free() {
  const std::uint64_t has = own_bytes();
  least_ = least_ == 0 ? has : std::min(least_, has);
  const std::lock_guard lock(mutex_);
  if (giving_) return false;
  had_ = had_ == 0 ? has : std::min(had_, has);
  if (has < least_ + may_stay) return false;
  // What was given back still counts as free: it is the change that tells.
  const std::uint64_t free = ::mallinfo2().fordblks;
  free_ = std::min(free_, free);
  if (free < may_stay || (has < had_ + may_stay && free < free_ + may_stay)) return false;
  giving_ = true;
  return true;
}

void Heap::give_back() {
  ::malloc_trim(0);
  const std::lock_guard lock(mutex_);
  had_ = own_bytes();
  free_ = ::mallinfo2().fordblks;
  giving_ = false;
}

}  // namespace eagle::server
