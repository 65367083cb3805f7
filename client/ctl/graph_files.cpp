#include "client/ctl/graph_files.h"

#include <iostream>

#include "client/ctl/json.h"
#include "client/ctl/output.h"
#include "eagle/client/graph_file.h"
#include "engine/graph/edges.h"

namespace eagle::ctl {
namespace {

std::string shape_of(const SavedPlane& plane) {
  std::string text;
  for (const std::int64_t extent : plane.shape) text += (text.empty() ? "" : " x ") + std::to_string(extent);
  return text.empty() ? "1" : text;
}

std::string_view use_of(const SavedPlane& plane) {
  return plane.read && plane.written ? "reads, writes" : plane.written ? "writes" : "reads";
}

Json to_json(const GraphFile& file) {
  Json planes = Json::array();
  for (const SavedPlane& plane : file.planes()) {
    planes.push_back({{"name", plane.name},
                      {"names", plane.names},
                      {"dtype", std::string(plane::name_of(plane.dtype))},
                      {"shape", plane.shape},
                      {"bytes", plane.bytes},
                      {"read", plane.read},
                      {"written", plane.written}});
  }
  return {{"name", file.name()},       {"hash", file.hash()},
          {"made_by", file.made_by()}, {"nodes", graph::leaves(file.graph()).size()},
          {"calls", file.calls()},     {"planes", planes}};
}

std::string to_text(const GraphFile& file) {
  std::string text = list_text({{"graph", file.name().empty() ? "without a name" : file.name()},
                                {"hash", file.hash()},
                                {"made by", file.made_by()},
                                {"nodes", std::to_string(graph::leaves(file.graph()).size())}});
  Table planes({{"PLANE"}, {"DTYPE"}, {"SHAPE"}, {"SIZE", Table::Align::right}, {"NODES"}});
  for (const SavedPlane& plane : file.planes()) {
    planes.add({plane.name, std::string(plane::name_of(plane.dtype)), shape_of(plane),
                bytes_text(plane.bytes), std::string(use_of(plane))});
  }
  return text + "\n" + planes.text();
}

}  // namespace

StatusOr<Exit> load_graph_file(const Options& options, const LoadAsked& asked) {
  EAGLE_ASSIGN_OR_RETURN(const GraphFile file, GraphFile::read(asked.file));
  Json json = to_json(file);
  std::string text = to_text(file);
  const bool whole = file.calls().empty();
  json["built"] = whole;
  if (!whole) {
    text += "\nnot built: it calls " + plural(file.calls().size(), "callable") +
            " of the program that loads it\n";
  } else {
    EAGLE_ASSIGN_OR_RETURN(const Session session, connect(options));
    EAGLE_ASSIGN_OR_RETURN(Graph graph, session.load(file));
    EAGLE_RETURN_IF_ERROR(graph.build());
    EAGLE_ASSIGN_OR_RETURN(const std::string picture, graph.show());
    text += "\n" + picture;
    json["schedule"] = graph.schedule();
    if (asked.launches > 0) {
      EAGLE_ASSIGN_OR_RETURN(const LaunchReport report, graph.launch(asked.launches));
      json["launches"] = report.launches;
      json["wall_s"] = report.wall_s;
      text += "\nlaunched " + plural(static_cast<std::uint64_t>(report.launches), "time") +
              " over zeros in " + seconds_text(report.wall_s) + "\n";
    }
  }
  if (options.json) {
    print_json(json);
  } else {
    std::cout << text;
  }
  return Exit::well;
}

}  // namespace eagle::ctl
