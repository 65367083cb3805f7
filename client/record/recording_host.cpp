#include "client/record/recording_host.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "client/record/recorder.h"
#include "client/record/walk.h"
#include "client/remote_planes.h"
#include "eagle/v1/record.pb.h"
#include "eagle/v1/service.pb.h"
#include "engine/graph/address.h"
#include "engine/run/report_message.h"
#include "engine/step/result_message.h"

namespace eagle::record {
namespace {

using Clock = std::chrono::steady_clock;
using HostWrites = std::map<std::uint32_t, std::vector<plane::View>>;
using Calls = std::set<std::uint32_t>;
using HostCall = std::function<Status(std::uint32_t)>;

const std::vector<plane::View>& writes_of(const HostWrites& writes, std::uint32_t call) {
  static const std::vector<plane::View> none;
  const auto found = writes.find(call);
  return found == writes.end() ? none : found->second;
}

std::int64_t milliseconds_of(const std::optional<std::chrono::milliseconds>& timeout) {
  return timeout ? std::max<std::int64_t>(1, timeout->count()) : 0;
}

// A graph whose launches are written down.
class RecordingGraph final : public HostGraph {
public:
  RecordingGraph(std::unique_ptr<HostGraph> graph, std::shared_ptr<Recorder> recorder, std::uint64_t number,
                 Recorder::Parts parts, HostWrites writes, Calls on_gpu)
      : graph_(std::move(graph)),
        recorder_(std::move(recorder)),
        number_(number),
        parts_(std::move(parts)),
        writes_(std::move(writes)),
        on_gpu_(std::move(on_gpu)) {}
  ~RecordingGraph() override { recorder_->release(number_); }

  [[nodiscard]] std::vector<std::string> schedule() const override { return graph_->schedule(); }
  [[nodiscard]] StatusOr<std::string> picture(PictureFormat format) const override {
    return graph_->picture(format);
  }
  [[nodiscard]] StatusOr<std::string> explanation(const NodeReference& node,
                                                  const std::optional<NodeReference>& other) const override {
    return graph_->explanation(node, other);
  }

  [[nodiscard]] StatusOr<std::string> timeline() const override { return graph_->timeline(); }

  StatusOr<LaunchReport> launch(std::int64_t n, const LaunchOptions& options, const HostCall& call) override {
    const std::uint64_t request = begin(n, milliseconds_of(options.timeout), false);
    const Clock::time_point begun = Clock::now();
    auto report = graph_->launch(n, options, listened_to(request, call));
    end(request, report, begun);
    return report;
  }

  [[nodiscard]] std::int64_t brief_replays() const override { return graph_->brief_replays(); }
  [[nodiscard]] bool enqueues() const override { return graph_->enqueues(); }
  Status enqueue(std::int64_t n) override {
    enqueued_ = begin(n, 0, true);
    enqueued_at_ = Clock::now();
    Status queued = graph_->enqueue(n);
    if (!queued.ok()) end(std::exchange(enqueued_, 0), StatusOr<LaunchReport>(queued), enqueued_at_);
    return queued;
  }
  StatusOr<LaunchReport> synchronize(const LaunchOptions& options, const HostCall& call) override {
    const std::uint64_t request = std::exchange(enqueued_, 0);
    auto report = graph_->synchronize(options, listened_to(request, call));
    end(request, report, enqueued_at_);
    return report;
  }
  std::function<void()> cancel_enqueued() override { return graph_->cancel_enqueued(); }

  Status update(const std::vector<graph::ParamUpdate>& updates) override {
    const std::uint64_t request = recorder_->begin({}, false, number_, [&](v1::RecordRequest& made) {
      for (const graph::ParamUpdate& one : updates)
        graph::to_message(one, *made.mutable_update()->add_params());
      made.mutable_update();
    });
    const Clock::time_point begun = Clock::now();
    Status done = graph_->update(updates);
    recorder_->end(request, done, begun, {}, true, [](v1::RecordOutcome&) {});
    return done;
  }
  Status rebind(const v1::GraphDescription& description,
                std::span<const run::PlaneMemory> private_planes) override {
    Recorder::Parts parts = recorder_->parts_of(description.planes(), private_planes);
    const std::uint64_t request = recorder_->begin(
        parts, true, number_, [&](v1::RecordRequest& made) { *made.mutable_rebind() = description; });
    const Clock::time_point begun = Clock::now();
    Status done = graph_->rebind(description, private_planes);
    recorder_->end(request, done, begun, {}, true, [](v1::RecordOutcome&) {});
    if (done.ok()) {
      parts_ = std::move(parts);
      writes_ = host_writes(description);
    }
    return done;
  }
  [[nodiscard]] graph::ScratchLayout scratch() const override { return graph_->scratch(); }
  [[nodiscard]] run::Execution execution() const override { return graph_->execution(); }
  [[nodiscard]] bool compiled() const override { return graph_->compiled(); }
  [[nodiscard]] std::string backend() const override { return graph_->backend(); }

private:
  std::uint64_t begin(std::int64_t n, std::int64_t timeout_ms, bool enqueued) {
    return recorder_->begin(parts_, false, number_, [&](v1::RecordRequest& made) {
      made.mutable_launch()->set_count(n);
      made.mutable_launch()->set_timeout_ms(timeout_ms);
      made.mutable_launch()->set_enqueued(enqueued);
    });
  }
  HostCall listened_to(std::uint64_t request, const HostCall& call) {
    if (request == 0) return call;
    return [this, request, &call](std::uint32_t number) {
      // Also where it throws, which C++ callables may.
      Status status(Reason::host_call_failed, "the callable threw an exception");
      struct Tell {
        RecordingGraph& graph;
        std::uint64_t request;
        std::uint32_t number;
        Status& status;
        ~Tell() {
          graph.recorder_->host_call(request, number, status, false, graph.parts_,
                                     writes_of(graph.writes_, number), graph.on_gpu_.contains(number));
        }
      } const tell{*this, request, number, status};
      status = call(number);
      return status;
    };
  }
  void end(std::uint64_t request, const StatusOr<LaunchReport>& report, Clock::time_point begun) {
    recorder_->end(request, report.status(), begun, parts_, report.ok(), [&](v1::RecordOutcome& outcome) {
      if (!report.ok()) return;
      outcome.set_launches(report->launches);
      outcome.mutable_iterations()->Add(report->iterations.begin(), report->iterations.end());
      run::describe(report->counts, *outcome.mutable_counts());
    });
  }

  std::unique_ptr<HostGraph> graph_;
  std::shared_ptr<Recorder> recorder_;
  const std::uint64_t number_;
  Recorder::Parts parts_;  // changed by `rebind`, during which there is no launch
  HostWrites writes_;
  const Calls on_gpu_;
  std::uint64_t enqueued_ = 0;
  Clock::time_point enqueued_at_;
};

class RecordingHost final : public Host, public HostRuns {
public:
  RecordingHost(std::shared_ptr<Host> host, std::shared_ptr<Recorder> recorder)
      : host_(std::move(host)), recorder_(std::move(recorder)) {}
  ~RecordingHost() override { recorder_->close(); }

  [[nodiscard]] const std::string& name() const override { return host_->name(); }
  [[nodiscard]] bool remote() const override { return host_->remote(); }
  [[nodiscard]] bool closed() const override { return host_->closed(); }
  Status close() override {
    recorder_->close();
    return host_->close();
  }
  [[nodiscard]] std::string resume_token() const override { return host_->resume_token(); }
  StatusOr<SessionInfo> info() override { return host_->info(); }
  StatusOr<std::vector<GraphInfo>> graphs(GraphScope scope) override { return host_->graphs(scope); }
  StatusOr<std::string> picture(const GraphInfo& graph, PictureFormat format) override {
    return host_->picture(graph, format);
  }
  [[nodiscard]] std::optional<PlaneAddress> find(const void* address, std::uint64_t bytes) const override {
    return host_->find(address, bytes);
  }
  [[nodiscard]] bool copies() const override { return host_->copies(); }
  HostAdmin* admin() override { return host_->admin(); }

  // Zeros in any case: what is there otherwise a replay would not have.
  StatusOr<std::shared_ptr<Buffer>> allocate(std::uint64_t bytes, std::string_view label,
                                             eagle::Contents) override {
    auto buffer = host_->allocate(bytes, label, eagle::Contents::zeros);
    if (buffer.ok()) note(**buffer, true);
    return buffer;
  }
  StatusOr<std::shared_ptr<Buffer>> allocate_on(std::string_view device, std::uint64_t bytes,
                                                std::string_view label,
                                                eagle::Contents /*contents*/) override {
    // Of a plane of its own: contents are fetched plane by plane, and of what small arrays share a client
    // sees its arrays alone. Zeros, as above.
    if (host_->remote()) bytes = std::max(bytes, RemotePlanes::own_device_plane_from);
    auto buffer = host_->allocate_on(device, bytes, label, eagle::Contents::zeros);
    if (buffer.ok()) note(**buffer, true);
    return buffer;
  }
  StatusOr<std::shared_ptr<Buffer>> import_on_device(const ImportedMemory& /*memory*/,
                                                     std::string_view /*label*/) override {
    return Status(Reason::bad_value,
                  "import: memory of a GPU is not recorded; open the session without a recording");
  }
  Status accept(const v1::AcceptPlanesRequest& request) override {
    recorder_->accept(request);
    return host_->accept(request);
  }
  Status fetch_packed(const ArrayView& array, std::span<std::byte> packed,
                      const TransferProgress& progress) override {
    return host_->fetch_packed(array, packed, progress);
  }
  Status send_packed(const ArrayView& array, std::span<const std::byte> packed,
                     const TransferProgress& progress) override {
    Status sent = host_->send_packed(array, packed, progress);
    if (sent.ok()) note_stored(array, packed);
    return sent;
  }
  Status fill(const ArrayView& array, std::span<const std::byte> element) override {
    Status filled = host_->fill(array, element);
    if (!filled.ok() || !host_->copies()) return filled;
    if (const auto where = host_->find(array.data, 1)) recorder_->filled(*where, array, element);
    return filled;
  }
  StatusOr<PublishedArray> publish(const ArrayView& array, std::string_view name,
                                   const PublishOptions& options) override {
    auto published = host_->publish(array, name, options);
    if (published.ok() && published->moved) note(*published->buffer, false);
    return published;
  }
  StatusOr<PublishedArray> open_published(std::string_view name, std::string_view owner) override {
    auto opened = host_->open_published(name, owner);
    if (opened.ok()) note(*opened->buffer, false);
    return opened;
  }
  Status withdraw(std::string_view name, const WithdrawOptions& options) override {
    return host_->withdraw(name, options);
  }
  StatusOr<std::vector<SessionPlane>> planes() override { return host_->planes(); }

  StatusOr<std::unique_ptr<HostGraph>> build(const v1::GraphDescription& description,
                                             std::span<const run::PlaneMemory> private_planes) override {
    Recorder::Parts parts = recorder_->parts_of(description.planes(), private_planes);
    const std::uint64_t number = recorder_->next_graph();
    const std::uint64_t request = recorder_->begin(
        parts, true, number, [&](v1::RecordRequest& made) { *made.mutable_build() = description; });
    const Clock::time_point begun = Clock::now();
    auto built = host_->build(description, private_planes);
    recorder_->end(request, built.status(), begun, {}, true, [](v1::RecordOutcome&) {});
    if (!built.ok()) return built.status();
    return std::unique_ptr<HostGraph>(
        std::make_unique<RecordingGraph>(*std::move(built), recorder_, number, std::move(parts),
                                         host_writes(description), calls_on_gpu(description)));
  }

  StatusOr<RunResult> simulate(const v1::RunDescription& description,
                               std::span<const run::PlaneMemory> private_planes,
                               const SimulateOptions& options, const Host::HostCall& host_call) override {
    const Recorder::Parts parts = recorder_->parts_of(description.planes(), private_planes);
    const std::uint64_t request = recorder_->begin(parts, true, 0, [&](v1::RecordRequest& made) {
      *made.mutable_run()->mutable_run() = description;
      made.mutable_run()->set_timeout_ms(milliseconds_of(options.timeout));
    });
    const HostWrites writes = host_writes(description);
    const std::set<std::uint32_t> on_gpu = calls_on_gpu(description);
    const Host::HostCall listened_to = [&](std::uint32_t call) {
      step::HostAnswer answer = host_call(call);
      recorder_->host_call(request, call, answer.status, answer.stop, parts, writes_of(writes, call),
                           on_gpu.contains(call));
      return answer;
    };
    const Clock::time_point begun = Clock::now();
    auto result = host_->simulate(description, private_planes, options, listened_to);
    const bool whole =
        result.ok() && (result->status == RunStatus::finished || result->status == RunStatus::max_steps);
    recorder_->end(request, result.status(), begun, parts, whole, [&](v1::RecordOutcome& outcome) {
      if (result.ok()) step::describe(*result, *outcome.mutable_result());
    });
    return result;
  }

  HostRuns* runs() override { return host_->runs() == nullptr ? nullptr : this; }
  StatusOr<std::uint64_t> submit(const v1::SubmitRequest& request,
                                 std::span<const run::PlaneMemory> private_planes,
                                 std::vector<std::shared_ptr<const void>> keep_alive) override {
    const Recorder::Parts parts = recorder_->parts_of(request.run().planes(), private_planes);
    const std::uint64_t number = recorder_->begin(parts, true, 0, [&](v1::RecordRequest& made) {
      *made.mutable_run()->mutable_run() = request.run();
      made.mutable_run()->set_submitted(true);
    });
    const Clock::time_point begun = Clock::now();
    auto submitted = host_->runs()->submit(request, private_planes, std::move(keep_alive));
    recorder_->end(number, submitted.status(), begun, {}, false, [](v1::RecordOutcome&) {});
    recorder_->forget(parts);
    return submitted;
  }
  Status get(std::uint64_t run, v1::KeptRun& reply) override { return host_->runs()->get(run, reply); }
  Status list(v1::ListRunsReply& reply) override { return host_->runs()->list(reply); }
  Status fetch(const v1::FetchRunRequest& request,
               std::span<const run::PlaneMemory> private_planes) override {
    Status fetched = host_->runs()->fetch(request, private_planes);
    recorder_->forget_all();
    return fetched;
  }
  Status cancel(std::uint64_t run) override { return host_->runs()->cancel(run); }

private:
  void note(const Buffer& buffer, bool fresh) {
    if (const auto where = host_->find(buffer.data(), std::min<std::uint64_t>(1, buffer.bytes())))
      recorder_->holds(*where, buffer.bytes(), buffer.data(), fresh);
  }
  void note_stored(const ArrayView& array, std::span<const std::byte> packed) {
    if (!host_->copies()) return;
    if (const auto where = host_->find(array.data, 1)) recorder_->stored(*where, array, packed);
  }

  std::shared_ptr<Host> host_;
  std::shared_ptr<Recorder> recorder_;
};

// The environment's part. BAD_VALUE.
Status add_environment(RecordingOptions& options) {
  const char* const file = std::getenv("EAGLE_RECORD");
  if (file == nullptr || *file == '\0') return {};
  options.file = file;
  const char* const contents = std::getenv("EAGLE_RECORD_CONTENTS");
  options.contents = contents != nullptr && std::string_view(contents) == "1";
  const char* const most = std::getenv("EAGLE_RECORD_BYTES");
  if (most == nullptr || *most == '\0') return {};
  const std::string_view text(most);
  const auto [end, error] = std::from_chars(text.begin(), text.end(), options.most_bytes);
  if (error == std::errc() && end == text.end()) return {};
  return {Reason::bad_value,
          "recording: EAGLE_RECORD_BYTES: expected a number of bytes, found '" + std::string(text) + "'"};
}

}  // namespace

StatusOr<std::shared_ptr<Host>> recorded(std::shared_ptr<Host> host, RecordingOptions options) {
  // Its sessions may be of several processes, which know nothing of each other.
  const bool of_environment = options.file.empty();
  if (of_environment) EAGLE_RETURN_IF_ERROR(add_environment(options));
  if (options.file.empty()) return host;
  EAGLE_ASSIGN_OR_RETURN(const SessionInfo info, host->info());
  const auto fetch = [host](const ArrayView& array, std::span<std::byte> packed) {
    return host->fetch_packed(array, packed, {});
  };
  EAGLE_ASSIGN_OR_RETURN(auto recorder,
                         Recorder::create(options, info, host->copies(), fetch, of_environment));
  return std::shared_ptr<Host>(std::make_shared<RecordingHost>(std::move(host), std::move(recorder)));
}

}  // namespace eagle::record
