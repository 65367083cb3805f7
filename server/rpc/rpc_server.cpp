#include "server/rpc/rpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <utility>

#include "server/rpc/services.h"

namespace eagle::server {
namespace {

using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

// Of the reflection service, which gRPC serves with threads of its own; ours need none.
constexpr int max_threads = 8;
// What gRPC may hold in buffers, all connections together.
constexpr std::size_t buffer_bytes = 512u << 20;

}  // namespace

struct RpcServer::State {
  std::vector<std::unique_ptr<grpc::Service>> services;
  std::unique_ptr<Acceptor> acceptor;
  std::unique_ptr<grpc::Server> server;  // last: its calls use the services
};

StatusOr<std::unique_ptr<RpcServer>> RpcServer::start(Daemon& daemon, std::vector<std::string> listen) {
  auto state = std::make_unique<State>();
  state->services.push_back(make_planes_service(daemon));
  state->services.push_back(make_graphs_service(daemon));
  state->services.push_back(make_runs_service(daemon));
  state->services.push_back(make_admin_service(daemon, std::move(listen)));

  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  const Limits& limits = daemon.limits();
  grpc::ServerBuilder builder;
  for (const auto& service : state->services) builder.RegisterService(service.get());
  grpc::ResourceQuota quota("eagled");
  quota.SetMaxThreads(max_threads).Resize(buffer_bytes);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(static_cast<int>(limits.message_bytes));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, static_cast<int>(limits.streams));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             static_cast<int>(limits.greeting_timeout.count()));
  state->acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::InsecureServerCredentials());
  state->server = builder.BuildAndStart();
  if (!state->server) return Status(Reason::internal, "gRPC did not start; its log says why");
  return std::unique_ptr<RpcServer>(new RpcServer(std::move(state)));
}

RpcServer::RpcServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

RpcServer::~RpcServer() { shut_down(); }

void RpcServer::adopt(UniqueFd connection) {
  Acceptor::NewConnectionParameters parameters;
  parameters.fd = connection.release();  // closed by gRPC, whatever comes
  state_->acceptor->HandleNewConnection(&parameters);
}

void RpcServer::shut_down() {
  // The deadline says when calls that are left are cancelled: now.
  state_->server->Shutdown(std::chrono::system_clock::now());
  state_->server->Wait();
}

}  // namespace eagle::server
