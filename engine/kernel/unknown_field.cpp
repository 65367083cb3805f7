#include "engine/kernel/unknown_field.h"

#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

namespace eagle::kernel {
namespace {

// The public way to a message's unknown fields is reflection. It asks for the message's class under a `once`
// each time, and the first time makes descriptors of the whole protocol: 1.2 ms of a process, most of what
// its first kernel costs. What a message keeps of its own is a protected member; a later protobuf that has no
// such member does not compile.
struct Metadata : google::protobuf::MessageLite {
  static bool has_unknown_fields(const google::protobuf::MessageLite& message) {
    return (message.*(&Metadata::_internal_metadata_)).have_unknown_fields();
  }
};

}  // namespace

int unknown_field(const google::protobuf::Message& message) {
  if (!Metadata::has_unknown_fields(message)) return 0;
  const auto& fields = message.GetReflection()->GetUnknownFields(message);
  return fields.empty() ? 0 : fields.field(0).number();
}

}  // namespace eagle::kernel
