// All formats say the same, whatever the graph and its names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/view/dot.h"
#include "engine/view/figure.h"
#include "engine/view/mermaid.h"
#include "engine/view/picture.h"
#include "engine/view/random_graph.h"
#include "engine/view/svg.h"
#include "engine/view/testing.h"
#include "engine/view/testing_formats.h"

namespace eagle::view {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::RandomGraph;
using testing::Said;
using testing::Sketch;

v1::Figure figure_of(const graph::Graph& graph) {
  v1::Figure figure;
  EXPECT_TRUE(figure.ParseFromString(draw(graph, Format::figure)));
  return figure;
}

void expect_all_say_the_same(const graph::Graph& graph) {
  const Layout layout = lay_out(graph);
  const Said said = testing::said_by(layout);
  ASSERT_EQ(testing::said_by(figure_of(graph)), said);
  ASSERT_EQ(testing::said_by_mermaid(draw(graph, Format::mermaid)), said);
  ASSERT_EQ(testing::said_by_dot(draw(graph, Format::dot)), said);
  ASSERT_EQ(testing::said_by_svg(draw(graph, Format::svg)), testing::as_svg(said, layout));
}

TEST(Formats, OfRandomGraphsSayTheSame) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomGraph random(seed);
    expect_all_say_the_same(random.graph());
    if (::testing::Test::HasFatalFailure()) return;
  }
}

const std::vector<std::string> hostile_names = {"\"quoted\"",
                                                "[brackets]",
                                                "{curly|fields}",
                                                "<b>bold</b>",
                                                "a & b &lt; c",
                                                "`code`",
                                                "end",
                                                "End",
                                                "endless",
                                                "style: a#b; c",
                                                "classDef x:y#z;",
                                                "%%{init: {\"theme\":\"dark\"}}%%",
                                                "1. first",
                                                "- item",
                                                "**bold**",
                                                "line\nbreak",
                                                "back\\slash",
                                                "\\n",
                                                "\\N",
                                                "tab\there",
                                                "\x1b[31mred",
                                                "\xff\xfe",
                                                "名前",
                                                "👩‍👩‍👧 🇯🇵",
                                                "-->",
                                                "a --> b",
                                                "subgraph",
                                                "click n0 call()",
                                                "]]>",
                                                "<!--",
                                                "<script>alert(1)</script>",
                                                "#quot;",
                                                "#35;",
                                                "\xEF\xBF\xBE",
                                                "\xE2\x80\xAE"
                                                "rtl",
                                                ":::opaque",
                                                "port:n",
                                                "; }",
                                                "",
                                                " "};

TEST(Formats, OfHostileNamesSayTheSame) {
  for (const std::string& name : hostile_names) {
    SCOPED_TRACE(name);
    Sketch sketch;
    sketch.add(sketch.host(name, {}, {name + "=x"}));
    sketch.add(sketch.conditional(name, {Sketch::stage(sketch.host(name, {name + "=x"}, {name + "=x"})),
                                         Sketch::stage(sketch.host("next", {"x"}, {}))}));
    const Layout layout = lay_out(sketch.graph());
    Said said = testing::said_by(layout);
    EXPECT_EQ(testing::said_by_mermaid(draw(sketch.graph(), Format::mermaid)), said);
    EXPECT_EQ(testing::said_by_dot(draw(sketch.graph(), Format::dot)), said);
    if (name != "\xEF\xBF\xBE") {  // escaped there alone: XML has no such character
      EXPECT_EQ(testing::said_by_svg(draw(sketch.graph(), Format::svg)), testing::as_svg(said, layout));
    }
  }
}

// From one shape's lower border to the other's upper one, turning at right angles, along lines of the text
// picture.
TEST(Formats, EachEdgeRunsAlongTheLinesThatTheTextPictureDraws) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomGraph random(seed);
    const Layout layout = lay_out(random.graph(), Detail::edges);
    const auto covered = [&](Point a, Point b) {
      return std::ranges::any_of(layout.wires, [&](const Wire& wire) {
        return wire.from.x <= std::min(a.x, b.x) && std::max(a.x, b.x) <= wire.to.x &&
               wire.from.y <= std::min(a.y, b.y) && std::max(a.y, b.y) <= wire.to.y;
      });
    };
    for (const Connection& connection : layout.connections) {
      if (!connection.drawn) continue;
      ASSERT_GE(connection.path.size(), 2U);
      const Shape& source = layout.shapes[connection.source];
      const Shape& destination = layout.shapes[connection.destination];
      EXPECT_EQ(connection.path.front().y, source.at.y + source.height - 1);
      EXPECT_EQ(connection.path.back().y, destination.at.y);
      EXPECT_TRUE(destination.at.x < connection.path.back().x &&
                  connection.path.back().x < destination.at.x + destination.width - 1);
      for (std::size_t i = 1; i < connection.path.size(); ++i) {
        Point a = connection.path[i - 1];
        const Point b = connection.path[i];
        ASSERT_TRUE(a.x == b.x || a.y == b.y);
        // A vertical piece may be made of several lines, one a row.
        for (; a.y < b.y; ++a.y) ASSERT_TRUE(covered(a, {a.x, a.y + 1})) << a.x << " " << a.y;
        if (a.x != b.x) {
          ASSERT_TRUE(covered(a, b));
        }
      }
      EXPECT_FALSE(connection.meetings.empty());
    }
  }
}

TEST(Formats, EdgesTellKindsPlanesAndBytes) {
  Sketch sketch;
  sketch.add(sketch.host("a", {}, {"p=x"})).add(sketch.host("b", {"q=x[2:4]"}, {}));
  const Figure figure = make_figure(sketch.graph());
  ASSERT_EQ(figure.edges.size(), 1U);
  EXPECT_EQ(figure.edges.front().title, "a (0) → b (1)\nRAW p → q, bytes 16 to 31 of 'x': data flows");
  EXPECT_THAT(to_svg(figure),
              HasSubstr("<title>a (0) → b (1)\nRAW p → q, bytes 16 to 31 of 'x': data flows</title>"));
  EXPECT_THAT(to_dot(figure),
              HasSubstr("tooltip=\"a (0) → b (1)\\nRAW p → q, bytes 16 to 31 of 'x': data flows\""));
}

// Which of the edge's kinds it is drawn as.
TEST(Formats, EachKindHasItsOwnStyle) {
  Sketch sketch;
  sketch.add(sketch.host("w", {}, {"x"})).add(sketch.host("r", {"x"}, {"y"}));
  sketch.add(sketch.host("over", {}, {"x"})).add(sketch.host("again", {}, {"x"}));
  const Figure figure = make_figure(sketch.graph());
  std::vector<std::string> kinds;
  for (const FigureEdge& edge : figure.edges) kinds.emplace_back(style_of(edge.kind).name);
  EXPECT_THAT(kinds, ::testing::ElementsAre("raw", "war", "waw"));
}

TEST(Formats, AnEmptyGraphIsDrawnToo) {
  for (const Format format : all_formats) {
    EXPECT_FALSE(draw(graph::Graph{}, format).empty()) << name_of(format);
  }
  EXPECT_THAT(draw(graph::Graph{}, Format::svg), HasSubstr("(empty)"));
}

TEST(Formats, WhatHasNoRoomForALineIsSaidOrDrawnAllTheSame) {
  Sketch sketch;
  std::vector<std::vector<graph::Node>> branches(60);
  for (std::vector<graph::Node>& branch : branches) branch.push_back(sketch.host("n", {}, {}));
  sketch.add(sketch.host("before", {}, {"x"}));
  sketch.add_group(std::move(branches));
  sketch.add(sketch.host("after", {"x"}, {}));
  expect_all_say_the_same(sketch.graph());
  EXPECT_THAT(draw(sketch.graph(), Format::svg), HasSubstr("not drawn: before (0) → after (61): x"));
  EXPECT_THAT(draw(sketch.graph(), Format::mermaid), HasSubstr("n0 -->|\"x\"| n61"));
}

TEST(Formats, FiveThousandNodesTakeLittleMoreThanTheirNumber) {
  Sketch chain;
  for (int i = 0; i < 5000; ++i) chain.add(chain.host("n", {"x"}, {"x"}));
  Sketch wide;
  std::vector<std::vector<graph::Node>> branches;
  for (int i = 0; i < 4998; ++i) branches.push_back({wide.host("n", {"x"}, {"y" + std::to_string(i)})});
  Sketch::Views all;
  for (int i = 0; i < 4998; ++i) all.push_back("y" + std::to_string(i));
  wide.add(wide.host("seed", {}, {"x"})).add_group(std::move(branches)).add(wide.host("join", all, {}));
  // One node that all later ones wait for, past all others.
  Sketch hub;
  hub.add(hub.host("hub", {}, {"h"}));
  for (int i = 0; i < 4999; ++i) hub.add(hub.host("n", {"h"}, {}));
  for (const Sketch* sketch : {&chain, &wide, &hub}) {
    for (const Format format : all_formats) {
      EXPECT_LT(draw(sketch->graph(), format).size(), 8U << 20U) << name_of(format);
    }
  }
}

TEST(Formats, EdgesPastTheBoundAreCounted) {
  Sketch sketch;
  std::vector<std::vector<graph::Node>> from;
  std::vector<std::vector<graph::Node>> to;
  Sketch::Views all;
  for (int i = 0; i < 400; ++i) all.push_back("y" + std::to_string(i));
  for (const std::string& plane : all) from.push_back({sketch.host("f", {}, {plane})});
  for (int i = 0; i < 400; ++i) to.push_back({sketch.host("t", all, {})});
  sketch.add_group(std::move(from)).add_group(std::move(to));
  const Figure figure = make_figure(sketch.graph());
  EXPECT_EQ(figure.edges.size(), most_edges);
  EXPECT_THAT(figure.notes, ::testing::Contains(HasSubstr("60000 edges more than 100000")));
}

// 10,000 edges, each between two names of 10,000 bytes, for a plane of such a name: 300 megabytes if all were
// written.
TEST(Formats, LongNamesAtManyEdgesAreBounded) {
  const std::string mark = "\xCC\x81";  // takes no column, so that no cut by columns bounds it
  std::string marks = "e";
  while (marks.size() < 9'990) marks += mark;
  Sketch sketch;
  std::vector<std::vector<graph::Node>> from;
  std::vector<std::vector<graph::Node>> to;
  Sketch::Views all;
  for (int i = 0; i < 100; ++i) all.push_back("y" + std::to_string(i));
  for (const std::string& plane : all) from.push_back({sketch.host(marks, {}, {marks + "=" + plane})});
  for (int i = 0; i < 100; ++i) to.push_back({sketch.host(marks, all, {})});
  sketch.add_group(std::move(from)).add_group(std::move(to));
  for (const Format format : all_formats) {
    EXPECT_LT(draw(sketch.graph(), format).size(), std::size_t{200} << 20U) << name_of(format);
  }
  EXPECT_THAT(draw(sketch.graph(), Format::svg), HasSubstr("(names are missing"));
}

TEST(Formats, VeryLongNamesAreCut) {
  Sketch sketch;
  const std::string name(10'000, 'x');
  sketch.add(sketch.host(name, {}, {name + "=x"})).add(sketch.host(name, {name + "=x"}, {}));
  for (const Format format : all_formats) {
    EXPECT_LT(draw(sketch.graph(), format).size(), 10'000U) << name_of(format);
  }
}

TEST(Mermaid, WritesSignsThatMeanSomethingAsNumbers) {
  EXPECT_EQ(mermaid_escaped("plain words_and_names, x:WAR"), "plain words_and_names, x:WAR");
  EXPECT_EQ(mermaid_escaped("\"[]#"), "#34;#91;#93;#35;");
  EXPECT_EQ(mermaid_escaped("end"), "#101;nd");
  EXPECT_EQ(mermaid_escaped("endless"), "endless");
  EXPECT_EQ(mermaid_escaped("the end"), "the #101;nd");
  EXPECT_EQ(mermaid_escaped("<b>`x`</b>"), "#60;b#62;#96;x#96;#60;#47;b#62;");
  EXPECT_EQ(mermaid_escaped("-item 1."), "#45;item 1#46;");
}

TEST(Dot, QuotesWhatEndsAText) {
  EXPECT_EQ(dot_quoted("a \"b\" \\N &lt;"), "\"a \\\"b\\\" \\\\N &amp;lt;\"");
}

TEST(Svg, EscapesWhatXmlReads) { EXPECT_EQ(xml_escaped("<a & \"b\">"), "&lt;a &amp; &quot;b&quot;&gt;"); }

TEST(Svg, NeedsNothingOutsideAndCanBeRead) {
  Sketch sketch;
  sketch.add(sketch.host("a", {}, {"x"})).add(sketch.host("b", {"x"}, {}));
  const std::string svg = draw(sketch.graph(), Format::svg);
  EXPECT_THAT(svg, HasSubstr("role=\"img\""));
  EXPECT_THAT(svg, HasSubstr("aria-labelledby"));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(svg, HasSubstr("a → b (x)."));
  EXPECT_THAT(svg, Not(HasSubstr("href")));
  EXPECT_THAT(svg, Not(HasSubstr("@import")));
}

TEST(PictureFormats, HaveTheNumbersOfTheMessage) {
  EXPECT_EQ(format_of(v1::PICTURE_TEXT), Format::text);
  EXPECT_EQ(format_of(v1::PICTURE_MERMAID), Format::mermaid);
  EXPECT_EQ(format_of(v1::PICTURE_DOT), Format::dot);
  EXPECT_EQ(format_of(v1::PICTURE_SVG), Format::svg);
  EXPECT_EQ(format_of(v1::PICTURE_FIGURE), Format::figure);
  EXPECT_EQ(format_of(0), std::nullopt);
  EXPECT_EQ(format_of(6), std::nullopt);
}

}  // namespace
}  // namespace eagle::view
