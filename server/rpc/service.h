// Service: a gRPC service whose calls all come in by one way, so that none can forget what is looked at
// first. For the .cpp files of this folder only: it brings gRPC's headers.
//
// What gRPC generates for callbacks receives and parses a request before the service hears of its call. Here
// every method is one that reads for itself (to gRPC a stream in; for clients the difference does not show):
// first the caller's secret, from the headers, then the message in bytes and its limits, and then the parser.
#pragma once

#include <google/protobuf/arena.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "server/rpc/call.h"

namespace google::protobuf {
class Descriptor;
class ServiceDescriptor;
}  // namespace google::protobuf

namespace eagle::server {

// Each method is added once, in the constructor of the service that derives from this, under its name in the
// protocol. Ends the program where the protocol has none of that name and these messages.
class Service : public grpc::Service {
public:
  ~Service() override = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

protected:
  using Type = grpc::internal::RpcMethod::RpcType;
  using Bytes = grpc::ByteBuffer;

  // `name`: "eagle.v1.Planes". The clients' first words are awaited for `patience`.
  Service(Daemon& daemon, const char* name, std::chrono::milliseconds patience);
  Service(Daemon& daemon, const char* name) : Service(daemon, name, daemon.limits().first_word_timeout) {}

  // One request, one reply. `answer(PendingCall&, const Request&, Reply&)` sees to it that the call is
  // finished; request and reply live as long as the call.
  template <typename Answer>
  void unary(const char* method, Answer answer) {
    add_unary(method, std::function(std::move(answer)));
  }

  // One request, and a stream to the client. `Call` derives from OneRequest and is made of an Arrival and
  // `arguments`, which outlive the service.
  template <typename Call, typename Event, typename... Arguments>
  void stream_out(const char* method, Arguments&... arguments) {
    stream<Event>(method, [&arguments...](const Arrival& arrival) {
      return Call::begin(std::make_shared<Call>(arrival, arguments...));
    });
  }

  // Both sides speak. `begin(const Arrival&)` makes the reactor, which says itself who may call.
  template <typename Event, typename Begin>
  void stream(const char* method, Begin begin) {
    using Reactor = grpc::ServerBidiReactor<Bytes, Event>;
    const Method& added = add(method, Type::BIDI_STREAMING);
    handle(new grpc::internal::CallbackBidiHandler<Bytes, Event>(
        [this, &added, begin = std::move(begin)](grpc::CallbackServerContext* context) -> Reactor* {
          return begin(Arrival{daemon_, *context, added, first_words_});
        }));
  }

  // A stream from the client, and one reply. `begin(const Arrival&, Reply&)` makes the reactor.
  template <typename Reply, typename Begin>
  void stream_in(const char* method, Begin begin) {
    using Reactor = grpc::ServerReadReactor<Bytes>;
    const Method& added = add(method, Type::CLIENT_STREAMING);
    handle(new grpc::internal::CallbackClientStreamingHandler<Bytes, Reply>(
        [this, &added, begin = std::move(begin)](grpc::CallbackServerContext* context,
                                                 Reply* reply) -> Reactor* {
          return begin(Arrival{daemon_, *context, added, first_words_}, *reply);
        }));
  }

private:
  // Few pieces where there is much, and little where there is little.
  static google::protobuf::ArenaOptions arena_options() {
    google::protobuf::ArenaOptions options;
    options.max_block_size = 256 << 10;
    return options;
  }

  template <typename Request, typename Reply>
  class Unary final : public PendingCall {
  public:
    using Answer = std::function<void(PendingCall&, const Request&, Reply&)>;
    Unary(const Arrival& arrival, Reply& reply, const Answer& answer)
        : PendingCall(arrival), reply_(reply), answer_(answer) {}

  private:
    google::protobuf::Message& request() override { return request_; }
    void answer() override { answer_(*this, request_, reply_); }

    // A description is tens of thousands of messages, which are given back in one piece.
    google::protobuf::Arena arena_{arena_options()};
    Request& request_ = *google::protobuf::Arena::CreateMessage<Request>(&arena_);
    Reply& reply_;
    const Answer& answer_;  // the service's
  };

  template <typename Request, typename Reply>
  void add_unary(const char* method, std::function<void(PendingCall&, const Request&, Reply&)> answer) {
    using Call = Unary<Request, Reply>;
    check(method, *Request::descriptor(), *Reply::descriptor());
    stream_in<Reply>(method, [answer = std::move(answer)](const Arrival& arrival, Reply& reply) {
      return Call::begin(std::make_shared<Call>(arrival, reply, answer));
    });
  }

  // Ends the program unless the method takes and gives these.
  void check(const char* method, const google::protobuf::Descriptor& request,
             const google::protobuf::Descriptor& reply) const;
  const Method& add(const char* method, Type type);
  void handle(grpc::internal::MethodHandler* handler);  // of the method that was added last

  Daemon& daemon_;
  const google::protobuf::ServiceDescriptor& described_;
  const FirstWords first_words_;
  std::deque<Method> methods_;  // gRPC keeps their paths, calls keep all of it
};

}  // namespace eagle::server
