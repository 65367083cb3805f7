// Graphs that were running when workers died, and that an admin forgives.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "client/host.h"
#include "client/host_admin.h"
#include "eagle/v1/admin.pb.h"
#include "tests/conformance/survival.h"

namespace eagle::conformance {
namespace {

// Graphs that add 1 to x and then turn as long as an array says. One piece of such a turning ends with the
// worker only. (Many short replays would not do: between two pieces a worker computes nothing, and its death
// is laid to nobody.)
class Struck : public Survival {
protected:
  struct Turning {
    Array<double> x, turns, turned;
    std::unique_ptr<Graph> graph;

    void turn(double times) const {
      for (double& value : turns.span()) value = times;
    }
  };

  [[nodiscard]] Turning turning_graph(const std::string& name) const {
    Turning made{must(session->full<double>({16}, 0.0)), must(session->full<double>({4}, 1.0)),
                 must(session->full<double>({4}, 0.0)),
                 std::make_unique<Graph>(*session, GraphOptions{.name = name})};
    must(made.graph->add({affine(), {{"x", made.x}, {"y", made.x}, {"a", 1.0}, {"b", 1.0}}}, "step"));
    must(made.graph->add({turning(), {{"turns", made.turns}, {"turned", made.turned}}}, "turn"));
    must(made.graph->build());
    return made;
  }

  // Arrays as if no launch had been cut off.
  void begin_anew(const Turning& bad) const {
    for (double& value : bad.x.span()) value = 0;
    must(session->accept(bad.x));
    must(session->accept(bad.turned));
  }

  [[nodiscard]] v1::ListQuarantineReply quarantine() const {
    v1::ListQuarantineReply listed;
    must(session->host()->admin()->quarantine(listed));
    return listed;
  }

  // Kills workers within the graph's computing until so many deaths are laid to it. A kill just before the
  // turning began is laid to nobody; a few such end no daemon.
  void strike(const Turning& bad, std::uint32_t deaths) const {
    constexpr int spare = 2;
    bad.turn(for_years);
    for (std::uint32_t kills = 0; kills < deaths + spare; ++kills) {
      begin_anew(bad);
      std::jthread killer([&, now = worker()] {
        wait_until([&] { return std::atomic_ref<double>(bad.x.span()[0]).load() > 0; });
        kill_and_wait(now);
      });
      EXPECT_EQ(bad.graph->launch(1).status().reason(), Reason::worker_restarted);
      killer.join();
      const v1::ListQuarantineReply listed = quarantine();
      if (listed.graphs_size() == 1 && listed.graphs(0).deaths() == deaths) {
        begin_anew(bad);
        return bad.turn(1);
      }
    }
    FAIL() << "of " << deaths + spare << " deaths within the graph's computing, fewer than " << deaths
           << " were laid to it";
  }
};

TEST_F(Struck, AGraphThatWasRunningAtTwoDeathsIsLaunchedNoMore) {
  start();
  const Turning bad = turning_graph("bad");
  const Turning good = turning_graph("good");
  ASSERT_NO_FATAL_FAILURE(strike(bad, 2));
  const pid_t now = worker();
  for (int times = 0; times < 4; ++times) {
    EXPECT_EQ(bad.graph->launch(1).status().reason(), Reason::graph_quarantined);
  }
  EXPECT_EQ(bad.x[0], 0.0);
  must(good.graph->launch());
  EXPECT_EQ(good.x[0], 1.0);
  EXPECT_EQ(worker(), now);
}

// Also where a worker dies while it finds out whose the graph is, or while it takes the strikes back.
class Pardons : public Struck, public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(FaultPoints, Pardons, ::testing::Values("", "1@strike.name", "2@strike.pardon"));

TEST_P(Pardons, APardonedGraphIsLaunchedAgain) {
  start_to_fail_at(GetParam());
  const Turning bad = turning_graph("bad");
  ASSERT_NO_FATAL_FAILURE(strike(bad, 2));
  EXPECT_EQ(bad.graph->launch(1).status().reason(), Reason::graph_quarantined);
  const v1::ListQuarantineReply listed = quarantine();
  ASSERT_EQ(listed.graphs_size(), 1);
  const v1::StruckGraph& struck = listed.graphs(0);
  EXPECT_EQ(struck.deaths(), 2u);
  EXPECT_TRUE(struck.quarantined());
  EXPECT_EQ(struck.graph(), "bad");
  EXPECT_EQ(struck.tenant(), "uid:" + std::to_string(::geteuid()));
  HostAdmin& admin = *session->host()->admin();
  v1::PardonRequest request;
  EXPECT_EQ(admin.pardon(request).status().reason(), Reason::bad_value);
  request.add_graphs(struck.hash());
  EXPECT_EQ(must(admin.pardon(request)), 1u);
  must(bad.graph->launch(1));
  EXPECT_EQ(bad.x[0], 1.0);
  kill_worker();
  must(bad.graph->launch(1));
  EXPECT_EQ(quarantine().graphs_size(), 0) << "the next worker knows of the pardon";
}

}  // namespace
}  // namespace eagle::conformance
