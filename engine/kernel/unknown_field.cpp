#include "engine/kernel/unknown_field.h"

#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

namespace eagle::kernel {
namespace {

// The public way to a message's unknown fields is reflection. It asks for the message's class under a `once`
// each time, and the first time makes descriptors of the whole protocol: 1.2 ms of a process, most of what
// its first kernel costs. What a message keeps of its own is a protected member; with a protobuf that has no
// such member it is reflection.
struct Metadata : google::protobuf::MessageLite {
  template <typename Derived>
  static bool may_have_unknown_fields(const google::protobuf::MessageLite& message) {
    if constexpr (requires { (message.*(&Derived::_internal_metadata_)).have_unknown_fields(); }) {
      return (message.*(&Derived::_internal_metadata_)).have_unknown_fields();
    } else {
      return true;
    }
  }
};

}  // namespace

int unknown_field(const google::protobuf::Message& message) {
  if (!Metadata::may_have_unknown_fields<Metadata>(message)) return 0;
  const auto& fields = message.GetReflection()->GetUnknownFields(message);
  return fields.empty() ? 0 : fields.field(0).number();
}

}  // namespace eagle::kernel
