#include "server/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <iostream>

#include "cli/documents.h"
#include "engine/base/nearest.h"
#include "engine/codegen/disk_cache.h"
#include "server/access.h"
#include "server/config_file.h"
#include "server/gpus.h"
#include "server/handed_text.h"
#include "server/worker_descriptors.h"

namespace eagle::server {
namespace {

constexpr const char* config_key = "--config";

// Flags and the keys that they stand for.
struct Setting {
  const char* flag;
  const char* key;
};
constexpr std::array<Setting, 19> settings{{
    {"--listen", "listen"},
    {"--threads", "threads"},
    {"--plane-budget", "plane_budget"},
    {"--devices", "devices"},
    {"--device-budget", "device_budget"},
    {"--drain-timeout", "drain_timeout"},
    {"--compile-timeout", "compile_timeout"},
    {"--cache-dir", "cache_dir"},
    {"--log-level", "log_level"},
    {"--log-format", "log_format"},
    {"--metrics", "metrics"},
    {"--web", "web"},
    {"--admins", "admins"},
    {"--tls-cert", "tls.certificate"},
    {"--tls-key", "tls.key"},
    {"--tls-client-ca", "tls.client_ca"},
    {"--tokens", "tokens.file"},
    {"--insecure-i-know", "insecure_i_know"},
    {"--config", "config"},
}};

std::string variable_of(std::string flag) {
  std::string name = "EAGLED_" + flag.erase(0, 2);
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  return name;
}

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
  app.add_option("--devices", options.devices,
                 "GPUs that it may use: \"auto\" (all), \"none\", or UUIDs as GPU-5f1e...,GPU-77ab...")
      ->capture_default_str();
  app.add_option(
         "--device-budget", options.device_budget_bytes,
         "Bytes that the arrays of all clients may take on each GPU (0: three quarters of what it has)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 60));
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
      ->default_str("$EAGLE_CACHE_DIR, else $XDG_CACHE_HOME/eagle, else ~/.cache/eagle");
  app.add_option("--log-level", options.log_level,
                 "How much it says on stderr (default info; warn with --owner-fd)")
      ->check(CLI::IsMember(log_levels()));
  app.add_option("--log-format", options.log_format, "\"text\", or \"json\": an object a line")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_option("--metrics", options.metrics,
                 "HOST:PORT where Prometheus finds metrics over HTTP, as 127.0.0.1:7412 (\"\": nowhere)");
  app.add_option("--web", options.web,
                 "HOST:PORT of the dashboard, for admins, as 127.0.0.1:7413 (\"\": nowhere)");
  app.add_option("--admins", options.admins,
                 "Principals who may use Admin, as uid:0,token:ops (default: root and the daemon's own user)")
      ->delimiter(',');
  app.add_option("--tls-cert", options.tls.certificate,
                 "PEM file: the certificate of TCP listeners, with its chain");
  app.add_option("--tls-key", options.tls.key, "PEM file: the private key of --tls-cert");
  app.add_option("--tls-client-ca", options.tls.client_ca,
                 "PEM file: the CA of client certificates, which TCP clients then need");
  app.add_option("--tokens", options.tokens,
                 "File of the digests of tokens that clients may show (--new-token)");
  app.add_flag("--insecure-i-know", options.insecure_i_know,
               "Listen for other machines also without TLS or authentication; warns each minute");
  for (const Setting& setting : settings) {
    if (setting.flag != std::string_view(config_key))
      app.get_option(setting.flag)->envname(variable_of(setting.flag));
  }
}

void add_commands(CLI::App& app, ProgramOptions& options) {
  app.add_option(config_key, options.config,
                 "TOML file with the same settings; flags and EAGLED_* win over it")
      ->envname(variable_of(config_key));
  app.add_flag("--check-config", options.check_config, "Say whether the configuration is good, and end");
  app.add_flag("--check-state", options.check_state,
               "Say whether this program can go on with a daemon's state (descriptors 3 to 5), and end; a "
               "daemon that is to be exchanged (SIGUSR2) asks it");
  app.add_flag("--print-config", options.print_config, "Print the configuration as it would hold, and end");
  app.add_option(
         "--health", options.health,
         "Ask the daemon that runs how this service is (\"\": the daemon, eagled.ready, "
         "eagled.device.cpu), and end: status 0 where it serves. `eagled health [SERVICE]` is the same")
      ->expected(0, 1);
  app.add_option("--new-token", options.new_token,
                 "Make a token for this subject, print it with its line, and end");
  app.add_option("--document", options.document, "Print the man page or a shell's completion, and end")
      ->check(CLI::IsMember({"man", "bash", "zsh", "fish"}))
      ->group("");
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

namespace {

bool on_command_line(const std::vector<std::string>& arguments, const std::string& flag) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [&](const std::string& word) { return word == flag || word.starts_with(flag + "="); });
}

// What all of them say together. Throws CLI::ParseError for the command line and the environment.
// `text`: the file's, where it is not to be read.
Status read(CLI::App& app, const std::vector<std::string>& arguments, std::optional<std::string> text,
            ProgramOptions& options) {
  std::vector<std::string> listen;
  add_settings(app, options, listen);
  add_commands(app, options);
  std::vector<std::string> backwards(arguments.rbegin(), arguments.rend());  // as CLI11 takes them
  app.parse(backwards);
  if (!options.document.empty()) return {};
  for (const std::string& endpoint : listen) options.listen.push_back({endpoint, {}});
  options.ask_health = given(app, "--health");
  for (const auto& [flag, key] : settings) {
    if (!given(app, flag)) continue;
    options.origins[key] =
        on_command_line(arguments, flag) ? std::string("flag ") + flag : "environment " + variable_of(flag);
  }
  EAGLE_RETURN_IF_ERROR(check_environment(environ));
  if (!options.config.empty()) {
    if (!text && options.worker) {
      EAGLE_ASSIGN_OR_RETURN(text, handed(worker_config_fd, most_config_bytes));
    } else if (!text) {
      EAGLE_ASSIGN_OR_RETURN(text, config_file_text(options.config));
    }
    EAGLE_RETURN_IF_ERROR(read_config(
        *text, options.config, [&app](const std::string& flag) { return given(app, flag); }, options));
    options.config_text = *std::move(text);
  }
  EAGLE_RETURN_IF_ERROR(chosen_devices(options.devices).status());
  if (options.new_token.empty()) EAGLE_RETURN_IF_ERROR(check_listeners(options));
  if (options.log_level.empty()) options.log_level = options.owner_fd < 0 ? "info" : "warn";
  options.arguments = arguments;
  return {};
}

constexpr const char* what_it_is =
    "eagled: builds graphs of kernels and runs them over memory that it shares with its clients.";

const cli::About about = {
    "eagled", 8, "the daemon that builds graphs of kernels and runs them",
    "0 after an orderly end, and where what was asked for is as it should be; 1 where it could not serve, or "
    "--health found that it does not; 2 where the command line or the configuration is wrong.",
    "eaglectl(1); docs/manual/operations.md in the source tree"};

}  // namespace

const std::vector<std::string>& log_levels() {
  static const std::vector<std::string> levels = {"trace", "debug", "info", "warn", "error", "off"};
  return levels;
}

bool parse(int argc, char** argv, ProgramOptions& options, int& exit_code) {
  CLI::App app(what_it_is);
  app.set_version_flag("--version", "eagled " EAGLE_VERSION);
  Status status;
  try {
    std::vector<std::string> words(argv + 1, argv + argc);
    if (!words.empty() && words.front() == "health")
      words.front() = "--health";  // a command to whoever types it
    status = read(app, words, std::nullopt, options);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error);
    return false;
  }
  if (status.ok() && !options.document.empty()) {
    const auto text = cli::document(app, about, options.document);
    status = text.status();
    if (text.ok()) {
      std::cout << *text;
      exit_code = 0;
      return false;
    }
  }
  if (status.ok()) return true;
  std::cerr << "eagled: " << status.message() << '\n';
  exit_code = 2;
  return false;
}

Status check_environment(const char* const* environment) {
  constexpr std::string_view prefix = "EAGLED_";
  // Read elsewhere: engine/codegen and engine/run; fault_point.h.
  std::vector<std::string> known = {"EAGLED_CPU_TARGET", "EAGLED_FUSION",  "EAGLED_INTERLEAVE",
                                    "EAGLED_STREAMING",  "EAGLED_FAULT",   "EAGLED_HEARTBEAT_MS",
                                    "EAGLED_WITHOUT",    "EAGLED_STATE_FD"};
  for (const Setting& setting : settings) known.push_back(variable_of(setting.flag));
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::string name(entry.substr(0, entry.find('=')));
    if (!name.starts_with(prefix) || std::find(known.begin(), known.end(), name) != known.end()) continue;
    return {Reason::bad_value, "environment: there is no setting " + name.substr(0, 64) +
                                   "; the nearest is " + *nearest(name, known)};
  }
  return {};
}

StatusOr<ProgramOptions> parse_again(const ProgramOptions& options, const std::optional<std::string>& text) {
  CLI::App app(what_it_is);
  ProgramOptions fresh;
  try {
    EAGLE_RETURN_IF_ERROR(read(app, options.arguments, text, fresh));
  } catch (const CLI::ParseError& error) {
    return Status(Reason::bad_value, error.what());
  }
  return fresh;
}

}  // namespace eagle::server
