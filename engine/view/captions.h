// Captions: the words around a picture, the same in every format.
#pragma once

#include <string>
#include <vector>

#include "engine/view/layout.h"
#include "engine/view/options.h"

namespace eagle::view {

// "eagle.Graph  4 nodes · 1 group · backend: cpu"
std::string header(const graph::Graph& graph, const Layout& layout, const PictureOptions& options);

// "stage 0 work_share", or "stage 0" before the build.
std::string stage_caption(std::uint32_t stage, const PictureOptions& options);

// "not drawn: a (0) → b (7): x", for each edge that has no room for a line; past a megabyte only how many
// more.
std::vector<std::string> undrawn(const Layout& layout);

// What is said below any picture, a line each: that edges are missing, and how stream nodes run.
std::vector<std::string> notes(const Layout& layout, const PictureOptions& options);

// "label (3)": the node with its index.
std::string numbered(const Shape& shape);

}  // namespace eagle::view
