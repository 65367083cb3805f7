#include "engine/plane/memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/plane/huge_pages.h"
#include "engine/plane/memfd.h"

namespace eagle::plane {
namespace {

using ::testing::HasSubstr;

Memory make(std::uint64_t bytes) {
  StatusOr<Memory> memory = Memory::create(bytes, "test");
  EXPECT_TRUE(memory.ok()) << memory.status().to_string();
  return std::move(memory).value();
}

TEST(Memory, IsZeroedReservedAndPrivateToItsUser) {
  const Memory memory = make(100'000);
  EXPECT_TRUE(std::all_of(memory.data(), memory.data() + memory.bytes(),
                          [](std::byte b) { return b == std::byte{0}; }));
  struct stat status = {};
  ASSERT_EQ(::fstat(memory.fd(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  EXPECT_EQ(status.st_size, 100'000);
  EXPECT_GE(status.st_blocks * 512, 100'000);
  EXPECT_NE(::fcntl(memory.fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Memory, IsSealedAgainstResizingButNotAgainstWriting) {
  const Memory memory = make(4096);
  const int seals = ::fcntl(memory.fd(), F_GET_SEALS);
  EXPECT_EQ(seals & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  EXPECT_EQ(seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE), 0);
  EXPECT_NE(::ftruncate(memory.fd(), 0), 0);
  EXPECT_NE(::ftruncate(memory.fd(), 8192), 0);
  // Taking a grant back needs this to go on working.
  EXPECT_EQ(::fallocate(memory.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
}

// Whether the system gives any is its own business; what it did is told.
TEST(Memory, InHugePagesIsAsAnyOtherAndTellsHowManyItHas) {
  std::uint64_t page = 0;
  std::ifstream("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size") >> page;
  const std::uint64_t whole = page == 0 ? 0 : 2 * page;
  const std::uint64_t bytes = std::max<std::uint64_t>(whole, 1u << 20) + 10'000;
  const auto memory = Memory::create(bytes, "test", {}, Memory::PageSize::huge);
  ASSERT_TRUE(memory.ok()) << memory.status().to_string();
  EXPECT_EQ(memory->page_size(), Memory::PageSize::huge);
  EXPECT_TRUE(
      std::all_of(memory->data(), memory->data() + bytes, [](std::byte b) { return b == std::byte{0}; }));
  struct stat status = {};
  ASSERT_EQ(::fstat(memory->fd(), &status), 0);
  EXPECT_GE(static_cast<std::uint64_t>(status.st_blocks) * 512, bytes);
  EXPECT_LE(static_cast<std::uint64_t>(status.st_blocks) * 512, bytes + 65'536) << "more than is charged";
  const HugePages had = huge_pages_of(memory->data(), bytes);
  RecordProperty("huge_bytes", static_cast<int>(had.bytes));
  EXPECT_LE(had.bytes, whole);
  EXPECT_EQ(had.bytes == whole && whole > 0, had.why.empty())
      << had.bytes << " of " << whole << ": " << had.why;
  if (!had.why.empty()) {
    EXPECT_THAT(had.why, HasSubstr("huge pages: "));
  }
}

TEST(Memory, SmallerThanAHugePageHasNone) {
  const auto memory = Memory::create(100'000, "test", {}, Memory::PageSize::huge);
  ASSERT_TRUE(memory.ok()) << memory.status().to_string();
  const HugePages had = huge_pages_of(memory->data(), memory->bytes());
  EXPECT_EQ(had.bytes, 0u);
  EXPECT_NE(had.why, "");
}

TEST(Memory, TwoMappingsSeeTheSameBytes) {
  const Memory owner = make(64);
  StatusOr<Memory> other = Memory::map(UniqueFd(::dup(owner.fd())), 64);
  ASSERT_TRUE(other.ok()) << other.status().to_string();
  EXPECT_NE(other->data(), owner.data());
  owner.data()[63] = std::byte{42};
  EXPECT_EQ(other->data()[63], std::byte{42});
}

TEST(Memory, ReleasesItsDescriptorAndMovesWhole) {
  Memory memory = make(64);
  const int fd = memory.fd();
  std::byte* const data = memory.data();
  Memory moved = std::move(memory);
  EXPECT_EQ(moved.data(), data);
  EXPECT_EQ(moved.bytes(), 64U);
  EXPECT_EQ(moved.fd(), fd);
  moved = Memory();
  EXPECT_EQ(moved.data(), nullptr);
  EXPECT_LT(::fcntl(fd, F_GETFD), 0);
}

TEST(Memory, BorrowsWithoutOwning) {
  std::byte bytes[16] = {};
  {
    const Memory memory = Memory::borrow(bytes, sizeof bytes);
    EXPECT_EQ(memory.data(), bytes);
    EXPECT_EQ(memory.bytes(), sizeof bytes);
    EXPECT_EQ(memory.fd(), -1);
  }
  bytes[0] = std::byte{1};
}

TEST(Memory, RefusesSizesThatCannotBe) {
  EXPECT_EQ(Memory::create(0, "none").status().reason(), Reason::bad_value);
  for (const std::uint64_t bytes : {std::uint64_t{1} << 60, std::numeric_limits<std::uint64_t>::max()}) {
    const Status status = Memory::create(bytes, "huge").status();
    EXPECT_EQ(status.reason(), Reason::out_of_memory);
    EXPECT_THAT(status.message(), HasSubstr(std::to_string(bytes) + " bytes"));
  }
}

TEST(Memory, OfSeveralChunksIsReservedAndMappedWhole) {
  constexpr std::uint64_t bytes = (64u << 20) + 5000;
  const Memory memory = make(bytes);
  struct stat status = {};
  ASSERT_EQ(::fstat(memory.fd(), &status), 0);
  EXPECT_EQ(static_cast<std::uint64_t>(status.st_size), bytes);
  EXPECT_GE(static_cast<std::uint64_t>(status.st_blocks) * 512, bytes);
  std::vector<unsigned char> resident(bytes / 4096 + 1);
  ASSERT_EQ(::mincore(memory.data(), bytes, resident.data()), 0);
  EXPECT_EQ(std::count_if(resident.begin(), resident.end(), [](unsigned char page) { return page & 1; }),
            static_cast<std::ptrdiff_t>(resident.size()));
  EXPECT_EQ(memory.data()[bytes - 1], std::byte{0});
}

TEST(Memory, ThatNobodyWantsAnyMoreIsNotMade) {
  int asked = 0;
  const Status status = Memory::create(1u << 30, "large", [&] { return ++asked == 2; }).status();
  EXPECT_EQ(status.reason(), Reason::cancelled);
  EXPECT_EQ(asked, 2);
}

TEST(Memory, TakesAnyLabel) {
  EXPECT_TRUE(Memory::create(1, std::string(10'000, 'x')).ok());
  EXPECT_TRUE(Memory::create(1, std::string("a\0b", 3)).ok());
  EXPECT_TRUE(Memory::create(1, "").ok());
}

// A memfd of `bytes` with these seals, as a careless or hostile sender would make it.
UniqueFd sent(off_t bytes, int seals) {
  UniqueFd fd(::memfd_create("sent", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), bytes), 0);
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

void expect_refused(UniqueFd fd, std::uint64_t bytes, const std::string& part) {
  const Status status = Memory::map(std::move(fd), bytes).status();
  EXPECT_EQ(status.reason(), Reason::bad_message) << status.to_string();
  EXPECT_THAT(status.message(), HasSubstr(part));
}

TEST(Memory, RefusesDescriptorsThatCouldHurtAReader) {
  constexpr int resizing = F_SEAL_SHRINK | F_SEAL_GROW;
  EXPECT_TRUE(Memory::map(sent(4096, resizing), 4096).ok());
  expect_refused(sent(4096, F_SEAL_GROW), 4096, "sealed against shrinking");
  expect_refused(sent(4096, F_SEAL_SHRINK), 4096, "sealed against shrinking");
  expect_refused(sent(4096, resizing), 8192, "expected a memfd of 8192 bytes, found 4096");
  expect_refused(sent(4096, resizing), 0, "at least 1 byte");
  expect_refused(sent(4096, resizing | F_SEAL_WRITE), 4096, "read-only");
  expect_refused(UniqueFd(), 4096, "not open");
  expect_refused(UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)), 4096, "not a memfd");
  expect_refused(UniqueFd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)), 4096, "not a memfd");
  const UniqueFd writable = sent(4096, resizing);
  const std::string path = "/proc/self/fd/" + std::to_string(writable.get());
  expect_refused(UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), 4096, "read-only");
}

TEST(Memfd, IsTheSameOnKernelsWithoutTheNoExecSeal) {
  for (const NoExec no_exec : {NoExec::where_known, NoExec::unasked}) {
    StatusOr<UniqueFd> fd = make_memfd("test", no_exec);
    ASSERT_TRUE(fd.ok()) << fd.status().to_string();
    struct stat status = {};
    ASSERT_EQ(::fstat(fd->get(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0600U);
    EXPECT_EQ(::fcntl(fd->get(), F_GET_SEALS) & F_SEAL_SEAL, 0);
    EXPECT_NE(::fcntl(fd->get(), F_GETFD) & FD_CLOEXEC, 0);
  }
}

// Whoever holds the guard waits for a descriptor to change hands, and not for the bytes.
TEST(Memory, MovesItsBytesWithoutTheGuardOfItsDescriptor) {
  constexpr std::uint64_t bytes = 1 << 20;
  Memory memory = make(bytes);
  const UniqueFd old(::fcntl(memory.fd(), F_DUPFD_CLOEXEC, 0));
  memory.data()[bytes - 1] = std::byte{7};
  std::mutex guard;
  Status moved(Reason::internal, "not yet");
  std::unique_lock held(guard);
  auto move = memory.begin_move("moved");
  ASSERT_TRUE(move.ok()) << move.status().to_string();
  EXPECT_FALSE(move->copy(bytes / 2));
  EXPECT_FALSE(move->copy(bytes / 2 - 1));
  EXPECT_TRUE(move->copy(bytes));
  std::thread mover([&] { moved = memory.finish_move(*std::move(move), guard); });
  // What is stored in the old file shows here until another one is mapped.
  const std::atomic_ref<std::uint64_t> first(*reinterpret_cast<std::uint64_t*>(memory.data()));
  std::uint64_t stored = 0;
  do {
    ++stored;
    ASSERT_EQ(::pwrite(old.get(), &stored, sizeof stored, 0), static_cast<ssize_t>(sizeof stored));
  } while (first.load() == stored);
  held.unlock();
  mover.join();
  EXPECT_TRUE(moved.ok()) << moved.to_string();
  EXPECT_EQ(memory.data()[bytes - 1], std::byte{7});
  struct stat before = {}, after = {};
  ASSERT_EQ(::fstat(old.get(), &before), 0);
  ASSERT_EQ(::fstat(memory.fd(), &after), 0);
  EXPECT_NE(before.st_ino, after.st_ino);
  EXPECT_EQ(static_cast<std::uint64_t>(before.st_blocks) * 512, bytes) << "the old file keeps its bytes";
}

}  // namespace
}  // namespace eagle::plane
