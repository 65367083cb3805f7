// Graphs that were running when workers died, and that an admin forgives.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "client/host.h"
#include "client/host_admin.h"
#include "eagle/v1/admin.pb.h"
#include "tests/conformance/survival.h"

namespace eagle::conformance {
namespace {

// Also where a worker dies while it finds out whose the graph is, or while it takes the strikes back.
class Pardons : public Survival, public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(FaultPoints, Pardons, ::testing::Values("", "1@strike.name", "2@strike.pardon"));

TEST_P(Pardons, APardonedGraphIsLaunchedAgain) {
  start_to_fail_at(GetParam());
  const auto x = must(session->full<double>({16}, 0.0));
  const auto bad = stepping(*session, x, "bad");
  const auto begin_anew = [&] {
    for (double& value : x.span()) value = 0;
    must(session->accept(x));
  };
  for (int death = 0; death < 2; ++death) {
    begin_anew();
    std::jthread killer([&, now = worker()] {
      wait_until([&] { return std::atomic_ref<double>(x.span()[0]).load() > 100; });
      kill_and_wait(now);
    });
    EXPECT_EQ(bad->launch(endless).status().reason(), Reason::worker_restarted);
  }
  begin_anew();
  EXPECT_EQ(bad->launch(1).status().reason(), Reason::graph_quarantined);
  HostAdmin& admin = *session->host()->admin();
  v1::ListQuarantineReply listed;
  ASSERT_TRUE(admin.quarantine(listed).ok());
  ASSERT_EQ(listed.graphs_size(), 1);
  const v1::StruckGraph& struck = listed.graphs(0);
  EXPECT_EQ(struck.deaths(), 2u);
  EXPECT_TRUE(struck.quarantined());
  EXPECT_EQ(struck.graph(), "bad");
  EXPECT_EQ(struck.tenant(), "uid:" + std::to_string(::geteuid()));
  v1::PardonRequest request;
  EXPECT_EQ(admin.pardon(request).status().reason(), Reason::bad_value);
  request.add_graphs(struck.hash());
  EXPECT_EQ(must(admin.pardon(request)), 1u);
  must(bad->launch(1));
  EXPECT_EQ(x[0], 1.0);
  kill_worker();
  must(bad->launch(1));
  listed.Clear();
  ASSERT_TRUE(admin.quarantine(listed).ok());
  EXPECT_EQ(listed.graphs_size(), 0) << "the next worker knows of the pardon";
}

}  // namespace
}  // namespace eagle::conformance
