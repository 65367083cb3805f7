// Pictures of a graph, in every format.
//
// One layout engine (layout.h) decides what is drawn and where; each format only writes it down, so that all
// show the same nodes, frames, edges, plane names and kinds. Any graph of fewer than 2^20 nodes, built or
// not, racing or not. What is too much is left out and said, so time and size are bounded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/graph/graph.h"
#include "engine/view/options.h"

namespace eagle::view {

// The numbers are those of proto/eagle/v1/picture.proto.
enum class Format : std::uint8_t { text = 1, mermaid = 2, dot = 3, svg = 4, figure = 5 };
constexpr Format all_formats[] = {Format::text, Format::mermaid, Format::dot, Format::svg, Format::figure};

std::string_view name_of(Format format);      // "text", "mermaid", "dot", "svg", "figure"
std::optional<Format> format_of(int number);  // of the message

// UTF-8; `figure` is a serialized v1.Figure.
std::string draw(const graph::Graph& graph, Format format, const PictureOptions& options = {});

}  // namespace eagle::view
