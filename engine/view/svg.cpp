#include "engine/view/svg.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "engine/view/style.h"
#include "engine/view/width.h"

namespace eagle::view {
namespace {

constexpr double baseline = 4.5;  // below the middle of a line
constexpr std::size_t edges_described = 40;

constexpr graph::Hazard kinds[] = {graph::Hazard::raw, graph::Hazard::war, graph::Hazard::waw};

std::string colours(std::string_view text, std::string_view faint, std::string_view page,
                    std::string_view box, std::string_view line) {
  const std::string border = ".eagle .frame{stroke:" + std::string(line) + "}";
  return ".eagle text{fill:" + std::string(text) + "}.eagle .faint{fill:" + std::string(faint) +
         "}.eagle .page{fill:" + std::string(page) + "}.eagle .box{fill:" + std::string(box) +
         ";stroke:" + std::string(line) + "}" + border;
}

std::string hazard_colours(bool dark) {
  std::string rules;
  for (const graph::Hazard kind : kinds) {
    const HazardStyle style = style_of(kind);
    const std::string name(style.name);
    const std::string colour(dark ? style.colour_on_dark : style.colour);
    rules += ".eagle ." + name + " path{stroke:" + colour + "}.eagle ." + name + "-tip{fill:" + colour + "}";
  }
  return rules;
}

// Rules are the same in every picture, so that several in one page do not disturb each other.
std::string style_sheet() {
  return ".eagle text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;"
         "white-space:pre}"
         ".eagle .opaque{stroke-dasharray:5 3}"
         ".eagle .frame{fill:none}"
         ".eagle .edge path{fill:none;stroke-width:1.5}"
         ".eagle .edge:hover path:last-child{stroke-width:3}" +
         colours("#1f2328", "#57606a", "#ffffff", "#f6f8fa", "#57606a") + hazard_colours(false) +
         "@media(prefers-color-scheme:dark){" +
         colours("#e6edf3", "#9198a1", "#0d1117", "#161b22", "#8b949e") + hazard_colours(true) +
         "}"
         ".eagle .edge .near{stroke:transparent;stroke-width:11;pointer-events:stroke}";
}

// Whole and half pixels are all there is.
std::string number(double value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.1f", value);
  std::string text = digits;
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::string attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + std::string(value) + "\"";
}
std::string attribute(std::string_view name, double value) { return attribute(name, number(value)); }

// Of as many columns as it is laid out for, whatever the font.
std::string text_element(FigurePoint at, std::string_view text, std::string_view css_class = {}) {
  const double length = display_width(text) * character_width;
  std::string out = "<text" + attribute("x", at.x) + attribute("y", at.y + baseline) +
                    attribute("textLength", length) + attribute("lengthAdjust", "spacingAndGlyphs");
  if (!css_class.empty()) out += attribute("class", css_class);
  return out + ">" + xml_escaped(text) + "</text>\n";
}

std::string rectangle(double x, double y, double width, double height, std::string_view css_class,
                      double radius = 0) {
  std::string out = "<rect" + attribute("x", x) + attribute("y", y) + attribute("width", width) +
                    attribute("height", height) + attribute("class", css_class);
  if (radius > 0) out += attribute("rx", radius);
  return out + "/>";
}

std::string title_element(std::string_view text) { return "<title>" + xml_escaped(text) + "</title>"; }

// Tells the titles of the pictures of one page apart (FNV-1a).
std::string id_for(const Figure& figure) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto mix = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  };
  mix(figure.title);
  for (const FigureShape& shape : figure.shapes) mix(shape.title);
  for (const FigureEdge& edge : figure.edges) mix(edge.title);
  char digits[20];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return std::string("eagle-") + digits;
}

class SvgWriter {
public:
  explicit SvgWriter(const Figure& figure) : figure_(figure) {}

  std::string run() {
    open();
    write_styles();
    text_ += rectangle(0, 0, figure_.width, figure_.height, "page", 6) + "\n";
    text_ += text_element({2 * character_width, line_height / 2}, figure_.title);
    for (const FigureText& stage : figure_.stages) text_ += text_element(stage.at, stage.text, "faint");
    for (const FigureShape& shape : figure_.shapes) {
      if (shape.frame) write_frame(shape);
    }
    for (const FigureEdge& edge : figure_.edges) {
      if (!edge.points.empty()) write_edge(edge);
    }
    for (const FigureShape& shape : figure_.shapes) shape.frame ? write_frame_title(shape) : write_box(shape);
    for (const FigureText& names : figure_.names) text_ += text_element(names.at, names.text, "names");
    write_notes();
    return std::move(text_) + "</svg>\n";
  }

private:
  void open() {
    const std::string id = id_for(figure_);
    text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"eagle\" role=\"img\" xml:space=\"preserve\"" +
            attribute("aria-labelledby", id + "-title " + id + "-text") + attribute("width", figure_.width) +
            attribute("height", figure_.height) +
            attribute("viewBox", "0 0 " + number(figure_.width) + " " + number(figure_.height)) + ">\n" +
            "<title" + attribute("id", id + "-title") + ">" + xml_escaped(figure_.title) + "</title>\n" +
            "<desc" + attribute("id", id + "-text") + ">" + xml_escaped(description()) + "</desc>\n";
  }

  [[nodiscard]] std::string description() const {
    std::string text = "Nodes in rows, one a stage, from top to bottom; " +
                       std::to_string(figure_.edges.size()) + " lines say what waits for what.";
    const std::size_t count = std::min(figure_.edges.size(), edges_described);
    for (std::size_t i = 0; i < count; ++i) {
      const FigureEdge& edge = figure_.edges[i];
      text += " " + figure_.shapes[edge.source].text + " → " + figure_.shapes[edge.destination].text + " (" +
              edge.text + ").";
    }
    if (count < figure_.edges.size()) text += " And so on.";
    return text;
  }

  void write_styles() {
    text_ += "<style>" + style_sheet() + "</style>\n<defs>";
    for (const graph::Hazard kind : kinds) {
      const std::string name(style_of(kind).name);
      text_ += "<marker id=\"eagle-tip-" + name +
               "\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" "
               "markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0L8 4L0 8Z\" class=\"" +
               name + "-tip\"/></marker>";
    }
    text_ += "</defs>\n";
  }

  void write_frame(const FigureShape& shape) {
    text_ += "<g>" + title_element(shape.title) +
             rectangle(shape.x, shape.y, shape.width, shape.height, "frame", 8) + "</g>\n";
  }

  // Over the lines that lead into the frame, so that it can be read.
  void write_frame_title(const FigureShape& shape) {
    const double width = display_width(shape.text) * character_width;
    const FigurePoint at{shape.x + title_offset, shape.y};
    text_ += rectangle(at.x - 4, at.y - line_height / 2, width + 8, line_height, "page") +
             text_element(at, shape.text);
  }

  void write_box(const FigureShape& shape) {
    const double width = display_width(shape.text) * character_width;
    text_ += "<g class=\"node\">" + title_element(shape.title) +
             rectangle(shape.x, shape.y, shape.width, shape.height, shape.dashed ? "box opaque" : "box", 3) +
             text_element({shape.x + (shape.width - width) / 2, shape.y + shape.height / 2}, shape.text) +
             "</g>\n";
  }

  void write_edge(const FigureEdge& edge) {
    const HazardStyle style = style_of(edge.kind);
    std::string path;
    for (const FigurePoint& point : edge.points) {
      path += (path.empty() ? "M" : "L") + number(point.x) + " " + number(point.y);
    }
    text_ += "<g class=\"edge " + std::string(style.name) + "\"" + attribute("data-from", edge.source) +
             attribute("data-to", edge.destination) + ">" + title_element(edge.title) +
             "<path class=\"near\"" + attribute("d", path) + "/><path" + attribute("d", path) +
             attribute("marker-end", "url(#eagle-tip-" + std::string(style.name) + ")");
    if (!style.dashes.empty()) text_ += attribute("stroke-dasharray", style.dashes);
    text_ += "/></g>\n";
  }

  void write_notes() {
    const std::size_t count = figure_.undrawn.size() + figure_.notes.size();
    double y = figure_.height - (static_cast<double>(count) + 0.5) * line_height;
    for (const auto* const list : {&figure_.undrawn, &figure_.notes}) {
      for (const std::string& note : *list) {
        const int columns = static_cast<int>(figure_.width / character_width) - 4;
        text_ += text_element({2 * character_width, y}, cut(note, columns), "faint");
        y += line_height;
      }
    }
  }

  const Figure& figure_;
  std::string text_;
};

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    // U+FFFE and U+FFFF are no characters of XML; controls were escaped before.
    const std::string_view three = text.substr(i, 3);
    if (three == "\xEF\xBF\xBE" || three == "\xEF\xBF\xBF") {
      out += three == "\xEF\xBF\xBE" ? "\\u{fffe}" : "\\u{ffff}";
      i += 2;
      continue;
    }
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string svg_style_sheet() { return style_sheet(); }

std::string to_svg(const Figure& figure) { return SvgWriter(figure).run(); }

}  // namespace eagle::view
