// Host nodes: the client's own code inside a launch, and how it fails.
#include <stdexcept>
#include <thread>

#include "tests/conformance/suite.h"

namespace eagle::conformance {
namespace {

class HostNodes : public OnEveryHost {
protected:
  void build(Graph& g) {
    const Status built = g.build();
    ASSERT_TRUE(built.ok()) << built.to_string();
  }
};
EAGLE_ON_EVERY_HOST(HostNodes);

TEST_P(HostNodes, RunInTheThreadThatLaunches) {
  std::thread::id seen;
  Graph g(session());
  ASSERT_TRUE(g.add_node(opaque(
                             [&] {
                               seen = std::this_thread::get_id();
                               return Status();
                             },
                             {}))
                  .ok());
  build(g);
  std::thread::id launched;
  std::thread([&] {
    launched = std::this_thread::get_id();
    EXPECT_TRUE(g.launch().ok());
  }).join();
  EXPECT_EQ(seen, launched);
}

TEST_P(HostNodes, AnErrorReachesTheCallerUnchangedAndStopsTheLaunch) {
  int first = 0;
  int third = 0;
  bool broken = true;
  const auto counting = [](int& count) {
    return opaque(
        [&count] {
          ++count;
          return Status();
        },
        {});
  };
  Graph g(session());
  ASSERT_TRUE(g.add_node(counting(first), "first").ok());
  ASSERT_TRUE(
      g.add_node(
           opaque(
               [&] { return broken ? Status(Reason::wrong_dtype, "the very words of the user") : Status(); },
               {}),
           "second")
          .ok());
  ASSERT_TRUE(g.add_node(counting(third), "third").ok());
  build(g);
  const Status failed = g.launch(3).status();
  EXPECT_EQ(failed.reason(), Reason::wrong_dtype);
  EXPECT_EQ(failed.message(), "the very words of the user");
  EXPECT_EQ(first, 1);
  EXPECT_EQ(third, 0);
  broken = false;
  EXPECT_EQ(must(g.launch(2)).launches, 2);
  EXPECT_EQ(first, 3);
  EXPECT_EQ(third, 2);
}

TEST_P(HostNodes, AnExceptionReachesTheCallerToo) {
  bool broken = true;
  Graph g(session());
  ASSERT_TRUE(g.add_node(opaque(
                             [&]() -> Status {
                               if (broken) throw std::runtime_error("the user's own");
                               return {};
                             },
                             {}))
                  .ok());
  build(g);
  EXPECT_THROW(static_cast<void>(g.launch()), std::runtime_error);
  broken = false;
  EXPECT_TRUE(g.launch().ok());
  expect_works();
}

TEST_P(HostNodes, SeeWhatKernelsWroteAndKernelsSeeWhatTheyWrite) {
  const auto x = full<double>(1000, 1.0);
  std::vector<double> seen;
  Graph g(session());
  const auto kernel = affine();
  ASSERT_TRUE(g.add({kernel, {{"x", x}, {"y", x}, {"a", 2.0}, {"b", 0.0}}}).ok());
  ASSERT_TRUE(g.add_node(opaque(
                             [&] {
                               seen.push_back(x[999]);
                               x[999] += 1;
                               return Status();
                             },
                             {{}, {{"x", x}}}))
                  .ok());
  build(g);
  ASSERT_TRUE(g.launch(4).ok());
  EXPECT_THAT(seen, ::testing::ElementsAre(2, 6, 14, 30));
  EXPECT_EQ(x[0], 16.0);
}

TEST_P(HostNodes, MayUseTheSessionInTheMeantime) {
  const auto x = full<double>(8, 1.0);
  Graph inner(session());
  ASSERT_TRUE(inner.add({affine(), {{"x", x}, {"y", x}, {"a", 2.0}, {"b", 0.0}}}).ok());
  build(inner);
  Graph outer(session());
  ASSERT_TRUE(outer
                  .add_node(opaque(
                      [&]() -> Status {
                        EAGLE_RETURN_IF_ERROR(session().info().status());
                        EAGLE_RETURN_IF_ERROR(session().zeros<double>({100'000}).status());
                        return inner.launch().status();
                      },
                      {}))
                  .ok());
  build(outer);
  const auto report = outer.launch(3);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(x[0], 8.0);
}

TEST_P(HostNodes, EnteringTheirOwnGraphIsBusyButLookingIsNot) {
  Graph g(session());
  Status launched;
  Status built;
  Status added;
  std::string picture;
  ASSERT_TRUE(g.add_node(opaque(
                             [&] {
                               launched = g.launch().status();
                               built = g.build();
                               added = g.add_node(opaque([] { return Status(); }, {}));
                               picture = must(g.show());
                               return Status();
                             },
                             {}))
                  .ok());
  build(g);
  ASSERT_TRUE(g.launch().ok());
  expect_refused(launched, Reason::busy, {"launch", "another call is still running"});
  expect_refused(built, Reason::busy, {"build"});
  expect_refused(added, Reason::busy, {"add_node"});
  EXPECT_THAT(picture, ::testing::HasSubstr("opaque"));
  EXPECT_TRUE(g.launch().ok()) << "the guard is free again";
}

}  // namespace
}  // namespace eagle::conformance
