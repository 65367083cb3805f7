#include "client/eaglectl_graphs.h"

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

TEST(EaglectlGraphs, FindsAGraphByNameOrId) {
  EXPECT_EQ(find_graph(graphs, "evil\x1b[2J")->graph, 1U);
  EXPECT_EQ(find_graph(graphs, "abcdef01.12")->graph, 12U);
  EXPECT_EQ(find_graph(graphs, "1.3")->session, 0x1234567812345678U);
  EXPECT_EQ(find_graph(graphs, "00000000000000ff.1")->session, 0xffU);
}

TEST(EaglectlGraphs, ANameOfSeveralIsRefusedWithTheirIds) {
  const Status status = find_graph(graphs, "step").status();
  EXPECT_EQ(status.reason(), Reason::bad_value);
  EXPECT_THAT(status.message(), HasSubstr("abcdef01.1 step, abcdef01.12 step"));
}

TEST(EaglectlGraphs, WhatIsNotThereIsRefusedWithWhatIs) {
  for (const char* which : {"other", "", ".", ".1", "abcdef01.2", "abcdef01."}) {
    const Status status = find_graph(graphs, which).status();
    EXPECT_EQ(status.reason(), Reason::unknown_graph) << which;
    EXPECT_THAT(status.message(), HasSubstr("12345678.3 (no name)"));
  }
  EXPECT_THAT(find_graph({}, "step").status().message(), HasSubstr("none to show"));
}

TEST(EaglectlGraphs, ATableShowsNamesSafely) {
  const std::string table = table_of(graphs);
  EXPECT_THAT(table, HasSubstr("abcdef01.12   step"));
  EXPECT_THAT(table, HasSubstr("evil\\x1b[2J"));
  EXPECT_THAT(table, Not(HasSubstr("\x1b")));
  EXPECT_EQ(table_of({}), "no graphs\n");
}

}  // namespace
}  // namespace eagle::ctl
