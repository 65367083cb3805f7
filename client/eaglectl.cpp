// eaglectl: the operator's tool. Tables for people, `--json` for programs.
//
// Exit status: 0 done, 1 the daemon said no or is not there, 2 the command line is wrong.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "client/discovery.h"
#include "client/eaglectl_graphs.h"
#include "eagle/client/session.h"
#include "engine/view/picture.h"

namespace {

using eagle::GraphInfo;
using eagle::GraphScope;
using eagle::Session;
using eagle::SessionInfo;
using eagle::Status;
using eagle::StatusOr;

using Value = std::variant<std::string, std::int64_t, std::uint64_t, double>;
using Fields = std::vector<std::pair<std::string_view, Value>>;

Fields fields_of(const SessionInfo& info) {
  return {{"endpoint", info.endpoint},
          {"version", info.version},
          {"pid", info.host.pid},
          {"host_name", info.host.host_name},
          {"uptime_s", info.uptime_s},
          {"threads", info.threads},
          {"cpu", info.cpu},
          {"sessions", info.sessions},
          {"planes", info.planes},
          {"plane_bytes", info.plane_bytes},
          {"plane_budget_bytes", info.plane_budget_bytes},
          {"graphs", info.graphs},
          {"launches", info.launches},
          {"kernels_cached", info.kernels_cached}};
}

Fields fields_of(const GraphInfo& graph) {
  return {{"id", eagle::ctl::id_of(graph)}, {"name", graph.name},
          {"session", graph.session},       {"graph", graph.graph},
          {"client", graph.client},         {"nodes", std::uint64_t{graph.nodes}},
          {"launches", graph.launches},     {"scratch_bytes", graph.scratch.bytes}};
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte == '"' || byte == '\\') {
      out += {'\\', character};
    } else if (byte < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      out += escape;
    } else {
      out += character;
    }
  }
  return out + '"';
}

std::string plain(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* real = std::get_if<double>(&value)) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.3f", *real);
    return digits;
  }
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  return std::to_string(std::get<std::uint64_t>(value));
}

std::string json_object(const Fields& fields) {
  std::string line = "{";
  for (const auto& [name, value] : fields) {
    if (line.size() > 1) line += ", ";
    line += json_string(name) + ": " +
            (std::holds_alternative<std::string>(value) ? json_string(plain(value)) : plain(value));
  }
  return line + "}";
}

std::string table_of(const Fields& fields) {
  std::string text;
  for (const auto& [name, value] : fields) {
    std::string label(name);
    label.resize(20, ' ');
    text += label + " " + plain(value) + "\n";
  }
  return text;
}

// A tool that looks must not start what it looks at.
StatusOr<Session> connect(const std::string& endpoint) {
  eagle::ConnectOptions options;
  options.client_name = "eaglectl";
  EAGLE_ASSIGN_OR_RETURN(auto host, eagle::discover(endpoint, options, eagle::Fallback::none));
  return Session(std::move(host));
}

Status info(const Session& session, bool json) {
  EAGLE_ASSIGN_OR_RETURN(const SessionInfo found, session.info());
  json ? std::cout << json_object(fields_of(found)) << '\n' : std::cout << table_of(fields_of(found));
  return {};
}

Status graphs(const Session& session, bool json) {
  EAGLE_ASSIGN_OR_RETURN(const auto found, session.graphs(GraphScope::visible));
  if (!json) {
    std::cout << eagle::ctl::table_of(found);
    return {};
  }
  std::string list;
  for (const GraphInfo& graph : found) list += (list.empty() ? "" : ", ") + json_object(fields_of(graph));
  std::cout << '[' << list << "]\n";
  return {};
}

Status show(const Session& session, const std::string& which, eagle::view::Format format) {
  EAGLE_ASSIGN_OR_RETURN(const auto all, session.graphs(GraphScope::visible));
  EAGLE_ASSIGN_OR_RETURN(const GraphInfo graph, eagle::ctl::find_graph(all, which));
  EAGLE_ASSIGN_OR_RETURN(const std::string picture, session.picture(graph, format));
  std::cout << picture;
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Looks at a running eagled.", "eaglectl");
  app.set_version_flag("--version", EAGLE_VERSION);
  std::string endpoint;
  bool json = false;
  app.add_option("--endpoint", endpoint,
                 "where the daemon listens, unix:PATH (default: EAGLE_ENDPOINT, then the usual sockets)");
  app.add_flag("--json", json, "one JSON object instead of a table");
  app.require_subcommand(0, 1);
  app.fallthrough();
  const CLI::App* info_command = app.add_subcommand("info", "what the daemon is, holds and does");
  const CLI::App* graphs_command =
      app.add_subcommand("graphs", "the graphs that you may see, with their ids and names");
  CLI::App* show_command = app.add_subcommand("show", "draws a graph");
  std::string which;
  show_command->add_option("GRAPH", which, "its name, or its id as `eaglectl graphs` lists it")->required();
  auto format = eagle::view::Format::text;
  CLI::Option_group* formats = show_command->add_option_group("format");
  formats->require_option(0, 1);
  for (const eagle::ctl::FormatFlag& flag : eagle::ctl::format_flags) {
    formats->add_flag_callback(
        std::string(flag.flag), [&format, &flag] { format = flag.format; }, std::string(flag.help));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return 2;
  }
  if (app.get_subcommands().empty()) {
    std::cerr << app.help();
    return 2;
  }
  const auto run = [&]() -> Status {
    EAGLE_ASSIGN_OR_RETURN(const Session session, connect(endpoint));
    if (info_command->parsed()) return info(session, json);
    if (graphs_command->parsed()) return graphs(session, json);
    return show(session, which, format);
  };
  const Status done = run();
  if (!done.ok()) std::cerr << "eaglectl: " << done.message() << '\n';
  return done.ok() ? 0 : 1;
}
