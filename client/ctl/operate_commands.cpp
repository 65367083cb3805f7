// timeline, quarantine, pardon, drain, log, log-level, metrics, support-bundle: what an operator does to a
// daemon.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <iostream>

#include "client/ctl/command.h"
#include "client/ctl/graphs_list.h"
#include "client/ctl/json.h"
#include "client/ctl/output.h"
#include "eagle/v1/service.pb.h"

namespace eagle::ctl {
namespace {

struct TimelineOptions {
  std::string graph;
  std::string file = "-";
};

StatusOr<Exit> timeline(const Options& options, const TimelineOptions& asked) {
  EAGLE_ASSIGN_OR_RETURN(const Operator caller, connect_operator(options));
  std::optional<GraphAddress> graph;
  if (!asked.graph.empty()) {
    EAGLE_ASSIGN_OR_RETURN(const auto all, caller.session.graphs(GraphScope::visible));
    EAGLE_ASSIGN_OR_RETURN(const GraphInfo found, find_graph(all, asked.graph));
    graph = {found.session, found.graph};
  }
  v1::TimelineReply reply;
  EAGLE_RETURN_IF_ERROR(caller.admin->timeline(graph, reply));
  EAGLE_RETURN_IF_ERROR(write_file(asked.file, reply.trace_json()));
  if (asked.file == "-") return Exit::well;
  if (options.json) {
    print_json({{"file", asked.file}, {"events", reply.events()}, {"forgotten", reply.forgotten()}});
  } else {
    std::cout << asked.file << ": " << plural(reply.events(), "event")
              << (reply.forgotten() > 0 ? ", " + count_text(reply.forgotten()) + " older ones are forgotten"
                                        : "")
              << "; open it in https://ui.perfetto.dev\n";
  }
  return Exit::well;
}

StatusOr<Exit> quarantine(const Options& options) {
  EAGLE_ASSIGN_OR_RETURN(const Operator caller, connect_operator(options));
  v1::ListQuarantineReply reply;
  EAGLE_RETURN_IF_ERROR(caller.admin->quarantine(reply));
  if (options.json) {
    Json json = {{"graphs", Json::array()}, {"tenants", Json(reply.tenants())}};
    for (const v1::StruckGraph& graph : reply.graphs()) {
      json["graphs"].push_back({{"hash", graph.hash()},
                                {"deaths", graph.deaths()},
                                {"quarantined", graph.quarantined()},
                                {"tenant", graph.tenant()},
                                {"graph", graph.graph()},
                                {"age_s", graph.age_s()}});
    }
    print_json(json);
    return Exit::well;
  }
  Table table({{"HASH"},
               {"DEATHS", Table::Align::right},
               {"STATE"},
               {"TENANT"},
               {"GRAPH"},
               {"LAST DEATH", Table::Align::right}});
  for (const v1::StruckGraph& graph : reply.graphs()) {
    table.add({graph.hash(), count_text(graph.deaths()), graph.quarantined() ? "quarantined" : "struck",
               graph.tenant(), graph.graph(), seconds_text(graph.age_s()) + " ago"});
  }
  std::cout << (table.empty() ? "no graph was running when a worker died\n" : table.text());
  for (const std::string& tenant : reply.tenants())
    std::cout << "nothing is built for tenant '" << tenant << "'\n";
  return Exit::well;
}

struct PardonOptions {
  std::vector<std::string> graphs;
  std::string tenant;
  bool all = false;
};

StatusOr<Exit> pardon(const Options& options, const PardonOptions& asked) {
  EAGLE_ASSIGN_OR_RETURN(const Operator caller, connect_operator(options));
  v1::PardonRequest request;
  request.mutable_graphs()->Add(asked.graphs.begin(), asked.graphs.end());
  request.set_tenant(asked.tenant);
  request.set_all(asked.all);
  EAGLE_ASSIGN_OR_RETURN(const std::uint64_t forgotten, caller.admin->pardon(request));
  if (options.json) {
    print_json({{"graphs", forgotten}});
  } else {
    std::cout << plural(forgotten, "graph") << " pardoned\n";
  }
  return Exit::well;
}

StatusOr<Exit> drain(const Options& options, std::optional<std::uint32_t> timeout_s) {
  EAGLE_ASSIGN_OR_RETURN(const Operator caller, connect_operator(options));
  v1::DrainReply reply;
  EAGLE_RETURN_IF_ERROR(caller.admin->drain(timeout_s, reply));
  if (options.json) {
    print_json({{"jobs", reply.jobs()}});
  } else {
    std::cout << "the daemon takes no new work and ends when the " << plural(reply.jobs(), "job")
              << " in hand are done or their time is over; drain again to hurry\n";
  }
  return Exit::well;
}

StatusOr<Exit> log_lines(const Options& options, std::uint32_t lines) {
  EAGLE_ASSIGN_OR_RETURN(const Operator caller, connect_operator(options));
  EAGLE_ASSIGN_OR_RETURN(const auto found, caller.admin->recent_log(lines));
  if (options.json) {
    print_json(Json(found));
  } else {
    for (const std::string& line : found) std::cout << line << '\n';
  }
  return Exit::well;
}

StatusOr<Exit> log_level(const Options& options, const std::string& level) {
  EAGLE_ASSIGN_OR_RETURN(const Operator caller, connect_operator(options));
  EAGLE_ASSIGN_OR_RETURN(const std::string previous, caller.admin->set_log_level(level));
  if (options.json) {
    print_json({{"level", level}, {"previous", previous}});
  } else {
    std::cout << "log level " << level << ", was " << previous << '\n';
  }
  return Exit::well;
}

StatusOr<Exit> metrics(const Options& options) {
  EAGLE_ASSIGN_OR_RETURN(const Operator caller, connect_operator(options));
  EAGLE_ASSIGN_OR_RETURN(const std::string text, caller.admin->metrics());
  if (options.json) {
    print_json({{"text", text}});
  } else {
    std::cout << text;
  }
  return Exit::well;
}

// The archive says how a machine is set up: it is for its owner's eyes. Never over a file that is there.
StatusOr<Exit> support_bundle(const Options& options, const std::string& path) {
  EAGLE_ASSIGN_OR_RETURN(const Operator caller, connect_operator(options));
  EAGLE_ASSIGN_OR_RETURN(const UniqueFd file, new_file(path, 0600));
  std::uint64_t bytes = 0;
  const Status written = caller.admin->support_bundle([&](std::string_view chunk) -> Status {
    bytes += chunk.size();
    while (!chunk.empty()) {
      const ssize_t count = ::write(file.get(), chunk.data(), chunk.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return {Reason::system, "'" + path + "' cannot be written: " + std::strerror(errno)};
      chunk.remove_prefix(static_cast<std::size_t>(count));
    }
    return {};
  });
  if (!written.ok()) {
    ::unlink(path.c_str());  // half of an archive helps nobody
    return written;
  }
  if (options.json) {
    print_json({{"file", path}, {"bytes", bytes}});
  } else {
    std::cout << path << ": " << bytes_text(bytes) << "; look through it before you pass it on\n";
  }
  return Exit::well;
}

}  // namespace

void add_operate_commands(CLI::App& app, Chosen& chosen) {
  CLI::App* const timeline_command =
      app.add_subcommand("timeline", "What happened lately, as a trace for ui.perfetto.dev");
  const auto traced = std::make_shared<TimelineOptions>();
  timeline_command->add_option("GRAPH", traced->graph,
                               "One graph, by name or id; without it: all that happened");
  timeline_command->add_option("-o,--output", traced->file, "The file (-: standard output)")
      ->capture_default_str();
  timeline_command->final_callback([&chosen, traced] {
    chosen.command = [traced](const Options& options) { return timeline(options, *traced); };
  });

  app.add_subcommand("quarantine", "Graphs that were running when a worker died; for its admins")
      ->final_callback([&chosen] { chosen.command = quarantine; });

  CLI::App* const pardon_command =
      app.add_subcommand("pardon", "Forgets that graphs were running when a worker died; for its admins");
  const auto pardoned = std::make_shared<PardonOptions>();
  pardon_command->add_option("HASH", pardoned->graphs, "Graphs, as `quarantine` lists them");
  pardon_command->add_option("--tenant", pardoned->tenant, "All graphs of this tenant");
  pardon_command->add_flag("--all", pardoned->all, "All graphs");
  pardon_command->require_option(1);
  pardon_command->final_callback([&chosen, pardoned] {
    chosen.command = [pardoned](const Options& options) { return pardon(options, *pardoned); };
  });

  CLI::App* const drain_command =
      app.add_subcommand("drain", "Ends the daemon once its work is done; for its admins");
  const auto timeout = std::make_shared<std::uint32_t>(0);
  const CLI::Option* const given =
      drain_command
          ->add_option("--drain-timeout", *timeout,
                       "Seconds that work in hand gets before it is cancelled (default: as configured)")
          ->check(CLI::Range(0, 86400));
  drain_command->final_callback([&chosen, timeout, given] {
    const std::optional<std::uint32_t> seconds = given->count() > 0 ? std::optional(*timeout) : std::nullopt;
    chosen.command = [seconds](const Options& options) { return drain(options, seconds); };
  });

  CLI::App* const log_command = app.add_subcommand("log", "The daemon's latest log lines; for its admins");
  const auto lines = std::make_shared<std::uint32_t>(100);
  log_command->add_option("--lines", *lines, "How many, the newest (0: all that it remembers)")
      ->capture_default_str();
  log_command->final_callback([&chosen, lines] {
    chosen.command = [lines](const Options& options) { return log_lines(options, *lines); };
  });

  CLI::App* const level_command = app.add_subcommand(
      "log-level", "Sets how much the daemon logs, until it is told otherwise; for its admins");
  const auto level = std::make_shared<std::string>();
  level_command->add_option("LEVEL", *level, "How much")
      ->required()
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}));
  level_command->final_callback([&chosen, level] {
    chosen.command = [level](const Options& options) { return log_level(options, *level); };
  });

  app.add_subcommand("metrics", "The daemon's figures as Prometheus reads them; for its admins")
      ->final_callback([&chosen] { chosen.command = metrics; });

  CLI::App* const bundle_command = app.add_subcommand(
      "support-bundle", "Writes what helps to understand a daemon into a tar file; for its admins");
  const auto file = std::make_shared<std::string>();
  bundle_command->add_option("FILE", *file, "A file that is not there yet")->required();
  bundle_command->final_callback([&chosen, file] {
    chosen.command = [file](const Options& options) { return support_bundle(options, *file); };
  });
}

}  // namespace eagle::ctl
