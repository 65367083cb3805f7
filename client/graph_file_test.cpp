#include "eagle/client/graph_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "client/testing.h"
#include "eagle/client/kernel_builder.h"
#include "eagle/v1/graph.pb.h"
#include "proto/testing_mutator.h"

namespace eagle {
namespace {

using eagle::testing::FakeHost;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<const Kernel> doubled() {
  KernelBuilder k("doubled");
  const auto x = k.scalar("x");
  k.output("y", k.add(x, x));
  return std::make_shared<const Kernel>(*k.finish());
}

struct Saved {
  Session session{std::make_shared<FakeHost>("session a")};
  Array<double> x = *session.zeros<double>({4});
  Array<double> y = *session.zeros<double>({4});
  Graph graph{session, {.name = "g"}};
  Saved() { EXPECT_TRUE(graph.add({doubled(), {{"x", x}, {"y", y}}}).ok()); }
};

TEST(GraphFile, HasPlanesOfNoSession) {
  const Saved saved;
  const auto file = saved.graph.file();
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->planes().size(), 2u);
  EXPECT_EQ(file->planes()[0].name, "x");
  EXPECT_THAT(file->planes()[0].names, ElementsAre("x", "doubled.x", "0.x"));
  EXPECT_TRUE(file->planes()[0].read);
  EXPECT_FALSE(file->planes()[0].written);
  EXPECT_TRUE(file->planes()[1].written);
  for (const v1::PlaneDeclaration& plane : file->description().planes())
    EXPECT_TRUE(plane.has_private_memory());
}

TEST(GraphFile, IsReadAsItWasWritten) {
  const Saved saved;
  const auto file = saved.graph.file();
  const auto read = GraphFile::parse(file->bytes());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->bytes(), file->bytes());
  EXPECT_EQ(read->hash(), file->hash());
  EXPECT_EQ(read->name(), "g");
}

TEST(GraphFile, MeansTheArraysOfWhomeverLoadsIt) {
  const Saved saved;
  const Session other(std::make_shared<FakeHost>("session b"));
  const auto x = *other.zeros<double>({4});
  const auto loaded = other.load(*saved.graph.file(), {.planes = {{"x", x}}});
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const NamedArrays planes = loaded->planes();
  ASSERT_EQ(planes.size(), 2u);
  EXPECT_EQ(planes[0].second.data, x.view().data);
  EXPECT_TRUE(other.owns(planes[1].second.data));
  EXPECT_EQ(loaded->file()->bytes(), saved.graph.file()->bytes());
}

// A file of anybody's: whatever its bytes are, it is refused, or is a graph.
TEST(GraphFile, BytesOfAnybodysAreRefusedOrAGraph) {
  const Saved saved;
  const std::string bytes = saved.graph.file()->bytes();
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  testing::MessageMutator mutator(seed);
  for (int i = 0; i < 2000; ++i) {
    const auto read = GraphFile::parse(mutator.damaged(bytes));
    if (!read.ok()) {
      EXPECT_NE(read.status().reason(), Reason::internal) << read.status().message();
    }
  }
}

// Right in all but what it describes: the head is made for damaged messages.
TEST(GraphFile, DescriptionsOfAnybodysAreRefusedOrAGraph) {
  const Saved saved;
  const v1::GraphDescription whole = saved.graph.file()->description();
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  testing::MessageMutator mutator(seed);
  const Session session(std::make_shared<FakeHost>("session b"));
  for (int i = 0; i < 2000; ++i) {
    v1::GraphDescription damaged = whole;
    mutator.change(damaged);
    const auto file = GraphFile::of(damaged);
    if (!file.ok()) continue;
    const auto again = GraphFile::parse(file->bytes());
    ASSERT_TRUE(again.ok()) << again.status().message();
    std::uint64_t bytes = 0;
    for (const SavedPlane& plane : again->planes()) bytes = std::max(bytes, plane.bytes);
    if (bytes > (1u << 20) || !again->calls().empty()) continue;
    const auto loaded = session.load(*again);
    if (loaded.ok()) {
      EXPECT_EQ(loaded->node_labels().size(), graph::leaves(again->graph()).size());
    }
  }
}

TEST(GraphFile, ScratchStaysScratch) {
  Saved saved;
  const ArrayView between = *saved.graph.scratch({4}, DType::f64, "between");
  ASSERT_TRUE(saved.graph.add({doubled(), {{"x", saved.y}, {"y", between}}}).ok());
  ASSERT_TRUE(saved.graph.add({doubled(), {{"x", between}, {"y", saved.x}}}).ok());
  const auto file = saved.graph.file();
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->planes().size(), 2u);
  const Session other(std::make_shared<FakeHost>("session b"));
  EXPECT_EQ(other.load(*file)->file()->bytes(), file->bytes());
}

TEST(GraphFile, NamesAreThoseThatMeanOnePlane) {
  Saved saved;
  const auto z = *saved.session.zeros<double>({4});
  ASSERT_TRUE(saved.graph.add({doubled(), {{"x", saved.y}, {"y", z}}}, "second").ok());
  const auto file = saved.graph.file();
  std::vector<std::string> names;
  for (const SavedPlane& plane : file->planes()) names.push_back(plane.name);
  EXPECT_THAT(names, ElementsAre("doubled.x", "doubled.y", "second.y"));
  const auto refused = Session(std::make_shared<FakeHost>("session b")).load(*file, {.planes = {{"y", z}}});
  EXPECT_EQ(refused.status().reason(), Reason::unknown_name);
  EXPECT_THAT(refused.status().message(),
              HasSubstr("no plane 'y'; it has 'doubled.x', 'doubled.y', 'second.y'"));
}

}  // namespace
}  // namespace eagle
