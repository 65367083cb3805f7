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
  EXPECT_EQ(estate_.for_the_worker(), (std::vector<StateKey>{{1, StateKind::plane, 5}}));
  EXPECT_EQ(estate_.descriptor({1, StateKind::plane, 5}), number);
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
  EXPECT_EQ(estate_.for_the_worker(), (std::vector<StateKey>{{1, StateKind::plane, 2}}));
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
