// Bytes and back: the head, the hashes, the message, and what is said of it.
#include "eagle/client/graph_file.h"

#include <fcntl.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "client/saved_planes.h"
#include "eagle/v1/graph.pb.h"
#include "eagle/v1/saved_graph.pb.h"
#include "engine/base/file_bytes.h"
#include "engine/base/hex.h"
#include "engine/base/unique_fd.h"
#include "engine/graph/wire.h"
#include "engine/kernel/names.h"
#include "engine/kernel/wire.h"
#include "engine/view/picture.h"

namespace eagle {
namespace {

constexpr std::string_view magic = "EAGLEGPH";
constexpr std::size_t head_bytes = 88;
constexpr std::size_t digest_bytes = SHA256_DIGEST_LENGTH;

std::string digest_of(std::string_view bytes) {
  std::array<unsigned char, digest_bytes> digest{};
  ::SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return {digest.begin(), digest.end()};
}

template <typename Number>
void put(std::string& out, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) out += static_cast<char>((number >> (8 * i)) & 0xff);
}
template <typename Number>
Number number_at(std::string_view bytes, std::size_t place) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i)
    number |= static_cast<Number>(static_cast<unsigned char>(bytes[place + i])) << (8 * i);
  return number;
}

// What two files must have in common to be the same program over the same kinds of arrays.
std::string hash_of(const v1::GraphDescription& description, const graph::Graph& graph) {
  v1::GraphDescription bare = description;
  bare.clear_name();
  bare.clear_source_files();
  for (int i = 0; i < bare.kernels_size(); ++i) {
    const kernel::Kernel& kernel = *graph.kernels[static_cast<std::size_t>(i)];
    v1::Kernel& message = *bare.mutable_kernels(i);
    message.Clear();
    message.set_name(kernel::content_hash(kernel));
    for (const kernel::Argument& argument : kernel.arguments)
      message.add_arguments()->set_name(argument.name);
  }
  for (v1::PlaneDeclaration& plane : *bare.mutable_planes()) plane.clear_label();
  saved::for_each_node(*bare.mutable_stages(), [](v1::Node& node) { node.clear_location(); });
  return digest_of(bare.SerializeAsString());
}

// Whole, however long.
std::string spelled(const std::string& path) { return "'" + kernel::escaped(path, '\'') + "'"; }

Status too_large(std::string_view what, std::uint64_t bytes) {
  return {Reason::graph_limit, std::string(what) + " has " + std::to_string(bytes) +
                                   " bytes, over the limit of " + std::to_string(most_graph_file_bytes) +
                                   " (graph_file_bytes); cut the graph into several"};
}

}  // namespace

struct GraphFile::Content {
  std::string bytes;
  v1::SavedGraph message;
  graph::Graph graph;
  std::string hash;
  std::vector<SavedPlane> planes;
  std::vector<std::string> calls;
  std::vector<std::vector<SavedView>> call_arrays;
};

// `expected_hash`: what the head says, 32 bytes; empty: nothing is said yet, and the head is to be made.
StatusOr<GraphFile> GraphFile::of_content(std::string content, std::string_view expected_hash) {
  auto made = std::make_shared<Content>();
  if (!made->message.ParseFromString(content)) {
    return Status(
        Reason::bad_message,
        "its content is no SavedGraph, although its SHA-256 is right; whatever wrote it is at fault");
  }
  EAGLE_RETURN_IF_ERROR(graph::refuse_unknown_fields(made->message, "saved graph"));
  const v1::GraphDescription& description = made->message.graph();
  for (int i = 0; i < description.planes_size(); ++i) {
    if (!description.planes(i).has_plane()) continue;
    return Status(
        Reason::malformed_graph,
        "plane " + std::to_string(i) +
            " is one of a session, which means nothing in a file; expected private or scratch memory");
  }
  EAGLE_ASSIGN_OR_RETURN(made->graph, graph::read(description, graph::PrivateKernelPlanes::allowed));
  std::vector<saved::Place> places = saved::planes_of(made->graph);
  made->calls = saved::calls_of(made->graph);
  made->call_arrays = saved::call_arrays_of(made->graph, places);
  for (saved::Place& place : places) made->planes.push_back(std::move(place.plane));
  const std::string hash = hash_of(description, made->graph);
  if (!expected_hash.empty() && hash != expected_hash) {
    return Status(Reason::bad_message, "it computes " + to_hex(hash) + ", and its head says " +
                                           to_hex(expected_hash) +
                                           "; it was put together from two files. Save the graph again");
  }
  made->hash = to_hex(hash);
  std::string& bytes = made->bytes;
  bytes = magic;
  put(bytes, graph_file_version);
  put(bytes, std::uint32_t{0});
  put(bytes, std::uint64_t{content.size()});
  bytes += digest_of(content);
  bytes += hash;
  bytes += content;
  return GraphFile(std::move(made));
}

StatusOr<GraphFile> GraphFile::of(const v1::GraphDescription& description) {
  v1::SavedGraph saved;
  EAGLE_ASSIGN_OR_RETURN(*saved.mutable_graph(), saved::detached(description));
  saved.set_made_by("eagle " EAGLE_VERSION);
  // Names of planes are for those who read the message without this library.
  EAGLE_ASSIGN_OR_RETURN(const graph::Graph graph,
                         graph::read(saved.graph(), graph::PrivateKernelPlanes::allowed));
  for (const saved::Place& place : saved::planes_of(graph))
    saved.mutable_graph()->mutable_planes(static_cast<int>(place.index))->set_label(place.plane.name);
  std::string content = saved.SerializeAsString();
  if (content.size() + head_bytes > most_graph_file_bytes) return too_large("the graph", content.size());
  return of_content(std::move(content), {});
}

StatusOr<GraphFile> GraphFile::parse(std::string_view bytes) {
  const auto refused = [](const std::string& what) { return Status(Reason::bad_message, what); };
  if (bytes.size() > most_graph_file_bytes) return too_large("it", bytes.size());
  if (!bytes.starts_with(magic.substr(0, bytes.size())) || bytes.empty()) {
    return refused("it is no saved graph: expected it to begin with " + std::string(magic) + ", found " +
                   kernel::quote_name(std::string(bytes.substr(0, magic.size()))));
  }
  if (bytes.size() < head_bytes) {
    return refused("it was cut short: a saved graph has a head of " + std::to_string(head_bytes) +
                   " bytes, and this has " + std::to_string(bytes.size()) + " in all; copy it again");
  }
  const auto version = number_at<std::uint32_t>(bytes, 8);
  if (version != graph_file_version) {
    return refused("it is of format " + std::to_string(version) +
                   ", and this eagle (" EAGLE_VERSION ") reads format " + std::to_string(graph_file_version) +
                   (version > graph_file_version ? "; install a newer eagle" : "") +
                   ", or save the graph with this one");
  }
  if (number_at<std::uint32_t>(bytes, 12) != 0) {
    return refused("bytes 12 to 15 of its head are not 0, as they are in format 1; save the graph again");
  }
  const auto size = number_at<std::uint64_t>(bytes, 16);
  const std::uint64_t there = bytes.size() - head_bytes;
  if (size != there) {
    return refused((size > there ? "it was cut short" : "something was appended to it") +
                   std::string(": its head says ") + std::to_string(size) +
                   " bytes of content, and there are " + std::to_string(there) + "; copy it again");
  }
  const std::string_view content = bytes.substr(head_bytes);
  const std::string_view digest = bytes.substr(24, digest_bytes);
  if (const std::string found = digest_of(content); found != digest) {
    return refused("it has changed since it was written: expected SHA-256 " + to_hex(digest) + ", found " +
                   to_hex(found) + "; copy it again");
  }
  return of_content(std::string(content), bytes.substr(56, digest_bytes));
}

StatusOr<GraphFile> GraphFile::read(const std::string& path) {
  const std::string where = "load: " + spelled(path);
  const UniqueFd file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe would wait for a writer
  if (!file.valid()) return Status(Reason::bad_value, where + " cannot be opened: " + std::strerror(errno));
  struct stat found {};
  if (::fstat(file.get(), &found) != 0)
    return Status(Reason::system, where + ": fstat: " + std::strerror(errno));
  if (!S_ISREG(found.st_mode))
    return Status(Reason::bad_value, where + " is no regular file; give the path of a saved graph");
  const auto size = static_cast<std::uint64_t>(found.st_size);
  if (size > most_graph_file_bytes) return too_large(where, size);
  StatusOr<std::string> bytes = read_at(file.get(), 0, size);
  if (!bytes.ok()) return bytes.status().within(where);
  StatusOr<GraphFile> parsed = parse(*bytes);
  if (!parsed.ok()) return parsed.status().within(where);
  return parsed;
}

Status GraphFile::write(const std::string& path) const {
  const std::string where = "save: " + spelled(path);
  const auto failed = [&](const char* what) {
    return Status(Reason::system, where + ": " + what + ": " + std::strerror(errno));
  };
  // Beside it, so that a rename makes it whole; the mode is as the process wants files to be.
  static std::atomic<unsigned> written = 0;
  const std::string beside =
      path + "." + std::to_string(::getpid()) + "." + std::to_string(written++) + ".part";
  const UniqueFd file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.valid()) return failed("cannot be made");
  Status status = write_at(file.get(), bytes(), 0).within(where);
  if (status.ok() && ::fsync(file.get()) != 0) status = failed("fsync");
  if (status.ok() && ::rename(beside.c_str(), path.c_str()) != 0) status = failed("cannot be replaced");
  if (!status.ok()) ::unlink(beside.c_str());
  return status;
}

const std::string& GraphFile::bytes() const { return content_->bytes; }
const std::string& GraphFile::name() const { return content_->graph.name; }
const std::string& GraphFile::hash() const { return content_->hash; }
const std::vector<std::vector<SavedView>>& GraphFile::call_arrays() const { return content_->call_arrays; }
const std::string& GraphFile::made_by() const { return content_->message.made_by(); }
const std::vector<SavedPlane>& GraphFile::planes() const { return content_->planes; }
const std::vector<std::string>& GraphFile::calls() const { return content_->calls; }
const graph::Graph& GraphFile::graph() const { return content_->graph; }
const v1::GraphDescription& GraphFile::description() const { return content_->message.graph(); }
StatusOr<std::string> GraphFile::picture(PictureFormat format) const {
  return view::draw(content_->graph, format, {});
}

}  // namespace eagle
