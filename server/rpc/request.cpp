#include "server/rpc/request.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "server/daemon.h"

namespace eagle::server {
namespace {

struct Row {
  std::string_view method;
  Takes takes;
};

constexpr std::array rows{
    Row{"Sessions.Attach", Takes::names},

    Row{"Planes.Create", Takes::list},
    Row{"Planes.Release", Takes::giving_back},
    Row{"Planes.Accept", Takes::list},
    Row{"Planes.List", Takes::names},
    Row{"Planes.Retain", Takes::giving_back},
    Row{"Planes.Read", Takes::names},
    Row{"Planes.Write", Takes::data},
    Row{"Planes.Fill", Takes::names},
    Row{"Planes.Publish", Takes::names},
    Row{"Planes.Open", Takes::names},
    Row{"Planes.Withdraw", Takes::names},

    Row{"Graphs.Build", Takes::description},
    Row{"Graphs.Launch", Takes::names},
    Row{"Graphs.LaunchWithCalls", Takes::list},  // errors of host calls are texts
    Row{"Graphs.Enqueue", Takes::names},
    Row{"Graphs.Cancel", Takes::names},
    Row{"Graphs.Update", Takes::list},
    Row{"Graphs.Rebind", Takes::description},
    Row{"Graphs.Edges", Takes::names},
    Row{"Graphs.Picture", Takes::names},
    Row{"Graphs.Explain", Takes::names},
    Row{"Graphs.Inspect", Takes::names},
    Row{"Graphs.Describe", Takes::names},
    Row{"Graphs.ListKernel", Takes::names},
    Row{"Graphs.Verify", Takes::names},
    Row{"Graphs.List", Takes::names},
    Row{"Graphs.Timeline", Takes::names},
    Row{"Graphs.Release", Takes::names},
    Row{"Graphs.Restore", Takes::names},

    Row{"Runs.Simulate", Takes::description},
    Row{"Runs.SimulateWithCalls", Takes::description},
    Row{"Runs.Submit", Takes::description},
    Row{"Runs.Get", Takes::names},
    Row{"Runs.List", Takes::names},
    Row{"Runs.Fetch", Takes::list},
    Row{"Runs.CancelRun", Takes::names},

    Row{"Admin.Info", Takes::names},
    Row{"Admin.ListSessions", Takes::names},
    Row{"Admin.ListPlanes", Takes::names},
    Row{"Admin.Metrics", Takes::names},
    Row{"Admin.Timeline", Takes::names},
    Row{"Admin.SetLogLevel", Takes::names},
    Row{"Admin.RecentLog", Takes::names},
    Row{"Admin.ListQuarantine", Takes::names},
    Row{"Admin.Pardon", Takes::list},
    Row{"Admin.Drain", Takes::names},
    Row{"Admin.SupportBundle", Takes::names},

    Row{"ServerReflection.ServerReflectionInfo", Takes::names},
};

struct Limit {
  const char* key;
  std::uint64_t bytes;
};

Limit limit_of(Takes takes, const Limits& limits) {
  switch (takes) {
    case Takes::names:
      return {"request_bytes", limits.request_bytes};
    case Takes::list:
    case Takes::giving_back:
      return {"list_bytes", limits.list_bytes};
    default:
      return {"message_bytes", limits.message_bytes};
  }
}

std::string name_of(const google::protobuf::MethodDescriptor& method) {
  return method.service()->name() + "." + method.name();
}

Takes row_of(const std::string& method) {
  if (const auto takes = taken_by(method)) return *takes;
  spdlog::critical("{} has no row in the table of server/rpc/request.cpp", method);
  std::abort();
}

constexpr const char* cure = "; send less at once, or have the operator raise ";

Status too_large(const Method& method, const Limit& limit, std::size_t bytes) {
  return {Reason::quota, method.name + ": expected a message of at most " + std::to_string(limit.bytes) +
                             " bytes (" + limit.key + "), found " + std::to_string(bytes) + cure + limit.key};
}

Status too_heavy(const Method& method, const Limit& limit, const Weight& weight) {
  return {Reason::quota, method.name + ": expected a message that takes at most " +
                             std::to_string(parsed_factor * limit.bytes) + " bytes once it is read (" +
                             std::to_string(parsed_factor) + " times " + limit.key + "), found at least " +
                             std::to_string(weight.parts) +
                             " submessages, texts and numbers, which take more" + cure + limit.key};
}

StatusOr<HeldBytes> charge(Daemon& daemon, Tenant* tenant, const Method& method, std::uint64_t bytes) {
  if (method.takes == Takes::giving_back) return adopt_bytes(daemon.plane_budget(), tenant, bytes);
  return hold_bytes(daemon.plane_budget(), tenant, "a request that is being read", bytes);
}

// QUOTA, PLANE_BUDGET, BAD_MESSAGE.
StatusOr<HeldBytes> admit(Daemon& daemon, Tenant* tenant, const Method& method, grpc::ByteBuffer& bytes) {
  const Limit limit = limit_of(method.takes, daemon.limits());
  if (bytes.Length() > limit.bytes) return too_large(method, limit, bytes.Length());
  if (bytes.Length() <= light_bytes || method.takes == Takes::data) return HeldBytes();
  grpc::ProtoBufferReader reader(&bytes);
  const std::uint64_t most = parsed_factor * limit.bytes;
  const auto weight = weigh(method.shape, reader, most);
  if (!weight) return unreadable("a request of " + method.name);
  if (weight->bytes > most) return too_heavy(method, limit, *weight);
  if (weight->bytes < uncharged_bytes) return HeldBytes();
  return charge(daemon, tenant, method, weight->bytes);
}

}  // namespace

std::optional<Takes> taken_by(std::string_view name) {
  const auto* const found =
      std::find_if(rows.begin(), rows.end(), [name](const Row& row) { return row.method == name; });
  return found == rows.end() ? std::nullopt : std::optional(found->takes);
}

Method::Method(const google::protobuf::MethodDescriptor& described)
    : name(name_of(described)),
      path("/" + described.service()->full_name() + "/" + described.name()),
      takes(row_of(name)),
      shape(shape_of(*described.input_type())) {}

Status read(Daemon& daemon, Tenant* tenant, const Method& method, grpc::ByteBuffer& bytes,
            google::protobuf::Message& message, HeldBytes& held) {
  held = {};
  EAGLE_ASSIGN_OR_RETURN(held, admit(daemon, tenant, method, bytes));
  bool whole = false;
  {
    grpc::ProtoBufferReader reader(&bytes);
    whole = message.ParseFromZeroCopyStream(&reader);
  }
  bytes.Clear();
  return whole ? Status() : unreadable("a request of " + method.name);
}

Status unreadable(const std::string& what) {
  return {Reason::bad_message,
          "expected " + what +
              ", found bytes that are none: cut short, compressed, of another message, or nested deeper "
              "than the " +
              std::to_string(message_depth) + " messages in each other that are read"};
}

}  // namespace eagle::server
