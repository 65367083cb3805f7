#include "server/keeper/estate.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <utility>
#include <vector>

#include "eagle/v1/state.pb.h"

namespace eagle::server {
namespace {

UniqueFd some_fd() { return UniqueFd(::memfd_create("plane", MFD_CLOEXEC)); }
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

class EstateTest : public ::testing::Test {
protected:
  static v1::StateChange change(std::uint64_t session, StateKind kind, std::uint64_t id) {
    v1::StateChange message;
    message.set_session(session);
    message.set_kind(static_cast<std::uint32_t>(kind));
    message.set_id(id);
    message.set_value("value");
    return message;
  }
  // Over memory of that id, as the worker writes it: planes and names.
  static v1::StateChange over(std::uint64_t session, StateKind kind, std::uint64_t id,
                              std::uint64_t bytes_id) {
    v1::StateChange message = change(session, kind, id);
    if (kind == StateKind::name) {
      v1::NameRecord record;
      record.set_bytes_id(bytes_id);
      message.set_value(record.SerializeAsString());
    } else {
      v1::PlaneRecord record;
      record.set_bytes_id(bytes_id);
      message.set_value(record.SerializeAsString());
    }
    return message;
  }
  static v1::StateChange end(std::uint64_t session, StateKind kind, std::uint64_t id) {
    v1::StateChange message = change(session, kind, id);
    message.set_gone(true);
    return message;
  }
  Status take(const v1::StateChange& message, UniqueFd fd = {}) {
    std::vector<UniqueFd> descriptors;
    if (fd.valid()) descriptors.push_back(std::move(fd));
    return estate_.take(message, std::move(descriptors));
  }
  void open(std::uint64_t session) { ASSERT_TRUE(take(change(session, StateKind::session, 0)).ok()); }

  Estate estate_ = *Estate::create();
};

TEST_F(EstateTest, HoldsThePlanesOfItsSessions) {
  open(1);
  UniqueFd fd = some_fd();
  const int number = fd.get();
  ASSERT_TRUE(take(change(1, StateKind::plane, 5), std::move(fd)).ok());
  EXPECT_EQ(estate_.for_the_worker(), (std::vector<Estate::Given>{{0, {1, StateKind::plane, 5}}}));
  EXPECT_EQ(estate_.descriptor({0, {1, StateKind::plane, 5}}), number);
  v1::StateChange ended = change(1, StateKind::session, 0);
  ended.set_gone(true);
  ASSERT_TRUE(take(ended).ok());
  EXPECT_TRUE(estate_.for_the_worker().empty());
  EXPECT_FALSE(is_open(number));
}

TEST_F(EstateTest, APlaneOfNoSessionIsClosed) {
  UniqueFd fd = some_fd();
  const int number = fd.get();
  ASSERT_TRUE(take(change(7, StateKind::plane, 5), std::move(fd)).ok());
  EXPECT_FALSE(is_open(number));
}

TEST_F(EstateTest, ABatchThatWasCutShortNeverWas) {
  open(1);
  UniqueFd fd = some_fd();
  const int number = fd.get();
  v1::StateChange first = change(1, StateKind::plane, 1);
  first.set_more(true);
  ASSERT_TRUE(take(first, std::move(fd)).ok());
  EXPECT_TRUE(estate_.for_the_worker().empty());
  estate_.drop_unfinished();
  EXPECT_FALSE(is_open(number));
  ASSERT_TRUE(take(change(1, StateKind::plane, 2), some_fd()).ok());
  EXPECT_EQ(estate_.for_the_worker(), (std::vector<Estate::Given>{{0, {1, StateKind::plane, 2}}}));
}

// Or what clients open, each with its own plane, would use up the descriptors that the process may have.
TEST_F(EstateTest, MemoryIsHeldOnceHoweverManyEntriesAreOverIt) {
  UniqueFd memory = some_fd();
  const int number = memory.get();
  open(1);
  ASSERT_TRUE(take(over(1, StateKind::plane, 1, 77), UniqueFd(::dup(number))).ok());
  const std::vector<Estate::Given> given = {{77, {}}};
  const int held = estate_.descriptor(given[0]);
  ASSERT_TRUE(is_open(held));
  for (std::uint64_t session = 2; session < 30; ++session) {
    open(session);
    UniqueFd copy(::dup(number));
    const int again = copy.get();
    ASSERT_TRUE(take(over(session, StateKind::plane, 1, 77), std::move(copy)).ok());
    EXPECT_FALSE(is_open(again)) << "session " << session;
  }
  ASSERT_TRUE(take(over(1, StateKind::name, 5, 77), UniqueFd(::dup(number))).ok());
  EXPECT_EQ(estate_.for_the_worker(), given);
  EXPECT_EQ(estate_.bytes(), (std::map<std::uint64_t, int>{{77, held}}));
  for (std::uint64_t session = 2; session < 30; ++session)
    ASSERT_TRUE(take(end(session, StateKind::session, 0)).ok());
  ASSERT_TRUE(take(end(1, StateKind::plane, 1)).ok());
  EXPECT_TRUE(is_open(held)) << "the name is over it";
  ASSERT_TRUE(take(end(1, StateKind::name, 5)).ok());
  EXPECT_FALSE(is_open(held));
  EXPECT_TRUE(estate_.for_the_worker().empty());
}

TEST_F(EstateTest, AnEntryThatIsWrittenAnewCountsOnce) {
  open(1);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(take(over(1, StateKind::plane, 1, 77), some_fd()).ok());
  const int held = estate_.descriptor({77, {}});
  ASSERT_TRUE(take(over(1, StateKind::plane, 1, 78), some_fd()).ok());  // the id of the plane was used again
  EXPECT_FALSE(is_open(held));
  EXPECT_EQ(estate_.for_the_worker(), (std::vector<Estate::Given>{{78, {}}}));
  ASSERT_TRUE(take(end(1, StateKind::plane, 1)).ok());
  EXPECT_TRUE(estate_.for_the_worker().empty());
}

// What was opened just before the bytes moved may be written down after.
TEST_F(EstateTest, WhereBytesMovedToHoldsForEveryEntryAndStays) {
  open(1);
  open(2);
  ASSERT_TRUE(take(over(1, StateKind::plane, 1, 77), some_fd()).ok());
  const int before = estate_.descriptor({77, {}});
  v1::StateChange moved = over(1, StateKind::plane, 1, 77);
  moved.set_moved(true);
  UniqueFd fresh = some_fd();
  const int number = fresh.get();
  ASSERT_TRUE(take(moved, std::move(fresh)).ok());
  EXPECT_FALSE(is_open(before));
  ASSERT_TRUE(take(over(2, StateKind::plane, 1, 77), some_fd()).ok());
  EXPECT_EQ(estate_.descriptor({77, {}}), number);
}

// A session that ends leaves planes which processes may have mapped, in the same batch.
TEST_F(EstateTest, WhatAnEndingSessionLeavesStays) {
  open(1);
  ASSERT_TRUE(take(over(1, StateKind::plane, 1, 77), some_fd()).ok());
  v1::StateChange ended = end(1, StateKind::session, 0);
  v1::StateChange closed = change(1, StateKind::session, 0);
  ended.set_more(true);
  closed.set_more(true);
  ASSERT_TRUE(take(ended).ok());
  ASSERT_TRUE(take(closed).ok());
  ASSERT_TRUE(take(over(1, StateKind::plane, 1, 77), some_fd()).ok());
  EXPECT_EQ(estate_.for_the_worker(), (std::vector<Estate::Given>{{77, {}}}));
  EXPECT_TRUE(is_open(estate_.descriptor({77, {}})));
}

TEST_F(EstateTest, WhatAnotherKeeperLeftOnceForEachEntryIsHeldOnce) {
  for (std::uint64_t session = 1; session < 4; ++session) {
    open(session);
    ASSERT_TRUE(take(over(session, StateKind::plane, 1, 77)).ok()) << "its descriptor comes below";
  }
  std::map<StateKey, UniqueFd> held;
  for (std::uint64_t session = 1; session < 4; ++session) held[{session, StateKind::plane, 1}] = some_fd();
  held[{1, StateKind::session, 0}] = some_fd();
  const int first = held[{1, StateKind::plane, 1}].get();
  const int second = held[{2, StateKind::plane, 1}].get();
  auto adopted = Estate::adopt(UniqueFd(::dup(estate_.journal().fd())), std::move(held));
  ASSERT_TRUE(adopted.ok()) << adopted.status().to_string();
  EXPECT_EQ(adopted->for_the_worker(), (std::vector<Estate::Given>{{77, {}}}));
  EXPECT_EQ(adopted->descriptor({77, {}}), first);
  EXPECT_FALSE(is_open(second));
  EXPECT_EQ(adopted->descriptors().size(), 1u) << "the session's process";
  // And as this one leaves it.
  std::map<std::uint64_t, UniqueFd> bytes;
  bytes[77] = UniqueFd(::dup(first));
  auto again = Estate::adopt(UniqueFd(::dup(estate_.journal().fd())), {}, std::move(bytes));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->for_the_worker(), (std::vector<Estate::Given>{{77, {}}}));
  EXPECT_TRUE(is_open(again->descriptor({77, {}})));
}

TEST_F(EstateTest, AValueInPartsIsOneValue) {
  open(1);
  v1::StateChange part = change(1, StateKind::graph, 1);
  part.set_more_value(true);
  ASSERT_TRUE(take(part).ok());
  EXPECT_FALSE(estate_.journal().has({1, StateKind::graph, 1}));
  ASSERT_TRUE(take(change(1, StateKind::graph, 1)).ok());
  const auto values = Journal::read(estate_.journal().reader()->get());
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(values->at({1, StateKind::graph, 1}), "valuevalue");
}

TEST_F(EstateTest, AWorkerNamesAndEndsStrikesAndMakesNone) {
  EXPECT_EQ(take(change(0, StateKind::strike, 9)).reason(), Reason::bad_message);
  StateChange struck;
  struck.key = {0, StateKind::strike, 9};
  struck.value = "struck";
  ASSERT_TRUE(estate_.put(struck).ok());
  ASSERT_TRUE(take(change(0, StateKind::strike, 9)).ok());
  EXPECT_EQ(*estate_.journal().value(struck.key), "value");
  ASSERT_TRUE(take(end(0, StateKind::strike, 9)).ok());
  EXPECT_FALSE(estate_.journal().has(struck.key));
}

TEST_F(EstateTest, WhatNoWorkerSendsIsRefused) {
  open(1);
  EXPECT_EQ(take(change(1, StateKind::strike, 1)).reason(), Reason::bad_message);
  EXPECT_EQ(take(change(1, static_cast<StateKind>(77), 1)).reason(), Reason::bad_message);
  v1::StateChange part = change(1, StateKind::graph, 1);
  part.set_more_value(true);
  ASSERT_TRUE(take(part).ok());
  EXPECT_EQ(take(change(1, StateKind::graph, 2)).reason(), Reason::bad_message) << "the end of another one";
}

TEST_F(EstateTest, TellsWhichProcessesToWatch) {
  std::vector<std::pair<char, std::uint64_t>> told;
  estate_.came = [&](std::uint64_t session, int) { told.emplace_back('+', session); };
  estate_.goes = [&](std::uint64_t session, int process) {
    EXPECT_TRUE(is_open(process));
    told.emplace_back('-', session);
  };
  ASSERT_TRUE(take(change(4, StateKind::session, 0), some_fd()).ok());
  ASSERT_TRUE(take(change(4, StateKind::session, 0), some_fd()).ok());  // resumed by another process
  v1::StateChange ended = change(4, StateKind::session, 0);
  ended.set_gone(true);
  ASSERT_TRUE(take(ended).ok());
  EXPECT_EQ(told, (std::vector<std::pair<char, std::uint64_t>>{{'+', 4}, {'-', 4}, {'+', 4}, {'-', 4}}));
}

}  // namespace
}  // namespace eagle::server
