// Styles: how each kind of hazard is drawn, the same in every format.
#pragma once

#include <string_view>
#include <vector>

#include "engine/graph/edges.h"

namespace eagle::view {

struct HazardStyle {
  std::string_view name;    // as a class of the SVG
  std::string_view colour;  // readable on white, and where it matters on black
  std::string_view colour_on_dark;
  std::string_view dashes;         // lengths of dash and gap, for SVG and Mermaid; empty: solid
  std::string_view mermaid_arrow;  // without a text
  std::string_view dot_style;
};

constexpr HazardStyle style_of(graph::Hazard kind) {
  switch (kind) {
    case graph::Hazard::raw:
      return {"raw", "#0969da", "#58a6ff", "", "-->", "solid"};
    case graph::Hazard::war:
      return {"war", "#bc4c00", "#f0883e", "7 4", "-.->", "dashed"};
    case graph::Hazard::waw:
      return {"waw", "#8250df", "#a371f7", "2 3", "-.->", "dotted"};
  }
  return {};
}

// The kind that an edge with these hazards is drawn as: data that flows counts most, then waiting to
// overwrite.
inline graph::Hazard drawn_kind(const std::vector<graph::Edge>& hazards) {
  graph::Hazard kind = graph::Hazard::waw;
  for (const graph::Edge& hazard : hazards) {
    if (hazard.kind == graph::Hazard::raw) return graph::Hazard::raw;
    if (hazard.kind == graph::Hazard::war) kind = graph::Hazard::war;
  }
  return kind;
}

}  // namespace eagle::view
