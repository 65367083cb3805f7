#include "server/support_bundle.h"

#include <google/protobuf/stubs/common.h>
#include <sys/utsname.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "engine/view/picture.h"
#include "server/metrics_text.h"
#include "server/recent_log.h"
#include "server/tar.h"

namespace eagle::server {
namespace {

constexpr const char* folder = "eagled-support/";

std::string hex(std::uint64_t id) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(id));
  return text;
}

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
    text << hex(id) << " client=\"" << loggable(session->client())
         << "\" principal=" << loggable(session->principal().text())
         << " tenant=" << loggable(session->tenant()->name()) << " planes=" << session->planes().list().size()
         << " graphs=" << session->graphs().size() << " jobs=" << session->jobs()
         << (session->has_ring() ? " ring" : "") << '\n';
  }
  return text.str();
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
  std::size_t pictures = 0;
  for (const auto& [id, session] : daemon.sessions().by_id()) {
    for (const auto& [number, graph] : session->graphs()) {
      if (++pictures > most_pictures) break;
      view::PictureOptions options;
      options.schedule = graph->built().schedule();
      add("graphs/" + hex(id) + "-" + std::to_string(number) + ".txt",
          view::draw(graph->built().graph(), view::Format::text, options));
    }
  }
  if (pictures > most_pictures) add("graphs/MORE", "there are more graphs than are drawn here\n");
  return std::move(tar).finish();
}

}  // namespace eagle::server
