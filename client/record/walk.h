// Views and host nodes of a description, wherever in it they are.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "engine/base/status.h"
#include "engine/plane/view.h"

namespace google::protobuf {
class Message;
}
namespace eagle::v1 {
class View;
}

namespace eagle::record {

// Calls `visit` for every View in the message.
void for_each_view(google::protobuf::Message& message, const std::function<void(v1::View&)>& visit);

// What each callable writes, by its number. A number that several nodes have is that of the first.
std::map<std::uint32_t, std::vector<plane::View>> host_writes(const google::protobuf::Message& message);
// Callables that work on arrays of a GPU where they lie.
std::set<std::uint32_t> calls_on_gpu(const google::protobuf::Message& message);
// Makes them such that work on copies in their process.
void call_with_copies(google::protobuf::Message& message);

}  // namespace eagle::record
