// How a Status of this project travels with a gRPC call, for both ends.
//
// The code is gRPC's own, the message is the status message, and the stable reason (engine/base/reason.h)
// goes in the trailing metadata under `error_reason_key`. For clients that are not ours the reason is also in
// the status's details, as google.rpc.ErrorInfo.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace grpc {
class ClientContext;
class Status;
}  // namespace grpc

namespace eagle::rpc {

// Metadata of every call: the session's secret, lower-case hexadecimal.
inline constexpr const char* session_secret_key = "eagle-session-secret";
// Metadata of a call that belongs to a trace of the user's (W3C Trace Context).
inline constexpr const char* traceparent_key = "traceparent";
// Trailing metadata of a refusal that passes: milliseconds after which it makes sense to try again, as gRPC's
// own retry policy reads them.
inline constexpr const char* retry_after_key = "grpc-retry-pushback-ms";
// Trailing metadata of a failed call: the wire name of the reason.
inline constexpr const char* error_reason_key = "eagle-error-reason";

// In the message of a SHUTTING_DOWN where only a worker goes, and the next one is there soon: nothing was
// begun, and clients that know these words ask again. Without them the daemon goes.
inline constexpr std::string_view passes_soon_words = "call again in a moment";
inline bool passes_soon(const Status& status) {
  return status.reason() == Reason::shutting_down &&
         status.message().find(passes_soon_words) != std::string::npos;
}

// A message that fits into HTTP/2 trailers: valid UTF-8, and at most this many bytes after gRPC has
// percent-encoded it (a header block over 8 KiB would replace the error by one about its size).
inline constexpr std::size_t max_encoded_message_bytes = 4096;
std::string wire_message(std::string_view message);

// What a refusal's details are: a serialized google.rpc.Status with one ErrorInfo, whose message is
// `wire_message(status.message())`, as its readers expect. Empty where that leaves no room for it in the
// trailers.
std::string error_details(const Status& status);

// What the server said, or what gRPC itself has to say about the connection. `context` is the call's,
// after it ended. A status without a reason gets the one that fits its code: CONNECTION_LOST where gRPC could
// not reach the daemon, DEADLINE, CANCELLED, else INTERNAL.
Status status_of(const grpc::Status& status, const grpc::ClientContext& context);

}  // namespace eagle::rpc
