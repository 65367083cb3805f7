#include "engine/plane/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "engine/plane/huge_pages.h"
#include "engine/plane/memfd.h"

namespace eagle::plane {
namespace {

std::string why(int error) { return std::generic_category().message(error); }

Status no_memory(std::uint64_t bytes, const std::string& reason) {
  return {Reason::out_of_memory, "no memory for a plane of " + std::to_string(bytes) + " bytes: " + reason +
                                     "; release planes or use a smaller one"};
}

// fallocate goes on until the system is out of memory, and the kernel may then end this very process. What
// cannot fit in any case is refused before.
Status check_size(std::uint64_t bytes) {
  if (bytes == 0) return {Reason::bad_value, "a plane needs at least 1 byte, found 0"};
  struct sysinfo system = {};
  if (::sysinfo(&system) != 0) return {Reason::system, "sysinfo failed: " + why(errno)};
  const std::uint64_t all = (std::uint64_t{system.totalram} + system.totalswap) * system.mem_unit;
  if (bytes > all) return no_memory(bytes, "this machine has " + std::to_string(all));
  return {};
}

// What is found between two questions whether anybody still wants it. A multiple of every page size.
constexpr std::uint64_t chunk_bytes = 64u << 20;

Status reserve(int fd, std::uint64_t offset, std::uint64_t bytes) {
  int result = 0;
  do {
    result = ::fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  if (result == 0) return {};
  if (errno == ENOSPC || errno == ENOMEM) return no_memory(offset + bytes, why(errno));
  return {Reason::system, "fallocate of " + std::to_string(bytes) + " bytes failed: " + why(errno)};
}

// Reserves the file's bytes and makes the pages that `data` maps them with.
Status fill(int fd, std::byte* data, std::uint64_t bytes, const std::function<bool()>& given_up,
            Memory::PageSize pages) {
  const bool huge = pages == Memory::PageSize::huge;
  if (huge) {
    // No page is there beyond a file's end, which reserving would move only afterwards.
    if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0)
      return {Reason::system, "ftruncate failed: " + why(errno)};
    ask_for_huge_pages(data, bytes);
  }
  for (std::uint64_t offset = 0; offset < bytes; offset += chunk_bytes) {
    if (given_up && given_up()) {
      return {Reason::cancelled,
              "a plane of " + std::to_string(bytes) + " bytes was given up while it was made"};
    }
    const std::uint64_t chunk = std::min(chunk_bytes, bytes - offset);
    // What is reserved through the file is of the usual size; pages that are there already stay.
    if (huge) static_cast<void>(::madvise(data + offset, chunk, MADV_POPULATE_WRITE));
    EAGLE_RETURN_IF_ERROR(reserve(fd, offset, chunk));
    // As with MAP_POPULATE, pages that are not mapped now are when they are first touched.
    static_cast<void>(::madvise(data + offset, chunk, MADV_POPULATE_WRITE));
  }
  return {};
}

StatusOr<std::byte*> map_shared(int fd, std::uint64_t bytes, int access = PROT_READ | PROT_WRITE,
                                void* at = nullptr) {
  void* const data = ::mmap(at, bytes, access, MAP_SHARED | (at == nullptr ? 0 : MAP_FIXED), fd, 0);
  if (data != MAP_FAILED) return static_cast<std::byte*>(data);
  if (errno == ENOMEM) return no_memory(bytes, why(errno));
  return Status(Reason::system, "mmap of " + std::to_string(bytes) + " bytes failed: " + why(errno));
}

// What a descriptor from outside must be before its bytes are touched. `access`: how it must have been
// opened.
Status check_received(int fd, std::uint64_t bytes, int access) {
  struct stat status = {};
  if (::fstat(fd, &status) != 0) {
    return {Reason::bad_message, "the descriptor of a plane is not open: " + why(errno)};
  }
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (!S_ISREG(status.st_mode) || seals < 0) {
    return {Reason::bad_message, "the descriptor of a plane is not a memfd"};
  }
  if (static_cast<std::uint64_t>(status.st_size) != bytes) {
    return {Reason::bad_message, "expected a memfd of " + std::to_string(bytes) + " bytes, found " +
                                     std::to_string(status.st_size)};
  }
  if ((seals & F_SEAL_SHRINK) == 0 || (seals & F_SEAL_GROW) == 0) {
    return {Reason::bad_message,
            "expected a memfd sealed against shrinking and growing, found one whose size may still change"};
  }
  const int opened = ::fcntl(fd, F_GETFL) & O_ACCMODE;
  if (access == O_RDONLY && opened != O_WRONLY) return {};
  if ((seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0 || opened != O_RDWR) {
    return {Reason::bad_message, "expected a memfd that can be written, found a read-only one"};
  }
  return {};
}

}  // namespace

Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      mapped_(std::exchange(other.mapped_, false)),
      page_size_(std::exchange(other.page_size_, PageSize::usual)),
      fd_(std::move(other.fd_)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  Memory taken(std::move(other));
  std::swap(data_, taken.data_);
  std::swap(bytes_, taken.bytes_);
  std::swap(mapped_, taken.mapped_);
  std::swap(page_size_, taken.page_size_);
  std::swap(fd_, taken.fd_);
  return *this;
}

Memory::~Memory() {
  if (mapped_) ::munmap(data_, bytes_);
}

StatusOr<Memory> Memory::create(std::uint64_t bytes, std::string_view label,
                                const std::function<bool()>& given_up, PageSize pages) {
  EAGLE_RETURN_IF_ERROR(check_size(bytes));
  Memory memory;
  memory.page_size_ = pages;
  EAGLE_ASSIGN_OR_RETURN(memory.fd_, make_memfd(label));
  EAGLE_ASSIGN_OR_RETURN(memory.data_, map_shared(memory.fd(), bytes));
  memory.bytes_ = bytes;
  memory.mapped_ = true;
  EAGLE_RETURN_IF_ERROR(fill(memory.fd(), memory.data_, bytes, given_up, pages));
  // Never F_SEAL_FUTURE_WRITE: a restarted worker has to map the memory again.
  if (::fcntl(memory.fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return Status(Reason::system, "sealing a memfd failed: " + why(errno));
  }
  return memory;
}

StatusOr<Memory> Memory::map_with(UniqueFd fd, std::uint64_t bytes, bool writable) {
  if (bytes == 0) return Status(Reason::bad_message, "expected a memfd of at least 1 byte, found 0");
  EAGLE_RETURN_IF_ERROR(check_received(fd.get(), bytes, writable ? O_RDWR : O_RDONLY));
  Memory memory;
  EAGLE_ASSIGN_OR_RETURN(memory.data_, map_shared(fd.get(), bytes, PROT_READ | (writable ? PROT_WRITE : 0)));
  memory.bytes_ = bytes;
  memory.mapped_ = true;
  memory.fd_ = std::move(fd);
  return memory;
}

StatusOr<Memory> Memory::map(UniqueFd fd, std::uint64_t bytes, Pages pages) {
  auto memory = map_with(std::move(fd), bytes, true);
  // A kernel that cannot makes them when they are touched.
  if (memory.ok() && pages == Pages::populated)
    static_cast<void>(::madvise(memory->data(), bytes, MADV_POPULATE_WRITE));
  return memory;
}

void Memory::discard() const {
  if (!fd_.valid()) return;
  // Failure leaves the bytes to whoever holds the descriptor; there is nothing else to do about it.
  static_cast<void>(
      ::fallocate(fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes_)));
}

StatusOr<Memory> Memory::map_read_only(UniqueFd fd, std::uint64_t bytes) {
  return map_with(std::move(fd), bytes, false);
}

StatusOr<Memory> Memory::stand_in(std::uint64_t bytes) {
  void* const data =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return no_memory(bytes, why(errno));
  Memory memory;
  memory.data_ = static_cast<std::byte*>(data);
  memory.bytes_ = bytes;
  memory.mapped_ = true;
  return memory;
}

StatusOr<Memory::Move> Memory::begin_move(std::string_view label) const {
  EAGLE_ASSIGN_OR_RETURN(Memory fresh, create(bytes_, label, {}, page_size_));
  return Move(data_, std::move(fresh));
}

bool Memory::Move::copy(std::uint64_t bytes) {
  const std::uint64_t count = std::min(bytes, fresh_.bytes_ - copied_);
  std::memcpy(fresh_.data_ + copied_, source_ + copied_, count);
  copied_ += count;
  return copied_ == fresh_.bytes_;
}

Status Memory::finish_move(Move move, std::mutex& guard) {
  EAGLE_RETURN_IF_ERROR(map_shared(move.fresh_.fd(), bytes_, PROT_READ | PROT_WRITE, data_).status());
  UniqueFd old;  // closed after the lock
  const std::lock_guard lock(guard);
  old = std::exchange(fd_, std::move(move.fresh_.fd_));
  return {};
}

Status Memory::map_over(std::byte* data, std::uint64_t bytes, const UniqueFd& fd) {
  EAGLE_RETURN_IF_ERROR(check_received(fd.get(), bytes, O_RDWR));
  return map_shared(fd.get(), bytes, PROT_READ | PROT_WRITE, data).status();
}

Memory Memory::borrow(void* data, std::uint64_t bytes) {
  Memory memory;
  memory.data_ = static_cast<std::byte*>(data);
  memory.bytes_ = bytes;
  return memory;
}

}  // namespace eagle::plane
