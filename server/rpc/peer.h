// What gRPC knows about who is at the other end.
// For the .cpp files of this folder only: it brings gRPC's headers.
#pragma once

#include <grpcpp/server_context.h>

#include <optional>
#include <string>
#include <string_view>

namespace eagle::server {

// The name in the client's certificate, which gRPC has verified: its first subject alternative name, or its
// common name where it has none. Empty without a certificate, or for a name that is not plain text.
std::optional<std::string> certificate_name(const grpc::CallbackServerContext& context);

// Of the metadata `authorization: Bearer TOKEN`; empty where there is none.
std::string_view bearer_token(const grpc::CallbackServerContext& context);

}  // namespace eagle::server
