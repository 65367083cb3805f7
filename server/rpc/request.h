// What each method takes, and how a message of a client gets in: as bytes, which are compared with the limits
// of its method before they are parsed, and only once its session is known.
// For the .cpp files of this folder and their tests only: it brings gRPC's headers.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <optional>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "server/held_bytes.h"
#include "server/rpc/weight.h"

namespace google::protobuf {
class Message;
class MethodDescriptor;
}  // namespace google::protobuf

namespace eagle::server {

class Daemon;

// Kinds of requests. Each has a limit in bytes (server/limits.h).
enum class Takes : unsigned char {
  names,        // and ids, numbers: request_bytes
  list,         // of such: list_bytes
  giving_back,  // a list of what its client gives up, which is never refused for want of memory: list_bytes
  description,  // of a graph or a run: message_bytes
  data,         // bytes of planes: message_bytes
};

// What the method takes; `name`: "Graphs.Build". Nothing for one that has no row in the table of request.cpp.
std::optional<Takes> taken_by(std::string_view name);

// A method, as its calls know it.
struct Method {
  // Ends the program for one that has no row in the table.
  explicit Method(const google::protobuf::MethodDescriptor& described);

  std::string name;  // "Graphs.Build"
  std::string path;  // gRPC's
  Takes takes;
  const Shape& shape;  // of a message that clients send
};

// A request may take so many times the bytes that it may have once it is parsed.
constexpr std::uint64_t parsed_factor = 8;
// Messages up to so many bytes are parsed as they are: what comes of them is not worth counting.
constexpr std::size_t light_bytes = 1u << 10;
// What takes less than this once it is parsed is not charged.
constexpr std::uint64_t uncharged_bytes = 64u << 10;

// Parses what came for `method` into `message` and lets the bytes go. What is large is charged for, to the
// budget and to `tenant` (may be null), for as long as `held` is. QUOTA (the key of the method's limit, or
// tenant_plane_bytes), PLANE_BUDGET, BAD_MESSAGE.
Status read(Daemon& daemon, Tenant* tenant, const Method& method, grpc::ByteBuffer& bytes,
            google::protobuf::Message& message, HeldBytes& held);

// BAD_MESSAGE, for what is no message of its method: garbage, cut short, or nested too deeply. `what`: "a
// request of Graphs.Build".
Status unreadable(const std::string& what);

}  // namespace eagle::server
