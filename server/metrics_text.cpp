#include "server/metrics_text.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <string_view>
#include <utility>

#include "server/daemon.h"

namespace eagle::server {
namespace {

using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;
constexpr auto relaxed = std::memory_order_relaxed;

std::string number(double value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

class Writer {
public:
  // Of one metric: then its samples.
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_ +=
        "# HELP " + name_ + " " + std::string(help) + "\n# TYPE " + name_ + " " + std::string(type) + "\n";
  }
  void sample(const Labels& labels, double value) { sample("", labels, number(value)); }
  void sample(const Labels& labels, std::uint64_t value) { sample("", labels, std::to_string(value)); }

  void single(std::string_view name, std::string_view type, std::string_view help, std::uint64_t value) {
    family(name, type, help);
    sample({}, value);
  }
  void single_real(std::string_view name, std::string_view type, std::string_view help, double value) {
    family(name, type, help);
    sample({}, value);
  }
  void histogram(std::string_view name, std::string_view help, const Durations& durations) {
    family(name, "histogram", help);
    const auto counts = durations.counts();
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      below += counts[i];
      const std::string bound = i < Durations::bounds.size() ? number(Durations::bounds[i]) : "+Inf";
      sample("_bucket", {{"le", bound}}, std::to_string(below));
    }
    sample("_sum", {}, number(durations.sum_s()));
    sample("_count", {}, std::to_string(below));
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

private:
  void sample(std::string_view suffix, const Labels& labels, std::string_view value) {
    text_ += name_;
    text_ += suffix;
    bool first = true;
    for (const auto& [label, what] : labels) {
      text_ += first ? '{' : ',';
      first = false;
      text_ += std::string(label) + "=\"" + escaped(what) + "\"";
    }
    if (!first) text_ += '}';
    text_ += ' ';
    text_ += value;
    text_ += '\n';
  }
  static std::string escaped(std::string_view value) {
    std::string out;
    for (const char c : value) {
      if (c == '\\' || c == '"') out += '\\';
      c == '\n' ? out += "\\n" : out += c;
    }
    return out;
  }

  std::string name_;
  std::string text_;
};

void write_tenants(Daemon& daemon, Writer& writer) {
  const TenantMeters& meters = daemon.sessions().tenants().meters();
  const auto all = meters.all();
  const auto by_code = [&](const char* name, const char* help, auto counters) {
    writer.family(name, "counter", help);
    for (const auto& [tenant, meter] : all) {
      for (std::size_t code = 0; code < code_count; ++code) {
        const std::uint64_t value = counters(*meter)[code].load(relaxed);
        // Success is shown from the start, so that rates have something to start from.
        if (value == 0 && code != 0) continue;
        writer.sample({{"status", name_of(static_cast<Code>(code))}, {"tenant", tenant}}, value);
      }
    }
  };
  const auto seconds = [&](const char* name, const char* help, auto counter) {
    writer.family(name, "counter", help);
    for (const auto& [tenant, meter] : all)
      writer.sample({{"tenant", tenant}}, static_cast<double>(counter(*meter).load(relaxed)) * 1e-9);
  };
  by_code(
      "eagled_launches_total", "Launches by how they ended, refusals among them.",
      [](const TenantMeter& meter) -> const auto& { return meter.launches; });
  by_code(
      "eagled_runs_total", "Stepping runs by how they ended.",
      [](const TenantMeter& meter) -> const auto& { return meter.runs; });
  seconds(
      "eagled_device_seconds_total", "Time on the team of threads.",
      [](const TenantMeter& meter) -> const auto& { return meter.device_ns; });
  seconds(
      "eagled_compile_seconds_total", "Time that builds took.",
      [](const TenantMeter& meter) -> const auto& { return meter.compile_ns; });

  writer.family("eagled_tenant_refusals_total", "counter",
                "Requests that were over a quota of their tenant.");
  for (const auto& [tenant, meter] : all) writer.sample({{"tenant", tenant}}, meter->refused.load(relaxed));

  // What is held now, by label.
  std::map<std::string, TenantReport> held;
  for (const TenantReport& report : daemon.sessions().tenants().reports()) {
    TenantReport& sum = held[meters.label_of(report.name)];
    for (std::size_t i = 0; i < held_kinds; ++i) sum.held[i] += report.held[i];
  }
  const auto now = [&](const char* name, const char* help, Held kind) {
    writer.family(name, "gauge", help);
    for (const auto& [tenant, sum] : held)
      writer.sample({{"tenant", tenant}}, sum.held[static_cast<std::size_t>(kind)]);
  };
  writer.family("eagled_plane_bytes", "gauge", "Bytes of arrays that are held.");
  for (const auto& [tenant, sum] : held) {
    writer.sample({{"device", "cpu"}, {"tenant", tenant}},
                  sum.held[static_cast<std::size_t>(Held::plane_bytes)]);
    const std::uint64_t on_gpus = sum.held[static_cast<std::size_t>(Held::gpu_bytes)];
    if (on_gpus > 0) writer.sample({{"device", "cuda"}, {"tenant", tenant}}, on_gpus);
  }
  now("eagled_sessions", "Sessions that are open.", Held::sessions);
  now("eagled_graphs", "Graphs that are built.", Held::graphs);
  now("eagled_jobs", "Launches and runs that wait, run or are at a host call.", Held::jobs);
}

void write_engine(Daemon& daemon, Writer& writer) {
  const Engine::Counters engine = daemon.engine().counters();
  const codegen::Compiler::Counters& code = engine.compiler;
  writer.single("eagled_replays_total", "counter", "Whole replays of graphs, and passes of runs.",
                engine.launches);
  writer.single("eagled_graph_builds_total", "counter", "Graphs that were built.", engine.graph_builds);
  writer.single("eagled_graph_rebinds_total", "counter", "Graphs that were put over other arrays.",
                engine.rebinds);
  writer.single("eagled_graph_updates_total", "counter", "Times that Params got new numbers.",
                engine.updates);
  writer.single("eagled_kernel_cache_hits_total", "counter", "Kernels that were found in memory.", code.hits);
  writer.single("eagled_kernel_cache_misses_total", "counter", "Kernels that were not found in memory.",
                code.misses);
  writer.single("eagled_kernel_cache_disk_hits_total", "counter",
                "Of the misses, those that were found on disk.", code.disk_hits);
  writer.single("eagled_kernel_cache_entries", "gauge", "Kernels in memory.", code.cached);
  writer.single("eagled_kernel_cache_bytes", "gauge", "Bytes of code in memory.", code.cached_bytes);
}

void write_refusals(const Meters& meters, Writer& writer) {
  writer.family("eagled_refusals_total", "counter", "Calls that were answered with an error, by its reason.");
  for (std::size_t i = 1; i < reason_count; ++i) {  // 0 is none
    const std::uint64_t value = meters.refusals[i].load(relaxed);
    // What clients meet most is shown from the start.
    const auto reason = static_cast<Reason>(i);
    if (value == 0 && reason != Reason::quota && reason != Reason::unauthenticated) continue;
    writer.sample({{"reason", info(reason).wire_name}}, value);
  }
  writer.family("eagled_authentications_total", "counter",
                "Openings of sessions by whether the caller was known; unknown secrets are refused, too.");
  writer.sample({{"outcome", "accepted"}}, meters.authentications_accepted.load(relaxed));
  writer.sample({{"outcome", "refused"}}, meters.authentications_refused.load(relaxed));
}

// 0 where the system does not say.
std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  file >> size >> resident;
  return file ? resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

void write_process(Writer& writer) {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  writer.single_real("process_cpu_seconds_total", "counter", "Processor time of the worker.",
                     seconds(used.ru_utime) + seconds(used.ru_stime));
  writer.single("process_resident_memory_bytes", "gauge",
                "Memory of the worker, arrays that it has touched among it.", resident_bytes());
  std::error_code none;
  std::uint64_t descriptors = 0;
  for (auto entry = std::filesystem::directory_iterator("/proc/self/fd", none);
       entry != std::filesystem::directory_iterator(); entry.increment(none)) {
    ++descriptors;
  }
  writer.single("process_open_fds", "gauge", "Descriptors that the worker has open.", descriptors);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  writer.single("process_max_fds", "gauge", "Descriptors that it may have.", limit.rlim_cur);
}

}  // namespace

std::string metrics_text(Daemon& daemon) {
  Writer writer;
  const DaemonInfo info = daemon.info();
  Meters& meters = daemon.executor().meters();
  writer.family("eagled_build_info", "gauge", "1; the labels say what runs.");
  writer.sample({{"version", info.version}, {"cpu", info.cpu}}, std::uint64_t{1});
  writer.single("eagled_worker_restarts_total", "counter", "Workers that died and were replaced.",
                info.restarts);
  writer.single_real("eagled_uptime_seconds", "gauge", "Since the worker started.", info.uptime_s);
  writer.single("eagled_draining", "gauge", "1 while the daemon takes no new work.", daemon.drains() ? 1 : 0);
  writer.single("eagled_threads", "gauge", "Threads of the team.", static_cast<std::uint64_t>(info.threads));
  writer.single("eagled_planes", "gauge", "Arrays that are held.", info.planes);
  writer.single("eagled_plane_budget_bytes", "gauge", "Bytes that all arrays may take.",
                info.plane_budget_bytes);
  const std::vector<Gpus::Use> gpus = daemon.gpus().uses();
  const auto by_gpu = [&](const char* name, const char* help, auto value) {
    if (gpus.empty()) return;
    writer.family(name, "gauge", help);
    for (const Gpus::Use& use : gpus) {
      writer.sample({{"device", "cuda:" + std::to_string(use.info.ordinal)}, {"uuid", use.info.uuid}},
                    value(use));
    }
  };
  by_gpu("eagled_gpu_plane_bytes", "Bytes of a GPU that arrays take.",
         [](const Gpus::Use& use) { return use.plane_bytes; });
  by_gpu("eagled_gpu_plane_budget_bytes", "Bytes of a GPU that arrays may take.",
         [](const Gpus::Use& use) { return use.budget_bytes; });
  writer.single("eagled_queue_depth", "gauge", "Launches and runs in hand.", info.jobs);
  writer.single("eagled_queue_held", "gauge",
                "Of these, those that wait for an earlier one over the same bytes.", info.jobs_held);
  writer.single("eagled_calls_under_way", "gauge",
                "Builds, runs before their first turn, transfers and requests for memory.",
                daemon.underway().count());
  writer.histogram("eagled_queue_wait_seconds", "From admission to the first turn on the team.",
                   meters.queue_wait);
  writer.histogram("eagled_launch_duration_seconds", "From a launch's first turn to its end.",
                   meters.launch_duration);
  writer.histogram("eagled_run_duration_seconds", "From a run's first turn to its end.", meters.run_duration);
  writer.histogram("eagled_build_duration_seconds", "Building of graphs, compiling included.",
                   meters.build_duration);
  writer.single("eagled_ring_launches_total", "counter", "Launches that came through shared memory.",
                meters.ring_launches.load(relaxed));
  writer.single("eagled_host_calls_total", "counter", "Calls of clients' own functions.",
                meters.host_calls.load(relaxed));
  writer.single("eagled_gpu_faults_total", "counter", "GPUs that this worker lost to a fault.",
                meters.gpu_faults.load(relaxed));
  writer.single("eagled_drain_cancelled_total", "counter", "Launches and runs that a drain cut short.",
                meters.drain_cancelled.load(relaxed));
  write_refusals(meters, writer);
  write_tenants(daemon, writer);
  write_engine(daemon, writer);
  write_process(writer);
  return writer.take();
}

}  // namespace eagle::server
