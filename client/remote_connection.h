// Connection: one session of a daemon, with its side channel, its gRPC channel and its ring. For the .cpp
// files of this folder only.
#pragma once

#include <errno.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/attachment.h"
#include "client/remote_planes.h"
#include "client/ring_client.h"
#include "client/session_state.h"
#include "client/side_channel.h"
#include "eagle/client/run.h"
#include "eagle/client/session.h"
#include "eagle/v1/service.grpc.pb.h"
#include "proto/rpc_error.h"

namespace eagle {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// What a call from a destructor may take, and telling the daemon to stop something.
constexpr milliseconds brief{1'000};

inline std::string hexadecimal(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += digits[static_cast<unsigned char>(byte) >> 4];
    text += digits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

// EAGLE_RING=off keeps a program's launches on gRPC.
inline bool ring_is_off() {
  const char* said = std::getenv("EAGLE_RING");
  return said != nullptr && std::string_view(said) == "off";
}

// Thread-safe.
class Connection final : public PlaneSource {
public:
  static StatusOr<std::shared_ptr<Connection>> open(const Endpoint& endpoint, const ConnectOptions& options,
                                                    std::shared_ptr<const void> daemon) {
    const Deadline deadline = Clock::now() + options.timeout;
    const std::string client_name =
        options.client_name.empty() ? program_invocation_short_name : options.client_name;
    if (endpoint.tcp()) {
      EAGLE_ASSIGN_OR_RETURN(auto channel, tcp_channel(endpoint, options));
      EAGLE_ASSIGN_OR_RETURN(auto attachment,
                             Attachment::open(channel, endpoint, options, client_name, deadline));
      Attachment* const attached = attachment.get();
      return std::make_shared<Connection>(endpoint, options, nullptr, std::move(attachment), nullptr,
                                          attached, std::move(channel));
    }
    EAGLE_ASSIGN_OR_RETURN(auto side, SideChannel::open(endpoint, client_name, deadline, options.token));
    // The calls get a socket of their own whose peer was checked too. A channel that gRPC opened by path
    // would send the secret to whoever listens there when it reconnects.
    EAGLE_ASSIGN_OR_RETURN(UniqueFd socket, connect_to_daemon(endpoint, deadline));
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    auto channel = grpc::CreateCustomInsecureChannelFromFd("eagled", socket.release(), arguments);
    SideChannel* const descriptors = side.get();
    return std::make_shared<Connection>(endpoint, options, std::move(daemon), std::move(side), descriptors,
                                        nullptr, std::move(channel));
  }

  // `side` or `attachment` is the link, the other one null.
  Connection(Endpoint its_endpoint, const ConnectOptions& options, std::shared_ptr<const void> daemon,
             std::unique_ptr<SessionLink> link, SideChannel* side, Attachment* attachment,
             std::shared_ptr<grpc::Channel> channel)
      : endpoint(std::move(its_endpoint)),
        state("session " + std::to_string(next_session_number()) + " at " + endpoint.text()),
        timeout(options.timeout),
        daemon_(std::move(daemon)),
        link_(std::move(link)),
        side_(side),
        attachment_(attachment),
        secret_(hexadecimal(link_->session().secret)),
        rpc_(std::make_unique<Stubs>(std::move(channel))),
        ring_wanted_(side_ != nullptr && options.ring && !ring_is_off()) {}

  ~Connection() override {
    if (state.forked()) {  // abandoned, not destroyed: the threads behind them live in the parent
      static_cast<void>(rpc_.release());
      static_cast<void>(link_.release());
      return;
    }
    state.close();
    link_->shut_down();
  }

  struct Stubs {
    explicit Stubs(const std::shared_ptr<grpc::Channel>& channel)
        : planes(channel), graphs(channel), runs(channel), admin(channel) {}
    v1::Planes::Stub planes;
    v1::Graphs::Stub graphs;
    v1::Runs::Stub runs;
    v1::Admin::Stub admin;
  };
  [[nodiscard]] Stubs& rpc() const { return *rpc_; }

  // No new calls, and those that run are stopped. The daemon's side lives on while there are arrays, so that
  // their memory stays, and goes array by array; over TCP there is no memory to stay.
  void close() {
    if (state.close() && (planes_ == 0 || copies())) link_->shut_down();
  }

  // Whether a call can be made at all.
  [[nodiscard]] Status check(std::string_view operation) const {
    EAGLE_RETURN_IF_ERROR(state.check(operation));
    if (!link_->alive()) return lost(operation, "its connection is closed");
    return {};
  }

  // Over TCP a call may wait until the connection is there again.
  void prepare(grpc::ClientContext& context) const {
    context.AddMetadata(rpc::session_secret_key, secret_);
    if (copies()) context.set_wait_for_ready(true);
  }

  // Over TCP the arrays of this process are copies.
  [[nodiscard]] bool copies() const override { return side_ == nullptr; }
  // After a call that found the connection broken: whether it stands again before the deadline.
  [[nodiscard]] bool back_again(Deadline deadline) const {
    return attachment_ != nullptr && attachment_->wait_until_attached(deadline);
  }

  // What became of a call, in the client's words where the server had none.
  [[nodiscard]] Status outcome(std::string_view operation, const grpc::Status& status,
                               const grpc::ClientContext& context) const {
    if (status.ok()) return {};
    EAGLE_RETURN_IF_ERROR(state.check(operation));  // closed meanwhile, by ourselves
    const Status said = rpc::status_of(status, context);
    if (said.reason() == Reason::connection_lost || (said.reason() == Reason::internal && !link_->alive())) {
      return lost(operation, said.message());
    }
    if (said.reason() == Reason::deadline && status.error_message() == "Deadline Exceeded") {
      return {Reason::deadline, std::string(operation) + ": the daemon at " + endpoint.text() +
                                    " did not answer within " + std::to_string(timeout.count()) + " ms"};
    }
    return said;
  }

  // A short call: `method` of `stub`.
  template <typename Stub, typename Request, typename Reply>
  Status call(std::string_view operation, Stub& stub,
              grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
              const Request& request, Reply& reply, std::chrono::milliseconds beyond = {}) const {
    EAGLE_RETURN_IF_ERROR(check(operation));
    grpc::ClientContext context;
    prepare(context);
    context.set_deadline(std::chrono::system_clock::now() + timeout + beyond);
    return outcome(operation, (stub.*method)(&context, request, &reply), context);
  }

  // A call that tidies up, in a closed session too: short, and not made where nobody would answer. Whether
  // the daemon did it.
  template <typename Stub, typename Request, typename Reply>
  bool tidy(Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
            const Request& request) {
    if (unresponsive_ || state.forked() || !link_->alive()) return false;
    grpc::ClientContext context;
    prepare(context);
    context.set_deadline(std::chrono::system_clock::now() + brief);
    Reply reply;
    const grpc::Status status = (stub.*method)(&context, request, &reply);
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) unresponsive_ = true;
    return status.ok();
  }

  StatusOr<Plane> create_plane(std::uint64_t bytes, std::string_view label) override {
    v1::CreatePlanesRequest request;
    request.add_planes()->set_bytes(bytes);
    request.mutable_planes(0)->set_label(std::string(label));
    v1::CreatePlanesReply reply;
    // The daemon reserves and clears every page before it answers: no short call when there are many.
    constexpr std::uint64_t bytes_per_ms = 100'000;  // a tenth of what was measured on a slow machine
    const std::chrono::milliseconds clearing(bytes / bytes_per_ms);
    EAGLE_RETURN_IF_ERROR(
        call("allocate", rpc().planes, &v1::Planes::Stub::Create, request, reply, clearing));
    if (reply.planes_size() != 1) return Status(Reason::bad_message, "allocate: the daemon made no plane");
    const v1::PlaneInfo& info = reply.planes(0);
    auto plane = take_plane(info, false);
    return plane.ok() ? std::move(plane) : plane.status().within("allocate");
  }

  // A plane that the daemon has made for this session, or granted to it. It may be one that this process has
  // already: it is released with the last.
  StatusOr<Plane> take_plane(const v1::PlaneInfo& info, bool read_only) {
    const graph::PlaneId id{info.ref().id(), info.ref().generation()};
    const auto enter = [&](std::byte* data) {
      const std::scoped_lock lock(uses_mutex_);
      uses_[id.id].push_back(data);
    };
    auto memory = map_plane(info, read_only);
    ++planes_;
    enter(memory.ok() ? memory->data() : nullptr);
    if (!memory.ok()) {
      release_plane(id, nullptr);
      return memory.status();
    }
    return Plane{id, std::move(*memory)};
  }

  void release_plane(const graph::PlaneId& plane, const std::byte* data) override {
    bool last = false;
    {
      const std::scoped_lock lock(uses_mutex_);
      auto& uses = uses_[plane.id];
      uses.erase(std::find(uses.begin(), uses.end(), data));
      last = uses.empty();
      if (last) uses_.erase(plane.id);
    }
    if (last) {
      v1::ReleasePlanesRequest request;
      request.add_planes()->set_id(plane.id);
      request.mutable_planes(0)->set_generation(plane.generation);
      tidy(rpc().planes, &v1::Planes::Stub::Release, request);
    }
    if (--planes_ == 0 && state.closed() && !state.forked()) link_->shut_down();
  }

  // Where the bytes of a plane are in this process; null where they are not.
  [[nodiscard]] std::byte* bytes_of(std::uint64_t plane) const {
    const std::scoped_lock lock(uses_mutex_);
    const auto found = uses_.find(plane);
    return found == uses_.end() ? nullptr : found->second.front();
  }

  // The daemon has moved a plane: its new memory takes the place of the old one, wherever this process has
  // that.
  Status map_again(const v1::PlaneInfo& info) {
    if (side_ == nullptr) return {};
    EAGLE_ASSIGN_OR_RETURN(auto descriptors, side_->fetch({info.token()}, Clock::now() + timeout));
    const std::scoped_lock lock(uses_mutex_);
    for (std::byte* const data : uses_[info.ref().id()]) {
      EAGLE_RETURN_IF_ERROR(plane::Memory::map_over(data, info.bytes(), descriptors.front()));
    }
    return {};
  }

  [[nodiscard]] std::uint64_t next_launch() { return ++last_launch_; }
  [[nodiscard]] bool alive() const { return link_->alive(); }
  [[nodiscard]] const run::HostIdentity& host() const { return link_->session().host; }

  // The way launches go where there is one; null where it is not wanted or the daemon has none. Opened by the
  // first launch.
  [[nodiscard]] RingClient* ring() {
    std::call_once(ring_once_, [this] {
      if (!ring_wanted_) return;
      auto descriptors = side_->ring(Clock::now() + timeout);
      if (!descriptors.ok()) return;
      auto opened = RingClient::open(std::move(descriptors->memory), std::move(descriptors->doorbell));
      if (opened.ok()) ring_ = *std::move(opened);
    });
    return ring_.get();
  }

  // CONNECTION_LOST.
  [[nodiscard]] Status lost(std::string_view operation, std::string_view why) const {
    const bool stays = attachment_ != nullptr && link_->alive();
    return {Reason::connection_lost,
            std::string(operation) + ": the daemon at " + endpoint.text() + " went away (" +
                std::string(why) + "); " +
                (stays ? "the session stays for its lease: call again, which waits for the connection"
                       : "open another session once it is back")};
  }

  const Endpoint endpoint;
  SessionState state;
  const milliseconds timeout;

private:
  StatusOr<plane::Memory> map_plane(const v1::PlaneInfo& info, bool read_only) {
    if (side_ == nullptr) return plane::Memory::stand_in(info.bytes());
    EAGLE_ASSIGN_OR_RETURN(auto descriptors, side_->fetch({info.token()}, Clock::now() + timeout));
    return read_only ? plane::Memory::map_read_only(std::move(descriptors.front()), info.bytes())
                     : plane::Memory::map(std::move(descriptors.front()), info.bytes());
  }

  std::shared_ptr<const void> daemon_;  // goes last
  std::unique_ptr<SessionLink> link_;
  SideChannel* const side_;       // null over TCP
  Attachment* const attachment_;  // null on a unix socket
  std::string secret_;
  std::unique_ptr<Stubs> rpc_;
  const bool ring_wanted_;
  std::once_flag ring_once_;
  std::unique_ptr<RingClient> ring_;
  std::atomic<std::uint64_t> last_launch_ = 0;
  std::atomic<std::uint64_t> planes_ = 0;  // that arrays of this process hold
  mutable std::mutex uses_mutex_;
  std::map<std::uint64_t, std::vector<std::byte*>> uses_;  // where each of them is mapped, by id
  std::atomic<bool> unresponsive_ = false;                 // it let a tidying call wait; no more of those
};

}  // namespace eagle
