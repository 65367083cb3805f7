#include "client/ctl/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace eagle::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Output, ColumnsAreAlignedAndBounded) {
  Table table({{"NAME", Table::Align::left, 8}, {"COUNT", Table::Align::right}});
  table.add({"a", "1"});
  table.add({"something long", "1,000"});
  EXPECT_EQ(table.text(),
            "NAME      COUNT\n"
            "a             1\n"
            "somethi…  1,000\n");
}

TEST(Output, WhatCameFromOutsideCannotSteerTheTerminal) {
  Table table({{"NAME"}});
  table.add({"evil\x1b[2J\n"});
  EXPECT_THAT(table.text(), HasSubstr("evil\\x1b[2J\\n"));
  EXPECT_THAT(table.text(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(list_text({{"name", "a\nb"}}), HasSubstr("name  a\\nb\n"));
}

TEST(Output, WideCharactersTakeTheirColumns) {
  Table table({{"NAME"}, {"X"}});
  table.add({"日本", "1"});
  table.add({"abcd", "2"});
  EXPECT_EQ(table.text(), "NAME  X\n日本  1\nabcd  2\n");
}

TEST(Output, RowsWithFewerCellsAreFilledUp) {
  Table table({{"A"}, {"B"}});
  EXPECT_TRUE(table.empty());
  table.add({"x"});
  EXPECT_EQ(table.text(), "A  B\nx\n");
}

TEST(Output, BytesHaveUnits) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1024), "1.0 KiB");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text((1u << 20) - 1), "1.0 MiB");  // not 1024.0 KiB
  EXPECT_EQ(bytes_text(~std::uint64_t{0}), "16.0 EiB");
}

TEST(Output, TimesHaveUnits) {
  EXPECT_EQ(seconds_text(0), "0 s");
  EXPECT_EQ(seconds_text(1.25e-6), "1.2 us");
  EXPECT_EQ(seconds_text(999.96e-6), "1.0 ms");  // not 1000.0 us
  EXPECT_EQ(seconds_text(0.0034), "3.4 ms");
  EXPECT_EQ(seconds_text(59.94), "59.9 s");
  EXPECT_EQ(seconds_text(61), "1 min 1 s");
  EXPECT_EQ(seconds_text(3600 + 61), "1 h 1 min");
  EXPECT_EQ(seconds_text(86400 * 11 + 3600 * 5), "11 d 5 h");
  EXPECT_EQ(seconds_text(-1), "?");
  EXPECT_EQ(seconds_text(1.0 / 0.0), "?");
}

TEST(Output, CountsAreGrouped) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(1000), "1,000");
  EXPECT_EQ(count_text(1234567), "1,234,567");
  EXPECT_EQ(plural(1, "node"), "1 node");
  EXPECT_EQ(plural(2, "node"), "2 nodes");
  EXPECT_EQ(hex_text(0xff), "00000000000000ff");
}

}  // namespace
}  // namespace eagle::ctl
