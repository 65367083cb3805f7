// Looking at graphs: edges, pictures, explanations. As plain rows; the package gives them their names.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "eagle/client/graph.h"
#include "engine/view/explain_text.h"
#include "engine/view/style.h"
#include "errors.h"
#include "gil.h"

namespace eagle::python {
namespace {

nb::str text(std::string_view value) { return nb::str(value.data(), value.size()); }

nb::tuple row_of(const Edge& edge) {
  return nb::make_tuple(edge.source, edge.destination, edge.plane, text(name_of(edge.kind)));
}

// The edges of a graph as it stood, found when somebody first asks.
class EdgeList {
public:
  explicit EdgeList(const Graph& graph) : graph_(take(graph.description())) {}

  [[nodiscard]] const std::vector<Edge>& edges() {
    const Released released;
    std::call_once(found_, [this] { edges_ = graph::edges(*graph_); });
    return edges_;
  }

private:
  std::shared_ptr<const graph::Graph> graph_;
  std::once_flag found_;
  std::vector<Edge> edges_;
};

nb::list rows_of(EdgeList& list, std::size_t first, std::size_t last) {
  const std::vector<Edge>& edges = list.edges();
  nb::list rows;
  for (std::size_t i = first; i < std::min(last, edges.size()); ++i) rows.append(row_of(edges[i]));
  return rows;
}

template <typename Items, typename Row>
nb::list list_of(const Items& items, const Row& row) {
  nb::list rows;
  for (const auto& item : items) rows.append(row(item));
  return rows;
}

nb::dict figure_rows(const Graph& graph) {
  view::Figure figure;
  {
    const Released released;
    figure = take(graph.figure());
  }
  const auto text_row = [](const view::FigureText& item) {
    return nb::make_tuple(item.at.x, item.at.y, item.text);
  };
  const auto as_is = [](const std::string& item) { return text(item); };
  nb::dict rows;
  rows["size"] = nb::make_tuple(figure.width, figure.height, figure.margin);
  rows["character"] = nb::make_tuple(view::character_width, view::line_height);
  rows["title_offset"] = view::title_offset;
  rows["title"] = figure.title;
  rows["stages"] = list_of(figure.stages, text_row);
  rows["names"] = list_of(figure.names, text_row);
  rows["notes"] = list_of(figure.undrawn, as_is) + list_of(figure.notes, as_is);
  rows["shapes"] = list_of(figure.shapes, [](const view::FigureShape& shape) {
    return nb::make_tuple(shape.x, shape.y, shape.width, shape.height, shape.frame, shape.dashed, shape.text,
                          shape.parent);
  });
  rows["edges"] = list_of(figure.edges, [](const view::FigureEdge& edge) {
    return nb::make_tuple(edge.source, edge.destination, text(name_of(edge.kind)), edge.text,
                          list_of(edge.points, [](const view::FigurePoint& point) {
                            return nb::make_tuple(point.x, point.y);
                          }));
  });
  nb::dict styles;
  for (const Hazard kind : {Hazard::raw, Hazard::war, Hazard::waw}) {
    const view::HazardStyle style = view::style_of(kind);
    styles[text(name_of(kind))] = nb::make_tuple(text(style.colour), text(style.dashes));
  }
  rows["styles"] = styles;
  return rows;
}

nb::tuple row_of(const graph::Meeting& meeting) {
  return nb::make_tuple(text(name_of(meeting.kind)), meeting.source_plane, meeting.destination_plane,
                        meeting.memory, meeting.shared.first, meeting.first_in_source,
                        meeting.first_in_destination, meeting.shared.count, meeting.exact);
}

std::string_view name_of(graph::Relation relation) {
  switch (relation) {
    case graph::Relation::independent:
      return "independent";
    case graph::Relation::ordered:
      return "ordered";
    case graph::Relation::siblings:
      return "siblings";
    case graph::Relation::racing:
      return "racing";
  }
  return "unknown";
}

nb::tuple explain_pair(const Graph& graph, const NodeReference& node, const NodeReference& other) {
  graph::PairExplanation pair;
  {
    const Released released;
    pair = take(graph.explain(node, other));
  }
  return nb::make_tuple(pair.source.index, pair.source.label, pair.destination.index, pair.destination.label,
                        text(name_of(pair.relation)),
                        list_of(pair.meetings, [](const graph::Meeting& meeting) { return row_of(meeting); }),
                        pair.refusal, view::to_text(pair));
}

nb::tuple explain_node(const Graph& graph, const NodeReference& node) {
  graph::NodeExplanation found;
  {
    const Released released;
    found = take(graph.explain(node));
  }
  const auto plane_row = [](const graph::PlaneExplanation& plane) {
    return nb::make_tuple(plane.plane, plane.read, plane.written, plane.why, plane::to_string(plane.view),
                          plane.memory, plane.first, plane.bytes.count);
  };
  const auto edge_row = [](const Edge& edge) { return row_of(edge); };
  const nb::object schedule =
      found.schedule ? nb::object(text(graph::name_of(*found.schedule))) : nb::object(nb::none());
  return nb::make_tuple(found.node.index, found.node.label, found.kind, found.stage,
                        list_of(found.planes, plane_row), schedule, found.schedule_why, found.execution,
                        list_of(found.in, edge_row), list_of(found.out, edge_row), view::to_text(found));
}

PictureFormat format_named(std::string_view name) {
  for (const PictureFormat format : view::all_formats) {
    if (view::name_of(format) == name && format != PictureFormat::figure) return format;
  }
  throw StatusError({Reason::bad_value, "there is no picture format '" + std::string(name) + "'"});
}

}  // namespace

void bind_looking(nb::module_& m) {
  nb::class_<EdgeList>(m, "EdgeList")
      .def("__init__",
           [](EdgeList* self, const Graph& graph) {
             const Released released;
             new (self) EdgeList(graph);
           })
      .def("__len__", [](EdgeList& self) { return self.edges().size(); })
      .def("rows", rows_of, nb::arg("first"), nb::arg("last"));
  m.def("figure", figure_rows);
  m.def("explain_pair", explain_pair);
  m.def("explain_node", explain_node);
  m.def("picture", [](const Graph& graph, std::string_view format) {
    const PictureFormat wanted = format_named(format);
    const Released released;
    return take(graph.picture(wanted));
  });
  m.def("timeline", [](const Graph& graph) {
    const Released released;
    return take(graph.timeline());
  });
  m.def("host_picture", [](const Graph& graph, std::string_view format) {
    const PictureFormat wanted = format_named(format);
    const Released released;
    return take(graph.host_picture(wanted));
  });
  m.def(
      "host_explanation",
      [](const Graph& graph, const NodeReference& node, const std::optional<NodeReference>& other) {
        const Released released;
        return take(graph.host_explanation(node, other));
      },
      nb::arg("graph"), nb::arg("node"), nb::arg("other").none());
}

}  // namespace eagle::python
