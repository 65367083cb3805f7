// Files that may be a recording: read and refused, or read and replayed on a host that computes nothing.
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "client/record/format.h"
#include "client/record/replay.h"
#include "client/testing.h"
#include "eagle/v1/record.pb.h"
#include "tests/fuzz/target.h"

namespace eagle::fuzz {
namespace {

using record::File;

constexpr std::uint64_t most_memory = 1u << 20;

UniqueFd file_of(std::string_view bytes) {
  UniqueFd fd(::memfd_create("record-fuzz", MFD_CLOEXEC));
  if (!fd.valid() || ::pwrite(fd.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    broken("no memory for the file");
  return fd;
}

// A graph whose launches only call back, as the description has host nodes.
class FakeGraph final : public HostGraph {
public:
  [[nodiscard]] std::vector<std::string> schedule() const override { return {}; }
  [[nodiscard]] StatusOr<std::string> picture(PictureFormat) const override { return std::string(); }
  [[nodiscard]] StatusOr<std::string> explanation(const NodeReference&,
                                                  const std::optional<NodeReference>&) const override {
    return std::string();
  }
  StatusOr<LaunchReport> launch(std::int64_t n, const LaunchOptions&,
                                const std::function<Status(std::uint32_t)>& call) override {
    for (std::uint32_t number = 0; number < 4; ++number) {
      const Status called = call(number);
      if (!called.ok()) return called;
    }
    LaunchReport report;
    report.launches = n;
    return report;
  }
  [[nodiscard]] std::int64_t brief_replays() const override { return 0; }
  [[nodiscard]] bool enqueues() const override { return false; }
  Status enqueue(std::int64_t) override { return {}; }
  StatusOr<LaunchReport> synchronize(const LaunchOptions&,
                                     const std::function<Status(std::uint32_t)>&) override {
    return LaunchReport();
  }
  std::function<void()> cancel_enqueued() override { return nullptr; }
  Status update(const std::vector<graph::ParamUpdate>&) override { return {}; }
  Status rebind(const v1::GraphDescription&, std::span<const run::PlaneMemory>) override { return {}; }
  [[nodiscard]] graph::ScratchLayout scratch() const override { return {}; }
  [[nodiscard]] run::Execution execution() const override { return {}; }
  [[nodiscard]] bool compiled() const override { return false; }
};

// What a replay asks of a host, without an engine. Its arrays have exactly their bytes, so that a sanitizer
// sees every store beside them.
class BuildingHost final : public Host {
public:
  [[nodiscard]] const std::string& name() const override { return host_.name(); }
  [[nodiscard]] bool remote() const override { return false; }
  [[nodiscard]] bool closed() const override { return false; }
  Status close() override { return {}; }
  StatusOr<SessionInfo> info() override { return SessionInfo(); }
  StatusOr<std::vector<GraphInfo>> graphs(GraphScope) override { return std::vector<GraphInfo>(); }
  StatusOr<std::string> picture(const GraphInfo&, PictureFormat) override { return std::string(); }
  StatusOr<std::shared_ptr<Buffer>> allocate(std::uint64_t bytes, std::string_view label,
                                             Contents contents) override {
    if (bytes > most_memory) broken("a replay asks for more memory than its limit");
    return host_.allocate(bytes, label, contents);
  }
  [[nodiscard]] std::optional<PlaneAddress> find(const void* address, std::uint64_t bytes) const override {
    return host_.find(address, bytes);
  }
  StatusOr<std::unique_ptr<HostGraph>> build(const v1::GraphDescription& description,
                                             std::span<const run::PlaneMemory> memory) override {
    if (memory.size() != static_cast<std::size_t>(description.planes_size()))
      broken("a plane without its memory");
    return std::unique_ptr<HostGraph>(std::make_unique<FakeGraph>());
  }
  StatusOr<RunResult> simulate(const v1::RunDescription&, std::span<const run::PlaneMemory>,
                               const SimulateOptions&, const HostCall& call) override {
    for (std::uint32_t number = 0; number < 4; ++number) {
      const step::HostAnswer answer = call(number);
      if (!answer.status.ok()) return answer.status;
    }
    return RunResult();
  }

private:
  eagle::testing::FakeHost host_{"fuzz"};
};

// A file with these entries, each in a frame that is as it must be.
std::string file_with(const v1::Recording& recording) {
  std::string bytes(record::magic);
  for (const v1::RecordEntry& entry : recording.entries()) {
    const auto frame = record::frame_of(entry);
    if (frame.ok()) bytes += *frame;
  }
  return bytes;
}

// Refused for what it says, or whole: never anything else.
void check(std::string_view bytes) {
  const auto file = File::of(file_of(bytes));
  if (!file.ok()) {
    if (file.status().reason() != Reason::bad_value) broken(file.status().to_string());
    return;
  }
  record::ReplayOptions options;
  options.verify = true;
  options.limits = {.planes = 64,
                    .plane_bytes = most_memory,
                    .graphs = 64,
                    .requests = 256,
                    .host_calls = 256,
                    .open_requests = 64};
  const auto contents = record::summary_of(*file, options.limits);
  const Reason why = contents.status().reason();
  if (!contents.ok() && why != Reason::bad_message && why != Reason::quota)
    broken(contents.status().to_string());
  BuildingHost host;
  std::uint64_t requests = 0;
  const Status done = record::replay(host, *file, options, [&](const record::Replayed&) { ++requests; });
  if (contents.ok() && done.ok() && requests != contents->requests) broken("a request was left out");
  if (!contents.ok() && done.ok()) broken("what was refused was replayed");
}

v1::RecordEntry& entry(v1::Recording& recording) { return *recording.add_entries(); }

// A build, two launches with a callable, an accept and an end.
v1::Recording session() {
  v1::Recording made;
  entry(made).mutable_header()->set_version(record::format_version);
  made.mutable_entries(0)->mutable_header()->set_contents(true);
  for (const std::uint64_t number : {1, 2}) {
    v1::RecordPlane& plane = *entry(made).mutable_plane();
    plane.set_plane(number);
    plane.set_bytes(64 * number);
    plane.set_private_memory(number == 2);
  }
  v1::RecordFresh& fresh = *entry(made).mutable_fresh();
  fresh.set_plane(1);
  fresh.set_offset(8);
  fresh.set_bytes(16);
  v1::RecordBytes& bytes = *entry(made).mutable_bytes();
  bytes.set_plane(2);
  bytes.set_offset(100);
  bytes.set_data("values");
  v1::RecordRequest& build = *entry(made).mutable_request();
  build.set_number(1);
  build.set_graph(1);
  build.add_planes(1);
  build.add_planes(2);
  build.add_planes(0);
  build.mutable_build()->add_planes()->mutable_plane();
  build.mutable_build()->add_planes()->mutable_private_memory();
  build.mutable_build()->add_planes()->mutable_scratch();
  v1::HostNode& node = *build.mutable_build()->add_stages()->mutable_node()->mutable_host();
  for (const std::uint32_t plane : {0u, 1u}) {
    v1::View& view = *node.add_writes()->mutable_view();
    view.set_plane(plane);
    view.set_offset(8);
    view.set_dtype(v1::DTYPE_F64);
    view.set_item_bytes(8);
    view.add_shape(2);
    view.add_strides(16);
  }
  entry(made).mutable_outcome()->set_request(1);
  for (const std::uint64_t number : {2, 3}) {
    v1::RecordRequest& launch = *entry(made).mutable_request();
    launch.set_number(number);
    launch.set_graph(1);
    launch.mutable_launch()->set_count(3);
    v1::RecordHostCall& call = *entry(made).mutable_host_call();
    call.set_request(number);
    call.add_written(std::string(16, 'w'));
    call.add_written(std::string(16, 'v'));
    if (number == 3) call.set_reason("BAD_VALUE");
    v1::RecordOutcome& outcome = *entry(made).mutable_outcome();
    outcome.set_request(number);
    outcome.set_launches(3);
    outcome.add_digests()->set_plane(1);
    outcome.mutable_digests(0)->set_sha256(std::string(32, 'd'));
  }
  v1::RecordRequest& accept = *entry(made).mutable_request();
  accept.set_number(4);
  accept.mutable_accept()->add_parts()->set_plane(1);
  v1::RecordRequest& update = *entry(made).mutable_request();
  update.set_number(5);
  update.set_graph(1);
  update.mutable_update()->add_params()->mutable_value()->set_real(2.0);
  v1::RecordRequest& run = *entry(made).mutable_request();
  run.set_number(6);
  run.add_planes(1);
  run.mutable_run()->mutable_run()->add_planes()->mutable_plane();
  v1::RecordRequest& rebind = *entry(made).mutable_request();
  rebind.set_number(7);
  rebind.set_graph(1);
  rebind.add_planes(2);
  rebind.mutable_rebind()->add_planes()->mutable_private_memory();
  entry(made).mutable_release()->set_graph(1);
  entry(made).mutable_end();
  return made;
}

}  // namespace

// A recording as a message, which becomes a file with whole frames; or after a byte 255 a file as it is.
std::vector<std::string> seeds() {
  const v1::Recording whole = session();
  v1::Recording cut = whole;
  cut.mutable_entries()->DeleteSubrange(cut.entries_size() - 3, 3);
  v1::Recording overflowing = whole;
  overflowing.mutable_entries(3)->mutable_fresh()->set_bytes(~std::uint64_t{0});
  v1::Recording far = whole;
  v1::View& view = *far.mutable_entries(5)
                        ->mutable_request()
                        ->mutable_build()
                        ->mutable_stages(0)
                        ->mutable_node()
                        ->mutable_host()
                        ->mutable_writes(0)
                        ->mutable_view();
  view.set_offset(INT64_MAX);
  v1::Recording unknown = whole;
  unknown.mutable_entries(7)->mutable_request()->set_graph(2);
  // An outcome that tells of a plane which its request could not know of.
  v1::Recording early = whole;
  early.mutable_entries(early.entries_size() - 1)->clear_end();
  v1::RecordPlane& late = *early.mutable_entries(early.entries_size() - 1)->mutable_plane();
  late.set_plane(3);
  late.set_bytes(64);
  v1::RecordOutcome& outcome = *entry(early).mutable_outcome();
  outcome.set_request(7);
  v1::RecordDigest& digest = *outcome.add_digests();
  digest.set_plane(3);
  digest.set_sha256(std::string(32, 'd'));
  entry(early).mutable_end();
  const std::string raw = file_with(whole);
  return {whole.SerializeAsString(),
          cut.SerializeAsString(),
          overflowing.SerializeAsString(),
          far.SerializeAsString(),
          unknown.SerializeAsString(),
          early.SerializeAsString(),
          "\xff" + raw,
          "\xff" + raw.substr(0, raw.size() / 2),
          "\xff" + std::string(record::magic) + std::string("\xff\xff\xff\xff\0\0\0\0", 8),
          "\xff"
          "EAGLERE"};
}

}  // namespace eagle::fuzz

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  return eagle::fuzz::mutate_message<eagle::v1::Recording>(data, size, most, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const google::protobuf::LogSilencer silence;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.starts_with('\xff')) {
    eagle::fuzz::check(bytes.substr(1));
    return 0;
  }
  eagle::v1::Recording recording;
  if (recording.ParseFromArray(data, static_cast<int>(size)))
    eagle::fuzz::check(eagle::fuzz::file_with(recording));
  return 0;
}
