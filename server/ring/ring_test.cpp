// A worker's rings and a client's, with nothing between them but the memory that they share.
#include "server/ring/ring.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <new>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "client/ring_client.h"
#include "eagle/v1/service.pb.h"
#include "server/ring/rings.h"
#include "server/testing.h"

namespace eagle::server {
namespace {

using server::testing::add_host_node;
using server::testing::add_increment;
using server::testing::GraphScene;
using server::testing::Mailbox;
using ::testing::HasSubstr;

UniqueFd duplicate(int fd) { return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

// A session with a ring, and the client of it.
struct Client {
  explicit Client(Daemon& daemon) : session(server::testing::open_session(daemon)) {
    auto opened = daemon.open_ring(session);
    EXPECT_TRUE(opened.ok()) << opened.status().to_string();
    worker = *opened;
    auto mapped = RingClient::open(duplicate(worker->memory_fd()), duplicate(worker->doorbell()));
    EXPECT_TRUE(mapped.ok()) << mapped.status().to_string();
    ring = *std::move(mapped);
    memory = *plane::Memory::map(duplicate(worker->memory_fd()), sizeof(ring::Memory));
  }
  [[nodiscard]] ring::Memory& shared() const { return *reinterpret_cast<ring::Memory*>(memory.data()); }

  std::shared_ptr<Session> session;
  std::shared_ptr<Ring> worker;
  std::unique_ptr<RingClient> ring;
  plane::Memory memory;  // as somebody sees it who keeps to no rule
};

class RingTest : public ::testing::Test {
protected:
  struct Increment {
    std::uint64_t graph = 0;
    server::testing::PlaneArray<double> x;
  };
  Increment increment(Session& session) {
    GraphScene scene(session);
    Increment made;
    made.x = scene.plane<double>(4, 0.0);
    add_increment(scene, made.x);
    made.graph = server::testing::build(*daemon_, session, scene);
    return made;
  }
  // Increments x, then calls the client's number 7.
  Increment with_call(Session& session) {
    GraphScene scene(session);
    Increment made;
    made.x = scene.plane<double>(4, 0.0);
    add_increment(scene, made.x);
    add_host_node(scene, 7, made.x);
    made.graph = server::testing::build(*daemon_, session, scene);
    return made;
  }
  // What a cancel left half written is fine.
  static void accept(const Increment& made) {
    made.x.plane->torn().accept({0, 0, plane::DType::f64, 8, {4}, {8}});
  }
  static RingClient::Caller caller(std::function<Status(std::uint32_t)> host_call = nullptr) {
    return {[] { return RingClient::Wish::go_on; }, std::move(host_call)};
  }
  // Gives up the first time that it is asked.
  static RingClient::Caller impatient() {
    return {[] { return RingClient::Wish::give_up; }, nullptr};
  }
  static StatusOr<LaunchReport> outcome_of(const std::optional<StatusOr<eagle::LaunchReport>>& found) {
    if (!found) return Status(Reason::internal, "the ring did not take the launch");
    if (!found->ok()) return found->status();
    LaunchReport report;
    report.launches = (*found)->launches;
    return report;
  }
  static Status launch(const Client& client, const RingClient::Launch& launch,
                       std::function<Status(std::uint32_t)> host_call = nullptr) {
    return outcome_of(client.ring->launch(launch, caller(std::move(host_call)))).status();
  }

  // From here on nobody takes anything from the client's ring.
  void end_session() {
    daemon_->sessions().end(client_.session);
    client_.session.reset();
    // The executor looks at its rings before each job: the first of two may have been on its way already.
    for (int job = 0; job < 2; ++job) server::testing::Blocker::hold(daemon_->executor())->release();
  }

  std::unique_ptr<Daemon> daemon_ = server::testing::make_daemon();
  Client client_{*daemon_};
};

TEST_F(RingTest, ALaunchRunsAndReports) {
  const Increment made = increment(*client_.session);
  const auto found = client_.ring->launch({made.graph, 1000, 1}, caller());
  ASSERT_TRUE(found && found->ok());
  EXPECT_EQ((*found)->launches, 1000);
  EXPECT_GE((*found)->threads, 1);
  EXPECT_EQ(made.x.values[3], 1000.0);
}

TEST_F(RingTest, EveryLaunchOfManyRunsOnce) {
  const Increment made = increment(*client_.session);
  for (std::uint64_t id = 1; id <= 20'000; ++id) ASSERT_TRUE(launch(client_, {made.graph, 1, id}).ok());
  EXPECT_EQ(made.x.values[0], 20'000.0);
}

TEST_F(RingTest, TheSameIdRunsOnce) {
  const Increment made = increment(*client_.session);
  ASSERT_TRUE(launch(client_, {made.graph, 1, 5}).ok());
  ASSERT_TRUE(launch(client_, {made.graph, 1, 5}).ok());
  EXPECT_EQ(made.x.values[0], 1.0);
}

TEST_F(RingTest, AWorkerThatSleepsIsWoken) {
  const Increment made = increment(*client_.session);
  for (std::uint64_t id = 1; id <= 20; ++id) {
    while (client_.shared().header.asleep.load() == 0) std::this_thread::yield();
    ASSERT_TRUE(launch(client_, {made.graph, 1, id}).ok());
  }
  EXPECT_EQ(made.x.values[0], 20.0);
}

TEST_F(RingTest, ARefusalIsTheDaemonsOwn) {
  const Status status = launch(client_, {17, 1, 1});
  EXPECT_EQ(status.reason(), Reason::unknown_graph);
  EXPECT_THAT(status.message(), HasSubstr("no graph 17"));
  EXPECT_EQ(launch(client_, {increment(*client_.session).graph, -1, 2}).reason(), Reason::bad_value);
}

TEST_F(RingTest, HostCallsRunInTheCallersThread) {
  const Increment made = with_call(*client_.session);
  std::vector<double> seen;
  const Status status = launch(client_, {made.graph, 3, 1}, [&](std::uint32_t call) {
    EXPECT_EQ(call, 7u);
    seen.push_back(made.x.values[0]);
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(seen, (std::vector<double>{1, 2, 3}));
}

TEST_F(RingTest, AHostCallThatFailsEndsTheLaunch) {
  const Increment made = with_call(*client_.session);
  const Status status = launch(client_, {made.graph, 3, 1},
                               [](std::uint32_t) { return Status(Reason::host_call_failed, "raised"); });
  EXPECT_EQ(status.reason(), Reason::host_call_failed);
  EXPECT_EQ(made.x.values[0], 1.0);
}

TEST_F(RingTest, ALaunchThatIsCancelledDuringItsHostCallEnds) {
  const Increment made = with_call(*client_.session);
  for (std::uint64_t id = 1; id <= 100; ++id) {
    const Status status = launch(client_, {made.graph, 3, id}, [&](std::uint32_t) {
      client_.session->cancel(id);
      return Status();
    });
    ASSERT_EQ(status.reason(), Reason::cancelled) << status.to_string();
    accept(made);
  }
  EXPECT_TRUE(launch(client_, {made.graph, 1, 101}, [](std::uint32_t) { return Status(); }).ok());
}

TEST_F(RingTest, ALaunchThatIsCancelledBeforeItBeganNeverRuns) {
  const Increment made = increment(*client_.session);
  const auto blocker = server::testing::Blocker::hold(daemon_->executor());
  const auto found =
      client_.ring->launch({made.graph, 3, 1}, {[] { return RingClient::Wish::stop; }, nullptr});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->status().reason(), Reason::cancelled);
  EXPECT_THAT(found->status().message(), HasSubstr("0 of 3"));
  blocker->release();
  EXPECT_TRUE(launch(client_, {made.graph, 1, 2}).ok());
  EXPECT_EQ(made.x.values[0], 1.0);
}

TEST_F(RingTest, LaunchesThatAreCancelledAnyTimeLeaveTheRingUsable) {
  const Increment made = with_call(*client_.session);
  std::atomic<std::uint64_t> id = 1;
  std::jthread canceller([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) client_.session->cancel(id.load());
  });
  for (int i = 0; i < 2'000; ++i) {
    const Status status = launch(client_, {made.graph, 2, id.load()}, [](std::uint32_t) { return Status(); });
    ASSERT_TRUE(status.ok() || status.reason() == Reason::cancelled) << status.to_string();
    accept(made);
    ++id;
  }
}

TEST_F(RingTest, AClientThatMakesItsDoorbellBlockHoldsNobodyUp) {
  Client neighbour(*daemon_);
  const Increment theirs = increment(*neighbour.session);
  const int flags = ::fcntl(client_.worker->doorbell(), F_GETFL);
  ASSERT_EQ(::fcntl(client_.worker->doorbell(), F_SETFL, flags & ~O_NONBLOCK), 0);
  std::jthread ringer([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::uint64_t one = 1;
      static_cast<void>(::write(client_.worker->doorbell(), &one, sizeof one));
      static_cast<void>(::read(client_.worker->doorbell(), &one, sizeof one));
    }
  });
  for (std::uint64_t id = 1; id <= 2'000; ++id) ASSERT_TRUE(launch(neighbour, {theirs.graph, 1, id}).ok());
}

TEST_F(RingTest, ADeadlineEndsALaunch) {
  const Increment made = increment(*client_.session);
  const Status status =
      launch(client_, {made.graph, std::int64_t{1} << 60, 1, std::chrono::milliseconds(20)});
  EXPECT_EQ(status.reason(), Reason::deadline) << status.to_string();
}

TEST_F(RingTest, ALaunchMoreThanThereAreSlotsGoesAnotherWay) {
  Mailbox<int> begun;
  Mailbox<int> go;
  std::vector<Increment> made;
  for (std::size_t i = 0; i < ring::slot_count; ++i) made.push_back(with_call(*client_.session));
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < ring::slot_count; ++i) {
    threads.emplace_back([&, i] {
      EXPECT_TRUE(launch(client_, {made[i].graph, 1, i + 1}, [&](std::uint32_t) {
                    begun.put(1);
                    go.take();
                    return Status();
                  }).ok());
    });
  }
  for (std::size_t i = 0; i < ring::slot_count; ++i) begun.take();
  EXPECT_FALSE(client_.ring->launch({made[0].graph, 1, 1000}, caller()));
  for (std::size_t i = 0; i < ring::slot_count; ++i) go.put(1);
  threads.clear();
  EXPECT_TRUE(client_.ring->launch({made[0].graph, 0, 1001}, caller()));
}

TEST_F(RingTest, ManyThreadsAndSessionsLaunchBesideEachOther) {
  constexpr std::uint64_t launches = 1'000;  // of two threads, more than there are outcomes kept
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(std::make_unique<Client>(*daemon_));
  std::vector<std::atomic<std::uint64_t>> last_id(clients.size());
  std::vector<std::jthread> threads;
  for (std::size_t n = 0; n < clients.size(); ++n) {
    for (std::uint64_t thread = 0; thread < 2; ++thread) {
      threads.emplace_back([&, n, thread] {
        const Increment made = increment(*clients[n]->session);
        for (std::uint64_t i = 1; i <= launches; ++i) {
          // Taken in order; whoever is held up after it arrives late.
          const Status status = launch(*clients[n], {made.graph, 1, ++last_id[n]});
          ASSERT_TRUE(status.ok()) << status.to_string();
        }
        EXPECT_EQ(made.x.values[0], static_cast<double>(launches)) << thread;
      });
    }
  }
}

TEST_F(RingTest, TheEndOfTheSessionEndsItsLaunches) {
  const Increment made = with_call(*client_.session);
  const Status status = launch(client_, {made.graph, 3, 1}, [&](std::uint32_t) {
    daemon_->sessions().end(client_.session);
    return Status();
  });
  EXPECT_EQ(status.reason(), Reason::cancelled) << status.to_string();
}

TEST_F(RingTest, AClientThatIsToldToGiveUpDoes) {
  end_session();
  int looks = 0;
  const auto found = client_.ring->launch(
      {1, 1, 1},
      {[&] { return ++looks < 3 ? RingClient::Wish::go_on : RingClient::Wish::give_up; }, nullptr});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->status().reason(), Reason::connection_lost) << "nobody took it, and nobody will";
}

// ---- launches that nobody waits for yet

// Its slots are as free as before, and it can go another way.
TEST(RingWithoutAWorker, AnUpdateThatNobodyTakesIsTakenBack) {
  auto memory = plane::Memory::create(sizeof(ring::Memory), "ring");
  ASSERT_TRUE(memory.ok()) << memory.status().to_string();
  auto* const shared = new (memory->data()) ring::Memory;
  shared->header.magic_number.set(ring::magic);
  auto client = RingClient::open(duplicate(memory->fd()), UniqueFd(::eventfd(0, EFD_CLOEXEC)));
  ASSERT_TRUE(client.ok()) << client.status().to_string();
  const RingClient::Caller gives_up{[] { return RingClient::Wish::give_up; }, nullptr};
  for (std::size_t i = 0; i < 2 * ring::slot_count; ++i)
    ASSERT_FALSE((*client)->update("numbers", gives_up).has_value()) << i;
}

TEST_F(RingTest, APostedLaunchRunsAndIsCollectedLater) {
  const Increment made = increment(*client_.session);
  const auto posted = client_.ring->post({made.graph, 5, 1});
  ASSERT_TRUE(posted);
  // Others come and go meanwhile.
  const Increment other = increment(*client_.session);
  for (std::uint64_t id = 2; id <= 100; ++id) ASSERT_TRUE(launch(client_, {other.graph, 1, id}).ok());
  const StatusOr<LaunchReport> outcome = outcome_of(client_.ring->finish(*posted, caller()));
  ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
  EXPECT_EQ(outcome->launches, 5);
  EXPECT_EQ(made.x.values[0], 5.0);
}

TEST_F(RingTest, TheHostCallsOfAPostedLaunchWaitForItsCollector) {
  const Increment made = with_call(*client_.session);
  const auto posted = client_.ring->post({made.graph, 2, 1});
  ASSERT_TRUE(posted);
  int calls = 0;
  const auto found = client_.ring->finish(*posted, caller([&](std::uint32_t) {
    ++calls;
    return Status();
  }));
  ASSERT_TRUE(found && found->ok());
  EXPECT_EQ(calls, 2);
}

TEST_F(RingTest, ALaunchThatWasTakenBackNeverRuns) {
  const auto blocker = server::testing::Blocker::hold(daemon_->executor());
  const Increment made = increment(*client_.session);
  const auto posted = client_.ring->post({made.graph, 1, 1});
  ASSERT_TRUE(posted);
  EXPECT_TRUE(client_.ring->take_back(*posted));
  blocker->release();
  EXPECT_EQ(outcome_of(client_.ring->finish(*posted, caller())).status().reason(), Reason::cancelled);
  EXPECT_EQ(made.x.values[0], 0.0);
}

// The ring has 64 slots; those of launches that nobody collects come back.
TEST_F(RingTest, SlotsOfAbandonedLaunchesAreUsedAgain) {
  const Increment made = increment(*client_.session);
  for (std::uint64_t id = 1; id <= 1'000; ++id) {
    auto posted = client_.ring->post({made.graph, 1, id});
    while (!posted) posted = client_.ring->post({made.graph, 1, id});  // until the worker is done with some
    client_.ring->abandon(*posted);
  }
  ASSERT_TRUE(launch(client_, {increment(*client_.session).graph, 1, 2'000}).ok());
}

// ---- new numbers for Params

class RingUpdateTest : public RingTest {
protected:
  static std::string request(std::uint64_t graph, const std::string& name, double value) {
    v1::UpdateRequest request;
    request.set_graph(graph);
    v1::ParamUpdate& param = *request.add_params();
    param.mutable_argument()->set_name(name);
    param.mutable_value()->set_real(value);
    return request.SerializeAsString();
  }
  Status update(const std::string& bytes) {
    const auto updated = client_.ring->update(bytes, caller());
    return updated ? *updated : Status(Reason::internal, "the ring did not take the numbers");
  }
};

TEST_F(RingUpdateTest, NumbersChangeForTheLaunchesThatFollow) {
  const Increment made = increment(*client_.session);
  ASSERT_TRUE(launch(client_, {made.graph, 1, 1}).ok());
  ASSERT_TRUE(update(request(made.graph, "b", 10.0)).ok());
  ASSERT_TRUE(launch(client_, {made.graph, 1, 2}).ok());
  EXPECT_EQ(made.x.values[0], 11.0);
}

TEST_F(RingUpdateTest, RefusalsAreTheDaemonsOwn) {
  const Increment made = increment(*client_.session);
  EXPECT_EQ(update(request(made.graph, "no such", 1.0)).reason(), Reason::unknown_name);
  EXPECT_EQ(update(request(99, "b", 1.0)).reason(), Reason::unknown_graph);
  EXPECT_EQ(update("\xff\xff not a message").reason(), Reason::bad_message);
}

TEST_F(RingUpdateTest, AGraphThatRunsIsBusy) {
  const Increment made = with_call(*client_.session);
  const Status status = launch(client_, {made.graph, 1, 1}, [&](std::uint32_t) {
    EXPECT_EQ(update(request(made.graph, "b", 1.0)).reason(), Reason::busy);
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.to_string();
}

TEST_F(RingUpdateTest, WhatIsTooLongGoesAnotherWay) {
  EXPECT_FALSE(client_.ring->update(std::string(ring::text_bytes + 1, 'x'), caller()));
  GraphScene scene(*client_.session);
  const auto x = scene.plane<double>(4, 0.0);
  for (int i = 0; i < 300; ++i) add_increment(scene, x);
  const std::uint64_t large = server::testing::build(*daemon_, *client_.session, scene);
  EXPECT_FALSE(client_.ring->update(request(large, "b", 1.0), caller()));
}

// Nobody serves it any more: the caller hears that from its connection.
TEST_F(RingTest, ALaunchThatNobodyTookEndsWhenItsCallerGivesUp) {
  end_session();
  const auto posted = client_.ring->post({1, 1, 1});
  ASSERT_TRUE(posted);
  const Status status = outcome_of(client_.ring->finish(*posted, impatient())).status();
  EXPECT_EQ(status.reason(), Reason::connection_lost);
  EXPECT_EQ(status.message(), "nobody took the launch") << "it may be launched again";
}

TEST_F(RingTest, TheSlotOfALaunchThatWasGivenUpIsUsedAgain) {
  const Increment made = increment(*client_.session);
  const auto posted = client_.ring->post({made.graph, std::int64_t{1} << 50, 1});
  ASSERT_TRUE(posted);
  const auto taken = [&] {
    return client_.shared().slots[posted->slot].word.load() !=
           static_cast<std::uint32_t>(ring::State::posted);
  };
  while (!taken()) std::this_thread::yield();
  EXPECT_EQ(outcome_of(client_.ring->finish(*posted, impatient())).status().reason(), Reason::cancelled);
  client_.session->cancel_all();
  while (daemon_->executor().admitted() > 0) std::this_thread::yield();
  const auto blocker = server::testing::Blocker::hold(daemon_->executor());
  std::size_t slots = 0;
  for (std::uint64_t id = 2; client_.ring->post({made.graph, 0, id}); ++id) ++slots;
  blocker->release();
  EXPECT_EQ(slots, ring::slot_count);
}

TEST_F(RingTest, ASessionHasOneRing) {
  EXPECT_EQ(daemon_->open_ring(client_.session).status().reason(), Reason::bad_message);
}

// Whatever a client writes, its neighbours' launches are right and the worker goes on.
TEST_F(RingTest, AClientThatScribblesHurtsItself) {
  const auto seed = std::random_device{}();
  RecordProperty("seed", static_cast<int>(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  Client neighbour(*daemon_);
  const Increment theirs = increment(*neighbour.session);
  const Increment ours = with_call(*client_.session);
  std::atomic<bool> stop = false;
  std::jthread scribbler([&] {
    std::mt19937_64 random(seed);
    while (!stop) {
      ring::Slot& slot = client_.shared().slots[random() % ring::slot_count];
      slot.graph.set(random() % 3 == 0 ? random() : ours.graph);
      slot.count.set(random() % 3 == 0 ? static_cast<std::int64_t>(random()) : 1);
      slot.kind.set(random() % 4);
      if (random() % 16 == 0) slot.text.set_bytes(std::string(random() % ring::text_bytes, 'x'));
      slot.launch_id.set(random() % 4 == 0 ? random() : 0);
      slot.timeout_ns.set(static_cast<std::int64_t>(random() >> (random() % 64)));
      slot.sequence.set(random());
      slot.replied_to.set(random() % 2 == 0 ? random() : random() % 4);
      slot.call_failed.set(random() % 4);
      slot.sleeping.store(static_cast<std::uint32_t>(random()));
      slot.word.store(static_cast<std::uint32_t>(random() % 8));
      client_.shared().header.asleep.store(static_cast<std::uint32_t>(random() % 2));
      client_.shared().header.magic_number.set(random());
      const std::uint64_t one = 1;
      if (random() % 8 == 0) static_cast<void>(::write(client_.worker->doorbell(), &one, sizeof one));
    }
  });
  for (std::uint64_t id = 1; id <= 2'000; ++id) {
    const Status status = launch(neighbour, {theirs.graph, 1, id});
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  EXPECT_EQ(theirs.x.values[0], 2'000.0);
  stop = true;
  scribbler.join();
  daemon_->sessions().end(client_.session);
  EXPECT_TRUE(launch(neighbour, {theirs.graph, 1, 2'001}).ok());
}

// How a launch of a ring ends whose worker answers every launch with this.
std::optional<StatusOr<eagle::LaunchReport>> answered_with(const Status& status) {
  const auto worker = *Ring::create(
      [&](const LaunchRequest&, Ring::Deadline, const LaunchEvents& events) {
        events.done(status);
        return std::shared_ptr<LaunchJob>();
      },
      [&](const std::string&) { return std::optional(status); });
  const auto client = *RingClient::open(duplicate(worker->memory_fd()), duplicate(worker->doorbell()));
  std::jthread visitor([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) worker->visit(16);
  });
  return client->launch({1, 1, 1}, {[] { return RingClient::Wish::go_on; }, nullptr});
}

TEST(Ring, AnErrorComesWhole) {
  const auto found = answered_with({Reason::quota, "as long as this"});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->status().reason(), Reason::quota);
  EXPECT_EQ(found->status().message(), "as long as this");
}

TEST(Ring, AnErrorThatIsTooLongIsLeftToTheOtherWay) {
  EXPECT_FALSE(answered_with({Reason::quota, std::string(ring::text_bytes, 'x')}));
}

TEST(Rings, ASleepEndsWhenItIsNotified) {
  Rings rings;
  std::atomic<bool> work = false;
  std::jthread executor([&] {
    while (!work) rings.sleep([&] { return !work; });
  });
  work = true;
  rings.notify();
  executor.join();  // the watchdog is what fails
}

}  // namespace
}  // namespace eagle::server
