// Weight: what a message takes once it is parsed, told from its bytes: nothing is parsed, and nothing
// allocated.
//
// A field of two bytes may become a submessage of two hundred, so the bytes alone tell little.
#pragma once

#include <cstdint>
#include <optional>

namespace google::protobuf {
class Descriptor;
}
namespace google::protobuf::io {
class ZeroCopyInputStream;
}

namespace eagle::server {

// Messages in each other that protocol buffers read.
constexpr int message_depth = 100;

struct Weight {
  // What has memory of its own: submessages, texts, elements of lists, and fields that the message has not.
  std::uint64_t parts = 0;
  // Of all parts together, or somewhat less than this.
  std::uint64_t bytes = 0;
};

// What there is to know of a type of messages. Immutable, and never destroyed.
class Shape;
// Of a generated type; thread-safe. Makes it at the first call, which takes a while.
const Shape& shape_of(const google::protobuf::Descriptor& type);

// Looks no further once it is more than `most` bytes. Nothing for bytes that cannot be such a message. What
// has a weight may still be none: parsing tells.
std::optional<Weight> weigh(const Shape& shape, google::protobuf::io::ZeroCopyInputStream& bytes,
                            std::uint64_t most);

}  // namespace eagle::server
