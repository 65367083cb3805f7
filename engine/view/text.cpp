#include "engine/view/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/view/captions.h"
#include "engine/view/layout.h"
#include "engine/view/width.h"

namespace eagle::view {
namespace {

// Past this the picture ends with a line that says so: a hundred thousand nodes must not cost a gigabyte.
constexpr std::size_t most_bytes = std::size_t{64} << 20;

constexpr std::uint8_t up = 1;
constexpr std::uint8_t down = 2;
constexpr std::uint8_t left = 4;
constexpr std::uint8_t right = 8;

std::string_view glyph_of(std::uint8_t directions) {
  constexpr std::string_view glyphs[16] = {" ", "╵", "╷", "│", "╴", "┘", "┐", "┤",
                                           "╶", "└", "┌", "├", "─", "┴", "┬", "┼"};
  return glyphs[directions];
}

struct BorderGlyphs {
  std::string_view top_left, top_right, bottom_left, bottom_right, horizontal, vertical;
};

const BorderGlyphs& border_of(const Shape& shape) {
  static constexpr BorderGlyphs solid = {"┌", "┐", "└", "┘", "─", "│"};
  static constexpr BorderGlyphs dashed = {"┌", "┐", "└", "┘", "╌", "╎"};
  static constexpr BorderGlyphs frame = {"╭", "╮", "╰", "╯", "─", "│"};
  if (shape.kind == Shape::Kind::frame) return frame;
  return shape.opaque ? dashed : solid;
}

// One line of the picture while it is drawn, a cell a column.
class Line {
public:
  void clear() { cells_.clear(); }

  void put(int x, std::string_view glyph) { at(x).glyph = glyph; }

  void repeat(int x, int count, std::string_view glyph) {
    for (int i = 0; i < count; ++i) put(x + i, glyph);
  }

  // A text takes as many cells as it is wide.
  void write(int x, std::string_view text) {
    while (!text.empty()) {
      const Cluster cluster = first_cluster(text);
      const std::string_view glyph = text.substr(0, cluster.bytes);
      text.remove_prefix(cluster.bytes);
      if (cluster.columns == 0) {
        at(x).prefix = glyph;  // a mark with nothing to sit on
        continue;
      }
      put(x, glyph);
      for (int i = 1; i < cluster.columns; ++i) at(x + i).glyph = {};
      x += cluster.columns;
    }
  }

  void vertical(int x, std::uint8_t directions, std::uint32_t net) {
    at(x).vertical |= directions;
    at(x).vertical_net = net;
  }
  void horizontal(int x, std::uint8_t directions, std::uint32_t net) {
    at(x).horizontal |= directions;
    at(x).horizontal_net = net;
  }

  // Turns the lines so far into glyphs. Of two that only cross, the vertical one runs through.
  void join_wires() {
    for (Cell& cell : cells_) {
      if ((cell.vertical | cell.horizontal) == 0) continue;
      const bool joined = cell.vertical == 0 || cell.vertical_net == cell.horizontal_net;
      cell.glyph = glyph_of(joined ? cell.vertical | cell.horizontal : cell.vertical);
    }
  }

  // Without blanks at the end.
  void append_to(std::string& text) const {
    std::string line;
    for (const Cell& cell : cells_) {
      line += cell.prefix;
      line += cell.glyph;
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1);
  }

private:
  struct Cell {
    std::string_view glyph = " ";  // empty: the second column of the cell before
    std::string_view prefix;
    std::uint8_t vertical = 0;
    std::uint8_t horizontal = 0;
    std::uint32_t vertical_net = 0;
    std::uint32_t horizontal_net = 0;
  };

  Cell& at(int x) {
    if (x >= static_cast<int>(cells_.size())) cells_.resize(x + 1);
    return cells_[x];
  }

  std::vector<Cell> cells_;
};

// What to draw on each line of a layout, in the order in which it is drawn.
class Canvas {
public:
  explicit Canvas(const Layout& layout) : layout_(layout), lines_(layout.height) {
    for (std::uint32_t i = 0; i < layout.shapes.size(); ++i) {
      const Shape& shape = layout.shapes[i];
      for (int y = 0; y < shape.height; ++y) lines_[shape.at.y + y].shapes.push_back(i);
    }
    for (std::uint32_t i = 0; i < layout.wires.size(); ++i) {
      const Wire& wire = layout.wires[i];
      for (int y = wire.from.y; y <= wire.to.y; ++y) lines_[y].wires.push_back(i);
    }
    for (std::uint32_t i = 0; i < layout.ports.size(); ++i) lines_[layout.ports[i].at.y].ports.push_back(i);
    for (std::uint32_t i = 0; i < layout.names.size(); ++i) lines_[layout.names[i].at.y].names.push_back(i);
  }

  // Appends line `y`, `margin` columns further right.
  void draw(int y, int margin, std::string& text) {
    line_.clear();
    margin_ = margin;
    const Content& content = lines_[y];
    for (const std::uint32_t shape : content.shapes) draw_shape(layout_.shapes[shape], y);
    for (const std::uint32_t wire : content.wires) draw_wire(layout_.wires[wire], y);
    line_.join_wires();
    for (const std::uint32_t port : content.ports) {
      line_.put(margin_ + layout_.ports[port].at.x, layout_.ports[port].enters ? "┴" : "┬");
    }
    for (const std::uint32_t shape : content.shapes) draw_title(layout_.shapes[shape], y);
    for (const std::uint32_t names : content.names) {
      line_.write(margin_ + layout_.names[names].at.x, layout_.names[names].text);
    }
    line_.append_to(text);
  }

private:
  struct Content {  // indices into the layout
    std::vector<std::uint32_t> shapes, wires, ports, names;
  };

  void draw_shape(const Shape& shape, int y) {
    const BorderGlyphs& border = border_of(shape);
    const int x = margin_ + shape.at.x;
    const int last = x + shape.width - 1;
    const bool top = y == shape.at.y;
    if (top || y == shape.at.y + shape.height - 1) {
      line_.put(x, top ? border.top_left : border.bottom_left);
      line_.repeat(x + 1, shape.width - 2, border.horizontal);
      line_.put(last, top ? border.top_right : border.bottom_right);
      return;
    }
    line_.put(x, border.vertical);
    line_.put(last, border.vertical);
    if (shape.kind == Shape::Kind::box) {
      const int spare = shape.width - 2 - display_width(shape.text);
      line_.write(x + 1 + spare / 2, shape.text);
    }
  }

  // Over the lines that lead into the frame, so that it can be read.
  void draw_title(const Shape& shape, int y) {
    if (shape.kind != Shape::Kind::frame || y != shape.at.y) return;
    const int x = margin_ + shape.at.x + 2;
    line_.put(x, " ");
    line_.write(x + 1, shape.text);
    line_.put(x + 1 + display_width(shape.text), " ");
  }

  void draw_wire(const Wire& wire, int y) {
    const int x = margin_ + wire.from.x;
    if (wire.from.x == wire.to.x) {
      const int directions = (y > wire.from.y ? up : 0) | (y < wire.to.y ? down : 0);
      line_.vertical(x, static_cast<std::uint8_t>(directions), wire.net);
      return;
    }
    for (int column = wire.from.x; column <= wire.to.x; ++column) {
      const int directions = (column > wire.from.x ? left : 0) | (column < wire.to.x ? right : 0);
      line_.horizontal(margin_ + column, static_cast<std::uint8_t>(directions), wire.net);
    }
  }

  const Layout& layout_;
  std::vector<Content> lines_;
  Line line_;
  int margin_ = 0;
};

std::string gutter(std::uint32_t stage, const PictureOptions& options) {
  return "  " + stage_caption(stage, options) + " ";
}

}  // namespace

std::string to_text(const graph::Graph& graph, const PictureOptions& options) {
  const Layout layout = lay_out(graph);
  std::string text = header(graph, layout, options) + "\n\n";
  if (layout.shapes.empty()) return text + "  (empty)\n";

  std::size_t margin = 0;
  for (const StageMark& mark : layout.stages) margin = std::max(margin, gutter(mark.stage, options).size());
  Canvas canvas(layout);
  auto mark = layout.stages.begin();
  for (int y = 0; y < layout.height; ++y) {
    std::string line;
    canvas.draw(y, static_cast<int>(margin), line);
    if (mark != layout.stages.end() && mark->y == y) {
      const std::string stage = gutter(mark->stage, options);
      line.replace(0, stage.size(), stage);  // over blanks: nothing is drawn in the margin
      ++mark;
    }
    text += line + "\n";
    if (text.size() > most_bytes) {
      return text + "  (cut: the picture has " + std::to_string(layout.height) + " lines of up to " +
             std::to_string(layout.width) + " columns)\n";
    }
  }
  for (const std::string& note : undrawn(layout)) text += "  " + note + "\n";
  for (const std::string& note : notes(layout, options)) text += "  " + note + "\n";
  return text;
}

}  // namespace eagle::view
