#include "client/ctl/graph_files.h"

#include <unistd.h>

#include <iostream>

#include "client/ctl/graphs_list.h"
#include "client/ctl/json.h"
#include "client/ctl/output.h"
#include "client/saved_planes.h"
#include "eagle/client/graph_file.h"
#include "eagle/v1/service.pb.h"
#include "engine/base/file_bytes.h"
#include "engine/graph/address.h"
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

// As `graph save` finds it in the daemon.
StatusOr<GraphFile> file_of(const Operator& caller, const std::string& which) {
  EAGLE_ASSIGN_OR_RETURN(const auto all, caller.session.graphs(GraphScope::visible));
  EAGLE_ASSIGN_OR_RETURN(const GraphInfo graph, find_graph(all, which));
  v1::DescribeGraphReply reply;
  EAGLE_RETURN_IF_ERROR(caller.admin->describe({graph.session, graph.graph}, reply));
  std::vector<graph::ParamUpdate> updates;
  for (const v1::ParamUpdate& message : reply.params()) {
    EAGLE_ASSIGN_OR_RETURN(graph::ParamUpdate update, graph::read_update(message));
    updates.push_back(std::move(update));
  }
  EAGLE_RETURN_IF_ERROR(saved::apply(updates, *reply.mutable_description()));
  return GraphFile::of(reply.description());
}

}  // namespace

StatusOr<Exit> save_graph_file(const Options& options, const SaveAsked& asked) {
  EAGLE_ASSIGN_OR_RETURN(const Operator caller, connect_operator(options));
  EAGLE_ASSIGN_OR_RETURN(const GraphFile graph, file_of(caller, asked.graph));
  EAGLE_ASSIGN_OR_RETURN(const UniqueFd file, new_file(asked.file, 0666));
  const Status written = write_at(file.get(), graph.bytes(), 0).within("'" + asked.file + "'");
  if (!written.ok()) {
    ::unlink(asked.file.c_str());  // half of a graph helps nobody
    return written;
  }
  if (options.json) {
    Json json = to_json(graph);
    json["file"] = asked.file;
    json["bytes"] = graph.bytes().size();
    print_json(json);
  } else {
    std::cout << asked.file << ": " << bytes_text(graph.bytes().size()) << "\n" << to_text(graph);
  }
  return Exit::well;
}

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
