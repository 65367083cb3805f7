#include "server/support_bundle.h"

#include <google/protobuf/stubs/common.h>
#include <sys/utsname.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "eagle/v1/state.pb.h"
#include "engine/view/picture.h"
#include "server/log_context.h"
#include "server/metrics_text.h"
#include "server/recent_log.h"
#include "server/tar.h"

namespace eagle::server {
namespace {

constexpr const char* folder = "eagled-support/";

std::string versions(const DaemonInfo& info) {
  utsname system{};
  ::uname(&system);
  std::ostringstream text;
  text << "eagled " << info.version << "\nhost " << system.nodename << "\nsystem " << system.sysname << ' '
       << system.release << ' ' << system.machine << "\ncpu target " << info.cpu << "\nthreads "
       << info.threads << "\nuptime_s " << info.uptime_s << "\nworker restarts " << info.restarts
       << "\nprotobuf " << google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION) << '\n';
  std::ifstream release("/etc/os-release");
  for (std::string line; std::getline(release, line);) {
    if (line.starts_with("PRETTY_NAME=")) text << line << '\n';
  }
  return text.str();
}

std::string sessions(Daemon& daemon) {
  std::ostringstream text;
  for (const auto& [id, session] : daemon.sessions().by_id()) {
    text << id_text(id) << " client=\"" << loggable(session->client())
         << "\" principal=" << loggable(session->principal().text())
         << " tenant=" << loggable(session->tenant()->name()) << " planes=" << session->planes().list().size()
         << " graphs=" << session->graphs().size() + session->dormant().size() << " jobs=" << session->jobs()
         << (session->has_ring() ? " ring" : "") << '\n';
  }
  return text.str();
}

// A graph that this worker has not built is known by its record.
std::string picture_of(const LoadedGraph& graph) {
  view::PictureOptions options;
  options.schedule = graph.built().schedule();
  options.backend = graph.built().backend();
  return view::draw(graph.built().graph(), view::Format::text, options);
}
std::string picture_of(const v1::GraphDescription& description) {
  const auto graph = graph::read(description, graph::PrivateKernelPlanes::allowed);
  return "another worker built it, and nobody has launched it since\n" +
         (graph.ok() ? view::draw(*graph, view::Format::text) : graph.status().to_string() + "\n");
}

void add_graphs(Daemon& daemon, Tar& tar) {
  std::size_t pictures = 0;
  const auto add = [&](std::uint64_t session, std::uint64_t graph, const auto& drawn) {
    if (++pictures <= most_pictures)
      tar.add(folder + ("graphs/" + id_text(session) + "-" + std::to_string(graph) + ".txt"),
              picture_of(drawn));
  };
  for (const auto& [id, session] : daemon.sessions().by_id()) {
    for (const auto& [number, graph] : session->graphs()) add(id, number, *graph);
    for (const std::uint64_t number : session->dormant()) {
      if (const auto record = session->records().find(number); record.ok())
        add(id, number, record->graph->description());
    }
  }
  if (pictures > most_pictures)
    tar.add(std::string(folder) + "graphs/MORE", "there are more graphs than are drawn here\n");
}

// With the graphs that sessions hold now, as far as they are written down.
std::string strikes(Daemon& daemon) {
  const auto all_strikes = daemon.quarantine().list();
  if (all_strikes.empty()) return "no graph was running when a worker died\n";
  std::map<GraphHash, std::string> holders;
  for (const auto& [id, session] : daemon.sessions().by_id()) {
    std::vector<std::uint64_t> all = session->dormant();
    for (const auto& [number, graph] : session->graphs()) all.push_back(number);
    for (const std::uint64_t number : all) {
      const auto record = session->records().find(number);
      if (!record.ok()) continue;
      holders[hash_of(record->graph->description(), session->tenant()->name())] +=
          " " + id_text(id) + "-" + std::to_string(number) + "=\"" +
          loggable(record->graph->description().name()) + "\"";
    }
  }
  std::string text;
  for (const Quarantine::Strike& strike : all_strikes) {
    text += text_of(strike.hash) + " deaths=" + std::to_string(strike.deaths) +
            (strike.quarantined() ? " quarantined" : "") +
            (strike.tenant.empty() ? "" : " tenant=\"" + loggable(strike.tenant) + "\"") +
            holders[strike.hash] + '\n';
  }
  return text;
}

}  // namespace

std::string support_bundle(Daemon& daemon, const Surroundings& surroundings) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  Tar tar(std::chrono::duration_cast<std::chrono::seconds>(now).count());
  const auto add = [&tar](const std::string& name, const std::string& text) { tar.add(folder + name, text); };
  add("versions.txt", versions(daemon.info()));
  if (surroundings.configuration) add("configuration.toml", surroundings.configuration());
  if (surroundings.recent_log) {
    std::string log;
    for (const std::string& line : surroundings.recent_log(RecentLog::most_lines)) log += line + '\n';
    add("log.txt", log);
  }
  add("metrics.txt", metrics_text(daemon));
  std::uint64_t events = 0, forgotten = 0;
  add("timeline.json", daemon.timeline(0, 0, events, forgotten));
  add("sessions.txt", sessions(daemon));
  add("strikes.txt", strikes(daemon));
  add_graphs(daemon, tar);
  return std::move(tar).finish();
}

}  // namespace eagle::server
