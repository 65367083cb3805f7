// Reads pictures back, for tests: what a picture in any format says, in one form.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "eagle/v1/picture.pb.h"
#include "engine/graph/edges.h"
#include "engine/view/figure.h"
#include "engine/view/layout.h"
#include "engine/view/style.h"
#include "engine/view/width.h"

namespace eagle::view::testing {

struct Said {
  using Edge = std::tuple<std::uint32_t, std::uint32_t, std::string, std::string>;  // kind, planes
  std::map<std::uint32_t, std::string> nodes;                                       // texts by shape
  std::map<std::uint32_t, std::string> frames;
  std::map<std::uint32_t, std::int32_t> parents;
  std::set<std::uint32_t> opaque;
  std::set<Edge> edges;
  friend bool operator==(const Said&, const Said&) = default;
};

inline std::ostream& operator<<(std::ostream& out, const Said& said) {
  for (const auto& [id, text] : said.nodes)
    out << "n" << id << " " << text << " in " << said.parents.at(id) << "\n";
  for (const auto& [id, text] : said.frames)
    out << "f" << id << " " << text << " in " << said.parents.at(id) << "\n";
  for (const auto& [from, to, kind, planes] : said.edges)
    out << from << " " << kind << " " << to << " " << planes << "\n";
  return out;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// What the layout itself says.
inline Said said_by(const Layout& layout) {
  Said said;
  for (std::uint32_t i = 0; i < layout.shapes.size(); ++i) {
    const Shape& shape = layout.shapes[i];
    (shape.kind == Shape::Kind::frame ? said.frames : said.nodes)[i] = shape.text;
    said.parents[i] = shape.parent == no_shape ? -1 : static_cast<std::int32_t>(shape.parent);
    if (shape.opaque) said.opaque.insert(i);
  }
  for (const Connection& connection : layout.connections) {
    said.edges.emplace(connection.source, connection.destination,
                       std::string(style_of(drawn_kind(connection.hazards)).name),
                       cut(plane_names(connection.hazards), edge_text_columns));
  }
  return said;
}

inline Said said_by(const v1::Figure& figure) {
  Said said;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(figure.shapes_size()); ++i) {
    const v1::FigureShape& shape = figure.shapes(static_cast<int>(i));
    (shape.frame() ? said.frames : said.nodes)[i] = shape.text();
    said.parents[i] = shape.parent();
    if (shape.dashed()) said.opaque.insert(i);
  }
  for (const v1::FigureEdge& edge : figure.edges()) {
    const auto kind = static_cast<graph::Hazard>(edge.kind());
    said.edges.emplace(edge.source(), edge.destination(), std::string(style_of(kind).name), edge.text());
  }
  return said;
}

inline std::string mermaid_decoded(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '#') {
      out += text[i];
      continue;
    }
    const std::size_t end = text.find(';', i);
    out += static_cast<char>(std::stoi(text.substr(i + 1, end - i - 1)));
    i = end;
  }
  return out;
}

// Also the grammar check: every line must be one of the statements that we write, and nothing in a text may
// mean anything.
inline Said said_by_mermaid(const std::string& picture) {
  static const std::string text = "\"((?:[^\"#`<>&\\[\\]{}|\\\\]|#[0-9]+;)*)\"";
  static const std::regex node("( *)n([0-9]+)\\[" + text + "\\]");
  static const std::regex frame("( *)subgraph f([0-9]+)\\[" + text + "\\]");
  static const std::regex end(" *end");
  static const std::regex edge("  [nf]([0-9]+) (-->|-\\.->)(?:\\|" + text + "\\|)? [nf]([0-9]+)");
  static const std::regex links("  linkStyle ([0-9,]+) stroke:#[0-9a-f]{6},stroke-dasharray:([0-9 ]+)");
  static const std::regex classes("  class ([nf0-9,]+) (opaque|frame)");
  static const std::regex rest(
      "flowchart TD|  accTitle: [^;#]*|  %% .*|  classDef (opaque|frame) [a-z-]+:[a-z0-9 ]+|  linkStyle "
      "default stroke:#[0-9a-f]{6}");
  Said said;
  std::vector<std::int32_t> open = {-1};
  std::vector<Said::Edge> edges;
  for (const std::string& line : lines_of(picture)) {
    std::smatch found;
    if (std::regex_match(line, found, node)) {
      const auto id = static_cast<std::uint32_t>(std::stoul(found[2]));
      said.nodes[id] = mermaid_decoded(found[3]);
      said.parents[id] = open.back();
    } else if (std::regex_match(line, found, frame)) {
      const auto id = static_cast<std::uint32_t>(std::stoul(found[2]));
      said.frames[id] = mermaid_decoded(found[3]);
      said.parents[id] = open.back();
      open.push_back(static_cast<std::int32_t>(id));
    } else if (std::regex_match(line, end)) {
      open.pop_back();
    } else if (std::regex_match(line, found, edge)) {
      edges.emplace_back(std::stoul(found[1]), std::stoul(found[4]), "raw", mermaid_decoded(found[3]));
    } else if (std::regex_match(line, found, links)) {
      std::istringstream numbers(found[1]);
      for (std::string number; std::getline(numbers, number, ',');) {
        std::get<2>(edges.at(std::stoul(number))) = found[2] == "7 4" ? "war" : "waw";
      }
    } else if (std::regex_match(line, found, classes)) {
      std::istringstream ids(found[1]);
      for (std::string id; found[2] == "opaque" && std::getline(ids, id, ',');) {
        said.opaque.insert(static_cast<std::uint32_t>(std::stoul(id.substr(1))));
      }
    } else {
      EXPECT_TRUE(std::regex_match(line, rest)) << "not Mermaid as we write it: " << line;
    }
  }
  EXPECT_EQ(open.size(), 1U) << "subgraphs are not closed";
  said.edges = {edges.begin(), edges.end()};
  return said;
}

inline std::string dot_decoded(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) out += text[i] == '\\' ? text[++i] : text[i];
  return replaced(out, "&amp;", "&");
}

inline Said said_by_dot(const std::string& picture) {
  static const std::string text = "\"((?:[^\"\\\\]|\\\\.)*)\"";
  static const std::regex node(" *n([0-9]+) \\[label=" + text + ", tooltip=" + text + "(, style=dashed)?\\]");
  static const std::regex frame(" *subgraph cluster_f([0-9]+) \\{");
  static const std::regex title(" *graph \\[label=" + text + ", tooltip=" + text + ", style=rounded\\]");
  static const std::regex edge("  [nf]([0-9]+) -> [nf]([0-9]+) \\[label=" + text +
                               ", style=([a-z]+), color=\"#[0-9a-f]{6}\", tooltip=" + text +
                               "(?:, ltail=cluster_f([0-9]+))?(?:, lhead=cluster_f([0-9]+))?\\]");
  static const std::map<std::string, std::string> kinds = {
      {"solid", "raw"}, {"dashed", "war"}, {"dotted", "waw"}};
  Said said;
  std::vector<std::int32_t> open = {-1};
  const std::vector<std::string> lines = lines_of(picture);
  for (std::size_t i = 4; i + 1 < lines.size(); ++i) {  // after the settings, before the last brace
    std::smatch found;
    if (std::regex_match(lines[i], found, node)) {
      const auto id = static_cast<std::uint32_t>(std::stoul(found[1]));
      said.nodes[id] = dot_decoded(found[2]);
      said.parents[id] = open.back();
      if (found[4].matched) said.opaque.insert(id);
    } else if (std::regex_match(lines[i], found, frame)) {
      const auto id = static_cast<std::uint32_t>(std::stoul(found[1]));
      said.parents[id] = open.back();
      open.push_back(static_cast<std::int32_t>(id));
    } else if (std::regex_match(lines[i], found, title)) {
      said.frames[static_cast<std::uint32_t>(open.back())] = dot_decoded(found[1]);
    } else if (lines[i].find_first_not_of(" }") == std::string::npos) {
      open.pop_back();
    } else if (std::regex_match(lines[i], found, edge)) {
      said.edges.emplace(std::stoul(found[1]), std::stoul(found[2]), kinds.at(found[4]),
                         dot_decoded(found[3]));
    } else {
      EXPECT_TRUE(lines[i].find("[shape=point, style=invis]") != std::string::npos ||
                  lines[i].starts_with("  // stage "))
          << "not DOT as we write it: " << lines[i];
    }
  }
  EXPECT_EQ(open.size(), 1U) << "clusters are not closed";
  return said;
}

inline std::string xml_decoded(std::string text) {
  for (const auto& [entity, sign] :
       {std::pair("&lt;", "<"), {"&gt;", ">"}, {"&quot;", "\""}, {"&amp;", "&"}}) {
    text = replaced(std::move(text), entity, sign);
  }
  return text;
}

// An SVG has no ids of shapes: their texts in order, and the lines by the shapes that they join.
struct SaidBySvg {
  std::multiset<std::string> nodes;
  std::multiset<std::string> opaque;
  std::multiset<std::string> frames;
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::string>> edges;
  friend bool operator==(const SaidBySvg&, const SaidBySvg&) = default;
};

inline SaidBySvg said_by_svg(const std::string& picture) {
  static const std::regex node(
      "<g class=\"node\"><title>[^<]*</title><rect [^>]*class=\"box( opaque)?\"[^>]*/><text "
      "[^>]*>([^<]*)</text>");
  static const std::regex title("<rect [^>]*class=\"page\"/><text [^>]*>([^<]*)</text>");
  static const std::regex edge("<g class=\"edge ([a-z]+)\" data-from=\"([0-9]+)\" data-to=\"([0-9]+)\">.*");
  SaidBySvg said;
  for (const std::string& line : lines_of(picture)) {
    std::smatch found;
    if (std::regex_search(line, found, node)) {
      said.nodes.insert(xml_decoded(found[2]));
      if (found[1].matched) said.opaque.insert(xml_decoded(found[2]));
    } else if (std::regex_search(line, found, title)) {
      said.frames.insert(xml_decoded(found[1]));
    } else if (std::regex_search(line, found, edge)) {
      said.edges.emplace(std::stoul(found[2]), std::stoul(found[3]), found[1]);
    }
  }
  return said;
}

// As much of it as an SVG says; `layout` tells which edges have a line there.
inline SaidBySvg as_svg(const Said& said, const Layout& layout) {
  SaidBySvg out;
  for (const auto& [id, text] : said.nodes) {
    out.nodes.insert(text);
    if (said.opaque.contains(id)) out.opaque.insert(text);
  }
  for (const auto& [id, text] : said.frames) out.frames.insert(text);
  std::set<std::pair<std::uint32_t, std::uint32_t>> drawn;
  for (const Connection& connection : layout.connections) {
    if (connection.drawn) drawn.emplace(connection.source, connection.destination);
  }
  for (const auto& [from, to, kind, planes] : said.edges) {
    if (drawn.contains({from, to})) out.edges.emplace(from, to, kind);
  }
  return out;
}

}  // namespace eagle::view::testing
