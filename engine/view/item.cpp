#include "engine/view/item.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "engine/view/width.h"

namespace eagle::view {
namespace {

constexpr int box_height = 3;
constexpr int frame_side = 2;   // border and a blank, left and right
constexpr int title_sides = 6;  // "╭─ " and " ─╮"

int odd(int columns) { return columns | 1; }

std::string tag_of(const graph::Node& node) {
  const auto* host = graph::as<graph::HostNode>(node);
  if (host == nullptr) return "";
  switch (host->tier) {
    case graph::HostTier::captured:
    case graph::HostTier::recorded:
      return "";
    case graph::HostTier::child:
      return " [child]";
    case graph::HostTier::stream:
      return " [stream]";
    case graph::HostTier::eager:
      return " [host]";
  }
  return "";
}

Shape make_box(const graph::Node& node, const std::string& label) {
  Shape box;
  box.label = escaped(label);
  box.text = cut(box.label, label_columns) + tag_of(node);
  box.opaque = graph::as<graph::HostNode>(node) != nullptr;
  box.node = &node;
  box.height = box_height;
  box.width = odd(display_width(box.text) + 2) + 2;
  return box;
}

Shape make_frame(const graph::Node& node, const graph::Conditional& conditional) {
  Shape frame;
  frame.kind = Shape::Kind::frame;
  frame.label = escaped(node.label);
  frame.text = conditional.max_iterations == 0 ? "skip if guard"
                                               : "repeat ≤ " + std::to_string(conditional.max_iterations);
  frame.node = &node;
  return frame;
}

// A frame without a box of its own shows its label too, unless that only says the kind.
void name_frame(Shape& frame) {
  if (frame.label.empty() || frame.label == "skippable" || frame.label == "repeat_while") return;
  frame.text = cut(frame.label, label_columns) + " · " + frame.text;
}

const graph::Node* only_node(const graph::Conditional& conditional) {
  if (conditional.body.size() != 1 || conditional.body[0].branches.size() != 1) return nullptr;
  const std::vector<graph::Node>& nodes = conditional.body[0].branches[0].nodes;
  return nodes.size() == 1 ? &nodes[0] : nullptr;
}

int least_width(const Shape& frame) { return odd(display_width(frame.text) + title_sides); }

void wrap(Item& item) {
  const int depth = static_cast<int>(item.frames.size());
  int width = item.core.width;
  for (int i = depth; i-- > 0;) width = std::max(width + 2 * frame_side, least_width(item.frames[i]));
  for (int i = 0; i < depth; ++i) item.frames[i].width = width - 2 * frame_side * i;
  item.core.width = width - 2 * frame_side * depth;
  item.width = width;
}

void append(Layout&& inner, Point offset, std::uint32_t parent, Layout& layout) {
  const auto first_shape = static_cast<std::uint32_t>(layout.shapes.size());
  const std::uint32_t first_net = layout.nets;
  const auto move = [&](Point& at) { at = {at.x + offset.x, at.y + offset.y}; };
  for (Shape& shape : inner.shapes) {
    move(shape.at);
    shape.parent = shape.parent == no_shape ? parent : shape.parent + first_shape;
    layout.shapes.push_back(std::move(shape));
  }
  for (Wire& wire : inner.wires) {
    move(wire.from);
    move(wire.to);
    layout.wires.push_back({wire.from, wire.to, wire.net + first_net});
  }
  for (Port& port : inner.ports) {
    move(port.at);
    layout.ports.push_back({port.at, port.enters, port.shape + first_shape});
  }
  for (PlaneNames& names : inner.names) {
    move(names.at);
    layout.names.push_back(std::move(names));
  }
  for (Connection& connection : inner.connections) {
    connection.source += first_shape;
    connection.destination += first_shape;
    for (Point& point : connection.path) move(point);
    layout.connections.push_back(std::move(connection));
  }
  layout.nets += inner.nets;
  layout.ordered = layout.ordered && inner.ordered;
  layout.named = layout.named && inner.named;
}

}  // namespace

Item make_item(const graph::Node& node, Context& context) {
  Item item;
  const graph::Node* at = &node;
  for (;;) {
    const auto* conditional = graph::as<graph::Conditional>(*at);
    if (conditional == nullptr) {
      item.core = make_box(*at, at->label);
      break;
    }
    Shape frame = make_frame(*at, *conditional);
    const graph::Node* inner = only_node(*conditional);
    if (inner == nullptr) {
      name_frame(frame);
      item.body = lay_out(conditional->body, context);
      frame.width = std::max(odd(item.body.width + 2 * frame_side), least_width(frame));
      frame.height = item.body.height + 2;
      item.core = std::move(frame);
      break;
    }
    const bool holds_box = graph::as<graph::Conditional>(*inner) == nullptr;
    if (!holds_box) name_frame(frame);
    item.frames.push_back(std::move(frame));
    if (holds_box) {
      item.core = make_box(*inner, at->label);
      break;
    }
    at = inner;
  }
  const int depth = static_cast<int>(item.frames.size());
  item.height = item.core.height + 2 * depth;
  item.box_line = depth;
  if (item.core.kind == Shape::Kind::frame) {
    item.box_line += 1 + (item.body.stages.empty() ? 0 : item.body.stages.front().y);
  }
  wrap(item);
  return item;
}

void make_room(Item& item, int ports) {
  const int least = 2 * ports + 1;  // every second column inside the border
  if (item.core.width >= least) return;
  item.core.width = least;
  wrap(item);
}

std::uint32_t place(Item&& item, Point at, std::uint32_t stage, std::uint32_t leaf, Layout& layout) {
  std::uint32_t parent = no_shape;
  int height = item.height;
  const auto add = [&](Shape shape) {
    shape.at = at;
    shape.height = height;
    shape.parent = parent;
    shape.stage = stage;
    shape.leaf = leaf;
    layout.shapes.push_back(std::move(shape));
    return static_cast<std::uint32_t>(layout.shapes.size() - 1);
  };
  for (Shape& frame : item.frames) {
    parent = add(std::move(frame));
    at = {at.x + frame_side, at.y + 1};
    height -= 2;
  }
  const int spare = item.core.width - item.body.width;
  const std::uint32_t core = add(std::move(item.core));
  append(std::move(item.body), {at.x + spare / 2, at.y + 1}, core, layout);
  return core;
}

}  // namespace eagle::view
