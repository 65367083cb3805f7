#include "server/keeper/journal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>

namespace eagle::server {
namespace {

StateChange put(std::uint64_t session, StateKind kind, std::uint64_t id, std::string value) {
  return {{session, kind, id}, false, std::move(value), -1};
}
StateChange end(std::uint64_t session, StateKind kind, std::uint64_t id) {
  return {{session, kind, id}, true, {}, -1};
}

class JournalTest : public ::testing::Test {
protected:
  void apply(const std::vector<StateChange>& changes) { ASSERT_TRUE(journal_.apply(changes).ok()); }
  // As another process reads it.
  Journal::Values read() {
    const auto reader = journal_.reader();
    EXPECT_TRUE(reader.ok());
    auto values = Journal::read(reader->get());
    EXPECT_TRUE(values.ok()) << values.status().to_string();
    return values.ok() ? *values : Journal::Values();
  }
  Journal journal_ = *Journal::create();
};

TEST_F(JournalTest, BeginsEmpty) { EXPECT_TRUE(read().empty()); }

TEST_F(JournalTest, TheLastValueOfAnEntryCounts) {
  apply({put(1, StateKind::session, 0, "one"), put(1, StateKind::plane, 3, "old")});
  apply({put(1, StateKind::plane, 3, std::string("new\0bytes", 9))});
  EXPECT_EQ(read(), (Journal::Values{{{1, StateKind::session, 0}, "one"},
                                     {{1, StateKind::plane, 3}, std::string("new\0bytes", 9)}}));
}

TEST_F(JournalTest, WithASessionGoesAllThatItHas) {
  apply({put(1, StateKind::session, 0, "a"), put(1, StateKind::plane, 1, "b"),
         put(1, StateKind::graph, 1, "c"), put(2, StateKind::session, 0, "d"),
         put(2, StateKind::plane, 1, "e")});
  apply({end(1, StateKind::session, 0)});
  EXPECT_EQ(read().size(), 2u);
  EXPECT_FALSE(journal_.has({1, StateKind::plane, 1}));
  EXPECT_TRUE(journal_.has({2, StateKind::plane, 1}));
}

TEST_F(JournalTest, WhatBelongsToNoSessionIsDropped) {
  apply({put(9, StateKind::plane, 1, "late")});
  EXPECT_TRUE(read().empty());
  EXPECT_FALSE(journal_.has({9, StateKind::plane, 1}));
  apply({put(0, StateKind::strike, 1, "a strike has none")});
  EXPECT_EQ(read().size(), 1u);
}

TEST_F(JournalTest, ASessionThatIsWrittenAgainKeepsWhatItHas) {
  apply({put(1, StateKind::session, 0, "a"), put(1, StateKind::plane, 1, "b")});
  apply({put(1, StateKind::session, 0, "resumed")});
  EXPECT_EQ(read().size(), 2u);
}

TEST_F(JournalTest, HistoryDoesNotGrowForever) {
  apply({put(1, StateKind::session, 0, "a"), put(1, StateKind::graph, 7, "stays")});
  for (int i = 0; i < 5000; ++i) {
    apply({put(1, StateKind::plane, 1, std::string(2000, static_cast<char>('a' + i % 26)))});
  }
  EXPECT_LT(journal_.bytes(), 2u << 20);
  const Journal::Values values = read();
  EXPECT_EQ(values.at({1, StateKind::graph, 7}), "stays");
  EXPECT_EQ(values.at({1, StateKind::plane, 1}), std::string(2000, static_cast<char>('a' + 4999 % 26)));
}

TEST_F(JournalTest, ItsReadersCannotWrite) {
  const auto reader = journal_.reader();
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(::pwrite(reader->get(), "x", 1, 0), -1);
  EXPECT_EQ(::ftruncate(reader->get(), 0), -1);
}

// The same changes, applied to a map, are what is read.
TEST_F(JournalTest, ReadsWhatWasWritten) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  Journal::Values expected;
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t session = 1 + random() % 4;
    const auto kind = static_cast<StateKind>(1 + random() % 4);
    StateChange change =
        put(session, kind, kind == StateKind::session ? 0 : random() % 6, std::string(random() % 900, 'v'));
    change.gone = random() % 3 == 0;
    if (change.gone) change.value.clear();
    apply({change});
    if (change.gone && kind == StateKind::session) {
      std::erase_if(expected, [&](const auto& entry) { return entry.first.session == session; });
    } else if (change.gone) {
      expected.erase(change.key);
    } else if (kind == StateKind::session || expected.count({session, StateKind::session, 0}) != 0) {
      expected[change.key] = change.value;
    }
  }
  EXPECT_EQ(read(), expected);
}

// A file of any bytes: what a keeper of another version, or a fault, may have left.
TEST(DamagedJournal, IsRefused) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  Journal journal = *Journal::create();
  const std::vector<StateChange> changes = {put(1, StateKind::session, 0, "abc"),
                                            put(1, StateKind::plane, 2, std::string(50, 'x'))};
  ASSERT_TRUE(journal.apply(changes).ok());
  const UniqueFd reader = *journal.reader();
  std::string bytes(journal.bytes(), '\0');
  ASSERT_EQ(::pread(reader.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    const UniqueFd file(::memfd_create("damaged", MFD_CLOEXEC));
    ASSERT_EQ(::pwrite(file.get(), damaged.data(), damaged.size(), 0), static_cast<ssize_t>(bytes.size()));
    const auto values = Journal::read(file.get());
    EXPECT_EQ(values.status().reason(), Reason::bad_message) << "byte " << at;
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{3}, bytes.size() - 1}) {
    const UniqueFd file(::memfd_create("short", MFD_CLOEXEC));
    ASSERT_EQ(::pwrite(file.get(), bytes.data(), size, 0), static_cast<ssize_t>(size));
    EXPECT_EQ(Journal::read(file.get()).status().reason(), Reason::bad_message) << size;
  }
}

}  // namespace
}  // namespace eagle::server
