// Figures as messages.
#include "eagle/v1/picture.pb.h"
#include "engine/view/figure.h"

namespace eagle::view {
namespace {

void fill(const FigurePoint& point, v1::FigurePoint& message) {
  message.set_x(point.x);
  message.set_y(point.y);
}

void fill(const FigureText& text, v1::FigureText& message) {
  fill(text.at, *message.mutable_at());
  message.set_text(text.text);
}

void fill(const FigureShape& shape, v1::FigureShape& message) {
  v1::FigureBox& box = *message.mutable_box();
  box.set_x(shape.x);
  box.set_y(shape.y);
  box.set_width(shape.width);
  box.set_height(shape.height);
  message.set_frame(shape.frame);
  message.set_dashed(shape.dashed);
  message.set_text(shape.text);
  message.set_title(shape.title);
  message.set_parent(shape.parent);
  message.set_leaf(shape.leaf);
  message.set_stage(shape.stage);
}

void fill(const FigureEdge& edge, v1::FigureEdge& message) {
  message.set_source(edge.source);
  message.set_destination(edge.destination);
  message.set_kind(static_cast<v1::HazardKind>(edge.kind));
  message.set_text(edge.text);
  message.set_title(edge.title);
  for (const FigurePoint& point : edge.points) fill(point, *message.add_points());
}

}  // namespace

std::string to_message(const Figure& figure) {
  v1::Figure message;
  message.set_width(figure.width);
  message.set_height(figure.height);
  message.set_margin(figure.margin);
  message.set_character_width(character_width);
  message.set_line_height(line_height);
  message.set_title(figure.title);
  for (const FigureText& stage : figure.stages) fill(stage, *message.add_stages());
  for (const FigureShape& shape : figure.shapes) fill(shape, *message.add_shapes());
  for (const FigureEdge& edge : figure.edges) fill(edge, *message.add_edges());
  for (const FigureText& names : figure.names) fill(names, *message.add_names());
  for (const std::string& note : figure.undrawn) message.add_notes(note);
  for (const std::string& note : figure.notes) message.add_notes(note);
  return message.SerializeAsString();
}

}  // namespace eagle::view
