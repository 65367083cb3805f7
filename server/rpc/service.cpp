#include "server/rpc/service.h"

#include <google/protobuf/descriptor.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

namespace eagle::server {
namespace {

[[noreturn]] void end_over(const std::string& fault) {
  spdlog::critical("{}", fault);
  std::abort();
}

const google::protobuf::ServiceDescriptor& service_of(const char* name) {
  const auto* const found = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(name);
  if (found == nullptr) end_over(std::string("the protocol has no service ") + name);
  return *found;
}

const google::protobuf::MethodDescriptor& method_of(const google::protobuf::ServiceDescriptor& service,
                                                    const char* name) {
  const auto* const found = service.FindMethodByName(name);
  if (found == nullptr) end_over(service.full_name() + " has no method " + name);
  return *found;
}

}  // namespace

Service::Service(Daemon& daemon, const char* name, std::chrono::milliseconds patience)
    : daemon_(daemon), described_(service_of(name)), first_words_(patience) {}

void Service::check(const char* method, const google::protobuf::Descriptor& request,
                    const google::protobuf::Descriptor& reply) const {
  const auto& found = method_of(described_, method);
  if (found.input_type() != &request || found.output_type() != &reply)
    end_over(found.full_name() + " takes or gives other messages than its service thinks");
}

const Method& Service::add(const char* method, Type type) {
  const Method& added = methods_.emplace_back(method_of(described_, method));
  AddMethod(new grpc::internal::RpcServiceMethod(added.path.c_str(), type, nullptr));
  return added;
}

void Service::handle(grpc::internal::MethodHandler* handler) {
  MarkMethodCallback(static_cast<int>(methods_.size()) - 1, handler);
}

}  // namespace eagle::server
