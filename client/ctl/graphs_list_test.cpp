#include "client/ctl/graphs_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace eagle::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<GraphInfo> graphs = {{0xabcdef0123456789, 1, "step", "python3", 4, 100},
                                       {0xabcdef0123456789, 12, "step", "python3", 2, 0},
                                       {0x00000000000000ff, 1, "evil\x1b[2J", "x", 1, 7},
                                       {0x1234567812345678, 3, "", "model", 1, 0}};

TEST(GraphsList, FindsAGraphByNameOrId) {
  EXPECT_EQ(find_graph(graphs, "evil\x1b[2J")->graph, 1U);
  EXPECT_EQ(find_graph(graphs, "abcdef01.12")->graph, 12U);
  EXPECT_EQ(find_graph(graphs, "1.3")->session, 0x1234567812345678U);
  EXPECT_EQ(find_graph(graphs, "00000000000000ff.1")->session, 0xffU);
}

TEST(GraphsList, ANameOfSeveralIsRefusedWithTheirIds) {
  const Status status = find_graph(graphs, "step").status();
  EXPECT_EQ(status.reason(), Reason::bad_value);
  EXPECT_THAT(status.message(), HasSubstr("abcdef01.1 step, abcdef01.12 step"));
}

TEST(GraphsList, WhatIsNotThereIsRefusedWithWhatIs) {
  for (const char* which : {"other", "", ".", ".1", "abcdef01.2", "abcdef01."}) {
    const Status status = find_graph(graphs, which).status();
    EXPECT_EQ(status.reason(), Reason::unknown_graph) << which;
    EXPECT_THAT(status.message(), HasSubstr("12345678.3 (no name)"));
  }
  EXPECT_THAT(find_graph({}, "step").status().message(), HasSubstr("none to show"));
}

TEST(GraphsList, TheNearestNameIsNamed) {
  EXPECT_THAT(find_graph(graphs, "stpe").status().message(), HasSubstr("nearest is 'step'"));
}

TEST(GraphsList, NodesAreFoundByLabelOrIndex) {
  const std::vector<std::string> labels = {"affine", "shift", "shift", "2"};
  EXPECT_EQ(*find_name("node", labels, "affine"), 0u);
  EXPECT_EQ(*find_name("node", labels, "1"), 1u);
  EXPECT_EQ(*find_name("node", labels, "2"), 3u);  // a label before an index
  const Status several = find_name("node", labels, "shift").status();
  EXPECT_EQ(several.reason(), Reason::bad_value);
  EXPECT_THAT(several.message(), HasSubstr("index: 1, 2"));
  const Status none = find_name("node", labels, "afine").status();
  EXPECT_EQ(none.reason(), Reason::unknown_name);
  EXPECT_THAT(none.message(), HasSubstr("nearest of its 4 nodes is 0 'affine'"));
  for (const char* which : {"", "4", "-1", "99999999999999999999999", "1x"})
    EXPECT_EQ(find_name("node", labels, which).status().reason(), Reason::unknown_name) << which;
  EXPECT_THAT(find_name("node", {}, "x").status().message(), HasSubstr("it has none"));
}

TEST(GraphsList, ATableShowsNamesSafely) {
  const std::string table = table_of(graphs);
  EXPECT_THAT(table, HasSubstr("abcdef01.12  step"));
  EXPECT_THAT(table, HasSubstr("evil\\x1b[2J"));
  EXPECT_THAT(table, Not(HasSubstr("\x1b")));
  EXPECT_EQ(table_of({}), "no graphs\n");
}

}  // namespace
}  // namespace eagle::ctl
