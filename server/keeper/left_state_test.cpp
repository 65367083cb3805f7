#include "server/keeper/left_state.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/keeper/estate.h"
#include "server/keeper/journal.h"
#include "server/ledger.h"

namespace eagle::server {
namespace {

using ::testing::HasSubstr;

int some_fd() { return ::memfd_create("held", MFD_CLOEXEC); }

LeftState some_state() {
  LeftState state;
  state.epoch = 7;
  state.listening = {{"unix:/run/eagled.sock", some_fd()}, {"dns:localhost:1", some_fd()}};
  state.socket_device = 3;
  state.socket_inode = 1ull << 40;
  state.owner = some_fd();
  state.journal = some_fd();
  state.ledger = some_fd();
  state.held = {{{5, StateKind::session, 0}, some_fd()}, {{5, StateKind::process, 1}, some_fd()}};
  state.bytes = {{77, some_fd()}, {std::uint64_t{1} << 63, some_fd()}};
  state.program = "/usr/bin/eagled";
  state.again = true;
  return state;
}

TEST(TheStateThatAKeeperLeaves, IsReadAsItWasWritten) {
  const LeftState state = some_state();
  const auto file = write_left_state(state);
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  const auto read = read_left_state(file->get());
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(read->epoch, state.epoch);
  EXPECT_EQ(read->listening, state.listening);
  EXPECT_EQ(read->socket_device, state.socket_device);
  EXPECT_EQ(read->socket_inode, state.socket_inode);
  EXPECT_EQ(read->owner, state.owner);
  EXPECT_EQ(read->held, state.held);
  EXPECT_EQ(read->bytes, state.bytes);
  EXPECT_EQ(read->program, state.program);
  EXPECT_TRUE(read->again);
  EXPECT_EQ(read->descriptors().size(), 9u);
}

TEST(TheStateThatAKeeperLeaves, IsTakenWithItsDescriptorsClosedOnExec) {
  const LeftState state = some_state();
  for (const int fd : state.descriptors()) ASSERT_TRUE(set_inherited(fd, true).ok());
  auto taken = take_left_state(*write_left_state(state));
  ASSERT_TRUE(taken.ok()) << taken.status().to_string();
  for (const int fd : state.descriptors()) EXPECT_EQ(::fcntl(fd, F_GETFD), FD_CLOEXEC) << fd;
  EXPECT_EQ(taken->held.at({5, StateKind::process, 1}).get(), state.held.at({5, StateKind::process, 1}));
  EXPECT_EQ(taken->bytes.at(77).get(), state.bytes.at(77));
  const int closed = taken->owner.get();
  taken->owner.reset();
  EXPECT_EQ(::fcntl(closed, F_GETFD), -1) << "they are owned";
}

TEST(TheStateThatAKeeperLeaves, IsReadFromTheFormatBeforeThisOne) {
  const LeftState state = some_state();
  const auto older = write_left_state(state, left_state_version - 1);
  const auto read = read_left_state(older->get());
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(read->held, state.held);
  EXPECT_EQ(read->bytes, state.bytes);
}

TEST(TheStateThatAKeeperLeaves, IsRefusedInFormatsThatAreTooOldOrTooNew) {
  for (const std::uint32_t version : {oldest_left_state_version - 1, left_state_version + 1}) {
    const auto file = write_left_state(some_state(), version);
    const auto read = read_left_state(file->get());
    EXPECT_EQ(read.status().reason(), Reason::bad_message);
    EXPECT_THAT(read.status().message(), HasSubstr("found format " + std::to_string(version)));
  }
}

TEST(TheStateThatAKeeperLeaves, IsRefusedDamaged) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto file = write_left_state(some_state());
  const auto size = static_cast<std::size_t>(::lseek(file->get(), 0, SEEK_END));
  std::string bytes(size, '\0');
  ASSERT_EQ(::pread(file->get(), bytes.data(), size, 0), static_cast<ssize_t>(size));
  for (std::size_t at = 0; at < size; ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    if (at == 8) continue;  // the version, which may be the other one that is read
    const UniqueFd copy(some_fd());
    ASSERT_EQ(::pwrite(copy.get(), damaged.data(), size, 0), static_cast<ssize_t>(size));
    EXPECT_EQ(read_left_state(copy.get()).status().reason(), Reason::bad_message) << "byte " << at;
  }
  for (const std::size_t cut : {std::size_t{0}, std::size_t{3}, size - 1}) {
    const UniqueFd copy(some_fd());
    ASSERT_EQ(::pwrite(copy.get(), bytes.data(), cut, 0), static_cast<ssize_t>(cut));
    EXPECT_EQ(read_left_state(copy.get()).status().reason(), Reason::bad_message) << cut;
  }
}

// ---- what goes along

StateChange put(std::uint64_t session, StateKind kind, std::uint64_t id, std::string value) {
  StateChange change;
  change.key = {session, kind, id};
  change.value = std::move(value);
  return change;
}

TEST(AnInheritedEstate, GoesOnWithTheJournal) {
  Journal journal = *Journal::create();
  const std::vector<StateChange> changes = {put(1, StateKind::session, 0, "a"),
                                            put(1, StateKind::plane, 1, "b")};
  ASSERT_TRUE(journal.apply(changes).ok());
  std::map<StateKey, UniqueFd> held;
  held[{1, StateKind::session, 0}] = UniqueFd(some_fd());
  held[{1, StateKind::plane, 1}] = UniqueFd(some_fd());
  held[{2, StateKind::plane, 1}] = UniqueFd(some_fd());  // of an entry that is not there
  auto estate = Estate::adopt(UniqueFd(::dup(journal.fd())), std::move(held));
  ASSERT_TRUE(estate.ok()) << estate.status().to_string();
  EXPECT_EQ(estate->for_the_worker(), (std::vector<Estate::Given>{{0, {1, StateKind::plane, 1}}}));
  std::vector<std::uint64_t> watched;
  estate->came = [&](std::uint64_t session, int) { watched.push_back(session); };
  estate->announce();
  EXPECT_EQ(watched, std::vector<std::uint64_t>{1});
  ASSERT_TRUE(estate->put(put(1, StateKind::graph, 4, "c")).ok());
  EXPECT_EQ(Journal::read(journal.fd())->size(), 3u);
}

TEST(AnInheritedLedger, OfTheOlderFormatKeepsWhatWasCutOff) {
  const GraphHash hash{1, 2};
  Ledger ledger = *Ledger::create();
  const auto line = ledger.note(9, hash, {});
  // The older one has lines alone: they are what comes first.
  constexpr std::size_t older_bytes = std::size_t{2048} * 480;
  plane::Memory older = *plane::Memory::create(older_bytes, "older");
  ASSERT_EQ(::pread(ledger.fd(), older.data(), older_bytes, 0), static_cast<ssize_t>(older_bytes));
  auto adopted = Ledger::adopt(UniqueFd(::dup(older.fd())));
  ASSERT_TRUE(adopted.ok()) << adopted.status().to_string();
  ASSERT_EQ(adopted->cut_off().size(), 1u);
  EXPECT_EQ(adopted->cut_off()[0].session, 9u);
  EXPECT_TRUE(adopted->begun(9, true).may_have(1)) << "it was not noted then";
}

}  // namespace
}  // namespace eagle::server
