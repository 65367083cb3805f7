#include "server/rpc/peer.h"

#include <grpcpp/security/auth_context.h>

#include <algorithm>

namespace eagle::server {

std::optional<std::string> certificate_name(const grpc::CallbackServerContext& context) {
  const auto peer = context.auth_context();
  if (!peer || !peer->IsPeerAuthenticated()) return {};
  const auto names = peer->GetPeerIdentity();
  if (names.empty()) return {};
  std::string name(names.front().data(), names.front().size());
  const bool plain = !name.empty() && name.size() <= 256 &&
                     std::all_of(name.begin(), name.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  return plain ? std::optional(std::move(name)) : std::nullopt;
}

std::string_view bearer_token(const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("authorization");
  if (found == metadata.end()) return {};
  constexpr std::string_view scheme = "Bearer ";
  const std::string_view value(found->second.data(), found->second.size());
  return value.starts_with(scheme) ? value.substr(scheme.size()) : std::string_view();
}

}  // namespace eagle::server
