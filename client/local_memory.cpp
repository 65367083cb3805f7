#include "client/local_memory.h"

#include <sys/mman.h>

#include <cstring>
#include <iterator>
#include <new>
#include <string>
#include <utility>

#include "engine/plane/huge_pages.h"
#include "engine/plane/stagger.h"

namespace eagle {
namespace {

constexpr std::align_val_t heap_alignment{64};
constexpr std::uint64_t mapped_from = 256u << 10;
constexpr std::uint64_t huge_from = 4u << 20;                 // where huge pages pay, as for numpy
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 62;  // which no system has

// One page more than the array has, so that it may begin anywhere in the first one: blocks for equal arrays
// are equal.
constexpr std::uint64_t mapped_bytes(std::uint64_t bytes) {
  return (bytes + plane::stagger::page - 1) / plane::stagger::page * plane::stagger::page +
         plane::stagger::page;
}

void* map(std::uint64_t bytes, bool huge) {
  void* const found = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) return nullptr;
  if (huge) plane::ask_for_huge_pages(static_cast<std::byte*>(found), bytes);
  return found;
}

}  // namespace

LocalMemory::Block::Block(Block&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      mapped_(other.mapped_),
      lead_(other.lead_),
      home_(std::move(other.home_)) {}

LocalMemory::Block::~Block() {
  if (memory_ == nullptr) return;
  if (mapped_ == 0) {
    ::operator delete(memory_, heap_alignment);
  } else {
    home_->keep(memory_, mapped_, Clock::now());
  }
}

StatusOr<LocalMemory::Block> LocalMemory::allocate(std::uint64_t bytes, std::uint64_t number,
                                                   Contents contents, Clock::time_point now) {
  Block block;
  if (bytes < mapped_from) {
    block.memory_ = ::operator new(plane::staggered(bytes), heap_alignment, std::nothrow);
    if (block.memory_ != nullptr) std::memset(block.memory_, 0, bytes);
  } else if (bytes <= most_bytes) {
    block.home_ = shared_from_this();
    block.lead_ = plane::stagger_of(number);
    block.mapped_ = mapped_bytes(bytes);
    block.memory_ = take(block.mapped_, now);
    if (block.memory_ == nullptr) {
      block.memory_ = map(block.mapped_, bytes >= huge_from);
    } else if (contents == Contents::zeros) {
      std::memset(block.data(), 0, bytes);
    }
  }
  if (block.memory_ == nullptr) {
    return Status(Reason::out_of_memory,
                  "the system has no " + std::to_string(bytes) + " bytes for an array");
  }
  return block;
}

void* LocalMemory::take(std::uint64_t bytes, Clock::time_point now) {
  if (owner_ != this_process()) return nullptr;
  std::list<Kept> gone;
  void* found = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    drop_old(now, gone);
    for (auto at = kept_.end(); found == nullptr && at != kept_.begin();) {
      --at;
      if (at->bytes != bytes) continue;
      found = at->memory;
      kept_bytes_ -= bytes;
      at = kept_.erase(at);
    }
  }
  unmap(gone);
  return found;
}

void LocalMemory::keep(void* memory, std::uint64_t bytes, Clock::time_point now) {
  std::list<Kept> gone;
  std::list<Kept> fresh{{memory, bytes, now}};
  if (owner_ != this_process() || bytes > most_kept_bytes || ::madvise(memory, bytes, MADV_FREE) != 0) {
    return unmap(fresh);
  }
  {
    const std::scoped_lock lock(mutex_);
    drop_old(now, gone);
    kept_bytes_ += bytes;
    kept_.splice(kept_.end(), fresh);
    while (closed_ ? !kept_.empty() : kept_.size() > most_kept || kept_bytes_ > most_kept_bytes) {
      kept_bytes_ -= kept_.front().bytes;
      gone.splice(gone.end(), kept_, kept_.begin());
    }
  }
  unmap(gone);
}

void LocalMemory::drop_old(Clock::time_point now, std::list<Kept>& gone) {
  while (!kept_.empty() && now - kept_.front().since > longest_kept) {
    kept_bytes_ -= kept_.front().bytes;
    gone.splice(gone.end(), kept_, kept_.begin());
  }
}

void LocalMemory::unmap(const std::list<Kept>& gone) {
  for (const Kept& one : gone) ::munmap(one.memory, one.bytes);
}

void LocalMemory::close() {
  if (owner_ != this_process()) return;
  std::list<Kept> gone;
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    kept_bytes_ = 0;
    gone.swap(kept_);
  }
  unmap(gone);
}

std::uint64_t LocalMemory::kept_bytes() const {
  const std::scoped_lock lock(mutex_);
  return kept_bytes_;
}

}  // namespace eagle
