#include "server/options.h"

#include <toml++/toml.h>
#include <CLI/CLI.hpp>
#include <iostream>

#include "engine/codegen/disk_cache.h"
#include "server/access.h"
#include "server/config_file.h"

namespace eagle::server {
namespace {

constexpr const char* config_key = "--config";

// Flags that stand for keys of the file, in its order. A flag that was given, there or in the environment,
// wins.
void add_settings(CLI::App& app, ProgramOptions& options, std::vector<std::string>& listen) {
  app.add_option("--listen", listen,
                 "Where clients find it: unix:PATH or dns:HOST:PORT; may be given several times");
  app.add_option("--threads", options.threads, "Threads of the team (0: what the machine and cgroup allow)")
      ->check(CLI::Range(0, 1024));
  app.add_option(
         "--plane-budget", options.plane_budget_bytes,
         "Bytes that the arrays of all clients may take, as 512M or 64G (0: three quarters of what the "
         "machine and cgroup allow)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 60));  // no more than an exbibyte, nor -1
  app.add_option("--drain-timeout", options.drain_timeout_s,
                 "Seconds that running work gets at the end before it is cancelled")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
  app.add_option("--compile-timeout", options.compile_timeout_s,
                 "Seconds after which the compiling of one kernel is given up")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  options.cache_directory = codegen::DiskCache::default_directory();
  app.add_option("--cache-dir", options.cache_directory,
                 "Folder that keeps compiled kernels between runs, this user's alone (\"\": none)")
      ->capture_default_str();
  app.add_option("--log-level", options.log_level,
                 "How much it says on stderr (default info; warn with --owner-fd)")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}));
  app.add_option("--tls-cert", options.tls.certificate,
                 "PEM file: the certificate of TCP listeners, with its chain");
  app.add_option("--tls-key", options.tls.key, "PEM file: the private key of --tls-cert");
  app.add_option("--tls-client-ca", options.tls.client_ca,
                 "PEM file: the CA of client certificates, which TCP clients then need");
  app.add_option("--tokens", options.tokens,
                 "File of the digests of tokens that clients may show (--new-token)");
  app.add_flag("--insecure-i-know", options.insecure_i_know,
               "Listen for other machines also without TLS or authentication; warns each minute");
  for (CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty() || option->get_lnames().front() == "help") continue;
    std::string name = "EAGLED_" + option->get_lnames().front();
    std::transform(name.begin(), name.end(), name.begin(), [](char c) {
      return c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    });
    if (name != "EAGLED_VERSION") option->envname(name);
  }
}

void add_commands(CLI::App& app, ProgramOptions& options) {
  app.add_option(config_key, options.config,
                 "TOML file with the same settings; flags and EAGLED_* win over it")
      ->envname("EAGLED_CONFIG");
  app.add_flag("--check-config", options.check_config, "Say whether the configuration is good, and end");
  app.add_flag("--print-config", options.print_config, "Print the configuration as it would hold, and end");
  app.add_option("--new-token", options.new_token,
                 "Make a token for this subject, print it with its line, and end");
  app.add_option("--owner-fd", options.owner_fd,
                 "An inherited descriptor of a process (pidfd): end when that process does")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("!--no-keeper", options.keeper,
               "One process: nothing survives its death (default: a keeper, which starts another worker)");
  app.add_flag("--worker", options.worker, "What a keeper starts; not for people")->group("");
  // For tests, on machines that start workers slowly.
  app.add_option("--crash-window", options.crash_window_s)->check(CLI::Range(1, 86400))->group("");
  app.add_option(
         "--ready-fd", options.ready_fd,
         "An inherited descriptor that gets one line, 'ready' (and the TCP endpoints) or 'error: ...', once "
         "that is known")
      ->check(CLI::NonNegativeNumber);
}

// Whether the command line or the environment has said so.
bool given(const CLI::App& app, const std::string& flag) { return app.get_option(flag)->count() > 0; }

Status check_listeners(const ProgramOptions& options) {
  if (options.listen.empty()) {
    return {Reason::bad_value,
            "--listen is required: unix:PATH, or dns:HOST:PORT, or [[listen]] in --config"};
  }
  int unix_sockets = 0;
  for (const ListenOptions& listener : options.listen) {
    if (!listener.identity.empty() && !identity_named(listener.identity)) {
      return {Reason::bad_value, "listener '" + listener.endpoint +
                                     "': identity: expected uid, certificate, token or anonymous, found '" +
                                     listener.identity + "'"};
    }
    unix_sockets += listener.endpoint.starts_with("dns:") ? 0 : 1;
  }
  if (unix_sockets <= 1) return {};
  return {Reason::bad_value, "--listen: expected one unix socket at most, found " +
                                 std::to_string(unix_sockets) + "; use symbolic links for more names of it"};
}

}  // namespace

std::string ProgramOptions::unix_endpoint() const {
  for (const ListenOptions& listener : listen) {
    if (!listener.endpoint.starts_with("dns:")) return listener.endpoint;
  }
  return {};
}

bool parse(int argc, char** argv, ProgramOptions& options, int& exit_code) {
  CLI::App app("eagled: builds graphs of kernels and runs them over memory that it shares with its clients.");
  app.set_version_flag("--version", "eagled " EAGLE_VERSION);
  std::vector<std::string> listen;
  add_settings(app, options, listen);
  add_commands(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error);
    return false;
  }
  for (const std::string& endpoint : listen) options.listen.push_back({endpoint, {}});
  Status status;
  if (!options.config.empty()) {
    status = read_config_file(
        options.config, [&app](const std::string& flag) { return given(app, flag); }, options);
  }
  if (status.ok() && options.new_token.empty()) status = check_listeners(options);
  if (!status.ok()) {
    std::cerr << "eagled: " << status.message() << '\n';
    exit_code = 2;
    return false;
  }
  if (options.log_level.empty()) options.log_level = options.owner_fd < 0 ? "info" : "warn";
  return true;
}

std::string to_toml(const ProgramOptions& options) {
  toml::array listeners;
  for (const ListenOptions& listener : options.listen) {
    toml::table one{{"endpoint", listener.endpoint}};
    if (!listener.identity.empty()) one.insert("identity", listener.identity);
    listeners.push_back(std::move(one));
  }
  toml::table table{
      {"threads", options.threads},
      {"plane_budget", static_cast<std::int64_t>(options.plane_budget_bytes)},
      {"drain_timeout", options.drain_timeout_s},
      {"compile_timeout", options.compile_timeout_s},
      {"cache_dir", options.cache_directory},
      {"log_level", options.log_level},
      {"insecure_i_know", options.insecure_i_know},
      {"listen", std::move(listeners)},
  };
  if (options.tls.used()) {
    table.insert("tls", toml::table{{"certificate", options.tls.certificate},
                                    {"key", options.tls.key},
                                    {"client_ca", options.tls.client_ca}});
  }
  toml::array tenants;
  for (const auto& [principal, policy] : options.tenants) {
    const auto quota = [&](Held kind) {
      return static_cast<std::int64_t>(policy.quotas[static_cast<std::size_t>(kind)]);
    };
    tenants.push_back(toml::table{{"principal", principal},
                                  {"weight", policy.weight},
                                  {"priority", policy.priority},
                                  {"sessions", quota(Held::sessions)},
                                  {"plane_bytes", quota(Held::plane_bytes)},
                                  {"graphs", quota(Held::graphs)},
                                  {"jobs", quota(Held::jobs)},
                                  {"compile_seconds", policy.compile_seconds},
                                  {"device_share", policy.device_share}});
  }
  if (!tenants.empty()) table.insert("tenant", std::move(tenants));
  if (!options.tokens.empty()) table.insert("tokens", toml::table{{"file", options.tokens}});
  std::ostringstream text;
  text << table << '\n';
  return text.str();
}

}  // namespace eagle::server
