#include "engine/view/picture.h"

#include "engine/view/dot.h"
#include "engine/view/figure.h"
#include "engine/view/mermaid.h"
#include "engine/view/svg.h"
#include "engine/view/text.h"

namespace eagle::view {

std::string_view name_of(Format format) {
  switch (format) {
    case Format::text:
      return "text";
    case Format::mermaid:
      return "mermaid";
    case Format::dot:
      return "dot";
    case Format::svg:
      return "svg";
    case Format::figure:
      return "figure";
  }
  return "unknown";
}

std::optional<Format> format_of(int number) {
  for (const Format format : all_formats) {
    if (static_cast<int>(format) == number) return format;
  }
  return std::nullopt;
}

std::string draw(const graph::Graph& graph, Format format, const PictureOptions& options) {
  switch (format) {
    case Format::text:
      return to_text(graph, options);
    case Format::mermaid:
      return to_mermaid(make_figure(graph, options));
    case Format::dot:
      return to_dot(make_figure(graph, options));
    case Format::svg:
      return to_svg(make_figure(graph, options));
    case Format::figure:
      return to_message(make_figure(graph, options));
  }
  return {};
}

}  // namespace eagle::view
