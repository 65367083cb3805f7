// Properties of the layout and of the text drawn from it, over random and over large graphs.
#include "engine/view/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/view/random_graph.h"
#include "engine/view/testing.h"
#include "engine/view/text.h"
#include "engine/view/width.h"

namespace eagle::view {
namespace {

using testing::RandomGraph;
using testing::Sketch;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The drawing as a reader sees it: one glyph a column, without header and gutter.
class Picture {
public:
  Picture(const graph::Graph& graph, const Layout& layout) : layout_(layout) {
    std::vector<std::string> lines = lines_of(to_text(graph));
    lines.erase(lines.begin(), lines.begin() + 2);
    for (const std::string& line : lines) {
      std::vector<std::string>& cells = cells_.emplace_back();
      for (std::string_view rest = line; !rest.empty();) {
        const Cluster cluster = first_cluster(rest);
        cells.emplace_back(rest.substr(0, cluster.bytes));
        for (int i = 1; i < cluster.columns; ++i) cells.emplace_back();
        rest.remove_prefix(cluster.bytes);
      }
    }
    // The gutter is as wide as its longest mark: find where the first box begins.
    const Shape& first = layout.shapes.front();
    const std::string corner = first.kind == Shape::Kind::box ? "┌" : "╭";
    const std::vector<std::string>& row = cells_[first.at.y];
    margin_ = static_cast<int>(std::ranges::find(row, corner) - row.begin()) - first.at.x;
    for (const Port& port : layout.ports) {
      if (port.enters) entries_[{port.at.x, port.at.y}] = port.shape;
    }
  }

  [[nodiscard]] std::string at(int x, int y) const {
    const std::vector<std::string>& row = cells_[y];
    return margin_ + x < static_cast<int>(row.size()) ? row[margin_ + x] : " ";
  }

  // All shapes that a reader reaches who follows the lines down from a port. Lines branch wherever they
  // are drawn joined, never lead up, and run straight on where they only cross.
  std::set<std::uint32_t> reached_from(const Port& port) {
    seen_.clear();
    reached_.clear();
    follow_down(port.at.x, port.at.y + 1);
    return reached_;
  }

private:
  void follow_down(int x, int y) {
    for (;; ++y) {
      if (!seen_.insert({x, y, 'v'}).second) return;
      const auto entry = entries_.find({x, y});
      if (entry != entries_.end()) {
        reached_.insert(entry->second);
        return;
      }
      ASSERT_LT(y, layout_.height) << "a line leads out of the picture at column " << x;
      const std::string glyph = at(x, y);
      if (glyph == "┘" || glyph == "┤" || glyph == "┴" || glyph == "┼") follow_across(x - 1, y, -1);
      if (glyph == "└" || glyph == "├" || glyph == "┴" || glyph == "┼") follow_across(x + 1, y, 1);
      if (glyph == "┘" || glyph == "└" || glyph == "┴") return;
      ASSERT_TRUE(is_title(x, y) || (glyph != " " && glyph != "─" && glyph != "┌" && glyph != "┐" &&
                                     glyph != "┬" && glyph != "╌"))
          << "a line breaks off at column " << x << ", line " << y << ": '" << glyph << "'";
    }
  }

  void follow_across(int x, int y, int step) {
    for (;; x += step) {
      if (!seen_.insert({x, y, step > 0 ? 'r' : 'l'}).second) return;
      const std::string glyph = at(x, y);
      const std::string turn = step > 0 ? "┐" : "┌";
      const std::string end = step > 0 ? "┤" : "├";
      if (glyph == turn || glyph == "┬" || glyph == "┼" || glyph == end) follow_down(x, y + 1);
      if (glyph == "─" || glyph == "│" || glyph == "┬" || glyph == "┴" || glyph == "┼") continue;
      const std::string stop = step > 0 ? "┘" : "└";
      ASSERT_TRUE(glyph == turn || glyph == end || glyph == stop)
          << "a line breaks off at column " << x << ", line " << y << ": '" << glyph << "'";
      return;
    }
  }

  // The title of a frame stands over the line that leads in.
  [[nodiscard]] bool is_title(int x, int y) const {
    return std::ranges::any_of(layout_.shapes, [&](const Shape& shape) {
      return shape.kind == Shape::Kind::frame && shape.at.y == y && shape.at.x < x &&
             x < shape.at.x + shape.width;
    });
  }

  const Layout& layout_;
  std::vector<std::vector<std::string>> cells_;
  int margin_ = 0;
  std::map<std::pair<int, int>, std::uint32_t> entries_;
  std::set<std::tuple<int, int, char>> seen_;
  std::set<std::uint32_t> reached_;
};

void expect_lines_say_what_is_connected(const graph::Graph& graph) {
  const Layout layout = lay_out(graph);
  std::set<std::pair<std::uint32_t, std::uint32_t>> connected;
  for (const Connection& connection : layout.connections) {
    EXPECT_FALSE(connection.hazards.empty());
    if (connection.drawn) connected.emplace(connection.source, connection.destination);
  }
  Picture picture(graph, layout);
  std::set<std::pair<std::uint32_t, std::uint32_t>> read;
  for (const Port& port : layout.ports) {
    if (port.enters) continue;
    for (const std::uint32_t shape : picture.reached_from(port)) read.emplace(port.shape, shape);
  }
  ASSERT_EQ(read, connected) << to_text(graph);
}

bool overlap(const Shape& a, const Shape& b, int apart) {
  return a.at.x < b.at.x + b.width + apart && b.at.x < a.at.x + a.width + apart &&
         a.at.y < b.at.y + b.height && b.at.y < a.at.y + a.height;
}

// Checks the shapes of a layout against each other: apart, or one in the frame of the other.
void expect_shapes_apart(const Layout& layout) {
  const auto holds = [&](std::uint32_t frame, std::uint32_t shape) {
    for (; shape != no_shape; shape = layout.shapes[shape].parent) {
      if (shape == frame) return true;
    }
    return false;
  };
  for (std::uint32_t i = 0; i < layout.shapes.size(); ++i) {
    const Shape& a = layout.shapes[i];
    EXPECT_EQ(a.width % 2, 1);
    for (std::uint32_t j = i + 1; j < layout.shapes.size(); ++j) {
      const Shape& b = layout.shapes[j];
      if (holds(i, j)) {
        ASSERT_TRUE(a.at.x + 2 <= b.at.x && b.at.x + b.width + 2 <= a.at.x + a.width && a.at.y < b.at.y &&
                    b.at.y + b.height < a.at.y + a.height)
            << b.text << " leaves its frame " << a.text;
      } else {
        ASSERT_FALSE(overlap(a, b, box_gap)) << a.text << " and " << b.text;
      }
    }
  }
}

bool is_on_border(const Shape& shape, Point at) {
  const bool column = at.x > shape.at.x && at.x < shape.at.x + shape.width - 1;
  return column && (at.y == shape.at.y || at.y == shape.at.y + shape.height - 1);
}

TEST(Layout, LinesOfRandomGraphsLeadFromEachNodeToExactlyThoseItIsConnectedTo) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomGraph random(seed);
    expect_lines_say_what_is_connected(random.graph());
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Layout, ShapesOfRandomGraphsKeepApart) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomGraph random(seed);
    const Layout layout = lay_out(random.graph());
    expect_shapes_apart(layout);
    for (const Port& port : layout.ports) EXPECT_TRUE(is_on_border(layout.shapes[port.shape], port.at));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Layout, TextOfRandomGraphsIsCleanAndShowsEveryLabel) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomGraph random(seed);
    const std::string text = to_text(random.graph());
    EXPECT_EQ(text.back(), '\n');
    for (const std::string& line : lines_of(text)) {
      EXPECT_FALSE(line.ends_with(' ')) << line;
      EXPECT_EQ(escaped(line), line) << "not clean UTF-8";
    }
    for (const graph::Leaf& leaf : graph::leaves(random.graph())) {
      EXPECT_THAT(text, ::testing::HasSubstr(cut(leaf.node->label, label_columns)));
    }
  }
}

TEST(Layout, TheSameGraphIsAlwaysDrawnTheSame) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_EQ(to_text(RandomGraph(seed).graph()), to_text(RandomGraph(seed).graph())) << "seed " << seed;
  }
}

TEST(Layout, AHundredInPlaceNodesAreOneChain) {
  Sketch sketch;
  for (int i = 0; i < 100; ++i) sketch.add(sketch.host("n", {"x"}, {"x"}));
  const Layout layout = lay_out(sketch.graph());
  EXPECT_EQ(layout.connections.size(), 99U);
  EXPECT_EQ(layout.width, 5);
  EXPECT_EQ(layout.height, 100 * 3 + 99 * 2);
}

TEST(Layout, FiveThousandNodesInAChain) {
  Sketch sketch;
  for (int i = 0; i < 5000; ++i) sketch.add(sketch.host("n", {"x"}, {"x"}));
  EXPECT_EQ(lay_out(sketch.graph()).connections.size(), 4999U);
  EXPECT_EQ(lines_of(to_text(sketch.graph())).size(), 2U + 5000 * 3 + 4999 * 2);
}

TEST(Layout, FiveThousandBranches) {
  Sketch sketch;
  std::vector<std::vector<graph::Node>> branches;
  for (int i = 0; i < 5000; ++i) branches.push_back({sketch.host("n", {"x"}, {"y" + std::to_string(i)})});
  sketch.add(sketch.host("seed", {}, {"x"}));
  sketch.add_group(std::move(branches));
  const Layout layout = lay_out(sketch.graph());
  EXPECT_EQ(layout.connections.size(), 5000U);
  EXPECT_TRUE(std::ranges::all_of(layout.connections, &Connection::drawn));
  EXPECT_FALSE(to_text(sketch.graph()).empty());
}

TEST(Layout, ManySourcesOfOneNodeShareALane) {
  Sketch sketch;
  Sketch::Views all;
  for (int i = 0; i < 200; ++i) {
    all.push_back("y" + std::to_string(i));
    sketch.add(sketch.host("n", {}, {all.back()}));
  }
  sketch.add(sketch.host("join", all, {}));
  const Layout layout = lay_out(sketch.graph());
  EXPECT_EQ(layout.width, 2 + 5 + box_gap + 1);  // boxes of 5 centred on one of 9, and one lane
  expect_lines_say_what_is_connected(sketch.graph());
}

// Every source feeds a node of its own, 200 rows below.
TEST(Layout, LinesWithoutRoomAreListed) {
  Sketch sketch;
  for (int i = 0; i < 200; ++i)
    sketch.add(sketch.host("from" + std::to_string(i), {}, {"y" + std::to_string(i)}));
  for (int i = 0; i < 200; ++i)
    sketch.add(sketch.host("to" + std::to_string(i), {"y" + std::to_string(i)}, {}));
  const Layout layout = lay_out(sketch.graph());
  const auto drawn = std::ranges::count_if(layout.connections, &Connection::drawn);
  EXPECT_EQ(layout.connections.size(), 200U);
  EXPECT_GE(drawn, static_cast<std::ptrdiff_t>(most_lanes));
  expect_lines_say_what_is_connected(sketch.graph());
  const std::string text = to_text(sketch.graph());
  std::size_t listed = 0;
  for (const std::string& line : lines_of(text)) listed += line.starts_with("  not drawn: from") ? 1 : 0;
  EXPECT_EQ(listed, 200U - drawn);
  EXPECT_THAT(text, ::testing::HasSubstr("  not drawn: from100 (100) → to100 (300): y100\n"));
}

TEST(Layout, NoLineLeadsAroundAVeryWideStage) {
  Sketch sketch;
  std::vector<std::vector<graph::Node>> branches(60);
  for (std::vector<graph::Node>& branch : branches) branch.push_back(sketch.host("n", {}, {}));
  sketch.add(sketch.host("before", {}, {"x"}));
  sketch.add_group(std::move(branches));
  sketch.add(sketch.host("after", {"x"}, {}));
  EXPECT_THAT(to_text(sketch.graph()), ::testing::HasSubstr("\n  not drawn: before (0) → after (61): x\n"));
}

TEST(Layout, ManyCrossingLinesBetweenTwoRowsAreListed) {
  Sketch sketch;
  std::vector<std::vector<graph::Node>> from;
  std::vector<std::vector<graph::Node>> to;
  for (int i = 0; i < 100; ++i) {
    from.push_back({sketch.host("f", {}, {"y" + std::to_string(i)})});
    to.push_back({sketch.host("t", {"y" + std::to_string(99 - i)}, {})});
  }
  sketch.add_group(std::move(from)).add_group(std::move(to));
  EXPECT_LE(lay_out(sketch.graph()).height, 3 + 1 + most_tracks + 3);
  expect_lines_say_what_is_connected(sketch.graph());
}

TEST(Layout, TooMuchToCompareIsSaid) {
  Sketch sketch;
  std::vector<std::vector<graph::Node>> from;
  std::vector<std::vector<graph::Node>> to;
  for (int i = 0; i < 1001; ++i) {
    from.push_back({sketch.host("f", {}, {"x[" + std::to_string(i) + ":" + std::to_string(i + 1) + "]"})});
    to.push_back({sketch.host("t", {"x[0:1001]"}, {})});
  }
  sketch.add_group(std::move(from)).add_group(std::move(to));
  const Layout layout = lay_out(sketch.graph());
  EXPECT_FALSE(layout.ordered);
  EXPECT_TRUE(layout.connections.empty());
  EXPECT_THAT(to_text(sketch.graph()),
              ::testing::EndsWith("  (edges are missing: too many planes to compare for a picture)\n"));
}

TEST(Layout, AnEmptyGraphIsDrawnToo) {
  EXPECT_EQ(to_text(graph::Graph{}), "eagle.Graph  0 nodes · 0 groups · backend: (not built)\n\n  (empty)\n");
}

}  // namespace
}  // namespace eagle::view
