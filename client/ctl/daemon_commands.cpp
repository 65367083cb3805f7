// info, top, sessions, planes, health: a daemon and what it holds.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <map>
#include <mutex>
#include <thread>

#include "client/ctl/command.h"
#include "client/ctl/json.h"
#include "client/ctl/output.h"
#include "eagle/v1/service.pb.h"

namespace eagle::ctl {
namespace {

using Align = Table::Align;

Json to_json(const v1::TenantInfo& tenant) {
  return {{"name", tenant.name()},
          {"weight", tenant.weight()},
          {"priority", tenant.priority()},
          {"sessions", tenant.sessions()},
          {"plane_bytes", tenant.plane_bytes()},
          {"planes", tenant.planes()},
          {"gpu_bytes", tenant.gpu_bytes()},
          {"graphs", tenant.graphs()},
          {"jobs", tenant.jobs()},
          {"jobs_ended", tenant.jobs_ended()},
          {"refused", tenant.refused()},
          {"device_s", tenant.device_s()},
          {"compile_s", tenant.compile_s()},
          {"queue_wait_s", tenant.queue_wait_s()},
          {"longest_queue_wait_s", tenant.longest_queue_wait_s()}};
}

Json to_json(const v1::GpuInfo& gpu) {
  return {{"device", gpu.device()},
          {"name", gpu.name()},
          {"uuid", gpu.uuid()},
          {"planes", gpu.planes()},
          {"plane_bytes", gpu.plane_bytes()},
          {"plane_budget_bytes", gpu.plane_budget_bytes()},
          {"lost", gpu.lost()}};
}

Json to_json(const v1::GpuFault& fault) {
  Json sessions = Json::array();
  for (const v1::GpuFault::Session& session : fault.sessions()) {
    sessions.push_back({{"session", session.session()},
                        {"client", session.client()},
                        {"tenant", session.tenant()},
                        {"planes", session.planes()},
                        {"plane_bytes", session.plane_bytes()},
                        {"graphs", session.graphs()},
                        {"plane_labels", Json(session.plane_labels())},
                        {"graph_names", Json(session.graph_names())}});
  }
  Json runs = Json::array();
  for (const v1::GpuFault::Run& run : fault.runs())
    runs.push_back({{"run", run.run()}, {"name", run.name()}, {"tenant", run.tenant()}});
  return {{"device", fault.device()},
          {"gpu", fault.gpu()},
          {"why", fault.why()},
          {"at_s", fault.at_s()},
          {"worker", fault.worker()},
          {"planes", fault.planes()},
          {"plane_bytes", fault.plane_bytes()},
          {"graphs", fault.graphs()},
          {"sessions", sessions},
          {"runs", runs},
          {"graph", fault.graph()},
          {"tenant", fault.tenant()}};
}

Json to_json(const SessionInfo& session, const v1::InfoReply& info) {
  Json json = {{"endpoint", session.endpoint},
               {"transport", session.transport},
               {"version", info.version()},
               {"client_version", EAGLE_VERSION},
               {"pid", info.host().pid()},
               {"host_name", info.host().host_name()},
               {"uptime_s", info.uptime_s()},
               {"threads", info.threads()},
               {"cpu", info.cpu()},
               {"listen", Json(info.listen())},
               {"sessions", info.sessions()},
               {"planes", info.planes()},
               {"plane_bytes", info.plane_bytes()},
               {"plane_budget_bytes", info.plane_budget_bytes()},
               {"graphs", info.graphs()},
               {"launches", info.launches()},
               {"kernels_cached", info.kernels_cached()},
               {"jobs", info.jobs()},
               {"jobs_held", info.jobs_held()},
               {"worker_restarts", info.worker_restarts()},
               {"draining", info.draining()},
               {"tenant", info.tenant()},
               {"tenants", Json::array()}};
  for (const v1::TenantInfo& tenant : info.tenants()) json["tenants"].push_back(to_json(tenant));
  json["gpus"] = Json::array();
  for (const v1::GpuInfo& gpu : info.gpus()) json["gpus"].push_back(to_json(gpu));
  json["gpu_faults"] = Json::array();
  for (const v1::GpuFault& fault : info.gpu_faults()) json["gpu_faults"].push_back(to_json(fault));
  return json;
}

// The GPUs that are used, and the faults that there were; empty where there is neither.
std::string gpus_of(const v1::InfoReply& info) {
  std::string text;
  Table table(
      {{"GPU"}, {"NAME", Align::left, 32}, {"PLANES", Align::right}, {"BYTES", Align::right}, {"STATE"}});
  for (const v1::GpuInfo& gpu : info.gpus()) {
    table.add({gpu.device(), gpu.name(), count_text(gpu.planes()),
               bytes_text(gpu.plane_bytes()) + " of " + bytes_text(gpu.plane_budget_bytes()),
               gpu.lost() ? "lost" : "serves"});
  }
  if (!table.empty()) text += '\n' + table.text();
  for (const v1::GpuFault& fault : info.gpu_faults()) {
    text += "\nworker " + std::to_string(fault.worker()) + " lost " + fault.gpu() + ": " + fault.why() +
            "\n  " + plural(fault.planes(), "plane") + " of " + bytes_text(fault.plane_bytes()) + ", " +
            plural(fault.graphs(), "graph") +
            (fault.graph().empty() ? "" : "; '" + fault.graph() + "' computed there") + "\n";
    for (const v1::GpuFault::Session& session : fault.sessions()) {
      text += "  of " + session.client() + " (" + session.tenant() +
              "): " + plural(session.planes(), "plane") + ", " + plural(session.graphs(), "graph") + "\n";
    }
    for (const v1::GpuFault::Run& run : fault.runs())
      text += "  of " + run.tenant() + ": submitted run " + std::to_string(run.run()) +
              (run.name().empty() ? "" : " '" + run.name() + "'") + "\n";
  }
  return text;
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "";
  return " (" +
         std::to_string(static_cast<int>(100.0 * static_cast<double>(part) / static_cast<double>(whole))) +
         " %)";
}

std::string summary_of(const SessionInfo& session, const v1::InfoReply& info) {
  std::string listen;
  for (const std::string& endpoint : info.listen()) listen += (listen.empty() ? "" : ", ") + endpoint;
  return list_text(
      {{"endpoint", session.endpoint},
       {"transport", session.transport},
       {"version", info.version() == EAGLE_VERSION
                       ? info.version()
                       : info.version() + " (this eaglectl is " EAGLE_VERSION ")"},
       {"worker", "pid " + std::to_string(info.host().pid()) + " on " + info.host().host_name() + ", up " +
                      seconds_text(info.uptime_s()) + (info.draining() ? ", draining" : "")},
       {"restarts", count_text(info.worker_restarts())},
       {"compute", plural(static_cast<std::uint64_t>(info.threads()), "thread") + ", " + info.cpu()},
       {"listens on", listen},
       {"sessions", count_text(info.sessions())},
       {"planes", count_text(info.planes()) + ", " + bytes_text(info.plane_bytes()) + " of " +
                      bytes_text(info.plane_budget_bytes()) +
                      percent(info.plane_bytes(), info.plane_budget_bytes())},
       {"graphs", count_text(info.graphs())},
       {"launches", count_text(info.launches())},
       {"jobs in hand", count_text(info.jobs()) + ", " + count_text(info.jobs_held()) + " of them held"},
       {"kernels cached", count_text(info.kernels_cached())},
       {"your tenant", info.tenant()}});
}

std::string tenants_of(const v1::InfoReply& info) {
  Table table({{"TENANT"},
               {"WEIGHT", Align::right},
               {"PRIO", Align::right},
               {"SESSIONS", Align::right},
               {"PLANES", Align::right},
               {"ON GPUS", Align::right},
               {"GRAPHS", Align::right},
               {"JOBS", Align::right},
               {"ENDED", Align::right},
               {"REFUSED", Align::right},
               {"TEAM TIME", Align::right},
               {"COMPILING", Align::right},
               {"LONGEST WAIT", Align::right}});
  for (const v1::TenantInfo& tenant : info.tenants()) {
    std::string weight = std::to_string(tenant.weight());
    weight.erase(weight.find_last_not_of('0') + 1);
    if (weight.ends_with('.')) weight.pop_back();
    table.add({tenant.name(), weight, std::to_string(tenant.priority()), count_text(tenant.sessions()),
               bytes_text(tenant.plane_bytes()), bytes_text(tenant.gpu_bytes()), count_text(tenant.graphs()),
               count_text(tenant.jobs()), count_text(tenant.jobs_ended()), count_text(tenant.refused()),
               seconds_text(tenant.device_s()), seconds_text(tenant.compile_s()),
               seconds_text(tenant.longest_queue_wait_s())});
  }
  return table.empty() ? "no tenant has been here\n" : table.text();
}

StatusOr<Exit> info(const Options& options) {
  EAGLE_ASSIGN_OR_RETURN(const Operator caller, connect_operator(options));
  EAGLE_ASSIGN_OR_RETURN(const SessionInfo session, caller.session.info());
  v1::InfoReply reply;
  EAGLE_RETURN_IF_ERROR(caller.admin->info(reply));
  if (options.json) {
    print_json(to_json(session, reply));
  } else {
    std::cout << summary_of(session, reply) << '\n' << tenants_of(reply) << gpus_of(reply);
  }
  return Exit::well;
}

std::string short_id(std::uint64_t session) { return hex_text(session).substr(0, 8); }

Json to_json(const v1::SessionSummary& session) {
  return {{"id", short_id(session.session())},
          {"session", session.session()},
          {"client", session.client()},
          {"principal", session.principal()},
          {"tenant", session.tenant()},
          {"pid", session.pid()},
          {"transport", session.transport()},
          {"ring", session.ring()},
          {"attached", session.attached()},
          {"lease_s", session.lease_s()},
          {"age_s", session.age_s()},
          {"planes", session.planes()},
          {"plane_bytes", session.plane_bytes()},
          {"graphs", session.graphs()},
          {"jobs", session.jobs()}};
}

std::string sessions_table(const v1::ListSessionsReply& reply) {
  Table table({{"ID"},
               {"TENANT", Align::left, 24},
               {"PRINCIPAL", Align::left, 24},
               {"CLIENT", Align::left, 24},
               {"PID", Align::right},
               {"VIA"},
               {"STATE"},
               {"AGE", Align::right},
               {"PLANES", Align::right},
               {"BYTES", Align::right},
               {"GRAPHS", Align::right},
               {"JOBS", Align::right}});
  for (const v1::SessionSummary& session : reply.sessions()) {
    table.add({short_id(session.session()), session.tenant(), session.principal(), session.client(),
               session.pid() == 0 ? "-" : std::to_string(session.pid()),
               session.transport() + (session.ring() ? "+ring" : ""),
               session.attached() ? "attached" : "kept " + seconds_text(session.lease_s()),
               seconds_text(session.age_s()), count_text(session.planes()), bytes_text(session.plane_bytes()),
               count_text(session.graphs()), count_text(session.jobs())});
  }
  return table.empty() ? "no sessions\n" : table.text();
}

StatusOr<Exit> sessions(const Options& options) {
  EAGLE_ASSIGN_OR_RETURN(const Operator caller, connect_operator(options));
  v1::ListSessionsReply reply;
  EAGLE_RETURN_IF_ERROR(caller.admin->sessions(reply));
  if (options.json) {
    Json list = Json::array();
    for (const v1::SessionSummary& session : reply.sessions()) list.push_back(to_json(session));
    print_json(list);
  } else {
    std::cout << sessions_table(reply);
  }
  return Exit::well;
}

StatusOr<Exit> planes(const Options& options) {
  EAGLE_ASSIGN_OR_RETURN(const Operator caller, connect_operator(options));
  v1::ListAllPlanesReply reply;
  EAGLE_RETURN_IF_ERROR(caller.admin->planes(reply));
  if (options.json) {
    Json list = Json::array();
    for (const v1::PlaneSummary& plane : reply.planes()) {
      list.push_back({{"session", plane.session()},
                      {"plane", plane.plane().id()},
                      {"generation", plane.plane().generation()},
                      {"bytes", plane.bytes()},
                      {"label", plane.label()},
                      {"device", plane.device()},
                      {"granted", plane.granted()},
                      {"read_only", plane.read_only()},
                      {"torn", plane.torn()}});
    }
    print_json(list);
    return Exit::well;
  }
  Table table(
      {{"SESSION"}, {"PLANE", Align::right}, {"BYTES", Align::right}, {"DEVICE"}, {"STATE"}, {"LABEL"}});
  for (const v1::PlaneSummary& plane : reply.planes()) {
    std::string state = !plane.granted() ? "own" : plane.read_only() ? "granted, read only" : "granted";
    if (plane.torn()) state += ", torn";
    table.add({short_id(plane.session()), std::to_string(plane.plane().id()), bytes_text(plane.bytes()),
               plane.device(), state, plane.label()});
  }
  std::cout << (table.empty() ? "no planes\n" : table.text());
  return Exit::well;
}

StatusOr<Exit> health(const Options& options, const std::string& service) {
  const auto asked = [&]() -> StatusOr<bool> {
    auto caller = connect_operator(options);
    // A daemon that takes no new sessions is there, and not well.
    if (caller.status().reason() == Reason::shutting_down) return false;
    if (!caller.ok()) return caller.status();
    return caller->admin->serving(service);
  }();
  if (!asked.ok()) return asked.status();
  if (options.json) {
    print_json({{"service", service}, {"serving", *asked}});
  } else {
    std::cout << (*asked ? "serving\n" : "NOT serving: it takes no new work\n");
  }
  return *asked ? Exit::well : Exit::unwell;
}

// ---- top

struct TopOptions {
  bool once = false;
  double interval_s = 2;
  std::uint64_t count = 0;  // 0: until somebody ends it
};

std::string rate_text(std::uint64_t now, std::uint64_t before, double seconds) {
  if (seconds <= 0 || now < before) return "-";
  return count_text(static_cast<std::uint64_t>(static_cast<double>(now - before) / seconds)) + "/s";
}

// What one look at the daemon found.
struct Look {
  v1::InfoReply info;
  v1::ListSessionsReply sessions;
  std::chrono::steady_clock::time_point at;
};

std::string screen_of(const Look& now, const Look* before) {
  const v1::InfoReply& info = now.info;
  const double passed = before == nullptr ? 0 : std::chrono::duration<double>(now.at - before->at).count();
  std::string text = "eagled " + info.version() + " on " + info.host().host_name() + ", up " +
                     seconds_text(info.uptime_s()) + ", " +
                     plural(static_cast<std::uint64_t>(info.threads()), "thread") + "\n";
  text += plural(info.sessions(), "session") + ", " + plural(info.graphs(), "graph") + ", " +
          bytes_text(info.plane_bytes()) + " of " + bytes_text(info.plane_budget_bytes()) + " in planes" +
          percent(info.plane_bytes(), info.plane_budget_bytes()) + "\n";
  text += plural(info.jobs(), "job") + " in hand (" + count_text(info.jobs_held()) + " held), " +
          count_text(info.launches()) + " launches";
  if (before != nullptr) text += ", " + rate_text(info.launches(), before->info.launches(), passed);
  text += "\n\n";
  std::map<std::string, double> team_s;
  if (before != nullptr) {
    for (const v1::TenantInfo& tenant : before->info.tenants()) team_s[tenant.name()] = tenant.device_s();
  }
  Table tenants({{"TENANT"},
                 {"JOBS", Align::right},
                 {"TEAM", Align::right},
                 {"ENDED", Align::right},
                 {"REFUSED", Align::right},
                 {"PLANES", Align::right}});
  for (const v1::TenantInfo& tenant : info.tenants()) {
    const auto known = team_s.find(tenant.name());
    std::string share = "-";
    if (known != team_s.end() && passed > 0)
      share =
          std::to_string(static_cast<int>(100 * (tenant.device_s() - known->second) / passed + 0.5)) + " %";
    tenants.add({tenant.name(), count_text(tenant.jobs()), share, count_text(tenant.jobs_ended()),
                 count_text(tenant.refused()), bytes_text(tenant.plane_bytes())});
  }
  text += tenants.text() + "\n";
  v1::ListSessionsReply busiest = now.sessions;
  constexpr int most = 20;
  std::sort(busiest.mutable_sessions()->pointer_begin(), busiest.mutable_sessions()->pointer_end(),
            [](const v1::SessionSummary* a, const v1::SessionSummary* b) {
              return std::tuple(b->jobs(), b->plane_bytes(), a->session()) <
                     std::tuple(a->jobs(), a->plane_bytes(), b->session());
            });
  const int all = busiest.sessions_size();
  if (all > most) busiest.mutable_sessions()->DeleteSubrange(most, all - most);
  text += sessions_table(busiest);
  if (all > most) text += "and " + count_text(static_cast<std::uint64_t>(all - most)) + " more\n";
  return text;
}

StatusOr<Exit> top(const Options& options, const TopOptions& how) {
  EAGLE_ASSIGN_OR_RETURN(const Operator caller, connect_operator(options));
  const bool terminal = ::isatty(STDOUT_FILENO) != 0;
  std::unique_ptr<Look> before;
  for (std::uint64_t n = 1;; ++n) {
    auto now = std::make_unique<Look>();
    EAGLE_RETURN_IF_ERROR(caller.admin->info(now->info));
    EAGLE_RETURN_IF_ERROR(caller.admin->sessions(now->sessions));
    now->at = std::chrono::steady_clock::now();
    if (options.json) {
      Json list = Json::array();
      for (const v1::SessionSummary& session : now->sessions.sessions()) list.push_back(to_json(session));
      EAGLE_ASSIGN_OR_RETURN(const SessionInfo session, caller.session.info());
      print_json({{"info", to_json(session, now->info)}, {"sessions", std::move(list)}});
    } else {
      if (terminal && !how.once) std::cout << "\x1b[H\x1b[2J";
      std::cout << screen_of(*now, before.get());
    }
    std::cout.flush();
    if (!std::cout) return Exit::well;  // whoever read it has left
    if (how.once || n == how.count) return Exit::well;
    before = std::move(now);
    std::this_thread::sleep_for(std::chrono::duration<double>(how.interval_s));
    if (!options.json && !terminal) std::cout << '\n';
  }
}

}  // namespace

void add_daemon_commands(CLI::App& app, Chosen& chosen) {
  app.add_subcommand("info", "What the daemon is, holds and does, and who shares it")
      ->final_callback([&chosen] { chosen.command = info; });
  CLI::App* const top_command = app.add_subcommand("top", "The same, again and again, with rates");
  const auto how = std::make_shared<TopOptions>();
  top_command->add_flag("--once", how->once, "Print once, and end");
  top_command->add_option("--interval", how->interval_s, "Seconds between two looks")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str();
  top_command->add_option("--count", how->count, "End after so many looks (0: when told to)")
      ->capture_default_str();
  top_command->final_callback(
      [&chosen, how] { chosen.command = [how](const Options& options) { return top(options, *how); }; });
  app.add_subcommand("sessions", "Who is connected: tenant, process, and what it holds")
      ->final_callback([&chosen] { chosen.command = sessions; });
  CLI::App* const health_command = app.add_subcommand("health", "Whether the daemon takes work");
  const auto service = std::make_shared<std::string>();
  health_command->add_option(
      "SERVICE", *service,
      "Of it: eagled.ready, eagled.device.cpu, eagled.device.cuda:0; without one: the daemon");
  health_command->final_callback([&chosen, service] {
    chosen.command = [service](const Options& options) { return health(options, *service); };
  });
  app.add_subcommand("planes", "The arrays' memory, of every session that you may see")
      ->final_callback([&chosen] { chosen.command = planes; });
}

}  // namespace eagle::ctl
