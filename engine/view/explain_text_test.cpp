#include "engine/view/explain_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/graph/schedule.h"
#include "engine/view/testing.h"
#include "engine/view/width.h"

namespace eagle::view {
namespace {

using ::testing::HasSubstr;
using testing::Sketch;

Sketch fork_and_join() {
  Sketch s;
  s.add(s.host("seed", {}, {"x"}));
  s.add_group({{s.kernel("left", "x", "y")}, {s.host("right", {"x[2:4]"}, {"z"})}});
  s.add(s.host("join", {"y", "z"}, {"x[0:2]"}));
  return s;
}

std::string pair(const Sketch& sketch, std::uint32_t a, std::uint32_t b) {
  return to_text(graph::explain(sketch.graph(), a, b).value());
}
std::string node(const Sketch& sketch, std::uint32_t index, bool built = true) {
  const auto schedule = built ? graph::schedule_of(sketch.graph(), 2) : std::vector<graph::StageSchedule>();
  return to_text(graph::explain(sketch.graph(), index, schedule).value());
}

TEST(ExplainText, OfAPairThatIsOrdered) {
  EXPECT_EQ(
      pair(fork_and_join(), 2, 0),
      "'seed' (0) → 'right' (2): the second waits for the first\n"
      "\n"
      "  RAW  data flows: 'seed' writes x, 'right' reads x\n"
      "       16 bytes in common, the first at byte 16 of memory 'x'\n"
      "       (byte 16 of the first one's x, byte 0 of the second one's x)\n"
      "\n"
      "  As branches of one group they would be refused:\n"
      "  node 0 'seed' and node 2 'right' are in different branches of one group and race (RAW, data flows): "
      "the first writes 'x', the second reads 'x', and these share bytes; give each branch a plane of its "
      "own, or put both nodes in one branch\n");
}

TEST(ExplainText, OfSiblingsThatMayRunAtTheSameTime) {
  EXPECT_EQ(pair(fork_and_join(), 1, 2),
            "'left' (1) and 'right' (2): branches of one group, free to run at the same time\n"
            "\n"
            "  They have no byte in common that either of them writes.\n");
}

TEST(ExplainText, OfARaceSaysThatItIsTheRefusal) {
  Sketch s;
  s.add_group({{s.host("one", {}, {"y"})}, {s.host("two", {}, {"y"})}});
  const std::string text = pair(s, 0, 1);
  EXPECT_THAT(text, HasSubstr("branches of one group that race, so build refuses them"));
  EXPECT_THAT(text, HasSubstr("\n  The refusal:\n  node 0 'one' and node 1 'two'"));
}

TEST(ExplainText, OfANode) {
  EXPECT_EQ(
      node(fork_and_join(), 1),
      "'left' (1): a launch of kernel 'double' over 8 samples\n"
      "\n"
      "  stage 1, work_share: 'right' is not a launch of a kernel, and only those can run inside a branch's "
      "task\n"
      "  planes\n"
      "    in   reads   64 bytes  from byte 0 of memory 'x'  input: the kernel uses its value\n"
      "    out  writes  64 bytes  from byte 0 of memory 'y'  output: always stored, whatever was there\n"
      "  waits for\n"
      "    'seed' (0): RAW x\n"
      "  is waited for by\n"
      "    'join' (3): RAW out, WAR in\n");
}

TEST(ExplainText, OfANodeThatIsNotBuilt) {
  EXPECT_THAT(node(fork_and_join(), 0, false), HasSubstr("\n  stage 0, not built: the stage is not a group"));
  EXPECT_THAT(node(fork_and_join(), 0, false), HasSubstr("\n  waits for nothing\n"));
}

TEST(ExplainText, ShowsNamesSafely) {
  Sketch s;
  s.add(s.host("a\n\x1b[31m", {}, {"p\t=x"})).add(s.host(std::string(5000, 'n'), {"x"}, {}));
  for (const std::string& text : {pair(s, 0, 1), node(s, 0), node(s, 1)}) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_LT(display_width(escaped(text)), 1500);
  }
}

TEST(ExplainText, OfAHubStaysShort) {
  Sketch s;
  s.add(s.host("hub", {}, {"x"}));
  for (int i = 0; i < 1000; ++i) s.add(s.host("n", {"x"}, {}));
  EXPECT_THAT(node(s, 0), HasSubstr("and 970 more\n"));
}

}  // namespace
}  // namespace eagle::view
