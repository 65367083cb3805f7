#include "server/web/drawing.h"

#include <cstdio>
#include <map>

#include "eagle/v1/graph.pb.h"
#include "engine/graph/explain.h"
#include "engine/graph/schedule.h"
#include "engine/view/svg.h"
#include "server/json_text.h"

namespace eagle::server {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

// Nodes of one function have equal parts of its time; a frame has what it holds.
std::vector<double> seconds_of(const view::Figure& figure, const run::NodeTimes& times,
                               const std::map<const graph::Node*, run::NodeTime>& by_node) {
  std::vector<double> seconds(figure.shapes.size(), 0);
  if (times.replays == 0) return seconds;
  for (std::size_t i = figure.shapes.size(); i-- > 0;) {  // a frame comes before what it holds
    const view::FigureShape& shape = figure.shapes[i];
    const auto found = by_node.find(shape.node);
    if (found != by_node.end()) seconds[i] = found->second.seconds / found->second.together;
    if (shape.parent >= 0) seconds[static_cast<std::size_t>(shape.parent)] += seconds[i];
  }
  return seconds;
}

std::string shapes_json(const graph::Graph& graph, const view::Figure& figure, const run::NodeTimes& times) {
  std::map<const graph::Node*, run::NodeTime> by_node;
  for (const run::NodeTime& time : times.nodes) by_node.emplace(time.node, time);
  const std::vector<double> seconds = seconds_of(figure, times, by_node);
  std::string text;
  for (std::size_t i = 0; i < figure.shapes.size(); ++i) {
    const view::FigureShape& shape = figure.shapes[i];
    const auto found = by_node.find(shape.node);
    text += (i == 0 ? "" : ",") + std::string("{\"title\":") + json_string(shape.title) +
            ",\"frame\":" + (shape.frame ? "true" : "false") + ",\"stage\":" + std::to_string(shape.stage) +
            ",\"parent\":" + std::to_string(shape.parent) +
            ",\"what\":" + json_string(graph::kind_of(graph, *shape.node)) +
            ",\"seconds\":" + number(seconds[i]) +
            ",\"together\":" + std::to_string(found == by_node.end() ? 1 : found->second.together) + "}";
  }
  return "[" + text + "]";
}

std::string schedule_json(const std::vector<graph::StageSchedule>& schedule) {
  std::string text;
  for (std::size_t i = 0; i < schedule.size() && i < Drawings::most_nodes; ++i)
    text += (i == 0 ? "" : ",") + json_string(graph::name_of(schedule[i]));
  return "[" + text + "]";
}

// The first ones, for a list; the picture has the others' titles.
std::string edges_json(const view::Figure& figure) {
  constexpr std::size_t most = 200;
  std::string text;
  for (std::size_t i = 0; i < figure.edges.size() && i < most; ++i) {
    const view::FigureEdge& edge = figure.edges[i];
    text += (text.empty() ? "" : ",") + std::string("{\"from\":") + std::to_string(edge.source) +
            ",\"to\":" + std::to_string(edge.destination) +
            ",\"kind\":" + json_string(graph::name_of(edge.kind)) + ",\"title\":" + json_string(edge.title) +
            "}";
  }
  return "[" + text + "]";
}

}  // namespace

const Drawings::Drawing& Drawings::of(const std::shared_ptr<LoadedGraph>& graph) {
  drawings_.remove_if([](const Drawing& one) { return one.of.expired(); });
  for (auto one = drawings_.begin(); one != drawings_.end(); ++one) {
    if (one->of.lock() != graph) continue;
    drawings_.splice(drawings_.begin(), drawings_, one);
    return drawings_.front();
  }
  Drawing drawing;
  drawing.of = graph;
  if (graph->nodes() <= most_nodes) {
    view::PictureOptions options;
    options.schedule = graph->built().schedule();
    options.backend = graph->built().backend();
    drawing.figure = view::make_figure(graph->built().graph(), options);
    drawing.svg = view::to_svg(drawing.figure);
  }
  drawings_.push_front(std::move(drawing));
  if (drawings_.size() > kept) drawings_.pop_back();
  return drawings_.front();
}

std::string graph_json(LoadedGraph& graph, const Drawings::Drawing& drawing) {
  const run::BuiltGraph& built = graph.built();
  const run::NodeTimes times = built.times();
  return "{\"name\":" + json_string(built.graph().name) + ",\"nodes\":" + std::to_string(graph.nodes()) +
         ",\"launches\":" + std::to_string(graph.launches()) +
         ",\"threads\":" + std::to_string(built.threads()) + ",\"build_s\":" + number(built.build_s()) +
         ",\"scratch_bytes\":" + std::to_string(built.scratch().bytes) +
         ",\"measured\":" + std::to_string(times.replays) +
         ",\"schedule\":" + schedule_json(built.schedule()) + ",\"svg\":" + json_string(drawing.svg) +
         ",\"edges\":" + edges_json(drawing.figure) +
         ",\"shapes\":" + shapes_json(built.graph(), drawing.figure, times) + "}";
}

std::string graph_json(const v1::GraphDescription& description) {
  const auto graph = graph::read(description, graph::PrivateKernelPlanes::allowed);
  view::Figure figure;
  if (graph.ok() && graph::leaves(*graph).size() <= Drawings::most_nodes) figure = view::make_figure(*graph);
  return "{\"name\":" + json_string(description.name()) +
         ",\"launches\":0,\"measured\":0,\"schedule\":[],\"svg\":" +
         json_string(figure.shapes.empty() ? "" : view::to_svg(figure)) + ",\"edges\":" + edges_json(figure) +
         ",\"shapes\":" + (graph.ok() ? shapes_json(*graph, figure, {}) : "[]") + "}";
}

}  // namespace eagle::server
