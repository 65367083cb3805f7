// Pictures in all formats against the files in golden/. EAGLE_WRITE_GOLDEN=1 writes them anew: look at every
// one that changed.
#include "engine/view/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <utility>

#include "engine/view/picture.h"
#include "engine/view/testing.h"

namespace eagle::view {
namespace {

using testing::Sketch;
using Tier = graph::HostTier;

PictureOptions built(const Sketch& sketch) {
  PictureOptions options;
  options.schedule = graph::schedule_of(sketch.graph(), 2);
  return options;
}

Sketch fork_and_join() {
  Sketch s;
  s.add(s.host("seed", {}, {"x"}));
  s.add_group({{s.host("left", {"x"}, {"left_out"})}, {s.host("right", {"x"}, {"right_out"})}});
  s.add(s.conditional("combine", s.host("opaque", {"left_out", "right_out"}, {"z"})));
  return s;
}

Sketch double_and_shift() {
  Sketch s;
  s.add(s.host("double", {"x"}, {"y"})).add(s.host("shift", {"y"}, {"z"}));
  return s;
}

Sketch kernel_chain() {
  Sketch s;
  s.add(s.kernel("propagate", "x", "y"));
  s.add(s.host("inspect", {"out=y"}, {"report"}));
  s.add(s.kernel("correct", "y", "x"));
  return s;
}

Sketch list_branches() {
  Sketch s;
  s.add(s.host("seed", {}, {"x"}));
  s.add_group({{s.host("l1", {"x"}, {"y"}), s.host("l2", {"y"}, {"y"}), s.host("l3", {"y"}, {"w"})},
               {s.host("right", {"x"}, {"z"})}});
  s.add(s.host("join", {"y", "z", "w"}, {"out"}));
  return s;
}

// l1 feeds l3 past l2; the seed feeds l2 past l1; l1 feeds the join past everything.
Sketch skips_in_branches() {
  Sketch s;
  s.add(s.host("seed", {}, {"x", "bias"}));
  s.add_group(
      {{s.host("l1", {"x"}, {"a", "b"}), s.host("l2", {"bias"}, {"c"}), s.host("l3", {"a", "c"}, {"d"})},
       {s.host("r1", {"x"}, {"e"}), s.host("r2", {"e"}, {"f"})}});
  s.add(s.host("join", {"b", "d", "f"}, {}));
  return s;
}

Sketch loops_in_a_group() {
  Sketch s;
  s.add(s.conditional("settle", s.host("opaque", {"x"}, {"x"}), 10));
  s.add_group({{s.conditional("refine", s.kernel("double", "x", "y"))}, {s.host("watch", {"x"}, {"log"})}});
  s.add(s.conditional("it", s.host("opaque", {"y", "log"}, {}), 5));
  return s;
}

Sketch tiers() {
  Sketch s;
  s.add(s.host("model", {"x"}, {"y"}, Tier::stream));
  s.add(s.host("report", {"y"}, {"z"}, Tier::eager));
  s.add(s.host("a_name_that_is_far_too_long_for_a_box", {"z"}, {}, Tier::stream));
  return s;
}

Sketch world_names() {
  Sketch s;
  s.add(s.host("名前が長い箱の名前は切られます", {}, {"値=x", "結果=y"}));
  s.add_group({{s.host("🎉 party 👩‍👩‍👧 🇯🇵", {"x"}, {"été=z"})},
               {s.host("e\u0301te\u0301", {"y"}, {"w"})}});
  s.add(
      s.host("a\nb\tc\x1b"
             "d\xff"
             "e\u202e",
             {"z", "w"}, {}));
  return s;
}

Sketch hazards() {
  Sketch s;
  s.add(s.host("reader", {"x"}, {"y"}));
  s.add(s.host("writer", {}, {"x", "y"}));
  s.add(s.host("in place", {"x"}, {"x"}));
  s.add(s.host("again", {"x"}, {"x"}));
  return s;
}

Sketch skipping_rows() {
  Sketch s;
  s.add(s.host("mesh", {}, {"grid"}));
  s.add(s.host("forces", {}, {"force"}));
  s.add(s.host("integrate", {"force"}, {"state"}));
  s.add(s.host("project", {"grid", "state"}, {"field"}));
  s.add(s.host("report", {"field"}, {}));
  return s;
}

// Neither pair of the second group has the same sources: the lines must not suggest left -> out or
// right -> in.
Sketch crossing_groups() {
  Sketch s;
  s.add_group({{s.host("left", {}, {"a"})}, {s.host("middle", {}, {"b"})}, {s.host("right", {}, {"c"})}});
  s.add_group(
      {{s.host("in", {"b", "c"}, {})}, {s.host("mid", {"a", "c"}, {})}, {s.host("out", {"a", "b"}, {})}});
  return s;
}

Sketch swapped_pair() {
  Sketch s;
  s.add_group({{s.host("left", {}, {"a"})}, {s.host("right", {}, {"b"})}});
  s.add_group({{s.host("use b", {"b"}, {})}, {s.host("use a", {"a"}, {})}});
  return s;
}

Sketch all_to_all() {
  Sketch s;
  s.add_group({{s.host("p", {}, {"a"})}, {s.host("q", {}, {"b"})}, {s.host("r", {}, {"c"})}});
  s.add_group({{s.host("s", {"a", "b", "c"}, {"d"})}, {s.host("t", {"a", "b", "c"}, {"e"})}});
  return s;
}

Sketch nested_body() {
  Sketch s;
  s.add(s.host("seed", {}, {"x"}));
  s.add(s.conditional(
      "solve",
      {Sketch::stage(s.kernel("predict", "x", "y")),
       Sketch::group({{s.host("left", {"out=y"}, {"a"})},
                      {s.conditional("right", s.host("opaque", {"out=y"}, {"b"}))}}),
       Sketch::stage(s.conditional("inner", s.conditional("skippable", s.host("o", {"a", "b"}, {"x"})), 3))},
      64));
  s.add(s.host("report", {"x"}, {}));
  return s;
}

Sketch single_node() {
  Sketch s;
  s.add(s.kernel("step", "x", "y"));
  return s;
}

Sketch no_edges() {
  Sketch s;
  s.add(s.host("a", {"x"}, {"u"})).add(s.host("b", {"x"}, {"v"})).add(s.host("c", {"x"}, {"w"}));
  return s;
}

Sketch racing() {
  Sketch s;
  s.add(s.host("seed", {}, {"x"}));
  s.add_group({{s.host("one", {"x"}, {"y"})}, {s.host("two", {"x"}, {"y"})}});
  s.add(s.host("use", {"y"}, {}));
  return s;
}

Sketch eleven_stages() {
  Sketch s;
  for (int i = 0; i < 11; ++i) s.add(s.host("n" + std::to_string(i), {"x"}, {"x"}));
  return s;
}

struct Golden {
  const char* name;
  std::function<Sketch()> make;
  bool is_built = true;
};

std::ostream& operator<<(std::ostream& out, const Golden& golden) { return out << golden.name; }

class GoldenPicture : public ::testing::TestWithParam<Golden> {};

TEST_P(GoldenPicture, IsUnchanged) {
  const Sketch sketch = GetParam().make();
  const PictureOptions options = GetParam().is_built ? built(sketch) : PictureOptions{};
  for (const auto& [format, ending] : {std::pair(Format::text, ".txt"),
                                       {Format::mermaid, ".mmd"},
                                       {Format::dot, ".dot"},
                                       {Format::svg, ".svg"}}) {
    const std::string picture = draw(sketch.graph(), format, options);
    const std::string path = std::string(EAGLE_GOLDEN_DIR) + "/" + GetParam().name + ending;
    if (std::getenv("EAGLE_WRITE_GOLDEN") != nullptr) std::ofstream(path) << picture;
    std::ifstream file(path);
    ASSERT_TRUE(file.is_open()) << path;
    std::stringstream golden;
    golden << file.rdbuf();
    EXPECT_EQ(picture, golden.str());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Text, GoldenPicture,
    ::testing::Values(Golden{"fork_and_join", fork_and_join}, Golden{"double_and_shift", double_and_shift},
                      Golden{"not_built", double_and_shift, false}, Golden{"kernel_chain", kernel_chain},
                      Golden{"list_branches", list_branches}, Golden{"skips_in_branches", skips_in_branches},
                      Golden{"loops_in_a_group", loops_in_a_group}, Golden{"tiers", tiers},
                      Golden{"world_names", world_names}, Golden{"hazards", hazards},
                      Golden{"skipping_rows", skipping_rows}, Golden{"crossing_groups", crossing_groups},
                      Golden{"swapped_pair", swapped_pair}, Golden{"all_to_all", all_to_all},
                      Golden{"nested_body", nested_body}, Golden{"single_node", single_node},
                      Golden{"no_edges", no_edges}, Golden{"racing", racing, false},
                      Golden{"eleven_stages", eleven_stages}),
    [](const auto& tested) { return tested.param.name; });

TEST(TextPicture, HeaderSaysWhatTheGraphIsSoFar) {
  const Sketch sketch = double_and_shift();
  PictureOptions options = built(sketch);
  options.recorded = true;
  const auto header = [&] {
    const std::string text = to_text(sketch.graph(), options);
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(header(), "eagle.Graph  2 nodes · 0 groups · backend: cpu · recorded");
  options.schedule.clear();
  EXPECT_EQ(header(), "eagle.Graph  2 nodes · 0 groups · backend: (not built) · recorded");
}

TEST(TextPicture, AChildIsTaggedAndWhatIsCapturedIsNot) {
  Sketch s;
  s.add(s.host("model", {"x"}, {"y"}, Tier::child));
  s.add(s.host("step", {"y"}, {"z"}, Tier::recorded));
  const std::string text = to_text(s.graph(), built(s));
  EXPECT_THAT(text, ::testing::HasSubstr("model [child] "));
  EXPECT_THAT(text, ::testing::HasSubstr(" step "));
}

TEST(TextPicture, OnlyTheCpuHasNotesOnStreams) {
  const Sketch sketch = tiers();
  PictureOptions options = built(sketch);
  EXPECT_THAT(to_text(sketch.graph(), options), ::testing::HasSubstr("cpu runs eagerly"));
  options.backend = "gpu";
  EXPECT_THAT(to_text(sketch.graph(), options), ::testing::Not(::testing::HasSubstr("cpu runs eagerly")));
}

}  // namespace
}  // namespace eagle::view
