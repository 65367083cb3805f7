// Explanations as messages.
#include "eagle/v1/explain.pb.h"
#include "engine/graph/explain.h"

namespace eagle::graph {
namespace {

void fill(const NodeName& name, v1::NodeName& message) {
  message.set_index(name.index);
  message.set_label(name.label);
}

void fill(const Edge& edge, v1::Edge& message) {
  message.set_source(edge.source);
  message.set_destination(edge.destination);
  message.set_plane(edge.plane);
  message.set_kind(static_cast<v1::HazardKind>(edge.kind));
}

void fill(const Meeting& meeting, v1::Meeting& message) {
  message.set_kind(static_cast<v1::HazardKind>(meeting.kind));
  message.set_source_plane(meeting.source_plane);
  message.set_destination_plane(meeting.destination_plane);
  v1::SharedBytes& shared = *message.mutable_shared();
  shared.set_memory(meeting.memory);
  shared.set_first(meeting.shared.first);
  shared.set_first_in_source(meeting.first_in_source);
  shared.set_first_in_destination(meeting.first_in_destination);
  shared.set_count(meeting.shared.count);
  shared.set_exact(meeting.exact);
}

void fill(const PlaneExplanation& plane, v1::PlaneExplanation& message) {
  message.set_plane(plane.plane);
  message.set_read(plane.read);
  message.set_written(plane.written);
  message.set_why(plane.why);
  message.set_view(plane::to_string(plane.view));
  message.set_memory(plane.memory);
  message.set_first(plane.first);
  message.set_bytes(plane.bytes.count);
}

void fill(const PairExplanation& pair, v1::PairExplanation& message) {
  fill(pair.source, *message.mutable_source());
  fill(pair.destination, *message.mutable_destination());
  message.set_relation(static_cast<v1::Relation>(pair.relation));
  for (const Meeting& meeting : pair.meetings) fill(meeting, *message.add_meetings());
  message.set_refusal(pair.refusal);
}

void fill(const NodeExplanation& node, v1::NodeExplanation& message) {
  fill(node.node, *message.mutable_node());
  message.set_kind(node.kind);
  message.set_stage(node.stage);
  for (const PlaneExplanation& plane : node.planes) fill(plane, *message.add_planes());
  if (node.schedule) message.set_schedule(std::string(name_of(*node.schedule)));
  message.set_schedule_why(node.schedule_why);
  message.set_execution(node.execution);
  for (const Edge& edge : node.in) fill(edge, *message.add_in());
  for (const Edge& edge : node.out) fill(edge, *message.add_out());
  for (const NodeName& name : node.neighbours) fill(name, *message.add_neighbours());
}

}  // namespace

StatusOr<NodeReference> read(const v1::NodeReference& message) {
  switch (message.kind_case()) {
    case v1::NodeReference::kIndex:
      return NodeReference(message.index());
    case v1::NodeReference::kLabel:
      return NodeReference(message.label());
    case v1::NodeReference::KIND_NOT_SET:
      break;
  }
  return Status(Reason::bad_message,
                "a reference to a node has neither an index nor a label; expected one of them");
}

void to_message(const Explanation& explanation, v1::Explanation& message) {
  if (const auto* const pair = std::get_if<PairExplanation>(&explanation))
    fill(*pair, *message.mutable_pair());
  if (const auto* const node = std::get_if<NodeExplanation>(&explanation))
    fill(*node, *message.mutable_node());
}

}  // namespace eagle::graph
