#include "server/sockets/side_protocol.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "eagle/v1/service.pb.h"
#include "engine/run/report_message.h"
#include "proto/rpc_error.h"
#include "server/protocol.h"
#include "server/ring/ring.h"

namespace eagle::server {
namespace {

SideAnswer answer_of(const v1::SideReply& reply) {
  SideAnswer answer;
  const auto size = static_cast<std::uint32_t>(reply.ByteSizeLong());
  for (int shift = 0; shift < 32; shift += 8) answer.frame += static_cast<char>(size >> shift & 0xff);
  reply.AppendToString(&answer.frame);
  return answer;
}

// Whoever opens memory of a GPU may give itself the right to write, so that nobody opens what was granted for
// reading.
StatusOr<run::cuda::DeviceHandle> device_handle_of(const Plane& plane) {
  if (!plane.read_only()) return plane.bytes()->device_handle();
  return Status(Reason::read_only_array,
                "plane '" + plane.label() + "' on " + plane.device() +
                    " was granted for reading, and who opens memory of a GPU could write to it; copy the "
                    "values (.numpy()), or ask its owner to publish it with mode \"rw\"");
}

void describe(const run::cuda::DeviceHandle& handle, v1::DeviceHandle& message) {
  message.set_uuid(handle.uuid);
  message.set_by_descriptor(handle.descriptor.valid());
  message.set_ipc(handle.ipc);
  message.set_allocation(handle.allocation);
  message.set_offset(handle.offset);
  message.set_bytes(handle.bytes);
}

}  // namespace

SideAnswer SideProtocol::refuse(const Status& status) const {
  const Status told = daemon_.told(status);
  count(daemon_.executor().meters().refusals[static_cast<std::size_t>(told.reason())]);
  v1::SideReply reply;
  reply.mutable_error()->set_code(static_cast<std::uint32_t>(told.code()));
  reply.mutable_error()->set_reason(std::string(info(told.reason()).wire_name));
  reply.mutable_error()->set_message(rpc::wire_message(told.message()));
  return answer_of(reply);
}

SideAnswer SideProtocol::handle(std::string_view message) {
  v1::SideRequest request;
  if (!request.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    return refuse({Reason::bad_message, "expected a SideRequest, found " + std::to_string(message.size()) +
                                            " bytes that are none"});
  }
  if (session_ && !attached()) {
    return refuse({Reason::session_closed, "the session has ended, or was resumed on another connection"});
  }
  switch (request.kind_case()) {
    case v1::SideRequest::kHello:
      return hello(request.hello());
    case v1::SideRequest::kFetch:
      return fetch(request.fetch());
    case v1::SideRequest::kRing:
      return ring();
    case v1::SideRequest::kLeave:
      return leave();
    case v1::SideRequest::kBeat:
      return beat();
    case v1::SideRequest::KIND_NOT_SET:
      break;
  }
  return refuse({Reason::bad_message,
                 "this daemon (" EAGLE_VERSION ") does not know this side request; upgrade the daemon"});
}

SideAnswer SideProtocol::hello(const v1::HelloRequest& request) {
  if (session_) {
    return refuse({Reason::bad_message, "this connection has a session already; open another connection"});
  }
  const StatusOr<Principal> principal = who(request.token());
  daemon_.note_authentication(principal.status(), peer());
  if (!principal.ok()) return refuse(principal.status());
  if (const Status admitted = daemon_.admits(*principal); !admitted.ok()) return refuse(admitted);
  const auto protocol = common_protocol(request.protocol().min(), request.protocol().max());
  if (!protocol.ok()) return refuse(protocol.status());
  auto opened = open(*principal, request);
  if (!opened.ok()) return refuse(opened.status());

  session_ = opened->session;
  attachment_ = opened->attachment;
  client_ = opened->process;
  v1::SideReply reply;
  v1::HelloReply& hello = *reply.mutable_hello();
  hello.set_protocol(*protocol);
  hello.set_server_version(EAGLE_VERSION);
  hello.set_session(session_->id());
  hello.set_secret(opened->secret.data(), opened->secret.size());
  run::describe(run::this_host(), *hello.mutable_host());
  hello.set_survives(daemon_.survives());
  hello.set_tells_begun(true);
  if (process_ < 0) {
    hello.set_heartbeat_ms(static_cast<std::uint32_t>(daemon_.limits().heartbeat.count()));
  }
  return answer_of(reply);
}

StatusOr<Sessions::Opened> SideProtocol::open(const Principal& principal, const v1::HelloRequest& request) {
  const TraceContext trace = trace_context(request.traceparent()).value_or(TraceContext());
  if (!request.has_resume()) {
    return daemon_.sessions().open(
        principal, request.client_name(),
        {std::chrono::seconds(request.lease_s()), process_, request.attempt(), std::nullopt, trace});
  }
  Sessions::Resumption resumption;
  resumption.session = request.resume().session();
  resumption.last_launch = request.resume().last_launch_id();
  resumption.process = process_;
  resumption.trace = trace;
  const std::string& secret = request.resume().secret();
  if (secret.size() != resumption.secret.size()) {
    return Status(Reason::bad_message, "expected a secret of " + std::to_string(resumption.secret.size()) +
                                           " bytes, found " + std::to_string(secret.size()));
  }
  std::copy(secret.begin(), secret.end(), resumption.secret.begin());
  return daemon_.sessions().resume(principal, resumption);  // the caller is known; its session may be over
}

SideAnswer SideProtocol::beat() {
  v1::SideReply reply;
  reply.mutable_beat();
  return answer_of(reply);
}

SideAnswer SideProtocol::leave() {
  if (session_) {
    if (const Status left = daemon_.sessions().leave(session_); !left.ok()) return refuse(left);
  }
  v1::SideReply reply;
  reply.mutable_leave();
  return answer_of(reply);
}

void SideProtocol::detach() { daemon_.sessions().detach(session_, attachment_); }

// The kernel's word on the process is kept where a token says who it is.
StatusOr<Principal> SideProtocol::who(const std::string& token) const {
  if (access_.identity != Identity::token) return peer_;
  EAGLE_ASSIGN_OR_RETURN(Principal principal, principal_of_token(access_, token));
  if (peer_.ok()) principal.pid = peer_->pid;
  return principal;
}

std::string SideProtocol::peer() const {
  return peer_.ok() ? peer_->text() + " pid=" + std::to_string(peer_->pid) : "unknown";
}

SideAnswer SideProtocol::fetch(const v1::FetchRequest& request) {
  if (!session_) {
    return refuse({Reason::unauthenticated, "expected a Hello, which opens the session, before a Fetch"});
  }
  const auto count = static_cast<std::uint32_t>(request.tokens_size());
  if (count > daemon_.limits().descriptors_per_message) {
    return refuse({Reason::bad_value, "expected at most " +
                                          std::to_string(daemon_.limits().descriptors_per_message) +
                                          " tokens in one Fetch, found " + std::to_string(count) +
                                          "; fetch in several requests"});
  }
  const std::vector<std::string_view> tokens(request.tokens().begin(), request.tokens().end());
  auto planes = session_->planes().redeemable(tokens, client_);
  if (!planes.ok()) return refuse(planes.status());
  v1::SideReply reply;
  auto own = std::make_shared<std::vector<UniqueFd>>();
  for (const auto& plane : *planes) {
    if (plane->gpu() != nullptr && plane->gpu()->imported()) {
      auto closed = plane->gpu()->descriptor();
      if (!closed.ok()) return refuse(closed.status());
      own->push_back(*std::move(closed));
      continue;
    }
    if (plane->gpu() != nullptr) {
      auto handle = device_handle_of(*plane);
      if (!handle.ok()) return refuse(handle.status());
      describe(*handle, *reply.mutable_fetch()->add_devices());
      if (handle->descriptor.valid()) own->push_back(std::move(handle->descriptor));
      continue;
    }
    auto descriptor = plane->bytes()->descriptor(plane->read_only());
    if (!descriptor.ok()) return refuse(descriptor.status());
    own->push_back(*std::move(descriptor));
  }
  reply.mutable_fetch()->set_descriptors(static_cast<std::uint32_t>(own->size()));
  SideAnswer answer = answer_of(reply);
  for (const UniqueFd& descriptor : *own) answer.descriptors.push_back(descriptor.get());
  answer.owner = own;
  answer.tokens.assign(request.tokens().begin(), request.tokens().end());
  return answer;
}

SideAnswer SideProtocol::ring() {
  if (!session_) {
    return refuse({Reason::unauthenticated, "expected a Hello, which opens the session, before a Ring"});
  }
  const auto ring = daemon_.open_ring(session_);
  if (!ring.ok()) return refuse(ring.status());
  v1::SideReply reply;
  reply.mutable_ring()->set_bytes(sizeof(ring::Memory));
  SideAnswer answer = answer_of(reply);
  answer.descriptors = {(*ring)->memory_fd(), (*ring)->doorbell()};
  answer.owner = answer.ring = *ring;
  return answer;
}

void SideProtocol::not_sent(const SideAnswer& answer) {
  if (answer.ring) session_->detach_ring(answer.ring.get());
}

void SideProtocol::sent(const SideAnswer& answer) {
  if (answer.tokens.empty()) return;
  const std::vector<std::string_view> tokens(answer.tokens.begin(), answer.tokens.end());
  session_->planes().spend(tokens);
}

}  // namespace eagle::server
