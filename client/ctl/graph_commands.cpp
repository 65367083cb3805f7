// graphs, show, explain, graph: what a daemon was asked to compute, and how it does.
#include <CLI/CLI.hpp>
#include <iostream>

#include "client/ctl/command.h"
#include "client/ctl/graph_files.h"
#include "client/ctl/graphs_list.h"
#include "client/ctl/json.h"
#include "client/ctl/output.h"
#include "eagle/v1/service.pb.h"
#include "engine/run/execution.h"

namespace eagle::ctl {
namespace {

using Align = Table::Align;

// A graph by what somebody wrote, and what the daemon says about it.
struct Found {
  GraphInfo graph;
  v1::InspectReply details;
};
StatusOr<Found> inspect(const Operator& caller, const std::string& which) {
  EAGLE_ASSIGN_OR_RETURN(const auto all, caller.session.graphs(GraphScope::visible));
  Found found;
  EAGLE_ASSIGN_OR_RETURN(found.graph, find_graph(all, which));
  EAGLE_RETURN_IF_ERROR(caller.admin->inspect({found.graph.session, found.graph.graph}, found.details));
  return found;
}

Json to_json(const GraphInfo& graph) {
  return {{"id", id_of(graph)},   {"name", graph.name},         {"session", graph.session},
          {"graph", graph.graph}, {"client", graph.client},     {"tenant", graph.tenant},
          {"nodes", graph.nodes}, {"launches", graph.launches}, {"scratch_bytes", graph.scratch.bytes}};
}

StatusOr<Exit> graphs(const Options& options) {
  EAGLE_ASSIGN_OR_RETURN(const Session session, connect(options));
  EAGLE_ASSIGN_OR_RETURN(const auto found, session.graphs(GraphScope::visible));
  if (!options.json) {
    std::cout << table_of(found);
    return Exit::well;
  }
  Json list = Json::array();
  for (const GraphInfo& graph : found) list.push_back(to_json(graph));
  print_json(list);
  return Exit::well;
}

StatusOr<Exit> show(const Options& options, const std::string& which, view::Format format) {
  EAGLE_ASSIGN_OR_RETURN(const Session session, connect(options));
  EAGLE_ASSIGN_OR_RETURN(const auto all, session.graphs(GraphScope::visible));
  EAGLE_ASSIGN_OR_RETURN(const GraphInfo graph, find_graph(all, which));
  EAGLE_ASSIGN_OR_RETURN(const std::string picture, session.picture(graph, format));
  if (options.json) {
    Json json = to_json(graph);
    json["picture"] = picture;
    print_json(json);
  } else {
    std::cout << picture;
  }
  return Exit::well;
}

// ---- graph

std::string_view name_of(v1::HazardKind kind) {
  return kind == v1::RAW ? "RAW" : kind == v1::WAR ? "WAR" : kind == v1::WAW ? "WAW" : "?";
}

template <typename Nodes>
std::string nodes_text(const Nodes& nodes) {
  std::string text;
  for (const v1::ExecutedNode& node : nodes)
    text += (text.empty() ? "" : " + ") + std::to_string(node.index()) + " " + node.label();
  return text;
}

template <typename Nodes>
Json nodes_json(const Nodes& nodes) {
  Json list = Json::array();
  for (const v1::ExecutedNode& node : nodes)
    list.push_back({{"index", node.index()}, {"label", node.label()}});
  return list;
}

Json to_json(const v1::Execution& execution) {
  Json groups = Json::array();
  for (const v1::ExecutedGroup& group : execution.groups()) {
    Json functions = Json::array();
    for (const v1::ExecutedFunction& function : group.functions())
      functions.push_back(nodes_json(function.nodes()));
    groups.push_back({{"functions", functions},
                      {"samples", group.samples()},
                      {"block", group.block()},
                      {"threads", group.threads()},
                      {"bytes", group.bytes()}});
  }
  return {{"fusion", execution.fusion()},
          {"groups", groups},
          {"groups_left_out", execution.left_out()},
          {"bytes", execution.bytes()}};
}

Json to_json(const Found& found) {
  const v1::InspectReply& details = found.details;
  Json json = to_json(found.graph);
  json["nodes"] = Json::array();
  for (const v1::InspectedNode& node : details.nodes()) {
    json["nodes"].push_back(
        {{"index", node.index()}, {"label", node.label()}, {"stage", node.stage()}, {"kind", node.kind()}});
  }
  json["nodes_left_out"] = details.nodes_left_out();
  json["edges"] = Json::array();
  for (const v1::Edge& edge : details.edges()) {
    json["edges"].push_back({{"source", edge.source()},
                             {"destination", edge.destination()},
                             {"kind", name_of(edge.kind())},
                             {"plane", edge.plane()}});
  }
  json["no_edges"] = details.no_edges();
  json["schedule"] = Json(details.schedule());
  json["execution"] = to_json(details.execution());
  json["functions"] = Json::array();
  for (const v1::InspectedFunction& function : details.functions()) {
    json["functions"].push_back({{"name", function.name()},
                                 {"nodes", nodes_json(function.nodes())},
                                 {"hash", function.hash()},
                                 {"cpu", function.cpu()},
                                 {"lanes", function.lanes()},
                                 {"code_bytes", function.code_bytes()}});
  }
  json["kernels"] = Json::array();
  for (const v1::InspectedKernel& kernel : details.kernels())
    json["kernels"].push_back({{"name", kernel.name()}, {"hash", kernel.hash()}});
  json["threads"] = details.threads();
  json["build_s"] = details.build_s();
  json["compiled"] = details.compiled();
  return json;
}

std::string edges_text(const v1::InspectReply& details) {
  if (!details.no_edges().empty()) return "EDGES\n" + details.no_edges() + "\n";
  Table table({{"EDGE"}, {"FROM"}, {"TO"}, {"PLANE"}});
  const auto node = [&](std::uint32_t index) {
    const int place = static_cast<int>(index);
    return std::to_string(index) + (place < details.nodes_size() ? " " + details.nodes(place).label() : "");
  };
  for (const v1::Edge& edge : details.edges())
    table.add(
        {std::string(name_of(edge.kind())), node(edge.source()), node(edge.destination()), edge.plane()});
  return table.empty() ? "no edges: nothing has to wait\n" : table.text();
}

std::string execution_text(const v1::InspectReply& details) {
  const v1::Execution& execution = details.execution();
  std::string text =
      "execution: fusion " + execution.fusion() + ", " +
      plural(static_cast<std::uint64_t>(execution.groups_size()) + execution.left_out(), "group") +
      " on a team of " + count_text(static_cast<std::uint64_t>(details.threads())) + ", " +
      bytes_text(static_cast<std::uint64_t>(execution.bytes())) + " moved a launch\n";
  Table table({{"GROUP", Align::right},
               {"SAMPLES", Align::right},
               {"BLOCK", Align::right},
               {"THREADS", Align::right},
               {"BYTES", Align::right},
               {"CODE", Align::right},
               {"LANES", Align::right},
               {"ONE FUNCTION OF", Align::left, 60}});
  int function = 0;
  for (int g = 0; g < execution.groups_size(); ++g) {
    const v1::ExecutedGroup& group = execution.groups(g);
    for (int f = 0; f < group.functions_size(); ++f) {
      // Of the group as a whole, hence beside its first function.
      const auto whole = [&](std::string one) { return f == 0 ? std::move(one) : std::string(); };
      const auto* const made = function < details.functions_size() ? &details.functions(function) : nullptr;
      table.add({whole(std::to_string(g)), whole(count_text(static_cast<std::uint64_t>(group.samples()))),
                 whole(count_text(static_cast<std::uint64_t>(group.block()))),
                 whole(std::to_string(group.threads())),
                 whole(bytes_text(static_cast<std::uint64_t>(group.bytes()))),
                 made == nullptr ? "" : bytes_text(made->code_bytes()),
                 made == nullptr ? "" : std::to_string(made->lanes()),
                 nodes_text(group.functions(f).nodes())});
      ++function;
    }
  }
  if (!table.empty()) text += table.text();
  if (execution.left_out() > 0) text += "and " + plural(execution.left_out(), "group") + " more\n";
  return text;
}

std::string to_text(const Found& found) {
  const v1::InspectReply& details = found.details;
  std::string text =
      list_text({{"graph", id_of(found.graph) + (found.graph.name.empty() ? "" : " " + found.graph.name)},
                 {"client", found.graph.client + ", tenant " + found.graph.tenant},
                 {"launches", count_text(details.launches())},
                 {"built", "in " + seconds_text(details.build_s()) +
                               (details.compiled() ? "" : ", all code from a cache")},
                 {"scratch", bytes_text(details.scratch_bytes())}});
  Table nodes(
      {{"NODE", Align::right}, {"STAGE", Align::right}, {"SCHEDULE"}, {"LABEL"}, {"KIND", Align::left, 70}});
  for (const v1::InspectedNode& node : details.nodes()) {
    const int stage = static_cast<int>(node.stage());
    nodes.add({std::to_string(node.index()), std::to_string(node.stage()),
               stage < details.schedule_size() ? details.schedule(stage) : "", node.label(), node.kind()});
  }
  text += "\n" + nodes.text();
  if (details.nodes_left_out() > 0) text += "and " + plural(details.nodes_left_out(), "node") + " more\n";
  return text + "\n" + edges_text(details) + "\n" + execution_text(details);
}

StatusOr<Exit> graph(const Options& options, const std::string& which) {
  EAGLE_ASSIGN_OR_RETURN(const Operator caller, connect_operator(options));
  EAGLE_ASSIGN_OR_RETURN(const Found found, inspect(caller, which));
  if (options.json) {
    print_json(to_json(found));
  } else {
    std::cout << to_text(found);
  }
  return Exit::well;
}

// ---- explain

struct AskedGraph {
  std::string graph;
  std::string node;
  std::string other;
  std::uint64_t most = 50;
};

StatusOr<std::string> explanation(const Operator& caller, const Found& found, std::uint32_t node,
                                  std::optional<std::uint32_t> other) {
  v1::ExplainRequest request;
  request.set_session(found.graph.session);
  request.set_graph(found.graph.graph);
  request.mutable_node()->set_index(node);
  if (other) request.mutable_other()->set_index(*other);
  v1::ExplainReply reply;
  EAGLE_RETURN_IF_ERROR(caller.admin->explain(request, reply));
  std::string text = std::move(*reply.mutable_explanation()->mutable_text());
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

// The report of the executor, and of each pair of nodes with an edge the reasons for it.
StatusOr<Exit> explain_graph(const Options& options, const Operator& caller, const Found& found,
                             std::uint64_t most) {
  const v1::InspectReply& details = found.details;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const v1::Edge& edge : details.edges()) {
    const std::pair pair{edge.source(), edge.destination()};
    if (pairs.empty() || pairs.back() != pair) pairs.push_back(pair);
  }
  Json reasons = Json::array();
  std::string text;
  for (std::size_t i = 0; i < pairs.size() && i < most; ++i) {
    EAGLE_ASSIGN_OR_RETURN(const std::string why,
                           explanation(caller, found, pairs[i].first, pairs[i].second));
    reasons.push_back({{"source", pairs[i].first}, {"destination", pairs[i].second}, {"text", why}});
    text += "\n" + why + "\n";
  }
  const std::size_t left_out = pairs.size() - std::min<std::size_t>(pairs.size(), most);
  if (options.json) {
    print_json({{"id", id_of(found.graph)},
                {"execution", to_json(details.execution())},
                {"edges", reasons},
                {"edges_left_out", left_out},
                {"no_edges", details.no_edges()}});
    return Exit::well;
  }
  std::cout << execution_text(details);
  if (!details.no_edges().empty()) text = "\n" + details.no_edges() + "\n";
  std::cout << (text.empty() ? "\nno edges: nothing has to wait\n" : text);
  if (left_out > 0)
    std::cout << "\nand " << plural(left_out, "pair") << " of nodes more (--most); or name one: "
              << "eaglectl explain GRAPH NODE OTHER\n";
  return Exit::well;
}

StatusOr<Exit> explain(const Options& options, const AskedGraph& asked) {
  EAGLE_ASSIGN_OR_RETURN(const Operator caller, connect_operator(options));
  EAGLE_ASSIGN_OR_RETURN(const Found found, inspect(caller, asked.graph));
  if (asked.node.empty()) return explain_graph(options, caller, found, asked.most);
  std::vector<std::string> labels;
  for (const v1::InspectedNode& node : found.details.nodes()) labels.push_back(node.label());
  EAGLE_ASSIGN_OR_RETURN(const std::size_t node, find_name("node", labels, asked.node));
  std::optional<std::uint32_t> other;
  if (!asked.other.empty()) {
    EAGLE_ASSIGN_OR_RETURN(const std::size_t index, find_name("node", labels, asked.other));
    other = static_cast<std::uint32_t>(index);
  }
  EAGLE_ASSIGN_OR_RETURN(const std::string text,
                         explanation(caller, found, static_cast<std::uint32_t>(node), other));
  if (options.json) {
    Json json = {{"id", id_of(found.graph)}, {"node", node}, {"text", text}};
    if (other) json["other"] = *other;
    print_json(json);
  } else {
    std::cout << text << '\n';
  }
  return Exit::well;
}

}  // namespace

void add_graph_commands(CLI::App& app, Chosen& chosen) {
  constexpr const char* graph_help = "Its name, or its id as `eaglectl graphs` lists it";
  app.add_subcommand("graphs", "The graphs that you may see, with their ids and names")
      ->final_callback([&chosen] { chosen.command = graphs; });

  CLI::App* const show_command = app.add_subcommand("show", "Draws a graph");
  const auto which = std::make_shared<std::string>();
  const auto format = std::make_shared<view::Format>(view::Format::text);
  show_command->add_option("GRAPH", *which, graph_help)->required();
  CLI::Option_group* const formats = show_command->add_option_group("format");
  formats->require_option(0, 1);
  for (const FormatFlag& flag : format_flags) {
    formats->add_flag_callback(
        std::string(flag.flag), [format, &flag] { *format = flag.format; }, std::string(flag.help));
  }
  show_command->final_callback([&chosen, which, format] {
    chosen.command = [which, format](const Options& options) { return show(options, *which, *format); };
  });

  CLI::App* const explain_command =
      app.add_subcommand("explain", "Why nodes wait for each other, and how they run");
  const auto asked = std::make_shared<AskedGraph>();
  explain_command->add_option("GRAPH", asked->graph, graph_help)->required();
  explain_command->add_option("NODE", asked->node, "A node's label or index; without one: the whole graph");
  explain_command->add_option("OTHER", asked->other, "Another one: why one of the two waits for the other");
  explain_command->add_option("--most", asked->most, "Pairs of nodes that are explained of a whole graph")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  explain_command->final_callback([&chosen, asked] {
    chosen.command = [asked](const Options& options) { return explain(options, *asked); };
  });

  CLI::App* const graph_command =
      app.add_subcommand("graph",
                         "Nodes, edges, schedule, and what the executor made of them; or `graph save GRAPH "
                         "FILE` and `graph load FILE`, graphs as files");
  const auto inspected = std::make_shared<std::string>();
  const auto words = std::make_shared<std::vector<std::string>>();
  const auto launches = std::make_shared<std::int64_t>(0);
  graph_command->add_option("GRAPH", *inspected, std::string(graph_help) + "; or the word save or load")
      ->required();
  graph_command
      ->add_option(
          "WORDS", *words,
          "After save: a graph, and a file that is not there yet; after load: a file of a saved graph")
      ->expected(0, 2);
  graph_command->add_option("--launches", *launches, "After load: launch it so often, over zeros")
      ->check(CLI::Range(0, 1'000'000'000));
  graph_command->final_callback([&chosen, inspected, words, launches] {
    if (words->empty()) {
      chosen.command = [inspected](const Options& options) { return graph(options, *inspected); };
    } else if (*inspected == "save" && words->size() == 2) {
      const SaveAsked save{words->front(), words->back()};
      chosen.command = [save](const Options& options) { return save_graph_file(options, save); };
    } else if (*inspected == "load" && words->size() == 1) {
      const LoadAsked load{words->front(), *launches};
      chosen.command = [load](const Options& options) { return load_graph_file(options, load); };
    } else {
      throw CLI::ValidationError("graph",
                                 "expected eaglectl graph GRAPH, graph save GRAPH FILE or graph load FILE");
    }
  });
}

}  // namespace eagle::ctl
