#include "proto/rpc_error.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <cstdint>

#include "eagle/v1/error.pb.h"

namespace eagle::rpc {
namespace {

constexpr std::string_view ellipsis = "...";

// Of 8 KiB, which the status's other trailers share.
constexpr std::size_t max_message_and_details_bytes = 7000;

// What gRPC makes of one byte of a status message: itself, or %XX.
std::size_t encoded_bytes(unsigned char byte) { return byte >= 0x20 && byte <= 0x7e && byte != '%' ? 1 : 3; }

// Bytes of the well-formed UTF-8 sequence at the start of `text`; 0 when there is none.
std::size_t utf8_sequence(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return 1;
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return 0;
  std::uint32_t point = lead & (0xffu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0u) != 0x80u) return 0;
    point = point << 6 | (byte & 0x3fu);
  }
  const bool overlong = (size == 3 && point < 0x800) || (size == 4 && point < 0x10000);
  const bool surrogate = point >= 0xd800 && point <= 0xdfff;
  return overlong || surrogate || point > 0x10ffff ? 0 : size;
}

std::size_t encoded_bytes(std::string_view text) {
  std::size_t encoded = 0;
  for (const char byte : text) encoded += encoded_bytes(static_cast<unsigned char>(byte));
  return encoded;
}

Reason reason_without_metadata(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::UNAVAILABLE:
      return Reason::connection_lost;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Reason::deadline;
    case grpc::StatusCode::CANCELLED:
      return Reason::cancelled;
    case grpc::StatusCode::UNAUTHENTICATED:
      return Reason::unauthenticated;
    case grpc::StatusCode::PERMISSION_DENIED:
      return Reason::permission_denied;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return Reason::quota;  // as words_without_metadata tells
    default:
      return Reason::internal;
  }
}

// What gRPC refuses by itself for want of memory, or for a message's size, it says to its own developers.
std::string words_without_metadata(const grpc::Status& status) {
  const std::string& said = status.error_message();
  if (status.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED) return said;
  if (said.find("RST_STREAM") != std::string::npos) {
    return "the daemon's gRPC took no more of the call: what all clients are sending it at this time fills "
           "the "
           "memory that it has for messages, or this client sends too much at once; try again soon, with "
           "smaller "
           "or fewer messages (" +
           said + ")";
  }
  if (said.find("larger than max") != std::string::npos) {
    return "a message is larger than one may be; send less at once, or have the operator raise message_bytes "
           "(" +
           said + ")";
  }
  return said;
}

}  // namespace

std::string wire_message(std::string_view message) {
  std::string out;
  std::size_t encoded = 0;
  std::size_t fits = 0;  // bytes of `out` after which the ellipsis still fits
  while (!message.empty()) {
    const std::size_t sequence = utf8_sequence(message);
    const std::string_view character = sequence == 0 ? "?" : message.substr(0, sequence);
    encoded += encoded_bytes(character);
    if (encoded > max_encoded_message_bytes) {
      out.resize(fits);
      return out.append(ellipsis);
    }
    out += character;
    if (encoded + ellipsis.size() <= max_encoded_message_bytes) fits = out.size();
    message.remove_prefix(sequence == 0 ? 1 : sequence);
  }
  return out;
}

std::string error_details(const Status& status) {
  v1::ErrorInfo error;
  error.set_reason(std::string(info(status.reason()).wire_name));
  error.set_domain("eagled");
  v1::StatusDetails details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(wire_message(status.message()));
  google::protobuf::Any& any = *details.add_details();
  any.set_type_url("type.googleapis.com/google.rpc.ErrorInfo");
  any.set_value(error.SerializeAsString());
  std::string bytes = details.SerializeAsString();
  const std::size_t in_base64 = (bytes.size() + 2) / 3 * 4;
  if (encoded_bytes(details.message()) + in_base64 > max_message_and_details_bytes) bytes.clear();
  return bytes;
}

Status status_of(const grpc::Status& status, const grpc::ClientContext& context) {
  if (status.ok()) return {};
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto reason = trailers.find(error_reason_key);
  if (reason != trailers.end()) {
    return {reason_named({reason->second.data(), reason->second.size()}), status.error_message()};
  }
  return {reason_without_metadata(status.error_code()), words_without_metadata(status)};
}

}  // namespace eagle::rpc
