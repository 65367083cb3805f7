// What a daemon does about a GPU whose driver keeps a fault: it says what was lost, and asks for another
// worker.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "eagle/v1/service.pb.h"
#include "server/daemon.h"
#include "server/log_context.h"

namespace eagle::server {
namespace {

constexpr std::size_t most_sessions = 64;
constexpr std::size_t most_runs = 64;
constexpr int most_names = 16;

// What of the session lies on that GPU, or is computed there.
v1::GpuFault::Session lost_of(Session& session, const run::cuda::DeviceInfo& gpu) {
  v1::GpuFault::Session lost;
  lost.set_session(session.id());
  lost.set_client(session.client());
  lost.set_tenant(session.tenant()->name());
  for (const auto& plane : session.planes().list()) {
    if (plane->gpu() == nullptr || plane->gpu()->unit()->info().uuid != gpu.uuid) continue;
    lost.set_planes(lost.planes() + 1);
    lost.set_plane_bytes(lost.plane_bytes() + plane->size());
    if (lost.plane_labels_size() < most_names) lost.add_plane_labels(plane->label());
  }
  for (const auto& [id, graph] : session.graphs()) {
    if (graph->gpu() != gpu.uuid) continue;
    lost.set_graphs(lost.graphs() + 1);
    const std::string& name = graph->built().graph().name;
    if (lost.graph_names_size() < most_names)
      lost.add_graph_names(name.empty() ? "graph " + std::to_string(id) : name);
  }
  return lost;
}

template <typename Labels>
std::string listed(const Labels& labels, std::uint64_t all) {
  std::string text;
  for (const std::string& label : labels)
    text += (text.empty() ? "\"" : ", \"") + std::string(loggable(label)) + "\"";
  const std::uint64_t more = all - static_cast<std::uint64_t>(labels.size());
  return more == 0 ? text : text + " and " + std::to_string(more) + " more";
}

void log_fault(const v1::GpuFault& fault) {
  spdlog::error("{}", fault.why());
  spdlog::error(
      "lost with {}: planes={} bytes={} graphs={} sessions={}; what lies in memory of the host or on other "
      "GPUs stays",
      fault.device(), fault.planes(), fault.plane_bytes(), fault.graphs(), fault.sessions_size());
  for (const v1::GpuFault::Session& session : fault.sessions()) {
    const LogScope scope({session.session()});
    spdlog::error("lost of client \"{}\": planes={} ({}) graphs={} ({})", loggable(session.client()),
                  session.planes(), listed(session.plane_labels(), session.planes()), session.graphs(),
                  listed(session.graph_names(), session.graphs()));
  }
  for (const v1::GpuFault::Run& run : fault.runs())
    spdlog::error("lost of tenant {}: submitted run {} \"{}\"", run.tenant(), run.run(),
                  loggable(run.name()));
}

}  // namespace

void Daemon::gpu_used(const run::cuda::DeviceInfo& gpu) {
  const std::lock_guard lock(gpu_watch_mutex_);
  if (gpu_watch_) gpu_watch_("cuda:" + std::to_string(gpu.ordinal), true);
}

void Daemon::look_at_gpus() {
  std::vector<GpuWatch::Question> questions;
  for (const auto& unit : gpus_->used()) {
    if (unit->device->lost()) continue;
    questions.push_back({unit->info(), [gpus = gpus_, unit] { static_cast<void>(unit->device->probe()); }});
  }
  gpu_answers_.look(std::move(questions), std::chrono::milliseconds(limits_.gpu_probe_ms),
                    limits_.gpu_silence);
}

// It may come back; until then nobody is sent there.
void Daemon::gpu_silent(const run::cuda::DeviceInfo& gpu, bool silent, std::chrono::milliseconds waited) {
  if (silent) {
    spdlog::error(
        "{}: the driver has not answered for {} ms (cuMemGetInfo); what computes there may not come back: "
        "look "
        "at nvidia-smi and the kernel's log",
        text_of(gpu), waited.count());
  } else {
    spdlog::warn("{}: the driver answers again, after {} ms", text_of(gpu), waited.count());
  }
  const std::lock_guard lock(gpu_watch_mutex_);
  if (gpu_watch_) gpu_watch_("cuda:" + std::to_string(gpu.ordinal), !silent);
}

void Daemon::gpu_lost(const run::cuda::DeviceInfo& gpu, const Status& why) {
  // Of this very moment: this may be the thread that waits for a graph there.
  const std::vector<GraphHash> computing = ledger_ ? ledger_->running() : std::vector<GraphHash>();
  // Elsewhere: whoever found out may hold locks.
  static_cast<void>(small_memory_pool_.submit(
      [this, gpu, why, computing, counted = underway_.enter()] { report_lost(gpu, why, computing); }));
}

void Daemon::report_lost(const run::cuda::DeviceInfo& gpu, const Status& why,
                         const std::vector<GraphHash>& computing) {
  const std::string device = "cuda:" + std::to_string(gpu.ordinal);
  v1::GpuFault fault;
  fault.set_device(device);
  fault.set_gpu(text_of(gpu));
  fault.set_why(why.message());
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  fault.set_at_s(std::chrono::duration_cast<std::chrono::seconds>(now).count());
  fault.set_worker(epoch_ + 1);
  std::vector<BlamedGraph> blamed;
  for (const auto& [id, session] : sessions_.by_id()) {
    v1::GpuFault::Session lost = lost_of(*session, gpu);
    if (lost.planes() + lost.graphs() == 0) continue;
    fault.set_planes(fault.planes() + lost.planes());
    fault.set_plane_bytes(fault.plane_bytes() + lost.plane_bytes());
    fault.set_graphs(fault.graphs() + lost.graphs());
    for (const auto& [number, graph] : session->graphs()) {
      const bool computed = std::find(computing.begin(), computing.end(), graph->hash()) != computing.end();
      if (graph->gpu() != gpu.uuid || !computed) continue;
      blamed.push_back({graph->hash(), session->tenant()->name(), graph->built().graph().name});
      fault.set_graph(blamed.back().graph);
      fault.set_tenant(blamed.back().tenant);
    }
    if (static_cast<std::size_t>(fault.sessions_size()) < most_sessions)
      *fault.add_sessions() = std::move(lost);
  }
  for (const KeptRuns::OnGpu& run : kept_runs_.on_gpu(gpu.uuid, most_runs)) {
    v1::GpuFault::Run& lost = *fault.add_runs();
    lost.set_run(run.id);
    lost.set_name(run.name);
    lost.set_tenant(run.tenant);
  }
  count(executor_.meters().gpu_faults);
  log_fault(fault);
  if (const Status written = gpu_faults_.add(fault); !written.ok()) spdlog::error("{}", written.to_string());
  {
    const std::lock_guard lock(gpu_watch_mutex_);
    if (gpu_watch_) gpu_watch_(device, false);
    const bool asked = replacement_.has_value();
    if (!asked) replacement_.emplace(Replacement{{}, {}, false});
    replacement_->why += (asked ? ", " : "") + device + " is lost to a fault";
    replacement_->blamed.insert(replacement_->blamed.end(), blamed.begin(), blamed.end());
  }
  if (replace_worker_) return replace_if_free();
  spdlog::error(
      "{} stays lost until this daemon is started anew: it has no keeper that would start another worker "
      "(--no-keeper)",
      device);
}

// What lies on its other GPUs would go with the worker.
void Daemon::replace_if_free() {
  {
    const std::lock_guard lock(gpu_watch_mutex_);
    if (!replacement_ || !replace_worker_) return;
  }
  const std::vector<Gpus::Use> uses = gpus_->uses();
  const auto holds = std::find_if(uses.begin(), uses.end(),
                                  [](const Gpus::Use& use) { return !use.lost && use.planes > 0; });
  const std::lock_guard lock(gpu_watch_mutex_);
  if (!replacement_ || !replace_worker_) return;
  if (holds != uses.end()) {
    if (!std::exchange(replacement_->told, true)) {
      spdlog::warn("the worker is replaced once nothing lies on its other GPUs: planes={} of {}",
                   holds->planes, text_of(holds->info));
    }
    return;
  }
  replace_worker_(replacement_->why, replacement_->blamed);
  replacement_.reset();
}

void Daemon::watch_gpus(std::function<void(const std::string& device, bool serves)> watch) {
  const std::lock_guard lock(gpu_watch_mutex_);
  gpu_watch_ = std::move(watch);
  if (!gpu_watch_) return;
  for (const Gpus::Use& use : gpus_->uses())
    gpu_watch_("cuda:" + std::to_string(use.info.ordinal), !use.lost);
}

}  // namespace eagle::server
