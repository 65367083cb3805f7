#include "client/record/walk.h"

#include <google/protobuf/message.h>

#include "eagle/v1/graph.pb.h"
#include "engine/graph/wire.h"

namespace eagle::record {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Every message in it, itself included, from above. As deep as the parser lets messages be.
template <typename Visit>
void for_each_message(Message& message, const Visit& visit) {
  visit(message);
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      for_each_message(*message.GetReflection()->MutableMessage(&message, field), visit);
      continue;
    }
    const int count = message.GetReflection()->FieldSize(message, field);
    for (int i = 0; i < count; ++i)
      for_each_message(*message.GetReflection()->MutableRepeatedMessage(&message, field, i), visit);
  }
}

}  // namespace

void for_each_view(Message& message, const std::function<void(v1::View&)>& visit) {
  for_each_message(message, [&](Message& part) {
    if (part.GetDescriptor() == v1::View::descriptor()) visit(static_cast<v1::View&>(part));
  });
}

std::map<std::uint32_t, std::vector<plane::View>> host_writes(const Message& message) {
  std::map<std::uint32_t, std::vector<plane::View>> found;
  // Nothing is changed: what is there is visited.
  for_each_message(const_cast<Message&>(message), [&](const Message& part) {
    if (part.GetDescriptor() != v1::HostNode::descriptor()) return;
    const auto& node = static_cast<const v1::HostNode&>(part);
    const auto [at, fresh] = found.try_emplace(node.call());
    if (!fresh) return;
    for (const v1::NamedView& written : node.writes())
      at->second.push_back(graph::unchecked_view(written.view()));
  });
  return found;
}

std::set<std::uint32_t> calls_on_gpu(const Message& message) {
  std::set<std::uint32_t> found;
  for_each_message(const_cast<Message&>(message), [&](const Message& part) {
    if (part.GetDescriptor() != v1::HostNode::descriptor()) return;
    const auto& node = static_cast<const v1::HostNode&>(part);
    if (graph::works_on_gpu(node)) found.insert(node.call());
  });
  return found;
}

void call_with_copies(Message& message) {
  for_each_message(message, [](Message& part) {
    if (part.GetDescriptor() != v1::HostNode::descriptor()) return;
    auto& node = static_cast<v1::HostNode&>(part);
    if (graph::works_on_gpu(node)) node.set_tier(v1::HOST_TIER_CAPTURED);
  });
}

}  // namespace eagle::record
