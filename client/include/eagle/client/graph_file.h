// GraphFile: a graph without its arrays, as bytes that other programs load.
//
//   Status saved = graph.save("step.eagle");                     // or in Python: g.save("step.eagle")
//   auto file = eagle::GraphFile::read("step.eagle");            // on any machine
//   auto graph = session.load(*file, {.planes = {{"x", x}}});    // then build() and launch()
//
// A file holds nodes, kernels (as data) and numbers of Params; no array, no callable and no address. What
// stood in one piece of memory (arrays that share bytes) is one *plane* of the file, which whoever loads it
// gives an array for. The bytes (all little-endian):
//
//     0  "EAGLEGPH"
//     8  uint32 version, 1
//    12  uint32 0
//    16  uint64 bytes of the content
//    24  SHA-256 of the content
//    56  SHA-256 of what is computed: equal for files that do the same (`hash`)
//    88  the content: a serialized v1::SavedGraph (proto/eagle/v1/saved_graph.proto)
//
// Reading trusts nothing: bounds, version and hashes first, then the message, then every rule of a graph.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "eagle/client/graph.h"
#include "engine/base/status.h"

namespace eagle {

constexpr std::uint32_t graph_file_version = 1;
constexpr std::uint64_t most_graph_file_bytes = std::uint64_t{64} << 20;  // as of a message to a daemon

// What an array has to be that takes the place of a plane: of this dtype and shape. Where nodes see the plane
// in several ways and none of them sees it whole, it is `bytes` bools, and any row-major array of as many
// bytes will do.
struct SavedPlane {
  std::string name;
  std::vector<std::string> names;  // all that mean it: "x", "node.x"
  DType dtype = DType::f64;
  std::uint32_t item_bytes = 8;
  Shape shape;
  std::uint64_t bytes = 0;  // from the first byte that a node sees to the last
  bool read = false;        // by some node
  bool written = false;
};

// What a callable declares: a view of the array that takes the place of a plane, `offset` bytes from its
// first.
struct SavedView {
  std::string name;   // as its node has it
  std::string plane;  // SavedPlane::name
  DType dtype = DType::f64;
  std::uint32_t item_bytes = 8;
  Shape shape;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;
  bool written = false;
  bool whole = false;  // all nodes see the plane so: it is the array itself, whatever its strides
};

class GraphFile {
public:
  // BAD_VALUE: it cannot be opened, or is no file. GRAPH_LIMIT: too large. BAD_MESSAGE: no saved graph, of a
  // newer version, cut short, changed since it was written. MALFORMED_GRAPH and all that graph::read refuses.
  static StatusOr<GraphFile> read(const std::string& path);
  static StatusOr<GraphFile> parse(std::string_view bytes);
  // Of any description, whichever session's planes it is about. GRAPH_LIMIT.
  static StatusOr<GraphFile> of(const v1::GraphDescription& description);

  // Whole or not at all; what was there is replaced. SYSTEM.
  [[nodiscard]] Status write(const std::string& path) const;

  [[nodiscard]] const std::string& bytes() const;
  [[nodiscard]] const std::string& name() const;  // of the graph
  // 64 hexadecimal digits: of nodes, labels, kernels (by their content), numbers and how planes are seen. Not
  // of the graph's name, of names in kernels, and of places in source files.
  [[nodiscard]] const std::string& hash() const;
  [[nodiscard]] const std::string& made_by() const;
  [[nodiscard]] const std::vector<SavedPlane>& planes() const;
  // The callables it needs: the labels of their nodes; "label.0", "label.1" where several have one.
  [[nodiscard]] const std::vector<std::string>& calls() const;
  // The arrays of each of them.
  [[nodiscard]] const std::vector<std::vector<SavedView>>& call_arrays() const;
  [[nodiscard]] const graph::Graph& graph() const;
  [[nodiscard]] StatusOr<std::string> picture(PictureFormat format) const;

  // For Session::load.
  [[nodiscard]] const v1::GraphDescription& description() const;

private:
  struct Content;
  explicit GraphFile(std::shared_ptr<const Content> content) : content_(std::move(content)) {}
  static StatusOr<GraphFile> of_content(std::string bytes, std::string_view expected_hash);
  std::shared_ptr<const Content> content_;
};

struct LoadOptions {
  // Arrays by names of planes; planes without one are made in the session, of zeros.
  NamedArrays planes = {};
  // What the callables of the file are now, by GraphFile::calls(); all of them.
  std::vector<std::pair<std::string, std::function<Status()>>> calls = {};
  GraphOptions graph = {};  // an empty name: the file's
};

}  // namespace eagle
