#include "client/ctl/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "client/ctl/documents.h"
#include "engine/base/nearest.h"
#include "engine/view/width.h"

namespace eagle::ctl {
namespace {

constexpr const char* footer =
    "Exit status: 0 done and well; 1 the daemon said no or is not there, or a file cannot be used; 2 the "
    "command "
    "line is wrong; 3 what was looked at is not as it should be (doctor, health, verify, replay).";

void describe_options(CLI::App& app, Options& options) {
  app.add_option(
      "--endpoint", options.endpoint,
      "Where the daemon listens, unix:PATH or dns:HOST:PORT (default: EAGLE_ENDPOINT, then the usual "
      "sockets)");
  app.add_flag("--json", options.json, "One line of JSON instead of tables");
  app.add_option("--timeout", options.timeout_s, "Seconds for connecting, and for each short call")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  app.add_option("--tls-ca", options.tls_ca,
                 "PEM file: whom the daemon's certificate must come from, over TCP");
  app.add_option("--tls-cert", options.tls_cert,
                 "PEM file: the certificate to show, where the daemon asks for one");
  app.add_option("--tls-key", options.tls_key, "PEM file: the private key of --tls-cert");
  app.add_option("--tls-server-name", options.tls_server_name,
                 "The name in the daemon's certificate, where it is not the endpoint's host");
  app.add_option("--token-file", options.token_file,
                 "File with the token to show, where the daemon asks for one");
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const command :
       app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); }))
    names.push_back(command->get_name());
  return names;
}

const CLI::App* command_of(const CLI::App& app, const std::string& name) {
  const auto found = app.get_subcommands([&](const CLI::App* one) { return one->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

void add_option_names(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::Option* const option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const CLI::App* const group :
       app.get_subcommands([](const CLI::App* one) { return one->get_name().empty(); }))
    add_option_names(*group, names);
}

std::string there_is_no(const std::string& what, const std::string& word,
                        const std::vector<std::string>& known) {
  const std::string* const near = nearest(word, known);
  return "there is no " + what + " '" + view::cut(view::escaped(word), 60) + "'" +
         (near == nullptr ? "" : "; the nearest is '" + *near + "'");
}

// The value of `--name value` is a word of its own.
bool takes_value(const CLI::App& app, const std::string& word) {
  const CLI::Option* const option = app.get_option_no_throw(word);
  return option != nullptr && option->get_type_size() > 0 && option->get_expected_max() > 0;
}

}  // namespace

void describe(CLI::App& app, Options& options, Chosen& chosen) {
  app.name("eaglectl");
  app.description("Looks at a running eagled, checks this host, and acts on both.");
  app.footer(footer);
  app.set_version_flag("--version", EAGLE_VERSION);
  app.require_subcommand(0, 1);
  app.fallthrough();
  describe_options(app, options);
  add_daemon_commands(app, chosen);
  add_graph_commands(app, chosen);
  add_kernel_commands(app, chosen);
  add_operate_commands(app, chosen);
  add_doctor_commands(app, chosen);
  add_replay_commands(app, chosen);
  add_check_commands(app, chosen);
  add_document_commands(app, chosen);
}

std::string unknown_word(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = nullptr;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") break;
    if (word.starts_with("--")) {
      const std::string name = word.substr(0, word.find('='));
      const bool known = app.get_option_no_throw(name) != nullptr ||
                         (command != nullptr && command->get_option_no_throw(name) != nullptr);
      if (!known) {
        std::vector<std::string> names;
        add_option_names(app, names);
        if (command != nullptr) add_option_names(*command, names);
        return there_is_no("option", name, names);
      }
      const CLI::App& owner = app.get_option_no_throw(name) != nullptr ? app : *command;
      if (word.find('=') == std::string::npos && takes_value(owner, name)) ++i;
    } else if (!word.starts_with('-') && command == nullptr) {
      const CLI::App* const found = command_of(app, word);
      if (found == nullptr) return there_is_no("command", word, command_names(app));
      command = found;
    }
  }
  return {};
}

int run(int argc, char** argv) {
  CLI::App app;
  Options options;
  Chosen chosen;
  describe(app, options, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    const std::string unknown = unknown_word(app, {argv + 1, argv + argc});
    if (unknown.empty()) {
      app.exit(error);
    } else {
      std::cerr << "eaglectl: " << unknown << " (eaglectl --help lists them)\n";
    }
    return static_cast<int>(Exit::usage);
  }
  if (!chosen.command) {
    std::cerr << app.help();
    return static_cast<int>(Exit::usage);
  }
  const StatusOr<Exit> done = chosen.command(options);
  if (done.ok()) return static_cast<int>(*done);
  std::cout.flush();
  std::cerr << "eaglectl: " << done.status().message() << '\n';
  return static_cast<int>(Exit::refused);
}

}  // namespace eagle::ctl
