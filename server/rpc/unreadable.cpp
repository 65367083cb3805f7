#include "server/rpc/unreadable.h"

#include <grpcpp/support/server_interceptor.h>
#include <grpcpp/support/status.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "server/daemon.h"
#include "server/rpc/rpc_status.h"

namespace eagle::server {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

constexpr std::string_view ours = "/eagle.v1.";

class Refusal final : public grpc::experimental::Interceptor {
public:
  Refusal(Daemon& daemon, std::string_view method) : daemon_(daemon), method_(method) {}

  void Intercept(InterceptorBatchMethods* batch) override {
    if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS) &&
        batch->GetSendStatus().error_code() == grpc::StatusCode::UNIMPLEMENTED) {
      std::string name(method_.substr(ours.size()));
      std::replace(name.begin(), name.end(), '/', '.');
      batch->ModifySendStatus(
          rpc::to_grpc(daemon_, unreadable("a request of " + name), *batch->GetSendTrailingMetadata()));
    }
    batch->Proceed();
  }

private:
  Daemon& daemon_;
  const std::string_view method_;  // gRPC's own
};

class Refusals final : public grpc::experimental::ServerInterceptorFactoryInterface {
public:
  explicit Refusals(Daemon& daemon) : daemon_(daemon) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(ServerRpcInfo* call) override {
    const bool one_request =
        call->type() == ServerRpcInfo::Type::UNARY || call->type() == ServerRpcInfo::Type::SERVER_STREAMING;
    const std::string_view method = call->method();
    return one_request && method.starts_with(ours) ? new Refusal(daemon_, method) : nullptr;
  }

private:
  Daemon& daemon_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> refuse_unreadable(Daemon& daemon) {
  return std::make_unique<Refusals>(daemon);
}

Status unreadable(const std::string& what) {
  return {Reason::bad_message,
          "expected " + what +
              ", found bytes that are none: cut short, of another message, or nested deeper than the " +
              std::to_string(message_depth) + " messages in each other that are read"};
}

}  // namespace eagle::server
