#include "server/keeper/worker_link.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <string>

#include "eagle/v1/state.pb.h"
#include "server/keeper/journal.h"
#include "server/keeper/packet.h"

namespace eagle::server {
namespace {

// The keeper's end, which has said everything before the worker asks: what both say fits into the socket.
class WorkerLinkTest : public ::testing::Test {
protected:
  void tell(const v1::KeeperMessage& message, std::vector<int> descriptors = {}) {
    ASSERT_TRUE(send_packet(ends_.first.get(), message.SerializeAsString(), descriptors, Wait::yes).ok());
  }
  void hand_over(int sessions) {
    std::vector<StateChange> changes;
    for (int i = 1; i <= sessions; ++i)
      changes.push_back({{static_cast<std::uint64_t>(i), StateKind::session, 0}, false, "value", -1});
    ASSERT_TRUE(journal_.apply(changes).ok());
    v1::KeeperMessage begin;
    begin.mutable_begin()->set_epoch(1);
    tell(begin, {journal_.fd(), ledger_.get()});
    v1::KeeperMessage nothing;
    nothing.mutable_planes()->set_last(true);
    tell(nothing);
  }
  // What the worker has said by now.
  std::vector<v1::WorkerMessage> said() {
    std::vector<v1::WorkerMessage> all;
    for (;;) {
      auto packet = receive_packet(ends_.first.get(), Wait::no);
      if (!packet.ok() || !*packet) return all;
      EXPECT_TRUE(all.emplace_back().ParseFromString((*packet)->bytes));
    }
  }

  std::pair<UniqueFd, UniqueFd> ends_ = *packet_sockets();
  Journal journal_ = *Journal::create();
  UniqueFd ledger_{::memfd_create("ledger", MFD_CLOEXEC)};
};

// However much there is: it is what tells a slow start from one that hangs.
TEST_F(WorkerLinkTest, SaysThatItLivesWhileItTakesOver) {
  hand_over(5);
  WorkerLink link(std::move(ends_.second), std::chrono::milliseconds(0));
  const auto taken = link.take_over();
  ASSERT_TRUE(taken.ok()) << taken.status().to_string();
  EXPECT_EQ(taken->state.records.size(), 5u);
  const auto while_reading = said();
  ASSERT_EQ(while_reading.size(), 6u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_TRUE(while_reading[i].beat() && while_reading[i].goes_round());
  EXPECT_TRUE(while_reading[5].has_adopted());
  link.still_starts();
  EXPECT_EQ(said().size(), 1u);
}

TEST_F(WorkerLinkTest, SaysSoNoMoreOftenThanItsPace) {
  hand_over(5);
  WorkerLink link(std::move(ends_.second), std::chrono::hours(1));
  ASSERT_TRUE(link.take_over().ok());
  EXPECT_EQ(said().size(), 1u) << "that it has adopted nothing";
}

}  // namespace
}  // namespace eagle::server
