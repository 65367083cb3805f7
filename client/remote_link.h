// RemoteLink: one connection of a session to one worker: its side channel, its gRPC channel, its ring; or
// over TCP its stream and channel. A session gets another one when the worker has died. For the .cpp files of
// this folder only.
#pragma once

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "client/attachment.h"
#include "client/ring_client.h"
#include "client/side_channel.h"
#include "eagle/v1/service.grpc.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace eagle {

// Thread-safe.
class RemoteLink {
public:
  struct Stubs {
    explicit Stubs(const std::shared_ptr<grpc::Channel>& channel)
        : planes(channel), graphs(channel), runs(channel), admin(channel), health(channel) {}
    v1::Planes::Stub planes;
    v1::Graphs::Stub graphs;
    v1::Runs::Stub runs;
    v1::Admin::Stub admin;
    grpc::health::v1::Health::Stub health;
  };

  // Opens a session over TCP. As `tcp_channel` and Attachment::open.
  static StatusOr<std::shared_ptr<RemoteLink>> open_tcp(const Endpoint& endpoint,
                                                        const ConnectOptions& options,
                                                        const std::string& client_name, Deadline deadline) {
    EAGLE_ASSIGN_OR_RETURN(auto channel, tcp_channel(endpoint, options));
    EAGLE_ASSIGN_OR_RETURN(auto attachment,
                           Attachment::open(channel, endpoint, options, client_name, deadline));
    Attachment* const attached = attachment.get();
    return std::make_shared<RemoteLink>(std::move(attachment), nullptr, attached, channel, 1);
  }

  // Opens a session, or goes on with one. As SideChannel::open.
  static StatusOr<std::shared_ptr<RemoteLink>> open(const Endpoint& endpoint, const SessionRequest& request,
                                                    std::uint64_t number, Deadline deadline) {
    EAGLE_ASSIGN_OR_RETURN(auto side, SideChannel::open(endpoint, request, deadline));
    // The calls get a socket of their own whose peer was checked too. A channel that gRPC opened by path
    // would send the secret to whoever listens there when it reconnects.
    EAGLE_ASSIGN_OR_RETURN(UniqueFd socket, connect_to_daemon(endpoint, deadline));
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    auto channel = grpc::CreateCustomInsecureChannelFromFd("eagled", socket.release(), arguments);
    SideChannel* const descriptors = side.get();
    return std::make_shared<RemoteLink>(std::move(side), descriptors, nullptr, channel, number);
  }

  // `side` or `attachment` is what holds the session, the other one null.
  RemoteLink(std::unique_ptr<SessionLink> session, SideChannel* side, Attachment* attachment,
             const std::shared_ptr<grpc::Channel>& channel, std::uint64_t number)
      : number_(number),
        session_(std::move(session)),
        side_(side),
        attachment_(attachment),
        stubs_(std::make_unique<Stubs>(channel)) {}
  ~RemoteLink() {
    if (abandoned_) {  // the threads behind them live in the parent
      static_cast<void>(stubs_.release());
      static_cast<void>(session_.release());
    }
  }
  RemoteLink(const RemoteLink&) = delete;
  RemoteLink& operator=(const RemoteLink&) = delete;

  // Of the session's workers, as far as links led to them, from 1.
  [[nodiscard]] std::uint64_t number() const {
    return attachment_ != nullptr ? attachment_->times().workers : number_;
  }
  [[nodiscard]] bool alive() const { return !broken_.load(std::memory_order_relaxed) && session_->alive(); }
  // A call found it broken: of a worker's sockets one may end before the other. Over TCP it comes back.
  void note_broken() const {
    if (side_ != nullptr) broken_.store(true, std::memory_order_relaxed);
  }
  [[nodiscard]] const OpenedSession& session() const { return session_->session(); }
  void shut_down() { session_->shut_down(); }
  [[nodiscard]] Stubs& rpc() const { return *stubs_; }
  // Null over TCP.
  [[nodiscard]] SideChannel* side() const { return side_; }
  // Null on a unix socket.
  [[nodiscard]] Attachment* attachment() const { return attachment_; }

  // Null where there is none. Opened by the first who asks.
  [[nodiscard]] RingClient* ring(std::chrono::milliseconds timeout) {
    std::call_once(ring_once_, [&] {
      if (side_ == nullptr) return;
      auto descriptors = side_->ring(std::chrono::steady_clock::now() + timeout);
      if (!descriptors.ok()) return;
      auto opened = RingClient::open(std::move(descriptors->memory), std::move(descriptors->doorbell));
      if (opened.ok()) ring_ = *std::move(opened);
    });
    return ring_.get();
  }

  // In a forked child: what goes with this object is left alone instead.
  void abandon() { abandoned_ = true; }

private:
  const std::uint64_t number_;
  std::unique_ptr<SessionLink> session_;
  SideChannel* const side_;
  Attachment* const attachment_;
  std::unique_ptr<Stubs> stubs_;
  std::once_flag ring_once_;
  std::unique_ptr<RingClient> ring_;
  bool abandoned_ = false;
  mutable std::atomic<bool> broken_ = false;
};

}  // namespace eagle
