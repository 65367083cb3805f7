// Files that may be a saved graph: read and refused, or read, loaded and saved again, on a host that computes
// nothing.
#include "eagle/client/graph_file.h"

#include <algorithm>
#include <memory>
#include <string>

#include "client/testing.h"
#include "eagle/client/kernel_builder.h"
#include "eagle/v1/graph.pb.h"
#include "tests/fuzz/target.h"

namespace eagle::fuzz {
namespace {

constexpr std::uint64_t most_memory = 1u << 20;

// What was read is read again from its own bytes, and a graph that was loaded from it is saved as it was.
void check(const GraphFile& file) {
  const auto again = GraphFile::parse(file.bytes());
  if (!again.ok()) broken("a file that was read is refused: " + again.status().message());
  if (again->hash() != file.hash()) broken("one file, two hashes");
  std::uint64_t bytes = 0;
  for (const SavedPlane& plane : file.planes()) {
    if (plane.bytes > most_memory) return;
    bytes += plane.bytes;
  }
  if (bytes > most_memory) return;
  LoadOptions options;
  for (const std::string& call : file.calls()) options.calls.emplace_back(call, [] { return Status(); });
  const Session session(std::make_shared<testing::FakeHost>("fuzz"));
  const auto loaded = session.load(file, options);
  if (!loaded.ok()) return;
  if (!loaded->file().ok()) broken("a graph that was loaded cannot be saved");
}

Graph chain(const Session& session) {
  KernelBuilder k("doubled");
  const auto x = k.scalar("x");
  k.output("y", k.mul(x, k.param("a")));
  const auto kernel = std::make_shared<const Kernel>(*k.finish());
  const auto memory = *session.zeros<double>({8});
  const auto live = *session.zeros<std::int64_t>({1});
  Graph graph(session, {.name = "seed"});
  const ArrayView between = *graph.scratch({4}, DType::f64, "between");
  ArrayView tail = memory.view();
  tail.shape = {4};
  ArrayView head = tail;
  tail.data = static_cast<std::byte*>(tail.data) + 32;
  const BoundPlan first{kernel, {{"x", head}, {"y", between}, {"a", 2.0}}};
  const BoundPlan second{kernel, {{"x", between}, {"y", tail}, {"a", 3.0}}};
  const bool added =
      graph.add(first).ok() && graph.add(second, "second").ok() &&
      graph.add_node(repeat_while({{"body", second}}, {{"live", live.view()}, std::nullopt, false}, 4))
          .ok() &&
      graph.add_node(opaque([] { return Status(); }, {.reads = {{"x", tail}}, .writes = {}})).ok();
  if (!added) broken("the seed is refused");
  return graph;
}

}  // namespace

// A description; or after a byte 255 a file as it is.
std::vector<std::string> seeds() {
  const Session session(std::make_shared<testing::FakeHost>("seeds"));
  const Graph graph = chain(session);
  const auto file = graph.file();
  const std::string& bytes = file->bytes();
  return {file->description().SerializeAsString(), "\xff" + bytes, "\xff" + bytes.substr(0, bytes.size() / 2),
          "\xff" + bytes.substr(0, 88),
          "\xff"
          "EAGLE"};
}

}  // namespace eagle::fuzz

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  return eagle::fuzz::mutate_message<eagle::v1::GraphDescription>(data, size, most, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const google::protobuf::LogSilencer silence;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.starts_with('\xff')) {
    const auto file = eagle::GraphFile::parse(bytes.substr(1));
    if (file.ok()) eagle::fuzz::check(*file);
    return 0;
  }
  eagle::v1::GraphDescription description;
  if (!description.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto file = eagle::GraphFile::of(description);
  if (file.ok()) eagle::fuzz::check(*file);
  return 0;
}
