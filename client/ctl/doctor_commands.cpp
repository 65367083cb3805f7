// doctor: what is wrong with this host, and with the daemon on it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "client/ctl/command.h"
#include "client/ctl/json.h"
#include "client/ctl/output.h"
#include "client/doctor/daemon_checks.h"
#include "client/doctor/machine.h"
#include "engine/view/width.h"

namespace eagle::ctl {
namespace {

using doctor::Finding;
using doctor::Findings;
using doctor::Severity;

struct AskedDoctor {
  bool all = false;
  bool no_daemon = false;
  std::string python = "python3";
};

// The endpoints that a client would try, in its order.
std::vector<std::string> endpoints_of(const Options& options, const doctor::Machine& machine) {
  if (!options.endpoint.empty()) return {options.endpoint};
  if (const char* named = std::getenv("EAGLE_ENDPOINT"); named != nullptr && *named != '\0') return {named};
  return machine.endpoints;
}

Findings examine(const Options& options, const AskedDoctor& asked) {
  const doctor::Machine machine = doctor::this_machine();
  Findings all;
  const auto add = [&all](Findings found) {
    all.insert(all.end(), std::move_iterator(found.begin()), std::move_iterator(found.end()));
  };
  add(doctor::check_kernel(machine));
  add(doctor::check_limits(machine));
  add(doctor::check_memory(machine));
  add(doctor::check_cpus(machine));
  add(doctor::check_gpus(machine));
  add(doctor::check_compiler(machine));
  add(doctor::check_python(doctor::packages_of(asked.python)));
  add(doctor::check_runtime_dir(machine));
  for (const std::string& endpoint : endpoints_of(options, machine))
    add(doctor::check_endpoint(machine, endpoint));
  if (asked.no_daemon) return all;
  const auto info = [&]() -> StatusOr<SessionInfo> {
    EAGLE_ASSIGN_OR_RETURN(const Session session, connect(options));
    return session.info();
  }();
  add(doctor::check_daemon(machine, info));
  return all;
}

std::string line_of(const Finding& finding) {
  std::string head(doctor::name_of(finding.severity));
  head.resize(9, ' ');
  std::string text = head + view::escaped(finding.what) + "  [" + finding.id + "]\n";
  if (!finding.cure.empty()) text += "         -> " + view::escaped(finding.cure) + "\n";
  return text;
}

StatusOr<Exit> run_doctor(const Options& options, const AskedDoctor& asked) {
  Findings found = examine(options, asked);
  const Severity worst = doctor::worst(found);
  const auto count = [&](Severity severity) {
    return static_cast<std::uint64_t>(std::count_if(
        found.begin(), found.end(), [&](const Finding& one) { return one.severity == severity; }));
  };
  if (options.json) {
    Json list = Json::array();
    for (const Finding& one : found) {
      list.push_back({{"id", one.id},
                      {"severity", doctor::name_of(one.severity)},
                      {"what", one.what},
                      {"cure", one.cure}});
    }
    print_json({{"worst", doctor::name_of(worst)}, {"findings", std::move(list)}});
  } else {
    // The worst last, where a terminal shows it.
    for (const Severity severity : {Severity::fine, Severity::note, Severity::warning, Severity::problem}) {
      if (severity == Severity::fine && !asked.all) continue;
      for (const Finding& one : found) {
        if (one.severity == severity) std::cout << line_of(one);
      }
    }
    std::cout << plural(count(Severity::problem), "problem") << ", "
              << plural(count(Severity::warning), "warning") << ", " << plural(count(Severity::note), "note")
              << ", " << count_text(count(Severity::fine)) << " fine"
              << (asked.all ? "" : " (--all shows them)") << '\n';
  }
  return worst == Severity::problem ? Exit::unwell : Exit::well;
}

}  // namespace

void add_doctor_commands(CLI::App& app, Chosen& chosen) {
  CLI::App* const command =
      app.add_subcommand("doctor", "Finds what is wrong with this host and its daemon, and says what to do");
  const auto asked = std::make_shared<AskedDoctor>();
  command->add_flag("--all", asked->all, "Also what is as it should be");
  command->add_flag("--no-daemon", asked->no_daemon, "This host only: no daemon has to answer");
  command->add_option("--python", asked->python, "The Python interpreter whose packages are looked at")
      ->capture_default_str();
  command->final_callback([&chosen, asked] {
    chosen.command = [asked](const Options& options) { return run_doctor(options, *asked); };
  });
}

}  // namespace eagle::ctl
