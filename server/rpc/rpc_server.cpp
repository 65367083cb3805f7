#include "server/rpc/rpc_server.h"

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "server/rpc/services.h"

namespace eagle::server {
namespace {

using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

// Of services that gRPC serves with threads of its own; ours need none.
constexpr int max_threads = 8;
// What gRPC may hold in buffers, all connections together.
constexpr std::size_t buffer_bytes = 512u << 20;
// How often gRPC looks whether the files of TLS have changed.
constexpr unsigned certificate_interval_s = 10;

}  // namespace

struct RpcServer::State {
  std::mutex devices_mutex;
  std::map<std::string, bool> devices;  // GPUs, and whether each serves
  bool serving = false;
  std::vector<std::unique_ptr<grpc::Service>> services;
  std::unique_ptr<Acceptor> acceptor;
  std::unique_ptr<grpc::Server> server;  // last: its calls use the services
};

namespace {

std::shared_ptr<grpc::ServerCredentials> credentials_of(const TlsFiles& files) {
  if (!files.used()) return grpc::InsecureServerCredentials();
  using namespace grpc::experimental;
  const auto provider = std::make_shared<FileWatcherCertificateProvider>(
      files.key, files.certificate, files.client_ca, certificate_interval_s);
  TlsServerCredentialsOptions options(provider);
  options.watch_identity_key_cert_pairs();
  if (files.client_ca.empty()) {
    options.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  } else {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return TlsServerCredentials(options);
}

void set_limits(grpc::ServerBuilder& builder, const Limits& limits) {
  grpc::ResourceQuota quota("eagled");
  quota.SetMaxThreads(max_threads).Resize(buffer_bytes);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(static_cast<int>(limits.message_bytes));
  // What came compressed would be unpacked, all of it, before its size is looked at. (To say that nothing of
  // the kind is supported would have gRPC write a line of log for each.)
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, static_cast<int>(limits.streams));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             static_cast<int>(limits.greeting_timeout.count()));
}

// A peer whose machine is gone says nothing; one that is there answers pings, however idle.
void keep_alive(grpc::ServerBuilder& builder, const Limits& limits) {
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(limits.keepalive.count()));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(limits.keepalive.count()));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
}

}  // namespace

StatusOr<std::unique_ptr<RpcServer>> RpcServer::start(Daemon& daemon, Surroundings surroundings) {
  return start(daemon, std::move(surroundings), nullptr, {});
}

StatusOr<std::unique_ptr<RpcServer>> RpcServer::start_remote(Daemon& daemon, Surroundings surroundings,
                                                             const Access& access, const TlsFiles& files) {
  return start(daemon, std::move(surroundings), &access, files);
}

StatusOr<std::unique_ptr<RpcServer>> RpcServer::start(Daemon& daemon, Surroundings surroundings,
                                                      const Access* remote, const TlsFiles& files) {
  auto state = std::make_unique<State>();
  if (remote != nullptr) state->services.push_back(make_sessions_service(daemon, *remote));
  state->services.push_back(make_planes_service(daemon));
  state->services.push_back(make_graphs_service(daemon));
  state->services.push_back(make_runs_service(daemon));
  state->services.push_back(make_admin_service(daemon, std::move(surroundings)));

  std::vector<std::string> names = {"grpc.health.v1.Health"};
  for (const char* name : {"Planes", "Graphs", "Runs", "Admin"})
    names.push_back(std::string("eagle.v1.") + name);
  if (remote != nullptr) names.emplace_back("eagle.v1.Sessions");
  state->services.push_back(make_reflection_service(daemon, std::move(names)));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  for (const auto& service : state->services) builder.RegisterService(service.get());
  set_limits(builder, daemon.limits());
  if (remote != nullptr) keep_alive(builder, daemon.limits());
  state->acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials_of(files));
  state->server = builder.BuildAndStart();
  if (!state->server) return Status(Reason::internal, "gRPC did not start; its log says why");
  std::unique_ptr<RpcServer> server(new RpcServer(std::move(state)));
  server->set_serving(true);
  return server;
}

RpcServer::RpcServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

RpcServer::~RpcServer() { shut_down(); }

void RpcServer::adopt(UniqueFd connection) {
  Acceptor::NewConnectionParameters parameters;
  parameters.fd = connection.release();  // closed by gRPC, whatever comes
  state_->acceptor->HandleNewConnection(&parameters);
}

void RpcServer::set_serving(bool serving) {
  grpc::HealthCheckServiceInterface& health = *state_->server->GetHealthCheckService();
  for (const char* service : {"", "eagled.ready", "eagled.device.cpu"})
    health.SetServingStatus(service, serving);
  const std::lock_guard lock(state_->devices_mutex);
  state_->serving = serving;
  for (const auto& [device, serves] : state_->devices)
    health.SetServingStatus("eagled.device." + device, serving && serves);
}

void RpcServer::set_device(const std::string& device, bool serves) {
  const std::lock_guard lock(state_->devices_mutex);
  state_->devices[device] = serves;
  state_->server->GetHealthCheckService()->SetServingStatus("eagled.device." + device,
                                                            state_->serving && serves);
}

// gRPC would cancel what is left at a deadline: there is none, and what is left ends with the process.
void RpcServer::answer_all(std::chrono::milliseconds patience) {
  struct Answered {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
  };
  const auto answered = std::make_shared<Answered>();
  std::thread([server = state_->server.get(), answered] {
    server->Shutdown();
    const std::lock_guard lock(answered->mutex);
    answered->done = true;
    answered->changed.notify_all();
  }).detach();
  std::unique_lock lock(answered->mutex);
  answered->changed.wait_for(lock, patience, [&] { return answered->done; });
}

void RpcServer::shut_down() {
  // The deadline says when calls that are left are cancelled: now.
  state_->server->Shutdown(std::chrono::system_clock::now());
  state_->server->Wait();
}

}  // namespace eagle::server
