#include "server/options.h"

#include <CLI/CLI.hpp>

#include "engine/codegen/disk_cache.h"

namespace eagle::server {

bool parse(int argc, char** argv, ProgramOptions& options, int& exit_code) {
  CLI::App app("eagled: builds graphs of kernels and runs them over memory that it shares with its clients.");
  app.set_version_flag("--version", "eagled " EAGLE_VERSION);
  app.add_option("--listen", options.listen, "Where clients find it: unix:PATH")->required();
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
  app.add_option("--owner-fd", options.owner_fd,
                 "An inherited descriptor of a process (pidfd): end when that process does")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("!--no-keeper", options.keeper,
               "One process: nothing survives its death (default: a keeper, which starts another worker)");
  app.add_flag("--worker", options.worker, "What a keeper starts; not for people")->group("");
  app.add_option("--ready-fd", options.ready_fd,
                 "An inherited descriptor that gets one line, 'ready' or 'error: ...', once that is known")
      ->check(CLI::NonNegativeNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error);
    return false;
  }
  if (options.log_level.empty()) options.log_level = options.owner_fd < 0 ? "info" : "warn";
  return true;
}

}  // namespace eagle::server
