#include "tests/conformance/tcp_host.h"

#include <google/protobuf/message.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "client/host.h"
#include "eagle/v1/graph.pb.h"
#include "eagle/v1/run.pb.h"

namespace eagle::conformance {
namespace {

// Where the views of a description begin: the plane's index, and the byte in it.
using Begins = std::vector<std::pair<std::uint32_t, std::uint64_t>>;
void add_begins(const google::protobuf::Message& message, Begins& found) {
  if (message.GetDescriptor() == v1::View::descriptor()) {
    const auto& view = static_cast<const v1::View&>(message);
    found.emplace_back(view.plane(), static_cast<std::uint64_t>(view.offset()));
    return;
  }
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  reflection.ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      add_begins(reflection.GetMessage(message, field), found);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i)
      add_begins(reflection.GetRepeatedMessage(message, field, i), found);
  }
}

// The arrays that there are, by their planes: over TCP each has its own, on a GPU small ones share one.
class Arrays {
public:
  explicit Arrays(std::shared_ptr<Host> host) : host_(std::move(host)) {}

  void add(const std::shared_ptr<Buffer>& buffer) {
    const auto address = host_->find(buffer->data(), 0);
    const std::scoped_lock lock(mutex_);
    if (address) buffers_[address->plane.id][address->offset] = buffer;
  }

  template <typename Description>
  Status send(const Description& description) {
    return each(description, [this](const ArrayView& view, std::span<std::byte> bytes) {
      return host_->send_packed(view, bytes, {});
    });
  }
  template <typename Description>
  Status fetch(const Description& description) {
    return each(description, [this](const ArrayView& view, std::span<std::byte> bytes) {
      return host_->fetch_packed(view, bytes, {});
    });
  }

private:
  template <typename Description, typename Move>
  Status each(const Description& description, const Move& move) {
    Begins begins;
    add_begins(description, begins);
    for (int i = 0; i < description.planes_size(); ++i) {
      if (!description.planes(i).has_plane()) continue;
      for (const auto& [offset, buffer] : of_plane(description.planes(i).plane().id())) {
        // What nobody touches here somebody else may, meanwhile.
        const auto touches = [&, first = offset, bytes = buffer->bytes()](const auto& begin) {
          return begin.first == static_cast<std::uint32_t>(i) && begin.second - first < bytes;
        };
        if (!begins.empty() && std::none_of(begins.begin(), begins.end(), touches)) continue;
        const auto count = static_cast<std::int64_t>(buffer->bytes());
        const ArrayView whole{buffer->data(), DType::other, 1, {count}, {1}, false, nullptr};
        EAGLE_RETURN_IF_ERROR(move(whole, {buffer->data(), buffer->bytes()}));
      }
    }
    return {};
  }
  std::vector<std::pair<std::uint64_t, std::shared_ptr<Buffer>>> of_plane(std::uint64_t plane) {
    const std::scoped_lock lock(mutex_);
    std::vector<std::pair<std::uint64_t, std::shared_ptr<Buffer>>> found;
    for (const auto& [offset, known] : buffers_[plane]) {
      if (auto buffer = known.lock()) found.emplace_back(offset, std::move(buffer));
    }
    return found;
  }

  const std::shared_ptr<Host> host_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::map<std::uint64_t, std::weak_ptr<Buffer>>>
      buffers_;  // by plane and first byte
};

class MirroredGraph final : public HostGraph {
public:
  MirroredGraph(std::unique_ptr<HostGraph> graph, std::shared_ptr<Arrays> arrays,
                v1::GraphDescription description)
      : graph_(std::move(graph)), arrays_(std::move(arrays)), description_(std::move(description)) {}

  std::vector<std::string> schedule() const override { return graph_->schedule(); }
  StatusOr<std::string> picture(PictureFormat format) const override { return graph_->picture(format); }
  StatusOr<std::string> explanation(const NodeReference& node,
                                    const std::optional<NodeReference>& other) const override {
    return graph_->explanation(node, other);
  }
  StatusOr<LaunchReport> launch(std::int64_t n, const LaunchOptions& options,
                                const std::function<Status(std::uint32_t)>& host_call) override {
    EAGLE_RETURN_IF_ERROR(sent());
    return fetched(graph_->launch(n, options, host_call));
  }
  std::int64_t brief_replays() const override { return graph_->brief_replays(); }
  bool enqueues() const override { return graph_->enqueues(); }
  Status enqueue(std::int64_t n) override {
    EAGLE_RETURN_IF_ERROR(sent());
    return graph_->enqueue(n);
  }
  StatusOr<LaunchReport> synchronize(const LaunchOptions& options,
                                     const std::function<Status(std::uint32_t)>& host_call) override {
    return fetched(graph_->synchronize(options, host_call));
  }
  std::function<void()> cancel_enqueued() override { return graph_->cancel_enqueued(); }
  Status update(const std::vector<graph::ParamUpdate>& updates) override { return graph_->update(updates); }
  Status rebind(const v1::GraphDescription& description, std::span<const run::PlaneMemory> planes) override {
    EAGLE_RETURN_IF_ERROR(graph_->rebind(description, planes));
    description_ = description;
    return {};
  }
  graph::ScratchLayout scratch() const override { return graph_->scratch(); }
  bool compiled() const override { return graph_->compiled(); }
  std::string backend() const override { return graph_->backend(); }
  run::Execution execution() const override { return graph_->execution(); }

private:
  // A session that was closed says so when it is used, in its own words.
  Status sent() {
    const Status status = arrays_->send(description_);
    return status.reason() == Reason::session_closed || status.reason() == Reason::session_forked ? Status()
                                                                                                  : status;
  }
  StatusOr<LaunchReport> fetched(StatusOr<LaunchReport> report) {
    const Status status = arrays_->fetch(description_);
    if (report.ok() && !status.ok()) return status;
    return report;
  }

  std::unique_ptr<HostGraph> graph_;
  std::shared_ptr<Arrays> arrays_;
  v1::GraphDescription description_;
};

class MirroredHost final : public Host, public HostRuns {
public:
  MirroredHost(std::shared_ptr<Host> host, std::string device)
      : host_(std::move(host)), device_(std::move(device)), arrays_(std::make_shared<Arrays>(host_)) {}

  const std::string& name() const override { return host_->name(); }
  bool remote() const override { return host_->remote(); }
  bool closed() const override { return host_->closed(); }
  Status close() override { return host_->close(); }
  StatusOr<SessionInfo> info() override { return host_->info(); }
  StatusOr<std::vector<GraphInfo>> graphs(GraphScope scope) override { return host_->graphs(scope); }
  StatusOr<std::string> picture(const GraphInfo& graph, PictureFormat format) override {
    return host_->picture(graph, format);
  }
  StatusOr<std::shared_ptr<Buffer>> allocate(std::uint64_t bytes, std::string_view label,
                                             Contents contents) override {
    auto buffer = device_.empty() ? host_->allocate(bytes, label, contents)
                                  : host_->allocate_on(device_, bytes, label, contents);
    if (!buffer.ok()) return buffer;
    // On a GPU it may be where another array was, whose values are still here.
    if (contents == Contents::zeros) std::memset((*buffer)->data(), 0, (*buffer)->bytes());
    arrays_->add(*buffer);
    return buffer;
  }
  StatusOr<std::shared_ptr<Buffer>> allocate_on(std::string_view device, std::uint64_t bytes,
                                                std::string_view label, Contents contents) override {
    return host_->allocate_on(device, bytes, label, contents);
  }
  std::optional<PlaneAddress> find(const void* address, std::uint64_t bytes) const override {
    return host_->find(address, bytes);
  }
  Status accept(const v1::AcceptPlanesRequest& request) override { return host_->accept(request); }
  StatusOr<std::unique_ptr<HostGraph>> build(const v1::GraphDescription& description,
                                             std::span<const run::PlaneMemory> planes) override {
    EAGLE_ASSIGN_OR_RETURN(auto graph, host_->build(description, planes));
    return std::unique_ptr<HostGraph>(
        std::make_unique<MirroredGraph>(std::move(graph), arrays_, description));
  }
  StatusOr<RunResult> simulate(const v1::RunDescription& description,
                               std::span<const run::PlaneMemory> planes, const SimulateOptions& options,
                               const HostCall& host_call) override {
    EAGLE_RETURN_IF_ERROR(arrays_->send(description));
    auto result = host_->simulate(description, planes, options, host_call);
    const Status status = arrays_->fetch(description);
    if (result.ok() && !status.ok()) return status;
    return result;
  }

  HostRuns* runs() override { return this; }
  StatusOr<std::uint64_t> submit(const v1::SubmitRequest& request, std::span<const run::PlaneMemory> planes,
                                 std::vector<std::shared_ptr<const void>> keep_alive) override {
    EAGLE_RETURN_IF_ERROR(arrays_->send(request.run()));
    return host_->runs()->submit(request, planes, std::move(keep_alive));
  }
  Status get(std::uint64_t run, v1::KeptRun& reply) override { return host_->runs()->get(run, reply); }
  Status list(v1::ListRunsReply& reply) override { return host_->runs()->list(reply); }
  Status fetch(const v1::FetchRunRequest& request, std::span<const run::PlaneMemory> planes) override {
    EAGLE_RETURN_IF_ERROR(host_->runs()->fetch(request, planes));
    return arrays_->fetch(request);
  }
  Status cancel(std::uint64_t run) override { return host_->runs()->cancel(run); }

private:
  const std::shared_ptr<Host> host_;
  const std::string device_;
  const std::shared_ptr<Arrays> arrays_;
};

}  // namespace

Session mirrored(const Session& session, const std::string& device) {
  return Session(std::make_shared<MirroredHost>(session.host(), device));
}

}  // namespace eagle::conformance
