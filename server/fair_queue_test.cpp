#include "server/fair_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

namespace eagle::server {
namespace {

using Queue = FairQueue<std::string>;

// Tenants whose jobs never end, each in pieces of its own length; time that is spent, by tenant.
class Machine {
public:
  struct Tenant {
    Queue::Flow flow;
    double piece_s = 0.001;
  };
  Tenant& tenant(const std::string& name, double weight, double piece_s = 0.001, int priority = 0) {
    Tenant& made = tenants_[name];
    made.flow.weight = weight;
    made.flow.priority = priority;
    made.piece_s = piece_s;
    return made;
  }
  void submit(const std::string& name) { queue_.add(tenants_[name].flow, name); }
  // One piece; whoever it belongs to goes on.
  std::string step(bool again = true) {
    const std::string name = queue_.next();
    Tenant& tenant = tenants_[name];
    spent[name] += tenant.piece_s;
    now_s += tenant.piece_s;
    queue_.ran(tenant.flow, tenant.piece_s);
    if (again) queue_.add(tenant.flow, name);
    return name;
  }
  void run_for(double seconds) {
    for (const double end = now_s + seconds; now_s < end;) step();
  }
  void reset() { spent.clear(); }

  std::map<std::string, double> spent;
  double now_s = 0;
  Queue& queue() { return queue_; }

private:
  std::map<std::string, Tenant> tenants_;
  Queue queue_;
};

TEST(FairQueue, WhoBeginsWithoutHavingWaitedOwesItsTimeAsAnyOther) {
  Queue queue;
  Queue::Flow first, second;
  queue.begin(first);
  queue.ran(first, 0.003);
  for (int i = 0; i < 4; ++i) queue.add(first, "first");
  for (int i = 0; i < 4; ++i) queue.add(second, "second");
  std::string order;
  for (int i = 0; i < 5; ++i) {
    const std::string name = queue.next();
    order += name.substr(0, 1);
    queue.ran(name == "first" ? first : second, 0.001);
  }
  EXPECT_EQ(order.substr(0, 3), "sss") << "the second has had nothing yet";
  EXPECT_NE(order.find('f'), std::string::npos) << order;
}

TEST(FairQueue, WhoBeginsAfterDoingNothingHasSavedNothingUp) {
  Queue queue;
  Queue::Flow busy, idle;
  for (int i = 0; i < 100; ++i) {
    queue.begin(busy);
    queue.ran(busy, 0.001);
  }
  queue.begin(idle);
  queue.ran(idle, 0.001);
  for (int i = 0; i < 4; ++i) queue.add(busy, "busy");
  for (int i = 0; i < 4; ++i) queue.add(idle, "idle");
  int idle_turns = 0;
  for (int i = 0; i < 4; ++i) {
    const bool is_idle = queue.next() == "idle";
    idle_turns += is_idle ? 1 : 0;
    queue.ran(is_idle ? idle : busy, 0.001);
  }
  EXPECT_EQ(idle_turns, 2);
}

TEST(FairQueue, WhoIsBehindGoesLastUntilItsTime) {
  Queue queue;
  Queue::Flow behind, other;
  behind.priority = 1;
  const Queue::Time now = Queue::Time() + std::chrono::hours(1);
  behind.behind_until = now + std::chrono::seconds(1);
  for (int i = 0; i < 4; ++i) queue.add(behind, "behind");
  for (int i = 0; i < 2; ++i) queue.add(other, "other");
  const auto next = [&](Queue::Time when) {
    const std::string item = queue.next(when);
    queue.ran(item == "behind" ? behind : other, 0.001);
    return item;
  };
  EXPECT_EQ(next(now), "other");
  EXPECT_EQ(next(behind.behind_until), "behind") << "then its priority holds again";
  EXPECT_EQ(next(now), "other");
  EXPECT_EQ(next(now), "behind") << "nobody else has anything";
}

TEST(FairQueue, TimeGoesByWeightWhateverThePieces) {
  Machine machine;
  machine.tenant("one", 1, 0.010);
  machine.tenant("three", 3, 0.001);
  machine.submit("one");
  machine.submit("three");
  machine.run_for(40);
  EXPECT_NEAR(machine.spent["three"] / machine.spent["one"], 3, 0.05);
}

TEST(FairQueue, ManyJobsOfATenantGetNoMoreThanOne) {
  Machine machine;
  machine.tenant("one", 1);
  machine.tenant("many", 1);
  machine.submit("one");
  for (int i = 0; i < 100; ++i) machine.submit("many");
  machine.run_for(10);
  EXPECT_NEAR(machine.spent["many"] / machine.spent["one"], 1, 0.01);
}

TEST(FairQueue, WhoComesAfterALongSilenceIsNextAndSavedNothingUp) {
  Machine machine;
  machine.tenant("busy", 1, 0.010);
  machine.tenant("late", 1, 0.010);
  machine.submit("busy");
  machine.run_for(1000);
  machine.submit("late");
  EXPECT_EQ(machine.step(), "late");
  machine.reset();
  machine.run_for(10);
  EXPECT_NEAR(machine.spent["late"] / machine.spent["busy"], 1, 0.01);
}

TEST(FairQueue, LeavingAndComingBackPaysNoDebt) {
  Machine machine;
  machine.tenant("greedy", 1, 1.0);  // one long piece, then gone for a moment
  machine.tenant("steady", 1, 0.001);
  machine.submit("steady");
  for (int round = 0; round < 50; ++round) {
    machine.submit("greedy");
    while (machine.step(true) != "greedy") {
    }
    static_cast<void>(machine.queue().remove(machine.tenant("greedy", 1, 1.0).flow, "greedy"));
    machine.step();
  }
  EXPECT_NEAR(machine.spent["greedy"] / machine.spent["steady"], 1, 0.1);
}

TEST(FairQueue, ASmallOneWaitsForOnePieceAtMost) {
  Machine machine;
  machine.tenant("busy", 1, 0.004);
  machine.tenant("small", 1, 0.0001);
  machine.submit("busy");
  machine.submit("busy");
  for (int launch = 0; launch < 1000; ++launch) {
    machine.run_for(0.010);
    machine.submit("small");
    EXPECT_EQ(machine.step(false), "small");
  }
}

TEST(FairQueue, AHigherPriorityGoesFirst) {
  Machine machine;
  machine.tenant("low", 100);
  machine.tenant("high", 1, 0.001, 1);
  machine.submit("low");
  machine.submit("high");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(machine.step(), "high");
  EXPECT_EQ(machine.step(false), "high");
  EXPECT_EQ(machine.step(), "low");
}

TEST(FairQueue, WithinATenantItIsFirstComeFirstServed) {
  Queue queue;
  Queue::Flow flow;
  for (const char* name : {"a", "b", "c"}) queue.add(flow, name);
  EXPECT_TRUE(queue.remove(flow, "b"));
  EXPECT_FALSE(queue.remove(flow, "b"));
  EXPECT_EQ(queue.next(), "a");
  queue.ran(flow, 1);
  EXPECT_EQ(queue.next(), "c");
  queue.ran(flow, 1);
  EXPECT_TRUE(queue.empty());
}

// The queue knows no flow that has nothing: it may be gone.
TEST(FairQueue, AFlowWithoutItemsMayGo) {
  Queue queue;
  Queue::Flow stays;
  {
    Queue::Flow goes;
    queue.add(goes, "x");
    queue.add(stays, "y");
    EXPECT_TRUE(queue.remove(goes, "x"));
  }
  EXPECT_EQ(queue.next(), "y");
  queue.ran(stays, 1);
  EXPECT_TRUE(queue.empty());
}

// As jobs hold their tenants.
struct Holder {
  FairQueue<std::shared_ptr<Holder>>::Flow flow;
};

TEST(FairQueue, FlowsThatTheirItemsHoldGoWithThem) {
  FairQueue<std::shared_ptr<Holder>> queue;
  std::weak_ptr<Holder> seen;
  for (int i = 0; i < 2; ++i) {
    const auto holder = std::make_shared<Holder>();
    queue.add(holder->flow, holder);
    queue.add(holder->flow, holder);
    seen = holder;
  }
  ASSERT_FALSE(seen.expired());
  queue.clear();
  EXPECT_TRUE(seen.expired());
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace eagle::server
